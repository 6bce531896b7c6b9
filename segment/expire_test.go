package segment

import (
	"math"
	"slices"
	"testing"

	"segmirror/psm"
)

// A producer that is silent for a day by the log's own time is forgotten where a segment ends, one with an open
// transaction is not; the state is the same live, after a clean open, after recovery from nothing, and after a cut.
func TestProducers_IdleForADayByTheLogsTimeAreForgottenAtARoll(t *testing.T) {
	const day = 24 * 3600 * 1000
	p := testParams(t)
	p.cfg.SegmentMs = math.MaxInt64
	l := mustOpen(t, p)
	start := data(0, 0).ms
	mustAppend(t, l, with(data(0, 0), 7), txnData(1, 1, 8, 0), with(data(2, 2), 9))
	mustRoll(t, l)
	if got := ids(l.Producers()); !slices.Equal(got, []int64{7, 8, 9}) {
		t.Fatalf("producers %v after a roll within the day", got)
	}
	mustAppend(t, l, with(data(3, 3).ts(start+day), 9))
	if got := ids(l.Producers()); !slices.Equal(got, []int64{7, 8, 9}) {
		t.Errorf("producers %v before the roll", got)
	}
	mustRoll(t, l)
	want := []int64{8, 9}
	if got := ids(l.Producers()); !slices.Equal(got, want) {
		t.Errorf("producers %v after the roll, want %v", got, want)
	}
	mustAppend(t, l, with(data(4, 4).ts(start+day+1), 7)) // comes back as a new one
	want = []int64{7, 8, 9}
	live := l.Producers()
	if got := ids(live); !slices.Equal(got, want) {
		t.Errorf("producers %v after one came back, want %v", got, want)
	}
	checkAndClose(t, l)
	for _, clean := range []bool{true, false} {
		p.clean, p.recoveryPoint = clean, 0
		again := mustOpen(t, p)
		if got := again.Producers(); !slices.Equal(got, live) {
			t.Errorf("clean %t: producers %+v, want %+v", clean, got, live)
		}
		checkAndClose(t, again)
	}
	for _, offset := range []int64{0, 3, 4, 5} {
		if err := psm.RemoveSnapshot(l.dir, offset); err != nil {
			t.Fatal(err)
		}
	}
	p.clean = true
	cut := mustOpen(t, p)
	if got := cut.Producers(); !slices.Equal(got, live) {
		t.Errorf("without snapshots: producers %+v, want %+v", got, live)
	}
	if _, err := cut.TruncateTo(4); err != nil {
		t.Fatal(err)
	}
	if got := ids(cut.Producers()); !slices.Equal(got, []int64{8, 9}) {
		t.Errorf("producers %v after a cut behind the roll, want [8 9]", got)
	}
}

// with gives a batch a producer.
func with(s spec, pid int64) spec { s.pid = pid; return s }

func mustRoll(t *testing.T, l *Log) {
	t.Helper()
	if err := l.Roll(); err != nil {
		t.Fatal(err)
	}
}

func ids(entries []psm.Entry) []int64 {
	var out []int64
	for _, e := range entries {
		out = append(out, e.ProducerID)
	}
	return out
}
