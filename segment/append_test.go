package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"testing"
	"testing/iotest"

	"segmirror/psm"
)

func TestAppendFrom_HoweverTheBytesAreCut(t *testing.T) {
	want := join(batches(0, 60, 3)...)
	for name, cut := range map[string]func(io.Reader) io.Reader{
		"whole":     func(r io.Reader) io.Reader { return r },
		"byte":      iotest.OneByteReader,
		"half":      iotest.HalfReader,
		"dataError": iotest.DataErrReader,
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int32{200, 1000, 4096, 1 << 20} {
				p := testParams(t)
				p.cfg.SegmentBytes = size
				l := mustOpen(t, p)
				info, err := l.AppendFrom(cut(bytes.NewReader(want)), len(want), -1)
				if err != nil {
					t.Fatal(err)
				}
				if info.FirstOffset != 0 || info.LastOffset != 179 || info.Batches != 60 || info.Bytes != len(want) ||
					info.Consumed != len(want) || info.MaxTimestampMs != 1_700_000_000_177 || info.Gaps != 0 {
					t.Errorf("segment.bytes %d: %+v", size, info)
				}
				wantOffsets(t, l, 0, 180)
				wantContent(t, l, want)
				for name, n := range fileSizes(t, l.dir, ".log") {
					if n > int64(size) && n > 208+64 && name != fmt.Sprintf("%020d.log", l.active().base) {
						t.Errorf("segment.bytes %d: %s has %d bytes", size, name, n)
					}
				}
			}
		})
	}
}

func TestAppendFrom_PartialLastBatchIsDroppedAndZeroed(t *testing.T) {
	whole := join(batches(0, 3, 2)...)
	next := data(6, 9).bytes()
	for _, cut := range []int{1, 8, 11, 12, 16, 17, 61, len(next) - 1} {
		p := testParams(t)
		l := mustOpen(t, p)
		in := append(slices.Clone(whole), next[:cut]...)
		info, err := l.AppendAsFollower(in, -1)
		if err != nil || info.Batches != 3 {
			t.Fatalf("cut at %d: %+v, %v", cut, info, err)
		}
		wantOffsets(t, l, 0, 6)
		wantContent(t, l, whole)
		wantZeroTail(t, l)
		mustAppend(t, l, data(6, 9))
		wantContent(t, l, append(slices.Clone(whole), next...))
	}
}

// wantZeroTail reads the active file: behind the published end there must be nothing.
func wantZeroTail(t *testing.T, l *Log) {
	t.Helper()
	b, err := os.ReadFile(l.active().logPath())
	if err != nil {
		t.Fatal(err)
	}
	if tail := b[l.active().size.Load():]; !allZero(tail) {
		t.Errorf("%d bytes behind the end are not all zero", len(tail))
	}
}

func TestAppendFrom_RefusesWhatIsNoContinuation(t *testing.T) {
	flip := func(s spec, pos int, to ...byte) []byte {
		b := s.bytes()
		copy(b[pos:], to)
		return b
	}
	resealed := func(s spec, pos int, to ...byte) []byte { return reseal(flip(s, pos, to...)) }
	negative := data(6, 8)
	negative.last = 3 // delta -3
	broken := marker(6, 7, 0).bytes()
	broken = reseal(broken[:len(broken)-8]) // the marker's value is gone
	shortKey := marker(6, 7, 0)
	for name, c := range map[string]struct {
		bytes []byte
		err   error
	}{
		"wrong CRC":         {flip(data(6, 8), 70, 'x'), ErrCorruptBatch},
		"magic 3":           {flip(data(6, 8), magicPos, 3), ErrCorruptBatch},
		"magic -1":          {flip(data(6, 8), magicPos, 0xff), ErrCorruptBatch},
		"length 0":          {flip(data(6, 8), lengthPos, 0, 0, 0, 0), ErrCorruptBatch},
		"length -5":         {flip(data(6, 8), lengthPos, 0xff, 0xff, 0xff, 0xfb), ErrCorruptBatch},
		"length 48":         {flip(data(6, 8), lengthPos, 0, 0, 0, 48), ErrCorruptBatch},
		"length one short":  {shorten(data(6, 8).bytes()), ErrCorruptBatch},
		"overlap":           {data(5, 8).bytes(), ErrOffsetsOutOfOrder},
		"repeat":            {data(3, 5).bytes(), ErrOffsetsOutOfOrder},
		"negative base":     {resealed(data(6, 8), baseOffsetPos, 0xff), ErrCorruptBatch},
		"negative delta":    {negative.bytes(), ErrCorruptBatch},
		"negative count":    {resealed(data(6, 8), recordsCountPos, 0xff), ErrCorruptBatch},
		"marker cut":        {broken, ErrMalformedMarker},
		"marker compressed": {resealed(shortKey, attributesPos+1, attrControl|attrTransactional|1), ErrMalformedMarker},
		"unknown type":      {marker(6, 7, 9).bytes(), psm.ErrUnknownControlType},
		"reset with id":     {marker(6, 7, 7).bytes(), psm.ErrUnknownControlType},
	} {
		t.Run(name, func(t *testing.T) {
			p := testParams(t)
			l := mustOpen(t, p)
			good := join(batches(0, 2, 3)...)
			in := append(append(slices.Clone(good), c.bytes...), data(9, 9).bytes()...)
			info, err := l.AppendAsFollower(in, -1)
			var corrupt *CorruptError
			if !errors.Is(err, c.err) || !errors.As(err, &corrupt) {
				t.Fatalf("%v", err)
			}
			if corrupt.Pos != int64(len(good)) || corrupt.Offset != 6 || corrupt.TopicPartition != testPartition {
				t.Errorf("%+v", corrupt)
			}
			if info.Batches != 2 || info.LastOffset != 5 || l.Failed() != nil {
				t.Errorf("%+v, %v", info, l.Failed())
			}
			wantContent(t, l, good)
			wantZeroTail(t, l)
			mustAppend(t, l, data(6, 6))
			crash(t, l)
			l, report := reopenDirty(t, p, 0)
			wantOffsets(t, l, 0, 7)
			if len(report.Cuts) > 0 {
				t.Errorf("%+v", report.Cuts)
			}
		})
	}
}

// shorten makes the length field one less than it is, so that a byte is left behind the batch.
func shorten(b []byte) []byte {
	binary.BigEndian.PutUint32(b[lengthPos:], uint32(len(b)-lengthOverhead-1))
	return b
}

func TestAppendFrom_RefusedValidBatchesDoNotComeBackAfterAKill(t *testing.T) {
	p := testParams(t)
	l := mustOpen(t, p)
	mustAppend(t, l, data(0, 2))
	info, err := l.AppendAsFollower(join(data(3, 5), data(6, 8).at(4), data(9, 11).at(4)), 3)
	if err != nil || !info.HigherEpoch || info.LastOffset != 5 {
		t.Fatalf("%+v, %v", info, err)
	}
	wantZeroTail(t, l)
	crash(t, l)
	l, _ = reopenDirty(t, p, 0)
	wantOffsets(t, l, 0, 6)
	mustAppend(t, l, data(6, 8).at(4))
	wantContent(t, l, join(data(0, 2), data(3, 5), data(6, 8).at(4)))
}

func TestAppendFrom_ReaderErrorCommitsWhatWasWhole(t *testing.T) {
	p := testParams(t)
	l := mustOpen(t, p)
	all := join(batches(0, 10, 3)...)
	size := len(data(0, 2).bytes())
	cause := errors.New("connection reset")
	r := io.MultiReader(bytes.NewReader(all[:4*size+50]), iotest.ErrReader(cause))
	info, err := l.AppendFrom(r, len(all), -1)
	if !errors.Is(err, ErrRead) || !errors.Is(err, cause) {
		t.Fatal(err)
	}
	if info.Batches != 4 || info.Consumed != 4*size+50 {
		t.Errorf("%+v", info)
	}
	wantZeroTail(t, l)
	mustAppend(t, l, batches(12, 6, 3)...)
	wantContent(t, l, all)
	if _, err := l.AppendFrom(bytes.NewReader(nil), 5, -1); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

func TestTailCommit_AcrossARollAndDiscard(t *testing.T) {
	p := testParams(t)
	p.cfg.SegmentBytes = 500
	l := mustOpen(t, p)
	all := join(batches(0, 9, 3)...)
	tail, err := l.Tail(len(all))
	if err != nil || len(tail) != len(all) || cap(tail) != len(all) {
		t.Fatal(len(tail), cap(tail), err)
	}
	copy(tail, all)
	info, err := l.Commit(len(all))
	if err != nil || info.Batches != 9 {
		t.Fatalf("%+v, %v", info, err)
	}
	wantContent(t, l, all)
	if l.Segments() != 5 {
		t.Errorf("%d segments", l.Segments())
	}
	tail, err = l.Tail(300)
	if err != nil {
		t.Fatal(err)
	}
	copy(tail, data(27, 29).bytes())
	if err := l.Discard(); err != nil {
		t.Fatal(err)
	}
	wantZeroTail(t, l)
	if _, err := l.Commit(10); !errors.Is(err, ErrNotTail) {
		t.Error(err)
	}
	wantOffsets(t, l, 0, 27)
}

func TestRoll_ByOffsetOverflowNamesSegmentsAfterTheirFirstBatch(t *testing.T) {
	p := testParams(t)
	l := mustOpen(t, p)
	for _, base := range []int64{0, 2147483647, 2147483648, 4294967296} {
		mustAppend(t, l, data(base, base).ts(5000))
	}
	wantFiles(t, l, ".log", 0, 2147483648, 4294967296)
	for _, base := range []int64{2147483648, 4294967296} {
		if _, err := psm.ReadSnapshot(l.dir, base); err != nil {
			t.Error(err)
		}
	}
	wide := testParams(t)
	l = mustOpen(t, wide)
	mustAppend(t, l, data(0, 0).ts(5000), data(2147483640, 2147483659).ts(5000))
	wantFiles(t, l, ".log", 0, 2147483640)
	wantOffsets(t, l, 0, 2147483660)
}

func wantFiles(t *testing.T, l *Log, suffix string, bases ...int64) {
	t.Helper()
	var want []string
	for _, b := range bases {
		want = append(want, segmentFileName(b, suffix))
	}
	if have := slices.Sorted(maps.Keys(fileSizes(t, l.dir, suffix))); !slices.Equal(have, want) {
		t.Errorf("files %v, want %v", have, want)
	}
}

func TestRoll_OversizeBatchStandsAlone(t *testing.T) {
	p := testParams(t)
	l := mustOpen(t, p)
	big := data(1, 1)
	big.value = 1_100_000
	want := join(data(0, 0), big, data(2, 2))
	mustAppend(t, l, data(0, 0), big, data(2, 2))
	wantFiles(t, l, ".log", 0, 1, 2)
	wantContent(t, l, want)
	wantOffsets(t, l, 0, 3)
}

func TestRoll_ByRecordTimeOnly(t *testing.T) {
	p := testParams(t)
	p.cfg.SegmentMs = 1000
	l := mustOpen(t, p)
	mustAppend(t, l, data(0, 0).ts(5000), data(1, 1).ts(6000), data(2, 2).ts(6001), data(3, 3).ts(100), data(4, 4).ts(-1))
	wantFiles(t, l, ".log", 0, 2)
	q := testParams(t)
	l = mustOpen(t, q)
	mustAppend(t, l, data(0, 1).ts(-1), data(2, 3).ts(-1), data(4, 5).ts(-1), data(6, 7).ts(-1))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if have := fileSizes(t, l.dir, ".timeindex"); have[segmentFileName(0, ".timeindex")] != 0 {
		t.Errorf("time index of batches without timestamps: %v", have)
	}
}

func TestRoll_WhenTheIndexIsFull(t *testing.T) {
	p := testParams(t)
	p.cfg.IndexMaxBytes = 36 // 4 offset entries, 3 time entries of which one is kept free
	p.cfg.IndexIntervalBytes = 0
	l := mustOpen(t, p)
	mustAppend(t, l, batches(0, 12, 1)...)
	wantFiles(t, l, ".log", 0, 3, 6, 9)
}

func TestAppend_FirstBatchStraddlingTheStartIsTakenWhole(t *testing.T) {
	p := testParams(t)
	p.logStart = 4
	l := mustOpen(t, p)
	wantOffsets(t, l, 4, 4)
	mustAppend(t, l, data(0, 9), data(10, 10))
	wantFiles(t, l, ".log", 0)
	wantOffsets(t, l, 4, 11)
	wantContent(t, l, join(data(0, 9), data(10, 10)))
	if _, err := l.AppendAsFollower(data(10, 12).bytes(), -1); !errors.Is(err, ErrOffsetsOutOfOrder) {
		t.Errorf("an overlap in a log that is not empty: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = mustOpen(t, p)
	wantOffsets(t, l, 4, 11)
}

func TestAppend_GapsAreStoredAndTold(t *testing.T) {
	p := testParams(t)
	l := mustOpen(t, p)
	info := mustAppend(t, l, data(0, 2), data(10, 12), data(20, 22))
	if info.Gaps != 2 || info.GapFrom != 3 || info.GapTo != 10 {
		t.Errorf("%+v", info)
	}
	wantOffsets(t, l, 0, 23)
}

func TestAppend_EpochPolicies(t *testing.T) {
	in := []spec{data(0, 2).at(5), data(3, 5).at(5), data(6, 8).at(7)}
	source := []EpochEntry{{5, 0}, {7, 6}}
	id := SourceID{ClusterID: "source", TopicID: TopicID{1}}
	for _, policy := range []EpochPolicy{EpochPreserve, EpochRebase} {
		t.Run(policy.String(), func(t *testing.T) {
			p := testParams(t)
			p.cfg.Policy = policy
			l := mustOpen(t, p)
			if err := l.Bind(id); err != nil {
				t.Fatal(err)
			}
			mustAppend(t, l, in...)
			local, stamped := source, in
			if policy == EpochRebase {
				local, stamped = []EpochEntry{{0, 0}}, []spec{in[0].at(0), in[1].at(0), in[2].at(0)}
			}
			check := func() {
				t.Helper()
				if have := l.EpochEntries(); !slices.Equal(have, local) {
					t.Errorf("epochs %v, want %v", have, local)
				}
				if have := l.SourceEpochEntries(); !slices.Equal(have, source) {
					t.Errorf("source epochs %v, want %v", have, source)
				}
				wantContent(t, l, join(stamped...))
			}
			check()
			crash(t, l)
			l, _ = reopenDirty(t, p, 0)
			check()
			if have, ok := l.Source(); !ok || have != id {
				t.Errorf("source %v %v", have, ok)
			}
			if err := l.Bind(SourceID{ClusterID: "other", TopicID: TopicID{1}}); !errors.Is(err, ErrSourceMismatch) {
				t.Error(err)
			}
		})
	}
}

func TestAppend_RebaseStampsTheNewestLocalEpochOfAnImportedLog(t *testing.T) {
	p := testParams(t)
	l := mustOpen(t, p)
	mustAppend(t, l, data(0, 2).at(3))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	p.cfg.Policy = EpochRebase
	l = mustOpen(t, p)
	mustAppend(t, l, data(3, 5).at(9))
	wantContent(t, l, join(data(0, 2).at(3), data(3, 5).at(3)))
}

func TestAppend_LegacyBatchesAreStoredIndexedAndRecovered(t *testing.T) {
	v0 := legacy(0, 0, -1)
	v1 := legacy(1, 11, 1_700_000_000_123)
	v0b := legacy(0, 22, -1)
	in := slices.Concat(v0, v1, v0b, data(23, 24).at(2).bytes())
	p := testParams(t)
	p.cfg.IndexIntervalBytes = 10
	l := mustOpen(t, p)
	if _, err := l.AppendAsFollower(in, -1); err != nil {
		t.Fatal(err)
	}
	wantOffsets(t, l, 0, 25)
	wantContent(t, l, in)
	if have := l.EpochEntries(); !slices.Equal(have, []EpochEntry{{2, 23}}) {
		t.Errorf("only the v2 batch feeds epochs: %v", have)
	}
	crash(t, l)
	l, _ = reopenDirty(t, p, 0)
	wantContent(t, l, in)
}

// legacy is one uncompressed v0 or v1 message.
func legacy(magic byte, offset, ms int64) []byte {
	b := make([]byte, 18, 64)
	binary.BigEndian.PutUint64(b, uint64(offset))
	b[magicPos] = magic
	if magic == 1 {
		b = binary.BigEndian.AppendUint64(b, uint64(ms))
	}
	b = append(b, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 2, 'h', 'i')
	binary.BigEndian.PutUint32(b[lengthPos:], uint32(len(b)-lengthOverhead))
	binary.BigEndian.PutUint32(b[legacyCRCPos:], Batch(b).ComputeCRC())
	return b
}

func TestAppend_TransactionsFeedTheIndexAndTheStableOffset(t *testing.T) {
	p := testParams(t)
	l := mustOpen(t, p)
	mustAppend(t, l, txnData(0, 1, 7, 0))
	if err := l.Roll(); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, txnData(2, 2, 8, 0))
	l.UpdateHighWatermark(3)
	if l.LastStableOffset() != 0 {
		t.Errorf("stable %d", l.LastStableOffset())
	}
	mustAppend(t, l, marker(3, 7, 0), marker(4, 8, 0))
	l.UpdateHighWatermark(5)
	if l.LastStableOffset() != 5 {
		t.Errorf("stable %d", l.LastStableOffset())
	}
	for range 2 {
		s, err := l.Read(0, 1<<20, ReadCommitted)
		if err != nil {
			t.Fatal(err)
		}
		if a := s.Aborted(); len(a) != 1 || a[0].FirstOffset != 0 || a[0].LastOffset != 3 || a[0].LastStableOffset != 2 {
			t.Errorf("%+v", a)
		}
		if err := s.Release(); err != nil {
			t.Fatal(err)
		}
		crash(t, l)
		sizes := fileSizes(t, l.dir, ".txnindex")
		l, _ = reopenDirty(t, p, 0)
		l.UpdateHighWatermark(5)
		if len(sizes) == 1 && sizes[segmentFileName(2, ".txnindex")] != 68 {
			t.Errorf("%v", sizes)
		}
	}
}

func TestAppend_PidResetClearsProducersWhereItStands(t *testing.T) {
	p := testParams(t)
	l := mustOpen(t, p)
	info := mustAppend(t, l, txnData(0, 1, 7, 0), marker(2, -1, 7), txnData(3, 4, 9, 0))
	if info.DroppedTxns != 1 {
		t.Errorf("%+v", info)
	}
	for range 2 {
		if have := l.Producers(); len(have) != 1 || have[0].ProducerID != 9 {
			t.Errorf("%+v", have)
		}
		if have := l.OpenTransactions(); len(have) != 1 || have[0].FirstOffset != 3 {
			t.Errorf("%+v", have)
		}
		crash(t, l)
		l, _ = reopenDirty(t, p, 0)
	}
}

func TestAppend_AllocatesNothingInTheSteadyState(t *testing.T) {
	p := testParams(t)
	p.cfg.SegmentBytes = 1 << 30
	p.cfg.IndexIntervalBytes = 4096
	l := mustOpen(t, p)
	const perCall = 16
	in := make([]byte, 0, 1<<20)
	for i := range perCall {
		s := txnData(int64(100+i), int64(100+i), 7, int32(i)) // numbers of one width: batches of one size
		s.value = 8000
		in = append(in, s.bytes()...)
	}
	size := len(in) / perCall
	offset := int64(0)
	r := &sliceReader{}
	next := func() {
		for i := range perCall { // the base offset lies outside the CRC
			binary.BigEndian.PutUint64(in[i*size:], uint64(offset))
			offset++
		}
		r.b = in
		if _, err := l.AppendFrom(r, len(in), -1); err != nil {
			t.Fatal(err)
		}
	}
	for range 300 {
		next()
	}
	if n := testing.AllocsPerRun(200, next); n != 0 {
		t.Errorf("%v allocations per append of %d batches", n, perCall)
	}
	if n := testing.AllocsPerRun(100, func() {
		tail, err := l.Tail(0)
		if err != nil || len(tail) != 0 {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations per Tail", n)
	}
}
