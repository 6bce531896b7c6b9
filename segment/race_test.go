package segment

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestLog_OwnerFlusherAndReadersAtOnce lets one owner change a log in every way while others flush and read: what a
// reader holds stays whole batches, byte for byte, and the recovery point never passes what a flush made durable.
func TestLog_OwnerFlusherAndReadersAtOnce(t *testing.T) {
	p := testParams(t)
	p.cfg.SegmentBytes, p.cfg.IndexIntervalBytes = 4000, 200
	l := mustOpen(t, p)
	if err := l.Bind(scenarioSource); err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	flushed := make(chan int64, 1)
	wg.Go(func() {
		for !stop.Load() {
			offset, err := l.Flush()
			if err != nil {
				t.Errorf("flush: %v", err)
				return
			}
			select {
			case flushed <- offset:
			default:
			}
		}
	})
	for i := range 3 {
		wg.Go(func() { readAll(t, l, &stop, Isolation(i)) })
	}
	own(t, l, flushed, time.Now().Add(raceTime))
	stop.Store(true)
	wg.Wait()
}

const raceTime = 1500 * time.Millisecond

// own is the owner.
func own(t *testing.T, l *Log, flushed <-chan int64, until time.Time) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	epoch := int32(0)
	for time.Now().Before(until) {
		end, start := l.LogEndOffset(), l.LogStartOffset()
		var err error
		switch n := r.IntN(20); {
		case n < 12:
			var b []byte
			for range 1 + r.IntN(8) {
				s := data(end, end+r.Int64N(4)).at(epoch)
				if r.IntN(4) == 0 {
					s = txnData(s.base, s.last, 7, 0).at(epoch)
				} else if r.IntN(6) == 0 {
					s = marker(s.base, 7, r.IntN(2)).at(epoch)
				}
				b, end = append(b, s.bytes()...), s.last+1
			}
			_, err = l.AppendAsFollower(b, -1)
			l.UpdateHighWatermark(l.LogEndOffset() - r.Int64N(3))
		case n < 15 && end > start:
			epoch++
			_, err = l.TruncateTo(end - r.Int64N(min(end-start, 40)))
		case n == 15 && end-start > 300:
			_, err = l.AdvanceLogStart(start + 100)
		case n == 16:
			err = l.Park()
		case n == 17:
			err = l.Roll()
		case n == 18 && r.IntN(4) == 0:
			epoch++
			_, err = l.TruncateFullyAndStartAt(end + 5)
		}
		select {
		case offset := <-flushed:
			l.MarkFlushed(offset)
		default:
		}
		if err != nil {
			t.Errorf("owner: %v", err)
			return
		}
		if l.RecoveryPoint() > l.LogEndOffset() {
			t.Errorf("recovery point %d, end %d", l.RecoveryPoint(), l.LogEndOffset())
		}
	}
}

// readAll reads at random places, looks at every slice twice, and holds them for a while.
func readAll(t *testing.T, l *Log, stop *atomic.Bool, iso Isolation) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, uint64(iso)))
	for !stop.Load() {
		start, end := l.LogStartOffset(), l.LogEndOffset()
		offset := start + r.Int64N(max(end-start, 0)+1)
		s, err := l.Read(offset, 1+r.IntN(3000), iso)
		if errors.Is(err, ErrOffsetOutOfRange) {
			continue
		}
		if err != nil {
			t.Errorf("read at %d: %v", offset, err)
			return
		}
		var first []byte
		err = s.View(func(b []byte) error {
			first = bytes.Clone(b)
			return nil
		})
		it := NewBatchIterator(first)
		for err == nil && it.Next() {
			err = it.Batch().Validate()
		}
		if err != nil || it.Err() != nil || it.Pos() != len(first) {
			t.Errorf("read at %d: %v, %v, %d of %d", offset, err, it.Err(), it.Pos(), len(first))
		}
		var again bytes.Buffer
		if n, err := s.WriteTo(&again); err != nil || n != s.Size() || !bytes.Equal(again.Bytes(), first) {
			t.Errorf("read at %d: changed while held: %d of %d, %v", offset, n, s.Size(), err)
		}
		if err := s.Release(); err != nil {
			t.Error(err)
		}
		if _, _, _, err := l.OffsetForTimestamp(1_700_000_000_000 + offset); err != nil {
			t.Errorf("by time: %v", err)
			return
		}
	}
}
