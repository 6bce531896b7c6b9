package e2e

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"segmirror/bench/kafka"
	"segmirror/compare"
)

// numbered makes n records with readable keys and values.
func numbered(name string, n int) []*kgo.Record {
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = kgo.KeyStringRecord(fmt.Sprintf("%s-%d", name, i), fmt.Sprintf("%s value %d", name, i))
	}
	return records
}

// TestMirror_EqualsALiveSource mirrors topics of every kind, preserving and rebasing epochs at once, while producers
// write, leaders move and records are deleted. What is on disk after a clean stop is then held against the source's
// files and handed to Kafka's own tools and to a broker.
func TestMirror_EqualsALiveSource(t *testing.T) {
	src := source(t)
	all := kinds("live")
	parts := createKinds(t, src, all)
	early(t, src, tp{"live-compact", 0})
	live := startLive(t, src, all)
	awaitBatches(t, live, 50) // some history before the mirrors start
	preserve := startAgent(t, agentProps(src, t.TempDir(), "preserve", "live-.*"))
	rebase := startAgent(t, agentProps(src, t.TempDir(), "rebase", "live-.*"))
	disturb(t, src, live, parts)
	openTransaction(t, src, tp{"live-txn", 0})
	stopLive(t, src, live)
	for _, a := range []*agent{preserve, rebase} {
		a.awaitCaughtUp(src, parts...)
		a.stop()
	}
	t.Run("Preserve_KeepsEveryByte", func(t *testing.T) {
		checkBatches(t, src, parts, preserve.dir, false)
	})
	t.Run("Rebase_ChangesTheEpochsOnly", func(t *testing.T) {
		checkBatches(t, src, parts, rebase.dir, true)
	})
	t.Run("DumpLog_PrintsWhatItPrintsOfTheSource", func(t *testing.T) {
		checkDumpsEqual(t, src, parts, preserve.dir)
	})
	t.Run("Indexes_PassKafkasChecks", func(t *testing.T) {
		checkIndexSanity(t, src.Dist(), parts, preserve.dir, rebase.dir)
	})
	t.Run("Snapshots_HoldTheSourcesProducers", func(t *testing.T) {
		checkProducers(t, src, parts, preserve.dir)
		checkProducers(t, src, parts, rebase.dir)
	})
	t.Run("Broker_AdoptsAndRebuilds", func(t *testing.T) {
		checkAdoption(t, src, parts, rebase.dir)
	})
	t.Run("Compaction_LeavesTheSameRecords", func(t *testing.T) {
		checkCompaction(t, src, tp{"live-compact", 0}, preserve.dir)
	})
}

// early writes one batch with a producer of its own, whose keys are all written again later: compaction empties the
// batch and keeps it, because it holds the producer's last sequence.
func early(t *testing.T, src *kafka.Cluster, p tp) {
	t.Helper()
	producer, err := src.NewProducer(kafka.ProducerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	records := []*kgo.Record{kgo.KeyStringRecord("key-0", "early"), kgo.KeyStringRecord("key-1", "early")}
	if err := producer.Send(t.Context(), p.topic, p.partition, records...); err != nil {
		t.Fatal(err)
	}
}

// disturb moves leaders back and forth and deletes records while producers write.
func disturb(t *testing.T, src *kafka.Cluster, live *kafka.Live, parts []tp) {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 7))
	for round := range 3 {
		awaitBatches(t, live, 100)
		for _, p := range parts {
			if rng.IntN(2) == 0 {
				moveLeader(t, src, p)
			}
		}
		trimmed := tp{"live-trimmed", 0}
		_, end, err := src.Offsets(t.Context(), trimmed.topic, trimmed.partition, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := src.DeleteRecords(t.Context(), trimmed.topic, 0, end*int64(round+1)/8); err != nil {
			t.Fatal(err)
		}
	}
	awaitBatches(t, live, 100)
}

// moveLeader gives the partition to the other of two brokers.
func moveLeader(t *testing.T, src *kafka.Cluster, p tp) {
	t.Helper()
	s, err := src.Leader(t.Context(), p.topic, p.partition)
	if err != nil {
		t.Fatal(err)
	}
	if err := src.MoveLeader(t.Context(), p.topic, p.partition, 3-s.Leader); err != nil {
		t.Fatal(err)
	}
}

// checkBatches holds a mirror's batches against those of the source's leaders.
func checkBatches(t *testing.T, src *kafka.Cluster, parts []tp, logDir string, rebased bool) {
	t.Helper()
	var total compare.Result
	for _, p := range parts {
		r := compareLogs(t, p, p.leaderDir(t, src), p.dir(logDir), rebased)
		wantWhole(t, src, p, r)
		if r.Batches == 0 && p.topic != "live-empty" {
			t.Errorf("%v: nothing was compared", p)
		}
		total.Batches += r.Batches
		total.Bytes += r.Bytes
		total.Epochs += r.Epochs
		if rebased {
			batches(t, p.dir(logDir), func(b compare.Batch) {
				if b.LeaderEpoch() != 0 {
					t.Fatalf("%v: the batch at %d has leader epoch %d, want 0", p, b.BaseOffset(), b.LeaderEpoch())
				}
			})
		}
	}
	if rebased && total.Epochs == 0 {
		t.Error("no batch of the source has another epoch than 0: leaders did not move")
	}
	t.Logf("%d batches, %d bytes, %d with another epoch", total.Batches, total.Bytes, total.Epochs)
}

// checkDumpsEqual dumps all .log files of source and mirror.
func checkDumpsEqual(t *testing.T, src *kafka.Cluster, parts []tp, logDir string) {
	t.Helper()
	var dirs []string
	for _, p := range parts {
		dirs = append(dirs, p.leaderDir(t, src), p.dir(logDir))
	}
	texts := dumpLogs(t, src.Dist(), dirs)
	lines := 0
	for i, p := range parts {
		a, b := texts[2*i], texts[2*i+1]
		a.stdout = fromSameStart(a.stdout, b.stdout)
		b.stdout = fromSameStart(b.stdout, a.stdout)
		if n, inA, inB, differ := firstLineThatDiffers(a.stdout, b.stdout); differ {
			t.Errorf("%v: line %d of the source's dump is\n%s\nof the mirror's\n%s", p, n, inA, inB)
		}
		if n, inA, inB, differ := firstLineThatDiffers(a.stderr, b.stderr); differ {
			t.Errorf("%v: line %d of the source's report is\n%s\nof the mirror's\n%s", p, n, inA, inB)
		}
		lines += len(a.stdout)
	}
	t.Logf("%d lines equal", lines)
}

// fromSameStart cuts the lines before the other text's first one: deleted segments go at different times.
func fromSameStart(lines, other []string) []string {
	if len(other) == 0 {
		return lines
	}
	if i := slices.Index(lines, other[0]); i > 0 {
		return lines[i:]
	}
	return lines
}

// checkIndexSanity runs kafka-dump-log --index-sanity-check and --verify-index-only over every index.
func checkIndexSanity(t *testing.T, dist kafka.Dist, parts []tp, logDirs ...string) {
	t.Helper()
	var files []string
	for _, p := range parts {
		for _, logDir := range logDirs {
			files = append(files, segmentFiles(t, p.dir(logDir), ".index")...)
			files = append(files, segmentFiles(t, p.dir(logDir), ".timeindex")...)
		}
	}
	dumps, stderr, err := dist.DumpFiles(t.Context(), files, "--index-sanity-check")
	if err != nil {
		t.Fatal(err)
	}
	if stderr != "" {
		t.Errorf("stderr: %s", stderr)
	}
	for _, d := range dumps {
		if d.Text != d.File+" passed sanity check.\n" && d.Text != d.File+" is empty.\n" {
			t.Errorf("%s: %q", filepath.Base(d.File), d.Text)
		}
	}
	t.Logf("%d indexes", len(files))
	_, stderr, err = dist.DumpFiles(t.Context(), files, "--verify-index-only")
	if err != nil {
		t.Fatal(err)
	}
	if stderr != "" {
		t.Errorf("--verify-index-only: %s", stderr)
	}
}
