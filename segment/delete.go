package segment

import (
	"errors"
	"fmt"

	"segmirror/psm"
)

// Removed is one segment that is gone because the log start passed it.
type Removed struct {
	Base  int64
	Next  int64 // offset after it
	Bytes int64
}

// AdvanceLogStart moves the log start up to offset, which is at most the log end, and removes the segments that lie
// wholly below it; the active one stays. What is kept below the log start is durable, and the new log start is, before
// anything is removed. A lower offset changes nothing. Readers that hold a removed segment keep it until they release
// it. Owner only. Kafka: UnifiedLog.maybeIncrementLogStartOffset, deleteOldSegments.
func (l *Log) AdvanceLogStart(offset int64) ([]Removed, error) {
	if err := l.usable(); err != nil {
		return nil, err
	}
	if end := l.logEnd.Load(); offset > end {
		return nil, l.wrap(fmt.Errorf("%w: log start %d is above the log end %d", ErrOffsetOutOfRange, offset, end))
	}
	if offset <= l.logStart.Load() {
		return nil, nil
	}
	if offset > l.recoveryPoint.Load() {
		if err := l.flushNow(); err != nil {
			return nil, err
		}
	}
	l.logStart.Store(offset)
	l.UpdateHighWatermark(l.highWatermark.Load())
	if err := l.persist(); err != nil {
		return nil, l.poison(err)
	}
	if err := l.epochs.truncateFromStart(offset); err != nil {
		return nil, l.poison(err)
	}
	removed, err := l.removeBelow(offset)
	if err != nil {
		return removed, l.poison(err)
	}
	return removed, nil
}

// removeBelow removes leading segments whose successor's base is at or below offset.
func (l *Log) removeBelow(offset int64) ([]Removed, error) {
	list := l.list()
	var removed []Removed
	for len(list) > 1 && list[1].base <= offset {
		s := list.first()
		list = list[1:]
		l.setList(list)
		removed = append(removed, Removed{Base: s.base, Next: list.first().base, Bytes: s.size.Load()})
		if err := errors.Join(s.remove(), psm.RemoveSnapshot(l.dir, s.base)); err != nil {
			return removed, err
		}
	}
	if len(removed) == 0 {
		return nil, nil
	}
	return removed, syncDir(l.dir)
}
