package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Leader returns the partition's leader and leader epoch, the newest that any running broker's metadata shows.
func (c *Cluster) Leader(ctx context.Context, topic string, p int32) (PartitionState, error) {
	newest := PartitionState{Leader: -1, LeaderEpoch: -1}
	var last error
	for _, b := range c.brokers {
		if !b.Running() {
			continue
		}
		t, err := c.Topic(ctx, b.ID, topic)
		if err != nil || int(p) >= len(t.Partitions) {
			last = err
			continue
		}
		if s := t.Partitions[p]; s.LeaderEpoch >= newest.LeaderEpoch {
			newest = s
		}
	}
	if newest.LeaderEpoch < 0 {
		return newest, fmt.Errorf("no broker shows %s-%d: %w", topic, p, last)
	}
	return newest, nil
}

// Reassign gives a partition new replicas, preferred leader first, and waits until they are all in sync.
func (c *Cluster) Reassign(ctx context.Context, topic string, p int32, replicas []int32) error {
	var req kadm.AlterPartitionAssignmentsReq
	req.Assign(topic, p, replicas)
	resp, err := c.admin.AlterPartitionAssignments(ctx, req)
	if err != nil {
		return fmt.Errorf("reassign %s-%d: %w", topic, p, err)
	}
	if err := resp[topic][p].Err; err != nil {
		return fmt.Errorf("reassign %s-%d: %w: %s", topic, p, err, resp[topic][p].ErrMessage)
	}
	_, err = c.AwaitPartition(ctx, topic, p, "reassigned", func(s PartitionState) bool {
		return slices.Equal(s.Replicas, replicas) && len(s.ISR) == len(replicas)
	})
	return err
}

// MoveLeader makes broker to, one of the partition's replicas, its leader by a preferred election, and waits until
// every running broker shows it.
func (c *Cluster) MoveLeader(ctx context.Context, topic string, p, to int32) error {
	now, err := c.Leader(ctx, topic, p)
	if err != nil {
		return err
	}
	if now.Leader == to {
		return nil
	}
	others := slices.DeleteFunc(slices.Clone(now.Replicas), func(id int32) bool { return id == to })
	order := append([]int32{to}, others...)
	if !slices.Equal(order, now.Replicas) {
		if err := c.Reassign(ctx, topic, p, order); err != nil {
			return err
		}
	}
	pollCtx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	err = poll(pollCtx, fmt.Sprintf("broker %d to be electable for %s-%d", to, topic, p), func() (bool, error) {
		err := c.elect(pollCtx, kadm.ElectPreferredReplica, topic, p)
		if errors.Is(err, kerr.PreferredLeaderNotAvailable) {
			return false, nil // not in sync at the moment: the machine is busy
		}
		return err == nil, err
	})
	if err != nil {
		return err
	}
	_, err = c.AwaitPartition(ctx, topic, p, fmt.Sprintf("led by %d", to), func(s PartitionState) bool {
		return s.Leader == to
	})
	return err
}

// ElectUnclean makes a live replica the leader although it may lack acknowledged records, and returns the new state.
func (c *Cluster) ElectUnclean(ctx context.Context, topic string, p int32) (PartitionState, error) {
	if err := c.elect(ctx, kadm.ElectLiveReplica, topic, p); err != nil {
		return PartitionState{}, err
	}
	return c.AwaitPartition(ctx, topic, p, "led", func(s PartitionState) bool { return s.Leader > 0 })
}

func (c *Cluster) elect(ctx context.Context, how kadm.ElectLeadersHow, topic string, p int32) error {
	var set kadm.TopicsSet
	set.Add(topic, p)
	resp, err := c.admin.ElectLeaders(ctx, how, set)
	if err != nil {
		return fmt.Errorf("elect leader of %s-%d: %w", topic, p, err)
	}
	if r := resp[topic][p]; r.Err != nil && r.Err != kerr.ElectionNotNeeded {
		return fmt.Errorf("elect leader of %s-%d: %w: %s", topic, p, r.Err, r.ErrMessage)
	}
	return nil
}

// Offsets returns the partition's log start offset and its end: the high watermark, or with committed the last stable
// offset. It asks again while a leader is being elected or does not know its high watermark yet.
func (c *Cluster) Offsets(ctx context.Context, topic string, p int32, committed bool) (start, end int64, err error) {
	first, last := offsetAsk{timestamp: -2, replica: -1}, offsetAsk{timestamp: -1, replica: -1}
	if committed {
		first.isolation, last.isolation = 1, 1
	}
	if start, err = c.offset(ctx, topic, p, first); err != nil {
		return 0, 0, err
	}
	if end, err = c.offset(ctx, topic, p, last); err != nil {
		return 0, 0, err
	}
	return start, end, nil
}

// Ends returns the partition's high watermark and then its log end offset at the leader. Where they are equal every
// replica in sync holds all that was there when the call began; else the leader holds records that no consumer is
// given yet: not acknowledged, or not known to be so after the leader moved.
func (c *Cluster) Ends(ctx context.Context, topic string, p int32) (highWatermark, logEnd int64, err error) {
	if highWatermark, err = c.offset(ctx, topic, p, offsetAsk{timestamp: -1, replica: -1}); err != nil {
		return 0, 0, err
	}
	// A leader answers a replica, of whatever id, with its log's end.
	if logEnd, err = c.offset(ctx, topic, p, offsetAsk{timestamp: -1, replica: 0}); err != nil {
		return 0, 0, err
	}
	return highWatermark, logEnd, nil
}

// offsetAsk is one question of a ListOffsets request.
type offsetAsk struct {
	timestamp int64 // -2 the log start, -1 the end
	replica   int32 // -1 for a consumer
	isolation int8  // 1 for the last stable offset
}

// offset asks the leader for one offset, again while a leader is being elected.
func (c *Cluster) offset(ctx context.Context, topic string, p int32, ask offsetAsk) (offset int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	err = poll(ctx, fmt.Sprintf("an offset of %s-%d", topic, p), func() (bool, error) {
		rp := kmsg.NewListOffsetsRequestTopicPartition()
		rp.Partition, rp.Timestamp = p, ask.timestamp
		t := kmsg.NewListOffsetsRequestTopic()
		t.Topic, t.Partitions = topic, append(t.Partitions, rp)
		req := kmsg.NewPtrListOffsetsRequest()
		req.ReplicaID, req.IsolationLevel, req.Topics = ask.replica, ask.isolation, append(req.Topics, t)
		resp, err := req.RequestWith(ctx, c.client)
		if err == nil {
			part := resp.Topics[0].Partitions[0]
			offset, err = part.Offset, codeError(part.ErrorCode, nil)
		}
		var refused *kerr.Error // any other error is a connection's, which a broker that goes away breaks
		if errors.As(err, &refused) && !refused.Retriable {
			return false, err
		}
		return err == nil, nil
	})
	return offset, err
}

// Deny takes the operation on a topic away from everyone, all others staying allowed: with an authorizer that allows
// what has no ACL, the first ACL of a topic would otherwise forbid the rest.
func (c *Cluster) Deny(ctx context.Context, topic string, op kadm.ACLOperation) error {
	everyone := "User:*"
	allow := kadm.NewACLs().Topics(topic).Allow(everyone).AllowHosts("*").Operations(kadm.OpAll)
	deny := kadm.NewACLs().Topics(topic).Deny(everyone).DenyHosts("*").Operations(op)
	for _, acl := range []*kadm.ACLBuilder{allow, deny} {
		res, err := c.admin.CreateACLs(ctx, acl.ResourcePatternType(kadm.ACLPatternLiteral))
		if err != nil {
			return fmt.Errorf("create ACLs of %s: %w", topic, err)
		}
		for _, r := range res {
			if r.Err != nil {
				return fmt.Errorf("create ACL of %s: %w: %s", topic, r.Err, r.ErrMessage)
			}
		}
	}
	return nil
}

// Grant undoes Deny.
func (c *Cluster) Grant(ctx context.Context, topic string, op kadm.ACLOperation) error {
	deny := kadm.NewACLs().Topics(topic).Deny("User:*").DenyHosts("*").Operations(op)
	res, err := c.admin.DeleteACLs(ctx, deny.ResourcePatternType(kadm.ACLPatternLiteral))
	if err != nil {
		return fmt.Errorf("delete ACLs of %s: %w", topic, err)
	}
	for _, r := range res {
		if r.Err != nil {
			return fmt.Errorf("delete ACL of %s: %w: %s", topic, r.Err, r.ErrMessage)
		}
	}
	return nil
}

// Records reads a partition as a consumer, from offset from up to the high watermark found at the call.
func (c *Cluster) Records(
	ctx context.Context, topic string, p int32, from int64, opts ...kgo.Opt,
) ([]*kgo.Record, error) {
	_, end, err := c.Offsets(ctx, topic, p, false)
	if err != nil {
		return nil, err
	}
	return c.consume(ctx, topic, p, [2]int64{from, end}, opts...)
}

// Committed reads what a consumer of committed data gets of a partition, up to the last stable offset found at the
// call, without markers. It reads all and looks up how each transaction ends, which may be behind the last stable
// offset: a client that reads committed data only does not say how far it is while it leaves out what was aborted.
func (c *Cluster) Committed(ctx context.Context, topic string, p int32) ([]*kgo.Record, error) {
	start, stable, err := c.Offsets(ctx, topic, p, true)
	if err != nil {
		return nil, err
	}
	records, err := c.Records(ctx, topic, p, start)
	return committed(records, stable), err
}

// committed returns the records before the last stable offset that are in no transaction, or in one that is committed
// further on. Markers are left out.
func committed(records []*kgo.Record, stable int64) []*kgo.Record {
	var out []*kgo.Record
	commits := map[int64]bool{} // by producer id, what the next marker does
	for _, r := range slices.Backward(records) {
		if r.Attrs.IsControl() {
			var key kmsg.ControlRecordKey
			commits[r.ProducerID] = key.ReadFrom(r.Key) == nil && key.Type == kmsg.ControlRecordKeyTypeCommit
		} else if r.Offset < stable && (!r.Attrs.IsTransactional() || commits[r.ProducerID]) {
			out = append(out, r)
		}
	}
	slices.Reverse(out)
	return out
}

// consume reads the offsets [span[0], span[1]), whose last holds a record or a marker.
func (c *Cluster) consume(
	ctx context.Context, topic string, p int32, span [2]int64, opts ...kgo.Opt,
) ([]*kgo.Record, error) {
	opts = append([]kgo.Opt{
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {p: kgo.NewOffset().At(span[0])}}),
		kgo.KeepControlRecords(), kgo.FetchMaxWait(askTimeout / 10),
	}, opts...)
	cl, err := c.NewClient(opts...)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	var got []*kgo.Record
	for next := span[0]; next < span[1]; {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return got, fmt.Errorf("consume %s-%d at %d: %w", topic, p, next, err)
		}
		for _, r := range fetches.Records() {
			got, next = append(got, r), r.Offset+1
		}
	}
	return got, nil
}
