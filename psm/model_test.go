package psm

import (
	"cmp"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// model is the producer state written down as plainly as possible: whole copies in place of a journal.
type model struct {
	entries map[int64]Entry
	done    []CompletedTxn // of every committed step
	staged  []CompletedTxn
	mapEnd  int64
}

func (m *model) clone() *model {
	c := &model{entries: map[int64]Entry{}, done: slices.Clone(m.done), staged: slices.Clone(m.staged), mapEnd: m.mapEnd}
	for id, e := range m.entries {
		c.entries[id] = e
	}
	return c
}

// prepare applies b and reports whether it was accepted.
func (m *model) prepare(b *Batch) bool {
	if b.ProducerID < 0 {
		if b.Control && b.Marker.Type == MarkerPidReset {
			m.entries = map[int64]Entry{}
		}
		m.mapEnd = b.LastOffset + 1
		return true
	}
	e, ok := m.entries[b.ProducerID]
	if !ok {
		e = newEntry(b.ProducerID)
	}
	switch {
	case b.Control && (b.Marker.Type == MarkerUnknown || b.Marker.Type == MarkerPidReset):
		return false
	case b.Control && b.Marker.Type == MarkerNone:
	case b.Control:
		if e.CurrentTxnFirstOffset >= 0 {
			stable := b.BaseOffset + 1
			for id, other := range m.entries {
				if id != b.ProducerID && other.CurrentTxnFirstOffset >= 0 {
					stable = min(stable, other.CurrentTxnFirstOffset)
				}
			}
			m.staged = append(m.staged, CompletedTxn{
				b.ProducerID, e.CurrentTxnFirstOffset, b.BaseOffset, stable, b.Marker.Type == MarkerAbort,
			})
		}
		e.setEpoch(b.ProducerEpoch)
		e.CoordinatorEpoch, e.TimestampMs, e.CurrentTxnFirstOffset = b.Marker.CoordinatorEpoch, b.MaxTimestampMs, None
	case !b.Transactional && e.CurrentTxnFirstOffset >= 0:
		return false
	default:
		e.setEpoch(b.ProducerEpoch)
		e.LastSequence, e.LastOffset = b.lastSequence(), b.LastOffset
		e.OffsetDelta, e.TimestampMs = b.LastOffsetDelta, b.MaxTimestampMs
		if b.Transactional && e.CurrentTxnFirstOffset < 0 {
			e.CurrentTxnFirstOffset = b.BaseOffset
		}
	}
	m.entries[b.ProducerID] = e
	m.mapEnd = b.LastOffset + 1
	return true
}

func (m *model) firstUnstable(hw int64) (int64, bool) {
	first, ok := int64(0), false
	take := func(offset int64) {
		if !ok || offset < first {
			first, ok = offset, true
		}
	}
	for _, e := range m.entries {
		if e.CurrentTxnFirstOffset >= 0 {
			take(e.CurrentTxnFirstOffset)
		}
	}
	for _, c := range m.done {
		if c.LastOffset >= hw {
			take(c.FirstOffset)
		}
	}
	return first, ok
}

func (m *model) compare(t *rapid.T, got *Manager, hw int64) {
	var entries []Entry
	var open []OpenTxn
	for _, e := range m.entries {
		entries = append(entries, e)
		if e.CurrentTxnFirstOffset >= 0 {
			open = append(open, OpenTxn{
				e.ProducerID, e.ProducerEpoch, e.CoordinatorEpoch, e.CurrentTxnFirstOffset, e.TimestampMs,
			})
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.ProducerID, b.ProducerID) })
	slices.SortFunc(open, func(a, b OpenTxn) int { return cmp.Compare(a.FirstOffset, b.FirstOffset) })
	if !slices.Equal(entries, got.Entries()) {
		t.Fatalf("entries\n%+v\nwant\n%+v", got.Entries(), entries)
	}
	if !slices.Equal(open, got.OngoingTxns()) {
		t.Fatalf("open\n%+v\nwant\n%+v", got.OngoingTxns(), open)
	}
	if !slices.Equal(m.staged, got.Completed()) || m.mapEnd != got.MapEndOffset() {
		t.Fatalf("completed %+v, map end %d, want %+v, %d", got.Completed(), got.MapEndOffset(), m.staged, m.mapEnd)
	}
	if len(m.staged) == 0 {
		first, ok := got.FirstUnstableOffset(hw)
		if want, wantOK := m.firstUnstable(hw); ok != wantOK || ok && first != want {
			t.Fatalf("FirstUnstableOffset(%d) = %d, %t, want %d, %t", hw, first, ok, want, wantOK)
		}
	}
}

func drawBatch(t *rapid.T, next int64) *Batch {
	id := rapid.Int64Range(-1, 4).Draw(t, "id")
	epoch := int16(rapid.IntRange(0, 2).Draw(t, "epoch"))
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0, 1:
		return data(id, epoch, next, int32(rapid.IntRange(1, 3).Draw(t, "n")), 0)
	case 2, 3, 4:
		return txn(id, epoch, next, int32(rapid.IntRange(1, 3).Draw(t, "n")), 5)
	case 5, 6:
		return marker(MarkerAbort, id, epoch, next, int32(epoch))
	case 7:
		return marker(MarkerCommit, id, epoch, next, int32(epoch))
	case 8:
		return marker(rapid.SampledFrom([]MarkerType{MarkerNone, MarkerUnknown, MarkerPidReset}).Draw(t, "marker"),
			id, epoch, next, 0)
	default:
		return pidReset(next)
	}
}

func TestManager_DoesWhatTheModelDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, want := New(), &model{entries: map[int64]Entry{}}
		committed := want.clone()
		next, hw := int64(0), int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				m.Rollback()
				want = committed.clone()
				next = want.mapEnd
			case 1, 2:
				m.Commit()
				want.done, want.staged = append(want.done, want.staged...), nil
				committed = want.clone()
			case 3:
				hw = rapid.Int64Range(hw, max(hw, committed.mapEnd)).Draw(t, "hw")
				m.OnHighWatermark(hw)
			default:
				b := drawBatch(t, next)
				err := m.Prepare(b)
				if accepted := want.prepare(b); accepted != (err == nil) {
					t.Fatalf("Prepare(%+v) = %v, model accepts: %t", b, err, accepted)
				}
				if err == nil {
					next = b.LastOffset + 1
				} else if !errors.Is(err, ErrInvalidTxnState) && !errors.Is(err, ErrUnknownControlType) {
					t.Fatalf("Prepare = %v", err)
				}
			}
			want.compare(t, m, hw)
		}
	})
}
