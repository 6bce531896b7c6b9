package dump

// offsetsTables are the records of __consumer_offsets. Kafka 4.3.1: group-coordinator, common/message/*Key.json and
// *Value.json. Checked against them by TestTables_AreKafkas.
const offsetsTables = `
LegacyOffsetCommitKey 0 0
	group string
	topic string
	partition int32
LegacyOffsetCommitValue 0 0
	offset int64
	metadata string
	commitTimestamp int64
OffsetCommitKey 1 0
	group string
	topic string
	partition int32
OffsetCommitValue 1 0-4 flexible 4
	offset int64
	leaderEpoch int32 3+ default -1
	metadata string
	commitTimestamp int64
	expireTimestamp int64 1 default -1
	topicId uuid 4+ tag 0
GroupMetadataKey 2 0
	group string
GroupMetadataValue 2 0-4 flexible 4
	protocolType string
	generation int32
	protocol string null 0+
	leader string null 0+
	currentStateTimestamp int64 2+ default -1
	members []MemberMetadata
	struct MemberMetadata
		memberId string
		groupInstanceId string 3+ null 3+ default null
		clientId string
		clientHost string
		rebalanceTimeout int32 1+ default -1
		sessionTimeout int32
		subscription bytes
		assignment bytes
ConsumerGroupMetadataKey 3 0
	groupId string
ConsumerGroupMetadataValue 3 0 flexible 0
	epoch int32
	metadataHash int64 tag 0 default 0
ConsumerGroupPartitionMetadataKey 4 0
	groupId string
ConsumerGroupPartitionMetadataValue 4 0 flexible 0
	topics []TopicMetadata
		topicId uuid
		topicName string
		numPartitions int32
		partitionMetadata []PartitionMetadata
			partition int32
			racks []string
ConsumerGroupMemberMetadataKey 5 0
	groupId string
	memberId string
ConsumerGroupMemberMetadataValue 5 0 flexible 0
	instanceId string null 0+
	rackId string null 0+
	clientId string
	clientHost string
	subscribedTopicNames []string
	subscribedTopicRegex string null 0+
	rebalanceTimeoutMs int32
	serverAssignor string null 0+
	classicMemberMetadata ClassicMemberMetadata null 0+ tag 0
		sessionTimeoutMs int32
		supportedProtocols []ClassicProtocol
			name string
			metadata bytes
ConsumerGroupTargetAssignmentMetadataKey 6 0
	groupId string
ConsumerGroupTargetAssignmentMetadataValue 6 0 flexible 0
	assignmentEpoch int32
	assignmentTimestamp int64 tag 0 default 0
ConsumerGroupTargetAssignmentMemberKey 7 0
	groupId string
	memberId string
ConsumerGroupTargetAssignmentMemberValue 7 0 flexible 0
	topicPartitions []TopicPartition
		topicId uuid
		partitions []int32
ConsumerGroupCurrentMemberAssignmentKey 8 0
	groupId string
	memberId string
ConsumerGroupCurrentMemberAssignmentValue 8 0 flexible 0
	memberEpoch int32
	previousMemberEpoch int32
	state int8
	assignedPartitions []TopicPartitions
	partitionsPendingRevocation []TopicPartitions
	struct TopicPartitions
		topicId uuid
		partitions []int32
		assignmentEpochs []int32 null 0+ tag 0
ShareGroupMemberMetadataKey 10 0
	groupId string
	memberId string
ShareGroupMemberMetadataValue 10 0 flexible 0
	rackId string null 0+
	clientId string
	clientHost string
	subscribedTopicNames []string
ShareGroupMetadataKey 11 0
	groupId string
ShareGroupMetadataValue 11 0 flexible 0
	epoch int32
	metadataHash int64
ShareGroupTargetAssignmentMetadataKey 12 0
	groupId string
ShareGroupTargetAssignmentMetadataValue 12 0 flexible 0
	assignmentEpoch int32
	assignmentTimestamp int64 tag 0 default 0
ShareGroupTargetAssignmentMemberKey 13 0
	groupId string
	memberId string
ShareGroupTargetAssignmentMemberValue 13 0 flexible 0
	topicPartitions []TopicPartition
		topicId uuid
		partitions []int32
ShareGroupCurrentMemberAssignmentKey 14 0
	groupId string
	memberId string
ShareGroupCurrentMemberAssignmentValue 14 0 flexible 0
	memberEpoch int32
	previousMemberEpoch int32
	state int8
	assignedPartitions []TopicPartitions
	struct TopicPartitions
		topicId uuid
		partitions []int32
ShareGroupStatePartitionMetadataKey 15 0
	groupId string
ShareGroupStatePartitionMetadataValue 15 0 flexible 0
	initializingTopics []TopicPartitionsInfo
	initializedTopics []TopicPartitionsInfo
	deletingTopics []TopicInfo
	struct TopicPartitionsInfo
		topicId uuid
		topicName string
		partitions []int32
	struct TopicInfo
		topicId uuid
		topicName string
ConsumerGroupRegularExpressionKey 16 0
	groupId string
	regularExpression string
ConsumerGroupRegularExpressionValue 16 0 flexible 0
	topics []string
	version int64
	timestamp int64
StreamsGroupMetadataKey 17 0
	groupId string
StreamsGroupMetadataValue 17 0 flexible 0
	epoch int32
	metadataHash int64
	validatedTopologyEpoch int32 tag 0 default -1
	lastAssignmentConfigs []LastAssignmentConfig null 0+ tag 1
	struct LastAssignmentConfig
		key string
		value string
StreamsGroupMemberMetadataKey 19 0
	groupId string
	memberId string
StreamsGroupMemberMetadataValue 19 0 flexible 0
	instanceId string null 0+
	rackId string null 0+
	clientId string
	clientHost string
	rebalanceTimeoutMs int32
	topologyEpoch int32
	processId string
	userEndpoint Endpoint null 0+
	clientTags []KeyValue
	struct Endpoint
		host string
		port uint16
	struct KeyValue
		key string
		value string
StreamsGroupTargetAssignmentMetadataKey 20 0
	groupId string
StreamsGroupTargetAssignmentMetadataValue 20 0 flexible 0
	assignmentEpoch int32
	assignmentTimestamp int64 tag 0 default 0
StreamsGroupTargetAssignmentMemberKey 21 0
	groupId string
	memberId string
StreamsGroupTargetAssignmentMemberValue 21 0 flexible 0
	activeTasks []TaskIds
	standbyTasks []TaskIds
	warmupTasks []TaskIds
	struct TaskIds
		subtopologyId string
		partitions []int32
StreamsGroupCurrentMemberAssignmentKey 22 0
	groupId string
	memberId string
StreamsGroupCurrentMemberAssignmentValue 22 0 flexible 0
	memberEpoch int32
	previousMemberEpoch int32
	state int8
	activeTasks []TaskIds
	standbyTasks []TaskIds
	warmupTasks []TaskIds
	activeTasksPendingRevocation []TaskIds
	standbyTasksPendingRevocation []TaskIds
	warmupTasksPendingRevocation []TaskIds
	struct TaskIds
		subtopologyId string
		partitions []int32
		assignmentEpochs []int32 null 0+ tag 0
StreamsGroupTopologyKey 23 0
	groupId string
StreamsGroupTopologyValue 23 0 flexible 0
	epoch int32
	subtopologies []Subtopology
		subtopologyId string
		sourceTopics []string
		sourceTopicRegex []string
		stateChangelogTopics []TopicInfo
		repartitionSinkTopics []string
		repartitionSourceTopics []TopicInfo
		copartitionGroups []CopartitionGroup
			sourceTopics []int16
			sourceTopicRegex []int16
			repartitionSourceTopics []int16
	struct TopicConfig
		key string
		value string
	struct TopicInfo
		name string
		partitions int32
		replicationFactor int16
		topicConfigs []TopicConfig`
