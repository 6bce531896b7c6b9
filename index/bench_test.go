package index

import (
	"fmt"
	"testing"
)

func TestHotPath_AllocatesNothing(t *testing.T) {
	offsets, times := openOffset(t, 0, 1<<24), openTime(t, 0, 1<<24)
	next := int64(1)
	add := func() {
		for range 8 {
			if err := offsets.Append(next, next*100); err != nil {
				t.Fatal(err)
			}
			if err := times.MaybeAppend(next, next, false); err != nil {
				t.Fatal(err)
			}
			next++
		}
		mustDo(t, offsets.Write)
		mustDo(t, times.Write)
	}
	add()
	if n := testing.AllocsPerRun(100, add); n != 0 {
		t.Errorf("an append of 8 entries and its write allocate %v times", n)
	}
	look := func() {
		if _, err := offsets.Lookup(next / 2); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(100, look); n != 0 {
		t.Errorf("a lookup allocates %v times", n)
	}
}

func BenchmarkOffsetIndexAppend(b *testing.B) {
	for _, perWrite := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("entries=%d", perWrite), func(b *testing.B) {
			x := openOffset(b, 0, 1<<30)
			b.SetBytes(int64(perWrite * offsetEntrySize))
			b.ReportAllocs()
			next := int64(1)
			for b.Loop() {
				if next > 1<<24 {
					mustDo(b, x.Reset)
					next = 1
				}
				for range perWrite {
					if err := x.Append(next, next); err != nil {
						b.Fatal(err)
					}
					next++
				}
				if err := x.Write(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkOffsetIndexLookup(b *testing.B) {
	for _, n := range []int64{1 << 10, 1 << 17} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			x := openOffset(b, 0, 1<<30)
			for i := int64(1); i <= n; i++ {
				if err := x.Append(i, i); err != nil {
					b.Fatal(err)
				}
			}
			mustDo(b, x.Write)
			b.SetBytes(offsetEntrySize)
			b.ReportAllocs()
			offset := int64(0)
			for b.Loop() {
				offset = (offset + 7919) % n
				if _, err := x.Lookup(offset); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
