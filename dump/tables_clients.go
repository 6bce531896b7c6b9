package dump

// controlTables are the values of control records. Kafka 4.3.1: clients, common/message/*.json, all but the last,
// which is KIP-1279's. Checked against them by TestTables_AreKafkas.
const controlTables = `
LeaderChangeMessage - 0-1 flexible 0
	version int16
	leaderId int32
	voters []Voter
	grantingVoters []Voter
	struct Voter
		voterId int32
		voterDirectoryId uuid 1+
SnapshotHeaderRecord - 0 flexible 0
	version int16
	lastContainedLogTimestamp int64
SnapshotFooterRecord - 0 flexible 0
	version int16
KRaftVersionRecord - 0 flexible 0
	version int16
	kRaftVersion int16
VotersRecord - 0 flexible 0
	version int16
	voters []Voter
		voterId int32
		voterDirectoryId uuid
		endpoints []Endpoint
			name string
			host string
			port uint16
		kRaftVersionFeature KRaftVersionFeature
			minSupportedVersion int16
			maxSupportedVersion int16
MirrorPidResetRecord - 0 flexible 0
	version int16
	sourceClusterId string`

// consumerTables are what members of classic consumer groups tell each other. Kafka 4.3.1: clients,
// common/message/ConsumerProtocol*.json. Checked against them by TestTables_AreKafkas.
const consumerTables = `
ConsumerProtocolSubscription - 0-3
	topics []string
	userData bytes null 0+
	ownedPartitions []TopicPartition 1+
		topic string 1+
		partitions []int32 1+
	generationId int32 2+ default -1
	rackId string 3+ null 3+ default null
ConsumerProtocolAssignment - 0-3
	assignedPartitions []TopicPartition
		topic string
		partitions []int32
	userData bytes null 0+`

// remoteTables are the records of __remote_log_metadata. Kafka 4.3.1: storage, message/Remote*.json. Checked
// against them by TestTables_AreKafkas.
const remoteTables = `
RemoteLogSegmentMetadataRecord 0 0 flexible 0
	remoteLogSegmentId RemoteLogSegmentIdEntry
		topicIdPartition TopicIdPartitionEntry
			name string
			id uuid
			partition int32
		id uuid
	startOffset int64
	endOffset int64
	brokerId int32
	maxTimestampMs int64
	eventTimestampMs int64
	segmentLeaderEpochs []SegmentLeaderEpochEntry
		leaderEpoch int32
		offset int64
	segmentSizeInBytes int32
	customMetadata bytes null 0+
	remoteLogSegmentState int8
	txnIndexEmpty bool tag 0
RemoteLogSegmentMetadataUpdateRecord 1 0 flexible 0
	remoteLogSegmentId RemoteLogSegmentIdEntry
		topicIdPartition TopicIdPartitionEntry
			name string
			id uuid
			partition int32
		id uuid
	brokerId int32
	eventTimestampMs int64
	customMetadata bytes null 0+
	remoteLogSegmentState int8
RemotePartitionDeleteMetadataRecord 2 0 flexible 0
	topicIdPartition TopicIdPartitionEntry
		name string
		id uuid
		partition int32
	brokerId int32
	eventTimestampMs int64
	remotePartitionDeleteState int8
RemoteLogSegmentMetadataSnapshotRecord 3 0 flexible 0
	segmentId uuid
	startOffset int64
	endOffset int64
	brokerId int32
	maxTimestampMs int64
	eventTimestampMs int64
	segmentLeaderEpochs []SegmentLeaderEpochEntry
		leaderEpoch int32
		offset int64
	segmentSizeInBytes int32
	customMetadata bytes null 0+
	remoteLogSegmentState int8
	txnIndexEmpty bool tag 0`
