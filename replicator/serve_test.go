package replicator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"segmirror/fetchwire"
)

// serving is an agent that mirrors a fake Kafka and serves what it holds.
func serving(t *testing.T, s *fakeKafka) *runningAgent {
	t.Helper()
	return runAgent(t, s.properties(t.TempDir(), "listeners", "PLAINTEXT://127.0.0.1:0"))
}

// caughtUp waits until the partitions hold what the source has, and serve it.
func caughtUp(t *testing.T, a *runningAgent, topic string, partitions int32) {
	t.Helper()
	for index := range partitions {
		await(t, patience, fmt.Sprintf("%s-%d is caught up", topic, index), func() bool {
			p, ok := a.partition(topic, index)
			return ok && p.State == StateMirroring && p.SourceOffset >= 0 && p.EndOffset == p.SourceOffset &&
				p.HighWatermark == p.SourceOffset
		})
	}
}

// consumer reads the given partitions from the agent, from offset 0 on.
func consumer(t *testing.T, a *runningAgent, topic string, partitions int32, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	assigned := map[int32]kgo.Offset{}
	for p := range partitions {
		assigned[p] = kgo.NewOffset().At(0)
	}
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(a.ListenerAddrs()...), kgo.FetchMaxWait(200 * time.Millisecond),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: assigned}),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// consume polls until n records came, and returns their keys by partition.
func consume(t *testing.T, client *kgo.Client, n int) map[int32][]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	keys, got := map[int32][]string{}, 0
	for got < n {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("after %d of %d records: %v", got, n, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if int64(len(keys[r.Partition])) > r.Offset {
				t.Errorf("partition %d: offset %d after %d records", r.Partition, r.Offset, len(keys[r.Partition]))
			}
			keys[r.Partition] = append(keys[r.Partition], string(r.Key))
			got++
		})
	}
	return keys
}

func TestServing_AConsumerReadsWhileItIsMirrored(t *testing.T) {
	s := newFakeKafka(t)
	s.createTopic(t, "orders", 3)
	s.produce(t, "orders", 0, 50)
	a := serving(t, s)
	caughtUp(t, a, "orders", 3)
	client := consumer(t, a, "orders", 3)
	first := consume(t, client, 50)
	for i, key := range first[0] {
		if key != fmt.Sprintf("k%d", i) {
			t.Fatalf("record %d has key %s", i, key)
		}
	}
	s.produce(t, "orders", 1, 30)
	s.produce(t, "orders", 2, 40)
	more := consume(t, client, 70)
	if len(more[1]) != 30 || len(more[2]) != 40 || len(more[0]) != 0 {
		t.Errorf("later records: %d, %d and %d", len(more[0]), len(more[1]), len(more[2]))
	}
}

func TestServing_ReadCommittedSkipsWhatWasAborted(t *testing.T) {
	s := newFakeKafka(t)
	s.createTopic(t, "txn", 1)
	producer, err := kgo.NewClient(kgo.SeedBrokers(s.ListenAddrs()...), kgo.TransactionalID("x"),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(producer.Close)
	transaction := func(key string, n int, commit kgo.TransactionEndTry) {
		if err := producer.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		for range n {
			if err := producer.ProduceSync(t.Context(), &kgo.Record{
				Topic: "txn", Key: []byte(key), Value: []byte("v"),
			}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		if err := producer.EndTransaction(t.Context(), commit); err != nil {
			t.Fatal(err)
		}
	}
	transaction("committed", 3, kgo.TryCommit)
	transaction("aborted", 4, kgo.TryAbort)
	transaction("committed", 2, kgo.TryCommit)
	a := serving(t, s)
	caughtUp(t, a, "txn", 1)
	count := func(keys map[int32][]string) (out map[string]int) {
		out = map[string]int{}
		for _, key := range keys[0] {
			out[key]++
		}
		return out
	}
	committed := count(consume(t, consumer(t, a, "txn", 1, kgo.FetchIsolationLevel(kgo.ReadCommitted())), 5))
	if committed["committed"] != 5 || len(committed) != 1 {
		t.Errorf("read committed: %v", committed)
	}
	all := count(consume(t, consumer(t, a, "txn", 1), 9))
	if all["committed"] != 5 || all["aborted"] != 4 {
		t.Errorf("read uncommitted: %v", all)
	}
}

func TestServing_RefusesWritesInWords(t *testing.T) {
	s := newFakeKafka(t)
	s.createTopic(t, "orders", 1)
	s.produce(t, "orders", 0, 10)
	a := serving(t, s)
	caughtUp(t, a, "orders", 1)
	producer, err := kgo.NewClient(kgo.SeedBrokers(a.ListenerAddrs()...), kgo.RecordRetries(3))
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err = producer.ProduceSync(ctx, &kgo.Record{Topic: "orders", Value: []byte("v")}).FirstErr()
	if !errors.Is(err, kerr.PolicyViolation) {
		t.Errorf("an idempotent producer hears %v", err)
	}
	conn, err := fetchwire.Dial(t.Context(), fetchwire.DialConfig{Addr: a.ListenerAddrs()[0], ClientID: "writer"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var resp fetchwire.ProduceResponse
	req := &fetchwire.ProduceRequest{Acks: 1, Topics: []fetchwire.ProduceTopic{
		{Topic: "orders", Partitions: []fetchwire.ProducePartition{{Partition: 0, Records: []byte("x")}}},
	}}
	if err := conn.Call(t.Context(), req, &resp); err != nil {
		t.Fatal(err)
	}
	part := resp.Topics[0].Partitions[0]
	if part.ErrorCode != fetchwire.CodePolicyViolation || !strings.Contains(*part.ErrorMessage, "read-only") {
		t.Errorf("%+v", part)
	}
	if p, _ := a.partition("orders", 0); p.EndOffset != 10 {
		t.Errorf("the log ends at %d", p.EndOffset)
	}
}

func TestServing_AnswersAdminClients(t *testing.T) {
	s := newFakeKafka(t)
	s.createTopic(t, "orders", 2)
	s.produce(t, "orders", 0, 50)
	a := serving(t, s)
	caughtUp(t, a, "orders", 2)
	client, err := kgo.NewClient(kgo.SeedBrokers(a.ListenerAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	topics, err := admin.ListTopics(t.Context())
	if err != nil || len(topics) != 1 || len(topics["orders"].Partitions) != 2 {
		t.Fatalf("%+v, %v", topics, err)
	}
	source, err := s.admin.ListTopics(t.Context(), "orders")
	if err != nil || topics["orders"].ID != source["orders"].ID {
		t.Errorf("topic id %v, the source's is %v, %v", topics["orders"].ID, source["orders"].ID, err)
	}
	ends, err := admin.ListEndOffsets(t.Context(), "orders")
	if end, _ := ends.Lookup("orders", 0); err != nil || end.Offset != 50 {
		t.Errorf("end %+v, %v", end, err)
	}
	for _, after := range []bool{false, true} {
		theirs, err1 := s.admin.ListOffsetsAfterMilli(t.Context(), at(after), "orders")
		ours, err2 := admin.ListOffsetsAfterMilli(t.Context(), at(after), "orders")
		want, _ := theirs.Lookup("orders", 0)
		got, _ := ours.Lookup("orders", 0)
		if err1 != nil || err2 != nil || got.Offset != want.Offset || got.Timestamp != want.Timestamp {
			t.Errorf("by timestamp: %+v, the source says %+v, %v %v", got, want, err1, err2)
		}
	}
	configs, err := admin.DescribeTopicConfigs(t.Context(), "orders")
	if err != nil || len(configs) != 1 || len(configs[0].Configs) == 0 {
		t.Errorf("%+v, %v", configs, err)
	}
	coordinators := admin.FindGroupCoordinators(t.Context(), "g")
	if err := coordinators["g"].Err; !errors.Is(err, kerr.InvalidRequest) {
		t.Errorf("a group's coordinator: %v", err)
	}
}

// at is the start of time, or far in the future.
func at(after bool) int64 {
	if after {
		return time.Now().Add(24 * time.Hour).UnixMilli()
	}
	return 0
}
