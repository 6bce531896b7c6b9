package replicator

import "errors"

// Errors a caller can tell apart with errors.Is.
var (
	// ErrConfig marks every fault of a configuration.
	ErrConfig = errors.New("invalid configuration")
)
