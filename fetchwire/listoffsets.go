package fetchwire

// Timestamps with a meaning of their own in a ListOffsetsRequest. Kafka: ListOffsetsRequest.
const (
	TimestampLatest   int64 = -1 // the high watermark for a consumer
	TimestampEarliest int64 = -2 // the log start offset
	TimestampMax      int64 = -3 // the record with the highest timestamp, v7+
)

// ListOffsetsRequest asks for offsets by timestamp.
//
// ListOffsetsRequest.json, versions 1-11.
type ListOffsetsRequest struct {
	ReplicaID      int32 // ConsumerReplicaID
	IsolationLevel int8  // v2+
	Topics         []ListOffsetsTopic
	TimeoutMs      int32 // v10+
}

// ListOffsetsTopic is one topic of a ListOffsetsRequest.
type ListOffsetsTopic struct {
	Name       string
	Partitions []ListOffsetsPartition
}

// ListOffsetsPartition is one partition of a ListOffsetsRequest.
type ListOffsetsPartition struct {
	Index              int32
	CurrentLeaderEpoch int32 // v4+; -1 = unknown
	Timestamp          int64 // ms, or one of the constants
}

// ListOffsetsResponse gives the offsets.
//
// ListOffsetsResponse.json, versions 1-11.
type ListOffsetsResponse struct {
	ThrottleMs int32 // v2+
	Topics     []ListOffsetsTopicResult
}

// ListOffsetsTopicResult is one topic of a ListOffsetsResponse.
type ListOffsetsTopicResult struct {
	Name       string
	Partitions []ListOffsetsResult
}

// ListOffsetsResult is the answer for one partition.
type ListOffsetsResult struct {
	Index       int32
	ErrorCode   int16
	Timestamp   int64 // -1 = none
	Offset      int64 // -1 = no such record
	LeaderEpoch int32 // v4+; -1 = unknown
}

// Key returns the API key.
func (*ListOffsetsRequest) Key() int16 { return KeyListOffsets }

// AppendTo appends the request's body as version.
func (m *ListOffsetsRequest) AppendTo(dst []byte, version int16) []byte {
	compact := flexible(KeyListOffsets, version)
	dst = appendInt32(dst, m.ReplicaID)
	if version >= 2 {
		dst = appendInt8(dst, m.IsolationLevel)
	}
	dst = appendEach(dst, m.Topics, compact, func(dst []byte, t *ListOffsetsTopic) []byte {
		dst = appendString(dst, t.Name, compact)
		return appendEach(dst, t.Partitions, compact, func(dst []byte, p *ListOffsetsPartition) []byte {
			dst = appendInt32(dst, p.Index)
			if version >= 4 {
				dst = appendInt32(dst, p.CurrentLeaderEpoch)
			}
			return appendInt64(dst, p.Timestamp)
		})
	})
	if version >= 10 {
		dst = appendInt32(dst, m.TimeoutMs)
	}
	return appendNoTags(dst, compact)
}

// DecodeFrom decodes a request's body. Errors: *DecodeError.
func (m *ListOffsetsRequest) DecodeFrom(src []byte, version int16) error {
	*m = ListOffsetsRequest{}
	r := newReader(src, KeyListOffsets, version)
	m.ReplicaID = r.int32("replica_id")
	if version >= 2 {
		m.IsolationLevel = r.int8("isolation_level")
	}
	m.Topics = readEach(r, 3, "topics", func(t *ListOffsetsTopic) {
		t.Name = r.str("name")
		t.Partitions = readEach(r, 12, "partitions", func(p *ListOffsetsPartition) {
			p.Index = r.int32("partition_index")
			p.CurrentLeaderEpoch = -1
			if version >= 4 {
				p.CurrentLeaderEpoch = r.int32("current_leader_epoch")
			}
			p.Timestamp = r.int64("timestamp")
		})
	})
	if version >= 10 {
		m.TimeoutMs = r.int32("timeout_ms")
	}
	r.skipTags()
	return r.done()
}

// Key returns the API key.
func (*ListOffsetsResponse) Key() int16 { return KeyListOffsets }

// AppendTo appends the response's body as version.
func (m *ListOffsetsResponse) AppendTo(dst []byte, version int16) []byte {
	compact := flexible(KeyListOffsets, version)
	if version >= 2 {
		dst = appendInt32(dst, m.ThrottleMs)
	}
	dst = appendEach(dst, m.Topics, compact, func(dst []byte, t *ListOffsetsTopicResult) []byte {
		dst = appendString(dst, t.Name, compact)
		return appendEach(dst, t.Partitions, compact, func(dst []byte, p *ListOffsetsResult) []byte {
			dst = appendInt32(dst, p.Index)
			dst = appendInt16(dst, p.ErrorCode)
			dst = appendInt64(dst, p.Timestamp)
			dst = appendInt64(dst, p.Offset)
			if version >= 4 {
				dst = appendInt32(dst, p.LeaderEpoch)
			}
			return dst
		})
	})
	return appendNoTags(dst, compact)
}

// DecodeFrom decodes a response's body. Errors: *DecodeError.
func (m *ListOffsetsResponse) DecodeFrom(src []byte, version int16) error {
	*m = ListOffsetsResponse{}
	r := newReader(src, KeyListOffsets, version)
	if version >= 2 {
		m.ThrottleMs = r.int32("throttle_time_ms")
	}
	m.Topics = readEach(r, 3, "topics", func(t *ListOffsetsTopicResult) {
		t.Name = r.str("name")
		t.Partitions = readEach(r, 22, "partitions", func(p *ListOffsetsResult) {
			p.Index = r.int32("partition_index")
			p.ErrorCode = r.int16("error_code")
			p.Timestamp = r.int64("timestamp")
			p.Offset = r.int64("offset")
			p.LeaderEpoch = -1
			if version >= 4 {
				p.LeaderEpoch = r.int32("leader_epoch")
			}
		})
	})
	r.skipTags()
	return r.done()
}
