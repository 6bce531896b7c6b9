package index

import (
	"bytes"
	"encoding/hex"
	"errors"
	"path/filepath"
	"testing"
)

func openTime(t testing.TB, base int64, maxBytes int32) *TimeIndex {
	t.Helper()
	x, err := OpenTime(filepath.Join(t.TempDir(), "x.timeindex"), base, maxBytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(x.Check(), x.Close()); err != nil {
			t.Errorf("at the end of the test: %v", err)
		}
	})
	return x
}

func TestTimeIndex_KafkaWorkedExample(t *testing.T) {
	// Batches that end at 2, 5, 8, 10, 11, 20 with these largest timestamps; entries are offered at 5, 8, 10
	// (the interval) and at the roll. The one at 8 adds nothing.
	const base = 1700000000000
	x := openTime(t, 0, 1024)
	for _, e := range []TimestampOffset{{base + 102, 5}, {base + 102, 5}, {base + 201, 10}, {base + 308, 20}} {
		if err := x.MaybeAppend(e.TimestampMs, e.Offset, e.Offset == 20); err != nil {
			t.Fatal(err)
		}
	}
	mustDo(t, x.Write)
	want, _ := hex.DecodeString("0000018bcfe5686600000005" + "0000018bcfe568c90000000a" + "0000018bcfe5693400000014")
	if got := fileBytes(t, x.Path()); !bytes.Equal(got, want) {
		t.Errorf("file is % x, Kafka's is % x", got, want)
	}
}

func TestTimeIndex_LookupIsFloor(t *testing.T) {
	x := openTime(t, 10, 1024)
	mustAppendTimes(t, x, TimestampOffset{100, 12}, TimestampOffset{200, 15})
	mustDo(t, x.Write)
	mustAppendTimes(t, x, TimestampOffset{300, 20})
	for ts, want := range map[int64]TimestampOffset{
		-1: {-1, 10}, 99: {-1, 10}, 100: {100, 12}, 199: {100, 12}, 200: {200, 15}, 300: {300, 20}, 1 << 60: {300, 20},
	} {
		if got, err := x.Lookup(ts); err != nil || got != want {
			t.Errorf("Lookup(%d) = %v, %v, want %v", ts, got, err, want)
		}
	}
}

func mustAppendTimes(t testing.TB, x *TimeIndex, entries ...TimestampOffset) {
	t.Helper()
	for _, e := range entries {
		if err := x.MaybeAppend(e.TimestampMs, e.Offset, false); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTimeIndex_NoTimestampAddsNothing(t *testing.T) {
	x := openTime(t, 0, 1024)
	mustAppendTimes(t, x, TimestampOffset{-1, 1}, TimestampOffset{-1, 3})
	if _, ok := x.Last(); ok || x.Entries() != 0 {
		t.Errorf("%d entries of batches without timestamps", x.Entries())
	}
}

func TestTimeIndex_ASlotStaysForTheFinalEntry(t *testing.T) {
	x := openTime(t, 0, 3*timeEntrySize)
	mustAppendTimes(t, x, TimestampOffset{1, 1}, TimestampOffset{2, 2})
	if !x.IsFull() {
		t.Error("two entries of three are not full")
	}
	if err := x.MaybeAppend(3, 3, false); !errors.Is(err, ErrFull) {
		t.Errorf("append to a full index: %v", err)
	}
	if err := x.MaybeAppend(3, 3, true); err != nil || x.Entries() != 3 {
		t.Errorf("final entry: %v, %d entries", err, x.Entries())
	}
	if err := x.MaybeAppend(4, 4, true); !errors.Is(err, ErrFull) {
		t.Errorf("entry beyond the last slot: %v", err)
	}
	if err := x.MaybeAppend(3, 4, true); err != nil {
		t.Errorf("nothing to add to a file without room: %v", err)
	}
}

func TestTimeIndex_RefusedAppendChangesNothing(t *testing.T) {
	x := openTime(t, 100, 1024)
	mustAppendTimes(t, x, TimestampOffset{50, 105})
	for name, r := range map[string]struct {
		e    TimestampOffset
		want error
	}{
		"older timestamp": {TimestampOffset{49, 106}, ErrOffsetsOutOfOrder},
		"lower offset":    {TimestampOffset{51, 104}, ErrOffsetsOutOfOrder},
		"offset too far":  {TimestampOffset{51, 100 + 1<<31}, ErrOffsetOverflow},
	} {
		if err := x.MaybeAppend(r.e.TimestampMs, r.e.Offset, false); !errors.Is(err, r.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if last, _ := x.Last(); x.Entries() != 1 || last.TimestampMs != 50 {
		t.Errorf("%d entries, last %v", x.Entries(), last)
	}
}

func TestTimeIndex_TruncateAndDropLast(t *testing.T) {
	x := openTime(t, 0, 1024)
	mustAppendTimes(t, x, TimestampOffset{100, 5}, TimestampOffset{200, 10}, TimestampOffset{300, 20})
	mustDo(t, x.Write)
	mustDo(t, x.DropLast)
	if last, _ := x.Last(); last != (TimestampOffset{200, 10}) || len(fileBytes(t, x.Path())) != 24 {
		t.Errorf("after DropLast the last entry is %v", last)
	}
	if err := x.TruncateTo(10); err != nil {
		t.Fatal(err)
	}
	if last, _ := x.Last(); last != (TimestampOffset{100, 5}) {
		t.Errorf("TruncateTo(10) keeps %v", last)
	}
	mustAppendTimes(t, x, TimestampOffset{150, 10})
	mustDo(t, x.Reset)
	mustDo(t, x.DropLast)
	if last, ok := x.Last(); ok || last != (TimestampOffset{-1, 0}) {
		t.Errorf("after Reset the last entry is %v", last)
	}
	mustAppendTimes(t, x, TimestampOffset{1, 1})
}

func TestTimeIndex_DamageIsRefusedAtOpen(t *testing.T) {
	good := AppendTimeEntry(AppendTimeEntry(nil, 0, TimestampOffset{100, 5}), 0, TimestampOffset{200, 10})
	for name, b := range map[string][]byte{
		"zero tail":                   append(bytes.Clone(good), make([]byte, 120)...),
		"zeros only":                  make([]byte, 120),
		"seven odd bytes":             append(bytes.Clone(good), make([]byte, 7)...),
		"negative timestamp":          AppendTimeEntry(nil, 0, TimestampOffset{-5, 5}),
		"entry below the base offset": AppendTimeEntry(nil, 0, TimestampOffset{5, -5}),
		"last not above the first":    AppendTimeEntry(bytes.Clone(good), 0, TimestampOffset{100, 11}),
	} {
		path := writeFile(t, "x.timeindex", b)
		if _, err := OpenTime(path, 0, 1024); !errors.Is(err, ErrCorruptIndex) {
			t.Errorf("%s: OpenTime = %v", name, err)
		}
		if x, err := CreateTime(path, 0, 1024); err != nil || x.Entries() != 0 {
			t.Errorf("%s: CreateTime: %v", name, err)
		}
	}
	// One batch at the base offset with timestamp 0, closed: its final entry is all zeros and right.
	if x, err := OpenTime(writeFile(t, "x.timeindex", make([]byte, 12)), 0, 1024); err != nil || x.Entries() != 1 {
		t.Errorf("one entry of zeros: %v", err)
	}
}
