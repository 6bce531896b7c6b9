package replicator

import (
	"errors"
	"math"

	"segmirror/fetchwire"
	"segmirror/segment"
)

// Timestamps with a meaning of their own that only newer versions of ListOffsets have. Kafka: ListOffsetsRequest.
const (
	timestampEarliestLocal   int64 = -4
	timestampLatestTiered    int64 = -5
	timestampEarliestPending int64 = -6
)

// listOffsets answers from the log, up to what the client's isolation may see.
func (c *client) listOffsets(req *fetchwire.ListOffsetsRequest) *fetchwire.ListOffsetsResponse {
	resp := &fetchwire.ListOffsetsResponse{}
	for _, t := range req.Topics {
		out := fetchwire.ListOffsetsTopicResult{Name: t.Name}
		for _, p := range t.Partitions {
			result := fetchwire.ListOffsetsResult{Index: p.Index, Timestamp: -1, Offset: -1, LeaderEpoch: -1}
			log, code := c.log(t.Name, p.Index)
			if log != nil && code == fetchwire.CodeNone && !c.mirrors() {
				code = c.catalog().fenced(log, p.CurrentLeaderEpoch)
			}
			if code == fetchwire.CodeNone {
				code = c.offsetFor(log, p.Timestamp, isolation(req.IsolationLevel), &result)
			}
			result.ErrorCode = code
			out.Partitions = append(out.Partitions, result)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

// isolation is the reader's isolation for Kafka's number of it.
func isolation(level int8) segment.Isolation {
	if level == 1 {
		return segment.ReadCommitted
	}
	return segment.ReadHighWatermark
}

// visibleEnd is the first offset a reader may not see.
func visibleEnd(log *segment.Log, iso segment.Isolation) int64 {
	end := min(log.HighWatermark(), log.LogEndOffset())
	if iso == segment.ReadCommitted {
		end = min(end, log.LastStableOffset())
	}
	return end
}

// offsetFor finds the offset for a timestamp and returns a code.
func (c *client) offsetFor(
	log *segment.Log, timestampMs int64, iso segment.Isolation, out *fetchwire.ListOffsetsResult,
) int16 {
	end := visibleEnd(log, iso)
	found := func(offset, ms int64) int16 {
		out.Offset, out.Timestamp = offset, ms
		if out.LeaderEpoch = epochAt(log.EpochEntries(), offset); out.LeaderEpoch < 0 {
			out.LeaderEpoch = c.catalog().leaderEpoch(log)
		}
		return fetchwire.CodeNone
	}
	switch timestampMs {
	case fetchwire.TimestampLatest:
		return found(end, -1)
	case fetchwire.TimestampEarliest, timestampEarliestLocal:
		return found(log.LogStartOffset(), -1)
	case timestampLatestTiered, timestampEarliestPending:
		return fetchwire.CodeNone // there is no other tier
	case fetchwire.TimestampMax:
		newest, ok, err := newestTimestamp(log)
		if err != nil {
			return fetchwire.CodeKafkaStorageError
		}
		if !ok {
			return fetchwire.CodeNone
		}
		timestampMs = newest
	}
	if timestampMs < 0 {
		return fetchwire.CodeInvalidRequest
	}
	offset, ms, ok, err := recordAt(log, timestampMs)
	if err != nil {
		return fetchwire.CodeKafkaStorageError
	}
	if !ok || offset >= end {
		return fetchwire.CodeNone
	}
	return found(offset, ms)
}

// newestTimestamp finds the largest timestamp of all batches, by bisection over the time indexes.
func newestTimestamp(log *segment.Log) (int64, bool, error) {
	low, high, some := int64(0), int64(math.MaxInt64), false // the answer is in [low, high)
	for low < high {
		mid := low + (high-low)/2
		_, newest, ok, err := log.OffsetForTimestamp(mid)
		if err != nil {
			return 0, false, err
		}
		if !ok {
			high = mid
			continue
		}
		some = true
		if low = max(newest, mid); low == mid {
			low++
		}
	}
	return low - 1, some, nil
}

// recordAt finds the first record at or after timestampMs in the first batch that has one.
func recordAt(log *segment.Log, timestampMs int64) (offset, ms int64, ok bool, err error) {
	base, _, ok, err := log.OffsetForTimestamp(timestampMs)
	if err != nil || !ok {
		return 0, 0, false, err
	}
	slice, err := log.Read(base, 1, segment.ReadLogEnd)
	if err != nil {
		return 0, 0, false, err
	}
	ok = false
	err = slice.View(func(b []byte) error {
		offset, ms, ok, err = recordIn(b, timestampMs, log.LogStartOffset())
		return err
	})
	return offset, ms, ok, errors.Join(err, slice.Release())
}

// recordIn finds the first record at or after timestampMs, and at or above from, in the batches of b.
func recordIn(b []byte, timestampMs, from int64) (offset, ms int64, ok bool, err error) {
	decompressor := segment.NewDecompressor(0)
	defer decompressor.Close()
	batches := segment.NewBatchIterator(b)
	for batches.Next() {
		batch := batches.Batch()
		plain, err := decompressor.Decompress(batch.Codec(), batch.Magic(), batch.Records())
		if err != nil {
			return 0, 0, false, err
		}
		records := segment.NewRecordReader(batch, plain)
		for {
			r, more := records.Next()
			if !more {
				break
			}
			if r.TimestampMs >= timestampMs && r.Offset >= from {
				return r.Offset, r.TimestampMs, true, nil
			}
		}
		if err := records.Err(); err != nil {
			return 0, 0, false, err
		}
	}
	return 0, 0, false, batches.Err()
}
