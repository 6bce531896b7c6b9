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
