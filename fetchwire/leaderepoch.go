package fetchwire

// OffsetForLeaderEpochRequest asks where leader epochs end.
//
// OffsetForLeaderEpochRequest.json, versions 0-4 (0 and 1 for brokers before 2.1).
type OffsetForLeaderEpochRequest struct {
	ReplicaID int32 // v3+; ConsumerReplicaID
	Topics    []OffsetForLeaderTopic
}

// OffsetForLeaderTopic is one topic of the request.
type OffsetForLeaderTopic struct {
	Topic      string
	Partitions []OffsetForLeaderPartition
}

// OffsetForLeaderPartition is one partition of the request.
type OffsetForLeaderPartition struct {
	Partition          int32
	CurrentLeaderEpoch int32 // v2+; -1 = unknown
	LeaderEpoch        int32 // the epoch whose end is asked for
}

// OffsetForLeaderEpochResponse gives the ends.
//
// OffsetForLeaderEpochResponse.json, versions 0-4.
type OffsetForLeaderEpochResponse struct {
	ThrottleMs int32 // v2+
	Topics     []OffsetForLeaderTopicResult
}

// OffsetForLeaderTopicResult is one topic of the response.
type OffsetForLeaderTopicResult struct {
	Topic      string
	Partitions []OffsetForLeaderResult
}

// OffsetForLeaderResult is the answer for one partition: the largest epoch at or below the asked one, and its end.
type OffsetForLeaderResult struct {
	ErrorCode   int16
	Partition   int32
	LeaderEpoch int32 // v1+; -1 = unknown
	EndOffset   int64 // exclusive; -1 = unknown
}

// Key returns the API key.
func (*OffsetForLeaderEpochRequest) Key() int16 { return KeyOffsetForLeaderEpoch }

// AppendTo appends the request's body as version.
func (m *OffsetForLeaderEpochRequest) AppendTo(dst []byte, version int16) []byte {
	compact := flexible(KeyOffsetForLeaderEpoch, version)
	if version >= 3 {
		dst = appendInt32(dst, m.ReplicaID)
	}
	dst = appendEach(dst, m.Topics, compact, func(dst []byte, t *OffsetForLeaderTopic) []byte {
		dst = appendString(dst, t.Topic, compact)
		return appendEach(dst, t.Partitions, compact, func(dst []byte, p *OffsetForLeaderPartition) []byte {
			dst = appendInt32(dst, p.Partition)
			if version >= 2 {
				dst = appendInt32(dst, p.CurrentLeaderEpoch)
			}
			return appendInt32(dst, p.LeaderEpoch)
		})
	})
	return appendNoTags(dst, compact)
}

// DecodeFrom decodes a request's body. Errors: *DecodeError.
func (m *OffsetForLeaderEpochRequest) DecodeFrom(src []byte, version int16) error {
	*m = OffsetForLeaderEpochRequest{ReplicaID: -2} // Kafka's default where the field is missing
	r := newReader(src, KeyOffsetForLeaderEpoch, version)
	if version >= 3 {
		m.ReplicaID = r.int32("replica_id")
	}
	m.Topics = readEach(r, 3, "topics", func(t *OffsetForLeaderTopic) {
		t.Topic = r.str("topic")
		t.Partitions = readEach(r, 8, "partitions", func(p *OffsetForLeaderPartition) {
			p.Partition = r.int32("partition")
			p.CurrentLeaderEpoch = -1
			if version >= 2 {
				p.CurrentLeaderEpoch = r.int32("current_leader_epoch")
			}
			p.LeaderEpoch = r.int32("leader_epoch")
		})
	})
	r.skipTags()
	return r.done()
}

// Key returns the API key.
func (*OffsetForLeaderEpochResponse) Key() int16 { return KeyOffsetForLeaderEpoch }

// AppendTo appends the response's body as version.
func (m *OffsetForLeaderEpochResponse) AppendTo(dst []byte, version int16) []byte {
	compact := flexible(KeyOffsetForLeaderEpoch, version)
	if version >= 2 {
		dst = appendInt32(dst, m.ThrottleMs)
	}
	dst = appendEach(dst, m.Topics, compact, func(dst []byte, t *OffsetForLeaderTopicResult) []byte {
		dst = appendString(dst, t.Topic, compact)
		return appendEach(dst, t.Partitions, compact, func(dst []byte, p *OffsetForLeaderResult) []byte {
			dst = appendInt16(dst, p.ErrorCode)
			dst = appendInt32(dst, p.Partition)
			if version >= 1 {
				dst = appendInt32(dst, p.LeaderEpoch)
			}
			return appendInt64(dst, p.EndOffset)
		})
	})
	return appendNoTags(dst, compact)
}

// DecodeFrom decodes a response's body. Errors: *DecodeError.
func (m *OffsetForLeaderEpochResponse) DecodeFrom(src []byte, version int16) error {
	*m = OffsetForLeaderEpochResponse{}
	r := newReader(src, KeyOffsetForLeaderEpoch, version)
	if version >= 2 {
		m.ThrottleMs = r.int32("throttle_time_ms")
	}
	m.Topics = readEach(r, 3, "topics", func(t *OffsetForLeaderTopicResult) {
		t.Topic = r.str("topic")
		t.Partitions = readEach(r, 14, "partitions", func(p *OffsetForLeaderResult) {
			p.ErrorCode = r.int16("error_code")
			p.Partition = r.int32("partition")
			p.LeaderEpoch = -1
			if version >= 1 {
				p.LeaderEpoch = r.int32("leader_epoch")
			}
			p.EndOffset = r.int64("end_offset")
		})
	})
	r.skipTags()
	return r.done()
}
