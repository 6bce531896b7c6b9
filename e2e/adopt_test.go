package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"segmirror/bench/kafka"
	"segmirror/compare"
	"segmirror/index"
)

// adopt puts a copy of a partition directory into the running broker's log dir, under a new topic's name if it is
// given, without the files whose names end in one of skip.
func adopt(t *testing.T, b *kafka.Broker, dir string, as tp, skip ...string) {
	t.Helper()
	// Built beside the log dir and renamed into it: a broker must never see half of it, or a foreign folder.
	stage := filepath.Join(b.Dir, "stage-"+as.String())
	copyTree(t, dir, stage, skip...)
	if err := os.Rename(stage, as.dir(b.LogDirs[0])); err != nil {
		t.Fatal(err)
	}
}

// createAdopted creates a topic whose partitions lie prepared in broker 1's log dir.
func createAdopted(t *testing.T, c *kafka.Cluster, topic string, partitions int) {
	t.Helper()
	configs := map[string]string{"retention.ms": "-1", "index.interval.bytes": fmt.Sprint(liveIndexInterval)}
	spec := kafka.TopicSpec{Name: topic, Configs: configs}
	for range partitions {
		spec.Assignment = append(spec.Assignment, []int32{1})
	}
	if err := c.CreateTopic(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
}

// checkAdoption gives a rebased mirror to a running broker twice: as it was closed, and as bare .log files under other
// names. The broker has to serve the first at the source's offsets, and its recovery of the second has to make the
// very indexes that the mirror has.
func checkAdoption(t *testing.T, src *kafka.Cluster, parts []tp, logDir string) {
	t.Helper()
	dst := destination(t)
	b := dst.Broker(1)
	partitions := map[string]int{}
	for _, p := range parts {
		adopt(t, b, p.dir(logDir), p)
		adopt(t, b, p.dir(logDir), bare(p), ".index", ".timeindex", ".txnindex", ".snapshot", "-checkpoint", "digests")
		partitions[p.topic] = max(partitions[p.topic], int(p.partition)+1)
	}
	for topic, n := range partitions {
		createAdopted(t, dst, topic, n)
		createAdopted(t, dst, bare(tp{topic: topic}).topic, n)
	}
	for _, p := range parts {
		checkServed(t, src, dst, p)
	}
	checkCommittedServed(t, src, dst, parts)
	if err := b.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		checkRebuilt(t, p.dir(logDir), b.PartitionDir(bare(p).topic, p.partition))
	}
}

// bare is the topic-partition under which the .log files alone are adopted.
func bare(p tp) tp { return tp{"bare-" + p.topic, p.partition} }

// checkServed reads a partition from both clusters as a consumer does and wants equal batches, epochs aside, and every
// record decoded at its offset.
func checkServed(t *testing.T, src, dst *kafka.Cluster, p tp) {
	t.Helper()
	start, end, err := dst.Offsets(t.Context(), p.topic, p.partition, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, want, err := src.Offsets(t.Context(), p.topic, p.partition, false); err != nil || end != want {
		t.Errorf("%v: the broker's copy ends at %d, the source at %d: %v", p, end, want, err)
	}
	a, err := openTopic(t, src, p)
	if err != nil {
		t.Fatal(err)
	}
	b, err := openTopic(t, dst, p)
	if err != nil {
		t.Fatal(err)
	}
	r, err := compare.Compare(a, b, compare.Options{IgnoreEpoch: true})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Equal() || !r.TailOnlyA.Empty() || !r.TailOnlyB.Empty() || !r.HeadOnlyA.Empty() {
		t.Errorf("%v: served differs from the source: %+v", p, r)
	}
	records, err := dst.Records(t.Context(), p.topic, p.partition, start)
	if err != nil {
		t.Fatal(err)
	}
	var offsets, want []int64
	for _, rec := range records {
		offsets = append(offsets, rec.Offset)
	}
	for o := start; o < end; o++ {
		want = append(want, o)
	}
	if !slices.Equal(offsets, want) {
		t.Errorf("%v: %d records served of the offsets %d to %d", p, len(records), start, end)
	}
}

// checkCommittedServed reads a transactional topic with Kafka's own consumer, committed data only, from both clusters.
func checkCommittedServed(t *testing.T, src, dst *kafka.Cluster, parts []tp) {
	t.Helper()
	i := slices.IndexFunc(parts, func(p tp) bool { return strings.HasSuffix(p.topic, "-txn") })
	var a, b []string
	var wg sync.WaitGroup // each starts a JVM: both at once
	wg.Go(func() { a = consumeCommitted(t, src, parts[i]) })
	wg.Go(func() { b = consumeCommitted(t, dst, parts[i]) })
	wg.Wait()
	if len(a) == 0 {
		t.Errorf("%v: Kafka's consumer got nothing from the source", parts[i])
	}
	if n, inA, inB, differ := firstLineThatDiffers(a, b); differ {
		t.Errorf("%v: line %d of Kafka's consumer is %q from the source, %q from the broker", parts[i], n, inA, inB)
	}
	t.Logf("%v: %d committed records", parts[i], len(a))
}

// consumeCommitted runs Kafka's consumer until it has had as many records as a client of ours finds: a time-out says
// on a busy machine only that the machine is busy.
func consumeCommitted(t *testing.T, c *kafka.Cluster, p tp) []string {
	t.Helper()
	records, err := c.Committed(t.Context(), p.topic, p.partition)
	if err != nil {
		t.Error(err)
		return nil
	}
	out, err := c.Dist().Tool(t.Context(), kafka.ConsoleConsumer, "--bootstrap-server", c.Bootstrap(),
		"--topic", p.topic, "--partition", fmt.Sprint(p.partition), "--offset", "earliest",
		"--isolation-level", "read_committed", "--max-messages", fmt.Sprint(len(records)),
		"--timeout-ms", fmt.Sprint(patience.Milliseconds()),
		"--formatter-property", "print.offset=true", "--formatter-property", "print.timestamp=true",
		"--formatter-property", "print.headers=true", "--formatter-property", "print.key=true")
	if err != nil {
		t.Error(err)
		return nil
	}
	text := strings.TrimSpace(string(out.Stdout))
	if text == "" {
		t.Logf("console consumer: exit %d: %s", out.ExitCode, out.Stderr)
		return nil
	}
	return strings.Split(text, "\n")
}

// checkRebuilt holds a closed mirror's indexes and snapshot against those that a broker made from the same .log files.
// The last stable offsets in the transaction index are left out: Kafka's own depend on how appends were cut.
func checkRebuilt(t *testing.T, mirrorDir, brokerDir string) {
	t.Helper()
	logs := segmentFiles(t, mirrorDir, ".log")
	if got := len(segmentFiles(t, brokerDir, ".log")); got != len(logs) {
		t.Errorf("%s: %d segments, the broker has %d", mirrorDir, len(logs), got)
		return
	}
	for _, log := range logs {
		base := strings.TrimSuffix(filepath.Base(log), ".log")
		for _, ext := range []string{".log", ".index", ".timeindex"} {
			ours, theirs := readFile(t, mirrorDir, base+ext), readFile(t, brokerDir, base+ext)
			if !bytes.Equal(ours, theirs) {
				t.Errorf("%s/%s%s: %d bytes, not the broker's %d", mirrorDir, base, ext, len(ours), len(theirs))
			}
		}
		ours, theirs := readAborted(t, mirrorDir, base), readAborted(t, brokerDir, base)
		if !slices.Equal(ours, theirs) {
			t.Errorf("%s/%s.txnindex: %v, the broker's: %v", mirrorDir, base, ours, theirs)
		}
	}
	offset, ours := newestSnapshot(t, mirrorDir)
	offsetTheirs, theirs := newestSnapshot(t, brokerDir)
	sortProducers(ours)
	sortProducers(theirs)
	if offset != offsetTheirs || !slices.Equal(ours, theirs) {
		t.Errorf("%s: snapshot at %d holds %+v\nthe broker's at %d %+v", mirrorDir, offset, ours, offsetTheirs, theirs)
	}
}

// readFile reads a file of a directory; a missing one is empty.
func readFile(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return data
}

// readAborted reads a transaction index without its last stable offsets.
func readAborted(t *testing.T, dir, base string) []index.AbortedTxn {
	t.Helper()
	const entrySize = 34
	var entries []index.AbortedTxn
	for data := readFile(t, dir, base+".txnindex"); len(data) > 0; data = data[entrySize:] {
		e, err := index.DecodeAbortedTxn(data[:min(len(data), entrySize)])
		if err != nil {
			t.Fatal(err)
		}
		e.LastStableOffset = 0
		entries = append(entries, e)
	}
	return entries
}
