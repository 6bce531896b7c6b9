package dumpcases

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"segmirror/segment"
)

// named are single files, each damaged in another way.
func (b *builder) named() error {
	all := three()
	second := len(plain(0, 3))
	headers := single(0, 0, segment.Record{Headers: []segment.Header{
		{Key: "h"}, {Key: "", Value: []byte{}}, {Key: "h", Value: []byte("dup")},
	}})
	empty := single(0, 0, segment.Record{Key: []byte{}, Value: []byte{}, Headers: []segment.Header{{}}})
	horizon := edited(single(0, 0x40, segment.Record{Key: []byte("k")}), func(x []byte) {
		binary.BigEndian.PutUint64(x[27:], baseTimeMs-1000)
	})
	appendTime := edited(plain(0, 2), func(x []byte) { x[22] |= 8; binary.BigEndian.PutUint64(x[27:], 1<<64-1) })
	count := func(n uint32, delta uint32) []byte {
		return append(edited(single(0, 0, segment.Record{Key: []byte("k")}), func(x []byte) {
			binary.BigEndian.PutUint32(x[57:], n)
			binary.BigEndian.PutUint32(x[23:], delta)
		}), plain(5, 1)...)
	}
	codec := func(n byte, body []byte) []byte {
		h := segment.BatchHeader{Attributes: int16(n), RecordsCount: 1, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1}
		return append(segment.AppendBatch(nil, &h, body), plain(5, 1)...)
	}
	short := func(length uint32, magic byte) []byte {
		x := append([]byte{}, all[:second]...)
		binary.BigEndian.PutUint32(x[8:], length)
		x[16] = magic
		return append(x[:length+12:length+12], all[second:]...)
	}
	garbage := []byte("this is no compressed data at all")
	logs := map[string][]byte{
		"empty": {}, "few": all[:9], "torn": all[:470], "head": all[:second+20], "zeros": append(append([]byte{}, all...), make([]byte, 100)...),
		"three": all, "headers": append(headers, empty...), "horizon": horizon, "appendtime": appendTime, "old": oldFormats(),
		"count5": count(5, 4), "count0": count(0, 4), "countminus": count(1<<32-1, 4), "deltaminus": count(1, 1<<32-3),
		"codec5": codec(5, garbage), "codec7": codec(7, garbage), "gzip": codec(1, garbage), "snappy": codec(2, garbage),
		"lz4": codec(3, garbage), "zstd": codec(4, garbage), "gzipshort": codec(1, garbage[:3]), "lz4short": codec(3, garbage[:3]),
		"gzipempty": codec(1, nil), "snappyempty": codec(2, nil), "lz4empty": codec(3, nil), "zstdempty": codec(4, nil),
		"gzipok":   codec(1, storedGzip(segment.AppendRecord(nil, 0, 0, &segment.Record{Key: []byte("k")}))),
		"gziptail": codec(1, append(storedGzip(segment.AppendRecord(nil, 0, 0, &segment.Record{Key: []byte("k")})), garbage...)),
		"short14":  short(14, 2), "short30": short(30, 2), "short48": short(48, 2), "short13": short(13, 2),
		"short14v0": short(14, 0), "short14v1": short(14, 1), "short20v1": short(20, 1),
		"magic3": short(uint32(second-12), 3), "magic255": short(uint32(second-12), 255), "magic127": short(uint32(second-12), 127),
		"shortend": short(40, 2)[:52],
		"gaps":     append(append(plain(3, 2), plain(100, 2)...), plain(7, 2)...),
		"huge": edited(plain(0, 1), func(x []byte) {
			binary.BigEndian.PutUint64(x, 1<<63-1)
			binary.BigEndian.PutUint32(x[53:], 1<<31-1)
			binary.BigEndian.PutUint32(x[23:], 1<<31-1)
		}),
		"transactional": append(single(0, 0x30, control(0, []byte{0, 0, 0, 0, 0, 7})), single(1, 0x30, control(1, []byte{0, 5, 255, 255, 255, 255}))...),
		"controlmixed":  append(single(0, 0x20, control(300, []byte("x"))), plain(1, 1)...),
		"leaderchange":  single(0, 0x20, control(2, make([]byte, 6))),
		"nokey":         single(0, 0x20, segment.Record{}), "shortkey": single(0, 0x20, segment.Record{Key: []byte{0, 0, 0}}),
		"minuskey": single(0, 0x20, segment.Record{Key: []byte{255, 255, 0, 0}}),
		"novalue":  single(0, 0x20, control(0, nil)), "marker1": single(0, 0x20, control(0, []byte{0})),
		"marker4": single(0, 0x20, control(1, []byte{0, 0, 1, 2})), "markerminus": single(0, 0x20, control(1, []byte{255, 0, 0, 0, 0, 0})),
		"leadernull": single(0, 0x20, control(2, nil)),
	}
	g := b.group("named", true)
	for _, name := range sortedKeys(logs) {
		file, err := b.write("named/"+name+"/"+logName, logs[name])
		if err != nil {
			return err
		}
		g.run("--files", file, "--deep-iteration")
		g.run("--print-data-log", "--files", file)
		g.run("--files", file, "--skip-record-metadata", "--print-data-log")
		g.run("--files="+file, "--skip-record-metadata", "--deep-iteration", "--max-bytes", "300")
		g.run("-files", file)
		g.run("--offsets-decoder", "--files", file)
		g.run("--cluster-metadata-decoder", "--files", file)
		g.run("--remote-log-metadata-decoder", "--files", file)
		g.run("--value-decoder-class", "org.apache.kafka.tools.api.IntegerDecoder", "--files", file)
		g.run("--files", file, "--key-decoder-class", "org.apache.kafka.tools.api.LongDecoder")
		g.run("--files", file, "--key-decoder-class", "--max-bytes", "-1")
	}
	return nil
}

func control(kind int16, value []byte) segment.Record {
	return segment.Record{Key: segment.AppendControlKey(nil, segment.ControlType(kind)), Value: value}
}

// names are names that say nothing, or lie, and command lines that are no good.
func (b *builder) names() error {
	g := b.group("names", true)
	for _, name := range []string{
		"noext", ".log", "x.log", "00000000000000000000.log.deleted", "99999999999999999999.log", "+5.log", "-5.log",
		"7.8.log", "x.index", "5.index", "x.timeindex", "5.timeindex", "x.txnindex", "5.txnindex", "x.snapshot", "5.snapshot",
		"bootstrap.checkpoint", "short.checkpoint", "00000000000000000007-0000000003.checkpoint",
		"00000000000000000007x000000000x.checkpoint", "0000000000000000000x-0000000003.checkpoint",
		"00000000000000000007-000000000.checkpoint", "leader-epoch-checkpoint", "quorum-state", "a.LOG", "log.", "€.log",
	} {
		file, err := b.write("names/"+name, plain(7, 2))
		if err != nil {
			return err
		}
		g.run("--files", file)
	}
	for _, missing := range []string{"0.log", "0.index", "0.timeindex", "0.txnindex", "0.snapshot", "0.checkpoint", "0.x"} {
		g.run("--files", "names/none/"+missing)
	}
	for _, lone := range []string{"1.index", "2.timeindex", "3.log"} {
		if _, err := b.write("names/lone/"+lone, nil); err != nil {
			return err
		}
	}
	if _, err := b.write("names/lone/2.log", plain(2, 1)); err != nil {
		return err
	}
	g.run("--files", "names/lone/1.index")
	g.run("--files", "names/lone/2.timeindex")
	g.run("--files", "names/lone/3.log", "--deep-iteration")
	if err := os.MkdirAll(filepath.Join(b.root, "names", "dir.log"), 0o755); err != nil {
		return err
	}
	file := "names/bootstrap.checkpoint"
	for _, args := range [][]string{
		{"--files", file + ",,names//bootstrap.checkpoint,"}, {"--files", ","}, {"--files", ""}, {"--files"},
		{"--files", file, "--files", file}, {"--files", file, "--max-bytes", "x"}, {"--files", file, "--max-bytes=5000000000"},
		{"--files", file, "--max-bytes", "10", "--max-bytes", "10"}, {"--files", file, "--wrong"}, {"--files", file, "-wrong"},
		{"--files", file, "--max-bytes"}, {"--files", file, "--print"}, {"stray", "--files", file, "stray"},
		{"--files", file, "--", "--wrong"}, {"--files", file, "--max-message-size", "x"}, {"--deep-iteration=x", "--files", file},
		{"--files", "names/5.snapshot", "--max-bytes", "x"}, {"--files", "names/lone/1.index", "--max-message-size", "x"},
		{"--files", file, "--key-decoder-class", decoderClass, "--key-decoder-class=" + decoderClass},
		{"--files", file, "--key-decoder-class", "--value-decoder-class", "org.apache.kafka.tools.api.LongDecoder"},
	} {
		g.run(args...)
	}
	return nil
}

const decoderClass = "org.apache.kafka.tools.api.StringDecoder"

// imageFlags are the flags that each kind of file of the golden images is printed with.
var imageFlags = map[string][][]string{
	".log": {
		{}, {"--deep-iteration"}, {"--print-data-log"}, {"--skip-record-metadata", "--print-data-log"},
		{"--skip-record-metadata", "--deep-iteration"}, {"--max-bytes", "1000", "--deep-iteration"}, {"--max-bytes", "0"},
		{"--offsets-decoder"}, {"--transaction-log-decoder"}, {"--cluster-metadata-decoder"}, {"--share-group-state-decoder"},
		{"--remote-log-metadata-decoder"}, {"--key-decoder-class", "--value-decoder-class"},
		{"--transaction-log-decoder", "--skip-record-metadata"},
	},
	// First the check: Kafka's tool cuts a fragment at an index's end off when it closes the file.
	".index":     {{"--index-sanity-check"}, {}, {"--verify-index-only"}, {"--max-message-size", "200"}},
	".timeindex": {{}, {"--verify-index-only"}, {"--index-sanity-check"}}, ".txnindex": {{}}, ".snapshot": {{}}, "": {{}},
}

// images are the files of the golden images as they are.
func (b *builder) images() error {
	dirs, err := filepath.Glob(filepath.Join(b.golden, "*", "logdir", "*-0"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		rel, err := filepath.Rel(b.golden, dir)
		if err != nil {
			return err
		}
		to := "images/" + rel
		files, err := b.copyDir(dir, to)
		if err != nil || len(files) == 0 {
			return err
		}
		g := b.group(strings.ReplaceAll(strings.ReplaceAll(to, "/", "-"), "-logdir-", "-"), false)
		for _, file := range files {
			for _, flags := range imageFlags[filepath.Ext(file)] {
				g.run(append(append([]string{}, flags...), "--files", to+"/"+file)...)
			}
		}
	}
	return nil
}

// copyDir copies the files of a folder below root and returns their names.
func (b *builder) copyDir(dir, to string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		if _, err := b.write(to+"/"+e.Name(), content); err != nil {
			return nil, err
		}
		names = append(names, e.Name())
	}
	return names, nil
}

// sweeps flip, zero and cut every byte of a log in turn.
func (b *builder) sweeps() error {
	logs := map[string][]byte{"three": three(), "old": oldFormats()}
	codecs, err := os.ReadFile(filepath.Join(b.golden, "clean", "logdir", "codecs-0", logName))
	if err != nil {
		return err
	}
	it := segment.NewBatchIterator(codecs)
	for it.Next() {
		name := segment.CodecName(it.Batch().Codec())
		if name != "none" && logs[name] == nil {
			logs[name] = slices.Clone(it.Batch())
		}
	}
	for _, name := range sortedKeys(logs) {
		if err := b.sweep(name, logs[name]); err != nil {
			return err
		}
	}
	return it.Err()
}

// leftOut are flips of a bit, by the bit's number, that are no part of the sweeps. Most are because Kafka's tool needs more
// memory than its JVM has, to hold what a broken count or size announces.
var leftOut = map[string][]int{
	"old": {
		1310, 1630, 1901, 1902, 2614, 2870, 3574, 3893, 3894,
		// Java takes reserved flags in a gzip header for nothing, we refuse them.
		1149, 1150, 1151, 2453, 2454, 2455, 3413, 3414, 3415,
	},
	"gzip":   {460},
	"snappy": {460},
	// Kafka's LZ4 reader copies from where nothing was written yet, we refuse such a block.
	"lz4": {460, 817, 1481, 1499, 1639},
	// A window that is larger than we allow.
	"zstd": {460, 552, 579},
}

func (b *builder) sweep(name string, log []byte) error {
	flip := b.group("flip-"+name, false)
	cut := b.group("cut-"+name, false)
	for i := range log {
		for _, bit := range []int{i % 8, (i + 3) % 8} {
			number := 8*i + bit
			if slices.Contains(leftOut[name], number) {
				continue
			}
			x := append([]byte{}, log...)
			x[i] ^= 1 << bit
			file, err := b.write(fmt.Sprintf("flip-%s/%d.log", name, number), x)
			if err != nil {
				return err
			}
			flip.run("--files", file, "--print-data-log")
		}
		file, err := b.write(fmt.Sprintf("cut-%s/%d.log", name, i), log[:i])
		if err != nil {
			return err
		}
		cut.run("--files", file, "--deep-iteration")
	}
	return nil
}

// indexSweeps flip every byte of indexes and snapshots, and cut them.
func (b *builder) indexSweeps() error {
	image := filepath.Join(b.golden, "clean", "logdir")
	for _, s := range []struct{ name, dir, file string }{
		{"index", "nulls-0", indexName}, {"timeindex", "nulls-0", timeName}, {"index-codecs", "codecs-0", indexName},
		{"timeindex-codecs", "codecs-0", timeName}, {"txnindex", "txn-0", "00000000000000000000.txnindex"},
		{"snapshot", "txn-0", "00000000000000000020.snapshot"}, {"timeindex-append", "appendtime-0", timeName},
	} {
		content, err := os.ReadFile(filepath.Join(image, s.dir, s.file))
		if err != nil {
			return err
		}
		siblings := "images/clean/logdir/" + s.dir
		g := b.group("flip-"+s.name, false)
		for i := range len(content) + 1 {
			x := append([]byte{}, content...)
			if i < len(x) {
				x[i] ^= 1 << (i * 3 % 8)
			}
			for what, damaged := range map[string][]byte{"flip": x, "cut": content[:i]} {
				to := fmt.Sprintf("flip-%s/%s%d", s.name, what, i)
				if err := b.damagedIndex(siblings, to, s.file, damaged); err != nil {
					return err
				}
			}
			for _, what := range []string{"flip", "cut"} {
				for _, flags := range imageFlags[filepath.Ext(s.file)] {
					g.run(append(append([]string{}, flags...), "--files", fmt.Sprintf("flip-%s/%s%d/%s", s.name, what, i, s.file))...)
				}
			}
		}
	}
	return nil
}

// damagedIndex writes a damaged file beside those that it is compared with.
func (b *builder) damagedIndex(siblings, to, name string, damaged []byte) error {
	if _, err := b.write(to+"/"+name, damaged); err != nil {
		return err
	}
	stem := strings.TrimSuffix(name, filepath.Ext(name))
	for _, suffix := range []string{".log", ".index"} {
		from := filepath.Join(b.root, siblings, stem+suffix)
		err := os.Link(from, filepath.Join(b.root, to, stem+suffix))
		if err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// texts are values that are no UTF-8, in every way there is.
func (b *builder) texts() error {
	bytes := []byte{0x0a, 0x41, 0x80, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc2, 0xdf, 0xe0, 0xe2, 0xed, 0xef, 0xf0, 0xf3, 0xf4, 0xf5, 0xff}
	var records []segment.Record
	for _, x := range bytes {
		for _, y := range bytes {
			for _, z := range bytes {
				records = append(records, segment.Record{Key: []byte{x, y, z}, Value: []byte{x, y, z, 'B'}})
			}
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		v := make([]byte, 2+rng.IntN(8))
		for i := range v {
			v[i] = bytes[rng.IntN(len(bytes))]
		}
		records = append(records, segment.Record{Value: v, Headers: []segment.Header{{Key: string(v)}, {Key: "é€😀"}}})
	}
	file, err := b.write("texts/"+logName, many(records))
	if err != nil {
		return err
	}
	b.group("texts", false).run("--files", file, "--print-data-log")
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
