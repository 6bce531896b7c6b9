package segment

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"segmirror/index"
	"segmirror/psm"
)

func TestOpen_NewLogBesideAnUncleanStopTakesAppends(t *testing.T) {
	p := testParams(t)
	p.clean = false
	l := mustOpen(t, p)
	mustAppend(t, l, data(0, 2))
	wantOffsets(t, l, 0, 3)
}

func TestAppend_RefusalBehindAGapLeavesNoSegmentAboveTheLogEnd(t *testing.T) {
	p := testParams(t)
	p.cfg.SegmentBytes = 450 // two batches and not a marker
	l := mustOpen(t, p)
	mustAppend(t, l, batches(0, 2, 3)...)
	if _, err := l.AppendAsFollower(marker(100, 7, 9).bytes(), -1); !errors.Is(err, psm.ErrUnknownControlType) {
		t.Fatal(err)
	}
	mustAppend(t, l, batches(6, 4, 3)...)
	wantOffsets(t, l, 0, 18)
	wantContent(t, l, join(batches(0, 6, 3)...))
	if l.RecoveryPoint() > l.LogEndOffset() {
		t.Errorf("recovery point %d", l.RecoveryPoint())
	}
	crash(t, l)
	l, report := reopenDirty(t, p, 0)
	wantOffsets(t, l, 0, 18)
	if len(report.Cuts) > 0 {
		t.Errorf("%+v", report.Cuts)
	}
}

func TestTruncateTo_BelowTheFirstBatchOfAGapLetsAnEarlierOneIn(t *testing.T) {
	p := testParams(t)
	l := mustOpen(t, p)
	if err := l.Bind(SourceID{ClusterID: "c", TopicID: TopicID{1}}); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, data(10, 20))
	if _, err := l.TruncateTo(5); err != nil {
		t.Fatal(err)
	}
	wantOffsets(t, l, 0, 0)
	want := join(data(0, 9), data(10, 12))
	mustAppend(t, l, data(0, 9), data(10, 12))
	wantContent(t, l, want)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = mustOpen(t, p)
	wantOffsets(t, l, 0, 13)
	wantContent(t, l, want)
}

func TestBind_EpochsOfBeforeDoNotHideTheSources(t *testing.T) {
	p := testParams(t)
	l := mustOpen(t, p)
	mustAppend(t, l, data(0, 2).at(5))
	if err := l.Bind(SourceID{ClusterID: "c", TopicID: TopicID{1}}); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, data(3, 5).at(5), data(6, 7).at(6))
	if have := l.SourceEpochEntries(); !slices.Equal(have, []EpochEntry{{5, 3}, {6, 6}}) {
		t.Errorf("%v", have)
	}
}

func TestRecovery_DoesNotEnterEpochsOfBeforeTheBinding(t *testing.T) {
	for _, policy := range []EpochPolicy{EpochPreserve, EpochRebase} {
		t.Run(policy.String(), func(t *testing.T) {
			p := testParams(t)
			l := mustOpen(t, p)
			mustAppend(t, l, data(0, 2).at(5), data(3, 5).at(7))
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			p.cfg.Policy = policy
			l = mustOpen(t, p)
			if err := l.Rebind(SourceID{ClusterID: "c", TopicID: TopicID{1}}); err != nil {
				t.Fatal(err)
			}
			crash(t, l)
			l, _ = reopenDirty(t, p, 0)
			if have := l.SourceEpochEntries(); len(have) != 0 {
				t.Fatalf("before an append: %v", have)
			}
			mustAppend(t, l, data(6, 8).at(1), data(9, 9).at(2))
			want := []EpochEntry{{1, 6}, {2, 9}}
			if have := l.SourceEpochEntries(); !slices.Equal(have, want) {
				t.Errorf("%v", have)
			}
			crash(t, l)
			l, _ = reopenDirty(t, p, 0)
			if have := l.SourceEpochEntries(); !slices.Equal(have, want) {
				t.Errorf("after recovery: %v", have)
			}
		})
	}
}

func TestRecovery_IsTheSameWhenItIsKilledBetweenCutAndDrop(t *testing.T) {
	p := testParams(t)
	p.cfg.SegmentBytes = 500
	l := mustOpen(t, p)
	mustAppend(t, l, batches(0, 6, 3)...)
	wantFiles(t, l, ".log", 0, 6, 12)
	crash(t, l)
	flipByte(t, filepath.Join(l.dir, segmentFileName(0, ".log")), 300)
	p.clean = false
	failing := p
	failing.cfg.open = func(path string, create bool) (file, error) {
		f, err := openOSFile(path, create)
		return syncFails{f}, err
	}
	if _, _, err := openLog(failing); err == nil {
		t.Fatal("opened")
	}
	l, _ = reopenDirty(t, p, 0)
	wantOffsets(t, l, 0, 3)
	wantContent(t, l, join(data(0, 2)))
}

type syncFails struct{ file }

func (syncFails) Sync() error { return errors.New("killed here") }

func flipByte(t *testing.T, path string, pos int64) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[pos] ^= 0xff
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestMarker_LargerThanTheHeadWindowIsReadTheSameOnReplay(t *testing.T) {
	for name, pid := range map[string]int64{"abort": 7, "reset": -1} {
		t.Run(name, func(t *testing.T) {
			kind := 0
			if pid < 0 {
				kind = 7
			}
			p := testParams(t)
			l := mustOpen(t, p)
			b := wideMarker(2, pid, kind, 400)
			mustAppend(t, l, txnData(0, 1, 7, 0))
			if _, err := l.AppendAsFollower(b, -1); err != nil {
				t.Fatal(err)
			}
			mustAppend(t, l, data(3, 4))
			want := l.Producers()
			if open := l.OpenTransactions(); len(open) > 0 {
				t.Fatalf("%+v", open)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if err := psm.RemoveSnapshot(l.dir, 5); err != nil {
				t.Fatal(err)
			}
			l = mustOpen(t, p)
			if have := l.Producers(); !slices.Equal(have, want) {
				t.Errorf("%+v, want %+v", have, want)
			}
		})
	}
}

// wideMarker is a control batch whose value has extra bytes behind what is known.
func wideMarker(base, pid int64, kind, extra int) []byte {
	s := marker(base, pid, kind)
	b := s.bytes()[:batchHeaderSize]
	key := []byte{0, 0, byte(kind >> 8), byte(kind)}
	value := append([]byte{0, 0, 0, 0, 0, 0}, bytes.Repeat([]byte{1}, extra)...)
	return reseal(appendTestRecord(b, 0, key, value))
}

func TestRoll_SealsAnIndexThatIsFullerThanTheLimitOfNow(t *testing.T) {
	p := testParams(t)
	p.cfg.IndexIntervalBytes = 150
	l := mustOpen(t, p)
	mustAppend(t, l, batches(0, 20, 1)...)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	p.cfg.IndexMaxBytes = 24
	l = mustOpen(t, p)
	mustAppend(t, l, batches(20, 2, 1)...)
	wantOffsets(t, l, 0, 22)
}

func TestRead_DoesNotTrustAnInnerIndexEntry(t *testing.T) {
	p := testParams(t)
	p.cfg.SegmentBytes = 3000
	l := mustOpen(t, p)
	all := batches(0, 30, 3)
	mustAppend(t, l, all...)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(l.dir, segmentFileName(0, ".index"))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	x := index.DecodeOffsetEntry(b[8:], 0)
	copy(b[8:], index.AppendOffsetEntry(nil, 0, index.OffsetPosition{Offset: x.Offset, Pos: x.Pos + 7}))
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	l, _, err = openLog(p)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for n := 1; n < 3000; n += 61 {
		s, err := l.Read(0, n, ReadLogEnd)
		if err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		err = s.View(func(b []byte) error {
			it, next := NewBatchIterator(b), int64(0)
			for it.Next() {
				next = it.Batch().LastOffset() + 1
			}
			if it.Err() != nil || it.Pos() != len(b) || next != s.NextOffset() {
				t.Errorf("%d bytes: %d of %d bytes are batches up to %d, not %d", n, it.Pos(), len(b), next, s.NextOffset())
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Release(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRecovery_EmptyLastSegmentBehindAKnownGapKeepsTheEnd(t *testing.T) {
	p := testParams(t)
	p.cfg.SegmentBytes = 500
	l := mustOpen(t, p)
	mustAppend(t, l, batches(0, 2, 3)...)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(l.dir, segmentFileName(9, ".log")), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(l.dir, segmentFileName(0, ".index"))); err != nil {
		t.Fatal(err)
	}
	l, _ = reopenDirty(t, p, 9)
	wantOffsets(t, l, 0, 9)
	mustAppend(t, l, data(9, 10))
	wantContent(t, l, join(data(0, 2), data(3, 5), data(9, 10)))
}

func TestRoll_LegacyWrapperKeepsTheLogEndAsBase(t *testing.T) {
	p := testParams(t)
	p.cfg.SegmentBytes = 61
	l := mustOpen(t, p)
	in := slices.Concat(legacy(1, 0, 5), legacy(1, 11, 6), legacy(1, 22, 7))
	if _, err := l.AppendAsFollower(in, -1); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, l, ".log", 0, 1, 12)
}

func TestAppend_FirstTimestampIsThatOfTheBatchAtPositionZero(t *testing.T) {
	p := testParams(t)
	p.cfg.SegmentMs = 1000
	l := mustOpen(t, p)
	mustAppend(t, l, data(10, 12).ts(5000))
	if _, err := l.TruncateTo(5); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, data(5, 5).ts(5000), data(6, 6).ts(9000))
	wantFiles(t, l, ".log", 0, 6)
}

func TestFlush_LogWhoseDirectoryWasMovedAwayFails(t *testing.T) {
	p := testParams(t)
	l := mustOpen(t, p)
	mustAppend(t, l, data(0, 2))
	if _, err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, data(3, 5))
	moved := l.dir + ".0123456789abcdef0123456789abcdef-delete"
	if err := os.Rename(l.dir, moved); err != nil {
		t.Fatal(err)
	}
	if offset, err := l.Flush(); !errors.Is(err, ErrLogFailed) {
		t.Errorf("durable up to %d in a directory that is not there: %v", offset, err)
	}
	if err := l.Close(); !errors.Is(err, ErrLogFailed) {
		t.Error(err)
	}
	if _, err := os.Stat(l.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory was made again: %v", err)
	}
}

func TestRoll_FullDiskLeavesTheProducerStateWhereItWas(t *testing.T) {
	p := testParams(t)
	p.cfg.SegmentBytes = 450
	full := false
	p.cfg.open = func(path string, create bool) (file, error) {
		f, err := openOSFile(path, create)
		return maybeFull{f, &full}, err
	}
	l := mustOpen(t, p)
	mustAppend(t, l, batches(0, 2, 3)...)
	full = true
	if _, err := l.AppendAsFollower(data(100, 102).bytes(), -1); !errors.Is(err, ErrNoSpace) {
		t.Fatal(err)
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	wantFiles(t, l, ".log", 0)
	full = false
	mustAppend(t, l, data(100, 102))
	wantFiles(t, l, ".log", 0, 100)
}

// maybeFull is a file on a disk that may be full.
type maybeFull struct {
	file
	full *bool
}

func (f maybeFull) Reserve(size int64) error {
	if have, _ := f.Size(); *f.full && have == 0 && size > 0 {
		return ErrNoSpace
	}
	return f.file.Reserve(size)
}

func TestRecover_UnknownCodecIsStoredAsItIs(t *testing.T) {
	for codec := int16(5); codec <= 7; codec++ {
		p := testParams(t)
		l := mustOpen(t, p)
		s := data(3, 5)
		s.attrs = codec
		want := join(data(0, 2), s, data(6, 7))
		mustAppend(t, l, data(0, 2), s, data(6, 7))
		crash(t, l)
		l, report := reopenDirty(t, p, 0)
		wantContent(t, l, want)
		if len(report.Cuts) > 0 {
			t.Errorf("%+v", report.Cuts)
		}
	}
}

func TestRecover_CopyThatDoesNotFitLeavesNothingBehind(t *testing.T) {
	p := testParams(t)
	l := mustOpen(t, p)
	mustAppend(t, l, data(0, 2), data(3, 5))
	crash(t, l)
	flipByte(t, filepath.Join(l.dir, segmentFileName(0, ".log")), 300)
	p.clean = false
	failing := p
	failing.cfg.open = func(path string, create bool) (file, error) {
		f, err := openOSFile(path, create)
		return readFails{f}, err
	}
	for range 3 {
		if _, _, err := openLog(failing); err == nil {
			t.Fatal("opened")
		}
	}
	if left, err := os.ReadDir(p.cfg.CutDir); err != nil || len(left) > 0 {
		t.Errorf("%v %v", left, err)
	}
	l, report := reopenDirty(t, p, 0)
	wantOffsets(t, l, 0, 3)
	if len(report.Cuts) != 1 || report.Cuts[0].KeptBytes == 0 {
		t.Errorf("%+v", report.Cuts)
	}
}

type readFails struct{ file }

func (readFails) ReadAt([]byte, int64) (int, error) { return 0, errors.New("a bad sector") }

func TestOpen_OffsetThatNoSegmentCanHoldIsNotTheEnd(t *testing.T) {
	for _, c := range []struct {
		at int
		to []byte
	}{
		{0, []byte{0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfd}}, // with its delta of 2 the largest there is
		{1, []byte{1}},
		{3, []byte{1}},
	} {
		p := testParams(t)
		l := mustOpen(t, p)
		mustAppend(t, l, batches(0, 10, 3)...)
		last := l.Size() - int64(len(data(27, 29).bytes()))
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(l.dir, segmentFileName(0, ".log"))
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		copy(b[last+int64(c.at):], c.to)
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		l, report := mustOpenReport(t, p)
		wantOffsets(t, l, 0, 27)
		if len(report.Cuts) != 1 || report.Cuts[0].FromPos != last || report.Cuts[0].Kept == "" {
			t.Errorf("%+v", report)
		}
	}
}

func TestRecover_RebaseKeepsItsConstantWhenTheEpochFileIsLost(t *testing.T) {
	p := testParams(t)
	l := mustOpen(t, p)
	mustAppend(t, l, data(0, 2).at(2), data(3, 5).at(3))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	p.cfg.Policy = EpochRebase
	l = mustOpen(t, p)
	if err := l.Bind(scenarioSource); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, data(6, 8).at(9), data(9, 11).at(9))
	want := join(data(0, 2).at(2), data(3, 5).at(3), data(6, 8).at(3), data(9, 11).at(3))
	wantContent(t, l, want)
	crash(t, l)
	if err := os.Remove(filepath.Join(l.dir, epochFileName)); err != nil {
		t.Fatal(err)
	}
	l, _ = reopenDirty(t, p, 0)
	wantContent(t, l, want)
	mustAppend(t, l, data(12, 13).at(10))
	wantContent(t, l, append(want, data(12, 13).at(3).bytes()...))
	if have := l.EpochEntries(); !slices.Equal(have, []EpochEntry{{2, 0}, {3, 3}}) {
		t.Errorf("%v", have)
	}
}

func TestRecover_GapBetweenSegmentsIsNamedUnboundAndACutWhenBound(t *testing.T) {
	for _, bound := range []bool{false, true} {
		p := testParams(t)
		p.cfg.SegmentBytes = 500
		l := mustOpen(t, p)
		if bound {
			if err := l.Bind(scenarioSource); err != nil {
				t.Fatal(err)
			}
		}
		mustAppend(t, l, batches(0, 6, 3)...)
		crash(t, l)
		// A power cut took the bytes of the first segment, length included, and left those of the others.
		if err := os.Truncate(filepath.Join(l.dir, segmentFileName(0, ".log")), 0); err != nil {
			t.Fatal(err)
		}
		l, report := reopenDirty(t, p, 0)
		switch {
		case bound && (l.LogEndOffset() != 0 || len(report.Cuts) != 2):
			t.Errorf("a mirror's log goes on behind a hole: end %d, %+v", l.LogEndOffset(), report)
		case !bound && (l.LogEndOffset() != 18 || len(report.Notes) != 1):
			t.Errorf("a hole that nobody is told of: end %d, %+v", l.LogEndOffset(), report)
		}
	}
}
