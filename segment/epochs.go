package segment

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// epochs is the two histories of a mirrored log: that of the bytes on disk, which a broker goes by, and that of the
// source, by which divergence is found. Under EpochPreserve they hold the same entries.
//
// Only an epoch above the newest known one is entered, on append as in recovery; into the source's none where those are
// announced. Owner only; queries go to the caches.
type epochs struct {
	local    *LeaderEpochCache
	source   *LeaderEpochCache
	policy   EpochPolicy
	constant int32 // what EpochRebase stamps
	// newest entered, so that the usual batch costs two comparisons
	latestLocal  int32
	latestSource int32
	announced    bool
}

// openEpochs reads both files of dir. lost says that the log's own is absent or unreadable, and why.
func openEpochs(dir string, policy EpochPolicy) (e *epochs, lost error, err error) {
	e = &epochs{policy: policy}
	path := filepath.Join(dir, epochFileName)
	_, lost = os.Stat(path)
	e.local, _, err = OpenLeaderEpochCache(path)
	if errors.Is(err, ErrCorruptCheckpoint) {
		e.local, lost, err = NewLeaderEpochCache(path), err, nil
	}
	if err != nil {
		return nil, nil, err
	}
	path = filepath.Join(dir, sourceEpochFileName)
	e.source, _, err = OpenLeaderEpochCache(path)
	if errors.Is(err, ErrCorruptCheckpoint) {
		lost = errors.Join(lost, err)
		e.source, err = NewLeaderEpochCache(path), nil
	}
	if err != nil {
		return nil, nil, err
	}
	e.refresh()
	e.constant = max(e.latestLocal, 0)
	return e, lost, nil
}

// refresh reloads the newest entries after a change other than take's.
func (e *epochs) refresh() {
	local, _ := e.local.Latest()
	source, _ := e.source.Latest()
	e.latestLocal, e.latestSource = local.Epoch, source.Epoch
	e.announced = e.source.history.Load().announced
}

// bound says that the source is known.
func (e *epochs) bound() bool {
	_, ok := e.source.Source()
	return ok
}

// take enters the epoch of a batch that begins at base and returns the epoch its bytes are to carry.
//
// What the batches tell becomes durable with them, at the next sync: of what lies behind the recovery point, recovery
// reads the epochs off the batches. But once a batch is stamped, its own epoch is known nowhere else: under EpochRebase
// the source's history comes first, durably.
func (e *epochs) take(epoch int32, base int64) (stamp int32, err error) {
	if epoch > e.latestSource && !e.announced {
		assign := e.source.AssignLater
		if e.policy == EpochRebase {
			assign = e.source.Assign
		}
		if err := assign(epoch, base); err != nil {
			return 0, err
		}
		e.latestSource = epoch
	}
	stamp = epoch
	if e.policy == EpochRebase {
		stamp = e.constant
	}
	if stamp > e.latestLocal {
		if err := e.local.AssignLater(stamp, base); err != nil {
			return 0, err
		}
		e.latestLocal = stamp
	}
	return stamp, nil
}

// sync makes what take entered durable. The owner, or one goroutine beside it.
func (e *epochs) sync() error { return errors.Join(e.source.Sync(), e.local.Sync()) }

// retake is take in recovery, of a batch of offsets base to last, which may carry the source's epoch or be stamped.
//
// What lies below the binding is left as it is. A batch with the constant counts as stamped once the source has a
// history, for a stamped one's epoch is in it already: to miss an epoch costs a refetch of where it began, to claim one
// that the source never had could cost the log.
func (e *epochs) retake(epoch int32, base, last int64) (stamp int32, err error) {
	h := e.source.history.Load()
	if h.source == nil || last < h.from {
		if epoch > e.latestLocal {
			if err := e.local.Assign(epoch, base); err != nil {
				return 0, err
			}
			e.latestLocal = epoch
		}
		return epoch, nil
	}
	if e.policy == EpochRebase && epoch == e.constant && len(h.entries) > 0 {
		epoch = UndefinedEpoch
	}
	return e.take(epoch, base)
}

func (e *epochs) truncateFromEnd(offset int64) error {
	defer e.refresh()
	return errors.Join(e.local.TruncateFromEnd(offset), e.source.TruncateFromEnd(offset))
}

func (e *epochs) truncateFromStart(offset int64) error {
	defer e.refresh()
	return errors.Join(e.local.TruncateFromStart(offset), e.source.TruncateFromStart(offset))
}

func (e *epochs) clear() error {
	defer e.refresh()
	return errors.Join(e.local.Clear(), e.source.Clear())
}

// cutEpochs drops the epochs that begin at or above end. The history is only kept from the log start on: where that
// leaves none of it to the batches below, it is read from them.
func (l *Log) cutEpochs(end int64) error {
	if err := l.epochs.truncateFromEnd(end); err != nil {
		return err
	}
	if _, known := l.epochs.local.Latest(); known {
		return nil
	}
	return l.rebuildLocal()
}

// findConstant reads what EpochRebase stamps off the batches, where the file that tells it is lost: the newest epoch of
// before the binding. A batch of after may not be stamped yet; where none of before is left, it is 0.
func (ld *loader) findConstant() error {
	e := ld.l.epochs
	if ld.epochsLost == nil || e.policy != EpochRebase {
		return nil
	}
	from := e.source.history.Load().from
	for _, s := range ld.list {
		err := s.eachHead(s.base, func(m *batchMeta, _ Batch) error {
			if e.bound() && m.LastOffset >= from {
				return io.EOF
			}
			e.constant = max(e.constant, m.epoch)
			return nil
		})
		if err != nil {
			if isDamage(err) {
				return nil // the scan to come finds it
			}
			return err
		}
	}
	return nil
}

// rebuildLocal enters what the batches of the log carry, for a file that was lost.
func (l *Log) rebuildLocal() error {
	var entries []EpochEntry
	latest := UndefinedEpoch
	for _, s := range l.list() {
		err := s.eachHead(s.base, func(m *batchMeta, _ Batch) error {
			if m.epoch > latest {
				latest = m.epoch
				entries = append(entries, EpochEntry{Epoch: m.epoch, StartOffset: m.BaseOffset})
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("segment %d: rebuilding epochs: %w", s.base, err)
		}
	}
	defer l.epochs.refresh()
	if len(entries) == 0 {
		return nil
	}
	return l.epochs.local.Replace(entries)
}

// eachHead calls fn for every batch of the published bytes; head is its header, valid during the call.
func (s *Segment) eachHead(from int64, fn func(m *batchMeta, head Batch) error) error {
	size := s.size.Load()
	if size == 0 {
		return nil
	}
	f, err := s.acquire()
	if err != nil {
		return err
	}
	scan := newHeadScanner(f, 0, size)
	defer scan.close()
	m, err := s.scanTo(scan, from)
	for err == nil {
		if err = fn(m, scan.head); err == nil {
			m, err = scan.next()
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, f.release())
}

// Bind says which source the log is a copy of; its epochs are entered under that name from then on. ErrSourceMismatch
// names the other source a log is bound to already: Rebind leaves it. Owner only.
func (l *Log) Bind(id SourceID) error {
	if err := l.usable(); err != nil {
		return err
	}
	if bound, ok := l.epochs.source.Source(); ok && bound != id {
		return l.wrap(fmt.Errorf("%w: bound to topic %s of cluster %s, not %s of %s",
			ErrSourceMismatch, bound.TopicID, bound.ClusterID, id.TopicID, id.ClusterID))
	}
	if err := l.epochs.source.SetSource(id, l.logEnd.Load()); err != nil {
		return l.wrap(err)
	}
	l.epochs.refresh()
	return l.wrap(l.openDigests())
}

// Rebind binds the log to another source and forgets the epochs of the one before: they cannot be compared. Owner only.
func (l *Log) Rebind(id SourceID) error {
	if err := l.usable(); err != nil {
		return err
	}
	if err := l.epochs.source.SetSource(id, l.logEnd.Load()); err != nil {
		return l.wrap(err)
	}
	l.epochs.refresh()
	return l.wrap(l.openDigests())
}

// Source is what the log is bound to. Any goroutine.
func (l *Log) Source() (SourceID, bool) { return l.epochs.source.Source() }

// LatestEpoch is the newest leader epoch of the bytes on disk. Any goroutine.
func (l *Log) LatestEpoch() (int32, bool) {
	e, ok := l.epochs.local.Latest()
	return e.Epoch, ok
}

// LatestSourceEpoch is the source's newest leader epoch in this log. Any goroutine.
func (l *Log) LatestSourceEpoch() (int32, bool) {
	e, ok := l.epochs.source.Latest()
	return e.Epoch, ok
}

// EpochEntries is the history of the bytes on disk. The slice is the caller's. Any goroutine.
func (l *Log) EpochEntries() []EpochEntry { return l.epochs.local.Entries() }

// SourceEpochEntries is the source's history as far as this log has it. The slice is the caller's. Any goroutine.
func (l *Log) SourceEpochEntries() []EpochEntry { return l.epochs.source.Entries() }

// EndOffsetFor answers by the epochs of the bytes on disk; see LeaderEpochCache.EndOffsetFor. Any goroutine.
func (l *Log) EndOffsetFor(epoch int32) (int32, int64) {
	return l.epochs.local.EndOffsetFor(epoch, l.logEnd.Load())
}

// SourceEndOffsetFor answers by the source's epochs; see LeaderEpochCache.EndOffsetFor. Any goroutine.
func (l *Log) SourceEndOffsetFor(epoch int32) (int32, int64) {
	return l.epochs.source.EndOffsetFor(epoch, l.logEnd.Load())
}

// ReplaceSourceEpochs makes entries, as the source told them, the source's history. Owner only.
func (l *Log) ReplaceSourceEpochs(entries []EpochEntry) error {
	if err := l.usable(); err != nil {
		return err
	}
	defer l.epochs.refresh()
	return l.wrap(l.epochs.source.Replace(entries))
}
