package kafka

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	minMetadataAge = 100 * time.Millisecond
	askTimeout     = 3 * time.Second
	adminTimeoutMs = 30_000
)

// TopicSpec says what CreateTopic creates.
type TopicSpec struct {
	Name       string
	Partitions int               // 0 means 1; ignored when Assignment is given
	Replicas   int               // 0 means 1; ignored when Assignment is given
	Assignment [][]int32         // broker ids of each partition, preferred leader first
	Configs    map[string]string // topic configuration
}

// PartitionState is one partition as a broker's metadata shows it.
type PartitionState struct {
	Leader, LeaderEpoch int32
	Replicas, ISR       []int32
}

// TopicState is one topic as a broker's metadata shows it.
type TopicState struct {
	ID         [16]byte
	Partitions []PartitionState // by partition number
}

// CreateTopic creates a topic and waits until every running broker knows a leader for each of its partitions.
func (c *Cluster) CreateTopic(ctx context.Context, spec TopicSpec) error {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = spec.Name, int32(max(spec.Partitions, 1)), int16(max(spec.Replicas, 1))
	partitions := int(t.NumPartitions)
	if spec.Assignment != nil {
		t.NumPartitions, t.ReplicationFactor, partitions = -1, -1, len(spec.Assignment)
		for p, replicas := range spec.Assignment {
			a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
			a.Partition, a.Replicas = int32(p), replicas
			t.ReplicaAssignment = append(t.ReplicaAssignment, a)
		}
	}
	for k, v := range spec.Configs {
		cfg := kmsg.NewCreateTopicsRequestTopicConfig()
		cfg.Name, cfg.Value = k, &v
		t.Configs = append(t.Configs, cfg)
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis, req.Topics = adminTimeoutMs, append(req.Topics, t)
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil {
		return fmt.Errorf("create topic %s: %w", spec.Name, err)
	}
	if err := codeError(resp.Topics[0].ErrorCode, resp.Topics[0].ErrorMessage); err != nil {
		return fmt.Errorf("create topic %s: %w", spec.Name, err)
	}
	return c.AwaitLeaders(ctx, spec.Name, partitions)
}

// DeleteTopic deletes a topic and waits until no running broker knows it.
func (c *Cluster) DeleteTopic(ctx context.Context, topic string) error {
	t := kmsg.NewDeleteTopicsRequestTopic()
	t.Topic = &topic
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis, req.TopicNames, req.Topics = adminTimeoutMs, []string{topic}, append(req.Topics, t)
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil {
		return fmt.Errorf("delete topic %s: %w", topic, err)
	}
	if err := codeError(resp.Topics[0].ErrorCode, resp.Topics[0].ErrorMessage); err != nil {
		return fmt.Errorf("delete topic %s: %w", topic, err)
	}
	return c.awaitTopic(ctx, topic, "gone", func(_ TopicState, err error) bool {
		return errors.Is(err, kerr.UnknownTopicOrPartition)
	})
}

// AddPartitions raises a topic's partition count to n and waits for the new leaders.
func (c *Cluster) AddPartitions(ctx context.Context, topic string, n int) error {
	t := kmsg.NewCreatePartitionsRequestTopic()
	t.Topic, t.Count = topic, int32(n)
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.TimeoutMillis, req.Topics = adminTimeoutMs, append(req.Topics, t)
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil {
		return fmt.Errorf("add partitions to %s: %w", topic, err)
	}
	if err := codeError(resp.Topics[0].ErrorCode, resp.Topics[0].ErrorMessage); err != nil {
		return fmt.Errorf("add partitions to %s: %w", topic, err)
	}
	return c.AwaitLeaders(ctx, topic, n)
}

// AlterTopic sets topic configuration keys; the others stay.
func (c *Cluster) AlterTopic(ctx context.Context, topic string, configs map[string]string) error {
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	for k, v := range configs {
		cfg := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		cfg.Name, cfg.Op, cfg.Value = k, kmsg.IncrementalAlterConfigOpSet, &v
		r.Configs = append(r.Configs, cfg)
	}
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Resources = append(req.Resources, r)
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil {
		return fmt.Errorf("alter topic %s: %w", topic, err)
	}
	if err := codeError(resp.Resources[0].ErrorCode, resp.Resources[0].ErrorMessage); err != nil {
		return fmt.Errorf("alter topic %s: %w", topic, err)
	}
	return nil
}

// DeleteRecords moves a partition's log start offset up to before.
func (c *Cluster) DeleteRecords(ctx context.Context, topic string, p int32, before int64) error {
	rp := kmsg.NewDeleteRecordsRequestTopicPartition()
	rp.Partition, rp.Offset = p, before
	t := kmsg.NewDeleteRecordsRequestTopic()
	t.Topic, t.Partitions = topic, append(t.Partitions, rp)
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.TimeoutMillis, req.Topics = adminTimeoutMs, append(req.Topics, t)
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil {
		return fmt.Errorf("delete records of %s-%d: %w", topic, p, err)
	}
	if err := codeError(resp.Topics[0].Partitions[0].ErrorCode, nil); err != nil {
		return fmt.Errorf("delete records of %s-%d: %w", topic, p, err)
	}
	return nil
}

// Topic is the state of a topic as broker id's metadata shows it.
func (c *Cluster) Topic(ctx context.Context, id int32, topic string) (TopicState, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = &topic
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, c.client.Broker(int(id)))
	if err != nil {
		return TopicState{}, err
	}
	if err := codeError(resp.Topics[0].ErrorCode, nil); err != nil {
		return TopicState{}, err
	}
	parts := resp.Topics[0].Partitions
	state := TopicState{ID: resp.Topics[0].TopicID, Partitions: make([]PartitionState, len(parts))}
	for _, p := range parts {
		if int(p.Partition) < len(parts) {
			state.Partitions[p.Partition] = PartitionState{
				Leader: p.Leader, LeaderEpoch: p.LeaderEpoch, Replicas: p.Replicas, ISR: p.ISR,
			}
		}
	}
	return state, nil
}

// AwaitLeaders waits until every running broker shows the topic with n partitions, each with a leader.
func (c *Cluster) AwaitLeaders(ctx context.Context, topic string, n int) error {
	return c.awaitTopic(ctx, topic, "led", func(t TopicState, err error) bool {
		return err == nil && len(t.Partitions) == n &&
			!slices.ContainsFunc(t.Partitions, func(p PartitionState) bool { return p.Leader < 0 })
	})
}

// AwaitPartition waits until every running broker's metadata of the partition fulfils cond, and returns the last
// one's.
func (c *Cluster) AwaitPartition(
	ctx context.Context, topic string, p int32, what string, cond func(PartitionState) bool,
) (PartitionState, error) {
	var last PartitionState
	err := c.awaitTopic(ctx, topic, fmt.Sprintf("%s (partition %d)", what, p), func(t TopicState, err error) bool {
		if err != nil || int(p) >= len(t.Partitions) {
			return false
		}
		last = t.Partitions[p]
		return cond(last)
	})
	return last, err
}

// awaitTopic waits until cond holds for what each running broker's metadata says about the topic.
func (c *Cluster) awaitTopic(ctx context.Context, topic, what string, cond func(TopicState, error) bool) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return poll(ctx, fmt.Sprintf("%s to be %s", topic, what), func() (bool, error) {
		for _, b := range c.brokers {
			if !b.Running() {
				continue
			}
			t, err := c.Topic(ctx, b.ID, topic)
			if !cond(t, err) {
				return false, nil
			}
		}
		return true, nil
	})
}

// AwaitMarkers waits until no transaction is being ended: a producer that committed or aborted has its answer before
// the markers are in the partitions' logs. Open transactions are not waited for.
func (c *Cluster) AwaitMarkers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return poll(ctx, "the markers of ended transactions", func() (bool, error) {
		listed, err := c.admin.ListTransactions(ctx, nil, nil)
		if err != nil {
			return false, nil // a coordinator that moves
		}
		for _, t := range listed {
			if strings.HasPrefix(t.State, "Prepare") {
				return false, nil
			}
		}
		return true, nil
	})
}

// codeError turns a Kafka error code and message into an error; code 0 is nil.
func codeError(code int16, message *string) error {
	err := kerr.ErrorForCode(code)
	if err != nil && message != nil && *message != "" {
		return fmt.Errorf("%w: %s", err, *message)
	}
	return err
}

// brokerIDs asks one broker which brokers it sees.
func brokerIDs(ctx context.Context, addr string) ([]int32, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RequestRetries(0), kgo.DialTimeout(askTimeout))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	resp, err := req.RequestWith(ctx, cl.SeedBrokers()[0])
	if err != nil {
		return nil, err
	}
	ids := make([]int32, len(resp.Brokers))
	for i, b := range resp.Brokers {
		ids[i] = b.NodeID
	}
	return ids, nil
}

// newClusterID is 16 random bytes in Kafka's spelling, never starting with a dash (tools would take it for a flag).
func newClusterID() string {
	for {
		var b [16]byte
		rand.Read(b[:]) // never fails: crypto/rand ends the program itself
		if id := base64.RawURLEncoding.EncodeToString(b[:]); id[0] != '-' {
			return id
		}
	}
}
