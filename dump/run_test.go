package dump

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"segmirror/segment"
)

// run prints one log of the given content.
func run(t testing.TB, content []byte, flags ...string) (stdout, stderr string, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "00000000000000000000.log")
	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
	opts, err := Parse(append(flags, "--files", file))
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	err = Run(context.Background(), opts, &out, &errs, UTF8)
	dir := filepath.Dir(file) + "/"
	return strings.ReplaceAll(out.String(), dir, ""), strings.ReplaceAll(errs.String(), dir, ""), err
}

// one is a batch of one record.
func one(offset int64, timestampMs int64, attributes int16, r segment.Record) []byte {
	r.Offset, r.TimestampMs = offset, timestampMs
	return segment.AppendBatch(nil, &segment.BatchHeader{
		BaseOffset: offset, Attributes: attributes, BaseTimestampMs: timestampMs, MaxTimestampMs: timestampMs,
		ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, RecordsCount: 1,
	}, segment.AppendRecord(nil, offset, timestampMs, &r))
}

// The lines are those that KIP-1279 shows.
func TestMirrorStateDecoder_PrintsTheKIPsLines(t *testing.T) {
	state := func(n byte) segment.Record {
		key := append([]byte{0, 2, 0, 9}, "my-mirror"...)
		value := append([]byte{0, 0, 9}, "my-topic"...)
		return segment.Record{Key: key, Value: append(value, 0, 0, 0, 0, n, 0)}
	}
	log := append(one(0, 1771239071191, 0, state(0)), one(1, 1771239071219, 0, state(1))...)
	got, _, err := run(t, log, "--mirror-state-decoder")
	if err != nil {
		t.Fatal(err)
	}
	const want = `Dumping 00000000000000000000.log
Log starting offset: 0
baseOffset: 0 lastOffset: 0 count: 1 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 ` +
		`partitionLeaderEpoch: 0 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: 0 ` +
		`CreateTime: 1771239071191 size: 98 magic: 2 compresscodec: none crc: 3314855113 isvalid: true
| offset: 0 CreateTime: 1771239071191 keySize: 13 valueSize: 17 sequence: -1 headerKeys: [] ` +
		`key: {"type":"2","data":{"mirrorName":"my-mirror"}} ` +
		`payload: {"version":"0","data":{"topicName":"my-topic","partition":0,"state":0}}
baseOffset: 1 lastOffset: 1 count: 1 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 ` +
		`partitionLeaderEpoch: 0 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: 98 ` +
		`CreateTime: 1771239071219 size: 98 magic: 2 compresscodec: none crc: 3968746657 isvalid: true
| offset: 1 CreateTime: 1771239071219 keySize: 13 valueSize: 17 sequence: -1 headerKeys: [] ` +
		`key: {"type":"2","data":{"mirrorName":"my-mirror"}} ` +
		`payload: {"version":"0","data":{"topicName":"my-topic","partition":0,"state":1}}
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestMirrorStateDecoder_PrintsTheAgentsOwnRecords(t *testing.T) {
	key := func(kind uint16) []byte {
		return append(binary.BigEndian.AppendUint16(nil, kind), 0, 1, 'm')
	}
	for name, c := range map[string]struct {
		key, value []byte
		want       string
	}{
		"tombstone": {key(2), nil, `key: {"type":"2","data":{"mirrorName":"m"}} payload: <DELETE>`},
		"failed": {
			key(2),
			[]byte{0, 0, 2, 't', 0, 0, 0, 1, 6, 1, 0, 8, 3, 0, 0, 0, 5, 3, 'n', 'o'},
			`payload: {"version":"0","data":{"topicName":"t","partition":1,"state":6,"failure":{"cause":3,"attempts":5,"text":"no"}}}`,
		},
		"epochs": {
			key(1),
			[]byte{0, 0, 2, 2, 't', 2, 0, 0, 0, 1, 0, 0, 0, 7, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0},
			`"topics":[{"name":"t","partitions":[{"partitionIndex":1,"lastMirrorEpoch":7,"lastMirroredEnd":9}]}]`,
		},
		"source":  {key(1201), []byte{0, 0, 3, 'i', 'd', 1, 0}, `"data":{"sourceClusterId":"id","epochPolicy":1}`},
		"unknown": {key(77), []byte{0, 0}, `key: Unknown record type 77 at offset 0, skipping.`},
	} {
		got, _, err := run(t, one(0, 1, 0, segment.Record{Key: c.key, Value: c.value}), "--mirror-state-decoder")
		if err != nil || !strings.Contains(got, c.want+"\n") && !strings.Contains(got, c.want+"}") {
			t.Errorf("%s: %v\n%s\nwant %s", name, err, got, c.want)
		}
	}
}

func TestRun_DecodesMirrorPidReset(t *testing.T) {
	reset := segment.MirrorPidReset{Offset: 4, TimestampMs: 9, SourceClusterID: "source-cluster"}
	got, _, err := run(t, reset.AppendTo(nil), "--deep-iteration")
	const want = ` MirrorPidReset {"version":0,"sourceClusterId":"source-cluster"}` + "\n"
	if err != nil || !strings.HasSuffix(got, want) {
		t.Errorf("%v\n%s\nwant %s", err, got, want)
	}
	broken := one(0, 1, 0x20, segment.Record{Key: segment.AppendControlKey(nil, 7), Value: []byte{0, 0, 9, 'x'}})
	if got, _, err = run(t, broken, "--deep-iteration"); err != nil || !strings.HasSuffix(got, " controlType: UNKNOWN(7)\n") {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestRun_ContinueGoesOnBehindWhatKafkaStopsAt(t *testing.T) {
	batch := func(offset int64) []byte {
		return one(offset, 1, 0, segment.Record{Key: []byte("k"), Value: []byte("v")})
	}
	damaged := func(edit func(b []byte) []byte) []byte {
		return append(append(batch(0), edit(batch(1))...), batch(2)...)
	}
	zstd := segment.AppendBatch(nil, &segment.BatchHeader{BaseOffset: 1, Attributes: 4, RecordsCount: 1}, []byte("no zstd"))
	for name, c := range map[string]struct {
		log    []byte
		report string
	}{
		"last byte":   {damaged(func(b []byte) []byte { b[len(b)-1] ^= 0xff; return b }), "stored CRC "},
		"size":        {damaged(func(b []byte) []byte { b[11] = 1; return b }), "position 70: 70 bytes skipped"},
		"large size":  {damaged(func(b []byte) []byte { b[8] = 0x70; return b }), "position 70: 70 bytes skipped"},
		"negative":    {damaged(func(b []byte) []byte { b[8] = 0x80; return b }), "Found record size -2147483590 smaller"},
		"torn":        {damaged(func(b []byte) []byte { return b[:40] }), "bytes skipped to the next batch"},
		"zeros":       {damaged(func(b []byte) []byte { return make([]byte, 4096) }), "4096 bytes skipped"},
		"large zeros": {damaged(func(b []byte) []byte { return make([]byte, 3*windowSize+5) }), "bytes skipped"},
		"codec":       {damaged(func([]byte) []byte { return zstd }), "Failed to decompress record stream"},
	} {
		stdout, stderr, err := run(t, c.log, "--print-data-log", "--continue")
		if !errors.Is(err, ErrFaults) || !strings.Contains(stderr, c.report) || !strings.Contains(stderr, " faults that ") {
			t.Errorf("%s: %v\n%s", name, err, stderr)
		}
		if !strings.Contains(stdout, "\nbaseOffset: 2 ") || !strings.Contains(stdout, "\n| offset: 2 ") {
			t.Errorf("%s: the third batch is missing\n%s", name, stdout)
		}
	}
	if _, stderr, err := run(t, append(batch(0), batch(1)...), "--deep-iteration", "--continue"); err != nil || stderr != "" {
		t.Errorf("a good log: %v %s", err, stderr)
	}
}

func TestRun_BoundsWhatABatchTakesDecompressed(t *testing.T) {
	var records []byte
	big := segment.Record{Value: make([]byte, 1<<20)}
	records = segment.AppendRecord(records, 0, 0, &big)
	block := append([]byte{0x80, 0x80, 0x80, 0x80, 0x7f}, 0) // a snappy block that says it is 34 GB
	for _, body := range [][]byte{block, records} {
		log := segment.AppendBatch(nil, &segment.BatchHeader{Attributes: 2, RecordsCount: 1}, body)
		if _, stderr, err := run(t, log, "--deep-iteration", "--max-decompressed-bytes", "1000"); !errors.Is(err, ErrFaults) ||
			!strings.Contains(stderr, "KafkaException: ") {
			t.Errorf("%v\n%s", err, stderr)
		}
	}
}

func TestRun_EndsWithItsContext(t *testing.T) {
	file := filepath.Join(t.TempDir(), "00000000000000000000.log")
	if err := os.WriteFile(file, one(0, 1, 0, segment.Record{}), 0o644); err != nil {
		t.Fatal(err)
	}
	opts, err := Parse([]string{"--files", file})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Run(ctx, opts, &bytes.Buffer{}, &bytes.Buffer{}, UTF8); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// fuzzKinds are the files that a fuzzed log is printed as, and with which flags.
var fuzzKinds = []struct{ name, flags string }{
	{"00000000000000000000.log", "--print-data-log"},
	{"00000000000000000000.log", "--offsets-decoder --continue"},
	{"00000000000000000000.log", "--cluster-metadata-decoder"},
	{"00000000000000000000.log", "--remote-log-metadata-decoder"},
	{"00000000000000000000.log", "--mirror-state-decoder"},
	{"00000000000000000000.log", "--share-group-state-decoder --continue"},
	{"00000000000000000000.index", ""},
	{"00000000000000000000.timeindex", "--continue"},
	{"00000000000000000000.txnindex", ""},
	{"00000000000000000000.snapshot", ""},
}

// FuzzRun prints bytes as a file of every kind, beside a log and an index.
func FuzzRun(f *testing.F) {
	images, err := filepath.Glob("../testdata/golden/clean/logdir/[tn]*-0/0*")
	if err != nil {
		f.Fatal(err)
	}
	for i, image := range images {
		if content, err := os.ReadFile(image); err == nil && len(content) < 4096 {
			f.Add(content, uint8(i))
		}
	}
	log := append(one(0, 1, 0, segment.Record{Key: []byte("k")}), one(1, 2, 0, segment.Record{Key: []byte("k")})...)
	f.Fuzz(func(t *testing.T, content []byte, n uint8) {
		dir := t.TempDir()
		kind := fuzzKinds[int(n)%len(fuzzKinds)]
		for name, bytes := range map[string][]byte{
			"00000000000000000000.log": log, "00000000000000000000.index": {0, 0, 0, 1, 0, 0, 0, 70}, kind.name: content,
		} {
			if err := os.WriteFile(filepath.Join(dir, name), bytes, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		opts, err := Parse(append(strings.Fields(kind.flags), "--max-decompressed-bytes", "100000", "--files",
			filepath.Join(dir, kind.name)))
		if err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		if err := Run(context.Background(), opts, &out, &errs, ASCII); err != nil && !errors.Is(err, ErrFaults) {
			t.Fatal(err)
		}
	})
}

// FuzzDecoder decodes bytes by every table. What it makes of them is JSON.
func FuzzDecoder(f *testing.F) {
	all := newTables(offsetsTables, transactionTables, shareTables, mirrorTables, clusterTables, controlTables, consumerTables,
		remoteTables)
	f.Add([]byte{1, 't', 2, 0, 0, 0, 0}, int16(0))
	f.Add(make([]byte, 100), int16(4))
	f.Fuzz(func(t *testing.T, content []byte, version int16) {
		for name, table := range *all {
			d := decoder{in: cursor{b: content}}
			got, thrown := d.message(nil, table, version, version)
			if thrown == nil && !json.Valid(got) {
				t.Errorf("%s: %s", name, got)
			}
		}
	})
}
