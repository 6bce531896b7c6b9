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
