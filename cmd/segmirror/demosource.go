package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// demoTopic is a topic of the embedded cluster.
type demoTopic struct {
	name       string
	partitions int32
}

// The demo's topics: one with every codec, one with transactions, one with odd records, one that stays empty.
const (
	topicClicks   = "clicks"
	topicPayments = "payments"
	topicAudit    = "audit"
	topicQuiet    = "quiet"
)

var demoTopics = []demoTopic{{topicClicks, 4}, {topicPayments, 2}, {topicAudit, 1}, {topicQuiet, 1}}

// demoBrokers is the number of the embedded cluster's brokers; its partitions spread over them.
const demoBrokers = 3

// demoSegmentBytes makes the mirror roll a few times even in a short demo.
const demoSegmentBytes = "16777216"

// demoSource is the embedded Kafka cluster, in memory and on loopback ports.
type demoSource struct {
	cluster *kfake.Cluster
	client  *kgo.Client
	admin   *kadm.Client
}

func startDemoSource(ctx context.Context) (*demoSource, error) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(demoBrokers), kfake.ClusterID("segmirror-demo-source"))
	if err != nil {
		return nil, fmt.Errorf("embedded cluster: %w", err)
	}
	source := &demoSource{cluster: cluster}
	source.client, err = kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		cluster.Close()
		return nil, err
	}
	source.admin = kadm.NewClient(source.client)
	segmentBytes := demoSegmentBytes
	configs := map[string]*string{"segment.bytes": &segmentBytes}
	for _, topic := range demoTopics {
		if _, err := source.admin.CreateTopic(ctx, topic.partitions, 1, configs, topic.name); err != nil {
			source.Close()
			return nil, fmt.Errorf("embedded cluster: create topic %s: %w", topic.name, err)
		}
	}
	return source, nil
}

// Close stops the cluster; what it held is gone.
func (s *demoSource) Close() {
	s.client.Close()
	s.cluster.Close()
}

func (s *demoSource) bootstrap() string { return strings.Join(s.cluster.ListenAddrs(), ",") }

// demoEnds are a partition's offsets at the source.
type demoEnds struct {
	topic     string
	partition int32
	start     int64
	end       int64 // high watermark, exclusive
	stable    int64 // last stable offset: below it no transaction is open
}

func (e demoEnds) String() string { return fmt.Sprintf("%s-%d", e.topic, e.partition) }

// ends asks the cluster for the offsets of every partition, sorted by topic and partition.
func (s *demoSource) ends(ctx context.Context) ([]demoEnds, error) {
	var names []string
	for _, topic := range demoTopics {
		names = append(names, topic.name)
	}
	starts, err := s.admin.ListStartOffsets(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("embedded cluster: %w", err)
	}
	ends, err := s.admin.ListEndOffsets(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("embedded cluster: %w", err)
	}
	stable, err := s.admin.ListCommittedOffsets(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("embedded cluster: %w", err)
	}
	var all []demoEnds
	ends.Each(func(end kadm.ListedOffset) {
		start, _ := starts.Lookup(end.Topic, end.Partition)
		lso, _ := stable.Lookup(end.Topic, end.Partition)
		all = append(all, demoEnds{end.Topic, end.Partition, start.Offset, end.Offset, lso.Offset})
	})
	slices.SortFunc(all, func(a, b demoEnds) int {
		if order := strings.Compare(a.topic, b.topic); order != 0 {
			return order
		}
		return int(a.partition - b.partition)
	})
	return all, nil
}
