package segment

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestLog_AgainstASliceOfBatches does random things to a log and to a slice, and wants them to agree. A seed that
// fails becomes a row of its own.
func TestLog_AgainstASliceOfBatches(t *testing.T) {
	rounds := uint64(15)
	if testing.Short() {
		rounds = 5
	}
	for seed := range rounds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			m := newModel(t, rand.New(rand.NewPCG(seed, 11)))
			for range 60 {
				m.step()
				if t.Failed() {
					t.Fatalf("after %v", m.done)
				}
			}
		})
	}
}

// model is a log and what it should hold.
type model struct {
	t     *testing.T
	r     *rand.Rand
	p     openParams
	l     *Log
	made  int
	held  []spec // batches at or behind the first segment's base
	start int64
	end   int64
	open  map[int64]int64 // producer to the first offset of its transaction
	point int64           // recovery point as persisted
	done  []string
}

func newModel(t *testing.T, r *rand.Rand) *model {
	m := &model{t: t, r: r, open: make(map[int64]int64)}
	m.p = testParams(t)
	m.p.cfg.SegmentBytes = 600 + int32(r.IntN(3000))
	m.p.persist = func() error { m.point = m.l.RecoveryPoint(); return nil }
	m.l = mustOpen(t, m.p)
	return m
}

func (m *model) step() {
	ops := []struct {
		name   string
		weight int
		do     func()
	}{
		{"append", 10, m.append},
		{"roll", 1, m.roll},
		{"truncate", 1, m.truncate},
		{"advance", 1, m.advance},
		{"flush", 1, func() { flush(m.t, m.l) }},
		{"persist", 1, func() { _ = m.p.persist() }},
		{"park", 1, m.park},
		{"crash", 1, m.crash},
		{"reopen", 1, m.reopen},
	}
	total := 0
	for _, op := range ops {
		total += op.weight
	}
	at := m.r.IntN(total)
	for _, op := range ops {
		if at -= op.weight; at < 0 {
			m.done = append(m.done, op.name)
			op.do()
			break
		}
	}
	m.compare()
}

func (m *model) append() {
	var in []spec
	for range 1 + m.r.IntN(6) {
		base := m.end + int64(m.r.IntN(6)/5*m.r.IntN(20))
		s := data(base, base+int64(m.r.IntN(4))).at(int32(m.made / 20))
		switch pid := int64(1 + m.r.IntN(4)); m.r.IntN(5) {
		case 0, 1:
			s = txnData(s.base, s.last, pid, 0).at(s.epoch)
			if _, ok := m.open[pid]; !ok {
				m.open[pid] = s.base
			}
		case 2:
			s = marker(base, pid, m.r.IntN(2)).at(s.epoch)
			delete(m.open, pid)
		case 3:
			if m.r.IntN(10) == 0 {
				s = marker(base, -1, 7).at(s.epoch)
				clear(m.open)
			}
		}
		in = append(in, s)
		m.held = append(m.held, s)
		m.made++
		m.end = s.last + 1
	}
	mustAppend(m.t, m.l, in...)
}

func (m *model) roll() {
	if err := m.l.Roll(); err != nil {
		m.t.Fatal(err)
	}
}

func (m *model) park() {
	if err := m.l.Park(); err != nil {
		m.t.Fatal(err)
	}
}

func (m *model) truncate() {
	to := m.end - int64(m.r.IntN(int(min(m.end-m.start, 60))+1))
	if _, err := m.l.TruncateTo(to); err != nil {
		m.t.Fatal(err)
	}
	m.forget(to)
}

// forget drops what lies at or above offset.
func (m *model) forget(offset int64) {
	if offset >= m.end {
		return
	}
	m.held = slices.DeleteFunc(m.held, func(s spec) bool { return s.last >= offset })
	m.end = m.l.LogEndOffset()
	m.start = min(m.start, m.end)
	if n := len(m.held); n > 0 && m.end != m.held[n-1].last+1 && m.end != m.l.active().base {
		m.t.Errorf("log end %d, last batch ends at %d", m.end, m.held[n-1].last)
	}
	m.transactions()
}

// transactions derives the open ones from what is held.
func (m *model) transactions() {
	clear(m.open)
	for _, s := range m.held {
		switch {
		case s.control == 7:
			clear(m.open)
		case s.control >= 0:
			delete(m.open, s.pid)
		case s.txn:
			if _, ok := m.open[s.pid]; !ok {
				m.open[s.pid] = s.base
			}
		}
	}
}

func (m *model) advance() {
	to := m.start + int64(m.r.IntN(int(min(m.end-m.start, 60))+1))
	if _, err := m.l.AdvanceLogStart(to); err != nil {
		m.t.Fatal(err)
	}
	m.start = to
	base := m.l.FirstSegmentBase()
	m.held = slices.DeleteFunc(m.held, func(s spec) bool { return s.last < base })
}

func (m *model) crash() {
	crash(m.t, m.l)
	m.p.logStart, m.p.highWatermark = m.start, 0
	m.l, _ = reopenDirty(m.t, m.p, m.point)
}

func (m *model) reopen() {
	checkAndClose(m.t, m.l)
	m.p.logStart, m.p.clean = m.start, true
	m.l = mustOpen(m.t, m.p)
	m.point = m.l.RecoveryPoint()
}

func (m *model) compare() {
	m.t.Helper()
	wantOffsets(m.t, m.l, m.start, m.end)
	if err := m.l.Check(); err != nil {
		m.t.Error(err)
	}
	var want []spec
	for _, s := range m.held {
		if s.last >= m.start {
			want = append(want, s)
		}
	}
	wantContent(m.t, m.l, join(want...))
	if m.l.FirstSegmentBase() > 0 {
		return // transactions that began in removed segments are known to the log alone
	}
	have := make(map[int64]int64)
	for _, o := range m.l.OpenTransactions() {
		have[o.ProducerID] = o.FirstOffset
	}
	if fmt.Sprint(have) != fmt.Sprint(m.open) {
		m.t.Errorf("open transactions %v, want %v", have, m.open)
	}
}

// FuzzRecover opens arbitrary bytes as a .log file, dirty and clean: no panic, whole batches only, and a log that can
// be appended to and checked.
func FuzzRecover(f *testing.F) {
	f.Add(f0())
	f.Add(join(txnData(0, 1, 7, 0), marker(2, 7, 0), marker(3, -1, 7)))
	f.Add(append(legacy(0, 0, -1), legacy(1, 1, 5)...))
	f.Add(append(f0(), make([]byte, 5000)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, clean := range []bool{false, true} {
			p := testParams(t)
			p.clean = clean
			plant(t, p, !clean, map[int64][]byte{0: b})
			l, _, err := openLog(p)
			if err != nil {
				t.Fatal(err)
			}
			end := l.LogEndOffset()
			if end < 0 || l.Size() > int64(len(b)) {
				t.Errorf("end %d, %d of %d bytes", end, l.Size(), len(b))
			}
			if end < 1<<40 {
				mustAppend(t, l, data(end, end+1).ts(-1))
			}
			checkAndClose(t, l)
		}
	})
}

// FuzzBatch walks arbitrary bytes: no panic, and what is accepted lies within them.
func FuzzBatch(f *testing.F) {
	f.Add(f0())
	f.Add(join(marker(0, 7, 0), marker(1, 7, 9), marker(2, -1, 7)))
	f.Add(legacy(1, 3, 4))
	f.Fuzz(func(t *testing.T, b []byte) {
		it := NewBatchIterator(b)
		pos := 0
		for it.Next() {
			if it.Pos() != pos || len(it.Batch()) != it.Batch().Size() || cap(it.Batch()) != len(it.Batch()) {
				t.Fatalf("batch of %d bytes at %d, expected at %d", len(it.Batch()), it.Pos(), pos)
			}
			pos += it.Batch().Size()
			var m batchMeta
			if it.Batch().Validate() != nil || m.read(it.Batch(), int64(it.Pos())) != nil {
				continue
			}
			if m.LastOffset < m.BaseOffset || m.BaseOffset < 0 || m.LastOffset+1 < 0 {
				t.Fatalf("offsets %d to %d", m.BaseOffset, m.LastOffset)
			}
		}
		if pos > len(b) {
			t.Fatalf("%d of %d bytes", pos, len(b))
		}
	})
}

// TestCrashMatrix_EveryByteOfALogFlipped writes down what a flip of each byte does. Bytes 0 to 16 of a batch lie
// outside its CRC: base offset flips are caught where order breaks, length and magic by framing; a leader epoch, and a
// base offset that still rises, are not caught at all.
func TestCrashMatrix_EveryByteOfALogFlipped(t *testing.T) {
	whole := f0()
	for pos := range whole {
		if testing.Short() && pos%17 != 0 {
			continue
		}
		if inBatch := pos % 208; pos > 230 && inBatch > 70 && pos%11 != 0 {
			continue // record bytes are all alike to the CRC
		}
		p := testParams(t)
		b := slices.Clone(whole)
		b[pos] ^= 0x10
		plant(t, p, true, map[int64][]byte{0: b})
		p.clean = false
		l, report, err := openLog(p)
		if err != nil {
			t.Fatalf("pos %d: %v", pos, err)
		}
		start := 0 // of the batch that was hit
		for _, at := range []int{208, 367} {
			if pos >= at {
				start = at
			}
		}
		field := pos - start
		have := content(t, l)
		switch {
		case field >= leaderEpochPos && field < magicPos:
			if len(have) != len(whole) {
				t.Errorf("pos %d: an epoch flip cut the log at %d", pos, len(have))
			}
		case field < lengthPos: // may still rise
			if len(have) != len(whole) && len(have) != start && start+len(data(3, 4).bytes()) > len(whole) {
				t.Errorf("pos %d: log of %d bytes", pos, len(have))
			}
		default:
			if len(have) != start || len(report.Cuts) != 1 || report.Cuts[0].FromPos != int64(start) {
				t.Errorf("pos %d: log of %d bytes, want %d; %+v", pos, len(have), start, report.Cuts)
			}
		}
		end := l.LogEndOffset()
		mustAppend(t, l, data(end, end+1).at(1<<30))
		crash(t, l)
		_, again := reopenDirty(t, p, 0)
		if len(again.Cuts) > 0 {
			t.Errorf("pos %d: second recovery cut %+v", pos, again.Cuts)
		}
	}
}

// TestCrashMatrix_CacheFilesLoseNoRecord damages every file beside the .log in every way, under both ways to stop.
func TestCrashMatrix_CacheFilesLoseNoRecord(t *testing.T) {
	made := testParams(t)
	made.cfg.SegmentBytes = 900
	l := mustOpen(t, made)
	mustAppend(t, l, batches(0, 8, 2)...)
	mustAppend(t, l, txnData(16, 17, 7, 0), marker(18, 7, 0), txnData(19, 20, 8, 0))
	want := content(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	files := image(t, made.path)
	for name, whole := range files {
		if filepath.Ext(name) == ".log" {
			continue
		}
		for _, damage := range []string{"gone", "empty", "half", "flip", "zeros", "longer"} {
			for _, clean := range []bool{true, false} {
				p := made
				p.path = filepath.Join(t.TempDir(), "orders-0")
				p.clean = clean
				plant(t, p, false, nil)
				for other, b := range files {
					write(t, filepath.Join(p.path, other), []byte(b))
				}
				damageFile(t, filepath.Join(p.path, name), []byte(whole), damage)
				l, _, err := openLog(p)
				if err != nil {
					t.Errorf("%s %s: %v", name, damage, err)
					continue
				}
				wantContent(t, l, want)
				wantOffsets(t, l, 0, 21)
				mustAppend(t, l, data(21, 22))
				if t.Failed() {
					t.Fatalf("%s %s, clean %t", name, damage, clean)
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func damageFile(t *testing.T, path string, b []byte, damage string) {
	t.Helper()
	switch damage {
	case "gone":
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return
	case "empty":
		b = nil
	case "half":
		b = b[:len(b)/2]
	case "flip":
		for i := range b {
			b[i] ^= byte(1 << (i % 8))
		}
	case "zeros":
		b = make([]byte, len(b))
	case "longer":
		b = append(b, make([]byte, 4096)...)
	}
	write(t, path, b)
}
