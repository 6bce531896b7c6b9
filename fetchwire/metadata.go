package fetchwire

// NoAuthorizedOperations is the value of authorized operations that were not asked for.
const NoAuthorizedOperations int32 = -1 << 31

// MetadataRequest asks for brokers, topics and leaders.
//
// MetadataRequest.json, versions 4-13.
type MetadataRequest struct {
	Topics                      []MetadataRequestTopic // nil = all, empty = none
	AllowAutoTopicCreation      bool
	IncludeClusterAuthorizedOps bool // v8-v10
	IncludeTopicAuthorizedOps   bool // v8+
}

// MetadataRequestTopic names a topic by name, or by id (v12+ in practice).
type MetadataRequestTopic struct {
	TopicID [16]byte // v10+
	Name    *string  // nil = by id, v10+
}

// MetadataResponse lists brokers and topics.
//
// MetadataResponse.json, versions 4-13.
type MetadataResponse struct {
	ThrottleMs           int32
	Brokers              []MetadataBroker
	ClusterID            *string
	ControllerID         int32 // -1 = unknown
	Topics               []MetadataTopic
	ClusterAuthorizedOps int32 // v8-v10
	ErrorCode            int16 // v13+
}

// MetadataBroker is a broker's address.
type MetadataBroker struct {
	NodeID int32
	Host   string
	Port   int32
	Rack   *string
}

// MetadataTopic is one topic.
type MetadataTopic struct {
	ErrorCode     int16
	Name          *string  // nil only for an unknown id, v12+
	TopicID       [16]byte // v10+
	IsInternal    bool
	Partitions    []MetadataPartition
	AuthorizedOps int32 // v8+
}

// MetadataPartition is one partition and its leader.
type MetadataPartition struct {
	ErrorCode       int16
	Index           int32
	LeaderID        int32 // -1 = none
	LeaderEpoch     int32 // v7+; -1 = unknown
	Replicas        []int32
	Isr             []int32
	OfflineReplicas []int32 // v5+
}
