package replicator

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"segmirror/segment"
)

// dataBatch is an intact batch of n records of about 100 bytes from offset base on.
func dataBatch(base int64, n int) []byte { return sizedBatch(base, n, 100) }

// sizedBatch is an intact batch of n records with values of size bytes.
func sizedBatch(base int64, n, size int) []byte {
	deltas := make([]int64, n)
	for i := range deltas {
		deltas[i] = int64(i)
	}
	return gapBatch(base, int64(n-1), size, deltas...)
}

// gapBatch is an intact batch that covers base to base+last and holds records at the given deltas only, as a
// compacted one does.
func gapBatch(base, last int64, size int, deltas ...int64) []byte {
	ms := int64(1_700_000_000_000) + base%1000 // offsets far apart are not far apart in time
	var records []byte
	for _, d := range deltas {
		value := []byte(strings.Repeat(fmt.Sprintf("%d,", base+d), size))[:size]
		records = segment.AppendRecord(records, base, ms, &segment.Record{
			Offset: base + d, TimestampMs: ms, Sequence: -1, Key: []byte("k"), Value: value,
		})
	}
	h := segment.BatchHeader{
		BaseOffset: base, LastOffsetDelta: int32(last), BaseTimestampMs: ms, MaxTimestampMs: ms,
		ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, RecordsCount: int32(len(deltas)),
	}
	return segment.AppendBatch(nil, &h, records)
}

// txnBatch is an intact transactional batch of n records of producer pid.
func txnBatch(base int64, n int, pid int64) []byte {
	b := dataBatch(base, n)
	binary.BigEndian.PutUint16(b[21:], 1<<4)
	binary.BigEndian.PutUint64(b[43:], uint64(pid))
	binary.BigEndian.PutUint16(b[51:], 0)
	binary.BigEndian.PutUint32(b[53:], 0)
	return reseal(b)
}

// markerBatch is a control batch of producer pid whose record has this key and value, right or not.
func markerBatch(base, pid int64, key, value []byte) []byte {
	ms := int64(1_700_000_000_000) + base
	h := segment.BatchHeader{
		BaseOffset: base, Attributes: 1<<4 | 1<<5, BaseTimestampMs: ms, MaxTimestampMs: ms,
		ProducerID: pid, BaseSequence: -1, RecordsCount: 1,
	}
	record := segment.AppendRecord(nil, base, ms, &segment.Record{
		Offset: base, TimestampMs: ms, Sequence: -1, Key: key, Value: value,
	})
	return segment.AppendBatch(nil, &h, record)
}

// withEpoch is b under another leader epoch, which its sum does not cover.
func withEpoch(b []byte, epoch int32) []byte {
	b = slices.Clone(b)
	binary.BigEndian.PutUint32(b[12:], uint32(epoch))
	return b
}

// withByte is b with one byte set, its sum left as it was.
func withByte(b []byte, pos int, v byte) []byte {
	b = slices.Clone(b)
	b[pos] = v
	return b
}

// reseal is b with the sum its bytes have now.
func reseal(b []byte) []byte {
	b = slices.Clone(b)
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// diskBytes is the concatenation of a mirrored partition's .log files, trailing zeros (reserved room) left out.
func diskBytes(t *testing.T, dir, topic string, partition int) []byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("%s-%d", topic, partition), "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	var all []byte
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	end := len(all)
	for end > 0 && all[end-1] == 0 {
		end--
	}
	if end < len(all) { // a batch may end in zeros: walk instead
		it := segment.NewBatchIterator(all)
		for it.Next() {
			end = max(end, it.Pos()+it.Batch().Size())
		}
	}
	return all[:min(end, len(all))]
}

// checkLogDir demands that every partition directory of a stopped agent is one a broker could open, its indexes made
// with this index.interval.bytes; those of the agent's own topics have the default.
func checkLogDir(t *testing.T, dir string, interval int32) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Error(err)
		return
	}
	for _, e := range entries {
		if _, state, err := segment.ParseDirName(e.Name()); !e.IsDir() || err != nil || state != segment.DirNormal {
			continue
		}
		cfg := segment.DefaultConfig()
		if !strings.HasPrefix(e.Name(), "__") {
			cfg.IndexIntervalBytes = interval
		}
		findings, err := segment.CheckDir(filepath.Join(dir, e.Name()), cfg)
		if err != nil {
			t.Errorf("%s: %v", e.Name(), err)
		}
		for _, f := range findings {
			t.Errorf("%s: %s", e.Name(), f)
		}
	}
}
