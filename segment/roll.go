package segment

import (
	"errors"
	"os"

	"segmirror/psm"
)

// Roll seals the active segment and opens an empty one at the log end; nothing happens when the active one is empty.
// Owner only. Kafka: UnifiedLog.roll.
func (l *Log) Roll() error {
	s, err := l.writable()
	if err != nil {
		return err
	}
	if s.size.Load() == 0 {
		return nil
	}
	return l.roll(l.next, 0)
}

// roll opens a segment at base, moves the staged bytes behind the published end into it, and seals the old one.
//
// All that needs room comes first, so that a full disk leaves the log as it was. Bytes move before the old file is
// trimmed: a crash between the two leaves them in both, and recovery takes the first.
func (l *Log) roll(base, staged int64) error {
	old := l.active()
	s, err := l.startSegment(old, base, staged)
	if err != nil {
		return err
	}
	if err := errors.Join(l.seal(old), l.writeDigests()); err != nil {
		return l.poison(err)
	}
	if err := syncDir(l.dir); err != nil {
		return l.poison(err)
	}
	if base > l.next {
		// Only a boundary that is durable may have a gap: recovery takes any other for lost data. The sealed segment is
		// trusted from here on, its final entries included.
		if err := l.flushNow(); err != nil {
			return err
		}
		l.recoveryPoint.Store(base)
		if err := l.persist(); err != nil {
			return l.poison(err)
		}
	}
	l.setList(l.list().with(s))
	return nil
}

// startSegment writes the producer snapshot of base and opens the segment with the staged bytes of old in it.
// ErrNoSpace has undone everything.
func (l *Log) startSegment(old *Segment, base, staged int64) (*Segment, error) {
	s := newSegment(l.dir, base, l.cfg.open)
	l.expireProducers(old.maxMs)
	err := l.writeSnapshot(base)
	if err == nil {
		err = s.create(&l.cfg, staged)
	}
	if err == nil && staged > 0 {
		pos := old.size.Load()
		err = guarded(old.tail.b[pos:pos+staged], func(b []byte) error {
			copy(s.tail.b, b)
			return nil
		})
	}
	if err == nil {
		return s, nil
	}
	noSpace := isNoSpace(err)
	undo := errors.Join(s.remove(), psm.RemoveSnapshot(l.dir, base))
	l.psm.SetMapEndOffset(l.next)
	if noSpace && undo == nil {
		return nil, l.wrap(errors.Join(ErrNoSpace, err))
	}
	return nil, l.poison(errors.Join(err, undo))
}

// create makes the segment's files, whatever was there under their names, and reserves room for n bytes.
func (s *Segment) create(cfg *Config, n int64) error {
	if err := os.Remove(s.logPath()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := s.pin(true)
	if err != nil {
		return err
	}
	if _, err := s.resetIndexes(cfg.indexMax()); err != nil {
		return err
	}
	s.openedMs = nowMs()
	s.tail = tailMap{file: f}
	return s.tail.reserve(n, int64(cfg.SegmentBytes))
}

// seal ends a segment: final time index entry, indexes written, .log trimmed. It stays open until it is durable.
func (l *Log) seal(s *Segment) error {
	x, err := s.index(l.cfg.indexMax())
	if err != nil {
		return err
	}
	if err := s.finalTime(x); err != nil {
		return err
	}
	if err := x.park(); err != nil {
		return err
	}
	return s.trim()
}

// restart replaces the one, empty segment by an empty one at base, with the staged bytes in it: the first batch
// begins before the offset the log was to start at. The log start stays.
func (l *Log) restart(base, staged int64) error {
	old := l.active()
	s, err := l.startSegment(old, base, staged)
	if err != nil {
		return err
	}
	l.setList(segmentList{s})
	if err := errors.Join(old.remove(), psm.RemoveSnapshot(l.dir, base), syncDir(l.dir)); err != nil {
		return l.poison(err)
	}
	l.next = base
	if l.digests != nil {
		l.digests.Restart(base)
	}
	return nil
}

// writable returns the active segment ready for appends: open, trimmed to what is published, its indexes as a
// rebuild would have them while the segment is active.
func (l *Log) writable() (*Segment, error) {
	if err := l.usable(); err != nil {
		return nil, err
	}
	s := l.active()
	if s.tail.file != nil && !l.settled {
		return s, nil
	}
	l.settled = false
	if err := l.activate(s); err != nil {
		return nil, l.poison(err)
	}
	return s, nil
}

func (l *Log) activate(s *Segment) error {
	if l.lowered {
		if err := l.persist(); err != nil {
			return err
		}
		l.lowered = false
	}
	f, err := s.pin(false)
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err != nil {
		return err
	}
	if published := s.size.Load(); size != published {
		if err := f.Truncate(published); err != nil {
			return err
		}
	}
	x, err := s.index(l.cfg.indexMax())
	if err != nil {
		return err
	}
	x.offsets.SetMaxBytes(l.cfg.indexMax())
	x.times.SetMaxBytes(l.cfg.indexMax())
	if err := s.dropFinalTime(x); err != nil {
		return err
	}
	if err := s.loadTimes(f, x); err != nil {
		return err
	}
	s.synced.Store(false)
	s.openedMs = nowMs()
	s.tail = tailMap{file: f, reserved: s.size.Load()}
	return nil
}

// loadTimes finds the segment's first and largest timestamps: from the time index, and the batches behind the last
// entry of the offset index.
func (s *Segment) loadTimes(f file, x *indexSet) error {
	s.firstMs, s.maxMs, s.maxAt = noTimestamp, noTimestamp, s.base
	size := s.size.Load()
	if size == 0 {
		return nil
	}
	scan := newHeadScanner(f, 0, size)
	defer scan.close()
	m, err := scan.next()
	if err != nil {
		return err
	}
	s.firstMs = m.MaxTimestampMs
	if t, ok := x.times.Last(); ok {
		s.maxMs, s.maxAt = t.TimestampMs, t.Offset
	}
	last, _ := x.offsets.Last()
	scan.seek(last.Pos)
	for {
		m, err := scan.next()
		if err != nil {
			return ignoreEnd(err)
		}
		if m.MaxTimestampMs > s.maxMs {
			s.maxMs, s.maxAt = m.MaxTimestampMs, m.LastOffset
		}
	}
}

// dropTail zeroes nothing: it cuts the active file to its published size, which does away with every byte beyond.
func (l *Log) dropTail() error {
	l.lent = 0
	s := l.active()
	if s.tail.file == nil {
		return nil
	}
	f := s.tail.file
	if err := s.trim(); err != nil {
		return l.poison(err)
	}
	s.tail = tailMap{file: f, reserved: s.size.Load()}
	return nil
}

// expireProducers forgets, where a segment ends, the producers that are idle by that segment's largest timestamp.
// Every roll does, and so do recovery, reload and Check where they pass the same place: the state stays what a replay
// from zero makes it, and bounded by the producers of a day.
func (l *Log) expireProducers(newestMs int64) { l.psm.Expire(newestMs, l.cfg.ProducerExpiryMs) }

// writeSnapshot writes the producer state as of offset; Flush makes it durable.
func (l *Log) writeSnapshot(offset int64) error {
	l.psm.SetMapEndOffset(offset)
	if err := psm.WriteSnapshot(l.dir, offset, l.psm.Entries(), false); err != nil {
		return err
	}
	l.mu.Lock()
	l.snapshots = append(l.snapshots, offset)
	l.mu.Unlock()
	return nil
}

// removeOldSnapshots keeps the snapshots that a reopen or a truncation can use.
func (l *Log) removeOldSnapshots() error { return psm.RemoveStray(l.dir, l.list().bases()) }

// isNoSpace says that room was lacking.
func isNoSpace(err error) bool { return errors.Is(err, ErrNoSpace) || isDiskFull(err) }
