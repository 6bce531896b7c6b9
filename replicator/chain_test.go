package replicator

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"segmirror/segment"
)

// chain is a source A, an agent B that mirrors it and an agent C that mirrors B.
type chain struct {
	a     *testSource
	topic *testTopic
	b, c  *testAgent
	addr  string // B's, kept over its restarts
	props map[string]map[string]string
	dirs  map[string]string
}

// newChain starts the chain for one topic "t" of some partitions; more are properties of both agents.
func newChain(t *testing.T, partitions int, policyB, policyC string, more map[string]string) *chain {
	t.Helper()
	ch := &chain{
		a: newTestSource(t), props: map[string]map[string]string{}, dirs: map[string]string{"b": t.TempDir(), "c": t.TempDir()},
	}
	ch.topic = ch.a.addTopic("t", partitions)
	for agent, policy := range map[string]string{"b": policyB, "c": policyC} {
		ch.props[agent] = map[string]string{
			"listeners": "PLAINTEXT://127.0.0.1:0", "cluster.id": "cluster-of-" + agent,
			"mirror.m.mirror.leader.epoch.policy": policy,
		}
		for k, v := range more {
			ch.props[agent][k] = v
		}
	}
	return ch
}

func (ch *chain) startB(t *testing.T) {
	t.Helper()
	ch.b = startAgent(t, ch.a, ch.dirs["b"], ch.props["b"])
	ch.addr = ch.b.ListenerAddrs()[0]
	ch.props["b"]["listeners"] = "PLAINTEXT://" + ch.addr
}

func (ch *chain) startC(t *testing.T) {
	t.Helper()
	ch.props["c"]["mirror.m.bootstrap.servers"] = ch.addr
	ch.c = startAgent(t, ch.a, ch.dirs["c"], ch.props["c"])
}

// elect begins an epoch at A's end and appends a batch of it to every partition.
func (ch *chain) elect(epoch int32) {
	ch.a.update(func() {
		for _, p := range ch.topic.partitions {
			if p.end == 0 {
				p.epochs = nil
			}
			p.startEpoch(epoch)
			p.append(withEpoch(dataBatch(p.end, 10), epoch), withEpoch(dataBatch(p.end+10, 10), epoch))
		}
	})
}

// awaitAll waits until both agents have what A has.
func (ch *chain) awaitAll(t *testing.T) {
	t.Helper()
	for i, p := range ch.topic.partitions {
		end := int64(0)
		ch.a.update(func() { end = p.end })
		ch.b.awaitEnd(t, "t", i, end)
		ch.c.awaitEnd(t, "t", i, end)
	}
}

// check stops both agents and compares: batches but for epochs, and the source's history.
func (ch *chain) check(t *testing.T) {
	t.Helper()
	ch.b.stop()
	ch.c.stop()
	for i, p := range ch.topic.partitions {
		want := withoutEpochs(ch.a.bytes(p))
		for name, dir := range ch.dirs {
			checkSame(t, withoutEpochs(diskBytes(t, dir, "t", i)), want)
			if got := sourceEpochs(t, dir, i); !slices.Equal(got, p.epochs) {
				t.Errorf("%s, t-%d: source epochs %v, want A's %v", name, i, got, p.epochs)
			}
		}
		if ch.props["c"]["mirror.m.mirror.leader.epoch.policy"] == "preserve" {
			checkSame(t, diskBytes(t, ch.dirs["c"], "t", i), diskBytes(t, ch.dirs["b"], "t", i))
		}
	}
}

// sourceEpochs reads the source's history of a stopped agent's t partition.
func sourceEpochs(t *testing.T, dir string, index int) []segment.EpochEntry {
	t.Helper()
	path := filepath.Join(dir, fmt.Sprintf("t-%d", index), "source-leader-epoch-checkpoint")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	var out []segment.EpochEntry
	for _, line := range lines[3:] {
		var e segment.EpochEntry
		if _, err := fmt.Sscanf(line, "%d %d", &e.Epoch, &e.StartOffset); err != nil {
			t.Fatalf("%s: %q: %v", path, line, err)
		}
		out = append(out, e)
	}
	return out
}

// eachPolicy runs a test for every pair of policies of B and C.
func eachPolicy(t *testing.T, run func(t *testing.T, b, c string)) {
	for _, b := range []string{"preserve", "rebase"} {
		for _, c := range []string{"preserve", "rebase"} {
			t.Run(b+"_"+c, func(t *testing.T) {
				t.Parallel()
				run(t, b, c)
			})
		}
	}
}

func TestChain_EpochsOfTheSourceReachTheLastAgent(t *testing.T) {
	eachPolicy(t, func(t *testing.T, b, c string) {
		ch := newChain(t, 3, b, c, nil)
		ch.a.update(func() {
			for _, p := range ch.topic.partitions {
				p.leaderEpoch, p.epochs = 2, []segment.EpochEntry{{Epoch: 2}}
				p.append(withEpoch(dataBatch(0, 10), 2))
			}
		})
		ch.elect(3)
		ch.startB(t)
		ch.startC(t)
		ch.awaitAll(t)
		ch.elect(7) // while both follow
		ch.awaitAll(t)
		ch.b.stop()
		ch.elect(8)
		ch.startB(t)
		ch.awaitAll(t)
		ch.c.stop()
		ch.elect(9)
		ch.elect(12)
		ch.startC(t)
		ch.awaitAll(t)
		ch.check(t)
	})
}

// unclean replaces what A holds from offset 20 on by records of a new epoch.
func (ch *chain) unclean(epoch int32, records bool) {
	ch.a.update(func() {
		for _, p := range ch.topic.partitions {
			for len(p.batches) > 0 && batchEnd(p.batches[len(p.batches)-1]) > 20 {
				p.batches = p.batches[:len(p.batches)-1]
			}
			p.end = 20
			for len(p.epochs) > 0 && p.epochs[len(p.epochs)-1].StartOffset >= 20 {
				p.epochs = p.epochs[:len(p.epochs)-1]
			}
			p.startEpoch(epoch)
			if records {
				p.append(withEpoch(sizedBatch(20, 3, 50), epoch))
			}
		}
	})
}

func TestChain_AnUncleanElectionAtTheSourceIsFollowedByBoth(t *testing.T) {
	for name, records := range map[string]bool{"with records": true, "without records": false} {
		t.Run(name, func(t *testing.T) {
			eachPolicy(t, func(t *testing.T, b, c string) {
				ch := newChain(t, 2, b, c, map[string]string{allowCuts: "true"})
				ch.elect(1)
				ch.elect(2)
				ch.elect(3)
				ch.startB(t)
				ch.startC(t)
				ch.awaitAll(t)
				ch.unclean(6, records)
				for i := range ch.topic.partitions {
					await(t, patience, "C follows the cut", func() bool { return ch.c.partition("t", i).EndOffset < 60 })
				}
				if records {
					ch.awaitAll(t)
				}
				ch.elect(7)
				ch.awaitAll(t)
				if !records { // an epoch without records reaches no copy
					ch.a.update(func() {
						for _, p := range ch.topic.partitions {
							p.epochs = slices.DeleteFunc(p.epochs, func(e segment.EpochEntry) bool { return e.Epoch == 6 })
						}
					})
				}
				ch.check(t)
			})
		})
	}
}

func TestChain_AnUncleanElectionWithoutLeaveAtTheLastIsFailedThere(t *testing.T) {
	eachPolicy(t, func(t *testing.T, b, c string) {
		ch := newChain(t, 1, b, c, map[string]string{allowCuts: "true"})
		ch.props["c"][allowCuts] = "false"
		ch.elect(1)
		ch.elect(2)
		ch.startB(t)
		ch.startC(t)
		ch.awaitAll(t)
		ch.unclean(6, true)
		ch.b.awaitEnd(t, "t", 0, 23)
		// While B cuts, C may meet a source that is only shorter.
		await(t, patience, "diverged", func() bool { return ch.c.partition("t", 0).Cause == CauseDiverged })
		status := ch.c.awaitFailed(t, "t", 0, CauseDiverged, 40)
		if !strings.Contains(status.CauseText, "leader epoch 6") || !strings.Contains(status.CauseText, "shared up to 20") {
			t.Errorf("%s", status.CauseText)
		}
		// Told so, C follows, also when B has more by then than C.
		ch.c.stop()
		ch.elect(7)
		ch.elect(8)
		ch.props["c"][allowCuts] = "true"
		ch.startC(t)
		ch.awaitAll(t)
		ch.check(t)
	})
}

func TestChain_EpochsLostAtTheLastAreAskedForAgain(t *testing.T) {
	eachPolicy(t, func(t *testing.T, b, c string) {
		ch := newChain(t, 1, b, c, nil)
		ch.elect(2)
		ch.elect(5)
		ch.elect(9)
		ch.startB(t)
		ch.startC(t)
		ch.awaitAll(t)
		ch.c.stop()
		if err := os.Remove(filepath.Join(ch.dirs["c"], "t-0", "source-leader-epoch-checkpoint")); err != nil {
			t.Fatal(err)
		}
		ch.elect(11)
		ch.startC(t)
		ch.awaitAll(t)
		ch.elect(12)
		ch.awaitAll(t)
		ch.check(t)
	})
}
