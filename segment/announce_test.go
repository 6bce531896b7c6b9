package segment

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// announcing opens a bound log whose source announces its epochs.
func announcing(t *testing.T, policy EpochPolicy) (*Log, openParams) {
	t.Helper()
	p := testParams(t)
	p.cfg.Policy = policy
	l := mustOpen(t, p)
	if err := errors.Join(l.Bind(SourceID{ClusterID: "c", TopicID: TopicID{1}}), l.AnnounceEpochs(true)); err != nil {
		t.Fatal(err)
	}
	return l, p
}

func TestAnnounce_TheSourcesHistoryIsWhatWasAnnouncedAlsoAfterAKill(t *testing.T) {
	for _, policy := range []EpochPolicy{EpochPreserve, EpochRebase} {
		t.Run(policy.String(), func(t *testing.T) {
			l, p := announcing(t, policy)
			announce := func(epoch int32) {
				t.Helper()
				if err := l.AnnounceEpoch(epoch); err != nil {
					t.Fatal(err)
				}
			}
			announce(3)
			mustAppend(t, l, data(0, 9), data(10, 19).at(9)) // what the batches carry is their server's
			announce(4)                                      // and then nothing of it
			announce(6)
			mustAppend(t, l, data(20, 29).at(9))
			announce(8)
			want := []EpochEntry{{3, 0}, {6, 20}, {8, 30}}
			if got := l.SourceEpochEntries(); !slices.Equal(got, want) {
				t.Errorf("source epochs %v, want %v", got, want)
			}
			crash(t, l)
			again, _ := reopenDirty(t, p, 0)
			if got := again.SourceEpochEntries(); !slices.Equal(got, want[:2]) {
				t.Errorf("after a kill %v, want %v", got, want[:2])
			}
			if !again.EpochsAnnounced() || again.BatchesCarrySourceEpochs() {
				t.Errorf("announced %v, batches carry the source's %v", again.EpochsAnnounced(), again.BatchesCarrySourceEpochs())
			}
			if err := again.AnnounceEpoch(5); !errors.Is(err, ErrEpochFalls) {
				t.Errorf("a falling epoch: %v", err)
			}
			local := []EpochEntry{{0, 0}}
			if policy == EpochPreserve {
				local = append(local, EpochEntry{9, 10})
			}
			if got := again.EpochEntries(); !slices.Equal(got, local) {
				t.Errorf("epochs of the bytes %v, want %v", got, local)
			}
		})
	}
}

func TestAnnounce_IsDurableBeforeTheBatchesAndInTheFile(t *testing.T) {
	l, _ := announcing(t, EpochRebase)
	if err := l.AnnounceEpoch(7); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(l.Dir(), sourceEpochFileName))
	if err != nil {
		t.Fatal(err)
	}
	if text := string(b); !strings.HasPrefix(text, "source c ") || !strings.HasSuffix(text, " 0 announced\n0\n1\n7 0\n") {
		t.Errorf("%q", text)
	}
	if err := l.AnnounceEpochs(false); err != nil {
		t.Fatal(err)
	}
	if err := l.AnnounceEpoch(8); !errors.Is(err, ErrSourceMismatch) {
		t.Errorf("announcing to a log whose batches tell: %v", err)
	}
	mustAppend(t, l, data(0, 9).at(9))
	if got, want := l.SourceEpochEntries(), []EpochEntry{{9, 0}}; !slices.Equal(got, want) {
		t.Errorf("source epochs %v, want %v", got, want)
	}
}

func TestReadBelow_EndsBeforeTheOffset(t *testing.T) {
	l := mustOpen(t, testParams(t))
	mustAppend(t, l, data(0, 9), data(10, 19), data(20, 29))
	for upTo, next := range map[int64]int64{10: 10, 20: 20, 25: 20, 30: 30, 100: 30, 5: 0, 0: 0} {
		s, err := l.ReadBelow(upTo, 0, 1<<20, ReadLogEnd)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.NextOffset(); got != next {
			t.Errorf("below %d: read to %d, want %d", upTo, got, next)
		}
		if err := s.Release(); err != nil {
			t.Fatal(err)
		}
	}
}
