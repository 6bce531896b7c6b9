package replicator

import "strings"

// Wanted is what operators, or a mirror's patterns, want of a topic. It is stored before anything is done about it; the
// states of the topic's partitions follow.
type Wanted int8

const (
	// WantedNone is a topic that no mirror holds.
	WantedNone Wanted = iota
	// WantedMirroring is a topic that is mirrored.
	WantedMirroring
	// WantedPaused is a topic whose mirroring rests; it stays read-only.
	WantedPaused
	// WantedStopped is a topic that is mirrored no more, until it is started again.
	WantedStopped
)

// String returns the word that the agent's status uses.
func (w Wanted) String() string {
	switch w {
	case WantedMirroring:
		return "mirroring"
	case WantedPaused:
		return "paused"
	case WantedStopped:
		return "stopped"
	default:
		return "none"
	}
}

// The endings of mirror.name's value: a mirror's name has neither.
const (
	endingPaused  = ".paused"
	endingStopped = ".stopped"
)

// keyMirrorName is the topic configuration that holds a binding.
const keyMirrorName = "mirror.name"

// binding is the mirror that holds a topic, and what is wanted of the topic. The zero value is a topic nobody holds.
type binding struct {
	mirror string
	want   Wanted
}

func parseBinding(value string) binding {
	if value == "" {
		return binding{}
	}
	if name, ok := strings.CutSuffix(value, endingStopped); ok {
		return binding{name, WantedStopped}
	}
	if name, ok := strings.CutSuffix(value, endingPaused); ok {
		return binding{name, WantedPaused}
	}
	return binding{value, WantedMirroring}
}

// value is what is stored, nil for nobody.
func (b binding) value() *string {
	v := b.mirror
	switch b.want {
	case WantedNone:
		return nil
	case WantedPaused:
		v += endingPaused
	case WantedStopped:
		v += endingStopped
	}
	return &v
}

// nextState returns the state to which a partition goes from state when want is wanted of its topic; state itself where
// it rests. Every move is one that CanMoveTo allows: where no move leads straight to what is wanted, it goes round.
func nextState(state State, want Wanted) State {
	switch {
	case want == WantedNone:
		return state
	case state == StateStopping:
		return StateStopped
	case state == StatePausing && want != WantedStopped:
		return StatePaused
	}
	switch want {
	case WantedStopped:
		switch state {
		case StateStopped:
			return StateStopped
		case StateUnknown: // UNKNOWN cannot be left for STOPPING: by way of a PREPARING that does nothing
			return StatePreparing
		}
		return StateStopping
	case WantedPaused:
		switch state {
		case StateMirroring:
			return StatePausing
		case StatePaused, StateStopped:
			return state
		}
	}
	switch state {
	case StateUnknown, StateStopped, StateFailed:
		return StatePreparing
	default: // PREPARING, PAUSED, MIRRORING
		return StateMirroring
	}
}

// needsSource reports whether the next move from state needs answers of the source; those that do not are made whether
// or not it is there.
func needsSource(state State, want Wanted) bool {
	switch nextState(state, want) {
	case StatePreparing:
		return want != WantedStopped
	case StateMirroring:
		return true
	default:
		return false
	}
}

// atRest reports whether nothing is to be done for a partition in state.
func atRest(state State, want Wanted) bool {
	next := nextState(state, want)
	return next == state && next != StateMirroring
}
