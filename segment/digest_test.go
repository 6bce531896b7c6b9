package segment

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// digestBatches reach over several ranges, one of them by a batch that straddles the boundary, with a gap of whole
// ranges.
func digestBatches() []Batch {
	var all []Batch
	for _, span := range [][2]int64{
		{0, 9},
		{10, DigestRange - 5},
		{DigestRange - 4, DigestRange + 5},
		{DigestRange + 6, DigestRange + 6},
		{3*DigestRange + 1, 3*DigestRange + 8},
		{3*DigestRange + 9, 3*DigestRange + 9},
	} {
		h := BatchHeader{
			BaseOffset: span[0], LastOffsetDelta: int32(span[1] - span[0]), RecordsCount: 1, ProducerID: span[0] % 1000,
		}
		all = append(all, AppendBatch(nil, &h, []byte{1, 2, 3}))
	}
	return all
}

func addAll(d *Digests, batches []Batch) *Digests {
	for _, b := range batches {
		d.Add(b)
	}
	return d
}

func TestDigests_ForgetTheEpochAndSeeEverythingElse(t *testing.T) {
	batches := digestBatches()
	want := addAll(NewDigests(0), batches).Ranges()
	if len(want) != 3 || want[0].Batches != 3 || want[2].Start != 3*DigestRange || want[2].Complete || !want[1].Complete {
		t.Fatalf("ranges %+v", want)
	}
	for name, c := range map[string]struct {
		pos  int
		same bool
	}{
		"epoch":       {leaderEpochPos, true},
		"crc":         {crcPos, false},
		"attributes":  {attributesPos + 1, false},
		"last offset": {lastOffsetDeltaPos + 3, false},
		"length":      {lengthPos + 3, false},
	} {
		changed := digestBatches()
		changed[1][c.pos] ^= 1
		got := addAll(NewDigests(0), changed).Ranges()
		if same := got[0].Sum == want[0].Sum; same != c.same {
			t.Errorf("%s changed: digest is the same: %t", name, same)
		}
		if got[2].Sum != want[2].Sum {
			t.Errorf("%s changed: another range's digest changed", name)
		}
	}
}

func TestDigests_ResumeFromTheFileAnywhere(t *testing.T) {
	batches := digestBatches()
	want := addAll(NewDigests(0), batches)
	path := filepath.Join(t.TempDir(), digestsFileName)
	for n := range len(batches) + 1 {
		d := addAll(NewDigests(0), batches[:n])
		d.SetVerifiedUpTo(5)
		if err := os.WriteFile(path, d.AppendTo(nil), 0o644); err != nil {
			t.Fatal(err)
		}
		again, err := ReadDigests(path)
		if err != nil {
			t.Fatal(err)
		}
		if again.NextOffset() != d.NextOffset() || again.VerifiedUpTo() != min(5, d.NextOffset()) {
			t.Errorf("after %d batches: next %d, verified %d", n, again.NextOffset(), again.VerifiedUpTo())
		}
		addAll(again, batches) // those that are in already are left out
		if !slices.Equal(again.Ranges(), want.Ranges()) || again.HighestProducerID() != want.HighestProducerID() {
			t.Errorf("resumed after %d batches: %+v, want %+v", n, again.Ranges(), want.Ranges())
		}
	}
}

func TestDigests_TruncateAndFeedAnewIsAsIfNothingHadBeen(t *testing.T) {
	batches := digestBatches()
	for n := range len(batches) {
		for _, offset := range []int64{batches[n].BaseOffset(), batches[n].LastOffset()} {
			d := addAll(NewDigests(0), batches)
			d.TruncateTo(offset)
			if d.NextOffset() > offset {
				t.Errorf("cut to %d: to be fed from %d", offset, d.NextOffset())
			}
			addAll(d, batches[:n])
			if want := addAll(NewDigests(0), batches[:n]).Ranges(); !slices.EqualFunc(d.Ranges(), want, sameDigest) {
				t.Errorf("cut to %d: %+v, want %+v", offset, d.Ranges(), want)
			}
			addAll(d, batches)
			if want := addAll(NewDigests(0), batches).Ranges(); !slices.Equal(d.Ranges(), want) {
				t.Errorf("cut to %d and fed on: %+v, want %+v", offset, d.Ranges(), want)
			}
			if d.HighestProducerID() != 737 {
				t.Errorf("highest producer id %d", d.HighestProducerID())
			}
		}
	}
}

// sameDigest leaves out Complete: a cut can say that nothing will come before it, appending up to there cannot.
func sameDigest(a, b RangeDigest) bool {
	return a.Start == b.Start && a.Batches == b.Batches && a.End == b.End && a.Sum == b.Sum
}

func TestDigests_CutInAGapLeavesItsRangeOpen(t *testing.T) {
	span := func(first, last int64) Batch {
		return AppendBatch(nil, &BatchHeader{BaseOffset: first, LastOffsetDelta: int32(last - first)}, nil)
	}
	batches := []Batch{span(0, 99), span(DigestRange, DigestRange)}
	d := addAll(NewDigests(0), batches)
	d.TruncateTo(200)
	addAll(d, batches[:1])
	d.Add(span(200, 200))
	if r := d.Ranges(); len(r) != 1 || r[0].Batches != 2 {
		t.Errorf("ranges %+v", r)
	}
}

func TestDigests_LogThatStartsInsideItsFirstBatchHasItWhole(t *testing.T) {
	batches := digestBatches()
	d := addAll(NewDigests(4), batches[:2])
	if d.StartOffset() != 0 || d.Ranges()[0].Batches != 2 {
		t.Errorf("start %d, %+v", d.StartOffset(), d.Ranges())
	}
	d.Restart(100)
	if len(d.Ranges()) != 0 || d.NextOffset() != 100 || d.HighestProducerID() != 10 {
		t.Errorf("after Restart: %+v, next %d, highest %d", d.Ranges(), d.NextOffset(), d.HighestProducerID())
	}
}

func TestDigests_AddAllocatesNothingWithinARange(t *testing.T) {
	d, b := NewDigests(0), Batch(AppendBatch(nil, &BatchHeader{}, nil))
	offset := int64(0)
	if n := testing.AllocsPerRun(1000, func() {
		b[7], b[6] = byte(offset), byte(offset>>8)
		d.Add(b)
		offset++
	}); n > 0 {
		t.Errorf("%v allocations a batch", n)
	}
}

func FuzzParseDigests(f *testing.F) {
	batches := digestBatches()
	for n := range len(batches) + 1 {
		f.Add(addAll(NewDigests(0), batches[:n]).AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := parseDigests(b)
		if err != nil {
			if !errors.Is(err, ErrCorruptDigests) {
				t.Errorf("%v is no ErrCorruptDigests", err)
			}
			return
		}
		again, err := parseDigests(d.AppendTo(nil))
		if err != nil || !slices.Equal(again.Ranges(), d.Ranges()) || again.NextOffset() != d.NextOffset() {
			t.Errorf("accepted %q, written anew it reads as %+v, %v", b, again, err)
		}
	})
}
