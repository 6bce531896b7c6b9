package psm

// completion is a completed transaction whose marker the high watermark has not passed.
type completion struct{ firstOffset, markerOffset int64 }

// unreplicated answers which of the completed transactions that are not replicated began first.
//
// Markers come and go in offset order, so this is the minimum of a sliding window: a completion whose first
// offset is not below that of a later one can never be the answer again and is dropped when the later one
// comes. What is left rises in both offsets. Kafka keeps them all (ProducerStateManager.unreplicatedTxns).
type unreplicated struct {
	items []completion // from start on
	start int
}

func (u *unreplicated) push(firstOffset, markerOffset int64) {
	for len(u.items) > u.start && u.items[len(u.items)-1].firstOffset >= firstOffset {
		u.items = u.items[:len(u.items)-1]
	}
	if u.start > 0 && len(u.items) == cap(u.items) {
		u.items = u.items[:copy(u.items, u.items[u.start:])]
		u.start = 0
	}
	u.items = append(u.items, completion{firstOffset: firstOffset, markerOffset: markerOffset})
}

// first returns the lowest first offset among the transactions whose markers are at or above hw.
func (u *unreplicated) first(hw int64) (int64, bool) {
	for _, c := range u.items[u.start:] {
		if c.markerOffset >= hw {
			return c.firstOffset, true
		}
	}
	return 0, false
}

func (u *unreplicated) dropBelow(hw int64) {
	for u.start < len(u.items) && u.items[u.start].markerOffset < hw {
		u.start++
	}
	if u.start == len(u.items) {
		u.clear()
	}
}

func (u *unreplicated) clear() { u.items, u.start = u.items[:0], 0 }
