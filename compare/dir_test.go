package compare

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func readAll(t *testing.T, source Source) ([]string, error) {
	t.Helper()
	var all []string
	for {
		b, err := source.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, string(b))
	}
}

func TestDir_ReadsTheBatchesOfAllSegmentsInOffsetOrder(t *testing.T) {
	var want []string
	var segments [][]Batch
	for s := range int64(3) {
		var batches []Batch
		for i := range int64(4) {
			b := batch(s*100+i*10, 10, 0, fmt.Sprintf("segment %d batch %d", s, i))
			batches, want = append(batches, b), append(want, string(b))
		}
		segments = append(segments, batches)
	}
	dir := writeDir(t, segments[2], segments[0], segments[1])
	others := []string{"leader-epoch-checkpoint", "00000000000000000000.index", "00000000000000000100.log.deleted"}
	for _, other := range others {
		if err := os.WriteFile(filepath.Join(dir, other), []byte("not batches"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := readAll(t, d)
	if err != nil || strings.Join(got, "|") != strings.Join(want, "|") {
		t.Fatalf("%d batches (%v), want %d", len(got), err, len(want))
	}
}

func TestDir_NamesFileAndPositionOfDamage(t *testing.T) {
	good, second := batch(0, 1, 0, "good"), batch(1, 1, 0, "second")
	flip := func(pos int) []byte {
		b := append([]byte(nil), second...)
		b[pos] ^= 0xff
		return append(append([]byte(nil), good...), b...)
	}
	tests := map[string][]byte{
		"torn batch":      append(append([]byte(nil), good...), second[:len(second)-1]...),
		"torn header":     append(append([]byte(nil), good...), second[:30]...),
		"a few bytes":     append(append([]byte(nil), good...), 1, 2, 3),
		"zero tail":       append(append([]byte(nil), good...), make([]byte, 4096)...),
		"negative length": flip(posLength),
		"magic":           flip(posMagic),
		"crc":             flip(posCRC),
		"a record's byte": flip(headerSize),
		"base offset":     flip(0),
	}
	for name, body := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeSegment(t, dir, 0, body)
			d, err := OpenDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			got, err := readAll(t, d)
			where := fmt.Sprintf("%s: position %d:", filepath.Join(dir, segmentName(0)), len(good))
			if len(got) != 1 || !errors.Is(err, ErrBadBatch) || !strings.HasPrefix(err.Error(), where) {
				t.Fatalf("%d batches, error %v; want 1 and ErrBadBatch at %s", len(got), err, where)
			}
		})
	}
}

func TestOpenDir_RefusesASegmentWithoutAnOffsetForAName(t *testing.T) {
	for _, name := range []string{"foo.log", "1.log", ".log"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenDir(dir); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v, want one that names the file", name, err)
		}
	}
}

func FuzzDir_YieldsOnlyWholeIntactBatches(f *testing.F) {
	one := batch(0, 3, 1, "three records")
	f.Add([]byte(one))
	f.Add(append(append([]byte(nil), one...), batch(3, 1, 1, "")...))
	f.Add(append(append([]byte(nil), one...), make([]byte, 100)...))
	f.Add([]byte(one[:headerSize]))
	f.Fuzz(func(t *testing.T, body []byte) {
		dir := t.TempDir()
		writeSegment(t, dir, 0, body)
		d, err := OpenDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		got, err := readAll(t, d)
		if err != nil && !errors.Is(err, ErrBadBatch) {
			t.Fatalf("error %v is not ErrBadBatch", err)
		}
		prefix := strings.Join(got, "")
		if !strings.HasPrefix(string(body), prefix) || err == nil && len(prefix) != len(body) {
			t.Fatalf("%d of %d bytes came back, error %v", len(prefix), len(body), err)
		}
	})
}
