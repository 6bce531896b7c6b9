package replicator

import "errors"

// Errors a caller can tell apart with errors.Is.
var (
	// ErrConfig marks every fault of a configuration.
	ErrConfig = errors.New("invalid configuration")
)

// The agent's own topics: never mirrored, whatever a pattern says.
const (
	stateTopic    = "__mirror_state"
	metadataTopic = "__cluster_metadata"
)
