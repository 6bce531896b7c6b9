package psm

import (
	"errors"
	"slices"
	"testing"
)

const second = 1000

// data is a batch of producer id at base..base+n-1.
func data(id int64, epoch int16, base int64, n, sequence int32) *Batch {
	return &Batch{
		BaseOffset: base, LastOffset: base + int64(n) - 1, LastOffsetDelta: n - 1, RecordsCount: n,
		ProducerID: id, ProducerEpoch: epoch, BaseSequence: sequence, MaxTimestampMs: base * second,
	}
}

// txn is the same within a transaction.
func txn(id int64, epoch int16, base int64, n, sequence int32) *Batch {
	b := data(id, epoch, base, n, sequence)
	b.Transactional = true
	return b
}

// marker is an ABORT or COMMIT at offset.
func marker(kind MarkerType, id int64, epoch int16, offset int64, coordinator int32) *Batch {
	b := txn(id, epoch, offset, 1, None)
	b.Control, b.Marker = true, Marker{Type: kind, CoordinatorEpoch: coordinator}
	return b
}

// pidReset is a MIRROR_PID_RESET at offset.
func pidReset(offset int64) *Batch {
	b := marker(MarkerPidReset, None, None, offset, 0)
	b.Transactional = false
	return b
}

// replay prepares and commits each batch by itself and returns all completed transactions.
func replay(t testing.TB, m *Manager, batches ...*Batch) []CompletedTxn {
	t.Helper()
	var completed []CompletedTxn
	for _, b := range batches {
		if err := m.Prepare(b); err != nil {
			t.Fatal(err)
		}
		completed = append(completed, m.Completed()...)
		m.Commit()
	}
	return completed
}

func mustGet(t testing.TB, m *Manager, id int64) Entry {
	t.Helper()
	e, ok := m.Get(id)
	if !ok {
		t.Fatalf("producer %d is unknown", id)
	}
	return e
}

func TestPrepare_SequencesWrapToZero(t *testing.T) {
	m := New()
	replay(t, m, data(7, 0, 0, 4, 2147483646))
	e := mustGet(t, m, 7)
	if e.LastSequence != 1 || e.OffsetDelta != 3 || e.LastOffset != 3 || e.FirstSequence() != 2147483646 {
		t.Errorf("after the wrap: %+v, first sequence %d", e, e.FirstSequence())
	}
	replay(t, m, data(7, 0, 4, 1, 2))
	if e := mustGet(t, m, 7); e.LastSequence != 2 || e.LastOffset != 4 || e.OffsetDelta != 0 {
		t.Errorf("after the next batch: %+v", e)
	}
	replay(t, m, data(8, 0, 5, 2, 2147483646))
	if e := mustGet(t, m, 8); e.LastSequence != 2147483647 || e.FirstSequence() != 2147483646 {
		t.Errorf("2147483647 itself is not used: %+v", e)
	}
}

func TestPrepare_MarkerOfUnknownProducerHasNoSequences(t *testing.T) {
	m := New()
	completed := replay(t, m, marker(MarkerAbort, 7, 0, 5, 0), data(None, None, 6, 1, None))
	want := Entry{
		ProducerID: 7, LastSequence: -1, LastOffset: -1, TimestampMs: 5 * second, CurrentTxnFirstOffset: -1,
	}
	if e := mustGet(t, m, 7); e != want {
		t.Errorf("entry is %+v, want %+v", e, want)
	}
	if len(completed) != 0 || m.Len() != 1 || m.MapEndOffset() != 7 {
		t.Errorf("completed %v, %d producers, map end %d", completed, m.Len(), m.MapEndOffset())
	}
}

func TestPrepare_EmptyControlBatchLeavesProducerAlone(t *testing.T) {
	empty := marker(MarkerNone, 7, 3, 2, 0)
	empty.RecordsCount = 0
	m := New()
	replay(t, m, txn(7, 2, 0, 2, 0))
	before := mustGet(t, m, 7)
	replay(t, m, empty)
	if after := mustGet(t, m, 7); after != before {
		t.Errorf("state went from %+v to %+v", before, after)
	}
	empty.ProducerID = 9
	replay(t, m, empty)
	bare := Entry{
		ProducerID: 9, ProducerEpoch: -1, LastSequence: -1, LastOffset: -1, TimestampMs: -1, CoordinatorEpoch: -1,
		CurrentTxnFirstOffset: -1,
	}
	if e := mustGet(t, m, 9); e != bare {
		t.Errorf("unknown producer got %+v", e)
	}
}

func TestPrepare_EmptyDataBatchCanOpenATransaction(t *testing.T) {
	empty := txn(7, 0, 3, 2, 10)
	empty.RecordsCount = 0
	m := New()
	replay(t, m, empty)
	if first, ok := m.FirstOpenOffset(); !ok || first != 3 {
		t.Errorf("first open offset %d, %t", first, ok)
	}
	if e := mustGet(t, m, 7); e.LastSequence != 11 || e.LastOffset != 4 {
		t.Errorf("entry is %+v", e)
	}
}

func TestPrepare_EpochsMayRiseInMarkersAndFall(t *testing.T) {
	t.Run("each marker raises the epoch", func(t *testing.T) {
		m := New()
		completed := replay(t, m, txn(7, 0, 0, 2, 0), marker(MarkerAbort, 7, 1, 2, 0),
			txn(7, 1, 3, 2, 0), marker(MarkerCommit, 7, 2, 5, 0))
		e := mustGet(t, m, 7)
		if len(completed) != 2 || !completed[0].Aborted || completed[1].Aborted {
			t.Errorf("completed %+v", completed)
		}
		if e.ProducerEpoch != 2 || e.LastSequence != -1 || e.LastOffset != -1 || e.OffsetDelta != 0 ||
			e.CurrentTxnFirstOffset != -1 || m.Regressions() != 0 {
			t.Errorf("entry is %+v, %d regressions", e, m.Regressions())
		}
	})
	t.Run("a marker of the same epoch keeps the batch", func(t *testing.T) {
		m := New()
		replay(t, m, txn(7, 3, 0, 2, 5), marker(MarkerCommit, 7, 3, 2, 4))
		if e := mustGet(t, m, 7); e.LastSequence != 6 || e.LastOffset != 1 || e.TimestampMs != 2*second {
			t.Errorf("entry is %+v", e)
		}
	})
	t.Run("coordinator epoch falls", func(t *testing.T) {
		m := New()
		replay(t, m, txn(7, 0, 0, 1, 0), marker(MarkerAbort, 7, 0, 1, 9),
			txn(7, 0, 2, 1, 1), marker(MarkerCommit, 7, 0, 3, 3))
		if e := mustGet(t, m, 7); e.CoordinatorEpoch != 3 || e.CurrentTxnFirstOffset != -1 || m.Regressions() != 1 {
			t.Errorf("entry is %+v, %d regressions", e, m.Regressions())
		}
	})
	t.Run("marker below the data's epoch", func(t *testing.T) {
		m := New()
		completed := replay(t, m, txn(7, 5, 0, 1, 0), marker(MarkerAbort, 7, 4, 1, 0))
		if e := mustGet(t, m, 7); e.ProducerEpoch != 4 || e.LastSequence != -1 || len(completed) != 1 || m.Regressions() != 1 {
			t.Errorf("entry is %+v, completed %v, %d regressions", e, completed, m.Regressions())
		}
	})
	t.Run("data below the known epoch", func(t *testing.T) {
		m := New()
		replay(t, m, data(7, 5, 0, 1, 0), data(7, 4, 1, 1, 100))
		if e := mustGet(t, m, 7); e.ProducerEpoch != 4 || e.LastSequence != 100 || m.Regressions() != 1 {
			t.Errorf("entry is %+v, %d regressions", e, m.Regressions())
		}
	})
}

func TestPrepare_RefusalLeavesStateAsItWas(t *testing.T) {
	start := func(t *testing.T) *Manager {
		m := New()
		replay(t, m, txn(7, 0, 0, 2, 0), data(8, 0, 2, 1, 0))
		if err := m.Prepare(data(8, 0, 3, 1, 1)); err != nil { // prepared, and to stay so
			t.Fatal(err)
		}
		return m
	}
	unknown := marker(MarkerUnknown, 9, 0, 4, 0)
	reset := pidReset(4)
	reset.ProducerID = 7
	for name, c := range map[string]struct {
		b    *Batch
		want error
	}{
		"batch outside its open transaction":     {data(7, 0, 4, 1, 2), ErrInvalidTxnState},
		"unknown control type with a producer":   {unknown, ErrUnknownControlType},
		"MIRROR_PID_RESET that names a producer": {reset, ErrUnknownControlType},
	} {
		t.Run(name, func(t *testing.T) {
			m, same := start(t), start(t)
			if err := m.Prepare(c.b); !errors.Is(err, c.want) {
				t.Fatalf("Prepare = %v", err)
			}
			assertSame(t, m, same)
			m.Rollback()
			same.Rollback()
			assertSame(t, m, same)
			if e := mustGet(t, m, 8); e.LastSequence != 0 {
				t.Errorf("Rollback after a refusal leaves %+v", e)
			}
		})
	}
}

// assertSame compares everything that can be asked of two managers.
func assertSame(t *testing.T, a, b *Manager) {
	t.Helper()
	if !slices.Equal(a.Entries(), b.Entries()) {
		t.Errorf("entries differ:\n%+v\n%+v", a.Entries(), b.Entries())
	}
	if !slices.Equal(a.OngoingTxns(), b.OngoingTxns()) {
		t.Errorf("open transactions differ:\n%+v\n%+v", a.OngoingTxns(), b.OngoingTxns())
	}
	if !slices.Equal(a.Completed(), b.Completed()) {
		t.Errorf("completed transactions differ:\n%+v\n%+v", a.Completed(), b.Completed())
	}
	if a.MapEndOffset() != b.MapEndOffset() || a.HighestProducerID() != b.HighestProducerID() ||
		a.Regressions() != b.Regressions() {
		t.Errorf("map end %d and %d, highest producer %d and %d, regressions %d and %d", a.MapEndOffset(),
			b.MapEndOffset(), a.HighestProducerID(), b.HighestProducerID(), a.Regressions(), b.Regressions())
	}
	for hw := int64(0); hw < 12; hw++ {
		x, xok := a.FirstUnstableOffset(hw)
		y, yok := b.FirstUnstableOffset(hw)
		if x != y || xok != yok {
			t.Errorf("first unstable offset at %d: %d, %t and %d, %t", hw, x, xok, y, yok)
		}
	}
}

func TestCompleted_LastStableOffsetIsTheEarliestOtherOpenTransaction(t *testing.T) {
	m := New()
	got := replay(t, m, txn(7, 0, 0, 2, 0), txn(8, 0, 2, 1, 0),
		marker(MarkerAbort, 7, 0, 3, 0), marker(MarkerAbort, 8, 0, 4, 0))
	want := []CompletedTxn{
		{ProducerID: 7, FirstOffset: 0, LastOffset: 3, LastStableOffset: 2, Aborted: true},
		{ProducerID: 8, FirstOffset: 2, LastOffset: 4, LastStableOffset: 5, Aborted: true},
	}
	if !slices.Equal(got, want) {
		t.Errorf("completed %+v, want %+v", got, want)
	}
}

func TestCompleted_ATransactionThatOpensBehindTheMarkerDoesNotCount(t *testing.T) {
	m := New()
	for _, b := range []*Batch{txn(1, 0, 0, 2, 0), marker(MarkerAbort, 1, 0, 2, 0), txn(2, 0, 6, 1, 0)} {
		if err := m.Prepare(b); err != nil {
			t.Fatal(err)
		}
	}
	if c := m.Completed(); len(c) != 1 || c[0].LastStableOffset != 3 {
		t.Errorf("prepared in one go: %+v", c)
	}
}

func TestCompleted_RepeatedAndEmptyAbortsCompleteNothing(t *testing.T) {
	m := New()
	if c := replay(t, m, marker(MarkerAbort, 7, 0, 0, 0)); len(c) != 0 {
		t.Errorf("ABORT without data completed %+v", c)
	}
	if _, open := m.FirstOpenOffset(); open {
		t.Error("a transaction is open")
	}
	c := replay(t, m, txn(7, 0, 1, 2, 0), marker(MarkerAbort, 7, 0, 3, 0), marker(MarkerAbort, 7, 0, 4, 0))
	if len(c) != 1 {
		t.Errorf("ABORT twice completed %+v", c)
	}
}

func TestCompleted_AMillionMarkersWithoutDataLeaveOneProducer(t *testing.T) {
	n := int64(1_000_000)
	if testing.Short() {
		n = 10_000
	}
	m, b := New(), marker(MarkerAbort, 7, 0, 0, 0)
	for offset := range n {
		b.BaseOffset, b.LastOffset = offset, offset
		if err := m.Prepare(b); err != nil || len(m.Completed()) > 0 {
			t.Fatalf("marker at %d: completed %v, %v", offset, m.Completed(), err)
		}
		m.Commit()
	}
	if m.Len() != 1 || len(m.slots) != 1 || cap(m.journal) > 8 || cap(m.unreplicated.items) > 0 {
		t.Errorf("%d producers in %d slots, journal of %d", m.Len(), len(m.slots), cap(m.journal))
	}
}

func TestFirstUnstableOffset_CountsMarkersTheHighWatermarkHasNotPassed(t *testing.T) {
	m := New()
	replay(t, m, txn(7, 0, 0, 1, 0), txn(8, 0, 1, 1, 0), marker(MarkerCommit, 8, 0, 2, 0), data(None, None, 3, 1, None),
		marker(MarkerCommit, 7, 0, 4, 0), txn(9, 0, 5, 1, 0))
	for hw, want := range map[int64]int64{0: 0, 2: 0, 3: 0, 4: 0, 5: 5, 6: 5} {
		if got, ok := m.FirstUnstableOffset(hw); !ok || got != want {
			t.Errorf("FirstUnstableOffset(%d) = %d, %t, want %d", hw, got, ok, want)
		}
	}
	m.OnHighWatermark(5)
	replay(t, m, marker(MarkerCommit, 9, 0, 6, 0))
	if got, ok := m.FirstUnstableOffset(6); !ok || got != 5 {
		t.Errorf("marker at the high watermark: %d, %t", got, ok)
	}
	m.OnHighWatermark(7)
	if got, ok := m.FirstUnstableOffset(7); ok {
		t.Errorf("everything is replicated, yet %d is unstable", got)
	}
}

func TestPidReset_RemovesWhatCameBeforeItAndNothingElse(t *testing.T) {
	m := New()
	replay(t, m, data(1, 0, 0, 1, 0), txn(2, 0, 1, 1, 0), txn(3, 4, 2, 1, 0))
	for _, b := range []*Batch{pidReset(3), data(9, 0, 4, 1, 0)} {
		if err := m.Prepare(b); err != nil {
			t.Fatal(err)
		}
	}
	dropped := []OpenTxn{
		{ProducerID: 2, CoordinatorEpoch: -1, FirstOffset: 1, TimestampMs: second},
		{ProducerID: 3, ProducerEpoch: 4, CoordinatorEpoch: -1, FirstOffset: 2, TimestampMs: 2 * second},
	}
	if !slices.Equal(m.Dropped(), dropped) {
		t.Errorf("dropped %+v, want %+v", m.Dropped(), dropped)
	}
	m.Commit()
	if entries := m.Entries(); len(entries) != 1 || entries[0].ProducerID != 9 || m.MapEndOffset() != 5 {
		t.Errorf("entries after the reset: %+v, map end %d", entries, m.MapEndOffset())
	}
	if _, ok := m.FirstUnstableOffset(0); ok {
		t.Error("a transaction survived the reset")
	}
	if m.HighestProducerID() != 9 {
		t.Errorf("highest producer id %d", m.HighestProducerID())
	}
	// The producer ids are free again: the same id starts over.
	replay(t, m, txn(2, 0, 5, 1, 0))
	if e := mustGet(t, m, 2); e.CurrentTxnFirstOffset != 5 {
		t.Errorf("entry is %+v", e)
	}
}

func TestPidReset_CanBeTakenBack(t *testing.T) {
	build := func() *Manager {
		m := New()
		replay(t, m, data(1, 0, 0, 1, 0), txn(2, 0, 1, 1, 0))
		return m
	}
	m := build()
	for _, b := range []*Batch{
		txn(3, 0, 2, 1, 0), pidReset(3), txn(2, 7, 4, 1, 0), pidReset(5), pidReset(6), data(1, 1, 7, 1, 0),
	} {
		if err := m.Prepare(b); err != nil {
			t.Fatal(err)
		}
	}
	m.Rollback()
	assertSame(t, m, build())
}

func TestUnknownControl_WithoutProducerChangesOnlyTheEnd(t *testing.T) {
	m := New()
	b := marker(MarkerUnknown, None, None, 0, 0)
	replay(t, m, b)
	if m.Len() != 0 || m.MapEndOffset() != 1 {
		t.Errorf("%d producers, map end %d", m.Len(), m.MapEndOffset())
	}
}

func TestExpire_CountsFromTheLogAndSparesOpenTransactions(t *testing.T) {
	const day, hour = 24 * 3600 * second, 3600 * second
	now := int64(100 * day)
	entries := []Entry{newEntry(7), newEntry(8), newEntry(9)}
	entries[0].TimestampMs = now - 25*hour
	entries[1].TimestampMs, entries[1].CurrentTxnFirstOffset = now-25*hour, 1
	entries[2].TimestampMs = now - day + 1
	m := New()
	if err := m.Load(entries, 3); err != nil {
		t.Fatal(err)
	}
	// The log ends 25 hours ago: whatever this host's clock says, nothing is old.
	if n := m.Expire(now-25*hour, day); n != 0 {
		t.Errorf("%d producers expired by the log's own time", n)
	}
	if n := m.Expire(now, day); n != 1 || m.Len() != 2 {
		t.Errorf("%d producers expired, %d left", n, m.Len())
	}
	if _, ok := m.Get(7); ok {
		t.Error("producer 7 is still there")
	}
	replay(t, m, data(10, 0, 3, 1, 0), txn(11, 0, 4, 1, 0)) // takes the free slot
	if got := len(m.OngoingTxns()); got != 2 {
		t.Errorf("%d open transactions, want 2", got)
	}
}

func TestLoad_RefusesWhatNoLogCanSay(t *testing.T) {
	entry := func(id, lastOffset, first int64) Entry {
		e := newEntry(id)
		e.LastOffset, e.CurrentTxnFirstOffset = lastOffset, first
		return e
	}
	for name, entries := range map[string][]Entry{
		"producer twice":                    {entry(7, 1, -1), entry(7, 2, -1)},
		"negative producer":                 {entry(-3, 1, -1)},
		"batch at the snapshot's offset":    {entry(7, 10, -1)},
		"transaction at or after its end":   {entry(7, 2, 10)},
		"negative offset other than absent": {entry(7, -2, -1)},
	} {
		m := New()
		if err := m.Load(entries, 10); !errors.Is(err, ErrCorruptSnapshot) {
			t.Errorf("%s: Load = %v", name, err)
		}
		if m.Len() != 0 {
			t.Errorf("%s: %d producers are left", name, m.Len())
		}
	}
}
