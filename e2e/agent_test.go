package e2e

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"segmirror/bench/kafka"
	"segmirror/replicator"
)

// mirrorName is the one mirror that the tests' agents declare.
const mirrorName = "m"

// agentProps are an agent's properties for the topics of a source, with short waits. policy is preserve or rebase.
func agentProps(src *kafka.Cluster, dir, policy, topics string) map[string]string {
	return map[string]string{
		"node.id":                                "1",
		"log.dirs":                               dir,
		"metrics.listener":                       "127.0.0.1:0",
		"mirror.metadata.refresh.interval.ms":    "500",
		"mirror.failed.retry.initial.backoff.ms": "200",
		"mirror.failed.retry.max.backoff.ms":     "1000",
		"mirrors":                                mirrorName,
		"mirror.m.bootstrap.servers":             src.Bootstrap(),
		"mirror.m.topics.include":                topics,
		"mirror.m.leader.epoch.policy":           policy,
		"mirror.m.fetch.wait.max.ms":             "200",
		"mirror.m.fetch.backoff.ms":              "100",
	}
}

// agent is an agent that runs inside the test.
type agent struct {
	*replicator.Agent
	t       *testing.T
	dir     string
	rebased bool // batches differ from the source's in their epochs
	log     *logBuffer
	cancel  context.CancelFunc
	done    chan error
}

// startAgent starts an agent with the properties; it is stopped at the test's end if the test has not done it.
func startAgent(t *testing.T, props map[string]string) *agent {
	t.Helper()
	cfg, err := replicator.ParseConfig(props, nil)
	if err != nil {
		t.Fatal(err)
	}
	buf := &logBuffer{}
	log := slog.New(slog.NewTextHandler(buf, &slog.HandlerOptions{Level: slog.LevelInfo}))
	inner, err := replicator.New(cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background()) // the agent is stopped in order, also when the test fails
	a := &agent{Agent: inner, t: t, dir: props["log.dirs"], log: buf, cancel: cancel, done: make(chan error, 1)}
	a.rebased = props["mirror.m.leader.epoch.policy"] == "rebase"
	go func() { a.done <- inner.Run(ctx) }()
	t.Cleanup(func() {
		if a.cancel != nil {
			a.stop()
		}
		if t.Failed() {
			t.Logf("log of the agent in %s:\n%s", a.dir, a.log.tail(6000))
		}
	})
	return a
}

// stop ends the agent in order and wants it to close cleanly.
func (a *agent) stop() {
	a.t.Helper()
	a.cancel()
	a.cancel = nil
	select {
	case err := <-a.done:
		if err != nil {
			a.t.Errorf("agent: %v", err)
		}
	case <-time.After(patience):
		a.t.Fatal("the agent does not stop")
	}
}

// partition returns the status of one mirrored partition, false while the agent does not hold it.
func (a *agent) partition(topic string, p int32) (replicator.PartitionStatus, bool) {
	for _, m := range a.Status().Mirrors {
		for _, s := range m.Partitions {
			if s.Topic == topic && s.Partition == p {
				return s, true
			}
		}
	}
	return replicator.PartitionStatus{}, false
}

// awaitState waits until a partition is in a state.
func (a *agent) awaitState(topic string, p int32, want replicator.State) replicator.PartitionStatus {
	a.t.Helper()
	var got replicator.PartitionStatus
	eventually(a.t, patience, fmt.Sprintf("%s-%d to be %v", topic, p, want), func() (bool, string) {
		s, ok := a.partition(topic, p)
		got = s
		return ok && s.State == want, fmt.Sprintf("held %v, %v: %s", ok, s.State, s.CauseText)
	})
	return got
}

// awaitCaughtUp waits until every partition of the topics ends where its leader's log ends. The high watermark alone
// would not do: it lags where followers have not fetched yet, and a leader that has just been elected learns it anew.
func (a *agent) awaitCaughtUp(src *kafka.Cluster, partitions ...tp) {
	a.t.Helper()
	for _, p := range partitions {
		eventually(a.t, patience, p.String()+" to catch up", func() (bool, string) {
			committed, end, err := src.Ends(a.t.Context(), p.topic, p.partition)
			if err != nil {
				return false, err.Error()
			}
			s, ok := a.partition(p.topic, p.partition)
			return ok && s.State == replicator.StateMirroring && committed == end && s.EndOffset == end && s.HighWatermark == end,
				fmt.Sprintf("held %v, %v at %d of %d (committed: %d): %s", ok, s.State, s.EndOffset, end, committed, s.CauseText)
		})
	}
}

// tp is a topic-partition.
type tp struct {
	topic     string
	partition int32
}

func (p tp) String() string { return fmt.Sprintf("%s-%d", p.topic, p.partition) }

// dir is the partition's directory in a log dir.
func (p tp) dir(logDir string) string { return filepath.Join(logDir, p.String()) }

// leaderDir is the partition's directory at the source's leader.
func (p tp) leaderDir(t *testing.T, src *kafka.Cluster) string {
	t.Helper()
	s, err := src.Leader(t.Context(), p.topic, p.partition)
	if err != nil {
		t.Fatal(err)
	}
	return src.Broker(s.Leader).PartitionDir(p.topic, p.partition)
}

// logBuffer collects an agent's log.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) tail(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.buf.String()
	return text[max(0, len(text)-n):]
}

// copyTree copies a directory tree to a new place; files whose names end in one of skip are left out.
func copyTree(t *testing.T, from, to string, skip ...string) {
	t.Helper()
	err := filepath.Walk(from, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if info.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		for _, s := range skip {
			if strings.HasSuffix(path, s) {
				return nil
			}
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), data, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}
