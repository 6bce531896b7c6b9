package dump

// transactionTables are the records of __transaction_state. Kafka 4.3.1: transaction-coordinator,
// common/message/TransactionLog*.json. Checked against them by TestTables_AreKafkas.
const transactionTables = `
TransactionLogKey 0 0
	transactionalId string
TransactionLogValue 0 0-1 flexible 1
	producerId int64
	previousProducerId int64 tag 0 default -1
	nextProducerId int64 tag 1 default -1
	producerEpoch int16
	nextProducerEpoch int16 tag 3 default -1
	transactionTimeoutMs int32
	transactionStatus int8
	transactionPartitions []PartitionsSchema null 0+
		topic string
		partitionIds []int32
	transactionLastUpdateTimestampMs int64
	transactionStartTimestampMs int64
	clientTransactionVersion int16 tag 2 default 0`

// shareTables are the records of __share_group_state. Kafka 4.3.1: share-coordinator, common/message/Share*.json.
// Checked against them by TestTables_AreKafkas.
const shareTables = `
ShareSnapshotKey 0 0
	groupId string
	topicId uuid
	partition int32
ShareSnapshotValue 0 0 flexible 0
	snapshotEpoch int32
	stateEpoch int32
	leaderEpoch int32
	startOffset int64
	deliveryCompleteCount int32 tag 0 default -1
	createTimestamp int64
	writeTimestamp int64
	stateBatches []StateBatch
		firstOffset int64
		lastOffset int64
		deliveryState int8
		deliveryCount int16
ShareUpdateKey 1 0
	groupId string
	topicId uuid
	partition int32
ShareUpdateValue 1 0 flexible 0
	snapshotEpoch int32
	leaderEpoch int32
	startOffset int64
	deliveryCompleteCount int32 tag 0 default -1
	stateBatches []StateBatch
		firstOffset int64
		lastOffset int64
		deliveryState int8
		deliveryCount int16`

// mirrorTables are the records of __mirror_state: KIP-1279's LastMirrorEpochs and MirrorPartitionState, and those
// of this project's agent, which are numbered from 1200. A partition's end offset, and why it failed, are the
// agent's, too.
const mirrorTables = `
LastMirrorEpochsKey 1 0
	mirrorName string
LastMirrorEpochsValue 1 0 flexible 0
	topics []Topic
		name string
		partitions []Partition
			partitionIndex int32
			lastMirrorEpoch int32
			lastMirroredEnd int64 tag 0 default -1
MirrorPartitionStateKey 2 0
	mirrorName string
MirrorPartitionStateValue 2 0 flexible 0
	topicName string
	partition int32
	state int8
	failure Failure tag 0 bare
		cause int8
		attempts int32
		text string
	shape Shape tag 1 bare
		segmentBytes int32
		segmentMs int64
		indexIntervalBytes int32
		segmentIndexBytes int32
MirrorLostRangeKey 1200 0
	mirrorName string
MirrorLostRangeValue 1200 0 flexible 0
	topicName string
	partition int32
	from int64
	to int64
	atMs int64
MirrorSourceKey 1201 0
	mirrorName string
MirrorSourceValue 1201 0 flexible 0
	sourceClusterId string
	epochPolicy int8`
