package replicator

import (
	"log/slog"
	"strings"
	"testing"
)

var allStates = []State{
	StatePreparing, StateMirroring, StatePausing, StatePaused, StateStopping, StateStopped, StateFailed, StateUnknown,
}

func TestWanted_LeadsByLegalMovesFromEveryStateToItsGoal(t *testing.T) {
	goals := map[Wanted]State{
		WantedMirroring: StateMirroring, WantedPaused: StatePaused, WantedStopped: StateStopped,
	}
	for want, goal := range goals {
		for _, from := range allStates {
			state, path := from, []string{from.String()}
			for range len(allStates) {
				next := nextState(state, want)
				if next == state {
					break
				}
				if !state.CanMoveTo(next) {
					t.Errorf("%s, wanted %s: %s to %s is no legal move", from, want, state, next)
				}
				state = next
				path = append(path, state.String())
			}
			if stays := want == WantedPaused && (from == StateStopped || from == StateStopping); state != goal && !stays {
				t.Errorf("wanted %s: %s does not end in %s", want, strings.Join(path, ", "), goal)
			}
			if atRest(from, want) != (from == state && from != StateMirroring) {
				t.Errorf("%s, wanted %s: at rest %v", from, want, atRest(from, want))
			}
			if want == WantedStopped && needsSource(from, want) {
				t.Errorf("stopping from %s waits for the source", from)
			}
		}
	}
	for _, state := range allStates {
		if nextState(state, WantedNone) != state {
			t.Errorf("a topic nobody holds leaves %s", state)
		}
	}
}

func TestBinding_IsStoredAsTheMirrorsNameWithItsEnding(t *testing.T) {
	for value, want := range map[string]binding{
		"m": {"m", WantedMirroring}, "m.paused": {"m", WantedPaused}, "m.stopped": {"m", WantedStopped},
		"a.b.stopped": {"a.b", WantedStopped}, "stopped": {"stopped", WantedMirroring},
	} {
		if got := parseBinding(value); got != want {
			t.Errorf("%s: %+v, want %+v", value, got, want)
		}
		if got := want.value(); got == nil || *got != value {
			t.Errorf("%+v is stored as %v, want %s", want, got, value)
		}
	}
	if (binding{}).value() != nil || parseBinding("") != (binding{}) {
		t.Error("nobody is somebody")
	}
}

func TestState_AnIllegalMoveIsSaidAndDropped(t *testing.T) {
	for _, from := range allStates {
		for _, next := range allStates {
			logs := &lockedBuffer{}
			m := &mirror{agent: &Agent{}, name: "m", logger: slog.New(slog.NewTextHandler(logs, nil)), errors: &errorCounts{}}
			m.ctx = t.Context()
			p := newPartition(m, &topic{name: "t"}, 0)
			p.stats.state.Store(int32(from))
			made := p.move(next, nil)
			if made != from.CanMoveTo(next) {
				t.Errorf("%s to %s: made %v", from, next, made)
			}
			want := from
			if made {
				want = next
			}
			if got := p.state(); got != want {
				t.Errorf("%s to %s ended in %s", from, next, got)
			}
			if said := strings.Contains(logs.String(), "illegal state change was dropped"); said == made {
				t.Errorf("%s to %s: made %v, said %v", from, next, made, said)
			}
		}
	}
}
