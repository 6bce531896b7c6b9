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
	awaitInSync(ctx, t, c, "moved")
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
	if err := c.AwaitMarkers(ctx); err != nil {
		t.Error(err)
	}
	checkEnds(ctx, t, c, "moved")
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

// awaitInSync waits until both brokers hold the topic's partition: a broker that is not in sync cannot become leader.
func awaitInSync(ctx context.Context, t *testing.T, c *Cluster, topic string) {
	t.Helper()
	inSync := func(s PartitionState) bool { return len(s.ISR) == 2 }
	if _, err := c.AwaitPartition(ctx, topic, 0, "in sync", inSync); err != nil {
		t.Fatal(err)
	}
}

// checkEnds wants the log end to be told from the high watermark while the follower, broker 2, stands still. The
// leader gives up a follower that does so for too long, and with it the difference: on a busy machine it is tried anew.
func checkEnds(ctx context.Context, t *testing.T, c *Cluster, topic string) {
	t.Helper()
	unreplicated, err := c.NewClient(kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	if err != nil {
		t.Fatal(err)
	}
	defer unreplicated.Close()
	told := false
	for range 10 {
		end := awaitReplicated(ctx, t, c, topic)
		if err := c.Broker(2).Pause(); err != nil {
			t.Fatal(err)
		}
		produced := unreplicated.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("to the leader only")}).FirstErr()
		committed, longer, err := c.Ends(ctx, topic, 0)
		if err := errors.Join(produced, err, c.Broker(2).Continue()); err != nil {
			t.Fatal(err)
		}
		if longer != end+1 {
			t.Fatalf("the log ends at %d after one record, at %d before", longer, end)
		}
		if told = committed == end; told {
			break
		}
	}
	awaitReplicated(ctx, t, c, topic)
	if !told {
		t.Error("the high watermark was never behind the log's end")
	}
}

// awaitReplicated waits until both brokers hold all of the topic's partition and returns where it ends.
func awaitReplicated(ctx context.Context, t *testing.T, c *Cluster, topic string) (end int64) {
	t.Helper()
	awaitInSync(ctx, t, c, topic)
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	err := poll(ctx, topic+" to be replicated", func() (ok bool, err error) {
		var committed int64
		committed, end, err = c.Ends(ctx, topic, 0)
		return err == nil && committed == end, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return end
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
