package segment

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"segmirror/index"
)

// TestIndexes_DoNotDependOnHowBatchesArrive appends the same batches in one, two and forty pieces, and then lets a
// recovery make the indexes from the .log alone.
func TestIndexes_DoNotDependOnHowBatchesArrive(t *testing.T) {
	var all []spec
	for i := range int64(40) {
		s := data(3*i, 3*i+2)
		s.value, s.ms = 300, 1_700_000_000_000+i*i%97
		all = append(all, s)
	}
	var first dirImage
	for _, pieces := range []int{1, 2, 40} {
		p := testParams(t)
		p.cfg.IndexIntervalBytes = 4096
		l := mustOpen(t, p)
		for piece := range slices.Chunk(all, len(all)/pieces) {
			mustAppend(t, l, piece...)
		}
		checkAndClose(t, l)
		now := readImage(t, p.path)
		if first == nil {
			first = now
		}
		if !maps.EqualFunc(now, first, bytes.Equal) {
			t.Errorf("in %d pieces: %v differ", pieces, changed(first, now))
		}
		for _, suffix := range []string{offsetIndexSuffix, timeIndexSuffix, snapshotSuffix} {
			for name := range fileSizes(t, p.path, suffix) {
				if err := os.Remove(filepath.Join(p.path, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		l, report := reopenDirty(t, p, 0)
		if report.SegmentsScanned != 1 {
			t.Errorf("recovery scanned %d segments", report.SegmentsScanned)
		}
		checkAndClose(t, l)
		if rebuilt := readImage(t, p.path); !maps.EqualFunc(rebuilt, first, bytes.Equal) {
			t.Errorf("rebuilt: %v differ", changed(first, rebuilt))
		}
	}
	if n := len(first[segmentFileName(0, offsetIndexSuffix)]); n == 0 || n%8 > 0 {
		t.Errorf("index of %d bytes", n)
	}
}

func TestAbortedTransactions_OverTheSeamOfTwoSegments(t *testing.T) {
	p := testParams(t)
	l := mustOpen(t, p)
	mustAppend(t, l, txnData(0, 1, 7, 0))
	if err := l.Roll(); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, txnData(2, 2, 8, 0), marker(3, 7, 0), marker(4, 8, 0))
	l.UpdateHighWatermark(5)
	if sizes := fileSizes(t, p.path, txnIndexSuffix); len(sizes) != 1 {
		t.Errorf("transaction indexes %v", sizes)
	}
	want := []index.AbortedTxn{
		{ProducerID: 7, FirstOffset: 0, LastOffset: 3, LastStableOffset: 2},
		{ProducerID: 8, FirstOffset: 2, LastOffset: 4, LastStableOffset: 5},
	}
	b, err := os.ReadFile(filepath.Join(p.path, segmentFileName(2, txnIndexSuffix)))
	if err != nil || !bytes.Equal(b, index.AppendAbortedTxn(index.AppendAbortedTxn(nil, want[0]), want[1])) {
		t.Errorf("transaction index is % x, %v", b, err)
	}
	s, err := l.Read(0, 1<<20, ReadCommitted)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Aborted(), want[:1]) { // the slice ends with its segment, at 2
		t.Errorf("aborted transactions for [0, %d): %v", s.NextOffset(), s.Aborted())
	}
	if err := s.Release(); err != nil {
		t.Fatal(err)
	}
	if s, err = l.Read(2, 1<<20, ReadCommitted); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Aborted(), want) {
		t.Errorf("aborted transactions for [2, %d): %v", s.NextOffset(), s.Aborted())
	}
	if err := s.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestOpen_DamagedEpochFileIsRebuiltFromTheBatches(t *testing.T) {
	p := testParams(t)
	l := mustOpen(t, p)
	mustAppend(t, l, data(0, 2), data(3, 4).at(2), data(5, 5).at(2))
	want := l.EpochEntries()
	checkAndClose(t, l)
	path := filepath.Join(p.path, epochFileName)
	for _, damage := range []string{"0\n3\n0 0\n2 3\n", string(make([]byte, 20)), "0\n1\n-1 0\n"} {
		if err := os.WriteFile(path, []byte(damage), 0o644); err != nil {
			t.Fatal(err)
		}
		l, report := mustOpenReport(t, p)
		if !slices.Equal(l.EpochEntries(), want) || len(report.Notes) == 0 {
			t.Errorf("%q: epochs %v, want %v; report %+v", damage, l.EpochEntries(), want, report)
		}
		checkAndClose(t, l)
	}
}

func TestAppend_HeaderRulesTheLogWhateverTheBodyHolds(t *testing.T) {
	p := testParams(t)
	l := mustOpen(t, p)
	lying := data(0, 0) // one record, under a header that says five
	b := lying.bytes()
	b[lastOffsetDeltaPos+3], b[recordsCountPos+3] = 4, 5
	if _, err := l.AppendAsFollower(append(reseal(b), data(5, 5).bytes()...), -1); err != nil {
		t.Fatal(err)
	}
	wantOffsets(t, l, 0, 6)
	wantContent(t, l, append(b, data(5, 5).bytes()...))
}

func TestAppend_EmptyIdleSegmentIsNotRolledAgain(t *testing.T) {
	p := testParams(t)
	p.cfg.SegmentMs = 1
	l := mustOpen(t, p)
	if _, err := l.TruncateFullyAndStartAt(100); err != nil {
		t.Fatal(err)
	}
	s := l.active()
	s.openedMs -= 1000 // it has been idle for longer than segment.ms
	if err := l.Roll(); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, data(100, 100).ts(-1))
	wantOffsets(t, l, 100, 101)
	if sizes := fileSizes(t, p.path, logSuffix); len(sizes) != 1 || l.Segments() != 1 {
		t.Errorf("segments %v", sizes)
	}
}

func TestOpen_LeftoverOfADigestsFileIsMadeAnew(t *testing.T) {
	p := testParams(t)
	l := mustOpen(t, p)
	if err := l.Bind(SourceID{ClusterID: dirID.ClusterID, TopicID: TopicID{1}}); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, batches(0, 5, 2)...)
	checkAndClose(t, l)
	path := filepath.Join(p.path, digestsFileName)
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, damage := range [][]byte{nil, want[:len(want)/2], bytes.ReplaceAll(want, []byte("next"), []byte("tent"))} {
		if err := os.WriteFile(path, damage, 0o644); err != nil {
			t.Fatal(err)
		}
		checkAndClose(t, mustOpen(t, p))
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("after %d bytes of damage: %q, want %q, %v", len(damage), got, want, err)
		}
	}
}
