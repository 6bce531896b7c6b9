package segment

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"segmirror/index"
	"segmirror/psm"
)

// Finding is one thing that is not as it should be in a partition directory.
type Finding struct {
	File   string // name of the file at fault
	Pos    int64  // byte position in it
	Offset int64  // log offset it concerns, -1 for none
	Text   string
}

// String is one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s: pos %d, offset %d: %s", f.File, f.Pos, f.Offset, f.Text)
}

// CheckDir compares a partition directory that nobody has open with what its .log files say: every batch, the indexes
// as a recovery would rebuild them with cfg's index interval, the leader epochs, and the producer snapshot of the log
// end. It reads only. An error is a file that could not be read.
func CheckDir(dir string, cfg Config) ([]Finding, error) {
	c := checker{dir: dir, cfg: cfg, psm: psm.New(), closed: true}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		f, ok, err := parseFileName(e.Name())
		if err != nil || ok && f.state != "" {
			c.find(e.Name(), 0, -1, "left over, or no name of a segment")
			continue
		}
		if ok && f.kind == logSuffix {
			info, err := e.Info()
			if err != nil {
				return nil, err
			}
			c.segments = append(c.segments, checked{base: f.offset, size: info.Size()})
		}
	}
	if len(c.segments) == 0 {
		c.find(filepath.Base(dir), 0, -1, "no segment")
		return c.findings, nil
	}
	if err := c.run(); err != nil {
		return c.findings, err
	}
	return c.findings, c.snapshot()
}

// Check compares an open log with its own files, as CheckDir does, and its offsets and producer state with them. It
// returns all findings as one error. Owner only.
func (l *Log) Check() error {
	if l.closed {
		return l.wrap(ErrLogClosed)
	}
	list := l.list()
	for _, s := range list {
		s.mu.Lock()
		x := s.indexes
		s.mu.Unlock()
		if x != nil {
			if err := x.write(); err != nil {
				return l.wrap(err)
			}
		}
	}
	if err := l.epochs.sync(); err != nil {
		return l.wrap(err)
	}
	c := checker{dir: l.dir, cfg: l.cfg, psm: psm.New(), closed: false, logStart: l.logStart.Load()}
	for _, s := range list {
		c.segments = append(c.segments, checked{base: s.base, size: s.size.Load()})
	}
	if err := c.run(); err != nil {
		return l.wrap(err)
	}
	c.offsets(l)
	c.compareProducers(l.psm.Entries(), "producer state")
	var errs []error
	for _, f := range c.findings {
		errs = append(errs, errors.New(f.String()))
	}
	return l.wrap(errors.Join(errs...))
}

// checked is one segment to check: its base and how many bytes count.
type checked struct{ base, size int64 }

// checker walks one directory.
type checker struct {
	dir      string
	cfg      Config
	closed   bool  // nobody appends: the last segment has its final time entry too
	logStart int64 // of an open log; a directory does not tell
	segments []checked
	findings []Finding

	psm      *psm.Manager // rebuilt while walking
	entire   bool         // psm began where the log began, or from a snapshot of that place
	epochs   []EpochEntry // as the batches say
	next     int64
	newestMs int64
}

func (c *checker) find(file string, pos, offset int64, format string, args ...any) {
	c.findings = append(c.findings, Finding{File: file, Pos: pos, Offset: offset, Text: fmt.Sprintf(format, args...)})
}

func (c *checker) run() error {
	base := c.segments[0].base
	c.next, c.newestMs, c.entire = base, noTimestamp, base == 0
	if entries, err := psm.ReadSnapshot(c.dir, base); err == nil && base > 0 {
		c.entire = c.psm.Load(entries, base) == nil
	}
	for i := range c.segments {
		if err := c.segment(i); err != nil {
			return err
		}
	}
	return c.compareEpochs()
}

// expected is what the indexes of one segment should hold.
type expected struct {
	offsets []index.OffsetPosition
	times   []index.TimestampOffset
	final   *index.TimestampOffset // the entry that the end of the segment's active life adds
	txns    []index.AbortedTxn
}

func (c *checker) segment(i int) error {
	s := c.segments[i]
	c.next = max(c.next, s.base)
	name := segmentFileName(s.base, logSuffix)
	f, err := openOSFile(filepath.Join(c.dir, name), false)
	if err != nil {
		return err
	}
	var want expected
	err = viewFile(f, 0, s.size, func(b []byte) error {
		want = c.walk(i, name, b)
		return nil
	})
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := c.compareOffsets(s.base, want.offsets); err != nil {
		return err
	}
	if err := c.compareTimes(s.base, &want, c.closed || i+1 < len(c.segments)); err != nil {
		return err
	}
	return c.compareTxns(s.base, want.txns)
}

// walk checks every batch of one file and says what the indexes should hold. After bytes that are no batch the rest
// of the file is not looked at.
func (c *checker) walk(i int, name string, b []byte) expected {
	s := c.segments[i]
	want := expected{}
	maxMs, maxAt, lastPos := int64(noTimestamp), s.base, int64(0)
	nextBase := int64(math.MaxInt64)
	if i+1 < len(c.segments) {
		nextBase = c.segments[i+1].base
	}
	var m batchMeta
	it := NewBatchIterator(b)
	for it.Next() {
		pos := int64(it.Pos())
		err := it.Batch().validate()
		if err == nil {
			err = m.read(it.Batch(), pos)
		}
		if err != nil {
			c.find(name, pos, c.next, "%v", err)
			return want
		}
		if m.BaseOffset < c.next || m.LastOffset >= nextBase || m.LastOffset-s.base > math.MaxInt32 {
			c.find(name, pos, m.BaseOffset, "offsets %d to %d, expected from %d and below %d",
				m.BaseOffset, m.LastOffset, c.next, nextBase)
		}
		c.batch(name, &m, &want)
		if m.MaxTimestampMs > maxMs {
			maxMs, maxAt = m.MaxTimestampMs, m.LastOffset
		}
		if pos-lastPos > int64(c.cfg.IndexIntervalBytes) {
			want.offsets = append(want.offsets, index.OffsetPosition{Offset: m.LastOffset, Pos: pos})
			want.times = appendTime(want.times, maxMs, maxAt)
			lastPos = pos
		}
		c.next = m.LastOffset + 1
		c.newestMs = max(c.newestMs, m.MaxTimestampMs)
	}
	if err := it.Err(); err != nil {
		c.find(name, int64(it.Pos()), c.next, "%v", err)
	} else if it.Pos() < len(b) {
		c.find(name, int64(it.Pos()), c.next, "%d bytes of a batch that is cut off", len(b)-it.Pos())
	}
	if nextBase < math.MaxInt64 {
		c.psm.Expire(maxMs, c.cfg.ProducerExpiryMs)
	}
	if withFinal := appendTime(want.times, maxMs, maxAt); len(withFinal) > len(want.times) {
		want.final = &withFinal[len(withFinal)-1]
	}
	return want
}

func appendTime(times []index.TimestampOffset, ms, offset int64) []index.TimestampOffset {
	if ms < 0 || len(times) > 0 && ms <= times[len(times)-1].TimestampMs {
		return times
	}
	return append(slices.Clip(times), index.TimestampOffset{TimestampMs: ms, Offset: offset})
}

// batch feeds producer state and epochs.
func (c *checker) batch(name string, m *batchMeta, want *expected) {
	if err := c.psm.Prepare(&m.Batch); err != nil {
		c.find(name, m.pos, m.BaseOffset, "%v", err)
	}
	for _, t := range c.psm.Completed() {
		if t.Aborted {
			want.txns = append(want.txns, index.AbortedTxn{
				ProducerID: t.ProducerID, FirstOffset: t.FirstOffset, LastOffset: t.LastOffset,
				LastStableOffset: t.LastStableOffset,
			})
		}
	}
	c.psm.Commit()
	if n := len(c.epochs); m.epoch >= 0 && (n == 0 || m.epoch > c.epochs[n-1].Epoch) {
		c.epochs = append(c.epochs, EpochEntry{Epoch: m.epoch, StartOffset: m.BaseOffset})
	}
}

// entriesOf reads an index file as entries of size bytes; an absent file has none.
func (c *checker) entriesOf(name string, size int) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(c.dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if rest := len(b) % size; rest != 0 {
		c.find(name, int64(len(b)-rest), -1, "%d bytes behind the last whole entry", rest)
		b = b[:len(b)-rest]
	}
	return b, nil
}

func (c *checker) compareOffsets(base int64, want []index.OffsetPosition) error {
	name := segmentFileName(base, offsetIndexSuffix)
	var b []byte
	for _, e := range want {
		b = index.AppendOffsetEntry(b, base, e)
	}
	have, err := c.entriesOf(name, 8)
	if err != nil {
		return err
	}
	if at, differ := firstDifference(have, b, 8); differ {
		c.find(name, int64(at), -1, "entries differ from a rebuild: %x, rebuilt %x", window(have, at, 8), window(b, at, 8))
	}
	return nil
}

// compareTimes accepts the final entry of a segment that is, or may be, no longer written.
func (c *checker) compareTimes(base int64, want *expected, sealed bool) error {
	name := segmentFileName(base, timeIndexSuffix)
	var b []byte
	for _, e := range want.times {
		b = index.AppendTimeEntry(b, base, e)
	}
	full := b
	if want.final != nil {
		full = index.AppendTimeEntry(slices.Clone(b), base, *want.final)
	}
	have, err := c.entriesOf(name, 12)
	if err != nil {
		return err
	}
	if !sealed && bytes.Equal(have, b) {
		return nil
	}
	if at, differ := firstDifference(have, full, 12); differ {
		c.find(name, int64(at), -1, "entries differ from a rebuild: %x, rebuilt %x",
			window(have, at, 12), window(full, at, 12))
	}
	return nil
}

// compareTxns leaves the last stable offset out: in Kafka it varies with how appends were cut.
func (c *checker) compareTxns(base int64, want []index.AbortedTxn) error {
	name := segmentFileName(base, txnIndexSuffix)
	b, err := c.entriesOf(name, 34)
	if err != nil {
		return err
	}
	var have []index.AbortedTxn
	for pos := 0; pos < len(b); pos += 34 {
		t, err := index.DecodeAbortedTxn(b[pos:])
		if err != nil {
			c.find(name, int64(pos), -1, "%v", err)
			return nil
		}
		if !c.entire && t.FirstOffset < c.segments[0].base {
			continue // began in a segment that is gone
		}
		have = append(have, t)
	}
	same := func(a, b index.AbortedTxn) bool {
		a.LastStableOffset, b.LastStableOffset = 0, 0
		return a == b
	}
	if !slices.EqualFunc(have, want, same) {
		c.find(name, 0, -1, "aborted transactions are %v, the log says %v", have, want)
	}
	return nil
}

func firstDifference(a, b []byte, size int) (at int, differ bool) {
	for at = 0; at < max(len(a), len(b)); at += size {
		if !bytes.Equal(window(a, at, size), window(b, at, size)) {
			return at, true
		}
	}
	return 0, false
}

func window(b []byte, at, size int) []byte { return b[min(at, len(b)):min(at+size, len(b))] }

// compareEpochs holds the epoch file against the batches: every epoch that begins in the log must begin there.
func (c *checker) compareEpochs() error {
	b, err := os.ReadFile(filepath.Join(c.dir, epochFileName))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return err
	}
	h, dropped, err := parseEpochFile(b)
	if err != nil || dropped > 0 {
		c.find(epochFileName, 0, -1, "%d entries that do not rise, error %v", dropped, err)
		return nil
	}
	cache := NewLeaderEpochCache("")
	cache.history.Store(&h)
	for _, e := range c.epochs {
		if have, ok := cache.EpochForOffset(e.StartOffset); (!ok || have != e.Epoch) && c.startsHere(e, &h) {
			c.find(epochFileName, 0, e.StartOffset, "epoch is %d, the batches say %d", have, e.Epoch)
		}
	}
	if n := len(h.entries); n > 0 && h.entries[n-1].StartOffset > c.next {
		c.find(epochFileName, 0, h.entries[n-1].StartOffset, "starts behind the log end %d", c.next)
	}
	return nil
}

// startsHere leaves out an epoch whose first batch lies below the log start, which the file no longer tells.
func (c *checker) startsHere(e EpochEntry, h *epochHistory) bool {
	if e.StartOffset < c.logStart {
		return false
	}
	return len(h.entries) == 0 || e.StartOffset >= h.entries[0].StartOffset
}

// offsets holds the log's own values against the files.
func (c *checker) offsets(l *Log) {
	name := filepath.Base(l.dir)
	empty := c.segments[len(c.segments)-1].size == 0 && len(c.segments) == 1
	if end := l.logEnd.Load(); end != c.next && !(end > c.next && (empty || l.next == end)) || l.next != end {
		c.find(name, 0, end, "log end, next %d, the batches end at %d", l.next, c.next)
	}
	start, hw, stable := l.logStart.Load(), l.highWatermark.Load(), l.lastStable.Load()
	if start > l.next && !empty || hw > l.next || hw < start && !empty || stable > hw {
		c.find(name, 0, start, "log start %d, last stable %d, high watermark %d, end %d are out of order",
			start, stable, hw, l.next)
	}
	if rp := l.recoveryPoint.Load(); rp > l.next {
		c.find(name, 0, rp, "recovery point is behind the log end %d", l.next)
	}
	if l.psm.MapEndOffset() != l.next && l.next != c.segments[0].base {
		c.find(name, 0, l.psm.MapEndOffset(), "producer state ends there, the log at %d", l.next)
	}
}

// snapshot holds the producer snapshot of the log end against the replayed state.
func (c *checker) snapshot() error {
	name := psm.SnapshotName(c.next)
	entries, err := psm.ReadSnapshot(c.dir, c.next)
	switch {
	case errors.Is(err, os.ErrNotExist) && c.next == c.segments[0].base:
		return nil // a log without a batch has no state to keep, and Kafka writes none
	case errors.Is(err, os.ErrNotExist):
		c.find(name, 0, c.next, "no producer snapshot of the log end")
		return nil
	case errors.Is(err, psm.ErrCorruptSnapshot):
		c.find(name, 0, c.next, "%v", err)
		return nil
	case err != nil:
		return err
	}
	c.compareProducers(entries, name)
	return nil
}

// compareProducers holds a producer state against the replayed one. Producers of segments that are gone, and those
// that expired by the log's own time, may be missing from one of the two: a broker expires by its clock.
func (c *checker) compareProducers(have []psm.Entry, where string) {
	rebuilt := make(map[int64]psm.Entry)
	for _, e := range c.psm.Entries() {
		rebuilt[e.ProducerID] = e
	}
	for _, e := range have {
		r, ok := rebuilt[e.ProducerID]
		delete(rebuilt, e.ProducerID)
		if ok && r == e || !ok && (!c.entire || c.expired(e)) {
			continue
		}
		if !c.entire && e.CurrentTxnFirstOffset < c.segments[0].base {
			continue
		}
		c.find(where, 0, -1, "producer %d is %+v, the log says %+v (known: %t)", e.ProducerID, e, r, ok)
	}
	for id, r := range rebuilt {
		if !c.expired(r) {
			c.find(where, 0, -1, "producer %d is missing, the log says %+v", id, r)
		}
	}
}

// expired says that a producer may be forgotten by the log's newest timestamp.
func (c *checker) expired(e psm.Entry) bool {
	return e.CurrentTxnFirstOffset < 0 && c.newestMs-e.TimestampMs >= c.cfg.ProducerExpiryMs
}
