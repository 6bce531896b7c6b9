package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"segmirror/psm"
)

// f0 is three batches: 208, 159 and 110 bytes, log end 6.
func f0() []byte { return join(data(0, 2), data(3, 4), data(5, 5)) }

// plant writes .log files by base offset; with empty, empty indexes beside them.
func plant(t testing.TB, p openParams, empty bool, logs map[int64][]byte) {
	t.Helper()
	if err := os.MkdirAll(p.path, 0o755); err != nil {
		t.Fatal(err)
	}
	for base, b := range logs {
		stem := filepath.Join(p.path, fmt.Sprintf("%020d", base))
		write(t, stem+".log", b)
		if empty {
			write(t, stem+".index", nil)
			write(t, stem+".timeindex", nil)
		}
	}
}

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestF0_HasTheSizesTheCasesName(t *testing.T) {
	if n := len(f0()); n != 477 {
		t.Fatalf("%d bytes", n)
	}
}

func TestOpen_CutAtEveryLengthKeepsWholeBatches(t *testing.T) {
	whole := f0()
	for _, clean := range []bool{true, false} {
		for n := 1; n <= len(whole); n++ {
			if n%13 > 0 && n%208 > 18 { // every length near a batch's start, a sample of the others
				continue
			}
			p := testParams(t)
			p.clean = clean
			plant(t, p, !clean, map[int64][]byte{0: whole[:n]})
			l, report := mustOpenReport(t, p)
			end, pos := int64(0), 0
			for _, b := range []struct{ size, next int64 }{{208, 3}, {159, 5}, {110, 6}} {
				if pos+int(b.size) > n {
					break
				}
				pos, end = pos+int(b.size), b.next
			}
			wantOffsets(t, l, 0, end)
			wantContent(t, l, whole[:pos])
			if cut := n - pos; cut > 0 && !allZero(whole[pos:n]) { // zeros are reserved room
				if len(report.Cuts) != 1 || report.Cuts[0].ToPos-report.Cuts[0].FromPos != int64(cut) {
					t.Fatalf("length %d: %+v", n, report.Cuts)
				}
				if kept := readFile(t, report.Cuts[0].Kept); !bytes.Equal(kept, whole[pos:n]) {
					t.Errorf("length %d: kept %d bytes", n, len(kept))
				}
			}
			mustAppend(t, l, data(end, end+1))
			wantContent(t, l, append(slices.Clone(whole[:pos]), data(end, end+1).bytes()...))
		}
	}
}

func TestOpen_JunkBehindTheLastBatchIsCutAlsoAfterACleanStop(t *testing.T) {
	for _, n := range []int{1, 11, 12, 16, 17, 4096} {
		for _, fill := range []byte{0, 1} {
			p := testParams(t)
			plant(t, p, true, map[int64][]byte{0: append(f0(), bytes.Repeat([]byte{fill}, n)...)})
			l := mustOpen(t, p)
			mustAppend(t, l, data(6, 6))
			wantOffsets(t, l, 0, 7)
			wantContent(t, l, append(f0(), data(6, 6).bytes()...))
		}
	}
}

func TestRecover_DamagedLengthsEndThePrefixThere(t *testing.T) {
	for _, length := range []int32{-5, 0, 13, 20, 48, 0x7fffff00, 146, 148} {
		p := testParams(t)
		b := f0()
		binary.BigEndian.PutUint32(b[208+lengthPos:], uint32(length))
		plant(t, p, true, map[int64][]byte{0: b})
		p.clean = false
		l, report := mustOpenReport(t, p)
		wantOffsets(t, l, 0, 3)
		wantContent(t, l, f0()[:208])
		if len(report.Cuts) != 1 || report.Cuts[0].FromPos != 208 || report.Cuts[0].Offset != 3 {
			t.Errorf("length %d: %+v", length, report.Cuts)
		}
	}
}

func TestRecover_OffsetsThatGoBackAreCutAndLaterSegmentsKeptAside(t *testing.T) {
	p := testParams(t)
	middle := join(data(5, 7), data(8, 10), data(11, 13))
	plant(t, p, true, map[int64][]byte{
		0: data(0, 4).bytes(), 5: append(slices.Clone(middle), data(7, 7).bytes()...), 14: data(14, 15).bytes(),
	})
	p.clean = false
	l, report := mustOpenReport(t, p)
	// The segments meet at 14, so nothing is missing: the backward batch alone is taken out.
	wantOffsets(t, l, 0, 16)
	if len(report.Cuts) != 1 || !errors.Is(report.Cuts[0].Why, ErrOffsetsOutOfOrder) ||
		!bytes.Equal(readFile(t, report.Cuts[0].Kept), data(7, 7).bytes()) {
		t.Errorf("%+v", report.Cuts)
	}
	wantContent(t, l, slices.Concat(data(0, 4).bytes(), middle, data(14, 15).bytes()))
}

func TestRecover_DamageInTheMiddleNeverDropsLaterSegmentsUnnamed(t *testing.T) {
	flipped := data(3, 5).bytes()
	flipped[len(flipped)-1] ^= 1
	logs := map[int64][]byte{0: data(0, 2).bytes(), 3: flipped, 6: data(6, 8).bytes()}
	for name, c := range map[string]struct {
		clean         bool
		recoveryPoint int64
		indexes       bool
		end           int64
	}{
		"unclean, all scanned":     {false, 0, true, 3},
		"unclean, point behind":    {false, 6, true, 9},
		"clean":                    {true, 0, true, 9},
		"unclean, without indexes": {false, 0, false, 3},
	} {
		t.Run(name, func(t *testing.T) {
			p := testParams(t)
			plant(t, p, c.indexes, logs)
			p.clean, p.recoveryPoint = c.clean, c.recoveryPoint
			l, report, err := openLog(p)
			if err != nil {
				t.Fatal(err)
			}
			wantOffsets(t, l, 0, c.end)
			if c.end == 9 { // damage that no open looks for; Check does
				if err := l.Check(); err == nil {
					t.Error("Check found nothing")
				}
				crash(t, l)
				return
			}
			if len(report.Cuts) != 2 || report.Cuts[1].Offset != 6 {
				t.Fatalf("%+v", report.Cuts)
			}
			if !bytes.Equal(readFile(t, report.Cuts[0].Kept), flipped) ||
				!bytes.Equal(readFile(t, report.Cuts[1].Kept), logs[6]) {
				t.Error("what was cut is not kept")
			}
			mustAppend(t, l, data(3, 5), data(6, 8))
			wantOffsets(t, l, 0, 9)
			checkAndClose(t, l)
		})
	}
}

func TestRecover_KeepsAtMostCutMaxBytes(t *testing.T) {
	p := testParams(t)
	p.cfg.CutMaxBytes = 10
	plant(t, p, true, map[int64][]byte{0: append(f0(), "this is no batch at all"...)})
	p.clean = false
	_, report := mustOpenReport(t, p)
	if len(report.Cuts) != 1 || report.Cuts[0].KeptBytes != 10 || report.Cuts[0].ToPos-report.Cuts[0].FromPos != 23 {
		t.Errorf("%+v", report.Cuts)
	}
}

func TestOpen_EmptySegmentsAreNoAlarm(t *testing.T) {
	p := testParams(t)
	plant(t, p, false, map[int64][]byte{0: f0(), 6: nil})
	l, report := mustOpenReport(t, p)
	wantOffsets(t, l, 0, 6)
	if len(report.Cuts) > 0 {
		t.Errorf("%+v", report)
	}
	q := testParams(t)
	plant(t, q, true, map[int64][]byte{0: data(0, 2).bytes(), 3: nil, 9: data(9, 9).bytes()})
	q.clean = false
	l, report = mustOpenReport(t, q)
	wantOffsets(t, l, 0, 10)
	if len(report.Cuts) > 0 {
		t.Errorf("%+v", report)
	}
}

func TestOpen_IndexThatLiesNeverDecidesTheEnd(t *testing.T) {
	for name, index := range map[string][]byte{
		"below the base":   {0xff, 0xff, 0xff, 0xf9, 0, 0, 0, 100},
		"past the end":     {0, 0, 0, 9, 0, 0, 4, 0},
		"inside a batch":   {0, 0, 0, 4, 0, 0, 0, 210},
		"wrong offset":     {0, 0, 0, 3, 0, 0, 0, 208},
		"odd length":       {0, 0, 0},
		"preallocated end": make([]byte, 800),
	} {
		t.Run(name, func(t *testing.T) {
			p := testParams(t)
			plant(t, p, true, map[int64][]byte{0: f0()})
			write(t, filepath.Join(p.path, "00000000000000000000.index"), index)
			l := mustOpen(t, p)
			wantOffsets(t, l, 0, 6)
			mustAppend(t, l, data(6, 6))
		})
	}
}

func TestOpen_TornTransactionIndexIsCutAndUnknownVersionsRebuilt(t *testing.T) {
	p := testParams(t)
	l := mustOpen(t, p)
	mustAppend(t, l, txnData(0, 1, 7, 0), marker(2, 7, 0))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(p.path, "00000000000000000000.txnindex")
	right := readFile(t, path)
	write(t, path, append(slices.Clone(right), 0, 0, 0))
	l = mustOpen(t, p)
	mustAppend(t, l, txnData(3, 3, 7, 2), marker(4, 7, 0))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	both := readFile(t, path)
	if len(both) != 68 || !bytes.Equal(both[:34], right) {
		t.Errorf("%x", both)
	}
	write(t, path, append([]byte{0, 1}, both[2:]...))
	l = mustOpen(t, p)
	if have := readFile(t, path); !bytes.Equal(have, both) {
		t.Errorf("%x", have)
	}
	wantOffsets(t, l, 0, 5)
}

func TestOpen_DamagedSnapshotsAreNotUsed(t *testing.T) {
	p := testParams(t)
	p.cfg.SegmentBytes = 200
	l := mustOpen(t, p)
	idempotent := txnData(0, 1, 7, 0)
	idempotent.txn = false
	mustAppend(t, l, idempotent, data(2, 2))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(p.path, psm.SnapshotName(3))
	good := readFile(t, path)
	for name, b := range map[string][]byte{
		"crc": append(append(slices.Clone(good[:2]), 0, 0, 0, 1), good[6:]...), "empty": {}, "short": good[:len(good)-9],
		"version": append([]byte{0, 2}, good[2:]...), "count": append(slices.Clone(good[:6]), 0x7f, 0xff, 0xff, 0xff),
	} {
		t.Run(name, func(t *testing.T) {
			write(t, path, b)
			l, report := mustOpenReport(t, p)
			have := l.Producers()
			if len(have) != 1 || have[0].ProducerID != 7 || have[0].LastSequence != 1 {
				t.Errorf("%+v", have)
			}
			if len(report.Notes) == 0 {
				t.Error("not told")
			}
		})
	}
}

func TestOpen_ProducersSurviveMissingSnapshots(t *testing.T) {
	for _, clean := range []bool{true, false} {
		p := testParams(t)
		p.clean = clean
		s := txnData(0, 1, 7, 0)
		s.txn = false
		plant(t, p, false, map[int64][]byte{0: s.bytes(), 2: data(2, 3).bytes()})
		l := mustOpen(t, p)
		if have := l.Producers(); len(have) != 1 || have[0].LastSequence != 1 {
			t.Errorf("clean %t: %+v", clean, have)
		}
	}
}

func TestClose_LeavesTheSnapshotOfTheEndAlsoWithoutProducers(t *testing.T) {
	p := testParams(t)
	l := mustOpen(t, p)
	mustAppend(t, l, data(0, 2))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	b := readFile(t, filepath.Join(p.path, psm.SnapshotName(3)))
	if !bytes.Equal(b, []byte{0, 1, 0x48, 0x67, 0x4b, 0xc7, 0, 0, 0, 0}) {
		t.Errorf("%x", b)
	}
}

func TestOpen_LeftoversAsABrokerTreatsThem(t *testing.T) {
	p := testParams(t)
	plant(t, p, false, map[int64][]byte{0: data(0, 2).bytes(), 3: data(3, 5).bytes(), 6: data(6, 6).bytes()})
	swap := join(data(0, 0), data(5, 5))
	write(t, filepath.Join(p.path, "00000000000000000000.log.swap"), swap)
	write(t, filepath.Join(p.path, "leader-epoch-checkpoint.tmp"), []byte("0"))
	write(t, filepath.Join(p.path, "00000000000000000007.index"), nil)
	l, report := mustOpenReport(t, p)
	wantFiles(t, l, ".log", 0, 6)
	wantOffsets(t, l, 0, 7)
	wantContent(t, l, append(slices.Clone(swap), data(6, 6).bytes()...))
	if len(report.Notes) == 0 {
		t.Error("nothing told")
	}
	q := testParams(t)
	plant(t, q, false, map[int64][]byte{0: f0()})
	write(t, filepath.Join(q.path, "00000000000000000006.log.cleaned"), swap)
	write(t, filepath.Join(q.path, "00000000000000000000.log.deleted"), swap)
	l = mustOpen(t, q)
	wantOffsets(t, l, 0, 6)
	entries, err := os.ReadDir(q.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext == ".cleaned" || ext == ".deleted" {
			t.Error(e.Name())
		}
	}
}

func TestOpen_NamesThatStopABrokerAreRefused(t *testing.T) {
	p := testParams(t)
	plant(t, p, true, map[int64][]byte{0: f0()})
	write(t, filepath.Join(p.path, "foo.log"), nil)
	if _, _, err := openLog(p); err == nil {
		t.Error("opened")
	}
}

func TestReopen_CleanLeavesEveryFileAsItWas(t *testing.T) {
	p := testParams(t)
	p.cfg.SegmentBytes = 1000
	l := mustOpen(t, p)
	mustAppend(t, l, batches(0, 20, 2)...)
	mustAppend(t, l, txnData(40, 41, 7, 0), marker(42, 7, 0))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	before := image(t, p.path)
	l = mustOpen(t, p)
	wantOffsets(t, l, 0, 43)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	wantImage(t, before, image(t, p.path))
}

// image is every file of a directory.
func image(t testing.TB, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for _, e := range entries {
		files[e.Name()] = string(readFile(t, filepath.Join(dir, e.Name())))
	}
	return files
}

func wantImage(t testing.TB, want, have map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if w, ok := want[name]; !ok || w != have[name] {
			t.Errorf("%s: %d bytes, before %d (there: %t)", name, len(have[name]), len(w), ok)
		}
	}
	for name := range want {
		if _, ok := have[name]; !ok {
			t.Errorf("%s is gone", name)
		}
	}
}

func TestReopen_IndexesDoNotDependOnHowOftenTheLogWasOpened(t *testing.T) {
	all := batches(0, 60, 2)
	once := testParams(t)
	l := mustOpen(t, once)
	mustAppend(t, l, all...)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	often := testParams(t)
	for i := range all {
		l = mustOpen(t, often)
		mustAppend(t, l, all[i])
		switch i % 3 {
		case 0:
			if err := l.Park(); err != nil {
				t.Fatal(err)
			}
		case 1:
			crash(t, l)
			l, _ = reopenDirty(t, often, 0)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, suffix := range []string{".log", ".index", ".timeindex"} {
		name := segmentFileName(0, suffix)
		if !bytes.Equal(readFile(t, filepath.Join(once.path, name)), readFile(t, filepath.Join(often.path, name))) {
			t.Errorf("%s differs", name)
		}
	}
}

func TestRecover_SecondTimeChangesNothing(t *testing.T) {
	p := testParams(t)
	p.cfg.SegmentBytes = 1000
	l := mustOpen(t, p)
	mustAppend(t, l, batches(0, 20, 2)...)
	crash(t, l)
	l, _ = reopenDirty(t, p, 0)
	crash(t, l)
	before := image(t, p.path)
	l, report := reopenDirty(t, p, 0)
	crash(t, l)
	wantImage(t, before, image(t, p.path))
	if len(report.Cuts) > 0 {
		t.Errorf("%+v", report.Cuts)
	}
}
