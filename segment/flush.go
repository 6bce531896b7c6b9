package segment

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"segmirror/psm"
)

// Flush makes everything published so far durable, .log files before indexes before snapshots, and returns the
// offset up to which that holds. It does not move the recovery point: MarkFlushed does.
//
// A failed sync poisons the log: it is never tried again on the same file. Segments that are deleted meanwhile are no
// error. The owner, or one goroutine beside it. Kafka: UnifiedLog.flush.
func (l *Log) Flush() (int64, error) {
	if err := l.Failed(); err != nil {
		return 0, err
	}
	var mark flushMark
	for again := true; again; {
		mark = flushMark{truncations: l.truncations.Load(), offset: l.logEnd.Load()}
		err := l.epochs.sync() // after the end was read: every batch below it has its epoch entered
		if err != nil {
			return 0, l.poison(err)
		}
		if again, err = l.flushSegments(mark); err != nil {
			return 0, l.poison(err)
		}
	}
	l.mu.Lock()
	snapshots := l.snapshots
	l.snapshots = nil
	l.mu.Unlock()
	for _, offset := range snapshots {
		if err := psm.SyncSnapshot(l.dir, offset); err != nil {
			return 0, l.poison(err)
		}
	}
	l.mu.Lock()
	l.flushed = mark
	l.mu.Unlock()
	return mark.offset, nil
}

// flushSegments syncs every segment that is not durable yet; again says that a truncation came between.
func (l *Log) flushSegments(mark flushMark) (again bool, err error) {
	seen := l.segments.Load()
	list := *seen
	last := len(list) - 1
	first := last
	for first > 0 && !list[first-1].synced.Load() {
		first--
	}
	for i := first; i <= last; i++ {
		s := list[i]
		f, err := s.acquire()
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, err
		}
		// A truncation that begins from here on waits for the release; what it cut earlier is not ours to touch.
		if l.truncations.Load() != mark.truncations {
			return true, f.release()
		}
		if err := errors.Join(s.flush(f, i == last), f.release()); err != nil {
			return false, err
		}
	}
	// Bytes in a file that nobody finds again are not durable.
	_, err = os.Stat(list.last().logPath())
	emptying := l.emptying.Load()
	if again = l.truncations.Load() != mark.truncations; again || emptying || l.segments.Load() != seen {
		return again, nil
	}
	return false, err
}

// flush syncs one segment's files. A sealed one is let go of: nothing will be written to it again.
func (s *Segment) flush(f file, active bool) error {
	if err := f.Sync(); err != nil {
		return err
	}
	s.mu.Lock()
	x := s.indexes
	s.mu.Unlock()
	if x != nil {
		if err := x.sync(); err != nil {
			return err
		}
	}
	if active {
		return nil
	}
	s.synced.Store(true)
	return s.unpin()
}

// MarkFlushed moves the recovery point to offset, which Flush returned, unless the log was truncated since that flush
// began. Owner only. Kafka: LocalLog.markFlushed.
func (l *Log) MarkFlushed(offset int64) {
	l.mu.Lock()
	mark := l.flushed
	l.mu.Unlock()
	if mark.truncations != l.truncations.Load() || offset > mark.offset {
		return
	}
	l.recoveryPoint.Store(max(l.recoveryPoint.Load(), min(offset, l.logEnd.Load())))
}

// flushNow flushes and moves the recovery point, on the owner's goroutine.
func (l *Log) flushNow() error {
	offset, err := l.Flush()
	if err != nil {
		return err
	}
	l.MarkFlushed(offset)
	return nil
}

// isDiskFull says that a system call lacked room.
func isDiskFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}
