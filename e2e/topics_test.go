package e2e

import (
	"context"
	"fmt"
	"testing"

	"segmirror/bench/kafka"
)

// kind is one kind of source topic and the way it is written.
type kind struct {
	live    kafka.LiveTopic
	configs map[string]string
}

// liveIndexInterval is the topics' index.interval.bytes, less than Kafka's default so that indexes have many entries.
const liveIndexInterval = 1024

// kinds are the topics of a live source, each named prefix-<kind>: every codec, producers without ids, transactions,
// compaction (which does not run before it is told to), LogAppendTime, deleted records, and one that stays empty.
func kinds(prefix string) []kind {
	all := []kind{
		{live: kafka.LiveTopic{Name: "codecs", Partitions: 2, Codecs: kafka.Codecs(), ValueBytes: 6000}},
		{
			live:    kafka.LiveTopic{Name: "plain", Partitions: 1, Plain: true, Codecs: []string{"lz4"}},
			configs: map[string]string{"segment.ms": "2000"},
		},
		{live: kafka.LiveTopic{
			Name: "txn", Partitions: 2, Transactional: true, Codecs: []string{"none", "zstd"}, ValueBytes: 12000,
		}},
		{
			live: kafka.LiveTopic{Name: "compact", Partitions: 1, Keys: 40, Codecs: []string{"none", "gzip"}},
			configs: map[string]string{
				"cleanup.policy": "compact", "min.compaction.lag.ms": "3600000", "min.cleanable.dirty.ratio": "0.01",
			},
		},
		{
			live:    kafka.LiveTopic{Name: "appendtime", Partitions: 1},
			configs: map[string]string{"message.timestamp.type": "LogAppendTime"},
		},
		{live: kafka.LiveTopic{Name: "trimmed", Partitions: 1}},
		{live: kafka.LiveTopic{Name: "empty", Partitions: 1}},
	}
	for i := range all {
		all[i].live.Name = prefix + "-" + all[i].live.Name
	}
	return all
}

// createKinds creates the topics, replicated on both brokers with the partitions' leaders spread over them.
func createKinds(t *testing.T, src *kafka.Cluster, all []kind) []tp {
	t.Helper()
	var parts []tp
	for i, k := range all {
		spec := kafka.TopicSpec{Name: k.live.Name, Configs: map[string]string{
			"segment.bytes": "1048576", "index.interval.bytes": fmt.Sprint(liveIndexInterval), "file.delete.delay.ms": "1000",
		}}
		for key, value := range k.configs {
			spec.Configs[key] = value
		}
		for p := range k.live.Partitions {
			replicas := []int32{1, 2}
			if (i+p)%2 == 1 {
				replicas = []int32{2, 1}
			}
			spec.Assignment = append(spec.Assignment, replicas)
			parts = append(parts, tp{k.live.Name, int32(p)})
		}
		if err := src.CreateTopic(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { deleteKinds(t, src, all) })
	return parts
}

// deleteKinds deletes the topics, so that later tests have the brokers for themselves.
func deleteKinds(t *testing.T, src *kafka.Cluster, all []kind) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience) // the test's own context is done
	defer cancel()
	for _, k := range all {
		if err := src.DeleteTopic(ctx, k.live.Name); err != nil {
			t.Error(err)
		}
	}
}

// startLive starts producers to all topics but the empty one.
func startLive(t *testing.T, src *kafka.Cluster, all []kind) *kafka.Live {
	t.Helper()
	var topics []kafka.LiveTopic
	for _, k := range all {
		if k.live.Name[len(k.live.Name)-5:] != "empty" {
			topics = append(topics, k.live)
		}
	}
	live := src.StartLive(t.Context(), topics...)
	t.Cleanup(func() { live.Stop() })
	return live
}

// stopLive ends the producers and waits until the markers of their transactions are in the logs: what the source holds
// is at rest then.
func stopLive(t *testing.T, src *kafka.Cluster, live *kafka.Live) {
	t.Helper()
	stats := live.Stop()
	if err := src.AwaitMarkers(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("source: %+v", stats)
}

// openTransaction leaves a transaction open in the partition.
func openTransaction(t *testing.T, src *kafka.Cluster, p tp) {
	t.Helper()
	producer, err := src.NewProducer(kafka.ProducerConfig{TransactionalID: "open-" + p.String()})
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	if err := producer.Begin(); err != nil {
		t.Fatal(err)
	}
	if err := producer.Send(t.Context(), p.topic, p.partition, numbered("open", 3)...); err != nil {
		t.Fatal(err)
	}
}

// awaitBatches waits until live producers have written n more batches.
func awaitBatches(t *testing.T, live *kafka.Live, n int64) {
	t.Helper()
	goal := live.Stats().Batches + n
	eventually(t, patience, fmt.Sprintf("%d batches", goal), func() (bool, string) {
		s := live.Stats()
		return s.Batches >= goal, fmt.Sprintf("%+v", s)
	})
}
