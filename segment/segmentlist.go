package segment

import "sort"

// segmentList is an immutable, non-empty set of segments in the order of their base offsets. A change makes a new one.
//
// Kafka: LogSegments.
type segmentList []*Segment

// floor is the index of the segment whose base is the largest not above offset, -1 when all lie above.
func (l segmentList) floor(offset int64) int {
	return sort.Search(len(l), func(i int) bool { return l[i].base > offset }) - 1
}

func (l segmentList) first() *Segment { return l[0] }

func (l segmentList) last() *Segment { return l[len(l)-1] }

// with is the list and s behind it.
func (l segmentList) with(s *Segment) segmentList {
	return append(append(make(segmentList, 0, len(l)+1), l...), s)
}

// bases lists the base offsets.
func (l segmentList) bases() []int64 {
	bases := make([]int64, len(l))
	for i, s := range l {
		bases[i] = s.base
	}
	return bases
}

// bytes is what readers can see of all segments.
func (l segmentList) bytes() int64 {
	var n int64
	for _, s := range l {
		n += s.size.Load()
	}
	return n
}
