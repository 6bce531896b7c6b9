package replicator

import (
	"context"
	"errors"

	"segmirror/fetchwire"
	"segmirror/segment"
)

// batchFacts is what identifies a batch, its epoch left out.
type batchFacts struct {
	base, last int64
	size       int
	crc        uint32
	found      bool
}

// batchHeaderSize is how much of a batch tells what it is.
const batchHeaderSize = 61

func factsOf(b []byte) batchFacts {
	if len(b) < batchHeaderSize {
		return batchFacts{}
	}
	head := segment.Batch(b)
	return batchFacts{
		base: head.BaseOffset(), last: head.LastOffset(), size: head.Size(), crc: head.CRC(), found: true,
	}
}

// ourBatch is the batch of log that holds offset, or the first above it.
func ourBatch(log *segment.Log, offset int64) (batchFacts, error) {
	slice, err := log.Read(offset, 1, segment.ReadLogEnd)
	if err != nil {
		return batchFacts{}, err
	}
	var facts batchFacts
	err = slice.View(func(b []byte) error {
		facts = factsOf(b)
		return nil
	})
	return facts, errors.Join(err, slice.Release())
}

// peeked is what one fetch outside the session said of one partition.
type peeked struct {
	code  int16
	batch batchFacts
	tail  fetchwire.PartitionTail
}

// theirBatch reads the head of the source's batch at offset. Of an agent it asks the epoch first, without which there
// are no records.
func (f *fetcher) theirBatch(ctx context.Context, p *partition, offset int64) (batchFacts, int16, error) {
	got, err := f.peek(ctx, p, offset, -1)
	if err == nil && f.announces && got.code == fetchwire.CodeNone && got.tail.MirrorLeaderEpoch >= 0 {
		got, err = f.peek(ctx, p, offset, got.tail.MirrorLeaderEpoch)
	}
	return got.batch, got.code, err
}

// peek fetches one batch at offset, outside the session, as one who fetched epoch last; -1 = none.
func (f *fetcher) peek(ctx context.Context, p *partition, offset int64, last int32) (peeked, error) {
	req := &fetchwire.FetchRequest{
		ReplicaID: fetchwire.ConsumerReplicaID, ReplicaEpoch: -1, MaxBytes: 1, SessionEpoch: -1,
		Topics: []fetchwire.FetchTopic{{
			Topic: p.tp.Topic, TopicID: p.identity.Load().TopicID,
			Partitions: []fetchwire.FetchPartition{{
				Partition: p.tp.Partition, CurrentLeaderEpoch: -1, FetchOffset: offset, LastFetchedEpoch: last,
				LogStartOffset: -1, MaxBytes: 1, HighWatermark: fetchwire.NoHighWatermark, MirrorLeaderEpoch: last,
			}},
		}},
	}
	if p.identity.Load().TopicID.IsZero() {
		req.Version = 12
	}
	stream, err := f.conn.Fetch(ctx, req)
	if err != nil {
		return peeked{}, err
	}
	got := peeked{code: stream.Head().ErrorCode}
	for stream.Next() {
		head := stream.Partition()
		got.code = head.ErrorCode
		buf := make([]byte, min(head.RecordsSize, batchHeaderSize))
		n := 0
		for n < len(buf) {
			m, err := stream.Read(buf[n:])
			n += m
			if err != nil {
				break
			}
		}
		got.batch = factsOf(buf[:n])
		if got.tail, err = stream.Finish(); err != nil {
			break
		}
	}
	return got, errors.Join(stream.Err(), stream.Close())
}
