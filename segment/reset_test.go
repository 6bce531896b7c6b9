package segment

import (
	"fmt"
	"slices"
	"testing"

	"segmirror/psm"
)

// TestPidReset_WhereverItStandsEveryWayToOpenAgrees puts the barrier in the middle, in an older segment, last, and twice,
// and loads the producer state from every subset of the snapshots and from none.
func TestPidReset_WhereverItStandsEveryWayToOpenAgrees(t *testing.T) {
	reset := func(at int64) spec { return marker(at, -1, 7) }
	for name, in := range map[string][]spec{
		"middle": {txnData(0, 2, 7, 0), data(3, 5), reset(6), txnData(7, 8, 9, 0), data(9, 11)},
		"older":  {txnData(0, 2, 7, 0), reset(3), txnData(4, 6, 8, 0), data(7, 9), data(10, 12), data(13, 15), txnData(16, 17, 9, 0)},
		"last":   {txnData(0, 2, 7, 0), marker(3, 7, 1), data(4, 6), data(7, 9), txnData(10, 11, 9, 0), reset(12)},
		"twice":  {txnData(0, 2, 7, 0), reset(3), txnData(4, 6, 7, 3), data(7, 9), data(10, 11), reset(12), txnData(13, 14, 9, 0)},
		"first":  {reset(0), txnData(1, 2, 7, 0), data(3, 5), data(6, 8)},
		"open":   {txnData(0, 2, 7, 0), txnData(3, 4, 8, 0), reset(5), marker(6, 7, 0), txnData(7, 8, 7, 5), marker(9, 7, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			p := testParams(t)
			p.cfg.SegmentBytes = 450
			l := mustOpen(t, p)
			for _, s := range in {
				mustAppend(t, l, s)
			}
			end := l.LogEndOffset()
			l.UpdateHighWatermark(end)
			producers, open, stable := l.Producers(), l.OpenTransactions(), l.LastStableOffset()
			same := func(l *Log, how string) {
				t.Helper()
				l.UpdateHighWatermark(end)
				if have := l.Producers(); !slices.Equal(have, producers) {
					t.Errorf("%s: %+v, want %+v", how, have, producers)
				}
				if have := l.OpenTransactions(); !slices.Equal(have, open) {
					t.Errorf("%s: open %+v, want %+v", how, have, open)
				}
				if l.LastStableOffset() != stable || l.LogEndOffset() != end {
					t.Errorf("%s: stable %d of %d, want %d of %d", how, l.LastStableOffset(), l.LogEndOffset(), stable, end)
				}
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			bases := l.list().bases()
			for _, recoveryPoint := range append(bases, -1, end) {
				l, _, err := openLog(p)
				if err != nil {
					t.Fatal(err)
				}
				if err := l.Close(); err != nil { // all snapshots again
					t.Fatal(err)
				}
				offsets, err := psm.ListSnapshots(l.dir)
				if err != nil {
					t.Fatal(err)
				}
				for i, o := range offsets {
					if recoveryPoint < 0 || (recoveryPoint+int64(i))%2 == 0 {
						if err := psm.RemoveSnapshot(l.dir, o); err != nil {
							t.Fatal(err)
						}
					}
				}
				q := p
				q.clean, q.recoveryPoint = recoveryPoint < 0, max(recoveryPoint, 0)
				if l, _, err = openLog(q); err != nil {
					t.Fatal(err)
				}
				same(l, fmt.Sprintf("recovery point %d", recoveryPoint))
				checkAndClose(t, l)
			}
		})
	}
}
