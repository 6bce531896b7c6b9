package dump

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// indexFile is an .index or .timeindex file as Kafka maps it: a fragment at its end is no entry. Kafka:
// AbstractIndex.
type indexFile struct {
	f         *os.File
	path      string
	size      int64
	entries   int64
	entrySize int64
}

// openIndex opens an index. Where there is none Kafka makes a file and then fails; this makes none.
func openIndex(path string, entrySize int64) (*indexFile, *Exception) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, throwf(classIllegalArgument, "Invalid max index size: -1")
	}
	if err != nil {
		return nil, throwf(classFileNotFound, "%s (Permission denied)", path)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		f.Close()
		return nil, throwf(classFileNotFound, "%s (Is a directory)", path)
	}
	if err != nil {
		f.Close()
		return nil, throwf(classIO, "%s", err)
	}
	return &indexFile{f: f, path: path, size: info.Size(), entries: info.Size() / entrySize, entrySize: entrySize}, nil
}

func (x *indexFile) close() { x.f.Close() }

// at reads the i-th entry.
func (x *indexFile) at(i int64) ([]byte, *Exception) {
	b := make([]byte, x.entrySize)
	if _, err := x.f.ReadAt(b, i*x.entrySize); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, throwf("java.lang.InternalError", "a fault occurred in an unsafe memory access operation: "+
				"%s changed while it was read", x.path)
		}
		return nil, throwf(classIO, "%s", err)
	}
	return b, nil
}

// floor returns the last entry whose key is not above target, -1 where there is none. It looks where Kafka looks,
// which makes a difference if the keys do not rise. Kafka: AbstractIndex.largestLowerBoundSlotFor.
func (x *indexFile) floor(target int64, key func(entry []byte) int64) (int64, *Exception) {
	if x.entries == 0 {
		return -1, nil
	}
	keyAt := func(i int64) (int64, *Exception) {
		entry, thrown := x.at(i)
		if thrown != nil {
			return 0, thrown
		}
		return key(entry), nil
	}
	const warmBytes = 8192
	hot := max(0, x.entries-1-warmBytes/x.entrySize)
	first, thrown := keyAt(hot)
	if thrown != nil {
		return 0, thrown
	}
	lo, hi := hot, x.entries-1
	if first >= target {
		if first, thrown = keyAt(0); thrown != nil || first > target {
			return -1, thrown
		}
		lo, hi = 0, hot
	}
	for lo < hi {
		mid := (lo + hi + 1) / 2
		found, thrown := keyAt(mid)
		switch {
		case thrown != nil:
			return 0, thrown
		case found > target:
			hi = mid - 1
		case found < target:
			lo = mid
		default:
			return mid, nil
		}
	}
	return lo, nil
}
