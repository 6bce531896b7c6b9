package replicator

import "fmt"

// State is the state of a mirrored partition, as stored in the state log.
type State int8

// The states. StateUnknown is never stored.
const (
	StatePreparing State = 0
	StateMirroring State = 1
	StatePausing   State = 2
	StatePaused    State = 3
	StateStopping  State = 4
	StateStopped   State = 5
	StateFailed    State = 6
	StateUnknown   State = 16
)

// String returns the state's name in Kafka's spelling.
func (s State) String() string {
	switch s {
	case StatePreparing:
		return "PREPARING"
	case StateMirroring:
		return "MIRRORING"
	case StatePausing:
		return "PAUSING"
	case StatePaused:
		return "PAUSED"
	case StateStopping:
		return "STOPPING"
	case StateStopped:
		return "STOPPED"
	case StateFailed:
		return "FAILED"
	case StateUnknown:
		return "UNKNOWN"
	default:
		return fmt.Sprintf("STATE(%d)", int8(s))
	}
}

// CanMoveTo reports whether a partition may go from s to next. Staying is always legal: it runs the state's action
// again. FAILED is reached from any state, UNKNOWN from none.
func (s State) CanMoveTo(next State) bool {
	if s == next {
		return s != StateUnknown
	}
	switch next {
	case StatePreparing:
		return s == StateUnknown || s == StateStopped || s == StateFailed
	case StateMirroring:
		return s == StatePreparing || s == StatePaused
	case StatePausing:
		return s == StateMirroring
	case StatePaused:
		return s == StatePausing
	case StateStopping:
		return s == StatePreparing || s == StateMirroring || s == StatePausing || s == StatePaused || s == StateFailed
	case StateStopped:
		return s == StateStopping
	case StateFailed:
		return s <= StateFailed || s == StateUnknown
	default:
		return false
	}
}
