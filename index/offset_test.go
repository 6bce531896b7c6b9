package index

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// workedOffsets are the entries Kafka 4.3.1 wrote for batches that end at 2, 5, 8, 10, 11, 20 with an interval of
// 300 bytes.
var workedOffsets = []OffsetPosition{{5, 394}, {8, 788}, {10, 1182}}

func openOffset(t testing.TB, base int64, maxBytes int32) *OffsetIndex {
	t.Helper()
	x, err := OpenOffset(filepath.Join(t.TempDir(), "x.index"), base, maxBytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Check(); err != nil && !errors.Is(err, ErrClosed) {
			t.Errorf("index is not in order at the end of the test: %v", err)
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

func appendOffsets(t testing.TB, x *OffsetIndex, entries ...OffsetPosition) {
	t.Helper()
	for _, e := range entries {
		if err := x.Append(e.Offset, e.Pos); err != nil {
			t.Fatal(err)
		}
	}
}

func fileBytes(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t testing.TB, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOffsetIndex_KafkaWorkedExample(t *testing.T) {
	x := openOffset(t, 0, 1024)
	appendOffsets(t, x, workedOffsets...)
	if err := x.Write(); err != nil {
		t.Fatal(err)
	}
	want := []byte{0, 0, 0, 5, 0, 0, 1, 138, 0, 0, 0, 8, 0, 0, 3, 20, 0, 0, 0, 10, 0, 0, 4, 158}
	if got := fileBytes(t, x.Path()); !bytes.Equal(got, want) {
		t.Errorf("file is % x, Kafka's is % x", got, want)
	}
}

func TestOffsetIndex_LookupIsFloor(t *testing.T) {
	lookups := map[int64]OffsetPosition{
		99: {100, 0}, 100: {100, 0}, 104: {100, 0}, 105: {105, 394}, 107: {105, 394},
		108: {108, 788}, 110: {110, 1182}, 1 << 40: {110, 1182},
	}
	for _, state := range []string{"buffered", "written", "half", "parked"} {
		t.Run(state, func(t *testing.T) {
			x := openOffset(t, 100, 1024)
			appendOffsets(t, x, OffsetPosition{105, 394}, OffsetPosition{108, 788})
			if state == "half" {
				mustDo(t, x.Write)
			}
			appendOffsets(t, x, OffsetPosition{110, 1182})
			switch state {
			case "written":
				mustDo(t, x.Write)
			case "parked":
				mustDo(t, x.Park)
			}
			for offset, want := range lookups {
				if got, err := x.Lookup(offset); err != nil || got != want {
					t.Errorf("Lookup(%d) = %v, %v, want %v", offset, got, err, want)
				}
			}
		})
	}
}

func mustDo(t testing.TB, do func() error) {
	t.Helper()
	if err := do(); err != nil {
		t.Fatal(err)
	}
}

func TestOffsetIndex_LookupFindsEveryEntryOfAManyPageIndex(t *testing.T) {
	const n = 3 * pageSize / offsetEntrySize
	x := openOffset(t, 1000, 1<<20)
	for i := range int64(n) {
		appendOffsets(t, x, OffsetPosition{1000 + 3*i + 2, 100 * (i + 1)})
	}
	mustDo(t, x.Write)
	for i := range int64(n) {
		for d, want := range map[int64]int64{2: 100 * (i + 1), 3: 100 * (i + 1), 4: 100 * (i + 1)} {
			if got, err := x.Lookup(1000 + 3*i + d); err != nil || got.Pos != want {
				t.Fatalf("Lookup(%d) = %v, %v, want position %d", 1000+3*i+d, got, err, want)
			}
		}
	}
}

func TestOffsetIndex_LookupPosIsFirstAtOrAfter(t *testing.T) {
	x := openOffset(t, 0, 1024)
	appendOffsets(t, x, workedOffsets[:2]...)
	mustDo(t, x.Write)
	appendOffsets(t, x, workedOffsets[2])
	for pos, want := range map[int64]int64{0: 5, 394: 5, 395: 8, 788: 8, 789: 10, 1182: 10} {
		if got, ok, err := x.LookupPos(pos); err != nil || !ok || got.Offset != want {
			t.Errorf("LookupPos(%d) = %v, %v, %v, want offset %d", pos, got, ok, err, want)
		}
	}
	if got, ok, err := x.LookupPos(1183); err != nil || ok {
		t.Errorf("LookupPos(1183) = %v, %v, %v, want none", got, ok, err)
	}
}

func TestOffsetIndex_RefusedAppendChangesNothing(t *testing.T) {
	x := openOffset(t, 1000, 3*offsetEntrySize)
	appendOffsets(t, x, OffsetPosition{1005, 100})
	refusals := map[string]struct {
		offset, pos int64
		want        error
	}{
		"same offset":            {1005, 200, ErrOffsetsOutOfOrder},
		"lower offset":           {1004, 200, ErrOffsetsOutOfOrder},
		"same position":          {1006, 100, ErrOffsetsOutOfOrder},
		"below the base":         {999, 200, ErrOffsetOverflow},
		"2^31 above the base":    {1000 + 1<<31, 200, ErrOffsetOverflow},
		"position 2^31":          {1006, 1 << 31, ErrOffsetOverflow},
		"negative position":      {1006, -1, ErrOffsetOverflow},
		"difference overflows":   {-1 << 63, 200, ErrOffsetOverflow},
		"offset at the very end": {1<<63 - 1, 200, ErrOffsetOverflow},
	}
	for name, r := range refusals {
		if err := x.Append(r.offset, r.pos); !errors.Is(err, r.want) {
			t.Errorf("%s: Append(%d, %d) = %v, want %v", name, r.offset, r.pos, err, r.want)
		}
	}
	appendOffsets(t, x, OffsetPosition{1000 + 1<<31 - 1, 200})
	appendTo := OffsetPosition{Offset: 1000 + 1<<31 - 1, Pos: 200}
	if last, ok := x.Last(); !ok || last != appendTo || x.Entries() != 2 {
		t.Errorf("after the refusals %d entries, last %v", x.Entries(), last)
	}
}

func TestOffsetIndex_FullRefusesAndSaysSo(t *testing.T) {
	x := openOffset(t, 0, 2*offsetEntrySize+7)
	appendOffsets(t, x, workedOffsets[:2]...)
	if !x.IsFull() {
		t.Error("two entries of two are not full")
	}
	if err := x.Append(workedOffsets[2].Offset, workedOffsets[2].Pos); !errors.Is(err, ErrFull) {
		t.Errorf("append to a full index: %v", err)
	}
	x.SetMaxBytes(1024)
	appendOffsets(t, x, workedOffsets[2])
}

func TestOffsetIndex_TruncateToDropsTheOffsetItself(t *testing.T) {
	keeps := map[int64]int{0: 0, 5: 0, 6: 1, 8: 1, 9: 2, 10: 2, 11: 3, 1 << 40: 3}
	for offset, keep := range keeps {
		for _, buffered := range []int{0, 1, 2, 3} {
			x := openOffset(t, 0, 1024)
			appendOffsets(t, x, workedOffsets[:3-buffered]...)
			mustDo(t, x.Write)
			appendOffsets(t, x, workedOffsets[3-buffered:]...)
			if err := x.TruncateTo(offset); err != nil {
				t.Fatal(err)
			}
			mustDo(t, x.Write)
			if size := len(fileBytes(t, x.Path())); size != keep*offsetEntrySize || x.Entries() != keep {
				t.Errorf("TruncateTo(%d) with %d buffered: %d bytes, %d entries, want %d entries",
					offset, buffered, size, x.Entries(), keep)
			}
			for _, e := range workedOffsets[keep:] {
				appendOffsets(t, x, e)
			}
		}
	}
}

func TestOffsetIndex_ReopenGoesOnWhereItEnded(t *testing.T) {
	x := openOffset(t, 0, 1024)
	appendOffsets(t, x, workedOffsets[:2]...)
	mustDo(t, x.Close)
	y, err := OpenOffset(x.Path(), 0, 1024)
	if err != nil {
		t.Fatal(err)
	}
	if last, ok := y.Last(); !ok || last != workedOffsets[1] {
		t.Errorf("last entry after reopening is %v", last)
	}
	appendOffsets(t, y, workedOffsets[2])
	mustDo(t, y.Close)
	if got := len(fileBytes(t, x.Path())); got != 24 {
		t.Errorf("%d bytes after three entries", got)
	}
	if err := y.Append(11, 2000); !errors.Is(err, ErrClosed) {
		t.Errorf("append after Close: %v", err)
	}
	if err := y.Park(); err != nil {
		t.Errorf("parking a closed, written index: %v", err)
	}
}

func TestOffsetIndex_DamageIsRefusedAtOpen(t *testing.T) {
	entry := func(relative, pos int32) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(relative))
		return binary.BigEndian.AppendUint32(b, uint32(pos))
	}
	good := append(entry(5, 394), entry(8, 788)...)
	damages := map[string][]byte{
		"entry below the base offset":         entry(-7, 100),
		"zero tail":                           append(bytes.Clone(good), make([]byte, 800)...),
		"zeros only":                          make([]byte, 800),
		"one zero entry":                      make([]byte, 8),
		"three odd bytes":                     append(bytes.Clone(good), 0, 0, 0),
		"position below zero":                 entry(9, -1),
		"preallocated to segment.index.bytes": append(bytes.Clone(good), make([]byte, 10<<20-len(good))...),
	}
	for name, b := range damages {
		path := writeFile(t, "x.index", b)
		if _, err := OpenOffset(path, 0, 1024); !errors.Is(err, ErrCorruptIndex) {
			t.Errorf("%s: OpenOffset = %v", name, err)
		}
		if got := fileBytes(t, path); !bytes.Equal(got, b) {
			t.Errorf("%s: a refused file was changed", name)
		}
		x, err := CreateOffset(path, 0, 1024)
		if err != nil || x.Entries() != 0 || len(fileBytes(t, path)) != 0 {
			t.Errorf("%s: CreateOffset leaves entries: %v", name, err)
		}
	}
}

func TestOffsetIndex_CheckNamesTheEntryOutOfOrder(t *testing.T) {
	var b []byte
	for _, e := range []OffsetPosition{{5, 394}, {4, 500}, {10, 1182}} {
		b = AppendOffsetEntry(b, 0, e)
	}
	x, err := OpenOffset(writeFile(t, "x.index", b), 0, 1024)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Check(); !errors.Is(err, ErrCorruptIndex) {
		t.Errorf("Check = %v", err)
	}
}

func TestOffsetIndex_RemovedFileIsNotMadeAgain(t *testing.T) {
	x, err := OpenOffset(filepath.Join(t.TempDir(), "x.index"), 0, 1024)
	if err != nil {
		t.Fatal(err)
	}
	appendOffsets(t, x, workedOffsets[0])
	mustDo(t, x.Park)
	if err := os.Remove(x.Path()); err != nil {
		t.Fatal(err)
	}
	appendOffsets(t, x, workedOffsets[1])
	if err := x.Write(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Write = %v", err)
	}
	if _, err := os.Stat(x.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there again: %v", err)
	}
}

func TestOffsetIndex_LookupsRunBesideAppends(t *testing.T) {
	x := openOffset(t, 0, 1<<20)
	appendOffsets(t, x, OffsetPosition{1, 1})
	mustDo(t, x.Write)
	done := make(chan error, 1)
	go func() { // ends by itself; waited for below
		for range 3000 {
			if got, err := x.Lookup(1); err != nil || got.Pos != 1 {
				done <- errors.Join(err, errors.New("the first entry is not found"))
				return
			}
		}
		done <- nil
	}()
	for i := int64(2); i < 3000; i++ {
		appendOffsets(t, x, OffsetPosition{i, i})
		if i%7 == 0 {
			mustDo(t, x.Write)
		}
		if i%50 == 0 {
			mustDo(t, x.Park)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
