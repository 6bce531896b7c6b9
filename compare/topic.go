package compare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fetchBytes is how much a Topic asks for at once. A larger batch still comes whole.
const fetchBytes = 4 << 20

// maxFetches bounds the answers without a batch, or from a broker that no longer leads, that are followed by another
// try.
const maxFetches = 50

// Topic reads the batches of one partition from a cluster, as its leader serves them to a consumer that reads
// uncommitted data.
type Topic struct {
	ctx       context.Context // of the one reading that a Topic is
	client    *kgo.Client
	name      string
	id        [16]byte
	partition int32
	leader    int32
	next      int64  // offset of the next batch to hand out
	end       int64  // where the reading ends, exclusive
	buf       []byte // fetched and not handed out
}

// OpenTopic finds the partition's leader. The reading covers the batches with offsets in span: the first may begin
// before it, as batches are whole. ctx bounds the whole reading; the client stays the caller's.
func OpenTopic(ctx context.Context, client *kgo.Client, topic string, partition int32, span Range) (*Topic, error) {
	t := &Topic{ctx: ctx, client: client, name: topic, partition: partition, next: span.From, end: span.To}
	if err := t.findLeader(); err != nil {
		return nil, err
	}
	return t, nil
}

// Next returns the next batch, valid until the next call, or io.EOF at the end of the reading.
func (t *Topic) Next() (Batch, error) {
	for tries := 0; ; tries++ {
		if t.next >= t.end {
			return nil, io.EOF
		}
		batch, err := t.take()
		if batch != nil || err != nil {
			return batch, err
		}
		if tries == maxFetches {
			return nil, fmt.Errorf("%s-%d: no batch at offset %d in %d fetches", t.name, t.partition, t.next, tries)
		}
		if err := t.fetch(); err != nil {
			return nil, fmt.Errorf("%s-%d: fetch at offset %d: %w", t.name, t.partition, t.next, err)
		}
	}
}

// take cuts the next whole batch off the buffer, nil if it holds none.
func (t *Topic) take() (Batch, error) {
	for len(t.buf) >= overhead {
		size := batchSize(t.buf)
		if size < headerSize {
			return nil, fmt.Errorf("%s-%d: offset %d: %w: %d bytes long", t.name, t.partition, t.next, ErrBadBatch, size)
		}
		if size > int64(len(t.buf)) {
			break
		}
		batch := Batch(t.buf[:size:size])
		t.buf = t.buf[size:]
		if err := check(batch); err != nil {
			return nil, fmt.Errorf("%s-%d: %w", t.name, t.partition, err)
		}
		// A fetch answers with whole batches, so the first may end before the offset that was asked for.
		if batch.LastOffset() < t.next {
			continue
		}
		t.next = batch.LastOffset() + 1
		return batch, nil
	}
	t.buf = nil
	return nil, nil
}

func (t *Topic) findLeader() error {
	req := kmsg.NewPtrMetadataRequest()
	reqTopic := kmsg.NewMetadataRequestTopic()
	reqTopic.Topic = kmsg.StringPtr(t.name)
	req.Topics = append(req.Topics, reqTopic)
	resp, err := req.RequestWith(t.ctx, t.client)
	if err != nil {
		return fmt.Errorf("%s-%d: metadata: %w", t.name, t.partition, err)
	}
	for _, topic := range resp.Topics {
		for _, p := range topic.Partitions {
			if topic.Topic != nil && *topic.Topic == t.name && p.Partition == t.partition && p.Leader >= 0 {
				t.id, t.leader = topic.TopicID, p.Leader
				return nil
			}
		}
	}
	return fmt.Errorf("%s-%d: %w", t.name, t.partition, kerr.LeaderNotAvailable)
}

func (t *Topic) fetch() error {
	part := kmsg.NewFetchRequestTopicPartition()
	part.Partition = t.partition
	part.FetchOffset = t.next
	part.PartitionMaxBytes = fetchBytes
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID = t.name, t.id
	topic.Partitions = append(topic.Partitions, part)
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis = 100
	req.MinBytes = 1
	req.MaxBytes = fetchBytes
	req.SessionEpoch = -1
	req.Topics = append(req.Topics, topic)
	resp, err := t.client.Broker(int(t.leader)).RetriableRequest(t.ctx, req)
	if err != nil {
		return err
	}
	answer := resp.(*kmsg.FetchResponse)
	if answer.ErrorCode != 0 {
		return kerr.ErrorForCode(answer.ErrorCode)
	}
	for _, topic := range answer.Topics {
		for _, p := range topic.Partitions {
			if p.Partition == t.partition {
				return t.keep(p)
			}
		}
	}
	return errors.New("the answer does not name the partition")
}

// keep stores a partition's answer.
func (t *Topic) keep(p kmsg.FetchResponseTopicPartition) error {
	switch err := kerr.ErrorForCode(p.ErrorCode); {
	case errors.Is(err, kerr.NotLeaderForPartition), errors.Is(err, kerr.FencedLeaderEpoch):
		return t.findLeader()
	case err != nil:
		return err
	}
	if p.HighWatermark < t.end {
		if p.HighWatermark <= t.next {
			t.end = t.next
			return nil
		}
		t.end = min(t.end, max(p.HighWatermark, t.next))
	}
	t.buf = p.RecordBatches
	return nil
}

// End asks for everything up to the high watermark when given as a range's To.
const End = math.MaxInt64
