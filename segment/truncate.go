package segment

import (
	"errors"
	"fmt"
	"slices"

	"segmirror/psm"
)

// TruncateInfo says what a truncation took away.
type TruncateInfo struct {
	From, To int64 // log end offset before and after
	Bytes    int64 // of batches that went
	Segments int   // whole segments that went
}

// TruncateTo cuts the log so that nothing at or above offset is left. A batch that holds offset goes whole; the new
// log end is the offset after the last batch that stays, as a reopen would find it, so never above offset. At or above
// the log end only leader epochs without records go; below the first segment it is TruncateFullyAndStartAt.
//
// The lowered recovery point is durable before anything is cut, and the cut before the next append. Waits for readers
// of the cut bytes to release them. Owner only. Kafka: UnifiedLog.truncateTo, which leaves the end at offset.
func (l *Log) TruncateTo(offset int64) (TruncateInfo, error) {
	if err := l.usable(); err != nil {
		return TruncateInfo{}, err
	}
	end := l.logEnd.Load()
	info := TruncateInfo{From: end, To: end}
	if offset >= end {
		return info, l.failIf(l.cutEpochs(end))
	}
	list := l.list()
	if offset <= list.first().base {
		return l.TruncateFullyAndStartAt(offset)
	}
	if err := l.dropTail(); err != nil {
		return info, err
	}
	i := list.floor(offset)
	cut, err := l.findCut(list[i], offset)
	if err != nil {
		return info, l.wrap(err)
	}
	info.To = cut.end
	info.Segments = len(list) - i - 1
	info.Bytes = list[i].size.Load() - cut.pos
	for _, s := range list[i+1:] {
		info.Bytes += s.size.Load()
	}
	if err := l.lower(cut.end, min(l.logStart.Load(), cut.end), list[:i+1], cut.pos); err != nil {
		return info, err
	}
	return info, l.cutDone(l.cutFiles(list, i, cut))
}

// cutPoint is where a segment is cut, and the log end that is left.
type cutPoint struct {
	pos int64
	end int64
}

// findCut finds where the segment has to end for nothing at or above offset to be left. The log end is then what a
// reopen finds: the offset after the last batch that stays, or the segment's base.
func (l *Log) findCut(s *Segment, offset int64) (cutPoint, error) {
	cut := cutPoint{pos: s.size.Load(), end: s.base}
	f, err := s.acquire()
	if err != nil {
		return cut, err
	}
	scan := newHeadScanner(f, 0, s.size.Load())
	defer scan.close()
	m, err := s.scanTo(scan, offset)
	if err == nil {
		cut.pos = m.pos
	}
	if err = ignoreEnd(err); err == nil && cut.pos > 0 {
		scan.seek(0)
		if e, ok := s.lastEntryBefore(cut.pos, offset); ok {
			scan.seek(e.Pos)
		}
		for err == nil && scan.pos < cut.pos {
			if m, err = scan.next(); err == nil {
				cut.end = m.LastOffset + 1
			}
		}
	}
	return cut, errors.Join(err, f.release())
}

// lower publishes the lower end to readers, makes the lowered recovery point durable and waits for readers to go.
func (l *Log) lower(end, start int64, keep segmentList, pos int64) error {
	gone := l.list()[len(keep)-1:]
	l.settled = false
	l.cuts.Add(1)
	l.truncations.Add(1)
	l.highWatermark.Store(min(l.highWatermark.Load(), end))
	l.lastStable.Store(min(l.lastStable.Load(), end))
	l.logEnd.Store(end)
	l.logStart.Store(start)
	l.recoveryPoint.Store(min(l.recoveryPoint.Load(), end))
	keep.last().size.Store(pos)
	l.setList(slices.Clone(keep))
	l.truncations.Add(1) // for who began between the two and saw some of the old values
	l.next = end
	if err := l.persist(); err != nil {
		return l.poison(fmt.Errorf("persisting the recovery point before a truncation: %w", err))
	}
	for _, s := range gone {
		s.drain()
	}
	return nil
}

// cutFiles removes the segments behind list[i], the last first, cuts that one, and brings epochs and producer state
// back to the new end.
func (l *Log) cutFiles(list segmentList, i int, cut cutPoint) error {
	// Digests of what is cut must not outlive it: what comes in its place may end at the same offset.
	if l.digests != nil {
		l.digests.TruncateTo(cut.end)
		if err := l.writeDigests(); err != nil {
			return err
		}
	}
	for _, s := range slices.Backward(list[i+1:]) {
		if err := s.remove(); err != nil {
			return err
		}
	}
	if err := syncDir(l.dir); err != nil {
		return err
	}
	if err := l.cutSegment(list[i], cut); err != nil {
		return err
	}
	if err := l.cutEpochs(cut.end); err != nil {
		return err
	}
	if _, err := l.reloadProducers(cut.end); err != nil {
		return err
	}
	if err := errors.Join(l.writeSnapshot(cut.end), l.feedDigests()); err != nil {
		return err
	}
	l.updateLastStable()
	return nil
}

// cutSegment cuts one segment's files and makes that durable.
func (l *Log) cutSegment(s *Segment, cut cutPoint) error {
	f, err := s.pin(false)
	if err != nil {
		return err
	}
	x, err := s.index(l.cfg.indexMax())
	if err != nil {
		return err
	}
	err = errors.Join(x.offsets.TruncateTo(cut.end), x.times.TruncateTo(cut.end), x.txns.TruncateTo(cut.end))
	if err != nil {
		return err
	}
	if err := f.Truncate(cut.pos); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	s.next = cut.end
	s.synced.Store(false)
	if err := errors.Join(s.tail.unmap(), x.write(), x.sync()); err != nil {
		return err
	}
	s.tail = tailMap{}
	return nil
}

// TruncateFullyAndStartAt removes everything and lets the log begin anew, empty, at offset: log start, log end, high
// watermark and recovery point are offset then, and no leader epoch or producer is known. Owner only.
//
// Kafka: UnifiedLog.truncateFullyAndStartAt.
func (l *Log) TruncateFullyAndStartAt(offset int64) (TruncateInfo, error) {
	if err := l.usable(); err != nil {
		return TruncateInfo{}, err
	}
	if offset < 0 {
		return TruncateInfo{}, l.wrap(fmt.Errorf("%w: %d", ErrOffsetOutOfRange, offset))
	}
	if err := l.dropTail(); err != nil {
		return TruncateInfo{}, err
	}
	list := l.list()
	info := TruncateInfo{From: l.logEnd.Load(), To: offset, Bytes: list.bytes(), Segments: len(list)}
	first := list.first()
	if err := l.lower(min(first.base, offset), offset, list[:1], 0); err != nil {
		return info, err
	}
	return info, l.cutDone(l.startAnew(list, offset))
}

// startAnew removes every file and creates the first segment at offset. The highest go first, so that a crash leaves
// a prefix.
func (l *Log) startAnew(list segmentList, offset int64) error {
	if l.digests != nil {
		l.digests.Restart(offset)
		if err := l.writeDigests(); err != nil {
			return err
		}
	}
	l.emptying.Store(true)
	defer l.emptying.Store(false)
	for _, s := range slices.Backward(list) {
		if err := s.remove(); err != nil {
			return err
		}
	}
	offsets, err := psm.ListSnapshots(l.dir)
	if err != nil {
		return err
	}
	for _, o := range offsets {
		if err := psm.RemoveSnapshot(l.dir, o); err != nil {
			return err
		}
	}
	if err := l.epochs.clear(); err != nil {
		return err
	}
	s := newSegment(l.dir, offset, l.cfg.open)
	if err := s.create(&l.cfg, 0); err != nil {
		return err
	}
	if err := syncDir(l.dir); err != nil {
		return err
	}
	l.setList(segmentList{s})
	l.psm.Clear()
	l.psm.SetMapEndOffset(offset)
	l.next = offset
	l.logStart.Store(offset)
	l.logEnd.Store(offset)
	l.highWatermark.Store(offset)
	l.lastStable.Store(offset)
	l.recoveryPoint.Store(offset)
	return l.persist()
}

// cutDone ends what lower began.
func (l *Log) cutDone(err error) error {
	err = l.failIf(err)
	l.cuts.Add(1)
	return err
}

// failIf poisons the log with err, which came after something was changed.
func (l *Log) failIf(err error) error {
	if err == nil {
		return nil
	}
	return l.poison(err)
}
