package psm

// nilSlot is the link that leads nowhere.
const nilSlot = int32(-1)

// slot is one producer, linked into the list of open transactions while it has one.
type slot struct {
	Entry
	prev, next int32
}

func (s *slot) open() OpenTxn {
	return OpenTxn{
		ProducerID: s.ProducerID, ProducerEpoch: s.ProducerEpoch, CoordinatorEpoch: s.CoordinatorEpoch,
		FirstOffset: s.CurrentTxnFirstOffset, TimestampMs: s.TimestampMs,
	}
}

// table holds the producers by id, and the open transactions as a list in the order of their first offsets.
// Slots are numbered, so that links and the journal stay valid when the slice grows.
type table struct {
	slots      []slot
	free       []int32
	byID       map[int64]int32
	head, tail int32
}

func newTable() table {
	return table{byID: make(map[int64]int32), head: nilSlot, tail: nilSlot}
}

func (t *table) reset() {
	clear(t.byID)
	t.slots, t.free = t.slots[:0], t.free[:0]
	t.head, t.tail = nilSlot, nilSlot
}

// add stores e, whose producer is not there yet, and returns its slot.
func (t *table) add(e Entry) int32 {
	s := slot{Entry: e, prev: nilSlot, next: nilSlot}
	var i int32
	if n := len(t.free); n > 0 {
		i = t.free[n-1]
		t.free = t.free[:n-1]
		t.slots[i] = s
	} else {
		i = int32(len(t.slots))
		t.slots = append(t.slots, s)
	}
	t.byID[e.ProducerID] = i
	return i
}

func (t *table) remove(i int32) {
	delete(t.byID, t.slots[i].ProducerID)
	t.free = append(t.free, i)
}

// link appends slot i to the open transactions: a transaction opens at a higher offset than all before it.
func (t *table) link(i int32) {
	t.slots[i].prev, t.slots[i].next = t.tail, nilSlot
	if t.tail == nilSlot {
		t.head = i
	} else {
		t.slots[t.tail].next = i
	}
	t.tail = i
}

// unlink takes slot i out of the list. It keeps its own links, by which relink puts it back as long as
// everything done after the unlink has been taken back first.
func (t *table) unlink(i int32) {
	s := &t.slots[i]
	if s.prev == nilSlot {
		t.head = s.next
	} else {
		t.slots[s.prev].next = s.next
	}
	if s.next == nilSlot {
		t.tail = s.prev
	} else {
		t.slots[s.next].prev = s.prev
	}
}

func (t *table) relink(i int32) {
	s := &t.slots[i]
	if s.prev == nilSlot {
		t.head = i
	} else {
		t.slots[s.prev].next = i
	}
	if s.next == nilSlot {
		t.tail = i
	} else {
		t.slots[s.next].prev = i
	}
}
