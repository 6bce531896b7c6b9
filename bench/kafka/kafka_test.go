package kafka

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestCluster_ServesThroughMovesKillsAndRestarts drives a two-broker cluster through what the other tests rely on.
func TestCluster_ServesThroughMovesKillsAndRestarts(t *testing.T) {
	Require(t)
	ctx := t.Context()
	c, err := Start(ctx, Config{Brokers: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	spec := TopicSpec{
		Name: "moved", Assignment: [][]int32{{1, 2}}, Configs: map[string]string{"internal.segment.bytes": "20000"},
	}
	if err := c.CreateTopic(ctx, spec); err != nil {
		t.Fatal(err)
	}
	live := c.StartLive(ctx, LiveTopic{Name: "moved", Partitions: 1, Codecs: Codecs()}, LiveTopic{
		Name: "moved", Partitions: 1, Transactional: true,
	})
	if err := c.MoveLeader(ctx, "moved", 0, 2); err != nil {
		t.Error(err)
	}
	if err := c.Broker(2).Kill(); err != nil {
		t.Error(err)
	}
	ledBy1 := func(s PartitionState) bool { return s.Leader == 1 }
	if _, err := c.AwaitPartition(ctx, "moved", 0, "led by 1", ledBy1); err != nil {
		t.Error(err)
	}
	if err := c.Broker(2).Start(ctx); err != nil {
		t.Fatal(err)
	}
	stats := live.Stop()
	t.Logf("live producers: %+v", stats)
	if stats.Batches == 0 {
		t.Errorf("live producers wrote nothing: %v", stats.LastErr)
	}
	checkReadsWhole(ctx, t, c, "moved")
	checkDumps(ctx, t, c, "moved")
	if err := c.DeleteTopic(ctx, "moved"); err != nil {
		t.Error(err)
	}
	if _, err := c.Topic(ctx, 1, "moved"); !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Errorf("deleted topic: %v", err)
	}
	if err := c.StopAll(ctx); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(c.Broker(1).LogDirs[0], ".kafka_cleanshutdown")); err != nil {
		t.Errorf("after an orderly stop: %v", err)
	}
}

// checkReadsWhole reads the partition from its start and wants offsets that rise.
func checkReadsWhole(ctx context.Context, t *testing.T, c *Cluster, topic string) {
	t.Helper()
	records, err := c.Records(ctx, topic, 0, 0, kgo.FetchIsolationLevel(kgo.ReadUncommitted()))
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range records {
		if r.Offset != int64(i) {
			t.Fatalf("record %d has offset %d", i, r.Offset)
		}
	}
	t.Logf("%d records", len(records))
}

// checkDumps dumps all segments in one JVM and wants each to start with its own base offset.
func checkDumps(ctx context.Context, t *testing.T, c *Cluster, topic string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(c.Broker(1).PartitionDir(topic, 0), "*.log"))
	if err != nil || len(files) < 2 {
		t.Fatalf("segments %v: %v", files, err)
	}
	dumps, _, err := c.Dist().DumpFiles(ctx, files, "--deep-iteration")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dumps {
		base := strings.TrimLeft(strings.TrimSuffix(filepath.Base(d.File), ".log"), "0")
		if want := "Log starting offset: " + max(base, "0") + "\n"; !strings.HasPrefix(d.Text, want) {
			t.Errorf("%s: %q, want %q", d.File, d.Text[:min(len(d.Text), 60)], want)
		}
	}
}
