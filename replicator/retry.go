package replicator

// Cause is why a partition is FAILED: its kind decides whether and how long the agent tries again.
type Cause int8

// The causes.
const (
	CauseNone Cause = iota
	CauseSourceUnreachable
	CauseNoLeader
	CauseNotAuthorized
	CauseDiskFull
	CauseIO
	CauseCorruptBatch
	CauseOutOfOrder
	CauseProtocol
	CauseTopicGone
	CauseCreatedAgain
	CauseClusterChanged
	CauseDiverged
	CauseSourceShorter
	CauseOvertaken
	CauseDirectoryLost
	CauseConflict
)
