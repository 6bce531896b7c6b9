package admin

import "time"

// CreateMirrorOptions are the options of CreateMirror. Kafka: CreateMirrorOptions.
type CreateMirrorOptions struct {
	Timeout time.Duration // of the whole call; 0 = Config.CallTimeout
}

// DeleteMirrorOptions are the options of DeleteMirror. Kafka: DeleteMirrorOptions.
type DeleteMirrorOptions struct {
	Timeout time.Duration // of the whole call; 0 = Config.CallTimeout
}

// ListMirrorsOptions are the options of ListMirrors. Kafka: ListMirrorsOptions.
type ListMirrorsOptions struct {
	Timeout time.Duration // of the whole call; 0 = Config.CallTimeout
}

// DescribeMirrorsOptions are the options of DescribeMirrors. Kafka: DescribeMirrorsOptions.
type DescribeMirrorsOptions struct {
	Timeout                     time.Duration // of the whole call; 0 = Config.CallTimeout
	IncludeAuthorizedOperations bool
}

// StartMirrorTopicsOptions are the options of StartMirrorTopics. Kafka: StartMirrorTopicsOptions.
type StartMirrorTopicsOptions struct {
	Timeout         time.Duration            // of the whole call; 0 = Config.CallTimeout
	IncludePatterns []string                 // RE2, matched whole; added to mirror.topics.include
	ExcludePatterns []string                 // likewise, to mirror.topics.exclude
	TopicMetadata   map[string]TopicMetadata // by name; of a topic without it the agent asks the source
}

// TopicMetadata is a topic as its source has it. Kafka: StartMirrorTopicsRequestData.TopicData.
type TopicMetadata struct {
	TopicID       [16]byte // zero = not known
	NumPartitions int32    // 0 = not known
}

// StopMirrorTopicsOptions are the options of StopMirrorTopics. Kafka: StopMirrorTopicsOptions.
type StopMirrorTopicsOptions struct {
	Timeout  time.Duration // of the whole call; 0 = Config.CallTimeout
	Patterns []string      // taken out of mirror.topics.include where they stand there, else added to the exclude list
}

// PauseMirrorTopicsOptions are the options of PauseMirrorTopics. Kafka: PauseMirrorTopicsOptions.
type PauseMirrorTopicsOptions struct {
	Timeout time.Duration // of the whole call; 0 = Config.CallTimeout
}

// ResumeMirrorTopicsOptions are the options of ResumeMirrorTopics. Kafka: ResumeMirrorTopicsOptions.
type ResumeMirrorTopicsOptions struct {
	Timeout time.Duration // of the whole call; 0 = Config.CallTimeout
}

// AlterConfigsOptions are the options of IncrementalAlterConfigs. Kafka: AlterConfigsOptions.
type AlterConfigsOptions struct {
	Timeout      time.Duration // of the whole call; 0 = Config.CallTimeout
	ValidateOnly bool          // check, change nothing
}

// DescribeConfigsOptions are the options of DescribeConfigs. Kafka: DescribeConfigsOptions.
type DescribeConfigsOptions struct {
	Timeout              time.Duration // of the whole call; 0 = Config.CallTimeout
	IncludeSynonyms      bool
	IncludeDocumentation bool
}

// StatesOptions are the options of ReadMirrorStates, WriteMirrorStates and BumpLeaderEpochs.
type StatesOptions struct {
	Timeout time.Duration // of the whole call; 0 = Config.CallTimeout
}
