package segment

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// faultyFiles opens real files whose calls can be made to fail.
type faultyFiles struct {
	mu       sync.Mutex
	sync     error
	truncate error
	limit    int64 // Reserve fails above it, 0 means never
	mapping  error
	onSync   func(path string)
	syncs    int
}

type faultyFile struct {
	file
	path string
	f    *faultyFiles
}

func (f *faultyFiles) open(path string, create bool) (file, error) {
	inner, err := openOSFile(path, create)
	if err != nil {
		return nil, err
	}
	return faultyFile{file: inner, path: path, f: f}, nil
}

func (f *faultyFiles) set(change func(*faultyFiles)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f faultyFile) Sync() error {
	f.f.mu.Lock()
	err, hook := f.f.sync, f.f.onSync
	f.f.syncs++
	f.f.mu.Unlock()
	if err != nil {
		return err
	}
	if err := f.file.Sync(); err != nil {
		return err
	}
	if hook != nil {
		hook(f.path)
	}
	return nil
}

func (f faultyFile) Truncate(size int64) error {
	f.f.mu.Lock()
	err := f.f.truncate
	f.f.mu.Unlock()
	if err != nil {
		return err
	}
	return f.file.Truncate(size)
}

func (f faultyFile) Reserve(size int64) error {
	f.f.mu.Lock()
	limit := f.f.limit
	f.f.mu.Unlock()
	if limit > 0 && size > limit {
		// As a file system does: part of the room is taken, the file has grown.
		if cur, err := f.Size(); err == nil && cur < limit {
			if err := f.file.Reserve(limit); err != nil {
				return err
			}
		}
		return fmt.Errorf("%w: %w", ErrNoSpace, unix.ENOSPC)
	}
	return f.file.Reserve(size)
}

func (f faultyFile) Map(size int64) ([]byte, error) {
	f.f.mu.Lock()
	err := f.f.mapping
	f.f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return f.file.Map(size)
}

func faultyParams(t testing.TB) (openParams, *faultyFiles) {
	p := testParams(t)
	f := &faultyFiles{}
	p.cfg.open = f.open
	return p, f
}

func TestAppend_FullDiskLosesNothingAndGoesOnWhenThereIsRoom(t *testing.T) {
	p, f := faultyParams(t)
	l := mustOpen(t, p)
	mustAppend(t, l, batches(0, 2, 3)...)
	all := join(batches(0, 1000, 3)...)
	done := len(join(batches(0, 2, 3)...))
	f.set(func(f *faultyFiles) { f.limit = 70_000 })
	info, err := l.AppendAsFollower(all[done:], -1)
	if !errors.Is(err, ErrNoSpace) || l.Failed() != nil {
		t.Fatalf("%v, failed: %v", err, l.Failed())
	}
	done += info.Bytes
	wantContent(t, l, all[:done])
	wantZeroTail(t, l)
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	f.set(func(f *faultyFiles) { f.limit = 0 })
	if _, err := l.AppendAsFollower(all[done:], -1); err != nil {
		t.Fatal(err)
	}
	wantContent(t, l, all)
}

func TestRoll_FullDiskLeavesTheOldSegmentActive(t *testing.T) {
	p, f := faultyParams(t)
	p.cfg.SegmentBytes = 1000
	l := mustOpen(t, p)
	mustAppend(t, l, batches(0, 4, 3)...)
	before := image(t, l.dir)
	f.set(func(f *faultyFiles) { f.limit = 1 })
	if _, err := l.AppendAsFollower(join(batches(12, 4, 3)...), -1); !errors.Is(err, ErrNoSpace) {
		t.Fatal(err)
	}
	if l.Failed() != nil || l.Segments() != 1 {
		t.Errorf("%v, %d segments", l.Failed(), l.Segments())
	}
	after := image(t, l.dir)
	if len(after) != len(before) {
		t.Errorf("%d files, before %d", len(after), len(before))
	}
	f.set(func(f *faultyFiles) { f.limit = 0 })
	mustAppend(t, l, batches(12, 4, 3)...)
	wantContent(t, l, join(batches(0, 8, 3)...))
}

func TestFailures_PoisonOnceAndAReopenRecovers(t *testing.T) {
	eio := errors.New("input/output error")
	for name, c := range map[string]struct {
		fault func(*faultyFiles)
		do    func(*Log) error
	}{
		"sync in Flush": {func(f *faultyFiles) { f.sync = eio }, func(l *Log) error { _, err := l.Flush(); return err }},
		"sync in TruncateTo": {func(f *faultyFiles) { f.sync = eio }, func(l *Log) error {
			_, err := l.TruncateTo(3)
			return err
		}},
		"sync of a refusal": {func(f *faultyFiles) { f.sync = eio }, func(l *Log) error {
			_, err := l.AppendAsFollower(data(0, 2).bytes(), -1)
			return err
		}},
		"cut in TruncateTo": {func(f *faultyFiles) { f.truncate = eio }, func(l *Log) error {
			_, err := l.TruncateTo(3)
			return err
		}},
		"trim in Roll":  {func(f *faultyFiles) { f.truncate = eio }, func(l *Log) error { return l.Roll() }},
		"trim in Park":  {func(f *faultyFiles) { f.truncate = eio }, func(l *Log) error { return l.Park() }},
		"trim in Close": {func(f *faultyFiles) { f.truncate = eio }, func(l *Log) error { return l.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			p, f := faultyParams(t)
			l := mustOpen(t, p)
			mustAppend(t, l, batches(0, 4, 3)...)
			flush(t, l)
			mustAppend(t, l, batches(12, 4, 3)...)
			f.set(c.fault)
			err := c.do(l)
			if !errors.Is(err, ErrLogFailed) || !errors.Is(err, eio) {
				t.Fatal(err)
			}
			f.set(func(f *faultyFiles) { f.sync, f.truncate = nil, nil })
			syncs := f.syncs
			if _, err := l.Flush(); !errors.Is(err, ErrLogFailed) || f.syncs != syncs {
				t.Errorf("a failed sync was tried again: %v", err)
			}
			if _, err := l.AppendAsFollower(data(24, 26).bytes(), -1); !errors.Is(err, ErrLogFailed) && !errors.Is(err, ErrLogClosed) {
				t.Error(err)
			}
			point := l.RecoveryPoint()
			if err := l.Close(); name != "trim in Close" && !errors.Is(err, ErrLogFailed) {
				t.Errorf("closing a failed log: %v", err)
			}
			l, _ = reopenDirty(t, p, point)
			end := l.LogEndOffset()
			if end < point || end%3 != 0 {
				t.Errorf("log end %d, recovery point %d", end, point)
			}
			wantContent(t, l, join(batches(0, int(end/3), 3)...))
			mustAppend(t, l, data(end, end+2))
		})
	}
}

func TestMapFault_OfAFileCutUnderneathIsAnErrorOfThisLogOnly(t *testing.T) {
	p := testParams(t)
	l := mustOpen(t, p)
	mustAppend(t, l, data(0, 2))
	tail, err := l.Tail(3 * os.Getpagesize())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(l.active().logPath(), 0); err != nil {
		t.Fatal(err)
	}
	if len(tail) == 0 {
		t.Fatal("no tail")
	}
	if _, err := l.Commit(len(tail)); !errors.Is(err, ErrLogFailed) || !errors.Is(err, ErrMapFault) {
		t.Error(err)
	}
	if _, err := l.AppendAsFollower(data(3, 5).bytes(), -1); !errors.Is(err, ErrLogFailed) {
		t.Error(err)
	}
}

// powerCut keeps, for every file of a log's directory, the bytes of its last sync, so that images can be made of what a
// disk may hold after a power cut.
type powerCut struct {
	dir    string
	synced map[string][]byte // by name; absent: the name was never durable
}

// note takes the present bytes of a .log file, and of its indexes, which are synced with it, as durable.
func (c *powerCut) note(path string) {
	stem := strings.TrimSuffix(path, ".log")
	for _, suffix := range []string{".log", ".index", ".timeindex", ".txnindex"} {
		if b, err := os.ReadFile(stem + suffix); err == nil {
			c.synced[filepath.Base(stem+suffix)] = b
		}
	}
}

// make writes a mix: files that were written anew by rename, and names, are as they are now (both are synced by the
// code that makes them); of .log files and indexes every 4 KiB page is the synced or the present one.
func (c *powerCut) make(t *testing.T, r *rand.Rand, to string) {
	t.Helper()
	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		now, err := os.ReadFile(filepath.Join(c.dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		switch filepath.Ext(e.Name()) {
		case ".log", ".index", ".timeindex", ".txnindex", ".snapshot":
			now = mixPages(r, c.synced[e.Name()], now)
		}
		write(t, filepath.Join(to, e.Name()), now)
	}
}

// mixPages takes each page, and the length, from old or new.
func mixPages(r *rand.Rand, old, now []byte) []byte {
	size := len(now)
	if r.IntN(3) == 0 {
		size = len(old)
	}
	out := make([]byte, size)
	for at := 0; at < size; at += 4096 {
		from := now
		if r.IntN(2) == 0 {
			from = old
		}
		if at < len(from) {
			copy(out[at:min(at+4096, size)], from[at:])
		}
	}
	return out
}

func TestPowerCut_LeavesAPrefixNotShorterThanWhatWasFlushed(t *testing.T) {
	rounds := 24
	if testing.Short() {
		rounds = 6
	}
	for seed := range uint64(rounds) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { powerCutRound(t, rand.New(rand.NewPCG(seed, 7))) })
	}
}

func powerCutRound(t *testing.T, r *rand.Rand) {
	p, f := faultyParams(t)
	p.cfg.SegmentBytes = 20_000 + int32(r.IntN(30_000))
	p.cfg.IndexIntervalBytes = 4096
	p.cfg.Policy = EpochPolicy(r.IntN(2))
	cut := &powerCut{dir: p.path, synced: make(map[string][]byte)}
	f.onSync = cut.note
	var l *Log
	stored := int64(0)
	p.persist = func() error { stored = l.RecoveryPoint(); return nil }
	l = mustOpen(t, p)
	if err := l.Bind(SourceID{ClusterID: "c", TopicID: TopicID{1}}); err != nil {
		t.Fatal(err)
	}
	var source []spec
	next := int64(0)
	for range 10 + r.IntN(60) {
		switch r.IntN(12) {
		case 0:
			flush(t, l)
			if err := l.persist(); err != nil {
				t.Fatal(err)
			}
		case 1:
			if err := l.Roll(); err != nil {
				t.Fatal(err)
			}
		case 2:
			to := next - int64(r.IntN(int(min(next, 40))+1))
			if _, err := l.TruncateTo(to); err != nil {
				t.Fatal(err)
			}
			next = l.LogEndOffset()
			source = slices.DeleteFunc(source, func(s spec) bool { return s.base >= next })
		default:
			s := data(next+int64(r.IntN(8)/7*r.IntN(50)), 0).at(int32(len(source) / 9))
			s.last, s.value = s.base+int64(r.IntN(5)), r.IntN(3000)
			s.ms = 1_700_000_000_000 + s.base
			mustAppend(t, l, s)
			source, next = append(source, s), s.last+1
		}
	}
	for range 3 {
		q := p
		q.path = filepath.Join(t.TempDir(), "orders-0")
		q.cfg.open, q.persist = nil, nil
		cut.make(t, r, q.path)
		reopened, report := reopenDirty(t, q, stored)
		wantPrefix(t, reopened, source, stored)
		if t.Failed() {
			t.Fatalf("%+v\nstored %d, end %d of %d", report, stored, reopened.LogEndOffset(), next)
		}
	}
}

// wantPrefix wants the log to be the first batches of source, epochs left out, and to reach at least to least.
func wantPrefix(t *testing.T, l *Log, source []spec, least int64) {
	t.Helper()
	have := content(t, l)
	if l.LogEndOffset() < least {
		t.Errorf("log end %d, flushed up to %d", l.LogEndOffset(), least)
	}
	for _, s := range source {
		if len(have) == 0 {
			return
		}
		b := s.bytes()
		if len(have) < len(b) || !bytes.Equal(have[:8], b[:8]) || !bytes.Equal(have[16:len(b)], b[16:]) {
			t.Errorf("batch at %d is not the source's", s.base)
			return
		}
		have = have[len(b):]
	}
	if len(have) > 0 {
		t.Errorf("%d bytes more than the source has", len(have))
	}
}

// TestPowerCut_WhatWasGivenBackStaysAway lets two batches land and reach the disk, commits one of them or none, and
// cuts the power: what was given back does not come back.
func TestPowerCut_WhatWasGivenBackStaysAway(t *testing.T) {
	for name, committed := range map[string]int{"discarded": 0, "half committed": 1} {
		t.Run(name, func(t *testing.T) {
			p := testParams(t)
			disk := &recorder{synced: make(map[string][]byte), onSync: func() {}}
			p.cfg.open = disk.open
			l := mustOpen(t, p)
			mustAppend(t, l, data(0, 4))
			landed := []spec{data(5, 9), data(10, 14)}
			tail, err := l.Tail(len(join(landed...)))
			if err != nil {
				t.Fatal(err)
			}
			copy(tail, join(landed...))
			path := l.active().logPath()
			if disk.synced[path], err = os.ReadFile(path); err != nil { // the kernel wrote it back
				t.Fatal(err)
			}
			if committed == 0 {
				err = l.Discard()
			} else {
				_, err = l.Commit(len(landed[0].bytes()))
			}
			if err != nil {
				t.Fatal(err)
			}
			after := testParams(t)
			if err := os.MkdirAll(after.path, 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(after.path, filepath.Base(path)), disk.synced[path])
			again, _ := reopenDirty(t, after, 0)
			if end := l.LogEndOffset(); again.LogEndOffset() != end {
				t.Errorf("the log ended at %d, and ends at %d after the power cut", end, again.LogEndOffset())
			}
		})
	}
}
