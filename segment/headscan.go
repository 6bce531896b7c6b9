package segment

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// headWindow is how much of a file a headScanner reads at once: heads of small batches come many to a read.
const headWindow = 8 << 10

// headNeed is how far a head is read: the v2 header and, for a control batch, its first record.
const headNeed = 256

// windows lends the buffers; a scan needs one.
var windows = sync.Pool{New: func() any { return new([headWindow]byte) }}

// headScanner walks the batches of a file by their heads, with pread, never touching the records. It does not check
// CRCs: it is for what is trusted. Kafka: FileLogInputStream.
type headScanner struct {
	f        io.ReaderAt
	pos, end int64
	window   *[headWindow]byte
	from, to int64 // what of the file the window holds
	meta     batchMeta
	head     Batch // of the last batch, perhaps without its records; dies with the next call
}

func newHeadScanner(f io.ReaderAt, pos, end int64) *headScanner {
	window, ok := windows.Get().(*[headWindow]byte)
	if !ok {
		window = new([headWindow]byte)
	}
	return &headScanner{f: f, pos: pos, end: end, window: window}
}

// seek goes on at pos, the start of a batch.
func (h *headScanner) seek(pos int64) { h.pos = pos }

// next reads the head at pos and steps behind its batch. io.EOF is the end, exactly; errPartial a batch that ends
// behind it; ErrCorruptBatch what cannot be one. After an error pos is where it happened. The result dies with the
// next call.
func (h *headScanner) next() (*batchMeta, error) {
	if h.pos >= h.end {
		return nil, io.EOF
	}
	need := min(headNeed, h.end-h.pos)
	if need < batchPrefixSize {
		return nil, errPartial
	}
	b, err := h.at(h.pos, need)
	if err != nil {
		return nil, err
	}
	size, err := frame(b)
	if err != nil && !errors.Is(err, errPartial) {
		return nil, err
	}
	if size > h.end-h.pos {
		return nil, errPartial
	}
	head := Batch(b[:min(int64(len(b)), size)])
	if head.BaseOffset() < 0 || head.LastOffsetDelta() < 0 || head.LastOffset() < head.BaseOffset() {
		return nil, fmt.Errorf("%w: offsets %d to %d", ErrCorruptBatch, head.BaseOffset(), head.LastOffset())
	}
	if err := h.meta.read(head, h.pos); err != nil {
		return nil, err
	}
	h.head = head
	h.pos += size
	return &h.meta, nil
}

// at returns n bytes at pos, through the window.
func (h *headScanner) at(pos, n int64) ([]byte, error) {
	if pos < h.from || pos+n > h.to {
		want := min(headWindow, h.end-pos)
		m, err := h.f.ReadAt(h.window[:want], pos)
		if int64(m) < n {
			return nil, fmt.Errorf("reading %d bytes at %d: %w", n, pos, err)
		}
		h.from, h.to = pos, pos+int64(m)
	}
	return h.window[pos-h.from : pos-h.from+n], nil
}

// close gives the window back.
func (h *headScanner) close() {
	if h.window != nil {
		windows.Put(h.window)
		h.window = nil
	}
}

// ignoreEnd turns the exact end of a scan into success.
func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
