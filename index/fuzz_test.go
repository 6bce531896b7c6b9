package index

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// fuzzFile opens arbitrary bytes as an index of a segment that starts at base. encode returns what the opened
// index says it holds, written anew; it must be the file (cut to whole entries where cut is allowed).
func fuzzFile(t *testing.T, b []byte, entrySize int, open func(path string) (encode func() ([]byte, error), err error)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	encode, err := open(path)
	if err != nil {
		return
	}
	again, err := encode()
	if err != nil {
		t.Fatal(err)
	}
	if whole := b[:len(b)/entrySize*entrySize]; !bytes.Equal(again, whole) {
		t.Errorf("accepted % x, written anew it is % x", whole, again)
	}
}

func FuzzOpenOffset(f *testing.F) {
	var good []byte
	for _, e := range workedOffsets {
		good = AppendOffsetEntry(good, 0, e)
	}
	f.Add(good, int64(0))
	f.Add(append(bytes.Clone(good), make([]byte, 80)...), int64(0))
	f.Add([]byte{0xff, 0xff, 0xff, 0xf9, 0, 0, 0, 100}, int64(7))
	f.Fuzz(func(t *testing.T, b []byte, base int64) {
		if base < 0 {
			return
		}
		fuzzFile(t, b, offsetEntrySize, func(path string) (func() ([]byte, error), error) {
			x, err := OpenOffset(path, base, 1<<20)
			if err != nil {
				return nil, err
			}
			ordered := x.Check() == nil
			return func() (dst []byte, err error) {
				for i := range x.Entries() {
					e, err := x.At(i)
					if err != nil {
						return nil, err
					}
					if found, err := x.Lookup(e.Offset); ordered && (err != nil || found != e) {
						t.Errorf("Lookup(%d) = %v, %v, want %v", e.Offset, found, err, e)
					}
					dst = AppendOffsetEntry(dst, base, e)
				}
				return dst, nil
			}, nil
		})
	})
}

func FuzzOpenTime(f *testing.F) {
	f.Add(AppendTimeEntry(AppendTimeEntry(nil, 0, TimestampOffset{100, 5}), 0, TimestampOffset{200, 10}), int64(0))
	f.Add(make([]byte, 120), int64(0))
	f.Fuzz(func(t *testing.T, b []byte, base int64) {
		if base < 0 {
			return
		}
		fuzzFile(t, b, timeEntrySize, func(path string) (func() ([]byte, error), error) {
			x, err := OpenTime(path, base, 1<<20)
			if err != nil {
				return nil, err
			}
			ordered := x.Check() == nil
			return func() (dst []byte, err error) {
				for i := range x.Entries() {
					e, err := x.At(i)
					if err != nil {
						return nil, err
					}
					if found, err := x.Lookup(e.TimestampMs); ordered && (err != nil || found != e) {
						t.Errorf("Lookup(%d) = %v, %v, want %v", e.TimestampMs, found, err, e)
					}
					dst = AppendTimeEntry(dst, base, e)
				}
				return dst, nil
			}, nil
		})
	})
}

func FuzzOpenTransaction(f *testing.F) {
	good := AppendAbortedTxn(AppendAbortedTxn(nil, twoSegments[0]), twoSegments[1])
	f.Add(good, int64(2))
	f.Add(append(bytes.Clone(good), 0, 0, 0), int64(2))
	f.Add(append(bytes.Clone(good), make([]byte, 34)...), int64(2))
	f.Fuzz(func(t *testing.T, b []byte, start int64) {
		if start < 0 {
			return
		}
		fuzzFile(t, b, txnEntrySize, func(path string) (func() ([]byte, error), error) {
			x, err := OpenTransaction(path, start)
			if err != nil {
				return nil, err
			}
			return func() (dst []byte, err error) {
				all, err := x.All()
				for _, e := range all {
					dst = AppendAbortedTxn(dst, e)
				}
				return dst, err
			}, nil
		})
	})
}
