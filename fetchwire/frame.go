package fetchwire

import (
	"encoding/binary"
	"fmt"
	"io"
)

// frameReader reads one response frame at a time through a small window. It never takes bytes beyond the frame
// into the window, so that between two frames the socket and the window agree.
//
// Everything read is counted against the frame's announced size; nothing is allocated for it.
type frameReader struct {
	src  io.Reader
	buf  []byte // the window
	r, w int    // buf[r:w] was read from src and not consumed
	size int64  // of the frame, behind the size field
	left int64  // bytes of the frame not consumed, those in the window included
}

// begin reads the size field of the next frame and refuses what is outside [4, limit].
func (f *frameReader) begin(limit int32) error {
	f.r, f.w = 0, 0
	for f.w < 4 {
		n, err := f.src.Read(f.buf[f.w:])
		f.w += n
		if err != nil && f.w < 4 {
			return cutShort(err, f.w > 0)
		}
	}
	size := int64(int32(binary.BigEndian.Uint32(f.buf)))
	if size < 4 {
		return fmt.Errorf("%w: frame of %d bytes", ErrMalformed, size)
	}
	if size > int64(limit) {
		return fmt.Errorf("%w: %d bytes announced, limit %d", ErrFrameTooLarge, size, limit)
	}
	f.r, f.size, f.left = 4, size, size
	if int64(f.w-f.r) > size {
		return fmt.Errorf("%w: bytes behind the response", ErrMalformed)
	}
	return nil
}

// pos returns the position in the frame of the next byte to consume.
func (f *frameReader) pos() int { return int(f.size - f.left) }

// need makes the next n bytes, at most len(buf) and within the frame, stand in the window and returns them.
func (f *frameReader) need(n int) ([]byte, error) {
	if f.w-f.r >= n {
		return f.buf[f.r : f.r+n], nil
	}
	if f.r+n > len(f.buf) {
		f.w = copy(f.buf, f.buf[f.r:f.w])
		f.r = 0
	}
	for f.w-f.r < n {
		room := min(int64(len(f.buf)-f.w), f.left-int64(f.w-f.r))
		got, err := f.src.Read(f.buf[f.w : f.w+int(room)])
		f.w += got
		if err != nil && f.w-f.r < n {
			return nil, cutShort(err, true)
		}
	}
	return f.buf[f.r : f.r+n], nil
}

// consume steps over n bytes that need returned.
func (f *frameReader) consume(n int) {
	f.r += n
	f.left -= int64(n)
}

// read moves up to len(p) bytes, at most the rest of the frame, into p: from the window while it holds any, else
// from the source without passing through it.
func (f *frameReader) read(p []byte) (int, error) {
	if int64(len(p)) > f.left {
		p = p[:f.left]
	}
	if f.r < f.w {
		n := copy(p, f.buf[f.r:f.w])
		f.consume(n)
		return n, nil
	}
	if len(p) == 0 {
		return 0, nil
	}
	n, err := f.src.Read(p)
	f.left -= int64(n)
	if n > 0 {
		return n, nil // an error will come back at the next read
	}
	if err != nil {
		return 0, cutShort(err, true)
	}
	return 0, nil
}

// skip steps over n bytes of the frame.
func (f *frameReader) skip(n int64) error {
	for n > 0 {
		if f.r == f.w {
			f.r, f.w = 0, 0
			got, err := f.src.Read(f.buf[:min(int64(len(f.buf)), f.left)])
			f.w = got
			if err != nil && got == 0 {
				return cutShort(err, true)
			}
		}
		step := int(min(n, int64(f.w-f.r)))
		f.consume(step)
		n -= int64(step)
	}
	return nil
}

// readAll returns the whole frame in dst's memory, growing it only as bytes arrive.
func (f *frameReader) readAll(dst []byte) ([]byte, error) {
	dst = dst[:0]
	if cap(dst) == 0 {
		dst = make([]byte, 0, min(f.left, firstGrowBytes))
	}
	for f.left > 0 {
		if len(dst) == cap(dst) {
			grown := make([]byte, len(dst), min(int64(2*cap(dst)), int64(len(dst))+f.left))
			copy(grown, dst)
			dst = grown
		}
		n, err := f.read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		if err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// cutShort turns an end of the stream inside a frame into io.ErrUnexpectedEOF.
func cutShort(err error, inside bool) error {
	if inside && err == io.EOF { //nolint:errorlint // io.Reader's contract is the bare value
		return io.ErrUnexpectedEOF
	}
	return err
}
