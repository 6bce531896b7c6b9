package compare

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// list is a Source in memory.
type list []Batch

func (l *list) Next() (Batch, error) {
	if len(*l) == 0 {
		return nil, io.EOF
	}
	b := (*l)[0]
	*l = (*l)[1:]
	return b, nil
}

func TestCompare_FindsTheFirstDifferenceAndNamesTheField(t *testing.T) {
	change := func(pos int, value byte) Batch {
		b := batch(10, 5, 3, "some records")
		b[pos] = value
		return b
	}
	tests := map[string]struct {
		b      Batch
		field  string
		offset int64
	}{
		"base offset":   {batch(12, 5, 3, "some records"), "baseOffset", 10},
		"length":        {batch(10, 5, 3, "some records and more"), "length", 10},
		"shorter":       {batch(10, 5, 3, "some"), "length", 10},
		"epoch":         {batch(10, 5, 4, "some records"), "partitionLeaderEpoch", 10},
		"crc":           {change(posCRC, 0xee), "crc", 10},
		"attributes":    {change(posAttributes, 0xee), "attributes", 10},
		"timestamp":     {change(posMaxTimestamp, 0xee), "maxTimestamp", 10},
		"producer":      {change(posProducerID, 0xee), "producerId", 10},
		"sequence":      {change(posBaseSequence, 0xee), "baseSequence", 10},
		"record's byte": {change(headerSize+5, 'X'), "records, byte 66 of the batch", 10},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			first := batch(0, 10, 3, "before")
			a := list{first, batch(10, 5, 3, "some records")}
			b := list{first, tc.b}
			got, err := Compare(&a, &b, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got.Equal() || got.Complete() || got.Different.Field != tc.field || got.Different.Offset != tc.offset {
				t.Fatalf("difference %v, want field %q at offset %d", got.Different, tc.field, tc.offset)
			}
			if got.Batches != 1 || got.To != 10 {
				t.Errorf("%d batches up to %d before the difference, want 1 up to 10", got.Batches, got.To)
			}
		})
	}
}

func TestCompare_EpochsMayBeIgnoredAndAreCounted(t *testing.T) {
	build := func(epochs ...int32) *list {
		var l list
		for i, epoch := range epochs {
			l = append(l, batch(int64(i), 1, epoch, "x"))
		}
		return &l
	}
	got, err := Compare(build(7, 8, 0), build(0, 0, 0), Options{IgnoreEpoch: true})
	if err != nil || !got.Complete() || got.Epochs != 2 {
		t.Fatalf("complete %v, %d epochs differ, %v; want complete with 2", got.Complete(), got.Epochs, err)
	}
	same, err := Compare(build(1, 2, 3), build(4, 5, 6), Options{IgnoreEpoch: true})
	if err != nil || same.Digest != got.Digest {
		t.Errorf("digest %x differs from %x by epochs alone (%v)", same.Digest, got.Digest, err)
	}
	strict, err := Compare(build(7, 8, 0), build(7, 8, 0), Options{})
	if err != nil || !strict.Complete() || strict.Digest == got.Digest {
		t.Errorf("complete %v, digest %x (%v): want another than without epochs", strict.Complete(), strict.Digest, err)
	}
}

func TestCompare_TellsHeadAndTailFromDifferences(t *testing.T) {
	logOf := func(from, to int64) *list {
		var l list
		for o := from; o < to; o += 5 {
			l = append(l, batch(o, 5, 0, "five records"))
		}
		return &l
	}
	tests := map[string]struct {
		a, b *list
		want Result
	}{
		"equal":     {logOf(0, 50), logOf(0, 50), Result{From: 0, To: 50}},
		"head in A": {logOf(0, 50), logOf(20, 50), Result{From: 20, To: 50, HeadOnlyA: Range{0, 20}}},
		"head in B": {logOf(20, 50), logOf(0, 50), Result{From: 20, To: 50, HeadOnlyB: Range{0, 20}}},
		"tail in A": {logOf(0, 50), logOf(0, 30), Result{From: 0, To: 30, TailOnlyA: Range{30, 50}}},
		"tail in B": {logOf(0, 30), logOf(0, 50), Result{From: 0, To: 30, TailOnlyB: Range{30, 50}}},
		"both ends": {logOf(10, 50), logOf(0, 40), Result{
			From: 10, To: 40, HeadOnlyB: Range{0, 10}, TailOnlyA: Range{40, 50},
		}},
		"A is empty":   {logOf(0, 0), logOf(0, 10), Result{TailOnlyB: Range{0, 10}}},
		"both empty":   {logOf(0, 0), logOf(0, 0), Result{}},
		"nothing same": {logOf(0, 10), logOf(10, 20), Result{HeadOnlyA: Range{0, 10}, TailOnlyB: Range{10, 20}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Compare(tc.a, tc.b, Options{})
			if err != nil || !got.Equal() {
				t.Fatalf("%v, difference %v", err, got.Different)
			}
			if want := (tc.want.To - tc.want.From) / 5; got.Batches != want || got.Records != want*5 {
				t.Errorf("%d batches of %d records, want %d", got.Batches, got.Records, want)
			}
			ends := func(r Result) [6]Range {
				return [6]Range{{r.From, r.To}, r.HeadOnlyA, r.HeadOnlyB, r.TailOnlyA, r.TailOnlyB}
			}
			if ends(got) != ends(tc.want) {
				t.Errorf("got %+v, want %+v", ends(got), ends(tc.want))
			}
			if got.Complete() != (name == "equal" || name == "both empty") {
				t.Errorf("Complete is %v", got.Complete())
			}
		})
	}
}

func TestCompare_ABatchThatOnlyOneHasIsADifference(t *testing.T) {
	a := list{batch(0, 1, 0, "x"), batch(1, 1, 0, "y"), batch(2, 1, 0, "z")}
	b := list{batch(0, 1, 0, "x"), batch(2, 1, 0, "z")}
	got, err := Compare(&a, &b, Options{})
	if err != nil || got.Equal() || got.Different.Offset != 1 || got.Different.Field != "baseOffset" {
		t.Fatalf("difference %v, %v; want the base offset at 1", got.Different, err)
	}
}

func TestCompare_RefusesOffsetsThatGoBack(t *testing.T) {
	a := list{batch(0, 5, 0, "x"), batch(3, 1, 0, "y")}
	b := list{batch(0, 5, 0, "x"), batch(5, 1, 0, "y")}
	_, err := Compare(&a, &b, Options{})
	if !errors.Is(err, ErrBadBatch) || !strings.Contains(err.Error(), "A: ") {
		t.Fatalf("%v, want ErrBadBatch from side A", err)
	}
}
