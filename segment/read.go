package segment

import (
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"segmirror/index"
)

// Isolation says up to where a read may see. Kafka: FetchIsolation.
type Isolation int8

const (
	// ReadLogEnd sees everything committed to the log.
	ReadLogEnd Isolation = iota
	// ReadHighWatermark sees what is below the high watermark.
	ReadHighWatermark
	// ReadCommitted sees what is below the last stable offset, and is told of aborted transactions.
	ReadCommitted
)

// Slice is a range of whole batches in one segment's file. It keeps the file open: Release it.
//
// Its bytes stay what they are until Release, except that a read error of the disk shows as an error of WriteTo or
// View. One goroutine at a time.
type Slice struct {
	file     lease
	pos      int64
	size     int64
	first    int64
	next     int64
	aborted  []index.AbortedTxn
	released atomic.Bool
}

// Size is the number of bytes; 0 when there is nothing to read at the offset yet.
func (s *Slice) Size() int64 { return s.size }

// Pos is where in the segment's file the bytes begin.
func (s *Slice) Pos() int64 { return s.pos }

// BaseOffset is the base offset of the first batch; of an empty slice the offset asked for.
func (s *Slice) BaseOffset() int64 { return s.first }

// NextOffset is the offset after the last batch; of an empty slice the offset asked for.
func (s *Slice) NextOffset() int64 { return s.next }

// Aborted lists the aborted transactions a ReadCommitted reader of these bytes must skip. The slice is the caller's.
func (s *Slice) Aborted() []index.AbortedTxn { return s.aborted }

// View shows the bytes to use, mapped read-only; they die when use returns. A fault while use touches them is
// ErrMapFault.
func (s *Slice) View(use func([]byte) error) error {
	if s.size == 0 {
		return use(nil)
	}
	return viewFile(s.file, s.pos, s.size, use)
}

// WriteTo writes the bytes to w; a socket gets them by sendfile, without a copy into this process.
func (s *Slice) WriteTo(w io.Writer) (int64, error) {
	if s.size == 0 {
		return 0, nil
	}
	if conn, ok := w.(syscall.Conn); ok {
		if raw, err := conn.SyscallConn(); err == nil {
			n, handled, err := s.sendfile(raw)
			if handled {
				return n, err
			}
		}
	}
	n, err := io.Copy(w, io.NewSectionReader(s.file, s.pos, s.size))
	if err == nil && n < s.size {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// sendfile hands the range to the kernel; handled is false when the target does not take it and nothing was sent.
func (s *Slice) sendfile(raw syscall.RawConn) (n int64, handled bool, err error) {
	pos := s.pos
	werr := raw.Write(func(fd uintptr) bool {
		for n < s.size {
			var m int
			m, err = unix.Sendfile(int(fd), int(s.file.Fd()), &pos, int(min(s.size-n, 1<<30)))
			switch {
			case errors.Is(err, unix.EINTR):
				err = nil
				continue
			case errors.Is(err, unix.EAGAIN):
				err = nil
				return false
			case err != nil:
				return true
			case m == 0:
				err = io.ErrUnexpectedEOF
				return true
			}
			n += int64(m)
		}
		return true
	})
	if n == 0 && (errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP)) {
		return 0, false, nil
	}
	if err == nil {
		err = werr
	}
	return n, true, err
}

// Release gives the file back. A second call does nothing.
func (s *Slice) Release() error {
	if s.file.s == nil || s.released.Swap(true) {
		return nil
	}
	return s.file.release()
}

// Read finds the whole batches from the one that holds offset (or the first above it) on: as many as fit maxBytes,
// all of one segment, but at least one. The slice is empty when offset is at the end that iso allows.
//
// ErrOffsetOutOfRange is an offset below the log start or above the log end. Any goroutine. Kafka: UnifiedLog.read.
func (l *Log) Read(offset int64, maxBytes int, iso Isolation) (*Slice, error) {
	return l.ReadBelow(math.MaxInt64, offset, maxBytes, iso)
}

// ReadBelow is Read that ends before offset upTo: the slice holds no batch that reaches it. Any goroutine.
func (l *Log) ReadBelow(upTo, offset int64, maxBytes int, iso Isolation) (*Slice, error) {
	for {
		seen := l.sight()
		slice, err := l.readOnce(upTo, offset, maxBytes, iso)
		if !l.overtaken(seen, err) {
			return slice, err
		}
		if slice != nil {
			if err := slice.Release(); err != nil {
				return nil, l.wrap(err)
			}
		}
		runtime.Gosched()
	}
}

// sight is what a reader notes before it looks, to tell afterwards whether the log was cut meanwhile.
type sight struct {
	truncations, cuts int64
	list              *segmentList
}

func (l *Log) sight() sight {
	return sight{truncations: l.truncations.Load(), cuts: l.cuts.Load(), list: l.segments.Load()}
}

// overtaken says that a reader that ended with err must look again: a truncation came between, or files were cut or
// deleted under it. What the offsets alone refuse holds also while files are being cut.
func (l *Log) overtaken(seen sight, err error) bool {
	if seen.truncations != l.truncations.Load() {
		return true
	}
	if err == nil || l.Failed() != nil {
		return false
	}
	if seen.list != l.segments.Load() {
		return true
	}
	return !errors.Is(err, ErrOffsetOutOfRange) && (seen.cuts%2 != 0 || seen.cuts != l.cuts.Load())
}

func (l *Log) readOnce(upTo, offset int64, maxBytes int, iso Isolation) (*Slice, error) {
	end := l.logEnd.Load()
	limit := end
	switch iso {
	case ReadLogEnd:
	case ReadHighWatermark:
		limit = min(end, l.highWatermark.Load())
	case ReadCommitted:
		limit = min(end, l.lastStable.Load())
	}
	limit = min(limit, upTo)
	if start := l.logStart.Load(); offset < start || offset > end {
		return nil, l.wrap(fmt.Errorf("%w: %d is not in [%d, %d]", ErrOffsetOutOfRange, offset, start, end))
	}
	list := l.list()
	for i := max(list.floor(offset), 0); i < len(list) && offset < limit; i++ {
		slice, err := l.readSegment(list[i], offset, limit, int64(maxBytes))
		if err != nil {
			return nil, l.wrap(fmt.Errorf("segment %d: %w", list[i].base, err))
		}
		if slice == nil {
			continue // nothing at or above offset here: a gap at the segment's end
		}
		if slice.size > 0 && iso == ReadCommitted {
			if slice.aborted, err = l.abortedIn(list[i:], offset, slice.next); err != nil {
				return nil, errors.Join(l.wrap(err), slice.Release())
			}
		}
		return slice, nil
	}
	return &Slice{first: offset, next: offset}, nil
}

// readSegment finds the range in one segment; nil when all its batches lie below offset.
func (l *Log) readSegment(s *Segment, offset, limit, maxBytes int64) (*Slice, error) {
	size := s.size.Load()
	if size == 0 {
		return nil, nil //nolint:nilnil // nothing here is no error; the caller goes on to the next segment
	}
	f, err := s.acquire()
	if err != nil {
		return nil, err
	}
	slice, err := l.findRange(s, f, readRange{offset: offset, limit: limit, maxBytes: maxBytes, size: size})
	if err != nil || slice == nil || slice.size == 0 {
		return slice, errors.Join(err, f.release())
	}
	slice.file = f
	return slice, nil
}

// readRange is what a read asks of a segment that shows size bytes.
type readRange struct{ offset, limit, maxBytes, size int64 }

func (l *Log) findRange(s *Segment, f file, r readRange) (*Slice, error) {
	scan := newHeadScanner(f, 0, r.size)
	defer scan.close()
	m, err := s.scanTo(scan, r.offset)
	if errors.Is(err, io.EOF) {
		return nil, nil //nolint:nilnil // see readSegment
	}
	if err != nil {
		return nil, err
	}
	out := &Slice{pos: m.pos, first: m.BaseOffset, next: m.LastOffset + 1}
	if m.LastOffset >= r.limit {
		return &Slice{first: r.offset, next: r.offset}, nil
	}
	out.size = m.size
	// Jump to near the end of the range by the offset index, then walk. The entry is believed once its batch agrees.
	if e, ok := s.lastEntryBefore(out.pos+r.maxBytes, r.limit); ok && e.Pos > scan.pos && e.Pos < r.size {
		walk := scan.pos
		scan.seek(e.Pos)
		if m, err := scan.next(); err == nil && m.LastOffset == e.Offset {
			out.size, out.next, walk = e.Pos-out.pos, m.BaseOffset, e.Pos
		}
		scan.seek(walk)
	}
	for {
		m, err := scan.next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if m.LastOffset >= r.limit || m.pos+m.size-out.pos > r.maxBytes {
			return out, nil
		}
		out.size, out.next = m.pos+m.size-out.pos, m.LastOffset+1
	}
}

// scanTo positions scan at the batch that holds offset, or the first above it, and returns it. io.EOF: none.
// An index entry is believed only after the batch it points to was parsed and agrees.
// Kafka: LogSegment.translateOffset.
func (s *Segment) scanTo(scan *headScanner, offset int64) (*batchMeta, error) {
	if x := s.opened(); x != nil {
		if e, err := x.offsets.Lookup(offset); err == nil && e.Pos > 0 && e.Pos < scan.end {
			scan.seek(e.Pos)
			m, err := scan.next()
			if err != nil || m.LastOffset != e.Offset {
				scan.seek(0)
			} else if m.LastOffset >= offset {
				return m, nil
			}
		}
	}
	for {
		m, err := scan.next()
		if err != nil || m.LastOffset >= offset {
			return m, err
		}
	}
}

// opened returns the indexes for a lookup, nil when they cannot be used; reads then scan.
func (s *Segment) opened() *indexSet {
	x, err := s.index(lookupIndexMax)
	if err != nil {
		return nil
	}
	return x
}

// lookupIndexMax is the size limit given to an index that is opened to be read; the owner sets its own.
const lookupIndexMax = 1<<31 - 1

// lastEntryBefore is the last index entry below byte pos whose batch ends below limit.
func (s *Segment) lastEntryBefore(pos, limit int64) (index.OffsetPosition, bool) {
	x := s.opened()
	if x == nil {
		return index.OffsetPosition{}, false
	}
	lo, hi := 0, x.offsets.Entries() // the answer is before hi
	var found index.OffsetPosition
	for lo < hi {
		mid := lo + (hi-lo)/2
		e, err := x.offsets.At(mid)
		if err != nil {
			return index.OffsetPosition{}, false
		}
		if e.Pos < pos && e.Offset < limit {
			found, lo = e, mid+1
		} else {
			hi = mid
		}
	}
	return found, found.Pos > 0
}

// abortedIn collects the aborted transactions of [offset, upper), whose markers may lie in later segments.
func (l *Log) abortedIn(list segmentList, offset, upper int64) ([]index.AbortedTxn, error) {
	var all []index.AbortedTxn
	for _, s := range list {
		x, err := s.index(lookupIndexMax)
		if err != nil {
			return nil, fmt.Errorf("segment %d: %w", s.base, err)
		}
		found, complete, err := x.txns.Collect(offset, upper)
		if err != nil {
			return nil, fmt.Errorf("segment %d: %w", s.base, err)
		}
		all = append(all, found...)
		if complete {
			break
		}
	}
	return all, nil
}

// OffsetForTimestamp finds the base offset of the first batch with a record at or after timestampMs, and that batch's
// largest timestamp; false when there is none. Any goroutine. Kafka: UnifiedLog.fetchOffsetByTimestamp.
func (l *Log) OffsetForTimestamp(timestampMs int64) (offset, maxMs int64, ok bool, err error) {
	for {
		seen := l.sight()
		offset, maxMs, ok, err = l.offsetForTimestamp(timestampMs)
		if !l.overtaken(seen, err) {
			return offset, maxMs, ok, err
		}
		runtime.Gosched()
	}
}

func (l *Log) offsetForTimestamp(timestampMs int64) (offset, maxMs int64, ok bool, err error) {
	for _, s := range l.list() {
		size := s.size.Load()
		if size == 0 {
			continue
		}
		offset, maxMs, ok, err = s.offsetForTimestamp(timestampMs, size)
		if err != nil {
			return 0, 0, false, l.wrap(fmt.Errorf("segment %d: %w", s.base, err))
		}
		if ok {
			return max(offset, l.logStart.Load()), maxMs, true, nil
		}
	}
	return 0, 0, false, nil
}

func (s *Segment) offsetForTimestamp(timestampMs, size int64) (offset, maxMs int64, ok bool, err error) {
	f, err := s.acquire()
	if err != nil {
		return 0, 0, false, err
	}
	scan := newHeadScanner(f, 0, size)
	defer scan.close()
	if x := s.opened(); x != nil {
		// Up to and including the batch of an entry with a smaller timestamp nothing is as new.
		if t, terr := x.times.Lookup(timestampMs - 1); terr == nil && t.TimestampMs >= 0 {
			if e, eerr := x.offsets.Lookup(t.Offset); eerr == nil {
				scan.seek(e.Pos)
				if m, serr := scan.next(); serr != nil || e.Pos > 0 && m.LastOffset != e.Offset {
					e.Pos = 0 // the index is damaged
				}
				scan.seek(e.Pos)
			}
		}
	}
	for {
		m, serr := scan.next()
		if serr != nil {
			return 0, 0, false, errors.Join(ignoreEnd(serr), f.release())
		}
		if m.MaxTimestampMs >= timestampMs {
			return m.BaseOffset, m.MaxTimestampMs, true, f.release()
		}
	}
}
