package replicator

import "testing"

func TestState_EveryMoveIsLegalExactlyWhereTheTableSaysSo(t *testing.T) {
	all := []State{
		StatePreparing, StateMirroring, StatePausing, StatePaused, StateStopping, StateStopped, StateFailed, StateUnknown,
	}
	from := map[State][]State{
		StatePreparing: {StateUnknown, StateStopped, StateFailed},
		StateMirroring: {StatePreparing, StatePaused},
		StatePausing:   {StateMirroring},
		StatePaused:    {StatePausing},
		StateStopping:  {StatePreparing, StateMirroring, StatePausing, StatePaused, StateFailed},
		StateStopped:   {StateStopping},
		StateFailed: {
			StatePreparing, StateMirroring, StatePausing, StatePaused, StateStopping, StateStopped, StateUnknown,
		},
		StateUnknown: nil,
	}
	for _, next := range all {
		legal := map[State]bool{next: next != StateUnknown} // staying runs the action again
		for _, s := range from[next] {
			legal[s] = true
		}
		for _, s := range all {
			if got := s.CanMoveTo(next); got != legal[s] {
				t.Errorf("%s to %s: %v, want %v", s, next, got, legal[s])
			}
		}
	}
}

func TestState_NumbersAreTheStoredOnes(t *testing.T) {
	for want, s := range map[int8]State{
		0: StatePreparing, 1: StateMirroring, 2: StatePausing, 3: StatePaused, 4: StateStopping, 5: StateStopped,
		6: StateFailed, 16: StateUnknown,
	} {
		if int8(s) != want {
			t.Errorf("%s is %d, want %d", s, int8(s), want)
		}
	}
}
