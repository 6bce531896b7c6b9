package segment

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"segmirror/index"
)

const (
	// readChunk is how much is read before its batches are checked and committed: small enough that the CRC finds
	// the bytes still in the processor's cache.
	readChunk = 256 << 10
	// maxEmptyReads is how often a reader may return nothing before it counts as stuck.
	maxEmptyReads = 100
)

// AppendInfo says what an append did.
type AppendInfo struct {
	FirstOffset    int64 // base offset of the first committed batch, -1 when there is none
	LastOffset     int64 // last offset of the last one, -1 when there is none
	Batches        int
	Bytes          int   // of committed batches
	Consumed       int   // bytes taken from the reader
	MaxTimestampMs int64 // largest of the committed batches, -1 when none has one
	HigherEpoch    bool  // ended before a batch of a leader epoch above the caller's
	Gaps           int   // places where offsets are missing before a batch (compaction, or loss at the source)
	GapFrom, GapTo int64 // the first such range, end exclusive
	DroppedTxns    int   // transactions still open where a MIRROR_PID_RESET removed them: a fault to report
}

func newAppendInfo() AppendInfo {
	return AppendInfo{FirstOffset: -1, LastOffset: -1, MaxTimestampMs: noTimestamp}
}

// AppendFrom reads n bytes of records from r straight into the mapped tail and commits every whole batch.
//
// leaderEpoch, unless -1, ends the append quietly before a batch of a higher epoch (HigherEpoch). A partial last
// batch is dropped. Each batch is published as soon as it is checked; all of them are before return, also when an
// error ends the call: *CorruptError (ErrCorruptBatch, ErrOffsetsOutOfOrder, ErrMalformedMarker, or psm's refusals)
// for a batch that is refused, ErrRead around an error of r, ErrNoSpace for a full disk. After these the log is good,
// and the bytes beyond its end are zeros. ErrLogFailed asks for a reopen. What r still holds is the caller's to skip:
// Consumed tells how much was taken. Allocates nothing in the steady state. Owner only.
//
// Kafka: UnifiedLog.appendAsFollower.
func (l *Log) AppendFrom(r io.Reader, n int, leaderEpoch int32) (AppendInfo, error) {
	l.info = newAppendInfo()
	info := &l.info
	staged := int64(0)
	for remaining := int64(n); remaining > 0; {
		want, err := l.nextRead(staged, remaining)
		if err != nil {
			return *info, l.endAppend(staged, err)
		}
		if want == 0 { // the batch at hand ends behind the last byte
			break
		}
		m, readErr := l.readTail(r, staged, want)
		info.Consumed += int(m)
		remaining -= m
		staged += m
		var more bool
		staged, more, err = l.take(staged, leaderEpoch, info)
		switch {
		case err != nil:
			return *info, l.endAppend(0, err)
		case !more:
			remaining = 0
		case readErr != nil:
			return *info, l.endAppend(staged, readErr)
		}
	}
	return *info, l.endAppend(staged, nil)
}

// nextRead lends room for the next read behind staged bytes and returns its size; 0 when the batch that has begun
// cannot become whole with remaining bytes.
func (l *Log) nextRead(staged, remaining int64) (int64, error) {
	s, err := l.writable()
	if err != nil {
		return 0, err
	}
	pos := s.size.Load()
	want := min(remaining, readChunk)
	if room := int64(l.cfg.SegmentBytes) - pos - staged; want > room {
		// Beyond the segment's limit only as much as is needed to see the size of the batch that straddles it.
		want = min(remaining, max(room, batchPrefixSize-staged, 1))
	}
	if staged >= batchPrefixSize {
		size, err := l.stagedSize(pos, staged)
		if err != nil {
			return 0, err
		}
		if size > staged+remaining {
			return 0, nil
		}
		if pos > 0 && pos+size > int64(l.cfg.SegmentBytes) {
			want = size - staged // it will move to the next segment; nothing behind it should
		}
		want = max(want, size-staged)
	}
	return want, l.lend(s, staged+want)
}

// stagedSize is the size that the batch at the published end claims; take has checked that it is no nonsense.
func (l *Log) stagedSize(pos, staged int64) (size int64, err error) {
	defer endGuard(debug.SetPanicOnFault(true), &err)
	size, err = frame(l.active().tail.b[pos : pos+staged])
	if errors.Is(err, errPartial) {
		err = nil
	}
	return size, err
}

// lend makes n bytes behind the published end writable.
func (l *Log) lend(s *Segment, n int64) error {
	pos := s.size.Load()
	if err := s.tail.reserve(pos+n, int64(l.cfg.SegmentBytes)); err != nil {
		if errors.Is(err, ErrNoSpace) {
			return l.wrap(err)
		}
		return l.poison(err)
	}
	l.lent = max(l.lent, n)
	return nil
}

// readTail fills want bytes behind staged from r, and says how many it got and why not all.
func (l *Log) readTail(r io.Reader, staged, want int64) (n int64, err error) {
	s := l.active()
	pos := s.size.Load() + staged
	buf := s.tail.b[pos : pos+want : pos+want]
	for empty := 0; n < want; {
		var m int
		m, err = readGuarded(r, buf[n:])
		if m < 0 || int64(m) > want-n {
			return n, l.wrap(fmt.Errorf("%w: reader returned %d for %d bytes", ErrRead, m, want-n))
		}
		n += int64(m)
		if m == 0 && err == nil {
			if empty++; empty == maxEmptyReads {
				err = io.ErrNoProgress
			}
		}
		if err != nil {
			break
		}
	}
	switch {
	case n == want || err == nil:
		return n, nil
	case errors.Is(err, unix.EFAULT) || errors.Is(err, ErrMapFault):
		return n, l.poison(err) // the page could not be backed: the disk's fault, not the reader's
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return n, l.wrap(fmt.Errorf("%w: %w", ErrRead, err))
}

// readGuarded is one Read into a mapping; a reader that copies there can fault.
func readGuarded(r io.Reader, b []byte) (n int, err error) {
	defer endGuard(debug.SetPanicOnFault(true), &err)
	return r.Read(b)
}

// endAppend zeroes what was staged and lent but not committed, and writes the index entries.
func (l *Log) endAppend(staged int64, cause error) error {
	if l.Failed() != nil || l.closed {
		return cause
	}
	s := l.active()
	if s.tail.file != nil && (staged > 0 || cause != nil) {
		if err := l.zeroTail(s); err != nil {
			return l.poison(errors.Join(err, cause))
		}
	}
	l.lent = 0
	s.mu.Lock()
	x := s.indexes
	s.mu.Unlock()
	if x != nil {
		if err := x.write(); err != nil {
			return l.poison(errors.Join(err, cause))
		}
	}
	return cause
}

// zeroTail zeroes everything lent behind the published end.
func (l *Log) zeroTail(s *Segment) error {
	pos := s.size.Load()
	end := min(pos+l.lent, s.tail.reserved)
	l.lent = 0
	if end <= pos {
		return nil
	}
	return s.tail.zero(pos, end)
}

// Tail lends n writable bytes behind the log's end: fill a prefix of them and Commit, or Discard. The slice is the
// mapped file itself and dies with the next call of the owner. ErrNoSpace leaves the log as it was. Owner only.
func (l *Log) Tail(n int) ([]byte, error) {
	s, err := l.writable()
	if err != nil {
		return nil, err
	}
	if err := l.lend(s, int64(n)); err != nil {
		return nil, err
	}
	pos := s.size.Load()
	return s.tail.b[pos : pos+int64(n) : pos+int64(n)], nil
}

// Commit checks the first n bytes of the lent tail and makes their whole batches the log, as AppendFrom does, without
// a limit on leader epochs. Whatever is not committed is zeroed. Owner only.
func (l *Log) Commit(n int) (AppendInfo, error) {
	info := newAppendInfo()
	if err := l.usable(); err != nil {
		return info, err
	}
	if int64(n) > l.lent {
		return info, l.wrap(fmt.Errorf("%w: %d of %d", ErrNotTail, n, l.lent))
	}
	_, _, err := l.take(int64(n), -1, &info)
	info.Consumed = n
	return info, l.giveBack(err)
}

// Discard zeroes the lent tail. Owner only.
func (l *Log) Discard() error {
	if err := l.usable(); err != nil {
		return err
	}
	return l.giveBack(nil)
}

// giveBack zeroes what was lent and not committed, durably where whole batches stand there: the kernel may have written
// them to the disk, and recovery would take them.
func (l *Log) giveBack(cause error) error {
	s := l.active()
	if l.Failed() == nil && l.lent > 0 && s.tail.file != nil && l.holdsBatch(s) {
		if err := l.refuse(s); err != nil {
			return l.poison(errors.Join(err, cause))
		}
	}
	return l.endAppend(1, cause)
}

// holdsBatch reports whether an intact batch stands in the lent tail behind the published end. What cannot be read is
// none.
func (l *Log) holdsBatch(s *Segment) bool {
	pos := s.size.Load()
	return guarded(s.tail.b[pos:min(pos+l.lent, int64(len(s.tail.b)))], func(b []byte) error {
		size, err := frame(b)
		if err != nil {
			return err
		}
		return Batch(b[:size]).validate()
	}) == nil
}

// AppendAsFollower appends whole batches, as fetched, at the log end. The caller may reuse records on return. It
// copies once; AppendFrom does not. Errors and limits are AppendFrom's. Owner only.
//
// Kafka: UnifiedLog.appendAsFollower.
func (l *Log) AppendAsFollower(records []byte, leaderEpoch int32) (AppendInfo, error) {
	r := sliceReader{b: records}
	return l.AppendFrom(&r, len(records), leaderEpoch)
}

// sliceReader reads from memory.
type sliceReader struct{ b []byte }

// Read copies the next bytes.
func (r *sliceReader) Read(p []byte) (int, error) {
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.b)
	r.b = r.b[n:]
	return n, nil
}

// take commits the whole batches among the staged bytes behind the published end and returns how many bytes are left
// of a partial one. more is false when the append ends here. After an error or an end nothing is left: the rest is
// zeroed, and durably so where it held whole batches.
func (l *Log) take(staged int64, leaderEpoch int32, info *AppendInfo) (left int64, more bool, err error) {
	t := taking{l: l, s: l.active(), leaderEpoch: leaderEpoch, info: info}
	t.pos = t.s.size.Load()
	t.end = t.pos + staged
	t.x, err = t.s.index(l.cfg.indexMax())
	if err != nil {
		return 0, false, l.poison(err)
	}
	err = t.batches()
	if l.Failed() != nil {
		return 0, false, err
	}
	if ferr := t.publish(); ferr != nil {
		return 0, false, l.poison(errors.Join(ferr, err))
	}
	if err == nil && !info.HigherEpoch {
		return t.end - t.pos, true, nil
	}
	if errors.Is(err, ErrMapFault) {
		return 0, false, l.poison(err)
	}
	if rerr := l.refuse(t.s); rerr != nil {
		return 0, false, l.poison(errors.Join(rerr, err))
	}
	return 0, false, err
}

// refuse zeroes the tail for good: what may be whole batches must not come back after a power cut either.
func (l *Log) refuse(s *Segment) error {
	if err := l.zeroTail(s); err != nil {
		return err
	}
	return s.tail.file.Sync()
}

// taking is one pass over staged bytes: what append and its rolls share.
type taking struct {
	l           *Log
	s           *Segment
	x           *indexSet
	pos, end    int64 // of the batches not yet taken
	leaderEpoch int32
	info        *AppendInfo
	meta        batchMeta
}

// batches checks and takes batch after batch, each in place.
func (t *taking) batches() (err error) {
	defer endGuard(debug.SetPanicOnFault(true), &err)
	for t.pos < t.end {
		size, err := frame(t.s.tail.b[t.pos:t.end])
		if errors.Is(err, errPartial) {
			return nil
		}
		if err != nil {
			return t.corrupt(err)
		}
		more, err := t.batch(Batch(t.s.tail.b[t.pos : t.pos+size]))
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// batch takes one framed batch: every check comes before the first change.
func (t *taking) batch(b Batch) (more bool, err error) {
	l := t.l
	if err := b.validate(); err != nil {
		return false, t.corrupt(err)
	}
	m := &t.meta
	if err := m.read(b, t.pos); err != nil {
		return false, t.corrupt(err)
	}
	if t.leaderEpoch >= 0 && m.epoch > t.leaderEpoch {
		t.info.HigherEpoch = true
		return false, nil
	}
	straddles := m.BaseOffset < l.next && m.LastOffset >= l.next && l.empty() && t.pos == 0
	if m.BaseOffset < l.next && !straddles {
		return false, t.corrupt(fmt.Errorf("%w: offsets %d to %d", ErrOffsetsOutOfOrder, m.BaseOffset, m.LastOffset))
	}
	if straddles || t.s.shouldRoll(t.x, m, t.pos, &l.cfg) {
		// A segment begun for a batch that is refused then could lie above the log end.
		if err := l.psm.Refusal(&m.Batch); err != nil {
			return false, t.corrupt(err)
		}
		if b, err = t.roll(m, straddles); err != nil {
			return false, err
		}
	}
	if err := l.psm.Prepare(&m.Batch); err != nil {
		return false, t.corrupt(err)
	}
	return true, t.apply(b, m)
}

// apply makes a batch that passed every check part of the segment; its epoch is entered before it is visible.
func (t *taking) apply(b Batch, m *batchMeta) error {
	l := t.l
	if m.magic >= 2 {
		stamp, err := l.epochs.take(m.epoch, m.BaseOffset)
		if err != nil {
			return l.poison(err)
		}
		if stamp != m.epoch {
			b.stampEpoch(stamp)
		}
	}
	if err := t.s.note(t.x, m, l.cfg.IndexIntervalBytes); err != nil {
		return l.poison(err)
	}
	if l.digests != nil {
		l.digests.Add(b)
	}
	info := t.info
	if info.FirstOffset < 0 {
		info.FirstOffset = m.BaseOffset
	}
	if m.BaseOffset > l.next {
		if info.Gaps == 0 {
			info.GapFrom, info.GapTo = l.next, m.BaseOffset
		}
		info.Gaps++
	}
	info.LastOffset = m.LastOffset
	info.MaxTimestampMs = max(info.MaxTimestampMs, m.MaxTimestampMs)
	info.Batches++
	info.Bytes += int(m.size)
	l.next = m.LastOffset + 1
	t.pos += m.size
	return nil
}

// publish makes what was taken visible: transaction index first, log end last.
func (t *taking) publish() error {
	l := t.l
	if err := l.settleTxns(t.x); err != nil {
		return err
	}
	t.info.DroppedTxns += len(l.psm.Dropped())
	l.psm.Commit()
	taken := t.pos - t.s.size.Load()
	if taken == 0 {
		return nil
	}
	l.lent -= min(l.lent, taken)
	t.s.size.Store(t.pos)
	l.logEnd.Store(l.next)
	l.updateLastStable()
	return nil
}

// settleTxns enters the aborted transactions that were completed since the last commit.
func (l *Log) settleTxns(x *indexSet) error {
	for _, c := range l.psm.Completed() {
		if !c.Aborted || c.FirstOffset >= c.LastOffset {
			continue
		}
		err := x.txns.Append(index.AbortedTxn{
			ProducerID: c.ProducerID, FirstOffset: c.FirstOffset, LastOffset: c.LastOffset,
			LastStableOffset: c.LastStableOffset,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// roll publishes what was taken so far and goes on in a new segment that begins with m, whose bytes move there.
func (t *taking) roll(m *batchMeta, replace bool) (Batch, error) {
	l := t.l
	if err := t.publish(); err != nil {
		return nil, l.poison(err)
	}
	staged := t.end - t.pos
	var err error
	switch {
	case replace:
		err = l.restart(m.BaseOffset, staged)
	case m.magic < 2: // its offset is the last in it; the first is not told
		err = l.roll(max(l.next, m.LastOffset-math.MaxInt32), staged)
	default:
		err = l.roll(m.BaseOffset, staged)
	}
	if err != nil {
		return nil, err
	}
	t.s = l.active()
	if t.x, err = t.s.index(l.cfg.indexMax()); err != nil {
		return nil, l.poison(err)
	}
	t.pos, t.end, m.pos = 0, staged, 0
	l.lent = staged
	return Batch(t.s.tail.b[:m.size]), nil
}

// corrupt says which batch was refused.
func (t *taking) corrupt(cause error) error {
	return &CorruptError{
		TopicPartition: t.l.tp, File: filepath.Base(t.s.logPath()), Pos: t.pos, Offset: t.l.next, Err: cause,
	}
}

// empty says that the log holds no batch at all.
func (l *Log) empty() bool {
	list := l.list()
	return len(list) == 1 && list.first().size.Load() == 0
}
