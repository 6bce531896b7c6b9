package psm

import "fmt"

// undo is how to take one prepared batch back.
type undo struct {
	kind    undoKind
	slot    int32
	before  slot  // of undoEntry: the slot as it was, links included
	mapEnd  int64 // of every kind
	highest int64

	regressions int64
	completed   int
	dropped     int
}

type undoKind int8

const (
	undoNothing undoKind = iota // the batch changed no producer
	undoAdd                     // the producer was new
	undoEntry                   // the producer had another state
	undoReset                   // everything was put aside
)

// Prepare applies b to the state, following its log's order, and notes how to take it back.
//
// The rules are those for replicated data. Batches without a producer id change only the map end offset, but
// for MIRROR_PID_RESET, which removes everything. A refusal (ErrInvalidTxnState, ErrUnknownControlType) leaves
// the state as it was before this call; what earlier calls prepared stays prepared. b stays the caller's.
// Allocates nothing for producers that are known. Kafka: ProducerAppendInfo.append.
func (m *Manager) Prepare(b *Batch) error {
	u := undo{
		mapEnd: m.mapEnd, highest: m.highest, regressions: m.regressions,
		completed: len(m.completed), dropped: len(m.dropped),
	}
	switch {
	case b.ProducerID < 0 && b.Control && b.Marker.Type == MarkerPidReset:
		m.putAside()
		u.kind = undoReset
	case b.ProducerID < 0:
		u.kind = undoNothing
	default:
		i, known := m.byID[b.ProducerID]
		if err := m.refusal(b, i, known); err != nil {
			return err
		}
		if known {
			u.kind, u.slot, u.before = undoEntry, i, m.slots[i]
		} else {
			i = m.add(newEntry(b.ProducerID))
			u.kind, u.slot = undoAdd, i
			m.highest = max(m.highest, b.ProducerID)
		}
		m.apply(b, i)
	}
	m.mapEnd = b.LastOffset + 1
	m.journal = append(m.journal, u)
	return nil
}

// Refusal returns the error that Prepare would return for b, and changes nothing: for a caller that has something to do
// for the batch before it is applied, and cannot take that back.
func (m *Manager) Refusal(b *Batch) error {
	if b.ProducerID < 0 {
		return nil
	}
	i, known := m.byID[b.ProducerID]
	return m.refusal(b, i, known)
}

// refusal returns why b cannot follow the state of its producer, which is in slot i where it is known.
func (m *Manager) refusal(b *Batch, i int32, known bool) error {
	if b.Control {
		if b.Marker.Type == MarkerUnknown || b.Marker.Type == MarkerPidReset {
			return fmt.Errorf("producer %d, offset %d: %w", b.ProducerID, b.BaseOffset, ErrUnknownControlType)
		}
		return nil
	}
	if known && !b.Transactional && m.slots[i].CurrentTxnFirstOffset >= 0 {
		return fmt.Errorf("producer %d, offset %d, transaction open since %d: %w",
			b.ProducerID, b.BaseOffset, m.slots[i].CurrentTxnFirstOffset, ErrInvalidTxnState)
	}
	return nil
}

func (m *Manager) apply(b *Batch, i int32) {
	e := &m.slots[i]
	switch {
	case !b.Control:
		if b.ProducerEpoch < e.ProducerEpoch {
			m.regressions++
		}
		e.setEpoch(b.ProducerEpoch)
		e.LastSequence = b.lastSequence()
		e.LastOffset, e.OffsetDelta = b.LastOffset, b.LastOffsetDelta
		e.TimestampMs = b.MaxTimestampMs
		if b.Transactional && e.CurrentTxnFirstOffset < 0 {
			e.CurrentTxnFirstOffset = b.BaseOffset
			m.link(i)
		}
	case b.Marker.Type == MarkerNone:
		// Compaction emptied the batch: the whole transaction is gone, and the producer keeps its state.
	default:
		m.complete(b, i)
	}
}

// complete applies a COMMIT or ABORT marker.
func (m *Manager) complete(b *Batch, i int32) {
	e := &m.slots[i]
	if b.ProducerEpoch < e.ProducerEpoch || b.Marker.CoordinatorEpoch < e.CoordinatorEpoch {
		m.regressions++
	}
	if e.CurrentTxnFirstOffset >= 0 {
		m.unlink(i)
		stable := b.BaseOffset + 1
		if m.head != nilSlot {
			stable = m.slots[m.head].CurrentTxnFirstOffset
		}
		m.completed = append(m.completed, CompletedTxn{
			ProducerID: b.ProducerID, FirstOffset: e.CurrentTxnFirstOffset, LastOffset: b.BaseOffset,
			LastStableOffset: stable, Aborted: b.Marker.Type == MarkerAbort,
		})
	}
	e.setEpoch(b.ProducerEpoch)
	e.CoordinatorEpoch = b.Marker.CoordinatorEpoch
	e.TimestampMs = b.MaxTimestampMs
	e.CurrentTxnFirstOffset = None
}

// putAside is the MIRROR_PID_RESET barrier: the state is kept for a Rollback and an empty one begins.
func (m *Manager) putAside() {
	for i := m.head; i != nilSlot; i = m.slots[i].next {
		m.dropped = append(m.dropped, m.slots[i].open())
	}
	m.savedState = append(m.savedState, m.table)
	m.table = newTable()
}

// Rollback takes back everything since the last Commit. Allocates nothing.
func (m *Manager) Rollback() {
	for n := len(m.journal) - 1; n >= 0; n-- {
		u := &m.journal[n]
		switch u.kind {
		case undoNothing:
		case undoAdd:
			if m.slots[u.slot].CurrentTxnFirstOffset >= 0 {
				m.unlink(u.slot)
			}
			m.remove(u.slot)
		case undoEntry:
			m.restore(u.slot, u.before)
		case undoReset:
			last := len(m.savedState) - 1
			m.table = m.savedState[last]
			m.savedState[last] = table{}
			m.savedState = m.savedState[:last]
		}
	}
	if len(m.journal) > 0 {
		u := &m.journal[0]
		m.mapEnd, m.highest, m.regressions = u.mapEnd, u.highest, u.regressions
	}
	m.forget()
}

// restore gives slot i its former state. Everything done after has been taken back already, so the links in
// before, where they mattered, are right again.
func (m *Manager) restore(i int32, before slot) {
	isOpen := m.slots[i].CurrentTxnFirstOffset >= 0
	wasOpen := before.CurrentTxnFirstOffset >= 0
	if isOpen && !wasOpen {
		m.unlink(i)
	}
	if isOpen && wasOpen {
		before.prev, before.next = m.slots[i].prev, m.slots[i].next
	}
	m.slots[i] = before
	if !isOpen && wasOpen {
		m.relink(i)
	}
}
