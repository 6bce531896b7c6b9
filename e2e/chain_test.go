package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"segmirror/compare"
	"segmirror/segment"
)

// chainProps are the properties of an agent that serves at listen and mirrors from source.
func chainProps(props map[string]string, listen, source string) map[string]string {
	if source != "" {
		props["mirror.m.bootstrap.servers"] = source
	}
	props["listeners"] = "PLAINTEXT://" + listen
	return props
}

// TestChain_OfAgentsEqualsTheSource mirrors a live source into two agents, one that preserves epochs and one that
// rebases them, and each of these into two more, while leaders move; the rebasing one is killed and started again, the
// other stopped and started. In the end every copy holds the source's batches and its history of leader epochs.
func TestChain_OfAgentsEqualsTheSource(t *testing.T) {
	src := source(t)
	all := slices.DeleteFunc(kinds("chain"), func(k kind) bool {
		return !strings.HasSuffix(k.live.Name, "codecs") && !strings.HasSuffix(k.live.Name, "txn")
	})
	parts := createKinds(t, src, all)
	live := startLive(t, src, all)
	listen := map[string]string{"preserve": freeAddr(t), "rebase": freeAddr(t)}
	dirs, first := map[string]string{}, map[string]map[string]string{}
	for policy, addr := range listen {
		dirs[policy] = t.TempDir()
		first[policy] = chainProps(agentProps(src, dirs[policy], policy, "chain-.*"), addr, "")
	}
	kept := startAgent(t, first["preserve"])
	killed := startProcess(t, first["rebase"])
	last := map[string]*agent{}
	for _, policy := range []string{"preserve", "rebase"} {
		for _, own := range []string{"preserve", "rebase"} {
			name := policy + "-" + own
			dirs[name] = t.TempDir()
			last[name] = startAgent(t, chainProps(agentProps(src, dirs[name], own, "chain-.*"), "127.0.0.1:0", listen[policy]))
		}
	}
	move := func() {
		awaitBatches(t, live, 40)
		for _, p := range parts {
			moveLeader(t, src, p)
		}
		awaitBatches(t, live, 40)
	}
	move()
	killed.awaitStarted()
	killed.kill()
	kept.stop()
	move() // while the first of both chains are away
	kept = startAgent(t, first["preserve"])
	killed = startProcess(t, first["rebase"])
	move()
	stopLive(t, src, live)
	for _, a := range last {
		a.awaitCaughtUp(src, parts...)
		a.stop()
	}
	kept.stop()
	killed.stop()
	for _, p := range parts {
		want := batchEpochs(t, p.leaderDir(t, src))
		if len(want) < 3 {
			t.Errorf("%v: the source has epochs %v: leaders did not move", p, want)
		}
		for name, dir := range dirs {
			rebased := name != "preserve" && name != "preserve-preserve"
			r := compareLogs(t, p, p.leaderDir(t, src), p.dir(dir), rebased)
			wantWhole(t, src, p, r)
			if got := sourceEpochs(t, p.dir(dir)); !slices.Equal(got, want) {
				t.Errorf("%v in %s: source epochs %v, want %v", p, name, got, want)
			}
			checkDir(t, p, dir, liveIndexInterval)
		}
		compareLogs(t, p, p.dir(dirs["rebase"]), p.dir(dirs["rebase-preserve"]), false)
	}
}

// batchEpochs is where each leader epoch begins among the batches of a partition directory.
func batchEpochs(t *testing.T, dir string) (entries []segment.EpochEntry) {
	t.Helper()
	batches(t, dir, func(b compare.Batch) {
		if n := len(entries); n == 0 || entries[n-1].Epoch != b.LeaderEpoch() {
			entries = append(entries, segment.EpochEntry{Epoch: b.LeaderEpoch(), StartOffset: b.BaseOffset()})
		}
	})
	return entries
}

// sourceEpochs reads the source's history from a closed mirror's directory.
func sourceEpochs(t *testing.T, dir string) (entries []segment.EpochEntry) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "source-leader-epoch-checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[3:] {
		var e segment.EpochEntry
		if _, err := fmt.Sscanf(line, "%d %d", &e.Epoch, &e.StartOffset); err != nil {
			t.Fatalf("%s: %q: %v", dir, line, err)
		}
		entries = append(entries, e)
	}
	return entries
}
