package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"segmirror/replicator"
)

// What one idle partition may cost. Whoever raises these makes ten thousand partitions dearer by that much.
const (
	idleHeapBytes = 7 << 10
	idleDiskBytes = 40 << 10 // ten small files of a block each
	idleFiles     = 10
)

// asked counts what an agent asks of a source.
type asked struct {
	fetches, partitions, others atomic.Int64
}

// watch counts the requests of agents from now on.
func (a *asked) watch(s *kfake.Cluster) {
	s.Control(func(req kmsg.Request) (kmsg.Response, error, bool) {
		s.KeepControl()
		fetch, ok := req.(*kmsg.FetchRequest)
		if !ok {
			a.others.Add(1)
			return nil, nil, false
		}
		a.fetches.Add(1)
		for _, topic := range fetch.Topics {
			a.partitions.Add(int64(len(topic.Partitions)))
		}
		return nil, nil, false
	})
}

// TestIdle_PartitionsCostLittle mirrors some hundred partitions with a record each, more than may be open, and has them
// fall idle.
func TestIdle_PartitionsCostLittle(t *testing.T) {
	const topics, perTopic, maxFiles = 30, 10, 700
	const n = topics * perTopic
	s := idleSource(t, topics, perTopic)
	dir := t.TempDir()
	props := map[string]string{
		"node.id": "1", "log.dirs": dir, "metrics.listener": freeAddr(t), "mirrors": mirrorName, "min.free.bytes": "0",
		"mirror.m.bootstrap.servers":              s.ListenAddrs()[0],
		"mirror.m.topics.include":                 ".*",
		"mirror.m.fetch.wait.max.ms":              "50",
		"mirror.idle.partition.close.ms":          "300",
		"mirror.metadata.refresh.interval.ms":     "3600000",
		"log.flush.interval.ms":                   "50",
		"log.flush.scheduler.interval.ms":         "50",
		"log.flush.offset.checkpoint.interval.ms": "100",
	}
	a := startScaled(t, props, "sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$@"`, maxFiles), "sh")
	a.awaitMirroring(n)
	eventually(t, 2*time.Minute, "every partition to be whole, and closed", func() (bool, string) {
		whole, open := a.value("segmirror_partition_end_offset"), a.openBelow(dir)
		return whole == n && len(open) <= 6, fmt.Sprintf("%.0f are, files %d", whole, len(open)) // its own logs stay open
	})

	var seen asked
	seen.watch(s)
	eventually(t, time.Minute, "the source to be asked again and again", func() (bool, string) {
		return seen.fetches.Load() >= 4, fmt.Sprint(seen.fetches.Load())
	})
	if seen.partitions.Load() > 0 || seen.others.Load() > 0 {
		t.Errorf("while nothing happens %d fetches name %d partitions, and %d other requests are made",
			seen.fetches.Load(), seen.partitions.Load(), seen.others.Load())
	}
	a.stop()

	mib, files := a.disk()
	disk := int(mib*(1<<20)) / n
	if disk > idleDiskBytes || files > n*idleFiles {
		t.Errorf("a partition with one record takes %d bytes of disk and %d files", disk, files/n)
	}
	heap := heapOf(t, props) / n
	if heap > idleHeapBytes {
		t.Errorf("an idle partition takes %d bytes of memory", heap)
	}
	t.Logf("an idle partition: %d bytes of heap, %d bytes of disk in %d files", heap, disk, files/n)
}

// idleSource is a source with a record in each partition.
func idleSource(t *testing.T, topics, perTopic int) *kfake.Cluster {
	t.Helper()
	var names []string
	for i := range topics {
		names = append(names, fmt.Sprintf("topic-%02d", i))
	}
	s, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(int32(perTopic), names...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	var records []*kgo.Record
	for _, name := range names {
		for p := range perTopic {
			records = append(records, &kgo.Record{Topic: name, Partition: int32(p), Value: []byte("record")})
		}
	}
	if err := cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	return s
}

// openBelow lists the process's open files under dir.
func (a *scaledAgent) openBelow(dir string) (open []string) {
	fds := fmt.Sprintf("/proc/%d/fd", a.cmd.Process.Pid)
	entries, err := os.ReadDir(fds)
	if err != nil {
		a.t.Fatal(err)
	}
	for _, e := range entries {
		path, err := os.Readlink(filepath.Join(fds, e.Name()))
		if err == nil && strings.HasPrefix(path, dir) {
			open = append(open, path)
		}
	}
	return open
}

// heapOf opens a directory with its mirrors and returns what of the heap they keep.
func heapOf(t *testing.T, props map[string]string) int64 {
	t.Helper()
	cfg, err := replicator.ParseConfig(props, nil)
	if err != nil {
		t.Fatal(err)
	}
	before := heapInUse()
	a, err := replicator.New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	after := heapInUse()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Run(ctx); err != nil { // closes it
		t.Error(err)
	}
	return after - before
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC() // what finalizers let go of
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
