package segment

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"segmirror/psm"
)

// Log is one partition directory: its segments, indexes, epochs and producer state.
//
// One goroutine, the owner, opens, appends, rolls, truncates, parks and closes it. Any goroutine may ask for offsets
// and read. Flush may run on one goroutine beside the owner. Kafka: UnifiedLog, LocalLog.
type Log struct {
	// immutable
	tp      TopicPartition
	dir     string
	persist func() error // writes the log directory's checkpoints with this log's present values
	onClose func(error)  // tells the log directory how Close went

	// owner
	cfg     Config
	next    int64 // offset after the last batch taken, published or about to be
	psm     *psm.Manager
	epochs  *epochs
	digests *Digests   // nil unless the log is bound to a source
	lent    int64      // bytes behind the published end that a reader may have written to
	info    AppendInfo // of the append at hand
	logState

	// atomic
	logOffsets
	segments atomic.Pointer[segmentList]
	cutCounts
	emptying atomic.Bool // the listed file is removed, on the way to a new beginning
	failure  atomic.Pointer[error]

	// guarded by mu
	mu        sync.Mutex
	flushed   flushMark
	snapshots []int64 // written and not yet synced
}

// logOffsets is what any goroutine may ask for.
type logOffsets struct {
	logStart      atomic.Int64
	logEnd        atomic.Int64
	highWatermark atomic.Int64
	lastStable    atomic.Int64
	recoveryPoint atomic.Int64
}

// logState is what the owner remembers of the files.
type logState struct {
	closed  bool
	settled bool // they are what an orderly stop leaves
	lowered bool // the recovery point is below the one in the checkpoint file; it must get there before new bytes
}

// cutCounts tell a flush and a reader that a truncation came between.
type cutCounts struct {
	truncations atomic.Int64 // counts them, so that a flush begun before one does not count
	cuts        atomic.Int64 // odd while a truncation cuts files, so that a reader that meets one looks again
}

// flushMark is what the last Flush made durable, and before which truncation.
type flushMark struct{ offset, truncations int64 }

// openParams is what a log directory knows of a partition before its log is opened.
type openParams struct {
	path          string
	tp            TopicPartition
	cfg           Config
	clean         bool  // the log directory was closed in order
	recoveryPoint int64 // from the checkpoint files, 0 where they do not name the partition
	logStart      int64
	highWatermark int64
	persist       func() error
	onClose       func(error)
}

// TopicPartition is the partition this log holds. Any goroutine.
func (l *Log) TopicPartition() TopicPartition { return l.tp }

// Dir is the partition's directory. Any goroutine.
func (l *Log) Dir() string { return l.dir }

// LogStartOffset is the lowest offset that may be read. Any goroutine. Kafka: UnifiedLog.logStartOffset.
func (l *Log) LogStartOffset() int64 { return l.logStart.Load() }

// LogEndOffset is the offset after the last record. Any goroutine. Kafka: UnifiedLog.logEndOffset.
func (l *Log) LogEndOffset() int64 { return l.logEnd.Load() }

// HighWatermark is the offset below which records are known to be safe at the source; never above the log end.
// Any goroutine. Kafka: UnifiedLog.highWatermark.
func (l *Log) HighWatermark() int64 { return l.highWatermark.Load() }

// LastStableOffset is the offset below which no transaction is undecided. Any goroutine.
// Kafka: UnifiedLog.lastStableOffset.
func (l *Log) LastStableOffset() int64 { return l.lastStable.Load() }

// RecoveryPoint is the offset below which everything is durable. Any goroutine. Kafka: LocalLog.recoveryPoint.
func (l *Log) RecoveryPoint() int64 { return l.recoveryPoint.Load() }

// FirstSegmentBase is the base offset of the first segment. Any goroutine.
func (l *Log) FirstSegmentBase() int64 { return l.list().first().base }

// Size is the bytes of all published batches. Any goroutine. Kafka: UnifiedLog.size.
func (l *Log) Size() int64 { return l.list().bytes() }

// Segments is how many segments the log has. Any goroutine.
func (l *Log) Segments() int { return len(l.list()) }

// HighestProducerID is the highest producer id this log ever held, as far as is known; -1 when there is none.
// Owner only.
func (l *Log) HighestProducerID() int64 {
	if l.digests == nil {
		return l.psm.HighestProducerID()
	}
	return max(l.psm.HighestProducerID(), l.digests.HighestProducerID())
}

// Digests are the digests of a bound log's batches, by ranges of offsets; nil of another. The slice is the caller's.
// Owner only.
func (l *Log) Digests() []RangeDigest {
	if l.digests == nil {
		return nil
	}
	return l.digests.Ranges()
}

// OpenTransactions lists the transactions without a marker. Owner only.
func (l *Log) OpenTransactions() []psm.OpenTxn { return l.psm.OngoingTxns() }

// Producers is the state of every producer, by rising id. Owner only.
func (l *Log) Producers() []psm.Entry { return l.psm.Entries() }

// Failed is nil, or why the log must be closed and opened again; wraps ErrLogFailed. Any goroutine.
func (l *Log) Failed() error {
	if err := l.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// SetConfig replaces the configuration from the next append on. CutDir is only used at open. Owner only.
func (l *Log) SetConfig(cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return l.wrap(err)
	}
	if cfg.Policy != l.cfg.Policy {
		return l.wrap(errors.New("mirror.leader.epoch.policy cannot change"))
	}
	cfg.open = l.cfg.open
	l.cfg = cfg
	s := l.active()
	s.mu.Lock()
	x := s.indexes
	s.mu.Unlock()
	if x != nil { // else they are opened with it
		x.offsets.SetMaxBytes(cfg.indexMax())
		x.times.SetMaxBytes(cfg.indexMax())
	}
	return nil
}

// UpdateHighWatermark sets the high watermark, capped at the log end and never below the log start. Owner only.
// Kafka: UnifiedLog.updateHighWatermark.
func (l *Log) UpdateHighWatermark(offset int64) {
	hw := max(min(offset, l.logEnd.Load()), l.logStart.Load())
	l.highWatermark.Store(hw)
	l.psm.OnHighWatermark(hw)
	l.updateLastStable()
}

// updateLastStable derives the last stable offset from the high watermark and the open transactions.
func (l *Log) updateLastStable() {
	stable := l.highWatermark.Load()
	if first, ok := l.psm.FirstUnstableOffset(stable); ok {
		stable = min(stable, max(first, l.logStart.Load()))
	}
	l.lastStable.Store(stable)
}

func (l *Log) list() segmentList { return *l.segments.Load() }

func (l *Log) setList(list segmentList) { l.segments.Store(&list) }

func (l *Log) active() *Segment { return l.list().last() }

// usable is nil when the owner may change the log.
func (l *Log) usable() error {
	if l.closed {
		return l.wrap(ErrLogClosed)
	}
	return l.Failed()
}

// wrap adds the topic-partition.
func (l *Log) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", l.tp, err)
}

// poison marks the log as failed with its first cause and returns ErrLogFailed around it.
func (l *Log) poison(cause error) error {
	err := fmt.Errorf("%s: %w: %w", l.tp, ErrLogFailed, cause)
	if l.failure.CompareAndSwap(nil, &err) {
		return err
	}
	return *l.failure.Load()
}

// Park gives up what an idle log holds: the reserved tail, map and descriptors. Its files are left as Close leaves
// them, and durable, because a closed descriptor no longer reports a failed write. The next use opens everything
// again. Owner only.
func (l *Log) Park() error {
	if err := l.usable(); err != nil {
		return err
	}
	if err := l.settle(); err != nil {
		return err
	}
	if err := l.active().rest(); err != nil {
		return l.poison(err)
	}
	return nil
}

// Close makes the log what a broker finds after an orderly stop: trimmed, durable, with the final time index entry
// and the producer snapshot of the log end. A failed log is only let go of, and Close returns its failure: the log
// directory must not be marked clean then. Checkpoints are the LogDir's. Owner only.
//
// Kafka: UnifiedLog.close.
func (l *Log) Close() error {
	if l.closed {
		return nil
	}
	err := l.Failed()
	if err == nil {
		err = l.settle()
	}
	l.closed = true
	for _, s := range l.list() {
		err = errors.Join(err, s.letGo())
		if n := s.leaked(); n > 0 {
			err = errors.Join(err, l.wrap(fmt.Errorf("%d slices of segment %d were not released", n, s.base)))
		}
	}
	l.onClose(err)
	return err
}

// settle brings the files to what an orderly stop leaves, durably. Nothing is done where they are that already.
func (l *Log) settle() error {
	if l.settled {
		return nil
	}
	s, err := l.writable() // for the running values of the final time entry
	if err != nil {
		return err
	}
	if err := l.dropTail(); err != nil {
		return err
	}
	x, err := s.index(l.cfg.indexMax())
	if err == nil {
		err = errors.Join(s.finalTime(x), x.write())
	}
	if err == nil {
		err = errors.Join(l.writeSnapshot(l.logEnd.Load()), l.writeDigests())
	}
	if err == nil {
		err = l.flushNow()
	}
	if err == nil {
		err = l.removeOldSnapshots()
	}
	if err != nil {
		return l.poison(err)
	}
	l.settled = true
	return nil
}

// letGo closes whatever the segment holds, without writing to the .log file.
func (s *Segment) letGo() error {
	err := s.tail.unmap()
	s.tail = tailMap{}
	s.mu.Lock()
	x := s.indexes
	s.indexes = nil
	s.mu.Unlock()
	if x != nil {
		err = errors.Join(err, x.offsets.Close(), x.times.Close(), x.txns.Close())
	}
	return errors.Join(err, s.unpin())
}

// rest trims the segment to its published size and closes what it holds.
func (s *Segment) rest() error {
	if err := s.trim(); err != nil {
		return err
	}
	s.mu.Lock()
	x := s.indexes
	s.mu.Unlock()
	if x != nil {
		if err := x.park(); err != nil {
			return err
		}
	}
	return s.unpin()
}

// trim cuts the file to the published size and drops the map.
func (s *Segment) trim() error {
	if s.tail.file == nil {
		return nil
	}
	f, reserved := s.tail.file, s.tail.reserved
	if err := s.tail.unmap(); err != nil {
		return err
	}
	s.tail = tailMap{}
	if size := s.size.Load(); reserved > size {
		return f.Truncate(size)
	}
	return nil
}
