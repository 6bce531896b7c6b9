package replicator

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"segmirror/fetchwire"
	"segmirror/segment"
)

// fakeKafka is a source cluster in this process, which we did not write.
type fakeKafka struct {
	*kfake.Cluster
	client *kgo.Client
	admin  *kadm.Client
}

func newFakeKafka(t *testing.T, opts ...kfake.Opt) *fakeKafka {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(2)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MetadataMinAge(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &fakeKafka{Cluster: c, client: client, admin: kadm.NewClient(client)}
}

func (s *fakeKafka) createTopic(t *testing.T, name string, partitions int32, configs ...string) {
	t.Helper()
	values := map[string]*string{}
	for i := 0; i < len(configs); i += 2 {
		values[configs[i]] = &configs[i+1]
	}
	if _, err := s.admin.CreateTopic(t.Context(), partitions, 1, values, name); err != nil {
		t.Fatal(err)
	}
}

// produce writes n records of some hundred bytes to one partition, in several batches.
func (s *fakeKafka) produce(t *testing.T, topic string, partition int32, n int) {
	t.Helper()
	for i := 0; i < n; i += 10 {
		var records []*kgo.Record
		for j := range min(10, n-i) {
			records = append(records, &kgo.Record{
				Topic: topic, Partition: partition, Key: fmt.Appendf(nil, "k%d", i+j), Value: bytes.Repeat([]byte("v"), 300),
			})
		}
		if err := s.client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// batches reads what the source serves from offset on, raw.
func (s *fakeKafka) batches(t *testing.T, topic string, partition int32, from int64) []byte {
	t.Helper()
	details, err := s.admin.ListTopics(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	leader := details[topic].Partitions[partition].Leader
	brokers, err := s.admin.ListBrokers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(brokers, func(b kadm.BrokerDetail) bool { return b.NodeID == leader })
	conn, err := fetchwire.Dial(t.Context(), fetchwire.DialConfig{
		Addr: hostPort(brokers[i].Host, brokers[i].Port), ClientID: "test",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var out []byte
	for offset := from; ; {
		part := fetchPart(t, conn, details[topic], partition, offset)
		next := offset
		for it := segment.NewBatchIterator(part); it.Next(); {
			next = it.Batch().LastOffset() + 1
			out = append(out, it.Batch()...)
		}
		if next == offset {
			return out
		}
		offset = next
	}
}

func fetchPart(t *testing.T, conn *fetchwire.Conn, topic kadm.TopicDetail, partition int32, offset int64) []byte {
	t.Helper()
	stream, err := conn.Fetch(t.Context(), &fetchwire.FetchRequest{
		ReplicaID: -1, ReplicaEpoch: -1, MaxBytes: 1 << 20, SessionEpoch: -1,
		Topics: []fetchwire.FetchTopic{{Topic: topic.Topic, TopicID: topic.ID, Partitions: []fetchwire.FetchPartition{{
			Partition: partition, CurrentLeaderEpoch: -1, FetchOffset: offset, LastFetchedEpoch: -1, LogStartOffset: -1,
			MaxBytes: 1 << 20, HighWatermark: fetchwire.NoHighWatermark,
		}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	for stream.Next() {
		buf := make([]byte, stream.Partition().RecordsSize)
		for n := 0; n < len(buf); {
			m, err := stream.Read(buf[n:])
			if err != nil {
				t.Fatal(err)
			}
			n += m
		}
		out = append(out, buf...)
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// properties returns a mirror "dr" of the source into dir, with short intervals.
func (s *fakeKafka) properties(dir string, more ...string) map[string]string {
	props := map[string]string{
		"node.id": "7", "log.dirs": dir, "mirrors": "dr", "min.free.bytes": "0",
		"mirror.dr.bootstrap.servers":            strings.Join(s.ListenAddrs(), ","),
		"mirror.dr.mirror.topics.include":        ".*",
		"mirror.dr.mirror.fetch.wait.max.ms":     "50",
		"mirror.dr.mirror.fetch.backoff.ms":      "20",
		"mirror.metadata.refresh.interval.ms":    "100",
		"mirror.failed.retry.initial.backoff.ms": "20",
		"mirror.failed.retry.max.backoff.ms":     "200",
		"metrics.listener":                       "127.0.0.1:0",
	}
	for i := 0; i < len(more); i += 2 {
		props[more[i]] = more[i+1]
	}
	return props
}

// runningAgent is an agent that runs until stop.
type runningAgent struct {
	*Agent
	cancel context.CancelFunc
	result chan error
	logs   *lockedBuffer
}

func runAgent(t *testing.T, props map[string]string) *runningAgent {
	t.Helper()
	cfg, err := ParseConfig(props, nil)
	if err != nil {
		t.Fatal(err)
	}
	logs := &lockedBuffer{}
	a, err := New(cfg, slog.New(slog.NewTextHandler(logs, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ta := &runningAgent{Agent: a, cancel: cancel, result: make(chan error, 1), logs: logs}
	go func() { ta.result <- a.Run(ctx) }()
	t.Cleanup(func() {
		ta.stop(t)
		if t.Failed() {
			t.Logf("agent's log:\n%s", logs.String())
		}
	})
	return ta
}

func (a *runningAgent) stop(t *testing.T) {
	t.Helper()
	a.cancel()
	select {
	case err := <-a.result:
		a.result <- nil
		if err != nil {
			t.Errorf("Run: %v", err)
		}
	case <-time.After(patience):
		t.Fatalf("Run did not return; log:\n%s", a.logs.String())
	}
}

func (a *runningAgent) partition(topic string, index int32) (PartitionStatus, bool) {
	for _, m := range a.Status().Mirrors {
		for _, p := range m.Partitions {
			if p.Topic == topic && p.Partition == index {
				return p, true
			}
		}
	}
	return PartitionStatus{}, false
}

func (a *runningAgent) awaitEnd(t *testing.T, topic string, index int32, end int64) {
	t.Helper()
	await(t, patience, fmt.Sprintf("%s-%d ends at %d", topic, index, end), func() bool {
		p, ok := a.partition(topic, index)
		return ok && p.State == StateMirroring && p.EndOffset >= end && p.SourceOffset >= end && p.HighWatermark >= end
	})
}

func (a *runningAgent) awaitState(t *testing.T, topic string, index int32, state State) PartitionStatus {
	t.Helper()
	var p PartitionStatus
	await(t, patience, fmt.Sprintf("%s-%d is %s", topic, index, state), func() bool {
		p, _ = a.partition(topic, index)
		return p.State == state && p.Topic != ""
	})
	return p
}

// mirrored reads the batches of a closed partition directory.
func mirrored(t *testing.T, dir, topic string, partition int32) []byte {
	t.Helper()
	path := filepath.Join(dir, fmt.Sprintf("%s-%d", topic, partition))
	files, err := filepath.Glob(filepath.Join(path, "*.log"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no segment in %s: %v", path, err)
	}
	slices.Sort(files)
	var out []byte
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b...)
	}
	return out
}

func checkSame(t *testing.T, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Fatalf("the mirror's %d bytes are not the source's %d", len(got), len(want))
	}
	if len(want) == 0 {
		t.Fatal("nothing was compared")
	}
}

// lockedBuffer takes log lines from any goroutine.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// appendStateRecords makes one batch of the state log.
func appendStateRecords(baseOffset, nowMs int64, records []StateRecord) []byte {
	kind := stateLogKind()
	return kind.appendBatch(nil, baseOffset, nowMs, records)
}
