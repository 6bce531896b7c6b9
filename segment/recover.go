package segment

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"segmirror/index"
	"segmirror/psm"
)

// RecoveryReport says what opening a log did.
type RecoveryReport struct {
	TopicPartition  TopicPartition
	Clean           bool     // the log was closed in order and looked like it
	SegmentsScanned int      // read in full: every CRC
	BytesScanned    int64    //
	Cuts            []Cut    // what is gone from the log, in the order it was found
	Rebuilt         []string // index files made anew, by name
	Notes           []string // anything else that was done
}

// Cut is one range of a .log file that recovery took out of the log.
type Cut struct {
	File      string // name of the .log file
	FromPos   int64
	ToPos     int64 // exclusive
	Offset    int64 // the log offset expected there
	Why       error
	ZeroTail  bool   // nothing but zeros: room reserved and not used
	Kept      string // path of the copy, empty when none was made
	KeptBytes int64
}

// loader opens one log.
type loader struct {
	l      *Log
	p      openParams
	report RecoveryReport
	list   segmentList
	next   int64 // log end so far

	digestsLost bool  // the digests file was damaged
	epochsLost  error // why leader epochs could not be read
}

// openLog opens or creates the log of p, recovering what needs it. The report is right also beside an error.
//
// Kafka: LogLoader.load, UnifiedLog.create.
func openLog(p openParams) (*Log, RecoveryReport, error) {
	if p.cfg.open == nil {
		p.cfg.open = openOSFile
		if p.cfg.Private {
			p.cfg.open = openPrivateFile
		}
		if after := p.cfg.AfterSync; after != nil {
			p.cfg.open = openObserved(p.cfg.open, after)
		}
	}
	if p.persist == nil {
		p.persist = func() error { return nil }
	}
	if p.onClose == nil {
		p.onClose = func(error) {}
	}
	l := &Log{tp: p.tp, dir: p.path, persist: p.persist, onClose: p.onClose, cfg: p.cfg, psm: psm.New()}
	ld := loader{l: l, p: p, report: RecoveryReport{TopicPartition: p.tp, Clean: p.clean}}
	if err := errors.Join(p.cfg.Validate(), ld.load()); err != nil {
		for _, s := range ld.list {
			err = errors.Join(err, s.letGo())
		}
		return nil, ld.report, l.wrap(err)
	}
	return l, ld.report, nil
}

func (ld *loader) note(format string, args ...any) {
	ld.report.Notes = append(ld.report.Notes, fmt.Sprintf(format, args...))
}

func (ld *loader) load() error {
	if err := makeDir(ld.l.dir); err != nil {
		return err
	}
	if ld.p.cfg.Private {
		if err := os.Chmod(ld.l.dir, 0o700); err != nil {
			return err
		}
	}
	names, err := ld.sweep()
	if err != nil {
		return err
	}
	if ld.l.epochs, ld.epochsLost, err = openEpochs(ld.l.dir, ld.p.cfg.Policy); err != nil {
		return err
	}
	if err := ld.segments(names); err != nil {
		return err
	}
	if err := errors.Join(ld.findConstant(), ld.loadDigests()); err != nil {
		return err
	}
	first, err := ld.trusted(names)
	if err != nil {
		return err
	}
	if err := ld.recover(first); err != nil {
		return err
	}
	return ld.finish(first)
}

// makeDir makes a partition directory, durably.
func makeDir(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// segments describes the .log files; without one it creates the first at the log start.
func (ld *loader) segments(names []fileName) error {
	for _, f := range names {
		if f.kind != ".log" {
			continue
		}
		s := newSegment(ld.l.dir, f.offset, ld.l.cfg.open)
		info, err := os.Stat(s.logPath())
		if err != nil {
			return err
		}
		s.size.Store(info.Size())
		ld.list = append(ld.list, s)
	}
	if len(ld.list) > 0 {
		return nil
	}
	s := newSegment(ld.l.dir, ld.p.logStart, ld.l.cfg.open)
	// What comes may scan it like any other segment, and a log that is never written needs no descriptor.
	if err := errors.Join(s.create(&ld.l.cfg, 0), s.rest()); err != nil {
		return err
	}
	ld.list = segmentList{s}
	return syncDir(ld.l.dir)
}

// trusted looks at what is not to be recovered and returns the index of the first segment that is: the one that
// holds the recovery point after an unclean stop, or an earlier one whose end or index does not hold up.
func (ld *loader) trusted(names []fileName) (int, error) {
	last := len(ld.list) - 1
	first := len(ld.list)
	if !ld.p.clean {
		// The byte before the recovery point counts: where a segment begins at the point, the one before it may have been
		// sealed after the flush, and neither its trimmed end nor its last index entries be durable.
		first = max(ld.list.floor(ld.p.recoveryPoint-1), 0)
	}
	indexed := make(map[int64]int)
	for _, f := range names {
		if f.kind == ".index" || f.kind == ".timeindex" {
			indexed[f.offset]++
		}
	}
	for i, s := range ld.list[:min(first, last+1)] {
		switch {
		case s.size.Load() > 0 && indexed[s.base] < 2:
			ld.note("%s: index missing", filepath.Base(s.logPath()))
			return i, nil
		case ld.p.clean && i < last: // its size is what an orderly stop left
			s.synced.Store(true)
			continue
		}
		next, err := ld.checkEnd(s)
		if err != nil {
			if !isDamage(err) {
				return 0, err
			}
			ld.note("%s: %v", filepath.Base(s.logPath()), err)
			return i, nil
		}
		if i < last && next > ld.list[i+1].base {
			ld.note("%s: runs into the next segment", filepath.Base(s.logPath()))
			return i, nil
		}
		s.synced.Store(true)
		s.next, ld.next = next, next
	}
	return first, nil
}

// isDamage tells bytes that cannot be right from a failing disk.
func isDamage(err error) bool {
	for _, target := range []error{
		ErrCorruptBatch, ErrMalformedMarker, ErrOffsetsOutOfOrder, errPartial, index.ErrCorruptIndex, index.ErrUnknownVersion,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// checkEnd walks the batches behind the last index entry and returns the offset after the last one. They must end
// exactly at the file's end, and the batch that the entry names must be what it says.
func (ld *loader) checkEnd(s *Segment) (int64, error) {
	size := s.size.Load()
	if size == 0 {
		return s.base, nil
	}
	x, err := s.index(ld.l.cfg.indexMax())
	if err != nil {
		return 0, err
	}
	f, err := s.acquire()
	if err != nil {
		return 0, err
	}
	last, indexed := x.offsets.Last()
	scan := newHeadScanner(f, last.Pos, size)
	defer scan.close()
	next := s.base
	for {
		m, err := scan.next()
		if errors.Is(err, io.EOF) && (next > s.base || !indexed) {
			return next, f.release()
		}
		switch {
		case errors.Is(err, io.EOF):
			err = fmt.Errorf("%w: last entry points behind the end", index.ErrCorruptIndex)
		case err != nil:
		case indexed && m.pos == last.Pos && m.LastOffset != last.Offset:
			err = fmt.Errorf("%w: last entry says offset %d, its batch ends at %d",
				index.ErrCorruptIndex, last.Offset, m.LastOffset)
		case m.BaseOffset < next && m.magic >= 2 || m.LastOffset < next:
			err = fmt.Errorf("%w: %d to %d, expected %d", ErrOffsetsOutOfOrder, m.BaseOffset, m.LastOffset, next)
		case m.LastOffset-s.base > math.MaxInt32:
			err = fmt.Errorf("%w: offset %d does not fit a segment that starts at %d", ErrCorruptBatch, m.LastOffset, s.base)
		}
		if err != nil {
			return 0, errors.Join(err, f.release())
		}
		next = m.LastOffset + 1
	}
}

// recover scans list[first:] in full, by the rules of append, and cuts what does not hold.
func (ld *loader) recover(first int) error {
	if first >= len(ld.list) {
		return nil
	}
	ld.report.Clean = false
	base := ld.list[first].base
	ld.next = base
	offsets, err := psm.ListSnapshots(ld.l.dir)
	if err != nil {
		return err
	}
	for _, o := range offsets {
		if o > base {
			if err := psm.RemoveSnapshot(ld.l.dir, o); err != nil {
				return err
			}
		}
	}
	ld.l.setList(ld.list)
	if d := ld.l.digests; d != nil {
		d.TruncateTo(base)
	}
	if err := ld.producersTo(base); err != nil {
		return err
	}
	for i := first; i < len(ld.list); i++ {
		if i > first {
			ld.next = max(ld.next, ld.list[i].base) // an empty segment behind a gap ends the log at its base
			ld.l.expireProducers(ld.list[i-1].maxMs)
			if err := ld.l.writeSnapshot(ld.list[i].base); err != nil {
				return err
			}
		}
		if whole, err := ld.recoverSegment(i); err != nil || !whole {
			return err
		}
	}
	return nil
}

// producersTo loads the producer state as of offset.
func (ld *loader) producersTo(offset int64) error {
	bad, err := ld.l.reloadProducers(offset)
	for _, b := range bad {
		ld.note("producer snapshot not used: %v", b)
	}
	return err
}

// finish settles the offsets once the log end is known.
func (ld *loader) finish(first int) error {
	l := ld.l
	if ld.list.bytes() == 0 && ld.p.logStart > ld.next {
		if err := ld.beginAt(ld.p.logStart); err != nil {
			return err
		}
	}
	end := ld.next
	l.setList(ld.list)
	l.next = end
	l.psm.SetMapEndOffset(end)
	l.logEnd.Store(end)
	start := max(ld.p.logStart, ld.list.first().base)
	if start > end {
		ld.note("log start %d of the checkpoint lies behind the log end %d: not used", start, end)
		start = ld.list.first().base
	}
	l.logStart.Store(start)
	recoveryPoint := end
	if first < len(ld.list) || !ld.p.clean {
		recoveryPoint = min(ld.p.recoveryPoint, end)
	}
	l.recoveryPoint.Store(max(recoveryPoint, ld.list.first().base))
	l.lowered = l.recoveryPoint.Load() < ld.p.recoveryPoint
	if ld.epochsLost != nil && end > ld.list.first().base {
		if !errors.Is(ld.epochsLost, os.ErrNotExist) {
			ld.note("leader epochs rebuilt: %v", ld.epochsLost)
		}
		if err := l.rebuildLocal(); err != nil {
			return err
		}
	}
	if err := l.cutEpochs(end); err != nil {
		return err
	}
	if err := l.epochs.truncateFromStart(start); err != nil {
		return err
	}
	if first >= len(ld.list) {
		_, missing := os.Stat(filepath.Join(l.dir, psm.SnapshotName(end)))
		notes := len(ld.report.Notes)
		if err := ld.producersTo(end); err != nil {
			return err
		}
		l.settled = ld.p.clean && missing == nil && notes == len(ld.report.Notes)
	}
	if err := psm.RemoveStray(l.dir, ld.list.bases()); err != nil {
		return err
	}
	l.UpdateHighWatermark(ld.p.highWatermark)
	if err := l.feedDigests(); err != nil || !ld.digestsLost {
		return err
	}
	return l.writeDigests()
}

// beginAt lets a log that holds nothing begin at offset, where it was to start: a crash came while its first segment
// was being made. Kafka: LogLoader.recoverLog, which does so also where there are batches.
func (ld *loader) beginAt(offset int64) error {
	ld.note("an empty log: begins at its log start %d, not at %d", offset, ld.next)
	s := newSegment(ld.l.dir, offset, ld.l.cfg.open)
	if err := errors.Join(s.create(&ld.l.cfg, 0), s.rest()); err != nil {
		return err
	}
	for _, old := range slices.Backward(ld.list) {
		if err := old.remove(); err != nil {
			return err
		}
	}
	ld.list, ld.next = segmentList{s}, offset
	ld.l.psm.Clear()
	return syncDir(ld.l.dir)
}

// reloadProducers brings the producer state to end: the newest snapshot, and the batches behind it.
//
// Snapshots above end are removed. Kafka: UnifiedLog.rebuildProducerState, but that a log without any snapshot is
// read, not taken to have no producers.
func (l *Log) reloadProducers(end int64) (bad []error, err error) {
	list := l.list()
	base := list.first().base
	_, found, bad, err := l.psm.LoadNewest(l.dir, base-1, end)
	if err != nil {
		return bad, err
	}
	if !found {
		l.psm.SetMapEndOffset(base)
	}
	from := l.psm.MapEndOffset()
	for i := max(list.floor(from), 0); i < len(list) && list[i].base < end; i++ {
		if err := l.replay(list[i], from, end); err != nil {
			return bad, fmt.Errorf("segment %d: producer state: %w", list[i].base, err)
		}
		if i+1 < len(list) && list[i+1].base <= end {
			newestMs, err := l.largestTimestamp(list[i])
			if err != nil {
				return bad, fmt.Errorf("segment %d: producer state: %w", list[i].base, err)
			}
			l.expireProducers(newestMs)
		}
	}
	l.psm.SetMapEndOffset(end)
	return bad, nil
}

// largestTimestamp is that of a sealed segment, from the final entry of its time index; noTimestamp where it has none.
func (l *Log) largestTimestamp(s *Segment) (int64, error) {
	x, err := s.index(l.cfg.indexMax())
	if err != nil {
		return noTimestamp, err
	}
	last, ok := x.times.Last()
	if !ok {
		return noTimestamp, nil
	}
	return last.TimestampMs, nil
}

// replay applies the batches of one segment in [from, end) to the producer state.
func (l *Log) replay(s *Segment, from, end int64) error {
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
	for err == nil && m.LastOffset < end {
		if err = l.psm.Prepare(&m.Batch); err != nil {
			break
		}
		l.psm.Commit()
		m, err = scan.next()
	}
	return errors.Join(ignoreEnd(err), f.release())
}

// recoverSegment scans one segment, rebuilds its indexes, and cuts it where it stops being a log. whole is false when
// what follows it could no longer be its continuation, and is gone.
func (ld *loader) recoverSegment(i int) (whole bool, err error) {
	s := ld.list[i]
	ld.next = max(ld.next, s.base) // as for an empty last segment
	size := s.size.Load()
	nextBase := int64(math.MaxInt64)
	if i+1 < len(ld.list) {
		nextBase = ld.list[i+1].base
	}
	x, err := s.resetIndexes(math.MaxInt32)
	if err != nil {
		return false, err
	}
	f, err := s.pin(false)
	if err != nil {
		return false, err
	}
	r := rebuild{ld: ld, s: s, x: x, f: f, nextBase: nextBase}
	if err := viewFile(f, 0, size, r.scan); err != nil {
		return false, err
	}
	if err := errors.Join(s.finalTime(x), x.write()); err != nil {
		return false, err
	}
	name := filepath.Base(s.stem)
	ld.report.Rebuilt = append(ld.report.Rebuilt, name+".index", name+".timeindex")
	ld.report.SegmentsScanned++
	ld.report.BytesScanned += size
	return ld.cutTail(&r, i, size)
}

// cutTail takes what is behind the scan's end out of list[i], and judges whether the next segment continues it. What
// does not goes first: once the tail is cut, a boundary may look like one with a gap.
func (ld *loader) cutTail(r *rebuild, i int, size int64) (whole bool, err error) {
	s := r.s
	lastOne := r.nextBase == math.MaxInt64
	known := r.nextBase <= ld.p.recoveryPoint // durable before the stop: its boundary may have a gap
	whole = lastOne || known || ld.next == r.nextBase || r.why == nil && !ld.l.epochs.bound()
	if r.pos < size {
		cut := Cut{
			File: filepath.Base(s.logPath()), FromPos: r.pos, ToPos: size, Offset: ld.next, Why: r.why, ZeroTail: r.zeros,
		}
		if !r.zeros {
			whole = lastOne || ld.next == r.nextBase
			if err := ld.keep(&cut, s); err != nil {
				return false, err
			}
		}
		if !r.zeros || !lastOne {
			ld.report.Cuts = append(ld.report.Cuts, cut)
		}
	}
	if whole && !lastOne && !known && ld.next < r.nextBase {
		ld.note("%s: offsets %d to %d are not there, before the next segment: compacted away, or lost",
			filepath.Base(s.logPath()), ld.next, r.nextBase-1)
	}
	if !whole {
		if err := ld.dropFrom(i + 1); err != nil {
			return false, err
		}
	}
	if r.pos < size {
		if err := r.f.Truncate(r.pos); err != nil {
			return false, err
		}
		if !r.zeros { // what looked like batches must not come back after a power cut
			if err := r.f.Sync(); err != nil {
				return false, err
			}
		}
	}
	s.size.Store(r.pos)
	s.next = ld.next
	return whole, s.rest()
}
