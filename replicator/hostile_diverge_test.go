package replicator

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"segmirror/fetchwire"
	"segmirror/segment"
)

// allowCuts is the key that lets a mirror follow an unclean election.
const allowCuts = "mirror.m.mirror.unclean.leader.election.enable"

// mirroredThenElected mirrors offsets 0..9 of epoch 1, then lets an unclean election replace 5..9 by 5..12 of epoch 3.
func mirroredThenElected(t *testing.T, dir string, props map[string]string) (*testSource, *testTopic, *testAgent) {
	t.Helper()
	s := newTestSource(t)
	topic := s.addTopic("t", 2)
	s.update(func() {
		for _, p := range topic.partitions {
			p.leaderEpoch, p.epochs = 1, []segment.EpochEntry{{Epoch: 1}}
			p.append(withEpoch(dataBatch(0, 5), 1), withEpoch(dataBatch(5, 5), 1))
		}
	})
	a := startAgent(t, s, dir, props)
	for i := range topic.partitions {
		a.awaitEnd(t, "t", i, 10)
	}
	s.update(func() {
		p := topic.partitions[1]
		p.batches, p.end = p.batches[:1], 5
		p.startEpoch(3)
		p.append(withEpoch(sizedBatch(5, 4, 60), 3), withEpoch(sizedBatch(9, 4, 70), 3))
	})
	return s, topic, a
}

func TestHostile_DivergenceWithoutLeaveIsFailedAndNothingIsCut(t *testing.T) {
	s, topic, a := mirroredThenElected(t, t.TempDir(), stayFailed())
	status := a.awaitFailed(t, "t", 1, CauseDiverged, 10)
	for _, fact := range []string{"diverged at 5", "epoch 1", "10"} {
		if !strings.Contains(status.CauseText, fact) {
			t.Errorf("the cause %q does not name %q", status.CauseText, fact)
		}
	}
	s.update(func() { topic.partitions[0].append(withEpoch(dataBatch(10, 1), 1)) })
	a.awaitEnd(t, "t", 0, 11)
	a.stop()
	want := slices.Concat(withEpoch(dataBatch(0, 5), 1), withEpoch(dataBatch(5, 5), 1))
	if !bytes.Equal(diskBytes(t, a.dir, "t", 1), want) {
		t.Error("the mirror's own records were changed")
	}
}

func TestHostile_DivergenceWithLeaveIsCutAndFetchedAgain(t *testing.T) {
	s, topic, a := mirroredThenElected(t, t.TempDir(), stayFailed(allowCuts, "true"))
	a.awaitEnd(t, "t", 1, 13)
	a.mustEqual(t, s, topic, 1)
	a.mustEqual(t, s, topic, 0)
	checkpoint, err := os.ReadFile(filepath.Join(a.dir, "t-1", "leader-epoch-checkpoint"))
	if err != nil || string(checkpoint) != "0\n2\n1 0\n3 5\n" {
		t.Errorf("leader-epoch-checkpoint %q, %v", checkpoint, err)
	}
	if onDisk(t, a.dir, "t", 1, dataBatch(5, 5)[61:]) {
		t.Error("a batch behind the cut is still on disk")
	}
}

// TestHostile_CutFollowedByTheSourcesEpochHistory has two epochs of ours that the source never had.
func TestHostile_CutFollowedByTheSourcesEpochHistory(t *testing.T) {
	s := newTestSource(t)
	topic := s.addTopic("t", 1)
	p := topic.partitions[0]
	s.update(func() {
		p.leaderEpoch, p.epochs = 4, []segment.EpochEntry{{Epoch: 1}, {Epoch: 2, StartOffset: 4}, {Epoch: 4, StartOffset: 8}}
		p.append(withEpoch(dataBatch(0, 4), 1), withEpoch(dataBatch(4, 4), 2), withEpoch(dataBatch(8, 4), 4))
	})
	a := startAgent(t, s, t.TempDir(), stayFailed(allowCuts, "true"))
	a.awaitEnd(t, "t", 0, 12)
	s.update(func() {
		p.leaderEpoch, p.epochs = 6, []segment.EpochEntry{{Epoch: 1}, {Epoch: 6, StartOffset: 4}}
		p.batches = [][]byte{withEpoch(dataBatch(0, 4), 1), withEpoch(sizedBatch(4, 20, 33), 6)}
		p.end = 24
	})
	a.awaitEnd(t, "t", 0, 24)
	a.mustEqual(t, s, topic, 0)
}

// TestHostile_StaleLastEpochTakesAtMostOneRound has a history that ends in an epoch without records, and a leader that
// never heard of it. Opening the log drops such an entry already.
func TestHostile_StaleLastEpochTakesAtMostOneRound(t *testing.T) {
	s := newTestSource(t)
	topic := s.addTopic("t", 1)
	p := topic.partitions[0]
	s.update(func() {
		p.leaderEpoch, p.epochs = 2, []segment.EpochEntry{{Epoch: 1}, {Epoch: 2, StartOffset: 9}}
		p.append(withEpoch(dataBatch(0, 9), 1), withEpoch(dataBatch(9, 1), 2))
	})
	dir := t.TempDir()
	a := startAgent(t, s, dir, stayFailed())
	a.awaitEnd(t, "t", 0, 10)
	a.stop()

	// The mirror's history gains an epoch that no record is of: as after elections without data.
	writeEpochs(t, dir, "0\n3\n1 0\n2 9\n5 10\n")
	rounds := 0
	s.update(func() {
		p.asked = nil
		p.leaderEpoch = 7
		p.epochs = append(p.epochs, segment.EpochEntry{Epoch: 7, StartOffset: 10})
		p.alter = func(_ fetchwire.FetchPartition, answer *fetchwire.FetchPartitionResponse) {
			if answer.DivergingEpoch.EndOffset >= 0 {
				rounds++
			}
		}
	})
	again := startAgent(t, s, dir, stayFailed())
	again.awaitEnd(t, "t", 0, 10)
	s.update(func() { p.append(withEpoch(dataBatch(10, 3), 7)) })
	again.awaitEnd(t, "t", 0, 13)
	again.mustEqual(t, s, topic, 0)
	if rounds > 1 {
		t.Errorf("%d diverging answers, want at most one", rounds)
	}
	last := int32(-1)
	for _, f := range s.fetches(p) {
		if f.FetchOffset == 10 {
			last = f.LastFetchedEpoch
		}
	}
	if last != 2 {
		t.Errorf("the last fetch at 10 named epoch %d, want 2", last)
	}
	if got := readEpochs(t, dir); got != "0\n3\n1 0\n2 9\n7 10\n" {
		t.Errorf("leader-epoch-checkpoint %q", got)
	}
}

// writeEpochs replaces both epoch files of t-0 in a stopped agent's directory, the source's under its first line.
func writeEpochs(t *testing.T, dir, text string) {
	t.Helper()
	own := filepath.Join(dir, "t-0", "leader-epoch-checkpoint")
	source := filepath.Join(dir, "t-0", "source-leader-epoch-checkpoint")
	if err := os.WriteFile(own, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(b), "\n")
	if err := os.WriteFile(source, []byte(head+"\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readEpochs(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "t-0", "leader-epoch-checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestHostile_EndlessDivergenceDialogueEnds has a leader that answers every fetch with a divergence.
func TestHostile_EndlessDivergenceDialogueEnds(t *testing.T) {
	for name, answered := range map[string]fetchwire.EpochEndOffset{
		"at our end":    {Epoch: 1, EndOffset: 10},
		"nothing known": {Epoch: -1, EndOffset: 0},
		"negative":      {Epoch: 1, EndOffset: -1},
		"far beyond":    {Epoch: 1, EndOffset: 1 << 62},
		"above ours":    {Epoch: 9, EndOffset: 10},
		"no difference": {Epoch: 2, EndOffset: 10},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestSource(t)
			topic := s.addTopic("t", 1)
			p := topic.partitions[0]
			s.update(func() {
				p.leaderEpoch, p.epochs = 2, []segment.EpochEntry{{Epoch: 1}, {Epoch: 2, StartOffset: 5}}
				p.append(withEpoch(dataBatch(0, 5), 1), withEpoch(dataBatch(5, 5), 2))
			})
			a := startAgent(t, s, t.TempDir(), stayFailed())
			a.awaitEnd(t, "t", 0, 10)
			want := s.bytes(p)
			s.update(func() {
				p.alter = func(_ fetchwire.FetchPartition, answer *fetchwire.FetchPartitionResponse) {
					answer.Records, answer.DivergingEpoch = nil, answered
				}
			})
			await(t, patience, "FAILED", func() bool { return a.partition("t", 0).State == StateFailed })
			status := a.partition("t", 0)
			a.stop()
			if !bytes.Equal(diskBytes(t, a.dir, "t", 0), want) {
				t.Errorf("records were cut without leave: %s", fmt.Sprint(status))
			}
		})
	}
}
