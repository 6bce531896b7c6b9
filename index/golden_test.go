package index

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// kafkaFiles returns the files with a suffix that Kafka wrote into the partition directories of an image, by path.
func kafkaFiles(t *testing.T, image, suffix string) map[string]int64 {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("../testdata/golden", image, "logdir/*/*"+suffix))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no %s in image %s: %v", suffix, image, err)
	}
	bases := make(map[string]int64, len(paths))
	for _, path := range paths {
		base, err := strconv.ParseInt(strings.TrimSuffix(filepath.Base(path), suffix), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		bases[path] = base
	}
	return bases
}

func TestKafkaWroteOffsetIndexes_ReadAndWriteBackEqual(t *testing.T) {
	entries := 0
	for path, base := range kafkaFiles(t, "clean", ".index") {
		want := fileBytes(t, path)
		x, err := OpenOffset(writeFile(t, "x.index", want), base, 1<<20)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if err := x.Check(); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		again, err := CreateOffset(filepath.Join(t.TempDir(), "x.index"), base, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for i := range x.Entries() {
			e, err := x.At(i)
			if err != nil {
				t.Fatal(err)
			}
			appendOffsets(t, again, e)
			entries++
		}
		mustDo(t, again.Close)
		if got := fileBytes(t, again.Path()); !bytes.Equal(got, want) {
			t.Errorf("%s: % x, written anew % x", path, want, got)
		}
	}
	if entries < 10 {
		t.Errorf("only %d entries were seen", entries)
	}
}

func TestKafkaWroteTimeIndexes_ReadAndWriteBackEqual(t *testing.T) {
	entries := 0
	for path, base := range kafkaFiles(t, "clean", ".timeindex") {
		want := fileBytes(t, path)
		x, err := OpenTime(writeFile(t, "x.timeindex", want), base, 1<<20)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if err := x.Check(); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		again, err := CreateTime(filepath.Join(t.TempDir(), "x.timeindex"), base, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for i := range x.Entries() {
			e, err := x.At(i)
			if err != nil {
				t.Fatal(err)
			}
			mustAppendTimes(t, again, e)
			entries++
		}
		mustDo(t, again.Close)
		if got := fileBytes(t, again.Path()); !bytes.Equal(got, want) {
			t.Errorf("%s: % x, written anew % x", path, want, got)
		}
	}
	if entries < 10 {
		t.Errorf("only %d entries were seen", entries)
	}
}

func TestKafkaWroteTransactionIndexes_ReadAndWriteBackEqual(t *testing.T) {
	for _, image := range []string{"clean", "killed"} {
		for path, base := range kafkaFiles(t, image, ".txnindex") {
			want := fileBytes(t, path)
			x, err := OpenTransaction(writeFile(t, "x.txnindex", want), base)
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			all, err := x.All()
			if err != nil {
				t.Fatal(err)
			}
			var got []byte
			for _, e := range all {
				got = AppendAbortedTxn(got, e)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s: % x, written anew % x", path, want, got)
			}
		}
	}
}

func TestKafkaWroteKilledImage_PreallocatedIndexesAreRefused(t *testing.T) {
	refused := 0
	for path, base := range kafkaFiles(t, "killed", ".index") {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = OpenOffset(writeFile(t, "x.index", b), base, 1<<20)
		zeroTail := len(b) >= offsetEntrySize && bytes.Equal(b[len(b)-offsetEntrySize:], make([]byte, offsetEntrySize))
		if zeroTail {
			refused++
		}
		if errors.Is(err, ErrCorruptIndex) != zeroTail {
			t.Errorf("%s: zero tail %t, %v", path, zeroTail, err)
		}
	}
	if refused == 0 {
		t.Error("the image of a killed broker has no preallocated index")
	}
}
