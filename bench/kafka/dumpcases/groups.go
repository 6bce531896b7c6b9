package dumpcases

import (
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

func control(kind int16, value []byte) segment.Record {
	return segment.Record{Key: segment.AppendControlKey(nil, segment.ControlType(kind)), Value: value}
}

// names are names that say nothing, or lie, and command lines that are no good.
func (b *builder) names() error {
	g := b.group("names", true)
	for _, name := range []string{
		"noext", ".log", "x.log", "00000000000000000000.log.deleted", "99999999999999999999.log", "+5.log", "-5.log",
		"7.8.log", "x.index", "5.index", "x.timeindex", "5.timeindex", "x.txnindex", "5.txnindex", "x.snapshot",
		"5.snapshot",
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
	for _, suffix := range []string{"log", "index", "timeindex", "txnindex", "snapshot", "checkpoint", "x"} {
		g.run("--files", "names/none/0."+suffix)
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
		{"--files", file + ",,names//bootstrap.checkpoint,"},
		{"--files", ","},
		{"--files", ""},
		{"--files"},
		{"--files", file, "--files", file},
		{"--files", file, "--max-bytes", "x"},
		{"--files", file, "--max-bytes=5000000000"},
		{"--files", file, "--max-bytes", "10", "--max-bytes", "10"},
		{"--files", file, "--wrong"},
		{"--files", file, "-wrong"},
		{"--files", file, "--max-bytes"},
		{"--files", file, "--print"},
		{"stray", "--files", file, "stray"},
		{"--files", file, "--", "--wrong"},
		{"--files", file, "--max-message-size", "x"},
		{"--deep-iteration=x", "--files", file},
		{"--files", "names/5.snapshot", "--max-bytes", "x"},
		{"--files", "names/lone/1.index", "--max-message-size", "x"},
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
		{},
		{"--deep-iteration"},
		{"--print-data-log"},
		{"--skip-record-metadata", "--print-data-log"},
		{"--skip-record-metadata", "--deep-iteration"},
		{"--max-bytes", "1000", "--deep-iteration"},
		{"--max-bytes", "0"},
		{"--offsets-decoder"},
		{"--transaction-log-decoder"},
		{"--cluster-metadata-decoder"},
		{"--share-group-state-decoder"},
		{"--remote-log-metadata-decoder"},
		{"--key-decoder-class", "--value-decoder-class"},
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

// leftOut are flips of a bit, by the bit's number, that are no part of the sweeps. Most are because Kafka's tool
// needs more memory than its JVM has, to hold what a broken count or size announces.
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
		{"index", "nulls-0", indexName},
		{"timeindex", "nulls-0", timeName},
		{"index-codecs", "codecs-0", indexName},
		{"timeindex-codecs", "codecs-0", timeName},
		{"txnindex", "txn-0", "00000000000000000000.txnindex"},
		{"snapshot", "txn-0", "00000000000000000020.snapshot"},
		{"timeindex-append", "appendtime-0", timeName},
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
					file := fmt.Sprintf("flip-%s/%s%d/%s", s.name, what, i, s.file)
					g.run(append(append([]string{}, flags...), "--files", file)...)
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
	bytes := []byte("\n\x41\x80\x90\x9f\xa0\xbf\xc0\xc2\xdf\xe0\xe2\xed\xef\xf0\xf3\xf4\xf5\xff")
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
