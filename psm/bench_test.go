package psm

import (
	"fmt"
	"testing"
)

const (
	headerSize = 61
	txnIDs     = 1 << 40 // producer ids of the transactions start here
)

// steady is a round of batches that known producers write: idempotent data, and a transaction each.
func steady(producers int64) []*Batch {
	var round []*Batch
	for id := range producers {
		round = append(round, data(id, 0, 0, 10, 0), txn(txnIDs+id, 0, 0, 10, 0))
	}
	for id := range producers {
		round = append(round, marker(MarkerAbort, txnIDs+id, 0, 0, 0))
	}
	return round
}

func place(round []*Batch, next int64) int64 {
	for _, b := range round {
		b.BaseOffset, b.LastOffset = next, next+int64(b.LastOffsetDelta)
		next = b.LastOffset + 1
	}
	return next
}

func prepareAll(t testing.TB, m *Manager, round []*Batch) {
	for _, b := range round {
		if err := m.Prepare(b); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPrepareCommitRollback_AllocateNothingForKnownProducers(t *testing.T) {
	m, round := New(), steady(10)
	next := place(round, 0)
	prepareAll(t, m, round)
	m.Commit()
	n := testing.AllocsPerRun(100, func() {
		next = place(round, next)
		prepareAll(t, m, round)
		m.Rollback()
		prepareAll(t, m, round)
		m.Commit()
		m.OnHighWatermark(next)
	})
	if n != 0 {
		t.Errorf("%v allocations a round", n)
	}
}

func BenchmarkPrepareCommit(b *testing.B) {
	for _, producers := range []int64{1, 100, 10_000} {
		b.Run(fmt.Sprintf("producers=%d", producers), func(b *testing.B) {
			m, round := New(), steady(producers)
			next := int64(0)
			b.SetBytes(int64(len(round)) * headerSize)
			b.ReportAllocs()
			for b.Loop() {
				next = place(round, next)
				prepareAll(b, m, round)
				m.Commit()
				m.OnHighWatermark(next)
			}
		})
	}
}

func BenchmarkSnapshot(b *testing.B) {
	m, round := New(), steady(5_000)
	place(round, 0)
	prepareAll(b, m, round)
	m.Commit()
	file := AppendSnapshot(nil, m.Entries())
	b.Run("append", func(b *testing.B) {
		b.SetBytes(int64(len(file)))
		b.ReportAllocs()
		entries, dst := m.Entries(), make([]byte, 0, len(file))
		for b.Loop() {
			dst = AppendSnapshot(dst[:0], entries)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(file)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := DecodeSnapshot(file); err != nil {
				b.Fatal(err)
			}
		}
	})
}
