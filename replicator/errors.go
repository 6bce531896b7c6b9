package replicator

import "errors"

// Errors a caller can tell apart with errors.Is.
var (
	// ErrConfig marks every fault of a configuration.
	ErrConfig = errors.New("invalid configuration")
	// errUnknownKey marks a key that a mirror's configuration does not have.
	//lint:ignore ST1005 clients read these words, and they are the KIP's
	errUnknownKey = errors.New("Unknown mirror configuration")
)

// The agent's own topics: never mirrored, whatever a pattern says.
const (
	stateTopic    = "__mirror_state"
	metadataTopic = "__cluster_metadata"
)
