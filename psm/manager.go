package psm

import (
	"cmp"
	"fmt"
	"slices"
)

// Manager is the producer state of one partition. Kafka: ProducerStateManager.
type Manager struct {
	table
	mapEnd  int64
	highest int64

	regressions int64

	// since the last Commit
	journal    []undo
	completed  []CompletedTxn
	dropped    []OpenTxn
	savedState []table // states that a reset put aside

	unreplicated unreplicated
}

// New returns the state of an empty log.
func New() *Manager {
	return &Manager{table: newTable(), highest: None}
}

// Commit forgets how to take back what was prepared, and makes its completed transactions count as not
// replicated until the high watermark passes their markers. Allocates nothing in the steady state.
func (m *Manager) Commit() {
	for i := range m.completed {
		m.unreplicated.push(m.completed[i].FirstOffset, m.completed[i].LastOffset)
	}
	m.forget()
}

func (m *Manager) forget() {
	m.journal = m.journal[:0]
	m.completed = m.completed[:0]
	m.dropped = m.dropped[:0]
	clear(m.savedState)
	m.savedState = m.savedState[:0]
}

// Completed returns the transactions that were completed since the last Commit, in batch order. The slice is
// the manager's and valid until the next Prepare, Commit or Rollback.
func (m *Manager) Completed() []CompletedTxn {
	return m.completed[:len(m.completed):len(m.completed)]
}

// Dropped returns the transactions that were still open where a MIRROR_PID_RESET removed them since the last
// Commit: a fault to report. The slice is the manager's and valid until the next Prepare, Commit or Rollback.
func (m *Manager) Dropped() []OpenTxn { return m.dropped[:len(m.dropped):len(m.dropped)] }

// FirstUnstableOffset returns the first offset of the earliest transaction that is open, or whose marker is
// not below the high watermark hw, and false where there is none. Kafka:
// ProducerStateManager.firstUnstableOffset.
func (m *Manager) FirstUnstableOffset(hw int64) (int64, bool) {
	first, ok := m.unreplicated.first(hw)
	if m.head != nilSlot && (!ok || m.slots[m.head].CurrentTxnFirstOffset < first) {
		return m.slots[m.head].CurrentTxnFirstOffset, true
	}
	return first, ok
}

// FirstOpenOffset returns the first offset of the earliest open transaction, and false where none is open.
func (m *Manager) FirstOpenOffset() (int64, bool) {
	if m.head == nilSlot {
		return 0, false
	}
	return m.slots[m.head].CurrentTxnFirstOffset, true
}

// OnHighWatermark forgets the completed transactions whose markers are below hw. Kafka:
// ProducerStateManager.onHighWatermarkUpdated.
func (m *Manager) OnHighWatermark(hw int64) { m.unreplicated.dropBelow(hw) }

// MapEndOffset returns the offset up to which (exclusive) the log is in this state.
func (m *Manager) MapEndOffset() int64 { return m.mapEnd }

// SetMapEndOffset says that the state is that of the log up to offset, also where no batch ends there.
func (m *Manager) SetMapEndOffset(offset int64) { m.mapEnd = offset }

// HighestProducerID returns the highest producer id that was ever applied or loaded, -1 where there is none.
// Clear and a reset do not lower it.
func (m *Manager) HighestProducerID() int64 { return m.highest }

// Regressions returns how many batches and markers had a lower epoch than their producer had already. Kafka
// warns of them on followers.
func (m *Manager) Regressions() int64 { return m.regressions }

// Len returns the number of producers.
func (m *Manager) Len() int { return len(m.byID) }

// Get returns the state of one producer, and false where it is unknown.
func (m *Manager) Get(producerID int64) (Entry, bool) {
	i, ok := m.byID[producerID]
	if !ok {
		return Entry{}, false
	}
	return m.slots[i].Entry, true
}

// Entries returns the state of every producer, by rising producer id. The slice is the caller's.
func (m *Manager) Entries() []Entry {
	all := make([]Entry, 0, len(m.byID))
	for _, i := range m.byID {
		all = append(all, m.slots[i].Entry)
	}
	slices.SortFunc(all, func(a, b Entry) int { return cmp.Compare(a.ProducerID, b.ProducerID) })
	return all
}

// OngoingTxns returns the open transactions, by rising first offset. The slice is the caller's.
func (m *Manager) OngoingTxns() []OpenTxn {
	var all []OpenTxn
	for i := m.head; i != nilSlot; i = m.slots[i].next {
		all = append(all, m.slots[i].open())
	}
	return all
}

// Clear removes every producer, open transaction and completed transaction that is not replicated, and what
// was prepared. The map end offset becomes 0. Kafka: ProducerStateManager.clearProducerIds.
func (m *Manager) Clear() {
	m.forget()
	m.reset()
	m.unreplicated.clear()
	m.mapEnd = 0
}

// Load replaces the state by what a snapshot of offset holds. entries stays the caller's.
//
// ErrCorruptSnapshot (a producer twice, or an offset at or beyond the snapshot's own) leaves the state
// cleared. Nothing is expired: see Expire. Kafka: ProducerStateManager.loadFromSnapshot.
func (m *Manager) Load(entries []Entry, offset int64) error {
	m.Clear()
	open := make([]int32, 0)
	for i := range entries {
		e := &entries[i]
		_, twice := m.byID[e.ProducerID]
		if twice || e.ProducerID < 0 || e.LastOffset >= offset || e.CurrentTxnFirstOffset >= offset ||
			e.LastOffset < None || e.CurrentTxnFirstOffset < None {
			m.Clear()
			return fmt.Errorf("producer %d (known before: %t), last offset %d, transaction from %d, at offset %d: %w",
				e.ProducerID, twice, e.LastOffset, e.CurrentTxnFirstOffset, offset, ErrCorruptSnapshot)
		}
		slot := m.add(*e)
		m.highest = max(m.highest, e.ProducerID)
		if e.CurrentTxnFirstOffset >= 0 {
			open = append(open, slot)
		}
	}
	slices.SortStableFunc(open, func(a, b int32) int {
		return cmp.Compare(m.slots[a].CurrentTxnFirstOffset, m.slots[b].CurrentTxnFirstOffset)
	})
	for _, slot := range open {
		m.link(slot)
	}
	m.mapEnd = offset
	return nil
}
