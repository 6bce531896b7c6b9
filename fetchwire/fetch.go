package fetchwire

// ConsumerReplicaID is the replica id of a client that is not a broker.
const ConsumerReplicaID int32 = -1

// FetchRequest asks for records. FetchSession.Next builds it; one built by hand works too.
//
// FetchRequest.json, versions 4-18.
type FetchRequest struct {
	Version        int16   // highest version to use; 0 = the newest both sides know. Not on the wire.
	ClusterID      *string // v12+, tag
	ReplicaID      int32   // ConsumerReplicaID
	ReplicaEpoch   int64   // v15+, tag; -1 = none
	MaxWaitMs      int32
	MinBytes       int32
	MaxBytes       int32 // of the whole response; the first batch may be larger
	IsolationLevel int8  // 0 = read uncommitted
	SessionID      int32 // v7+
	SessionEpoch   int32 // v7+; -1 = no session
	Topics         []FetchTopic
	Forgotten      []ForgottenTopic // v7+
	Rack           string           // v11+

	session *FetchSession // resolves the partitions of the response; nil = those of Topics
}

// FetchTopic is one topic of a FetchRequest.
type FetchTopic struct {
	Topic      string   // v4-v12
	TopicID    [16]byte // v13+
	Partitions []FetchPartition
}

// FetchPartition is one partition of a FetchRequest.
type FetchPartition struct {
	Partition          int32
	CurrentLeaderEpoch int32 // v9+; -1 = unknown
	FetchOffset        int64
	LastFetchedEpoch   int32    // v12+; -1 = none
	LogStartOffset     int64    // v5+; of a follower, else -1
	MaxBytes           int32    // the first batch may be larger
	ReplicaDirectoryID [16]byte // v17+, tag
	HighWatermark      int64    // v18+, tag; NoHighWatermark = not said
}

// NoHighWatermark is FetchPartition.HighWatermark of a client that does not tell it.
const NoHighWatermark int64 = 1<<63 - 1

// ForgottenTopic names partitions that leave a fetch session.
type ForgottenTopic struct {
	Topic      string   // v7-v12
	TopicID    [16]byte // v13+
	Partitions []int32
}

// EpochEndOffset is a leader epoch and the offset it ends at; both -1 when absent.
type EpochEndOffset struct {
	Epoch     int32
	EndOffset int64
}

// LeaderIDAndEpoch names a partition's leader; both -1 when absent.
type LeaderIDAndEpoch struct {
	LeaderID    int32
	LeaderEpoch int32
}

// NodeEndpoint is the address of a broker that a fetch response named as leader.
type NodeEndpoint struct {
	NodeID int32
	Host   string
	Port   int32
	Rack   *string
}
