package replicator

import (
	"testing"

	"segmirror/fetchwire"
)

// TestFetchPlan_HotTailComesBeforeBackfill has partitions that are far behind and fill every answer, and one at its
// end: what is written to that comes with one of the next answers, counted in the bytes of the others.
func TestFetchPlan_HotTailComesBeforeBackfill(t *testing.T) {
	const far, answer = 6, 1 << 20
	s := newTestSource(t)
	s.limited = true
	topic := s.addTopic("t", far)
	a := startAgent(t, s, t.TempDir(), stayFailed(
		"mirror.m.mirror.fetch.max.bytes", "524288", "mirror.m.mirror.fetch.response.max.bytes", "1048576"))
	for i := range far {
		await(t, patience, "MIRRORING", func() bool { return a.partition("t", i).SourceOffset == 0 })
	}
	tail := s.addTopic("tail", 1).partitions[0] // last in every request
	s.update(func() { tail.append(dataBatch(0, 1)) })
	a.awaitEnd(t, "tail", 0, 1)
	written, mirrored := int64(0), int64(0)
	s.update(func() {
		for _, p := range topic.partitions {
			p.fill(128, 64<<10)
			p.alter = func(fetchwire.FetchPartition, *fetchwire.FetchPartitionResponse) {
				if written == 0 && s.sent > 4*answer {
					written = s.sent
					tail.append(dataBatch(1, 1))
				}
			}
		}
		tail.alter = func(asked fetchwire.FetchPartition, _ *fetchwire.FetchPartitionResponse) {
			if asked.FetchOffset == 2 && mirrored == 0 {
				mirrored = s.sent
			}
		}
	})
	for i := range far {
		a.awaitEnd(t, "t", i, 128*16)
	}
	await(t, patience, "the record at the end", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return mirrored > 0
	})
	a.stop()
	if between := mirrored - written; written == 0 || between > 3*answer {
		t.Errorf("%d bytes of others came before a record at the end of its log, want %d at most", between, 3*answer)
	}
	a.mustEqual(t, s, topic, 0)
}

// TestFetchPlan_BatchLargerThanItsShareComes has batches far behind that are larger than what one is asked for, beside
// an end that has a record for every answer, so that they are never first in one.
func TestFetchPlan_BatchLargerThanItsShareComes(t *testing.T) {
	const far, last = 3, 20_000
	s := newTestSource(t)
	s.limited = true
	tail := s.addTopic("a", 1).partitions[0]
	a := startAgent(t, s, t.TempDir(), stayFailed(
		"mirror.m.mirror.fetch.max.bytes", "1048576", "mirror.m.mirror.fetch.response.max.bytes", "524288"))
	a.awaitEnd(t, "a", 0, 0)
	s.update(func() {
		tail.append(dataBatch(0, 1), dataBatch(1, 1))
		tail.alter = func(asked fetchwire.FetchPartition, _ *fetchwire.FetchPartitionResponse) {
			if asked.FetchOffset >= tail.end-1 && tail.end < last {
				tail.append(dataBatch(tail.end, 1))
			}
		}
	})
	topic := s.addTopic("t", far)
	s.update(func() {
		for _, p := range topic.partitions {
			p.fill(20, 450<<10)
		}
	})
	for i := range far {
		a.awaitEnd(t, "t", i, 20*16)
	}
	s.mu.Lock()
	end := tail.end
	s.mu.Unlock()
	if end >= last {
		t.Error("the far batches came only when the end stood still")
	}
	a.mustEqual(t, s, topic, 0)
}

func TestTurns_LetEverybodyThroughInTurn(t *testing.T) {
	var group turns
	seen := make([]int, 10)
	for range 10 {
		group.n = len(seen)
		group.divide(3<<20, 1<<20, 8<<20)
		for i := range seen {
			if group.next() {
				seen[i]++
			}
		}
		if !group.rest() {
			t.Fatal("all were let through")
		}
	}
	for i, n := range seen {
		if n != 3 {
			t.Errorf("number %d was let through %d times of 10, want 3", i, n)
		}
	}
}
