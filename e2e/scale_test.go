package e2e

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"segmirror/bench/kafka"
	"segmirror/segment"
)

// Environment variables of TestScale: whether it runs, how many partitions the served directory has, and for how many
// seconds an agent is watched while nothing happens. scripts/scale.sh sets them.
const (
	envScale           = "SEGMIRROR_SCALE"
	envScalePartitions = "SEGMIRROR_SCALE_PARTITIONS"
	envScaleIdle       = "SEGMIRROR_SCALE_IDLE_SECONDS"
)

// What an agent may take for the partitions of the served directory, ten thousand of them.
const (
	scaleMemoryMiB = 400
	scaleDiskMiB   = 1024
	scaleIdleShare = 0.05 // of a core
)

// scaleSettles is how long after its start an agent is left alone: what was mirrored is flushed ten seconds later.
const scaleSettles = 25 * time.Second

func requireScale(t *testing.T) (partitions int, idle time.Duration) {
	t.Helper()
	if os.Getenv(envScale) == "" {
		t.Skipf("a measurement of minutes: set %s=1, or run scripts/scale.sh", envScale)
	}
	number := func(name string, otherwise int) int {
		n, err := strconv.Atoi(os.Getenv(name))
		if err != nil {
			return otherwise
		}
		return n
	}
	return number(envScalePartitions, 10_000), time.Duration(number(envScaleIdle, 60)) * time.Second
}

// TestScale_MirrorsEveryTopicOfABroker mirrors 2,000 partitions in 200 topics of one broker with one pattern.
func TestScale_MirrorsEveryTopicOfABroker(t *testing.T) {
	_, idle := requireScale(t)
	kafka.Require(t)
	const topics, partitions, active = 200, 10, 20
	src, err := kafka.Start(t.Context(), kafka.Config{Brokers: 1, HeapMB: 768, Props: map[string]string{
		"log.retention.check.interval.ms": "300000", "broker.session.timeout.ms": "30000",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() }) // a killed broker: nothing of it is kept
	began := time.Now()
	createMany(t, src, topics, partitions)
	rows := newTable(t, fmt.Sprintf("%d partitions in %d topics of one Kafka broker", topics*partitions, topics))
	rows.took("the broker created its topics", began)
	props := scaleProps(t, "all-.*", src.Bootstrap())
	a := startScaled(t, props)
	rows.took("all MIRRORING", a.began, a.awaitMirroring(topics*partitions))
	rows.at(a, "just after")
	wait(t, scaleSettles)
	rows.idle(idle, a)
	rows.at(a, "idle")
	live := startTicker(t, src.Bootstrap(), "all-000", active)
	rows.latency("record to consumer of the agent", live, a, 10*time.Second)
	live.stop()
	rows.asks(a)
	rows.restarts(&a, props, topics*partitions)
	a.stop()
}

// TestScale_MirrorsAServedDirectory mirrors the directory of one agent, 10,000 partitions, with another: both stay
// within what is promised while nothing happens.
func TestScale_MirrorsAServedDirectory(t *testing.T) {
	partitions, idle := requireScale(t)
	const active = 20
	source, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(active, "live"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(source.Close)
	rows := newTable(t, fmt.Sprintf("%d partitions of a served directory, %d of them with a live source",
		partitions+active, active))
	dir := t.TempDir()
	began := time.Now()
	fillDirectory(t, dir, partitions)
	rows.took("the directory was written", began)

	first := scaleProps(t, "live", source.ListenAddrs()[0])
	first["log.dirs"] = dir
	served := startScaled(t, first)
	rows.took("the serving agent was ready", served.began, served.awaitMirroring(active))
	second := scaleProps(t, ".*", served.listener)
	second["node.id"], second["mirror.m.topics.exclude"] = "2", "__.*"
	a := startScaled(t, second)
	rows.took("all MIRRORING", a.began, a.awaitMirroring(partitions+active))
	rows.at(a, "just after")
	wait(t, scaleSettles)
	rows.idle(idle, served, a)
	rows.at(served, "serving, idle")
	rows.at(a, "idle")
	live := startTicker(t, source.ListenAddrs()[0], "live", active)
	rows.latency("record to consumer of the first agent", live, served, 5*time.Second)
	rows.latency("record to consumer of the second agent", live, a, 5*time.Second)
	live.stop()
	rows.within(a)
	rows.asks(a)
	rows.restarts(&a, second, partitions+active)
	a.stop()
	served.stop()
}

// createMany creates topics all-000, all-001, ... with one request.
func createMany(t *testing.T, src *kafka.Cluster, topics, partitions int) {
	t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 120_000
	last := ""
	for i := range topics {
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = fmt.Sprintf("all-%03d", i), int32(partitions), 1
		req.Topics = append(req.Topics, topic)
		last = topic.Topic
	}
	resp, err := req.RequestWith(t.Context(), src.Client())
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range resp.Topics {
		if topic.ErrorCode != 0 {
			t.Fatalf("create topic %s: code %d", topic.Topic, topic.ErrorCode)
		}
	}
	if err := src.AwaitLeaders(t.Context(), last, partitions); err != nil {
		t.Fatal(err)
	}
}

// fillDirectory makes a log directory of partitions with one batch each, ten to a topic, as an agent leaves it: one
// partition of each topic is written, the others are its copies.
func fillDirectory(t *testing.T, path string, partitions int) {
	t.Helper()
	id := segment.Identity{ClusterID: "c2NhbGVzY2FsZXNjYWxlcw", NodeID: 1}
	dir, err := segment.OpenLogDir(path, id)
	if err != nil {
		t.Fatal(err)
	}
	records := oneBatch()
	inParallel(t, (partitions+9)/10, func(i int) error { return writePartition(dir, i*10, records) })
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	inParallel(t, partitions, func(i int) error {
		if i%10 == 0 {
			return nil
		}
		from := filepath.Join(path, idlePartition(i/10*10).String())
		return os.CopyFS(filepath.Join(path, idlePartition(i).String()), os.DirFS(from))
	})
	// The high watermarks are not in the partitions' directories.
	if dir, err = segment.OpenLogDir(path, id); err != nil {
		t.Fatal(err)
	}
	inParallel(t, partitions, func(i int) error {
		log, _, err := dir.OpenLog(idlePartition(i), segment.DefaultConfig())
		if err == nil {
			log.UpdateHighWatermark(1)
		}
		return err
	})
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
}

// inParallel calls do for 0 to n-1 on a few goroutines.
func inParallel(t *testing.T, n int, do func(i int) error) {
	t.Helper()
	var next atomic.Int64
	var work sync.WaitGroup
	for range 16 {
		work.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	work.Wait()
}

// idlePartition is the i-th of the directory.
func idlePartition(i int) segment.TopicPartition {
	return segment.TopicPartition{Topic: fmt.Sprintf("idle-%04d", i/10), Partition: int32(i % 10)}
}

// oneBatch is a batch with one record, at offset 0.
func oneBatch() []byte {
	record := kmsg.Record{Value: []byte("idle")}
	record.Length = int32(len(record.AppendTo(nil)) - 1)
	batch := kmsg.RecordBatch{
		Magic: 2, ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: 1,
		FirstTimestamp: 1_700_000_000_000, MaxTimestamp: 1_700_000_000_000, Records: record.AppendTo(nil),
	}
	raw := batch.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[8:], uint32(len(raw)-12))
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	return raw
}

func writePartition(dir *segment.LogDir, i int, records []byte) error {
	log, _, err := dir.OpenLog(idlePartition(i), segment.DefaultConfig())
	if err != nil {
		return err
	}
	topicID := segment.TopicID{1, byte(i / 10 >> 8), byte(i / 10)}
	if err := log.Bind(segment.SourceID{ClusterID: "b3JpZ2lub3JpZ2lub3JpZw", TopicID: topicID}); err != nil {
		return err
	}
	_, err = log.AppendAsFollower(records, -1)
	return err
}

// scaleProps are an agent's properties with nothing but the defaults, and a listener.
func scaleProps(t *testing.T, topics, bootstrap string) map[string]string {
	t.Helper()
	return map[string]string{
		"node.id":                    "1",
		"log.dirs":                   filepath.Join(t.TempDir(), "data"),
		"listeners":                  freeAddr(t),
		"metrics.listener":           freeAddr(t),
		"mirrors":                    mirrorName,
		"mirror.m.bootstrap.servers": bootstrap,
		"mirror.m.topics.include":    topics,
	}
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// ticker writes a record to one partition after another, with the time in it.
type ticker struct {
	cancel context.CancelFunc
	done   chan struct{}
	topics []string
	t      *testing.T
}

// tickInterval is the pause between two records of a ticker, over all its partitions.
const tickInterval = 25 * time.Millisecond

// startTicker writes to n partitions of a topic until stop.
func startTicker(t *testing.T, bootstrap, topic string, n int) *ticker {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	tk := &ticker{cancel: cancel, done: make(chan struct{}), topics: []string{topic}, t: t}
	go func() { // ended and waited for by stop
		defer close(tk.done)
		defer cl.Close()
		tick := time.NewTicker(tickInterval)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			cl.Produce(ctx, &kgo.Record{
				Topic: topic, Partition: int32(i % n), Value: []byte(strconv.FormatInt(time.Now().UnixNano(), 10)),
			}, nil)
		}
	}()
	return tk
}

func (k *ticker) stop() {
	k.cancel()
	<-k.done
}
