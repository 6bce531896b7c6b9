package segment

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// history is what a log should hold: its batches, oldest first.
type history struct{ batches []spec }

func (h history) append(specs ...spec) history {
	return history{batches: append(slices.Clone(h.batches), specs...)}
}

// cut is the history after a truncation to offset.
func (h history) cut(offset int64) history {
	n := 0
	for n < len(h.batches) && h.batches[n].last < offset {
		n++
	}
	return history{batches: slices.Clone(h.batches[:n])}
}

// openTxns are the producers with a transaction open at the end.
func (h history) openTxns() map[int64]bool {
	open := make(map[int64]bool)
	for _, s := range h.batches {
		switch {
		case s.control == 7:
			clear(open)
		case s.control >= 0:
			delete(open, s.pid)
		case s.txn:
			open[s.pid] = true
		}
	}
	return open
}

func (h history) epoch() int32 {
	if len(h.batches) == 0 {
		return 0
	}
	return h.batches[len(h.batches)-1].epoch
}

// from is the bytes of the batches that end at or above offset, of the first n.
func (h history) from(offset int64, n int) []byte {
	var b []byte
	for _, s := range h.batches[:n] {
		if s.last >= offset {
			b = append(b, s.bytes()...)
		}
	}
	return b
}

// recorder keeps, for every file, what was in it when it was last known to be durable.
type recorder struct {
	synced map[string][]byte
	onSync func()
}

func (r *recorder) open(path string, create bool) (file, error) {
	f, err := openOSFile(path, create)
	if err != nil {
		return nil, err
	}
	if create { // another file than the one that had the name
		delete(r.synced, path)
	}
	return recordedFile{file: f, path: path, r: r}, nil
}

// recordedFile tells its recorder of every sync.
type recordedFile struct {
	file
	path string
	r    *recorder
}

func (f recordedFile) Sync() error {
	if err := f.file.Sync(); err != nil {
		return err
	}
	b, err := os.ReadFile(f.path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f.r.synced[f.path] = b
	f.r.onSync()
	return nil
}

// everything says that all files in dir are durable as they are.
func (r *recorder) everything(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if r.synced[path], err = os.ReadFile(path); err != nil {
			return err
		}
	}
	return nil
}

// replacedWhole are the files that are never written in place: after a crash they are the old or the new one.
var replacedWhole = []string{epochFileName, sourceEpochFileName, digestsFileName, metadataFileName}

// afterPowerLoss is what a disk may hold of dir: of every file, page by page, what is in it now or what was when it was
// last durable; files that are younger than that perhaps not at all.
func (r *recorder) afterPowerLoss(t *rapid.T, dir string) (dirImage, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	disk := make(dirImage)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		now, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		then, durable := r.synced[path]
		switch {
		case slices.Contains(replacedWhole, e.Name()):
			disk[e.Name()] = now
		case !durable && filepath.Ext(e.Name()) != logSuffix && rapid.IntRange(0, 3).Draw(t, "absent") == 0:
		default:
			disk[e.Name()] = pagesOf(t, now, then)
		}
	}
	return disk, nil
}

func pagesOf(t *rapid.T, now, then []byte) []byte {
	if bytes.Equal(now, then) {
		return now
	}
	const page = 4096
	size := rapid.SampledFrom([]int{len(now), len(then)}).Draw(t, "size")
	mixed := make([]byte, size)
	for pos := 0; pos < size; pos += page {
		from := now
		if rapid.Bool().Draw(t, "old page") {
			from = then
		}
		if pos < len(from) {
			copy(mixed[pos:min(pos+page, size)], from[pos:])
		}
	}
	return mixed
}

// world is a log, the history it should hold, and a disk that can lose power at any sync.
type world struct {
	t    *rapid.T
	root string
	p    openParams
	l    *Log
	rec  *recorder

	want    history
	next    *history // while an operation runs: what it may have made of want
	acked   int64    // flushed up to here
	crashes int

	persisted struct{ recoveryPoint, logStart, highWatermark int64 }
}

func newWorld(t *rapid.T, root string, cfg Config) *world {
	w := &world{t: t, root: root, rec: &recorder{synced: make(map[string][]byte)}}
	w.rec.onSync = w.maybeCrashInside
	cfg.open = w.rec.open
	w.p = openParams{path: filepath.Join(root, "orders-0"), tp: testPartition, cfg: cfg, clean: true}
	w.p.persist = func() error {
		w.persisted.recoveryPoint, w.persisted.logStart = w.l.RecoveryPoint(), w.l.LogStartOffset()
		w.persisted.highWatermark = w.l.HighWatermark()
		return w.durable()
	}
	w.open()
	w.must(w.l.Bind(SourceID{ClusterID: dirID.ClusterID, TopicID: TopicID{1}}), "bind")
	return w
}

// durable tells the recorder what a recovery point says: the files of all that ends at or below it, indexes included,
// which are synced without its seeing.
func (w *world) durable() error {
	list, point := w.l.list(), w.l.RecoveryPoint()
	for i, s := range list {
		if next := w.l.next; i+1 < len(list) && list[i+1].base > point || i+1 == len(list) && next > point {
			break
		}
		for _, suffix := range []string{offsetIndexSuffix, timeIndexSuffix, txnIndexSuffix, snapshotSuffix} {
			b, err := os.ReadFile(s.stem + suffix)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			if err == nil {
				w.rec.synced[s.stem+suffix] = b
			}
		}
	}
	return nil
}

func (w *world) must(err error, what string) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}

func (w *world) open() RecoveryReport {
	p := w.p
	p.recoveryPoint, p.logStart = w.persisted.recoveryPoint, w.persisted.logStart
	p.highWatermark = w.persisted.highWatermark
	l, report, err := openLog(p)
	w.must(err, "open")
	w.l = l
	return report
}

// bytesFrom reads everything from the log start on.
func bytesFrom(l *Log) ([]byte, error) {
	var out bytes.Buffer
	for offset := l.LogStartOffset(); ; {
		s, err := l.Read(offset, 1<<20, ReadLogEnd)
		if err != nil {
			return nil, err
		}
		_, err = s.WriteTo(&out)
		offset = s.NextOffset()
		if err = errors.Join(err, s.Release()); err != nil || s.Size() == 0 {
			return out.Bytes(), err
		}
	}
}

// prefixOf returns how many batches of h the log holds, and false where it holds something else.
func prefixOf(l *Log, h history) (int, bool, error) {
	have, err := bytesFrom(l)
	if err != nil {
		return 0, false, err
	}
	start, n := l.LogStartOffset(), 0
	for n < len(h.batches) && h.batches[n].last < start {
		n++
	}
	for ; n <= len(h.batches); n++ {
		if want := h.from(start, n); len(want) == len(have) {
			return n, bytes.Equal(want, have), nil
		}
	}
	return 0, false, nil
}

// check compares the open log with the history.
func (w *world) check() {
	n, ok, err := prefixOf(w.l, w.want)
	w.must(err, "read")
	if !ok || n != len(w.want.batches) {
		w.t.Fatalf("log [%d, %d) holds %d of %d batches (a prefix: %t)",
			w.l.LogStartOffset(), w.l.LogEndOffset(), n, len(w.want.batches), ok)
	}
	w.must(w.l.Check(), "check")
}

// maybeCrashInside is called at every sync of a .log file: an image of what the disk may hold now must recover.
func (w *world) maybeCrashInside() {
	if w.crashes >= 4 || rapid.IntRange(0, 9).Draw(w.t, "crash inside") > 0 {
		return
	}
	w.crashes++
	disk, err := w.rec.afterPowerLoss(w.t, w.p.path)
	w.must(err, "image")
	w.recovers(disk)
}

// recovers opens a copy of what a crash left and checks it: a batch-exact prefix of what was or was about to be, with
// everything in it that was acknowledged, stable under a second recovery, and good for appends.
func (w *world) recovers(disk dirImage) {
	p := w.p
	p.path, p.cfg.open, p.persist, p.clean = filepath.Join(w.root, "image", "orders-0"), nil, nil, false
	p.recoveryPoint, p.logStart = w.persisted.recoveryPoint, w.persisted.logStart
	w.must(os.RemoveAll(p.path), "image")
	w.must(os.MkdirAll(p.path, 0o755), "image")
	for name, b := range disk {
		w.must(os.WriteFile(filepath.Join(p.path, name), b, 0o644), "image")
	}
	l, report, err := openLog(p)
	w.must(err, "recovery of an image")
	n, have := w.fits(l, report)
	w.must(l.Check(), "check of an image")
	end := l.LogEndOffset()
	w.must(l.Close(), "close of an image")

	l, report, err = openLog(p)
	w.must(err, "second recovery of an image")
	again, err := bytesFrom(l)
	w.must(err, "second recovery of an image")
	if !bytes.Equal(again, have) || l.LogEndOffset() != end || len(report.Cuts) > 0 {
		w.t.Fatalf("second recovery: %d batches became %d bytes of %d, end %d of %d, cuts %v",
			n, len(again), len(have), l.LogEndOffset(), end, report.Cuts)
	}
	info, err := l.AppendAsFollower(data(end, end).at(1000).bytes(), -1)
	if err != nil || info.Batches != 1 {
		w.t.Fatalf("append to an image: %+v, %v", info, err)
	}
	w.must(errors.Join(l.Check(), l.Close()), "append to an image")
}

// fits compares a recovered log with what it may hold.
func (w *world) fits(l *Log, report RecoveryReport) (n int, have []byte) {
	allowed := []history{w.want}
	if w.next != nil {
		allowed = append(allowed, *w.next)
	}
	have, err := bytesFrom(l)
	w.must(err, "read")
	for _, h := range allowed {
		n, ok, err := prefixOf(l, h)
		w.must(err, "read")
		needed := 0
		for needed < len(h.batches) && h.batches[needed].last < w.acked {
			needed++
		}
		if ok && n >= needed {
			return n, have
		}
	}
	w.t.Fatalf("recovered [%d, %d), %d bytes, report %+v: no prefix of %d batches that has all below %d",
		l.LogStartOffset(), l.LogEndOffset(), len(have), report, len(w.want.batches), w.acked)
	return 0, nil
}

// do runs an operation that makes want into next.
func (w *world) do(next history, op func() error, what string) {
	w.next = &next
	w.must(op(), what)
	w.want, w.next = next, nil
}

// drawBatches draws batches that follow the log.
func (w *world) drawBatches() []spec {
	offset, epoch := w.l.LogEndOffset(), w.want.epoch()
	h := w.want
	var specs []spec
	for range rapid.IntRange(1, 6).Draw(w.t, "batches") {
		if rapid.IntRange(0, 15).Draw(w.t, "gap") == 0 {
			offset += rapid.Int64Range(1, 50).Draw(w.t, "gap size")
		}
		if rapid.IntRange(0, 15).Draw(w.t, "new epoch") == 0 {
			epoch++
		}
		last := offset + rapid.Int64Range(0, 5).Draw(w.t, "records")
		pid := rapid.Int64Range(1, 3).Draw(w.t, "pid")
		var s spec
		switch rapid.IntRange(0, 9).Draw(w.t, "kind") {
		case 0, 1, 2:
			s = txnData(offset, last, pid, 0)
		case 3:
			s = marker(offset, pid, 0)
		case 4:
			s = marker(offset, pid, 1)
		case 5:
			s = marker(offset, -1, 7)
		default:
			s = data(offset, last)
		}
		if s.control >= 0 && s.pid > 0 && !h.openTxns()[s.pid] {
			s = data(offset, last) // a marker without a transaction says nothing
		}
		s.epoch = epoch
		s.value = rapid.SampledFrom([]int{10, 40, 300, 2500}).Draw(w.t, "value")
		specs = append(specs, s)
		h = h.append(s)
		offset = s.last + 1
	}
	return specs
}

func (w *world) append() {
	specs := w.drawBatches()
	w.do(w.want.append(specs...), func() error {
		info, err := w.l.AppendAsFollower(join(specs...), -1)
		if err == nil && info.Batches != len(specs) {
			err = fmt.Errorf("%d of %d batches", info.Batches, len(specs))
		}
		return err
	}, "append")
}

// writtenBack lends bytes, and lets the kernel write what has landed to the disk before anybody has looked at it.
type writtenBack struct {
	w    *world
	rest []byte
}

func (r *writtenBack) Read(p []byte) (int, error) {
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	if rapid.Bool().Draw(r.w.t, "written back") {
		path := r.w.l.active().logPath()
		b, err := os.ReadFile(path)
		if err != nil {
			return n, err
		}
		r.w.rec.synced[path] = b
	}
	return n, nil
}

// refuse appends good batches and then bytes that must never become the log, whole batches among them.
func (w *world) refuse() {
	specs := w.drawBatches()
	good := join(specs...)
	next := specs[len(specs)-1].last + 1
	var bad []byte
	leaderEpoch := int32(-1)
	switch rapid.IntRange(0, 4).Draw(w.t, "refusal") {
	case 2, 3: // batches of a later epoch than the one that answers: an old leader's, which recovery could not tell
		leaderEpoch = specs[len(specs)-1].epoch
		bad = join(data(next, next).at(leaderEpoch+1), data(next+1, next+2).at(leaderEpoch+1))
	case 0: // a valid batch that begins below the end, and one that would fit
		bad = join(data(next-1, next-1), data(next, next))
	case 1: // a CRC that does not hold, and a valid batch
		bad = data(next, next+1).bytes()
		bad[len(bad)-1] ^= 1
		bad = append(bad, data(next+2, next+3).bytes()...)
	default: // a batch without its end, one that zeros do not make whole: dropped, not refused
		bad = data(next, next+3).bytes()
		bad = bad[:len(bad)-10]
	}
	w.do(w.want.append(specs...), func() error {
		all := append(good, bad...)
		info, err := w.l.AppendFrom(&writtenBack{w: w, rest: all}, len(all), leaderEpoch)
		if info.Batches != len(specs) {
			return fmt.Errorf("%d of %d batches before the refused one: %w", info.Batches, len(specs), err)
		}
		if err != nil && !errors.Is(err, ErrCorruptBatch) && !errors.Is(err, ErrOffsetsOutOfOrder) {
			return err
		}
		return nil
	}, "refused append")
}

// lend takes the tail, lets whole batches land in it and be written back, and commits only the first of them, or none.
func (w *world) lend() {
	specs := w.drawBatches()
	all := join(specs...)
	committed := specs[:rapid.IntRange(0, 1).Draw(w.t, "committed")]
	w.do(w.want.append(committed...), func() error {
		tail, err := w.l.Tail(len(all))
		if err != nil {
			return err
		}
		if _, err := (&writtenBack{w: w, rest: all}).Read(tail); err != nil {
			return err
		}
		if len(committed) == 0 {
			return w.l.Discard()
		}
		_, err = w.l.Commit(len(join(committed...)))
		return err
	}, "lend")
}

func (w *world) truncate() {
	offset := rapid.Int64Range(w.l.FirstSegmentBase(), w.l.LogEndOffset()).Draw(w.t, "offset")
	next := w.want.cut(offset)
	if n := len(next.batches); n == 0 {
		w.acked = 0
	} else {
		w.acked = min(w.acked, next.batches[n-1].last+1)
	}
	w.do(next, func() error {
		_, err := w.l.TruncateTo(offset)
		return err
	}, "truncate")
}

func (w *world) startAnew() {
	offset := w.l.LogEndOffset() + rapid.Int64Range(-3, 100).Draw(w.t, "offset")
	w.acked = 0
	w.do(history{}, func() error {
		_, err := w.l.TruncateFullyAndStartAt(max(offset, 0))
		return err
	}, "truncate fully")
}

func (w *world) advance() {
	offset := rapid.Int64Range(w.l.LogStartOffset(), w.l.LogEndOffset()).Draw(w.t, "offset")
	w.do(w.want, func() error {
		_, err := w.l.AdvanceLogStart(offset)
		return err
	}, "advance log start")
}

func (w *world) flush() {
	w.do(w.want, func() error {
		offset, err := w.l.Flush()
		if err != nil {
			return err
		}
		w.acked = offset
		w.l.MarkFlushed(offset)
		if err := w.rec.everything(w.p.path); err != nil {
			return err
		}
		if rapid.Bool().Draw(w.t, "checkpoint") {
			return w.p.persist()
		}
		return nil
	}, "flush")
}

// kill ends the process: the page cache stays.
func (w *world) kill() {
	w.letGo()
	w.p.clean = false
	report := w.open()
	w.afterCrash(report)
}

// cutPower ends everything: the disk holds a mix of pages.
func (w *world) cutPower() {
	disk, err := w.rec.afterPowerLoss(w.t, w.p.path)
	w.must(err, "image")
	w.letGo()
	w.must(os.RemoveAll(w.p.path), "power loss")
	w.must(os.MkdirAll(w.p.path, 0o755), "power loss")
	for name, b := range disk {
		w.must(os.WriteFile(filepath.Join(w.p.path, name), b, 0o644), "power loss")
	}
	clear(w.rec.synced)
	w.must(w.rec.everything(w.p.path), "power loss")
	w.p.clean = false
	w.afterCrash(w.open())
}

func (w *world) letGo() {
	w.l.closed = true
	for _, s := range w.l.list() {
		s.mu.Lock()
		s.indexes = nil // what they buffer is lost
		s.mu.Unlock()
		w.must(s.letGo(), "crash")
	}
}

func (w *world) afterCrash(report RecoveryReport) {
	n, _ := w.fits(w.l, report)
	w.want = history{batches: slices.Clone(w.want.batches[:n])}
	w.acked = min(w.acked, w.l.LogEndOffset())
}

func (w *world) reopen() {
	w.do(w.want, w.l.Close, "close")
	w.must(w.p.persist(), "checkpoint")
	w.acked = w.l.LogEndOffset()
	w.must(w.rec.everything(w.p.path), "close")
	w.p.clean = true
	if report := w.open(); !report.Clean || len(report.Cuts) > 0 {
		w.t.Fatalf("opening what was closed in order: %+v", report)
	}
}

// TestHistory_WhateverHappensTheLogIsItsBatches drives a log through everything that can happen to it, beside a plain
// slice of batches.
func TestHistory_WhateverHappensTheLogIsItsBatches(t *testing.T) {
	cfg := DefaultConfig()
	cfg.SegmentBytes, cfg.IndexIntervalBytes = 16<<10, 300
	root := memDir(t)
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		w := newWorld(rt, filepath.Join(root, fmt.Sprint(run)), cfg)
		defer func() {
			w.letGo()
			w.must(os.RemoveAll(w.root), "clean up")
		}()
		ops := map[string]func(){
			"append": w.append, "append 2": w.append, "append 3": w.append, "refuse": w.refuse, "lend": w.lend, "truncate": w.truncate,
			"start anew": w.startAnew, "advance": w.advance, "flush": w.flush, "flush 2": w.flush, "kill": w.kill,
			"cut power": w.cutPower, "cut power 2": w.cutPower, "reopen": w.reopen,
			"roll":      func() { w.do(w.want, w.l.Roll, "roll") },
			"park":      func() { w.do(w.want, w.l.Park, "park"); w.acked = w.l.LogEndOffset() },
			"watermark": func() { w.l.UpdateHighWatermark(rapid.Int64Range(0, w.l.LogEndOffset()).Draw(rt, "hw")) },
		}
		names := slices.Sorted(maps.Keys(ops))
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			ops[rapid.SampledFrom(names).Draw(rt, "op")]()
			w.check()
		}
		disk, err := w.rec.afterPowerLoss(rt, w.p.path)
		w.must(err, "image")
		w.recovers(disk)
	})
}
