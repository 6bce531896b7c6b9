package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"segmirror/bench/kafka"
	"segmirror/compare"
)

// checkCompaction lets the source compact a topic that was mirrored before. The mirror's surviving records have to be
// the source's, and a new mirror, started after it, has to hold the compacted batches.
func checkCompaction(t *testing.T, src *kafka.Cluster, p tp, before string) {
	t.Helper()
	cleaned := compact(t, src, p)
	sourceDir := p.leaderDir(t, src)
	ours := decode(t, p, p.dir(before))
	theirs := decode(t, p, sourceDir)
	if len(theirs) >= len(ours) {
		t.Fatalf("%v: %d records at the source, %d mirrored: nothing was compacted", p, len(theirs), len(ours))
	}
	checkSurvivors(t, survivors(ours, cleaned), theirs)
	after := startAgent(t, agentProps(src, t.TempDir(), "preserve", p.topic))
	after.awaitCaughtUp(src, p)
	after.stop()
	r := compareLogs(t, p, sourceDir, p.dir(after.dir), false)
	wantWhole(t, src, p, r)
	empty := 0
	batches(t, p.dir(after.dir), func(b compare.Batch) {
		if b.RecordsCount() == 0 {
			empty++
		}
	})
	if empty == 0 {
		t.Errorf("%v: no batch was emptied and kept", p)
	}
	t.Logf("%d of %d records survive, %d batches compared, %d of them empty", len(theirs), len(ours), r.Batches, empty)
}

// compact closes the topic's active segment and waits until the leader has cleaned all before the new one. It returns
// the offset up to which the log is clean.
func compact(t *testing.T, src *kafka.Cluster, p tp) int64 {
	t.Helper()
	ctx := t.Context()
	err := src.AlterTopic(ctx, p.topic, map[string]string{"segment.ms": "500", "min.compaction.lag.ms": "0"})
	if err != nil {
		t.Fatal(err)
	}
	producer, err := src.NewProducer(kafka.ProducerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	var active int64
	eventually(t, timeToClean, "the leader's segments to be closed and cleaned", func() (bool, string) {
		if active == 0 { // the record rolls the segment, whose first batch is older than segment.ms
			if err := producer.Send(ctx, p.topic, p.partition, kgo.KeyStringRecord("roll", "roll")); err != nil {
				t.Fatal(err)
			}
			logs := segmentFiles(t, p.leaderDir(t, src), ".log")
			if _, err := fmt.Sscanf(filepath.Base(logs[len(logs)-1]), "%d.log", &active); err != nil {
				t.Fatal(err)
			}
		}
		checkpoint := cleanerCheckpoint(t, src, p)
		return checkpoint >= active && active > 0, fmt.Sprintf("clean up to %d, active segment %d", checkpoint, active)
	})
	return active
}

// cleanerCheckpoint reads how far the partition's leader has cleaned.
func cleanerCheckpoint(t *testing.T, src *kafka.Cluster, p tp) int64 {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(filepath.Dir(p.leaderDir(t, src)), "cleaner-offset-checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var offset int64
		prefix := fmt.Sprintf("%s %d ", p.topic, p.partition)
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			if _, err := fmt.Sscan(rest, &offset); err == nil {
				return offset
			}
		}
	}
	return -1
}

// decode reads every record of a partition directory.
func decode(t *testing.T, p tp, dir string) []*kgo.Record {
	t.Helper()
	var raw bytes.Buffer
	batches(t, dir, func(b compare.Batch) { raw.Write(b) })
	part := kmsg.NewFetchResponseTopicPartition()
	part.Partition, part.RecordBatches, part.HighWatermark = p.partition, raw.Bytes(), 1<<62
	opts := kgo.ProcessFetchPartitionOpts{Topic: p.topic, Partition: p.partition, Offset: 0}
	fetched, _ := kgo.ProcessFetchPartition(opts, &part, kgo.DefaultDecompressor(), nil)
	if fetched.Err != nil {
		t.Fatal(fetched.Err)
	}
	return fetched.Records
}

// survivors are the records that compaction of the offsets below cleaned leaves: the newest of each key there, and all
// from there on.
func survivors(records []*kgo.Record, cleaned int64) []*kgo.Record {
	newest := map[string]int64{}
	for _, r := range records {
		if r.Offset < cleaned {
			newest[string(r.Key)] = r.Offset
		}
	}
	return slices.DeleteFunc(slices.Clone(records), func(r *kgo.Record) bool {
		return r.Offset < cleaned && newest[string(r.Key)] != r.Offset
	})
}

// checkSurvivors wants the same records at the same offsets in the range both have.
func checkSurvivors(t *testing.T, ours, theirs []*kgo.Record) {
	t.Helper()
	end := ours[len(ours)-1].Offset
	theirs = slices.DeleteFunc(slices.Clone(theirs), func(r *kgo.Record) bool { return r.Offset > end })
	for i := range max(len(ours), len(theirs)) {
		if i >= len(ours) || i >= len(theirs) {
			t.Errorf("%d records survive in the mirror, %d at the source", len(ours), len(theirs))
			return
		}
		a, b := theirs[i], ours[i]
		if a.Offset != b.Offset || !bytes.Equal(a.Key, b.Key) || !bytes.Equal(a.Value, b.Value) ||
			!a.Timestamp.Equal(b.Timestamp) || len(a.Headers) != len(b.Headers) {
			t.Errorf("surviving record %d: %v at the source, %v in the mirror", i, a, b)
			return
		}
	}
}
