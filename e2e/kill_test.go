package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"segmirror/bench/kafka"
	"segmirror/compare"
	"segmirror/segment"
)

// Environment variables of TestKill: how many rounds, and the seed of its random moments. scripts/soak-kill.sh sets
// them.
const (
	envKillRounds = "SEGMIRROR_KILL_ROUNDS"
	envKillSeed   = "SEGMIRROR_KILL_SEED"

	quickKillRounds = 5
)

// buildAgent builds the command once for all tests.
var buildAgent = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "segmirror-e2e-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "segmirror")
	if out, err := exec.Command("go", "build", "-o", path, "segmirror/cmd/segmirror").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// agentProcess is an agent in a process of its own.
type agentProcess struct {
	t    *testing.T
	cmd  *exec.Cmd
	out  string // file with its stdout and stderr
	done chan error
}

// startProcess runs segmirror agent with the properties, by way of another command if one is given.
func startProcess(t *testing.T, props map[string]string, by ...string) *agentProcess {
	t.Helper()
	bin, err := buildAgent()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "agent.properties")
	var text strings.Builder
	for _, k := range slices.Sorted(maps.Keys(props)) {
		fmt.Fprintf(&text, "%s=%s\n", k, strings.ReplaceAll(props[k], `\`, `\\`))
	}
	if err := os.WriteFile(config, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	a := &agentProcess{t: t, out: filepath.Join(filepath.Dir(config), "out.log"), done: make(chan error, 1)}
	out, err := os.Create(a.out)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	args := append(by, bin, "agent", "--config", config)
	a.cmd = exec.Command(args[0], args[1:]...)
	a.cmd.Stdout, a.cmd.Stderr = out, out
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // when the test itself is killed
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { a.done <- a.cmd.Wait() }() // ends with the process, which every path below ends
	t.Cleanup(func() {
		a.cmd.Process.Kill() // nothing if it has ended
		if t.Failed() {
			if log, err := os.ReadFile(a.out); err == nil {
				t.Logf("output of the agent:\n%s", log[max(0, len(log)-4000):])
			}
		}
	})
	return a
}

// awaitStarted waits until the agent says that it has started: before that a signal may find no handler.
func (a *agentProcess) awaitStarted() {
	a.t.Helper()
	eventually(a.t, patience, "the agent to start", func() (bool, string) {
		out, err := os.ReadFile(a.out)
		return err == nil && strings.Contains(string(out), "agent started"), string(out)
	})
}

// kill ends the agent with SIGKILL and waits for its end. An agent that had ended before is an error.
func (a *agentProcess) kill() {
	a.t.Helper()
	if err := a.cmd.Process.Kill(); err != nil {
		a.t.Fatalf("the agent had ended by itself: %v", err)
	}
	<-a.done
	if status, ok := a.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		a.t.Fatalf("the agent ended by itself: %v", a.cmd.ProcessState)
	}
}

// stop ends the agent with SIGTERM and wants exit code 0.
func (a *agentProcess) stop() {
	a.t.Helper()
	if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		a.t.Fatal(err)
	}
	select {
	case err := <-a.done:
		if err != nil {
			a.t.Errorf("agent: %v", err)
		}
	case <-time.After(patience):
		a.t.Fatal("the agent does not stop")
	}
}

// TestKill_LeavesABatchExactPrefix kills the agent at random moments while producers, transactions and leader moves go
// on. After each kill, recovery of a copy of its log dir has to leave a prefix of the source's log in every partition,
// no shorter than after the kill before; at the end the mirror is whole.
func TestKill_LeavesABatchExactPrefix(t *testing.T) {
	src := source(t)
	rounds, seed := killRounds(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	policy := []string{"preserve", "rebase"}[rng.IntN(2)]
	t.Logf("%d rounds, seed %d, %s", rounds, seed, policy)
	all := slices.DeleteFunc(kinds("kill"), func(k kind) bool { return strings.HasSuffix(k.live.Name, "trimmed") })
	for i := range all {
		all[i].live.ValueBytes, all[i].live.Interval = 0, 50*time.Millisecond // little: after each kill all is read again
	}
	parts := createKinds(t, src, all)
	live := startLive(t, src, all)
	stopMoving := keepMoving(t, src, parts, seed)
	props := agentProps(src, t.TempDir(), policy, "kill-.*")
	delete(props, "metrics.listener")
	props["log.flush.interval.ms"] = "500"
	ends := map[tp]int64{}
	for round := range rounds {
		a := startProcess(t, props)
		lifetime := time.Duration(200+rng.IntN(3000)) * time.Millisecond
		wait(t, lifetime)
		a.kill()
		killed := time.Now()
		checkKilled(t, src, parts, props, ends)
		mirrored := int64(0)
		for _, end := range ends {
			mirrored += end
		}
		t.Logf("round %d: killed after %v, %d offsets mirrored; checked in %v", round+1, lifetime, mirrored,
			time.Since(killed).Round(time.Millisecond))
		if t.Failed() {
			return
		}
	}
	stopMoving()
	stopLive(t, src, live)
	finish(t, src, parts, props)
}

// killRounds reads the environment; the seed is a new one each time unless it is given.
func killRounds(t *testing.T) (rounds int, seed uint64) {
	t.Helper()
	rounds, seed = quickKillRounds, rand.Uint64()
	var err error
	if s := os.Getenv(envKillRounds); s != "" {
		if rounds, err = strconv.Atoi(s); err != nil {
			t.Fatalf("%s: %v", envKillRounds, err)
		}
	}
	if s := os.Getenv(envKillSeed); s != "" {
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("%s: %v", envKillSeed, err)
		}
	}
	return rounds, seed
}

// wait lets the processes outside run for a while.
func wait(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// keepMoving moves random partitions' leaders until the returned function is called, which waits for the last move.
func keepMoving(t *testing.T, src *kafka.Cluster, parts []tp, seed uint64) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		rng := rand.New(rand.NewPCG(seed, 1))
		moves := 0
		for ctx.Err() == nil {
			p := parts[rng.IntN(len(parts))]
			s, err := src.Leader(ctx, p.topic, p.partition)
			if err == nil && src.MoveLeader(ctx, p.topic, p.partition, 3-s.Leader) == nil {
				moves++
			}
			select {
			case <-ctx.Done():
			case <-time.After(300 * time.Millisecond):
			}
		}
		done <- moves
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		t.Logf("%d leader moves", <-done)
	})
	t.Cleanup(stop)
	return stop
}

// checkKilled recovers a copy of a killed agent's log dir and holds every partition against the source.
func checkKilled(t *testing.T, src *kafka.Cluster, parts []tp, props map[string]string, ends map[tp]int64) {
	t.Helper()
	rebased := props["mirror.m.leader.epoch.policy"] == "rebase"
	dir := t.TempDir()
	copyTree(t, props["log.dirs"], dir, ".lock")
	recoverCopy(t, parts, dir, rebased)
	for _, p := range parts {
		if _, err := os.Stat(p.dir(dir)); os.IsNotExist(err) {
			if ends[p] > 0 {
				t.Errorf("%v is gone", p)
			}
			continue // killed before it was found
		}
		r := compareLive(t, src, p, p.dir(dir), rebased)
		wantPrefix(t, p, r)
		if r.To < ends[p] {
			t.Errorf("%v ends at %d, after the kill before it ended at %d", p, r.To, ends[p])
		}
		ends[p] = r.To
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
}

// recoverCopy opens every partition of an unclean log dir, as the agent does at its start, checks and closes it.
func recoverCopy(t *testing.T, parts []tp, dir string, rebased bool) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, "meta.properties")); os.IsNotExist(err) {
		return // killed before the log dir was made
	}
	ld, err := segment.OpenLogDir(dir, identityOf(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := ld.Close(); err != nil {
			t.Error(err)
		}
	}()
	cfg := segment.DefaultConfig()
	if rebased {
		cfg.Policy = segment.EpochRebase
	}
	for _, p := range parts {
		if _, err := os.Stat(p.dir(dir)); err != nil {
			continue
		}
		name := segment.TopicPartition{Topic: p.topic, Partition: p.partition}
		log, _, err := ld.OpenLog(name, cfg)
		if err != nil {
			t.Errorf("%v: %v", p, err)
			continue
		}
		if err := log.Check(); err != nil {
			t.Errorf("%v: %v", p, err)
		}
	}
}

// finish lets an agent catch up and stops it, starts and stops it once more as a process, and wants the mirror whole.
func finish(t *testing.T, src *kafka.Cluster, parts []tp, props map[string]string) {
	t.Helper()
	a := startAgent(t, props)
	a.awaitCaughtUp(src, parts...)
	a.stop()
	again := startProcess(t, props)
	again.awaitStarted()
	wait(t, time.Second)
	again.stop()
	var total compare.Result
	for _, p := range parts {
		r := compareLogs(t, p, p.leaderDir(t, src), p.dir(a.dir), a.rebased)
		wantWhole(t, src, p, r)
		checkDir(t, p, a.dir, liveIndexInterval)
		total.Batches, total.Bytes = total.Batches+r.Batches, total.Bytes+r.Bytes
	}
	t.Logf("whole: %d batches, %d bytes", total.Batches, total.Bytes)
}
