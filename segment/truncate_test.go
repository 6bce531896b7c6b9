package segment

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"

	"segmirror/psm"
)

func TestTruncateTo_MidBatchDropsWholeBatch(t *testing.T) {
	all := batches(0, 30, 3)
	for _, offset := range []int64{1, 2, 3, 4, 30, 44, 45, 46, 88, 89, 90, 95} {
		p := testParams(t)
		p.cfg.SegmentBytes = 700
		l := mustOpen(t, p)
		mustAppend(t, l, all...)
		l.UpdateHighWatermark(90)
		info, err := l.TruncateTo(offset)
		if err != nil {
			t.Fatal(err)
		}
		end := min(offset/3*3, 90)
		if info.From != 90 || info.To != end || l.HighWatermark() != end {
			t.Errorf("to %d: %+v, high watermark %d", offset, info, l.HighWatermark())
		}
		wantOffsets(t, l, 0, end)
		want := join(all[:end/3]...)
		wantContent(t, l, want)
		if info.Bytes != int64(len(join(all...))-len(want)) {
			t.Errorf("to %d: %+v", offset, info)
		}
		if err := l.Check(); err != nil {
			t.Error(err)
		}
		other := data(end, end+9).at(1).ts(1_700_000_000_000)
		mustAppend(t, l, other)
		crash(t, l)
		l, _ = reopenDirty(t, p, 0)
		wantContent(t, l, append(want, other.bytes()...))
	}
}

func TestTruncateTo_StaleBatchesDoNotComeBackAfterAKill(t *testing.T) {
	p := testParams(t)
	p.cfg.SegmentBytes = 700
	var persisted []int64
	var l *Log
	p.persist = func() error {
		persisted = append(persisted, l.RecoveryPoint())
		if size := l.active().size.Load(); len(persisted) == 1 && fileSizes(t, l.dir, ".log")[segmentFileName(18, ".log")] == 0 {
			t.Errorf("files were cut (%d published) before the recovery point was lowered", size)
		}
		return nil
	}
	l = mustOpen(t, p)
	mustAppend(t, l, batches(0, 10, 3)...)
	flush(t, l)
	if l.RecoveryPoint() != 30 {
		t.Fatal(l.RecoveryPoint())
	}
	if _, err := l.TruncateTo(15); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(persisted, 15) {
		t.Errorf("recovery points persisted: %v", persisted)
	}
	crash(t, l)
	l, _ = reopenDirty(t, p, 15)
	wantOffsets(t, l, 0, 15)
	wantContent(t, l, join(batches(0, 5, 3)...))
}

func flush(t *testing.T, l *Log) {
	t.Helper()
	offset, err := l.Flush()
	if err != nil {
		t.Fatal(err)
	}
	l.MarkFlushed(offset)
}

func TestTruncateTo_AtTheEndOnlyDropsEpochsWithoutRecords(t *testing.T) {
	p := testParams(t)
	l := mustOpen(t, p)
	mustAppend(t, l, data(0, 9).at(1))
	if err := l.epochs.local.Assign(2, 10); err != nil {
		t.Fatal(err)
	}
	if err := l.ReplaceSourceEpochs([]EpochEntry{{1, 0}, {2, 10}}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.TruncateTo(10); err != nil {
		t.Fatal(err)
	}
	if e, _ := l.LatestSourceEpoch(); e != 1 {
		t.Errorf("source epoch %d", e)
	}
	if e, _ := l.LatestEpoch(); e != 1 {
		t.Errorf("epoch %d", e)
	}
	wantOffsets(t, l, 0, 10)
}

func TestTruncateTo_BringsEpochsProducersAndTransactionsBack(t *testing.T) {
	p := testParams(t)
	p.cfg.SegmentBytes = 300
	l := mustOpen(t, p)
	if err := l.Bind(SourceID{ClusterID: "c", TopicID: TopicID{1}}); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, txnData(0, 1, 7, 0).at(1), data(2, 3).at(1), marker(4, 7, 0).at(2), txnData(5, 6, 8, 0).at(3))
	if _, err := l.TruncateTo(4); err != nil {
		t.Fatal(err)
	}
	if open := l.OpenTransactions(); len(open) != 1 || open[0].ProducerID != 7 || open[0].FirstOffset != 0 {
		t.Errorf("%+v", open)
	}
	if have := l.EpochEntries(); !slices.Equal(have, []EpochEntry{{1, 0}}) {
		t.Errorf("%v", have)
	}
	if have := l.SourceEpochEntries(); !slices.Equal(have, []EpochEntry{{1, 0}}) {
		t.Errorf("%v", have)
	}
	if _, err := psm.ReadSnapshot(l.dir, 4); err != nil {
		t.Error(err)
	}
	s, err := l.Read(0, 1<<20, ReadCommitted)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Aborted()) > 0 {
		t.Errorf("%v", s.Aborted())
	}
	if err := s.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestTruncateFully_StartsAnewAtTheOffset(t *testing.T) {
	for _, offset := range []int64{0, 10, 150} {
		p := testParams(t)
		p.cfg.SegmentBytes = 700
		l := mustOpen(t, p)
		mustAppend(t, l, batches(0, 30, 3)...)
		if _, err := l.TruncateFullyAndStartAt(offset); err != nil {
			t.Fatal(err)
		}
		wantOffsets(t, l, offset, offset)
		wantFiles(t, l, ".log", offset)
		wantFiles(t, l, ".snapshot")
		if l.HighWatermark() != offset || l.RecoveryPoint() != offset || len(l.EpochEntries()) > 0 {
			t.Errorf("high watermark %d, recovery point %d, epochs %v", l.HighWatermark(), l.RecoveryPoint(), l.EpochEntries())
		}
		mustAppend(t, l, data(offset, offset+2))
		wantOffsets(t, l, offset, offset+3)
	}
}

func TestFlush_BegunBeforeATruncationDoesNotCount(t *testing.T) {
	p := testParams(t)
	l := mustOpen(t, p)
	mustAppend(t, l, batches(0, 10, 3)...)
	offset, err := l.Flush()
	if err != nil || offset != 30 {
		t.Fatal(offset, err)
	}
	if _, err := l.TruncateTo(15); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, batches(15, 10, 3)...)
	l.MarkFlushed(offset)
	if l.RecoveryPoint() > 15 {
		t.Errorf("recovery point %d", l.RecoveryPoint())
	}
	flush(t, l)
	if l.RecoveryPoint() != 45 {
		t.Errorf("recovery point %d", l.RecoveryPoint())
	}
}

func TestAdvanceLogStart_RemovesWholeSegmentsBelow(t *testing.T) {
	p := testParams(t)
	p.cfg.SegmentBytes = 700
	l := mustOpen(t, p)
	mustAppend(t, l, batches(0, 30, 3)...) // three batches to a segment
	persisted := 0
	l.persist = func() error { persisted++; return nil }
	slice, err := l.Read(3, 100, ReadLogEnd)
	if err != nil {
		t.Fatal(err)
	}
	removed, err := l.AdvanceLogStart(22)
	if err != nil || len(removed) != 2 || removed[1].Base != 9 || removed[1].Next != 18 {
		t.Fatal(removed, err)
	}
	if persisted == 0 || l.RecoveryPoint() < 22 {
		t.Errorf("persisted %d times, recovery point %d", persisted, l.RecoveryPoint())
	}
	wantOffsets(t, l, 22, 90)
	if _, err := l.Read(21, 100, ReadLogEnd); !errors.Is(err, ErrOffsetOutOfRange) {
		t.Error(err)
	}
	var out bytes.Buffer
	if _, err := slice.WriteTo(&out); err != nil || !bytes.Equal(out.Bytes(), data(3, 5).bytes()) {
		t.Errorf("a reader of a removed segment: %v", err)
	}
	if err := slice.Release(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.AdvanceLogStart(91); !errors.Is(err, ErrOffsetOutOfRange) {
		t.Error(err)
	}
	if _, err := l.AdvanceLogStart(90); err != nil {
		t.Fatal(err)
	}
	wantOffsets(t, l, 90, 90)
	mustAppend(t, l, data(90, 92))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	p.logStart = 90
	l = mustOpen(t, p)
	wantOffsets(t, l, 90, 93)
}

func TestRead_RangesAreWholeBatchesWithinTheLimits(t *testing.T) {
	p := testParams(t)
	p.cfg.SegmentBytes = 3000
	l := mustOpen(t, p)
	all := batches(0, 40, 3)
	mustAppend(t, l, all[:20]...)
	gapped := batches(100, 20, 3)
	mustAppend(t, l, gapped...)
	l.UpdateHighWatermark(45)
	everything := join(append(slices.Clone(all[:20]), gapped...)...)
	wantContent(t, l, everything)
	for offset := int64(0); offset <= 160; offset++ {
		for _, maxBytes := range []int{1, 250, 1000, 5000} {
			for _, iso := range []Isolation{ReadLogEnd, ReadHighWatermark} {
				checkRange(t, l, offset, maxBytes, iso)
			}
		}
	}
	if _, err := l.Read(161, 1, ReadLogEnd); !errors.Is(err, ErrOffsetOutOfRange) {
		t.Error(err)
	}
}

func checkRange(t *testing.T, l *Log, offset int64, maxBytes int, iso Isolation) {
	t.Helper()
	s, err := l.Read(offset, maxBytes, iso)
	if err != nil {
		t.Fatal(err)
	}
	limit := l.LogEndOffset()
	if iso == ReadHighWatermark {
		limit = l.HighWatermark()
	}
	n := 0
	err = s.View(func(b []byte) error {
		it := NewBatchIterator(b)
		for it.Next() {
			if n == 0 && (it.Batch().LastOffset() < offset || it.Batch().BaseOffset() != s.BaseOffset()) {
				t.Errorf("read at %d begins with %d to %d", offset, it.Batch().BaseOffset(), it.Batch().LastOffset())
			}
			n++
			if last := it.Batch().LastOffset(); last >= limit {
				t.Errorf("read at %d holds %d, limit %d", offset, last, limit)
			} else if next := s.NextOffset(); last >= next {
				t.Errorf("read at %d holds %d, next offset %d", offset, last, next)
			}
		}
		if it.Pos() != len(b) {
			t.Errorf("read at %d: %d of %d bytes are whole batches", offset, it.Pos(), len(b))
		}
		return it.Err()
	})
	if err = errors.Join(err, s.Release()); err != nil {
		t.Fatal(err)
	}
	if n > 1 && s.Size() > int64(maxBytes) || n == 0 && offset < limit && limit-offset >= 3 && (offset < 60 || limit > 60) {
		t.Errorf("read at %d of %d bytes: %d batches, %d bytes", offset, maxBytes, n, s.Size())
	}
}

func TestSlice_GoesThroughASocketUnchanged(t *testing.T) {
	p := testParams(t)
	l := mustOpen(t, p)
	var all []spec
	for i := range int64(50) {
		s := data(i, i)
		s.value = 20000
		all = append(all, s)
	}
	mustAppend(t, l, all...)
	s, err := l.Read(0, 4<<20, ReadLogEnd)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	var got []byte
	var rerr error
	var wg sync.WaitGroup
	wg.Go(func() {
		c, err := ln.Accept()
		if err != nil {
			rerr = err
			return
		}
		got, rerr = io.ReadAll(c)
		_ = c.Close() // read to its end
	})
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	n, err := s.WriteTo(c)
	if err != nil || n != s.Size() {
		t.Fatal(n, err)
	}
	if err := errors.Join(c.Close(), s.Release()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if want := join(all...)[:n]; rerr != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, want %d: %v", len(got), len(want), rerr)
	}
}

func TestPark_HoldsNothingAndGoesOn(t *testing.T) {
	p := testParams(t)
	l := mustOpen(t, p)
	mustAppend(t, l, batches(0, 5, 3)...)
	if err := l.Park(); err != nil {
		t.Fatal(err)
	}
	s := l.active()
	if s.log != nil || s.tail.b != nil || s.tail.file != nil {
		t.Error("holds a file or a map")
	}
	if n := fileSizes(t, l.dir, ".log")[segmentFileName(0, ".log")]; n != s.size.Load() {
		t.Errorf("file has %d bytes, %d published", n, s.size.Load())
	}
	if l.RecoveryPoint() != 15 {
		t.Errorf("recovery point %d", l.RecoveryPoint())
	}
	wantContent(t, l, join(batches(0, 5, 3)...))
	if s.log != nil {
		t.Error("a read left the file open")
	}
	if err := l.Park(); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, batches(15, 5, 3)...)
	wantContent(t, l, join(batches(0, 10, 3)...))
}

func TestReaders_SeeOnlyWholeBatchesWhileTheOwnerWorks(t *testing.T) {
	p := testParams(t)
	p.cfg.SegmentBytes = 2000
	l := mustOpen(t, p)
	mustAppend(t, l, batches(0, 3, 3)...)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for offset := int64(0); ; {
				select {
				case <-stop:
					return
				default:
				}
				s, err := l.Read(offset, 600, ReadLogEnd)
				if errors.Is(err, ErrOffsetOutOfRange) {
					offset = l.LogStartOffset()
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				err = s.View(func(b []byte) error {
					it := NewBatchIterator(b)
					for it.Next() {
						if err := it.Batch().Validate(); err != nil {
							return err
						}
					}
					return it.Err()
				})
				if err = errors.Join(err, s.Release()); err != nil {
					t.Error(err)
					return
				}
				if offset = s.NextOffset(); s.Size() == 0 {
					offset = l.LogStartOffset()
				}
			}
		})
	}
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := l.Flush(); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 15 {
		end := l.LogEndOffset()
		mustAppend(t, l, batches(end, 8, 3)...)
		if _, err := l.TruncateTo(end + 10); err != nil {
			t.Fatal(err)
		}
		if _, err := l.AdvanceLogStart(max(0, end-20)); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	wg.Wait()
}
