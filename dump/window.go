package dump

import (
	"errors"
	"io"
	"os"
)

// How much of a file is read at once: of a log, and of a file that is only read through.
const (
	windowSize  = 1 << 20
	smallWindow = 64 << 10
)

// window reads a file forward in pieces. Its size is that of the moment it was opened.
type window struct {
	f    *os.File
	size int64

	buf []byte // the file's bytes from off on
	off int64
}

// at returns the n bytes at pos, fewer where the file ends before; valid until the next call.
func (w *window) at(pos, n int64) ([]byte, error) {
	n = min(n, w.size-pos)
	if n <= 0 {
		return nil, nil
	}
	if from := pos - w.off; from >= 0 && from+n <= int64(len(w.buf)) {
		return w.buf[from : from+n : from+n], nil
	}
	want := min(max(n, windowSize), w.size-pos)
	if int64(cap(w.buf)) < want {
		w.buf = make([]byte, want)
	}
	w.buf, w.off = w.buf[:want], pos
	read, err := w.f.ReadAt(w.buf, pos)
	w.buf = w.buf[:read]
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	n = min(n, int64(read))
	return w.buf[:n:n], nil
}

// holds says whether the n bytes at pos can be had without reading.
func (w *window) holds(pos, n int64) bool {
	return pos >= w.off && pos+n <= w.off+int64(len(w.buf))
}
