package segment

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"segmirror/index"
)

const noTimestamp = -1

// Segment is one base offset of a log: a .log file and its indexes. Only its last segment is written.
//
// Kafka: LogSegment.
type Segment struct {
	// immutable
	base int64
	stem string // path of its files, without suffix
	open openFileFunc

	// atomic
	size   atomic.Int64 // published bytes; what lies beyond is not the log
	synced atomic.Bool  // sealed, and everything of it is durable

	// guarded by mu
	mu      sync.Mutex
	idle    *sync.Cond // signalled when a cohort's leases fall to 0
	cohort  *cohort    // of the leases given out from now on
	log     file       // nil while nobody uses it
	pinned  bool       // the owner keeps log open
	readers int
	indexes *indexSet // nil until first used

	// owner
	tail     tailMap // of the segment being written
	next     int64   // offset after its last batch; base when empty
	firstMs  int64   // max timestamp of its first batch
	maxMs    int64   // largest timestamp so far
	maxAt    int64   // last offset of the batch that holds it
	openedMs int64   // wall clock; rolls by it only without timestamps
}

// indexSet is a segment's three indexes.
type indexSet struct {
	offsets *index.OffsetIndex
	times   *index.TimeIndex
	txns    *index.TransactionIndex
}

// newSegment describes the segment of base in dir; nothing is opened.
func newSegment(dir string, base int64, open openFileFunc) *Segment {
	s := &Segment{
		base: base, stem: filepath.Join(dir, fmt.Sprintf("%020d", base)), open: open,
		next: base, firstMs: noTimestamp, maxMs: noTimestamp, maxAt: base,
	}
	s.idle, s.cohort = sync.NewCond(&s.mu), &cohort{}
	return s
}

func (s *Segment) logPath() string { return s.stem + ".log" }

// lease is one use of a segment's file, to be released.
type lease struct {
	file
	s      *Segment
	cohort *cohort
}

// cohort counts the leases given out between two drains, so that a drain does not wait for those that come after it.
type cohort struct{ leases int }

// acquire lends the .log file, opening it if need be. Any goroutine.
func (s *Segment) acquire() (lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log == nil {
		f, err := s.open(s.logPath(), false)
		if err != nil {
			return lease{}, err
		}
		s.log = f
	}
	s.readers++
	s.cohort.leases++
	return lease{file: s.log, s: s, cohort: s.cohort}, nil
}

// release gives the file back; the last lease closes it unless the owner keeps it.
func (r lease) release() error {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readers--
	if r.cohort.leases--; r.cohort.leases == 0 {
		s.idle.Broadcast()
	}
	return s.closeUnused()
}

// closeUnused closes the file when nobody holds it; s.mu is held.
func (s *Segment) closeUnused() error {
	if s.readers > 0 || s.pinned || s.log == nil {
		return nil
	}
	f := s.log
	s.log = nil
	return f.Close()
}

// pin keeps the .log file open for the owner, creating it when create is set.
func (s *Segment) pin(create bool) (file, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log == nil {
		f, err := s.open(s.logPath(), create)
		if err != nil {
			return nil, err
		}
		s.log = f
	}
	s.pinned = true
	return s.log, nil
}

// unpin ends the owner's hold; the file closes with its last reader.
func (s *Segment) unpin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pinned = false
	return s.closeUnused()
}

// drain waits until every lease given out so far is released. Owner only, after what it is about to cut was taken out
// of sight: later leases are of no concern.
func (s *Segment) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.cohort
	s.cohort = &cohort{}
	for before.leases > 0 {
		s.idle.Wait()
	}
}

// leaked is how many readers still hold the file.
func (s *Segment) leaked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.readers
}

// index opens the segment's indexes on first use. index.ErrCorruptIndex and ErrUnknownVersion ask for a rebuild.
// Any goroutine.
func (s *Segment) index(maxBytes int32) (*indexSet, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.indexes != nil {
		return s.indexes, nil
	}
	offsets, err := index.OpenOffset(s.stem+".index", s.base, maxBytes)
	if err != nil {
		return nil, err
	}
	times, err := index.OpenTime(s.stem+".timeindex", s.base, maxBytes)
	if err != nil {
		return nil, errors.Join(err, offsets.Close())
	}
	txns, err := index.OpenTransaction(s.stem+".txnindex", s.base)
	if err != nil {
		return nil, errors.Join(err, offsets.Close(), times.Close())
	}
	s.indexes = &indexSet{offsets: offsets, times: times, txns: txns}
	return s.indexes, nil
}

// resetIndexes puts empty indexes in the place of whatever is there. Owner only, before readers come.
func (s *Segment) resetIndexes(maxBytes int32) (*indexSet, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	offsets, err := index.CreateOffset(s.stem+".index", s.base, maxBytes)
	if err != nil {
		return nil, err
	}
	times, err := index.CreateTime(s.stem+".timeindex", s.base, maxBytes)
	if err != nil {
		return nil, err
	}
	txns, err := index.CreateTransaction(s.stem+".txnindex", s.base)
	if err != nil {
		return nil, err
	}
	s.indexes = &indexSet{offsets: offsets, times: times, txns: txns}
	return s.indexes, nil
}

// write puts the buffered entries of all three into their files.
func (x *indexSet) write() error {
	return errors.Join(x.offsets.Write(), x.times.Write(), x.txns.Write())
}

// sync makes all three durable.
func (x *indexSet) sync() error {
	return errors.Join(ignoreGone(x.offsets.Sync()), ignoreGone(x.times.Sync()), ignoreGone(x.txns.Sync()))
}

// park writes and closes the descriptors.
func (x *indexSet) park() error {
	return errors.Join(x.offsets.Park(), x.times.Park(), x.txns.Park())
}

// full says that the segment must be rolled before the next entry.
func (x *indexSet) full() bool { return x.offsets.IsFull() || x.times.IsFull() }

// ignoreGone drops the error of a file that was removed, or an index that was closed, meanwhile.
func ignoreGone(err error) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, index.ErrClosed) {
		return nil
	}
	return err
}

// note takes one batch at pos into the indexes and the segment's running values.
//
// Kafka: LogSegment.append, per batch; its byte counter equals pos minus the position of the last entry.
func (s *Segment) note(x *indexSet, m *batchMeta, interval int32) error {
	if m.pos == 0 {
		s.firstMs = m.MaxTimestampMs
	}
	if m.MaxTimestampMs > s.maxMs {
		s.maxMs, s.maxAt = m.MaxTimestampMs, m.LastOffset
	}
	last, _ := x.offsets.Last()
	if m.pos-last.Pos > int64(interval) {
		if err := x.offsets.Append(m.LastOffset, m.pos); err != nil {
			return err
		}
		if err := x.times.MaybeAppend(s.maxMs, s.maxAt, false); err != nil {
			return err
		}
	}
	s.next = m.LastOffset + 1
	return nil
}

// shouldRoll says that m does not go into this segment, which holds size bytes. Kafka: LogSegment.shouldRoll.
func (s *Segment) shouldRoll(x *indexSet, m *batchMeta, size int64, cfg *Config) bool {
	if m.LastOffset-s.base > math.MaxInt32 {
		return true
	}
	if size == 0 {
		return false
	}
	return size+m.size > int64(cfg.SegmentBytes) || x.full() || s.age(m) > cfg.SegmentMs
}

// age is how long the segment has taken, by the batches' timestamps; by the wall clock where there are none.
func (s *Segment) age(m *batchMeta) int64 {
	if s.firstMs >= 0 && m.MaxTimestampMs >= 0 {
		return m.MaxTimestampMs - s.firstMs
	}
	if s.firstMs >= 0 || s.openedMs == 0 {
		return 0
	}
	return nowMs() - s.openedMs
}

func nowMs() int64 { return time.Now().UnixMilli() }

// finalTime adds the entry that a roll, a close or a recovery leaves at the end of the time index.
func (s *Segment) finalTime(x *indexSet) error {
	if s.maxMs < 0 {
		return nil
	}
	x.times.SetMaxBytes(math.MaxInt32) // the limit may have been lowered below what is there; activate sets it again
	return x.times.MaybeAppend(s.maxMs, s.maxAt, true)
}

// dropFinalTime takes back what finalTime added: an entry for a batch behind the last one the offset index names.
func (s *Segment) dropFinalTime(x *indexSet) error {
	t, ok := x.times.Last()
	if !ok {
		return nil
	}
	if last, any := x.offsets.Last(); any && t.Offset <= last.Offset {
		return nil
	}
	return x.times.DropLast()
}

// remove deletes the segment's files, the .log first: indexes without one are removed at the next open.
// Readers that hold the file keep it. Owner only.
func (s *Segment) remove() error {
	var errs []error
	if err := s.tail.unmap(); err != nil {
		errs = append(errs, err)
	}
	s.mu.Lock()
	x := s.indexes
	s.mu.Unlock()
	for _, suffix := range []string{".log", ".index", ".timeindex", ".txnindex"} {
		if err := os.Remove(s.stem + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if x != nil { // what they still buffered goes with them
		errs = append(errs, ignoreGone(x.offsets.Close()), ignoreGone(x.times.Close()), ignoreGone(x.txns.Close()))
	}
	errs = append(errs, s.unpin())
	return errors.Join(errs...)
}
