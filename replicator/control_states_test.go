package replicator

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"segmirror/fetchwire"
	"segmirror/segment"
)

func TestPause_KeepsTheLogAndResumeGoesOnFromItsEnd(t *testing.T) {
	s := filled(t, "a", "b")
	c := control(t, t.TempDir(), nil)
	c.create("m", s, fetchwire.CodeNone)
	c.start("m", "a b", "a", "b")
	c.awaitEnd(t, "a", 0, 10)
	c.resume("m", "a absent", "a MIRROR_TOPIC_NOT_PAUSED", "absent UNKNOWN_TOPIC_OR_PARTITION")
	c.pause("m", "a", "a")
	c.pause("m", "a", "a") // again
	c.awaitState("a", 0, StatePaused)
	s.produce("a", 5)
	s.produce("b", 5)
	c.awaitEnd(t, "b", 0, 15)
	if p := c.partition("a", 0); p.EndOffset != 10 || p.State != StatePaused {
		t.Errorf("while paused: %s at %d", p.State, p.EndOffset)
	}
	asked := len(s.fetches(s.topics["a"].partitions[0]))
	c.resume("m", "a", "a")
	c.awaitEnd(t, "a", 0, 15)
	for _, again := range s.fetches(s.topics["a"].partitions[0])[asked:] {
		if again.FetchOffset < 10 {
			t.Errorf("asked again for offset %d", again.FetchOffset)
		}
	}
	c.stopTopics("m", "b", "", "b")
	c.awaitState("b", 0, StateStopped)
	c.pause("m", "b", "b MIRROR_TOPIC_BEING_STOPPED")
	c.resume("m", "b", "b MIRROR_TOPIC_NOT_PAUSED")
	c.mustEqual(t, s, s.topics["a"], 0)
}

func TestPause_IsRefusedForAPartitionThatIsNotMirroring(t *testing.T) {
	s := filled(t, "a")
	s.update(func() {
		s.topics["a"].partitions[0].alter = func(_ fetchwire.FetchPartition, answer *fetchwire.FetchPartitionResponse) {
			answer.ErrorCode, answer.Records = fetchwire.CodeTopicAuthorizationFailed, nil
		}
	})
	c := control(t, t.TempDir(), stayFailed())
	c.create("m", s, fetchwire.CodeNone)
	c.start("m", "a", "a")
	c.awaitState("a", 0, StateFailed)
	c.pause("m", "a", "a INVALID_REQUEST")
	p := c.described("m")["a"][0]
	if p.State != "FAILED" || p.Attempts != 1 || p.Cause == nil ||
		!strings.Contains(*p.Cause, "segmirror mirrors --bootstrap-server "+c.ListenerAddrs()[0]+" --start --mirror m --topics a") {
		t.Errorf("described as %+v", p)
	}
	s.update(func() { s.topics["a"].partitions[0].alter = nil })
	c.start("m", "a", "a") // begins anew at once, ten minutes before it would be tried again
	c.awaitEnd(t, "a", 0, 10)
	if n := c.partition("a", 0).Attempts; n != 0 {
		t.Errorf("%d attempts", n)
	}
}

func TestDelete_LeavesNothingButTheCopies(t *testing.T) {
	s := filled(t, "a", "b")
	dir := t.TempDir()
	c := control(t, dir, nil)
	c.delete("m", fetchwire.CodeUnknownMirror)
	c.create("m", s, fetchwire.CodeNone)
	c.create("empty", s, fetchwire.CodeNone)
	c.delete("empty", fetchwire.CodeNone)
	c.start("m", "a b", "a", "b")
	c.awaitEnd(t, "a", 0, 10)
	c.awaitEnd(t, "b", 0, 10)
	c.delete("m", fetchwire.CodeMirrorNotEmpty)
	c.stopTopics("m", "a", "", "a")
	c.pause("m", "b", "b")
	c.awaitState("b", 0, StatePaused)
	c.delete("m", fetchwire.CodeMirrorNotEmpty)
	if len(c.list()) != 1 {
		t.Error("a mirror that was not deleted is not listed")
	}
	c.stopTopics("m", "b", "", "b")
	c.awaitState("a", 0, StateStopped)
	c.awaitState("b", 0, StateStopped)
	c.delete("m", fetchwire.CodeNone)
	if l := c.list(); len(l) != 0 {
		t.Errorf("listed: %+v", l)
	}
	c.stop()
	if n := len(diskBytes(t, dir, "a", 0)); n == 0 {
		t.Error("the copy is gone")
	}
	records := storedStates(t, dir)
	last := records[len(records)-2:]
	for i, kind := range []int16{recordPartitionState, recordLastMirrorEpochs} {
		if !last[i].Tombstone || last[i].Type != kind || last[i].Mirror != "m" {
			t.Errorf("record %d from the end: %+v", 2-i, last[i])
		}
	}
	d := control(t, dir, nil)
	if l := d.list(); len(l) != 0 {
		t.Errorf("after a restart: %+v", l)
	}
	s.produce("a", 5)
	d.create("later", s, fetchwire.CodeNone)
	d.start("later", "a", "a") // the same source: goes on
	d.awaitEnd(t, "a", 0, 15)
	d.mustEqual(t, s, s.topics["a"], 0)
}

func TestDelete_ACopyOfAnotherClusterIsNotTakenUp(t *testing.T) {
	s := filled(t, "a")
	dir := t.TempDir()
	c := control(t, dir, nil)
	c.create("m", s, fetchwire.CodeNone)
	c.start("m", "a", "a")
	c.awaitEnd(t, "a", 0, 10)
	c.stopTopics("m", "a", "", "a")
	c.awaitState("a", 0, StateStopped)
	c.delete("m", fetchwire.CodeNone)
	other := filled(t, "a")
	other.update(func() { other.clusterID = "yet-another-cluster-id" })
	c.create("n", other, fetchwire.CodeNone)
	c.start("n", "a", "a")
	c.awaitFailed(t, "a", 0, CauseClusterChanged, 10)
	c.stopTopics("n", "a", "", "a") // also what cannot be mirrored can be stopped, and deleted
	c.awaitState("a", 0, StateStopped)
	c.delete("n", fetchwire.CodeNone)
}

func TestDelete_ThatACrashCutShortIsFinishedAtTheNextStart(t *testing.T) {
	s := filled(t, "a")
	dir := t.TempDir()
	c := control(t, dir, nil)
	c.create("m", s, fetchwire.CodeNone)
	c.start("m", "a", "a")
	c.awaitEnd(t, "a", 0, 10)
	c.stopTopics("m", "a", "", "a")
	c.awaitState("a", 0, StateStopped)
	if _, err := c.unbind("m"); err != nil { // and no more
		t.Fatal(err)
	}
	c.create("m", s, fetchwire.CodeDuplicateResource)
	c.testAgent.stop()
	d := control(t, dir, nil)
	if stored := d.states.mirror("m"); len(stored.partitions) != 0 || stored.sourceClusterID != "" {
		t.Errorf("states are left: %+v", stored)
	}
	d.create("m", s, fetchwire.CodeNone)
	if got := d.described("m"); len(got) != 0 {
		t.Errorf("the new mirror holds %v", got)
	}
}

func TestDescribe_KnowsNoOffsetsOfWhatRests(t *testing.T) {
	s := filled(t, "a", "b", "c")
	c := control(t, t.TempDir(), nil)
	c.create("m", s, fetchwire.CodeNone)
	c.create("n", s, fetchwire.CodeNone)
	c.start("m", "a b c", "a", "b", "c")
	for _, topic := range []string{"a", "b", "c"} {
		c.awaitEnd(t, topic, 0, 10)
	}
	c.pause("m", "a", "a")
	c.stopTopics("m", "b", "", "b")
	c.awaitState("a", 0, StatePaused)
	c.awaitState("b", 0, StateStopped)
	got := c.described("m")
	for topic, want := range map[string]fetchwire.DescribedMirrorPartition{
		"a": {SourceOffset: -1, DestinationOffset: -1, Lag: -1, State: "PAUSED", LastMirrorEpoch: -1, LastMirroredEnd: -1},
		"b": {SourceOffset: -1, DestinationOffset: -1, Lag: -1, State: "STOPPED", LastMirrorEpoch: 0, LastMirroredEnd: 10},
		"c": {SourceOffset: 10, DestinationOffset: 10, Lag: 0, State: "MIRRORING", LastMirrorEpoch: -1, LastMirroredEnd: -1},
	} {
		if len(got[topic]) != 1 || got[topic][0] != want {
			t.Errorf("%s: %+v, want %+v", topic, got[topic], want)
		}
	}
	for _, names := range [][]string{nil, {"n", "absent", "m"}} {
		resp := &fetchwire.DescribeMirrorsResponse{}
		c.call(&fetchwire.DescribeMirrorsRequest{MirrorNames: names}, resp)
		var answered []string
		for _, m := range resp.Mirrors {
			answered = append(answered, fmt.Sprintf("%s %s %d", m.MirrorName, fetchwire.ErrorName(m.ErrorCode), len(m.Topics)))
		}
		want := []string{"m NONE 3", "n NONE 0"}
		if names != nil {
			want = []string{"n NONE 0", "absent UNKNOWN_MIRROR 0", "m NONE 3"}
		}
		if !slices.Equal(answered, want) || resp.ErrorCode != fetchwire.CodeNone {
			t.Errorf("%q: %q, want %q", names, answered, want)
		}
	}
}

func TestRestart_GoesOnFromEveryStoredState(t *testing.T) {
	for _, state := range []State{
		StatePreparing, StateMirroring, StatePausing, StatePaused, StateStopping, StateStopped, StateFailed,
	} {
		for want, end := range map[Wanted]State{
			WantedMirroring: StateMirroring, WantedPaused: StatePaused, WantedStopped: StateStopped,
		} {
			if want == WantedPaused && (state == StateStopping || state == StateStopped) {
				continue // never stored: what is stopped cannot be paused
			}
			t.Run(state.String()+" "+want.String(), func(t *testing.T) {
				t.Parallel()
				s := filled(t, "a")
				dir := t.TempDir()
				c := control(t, dir, nil)
				c.create("m", s, fetchwire.CodeNone)
				c.start("m", "a", "a")
				c.awaitEnd(t, "a", 0, 10)
				c.stop()
				killedIn(t, dir, state, want)
				s.produce("a", 5)
				d := control(t, dir, nil)
				d.awaitState("a", 0, end)
				if want == WantedMirroring {
					d.awaitEnd(t, "a", 0, 15)
				}
				stored := d.states.mirror("m").partitions[segment.TopicPartition{Topic: "a"}]
				if stored.state != end {
					t.Errorf("%s is stored, want %s", stored.state, end)
				}
				if end == StateStopped && state != StateStopped && (stored.epoch == nil || stored.epoch.EndOffset < 10) {
					t.Errorf("no last mirror epoch: %+v", stored.epoch)
				}
			})
		}
	}
}

// killedIn makes the closed log directory look as if its agent had been killed while topic a was in state.
func killedIn(t *testing.T, dir string, state State, want Wanted) {
	t.Helper()
	d, err := segment.OpenLogDir(dir, segment.Identity{ClusterID: "destination-cluster-id", NodeID: 1})
	if err != nil {
		t.Fatal(err)
	}
	states, err := openStateLog(d, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	metadata, err := openMetadataLog(d, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	r := StateRecord{Type: recordPartitionState, Mirror: "m", Topic: "a", State: state}
	if state == StateFailed {
		r.Cause, r.Text, r.Attempts = CauseIO, "a test", 3
	}
	if err := states.append(r); err != nil {
		t.Fatal(err)
	}
	if err := metadata.append(bindRecord("a", binding{mirror: "m", want: want})); err != nil {
		t.Fatal(err)
	}
	states.close()
	metadata.close()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, ".kafka_cleanshutdown")); err != nil {
		t.Fatal(err)
	}
}

// storedStates returns every record of the state log of a closed log directory.
func storedStates(t *testing.T, dir string) (records []StateRecord) {
	t.Helper()
	for it := segment.NewBatchIterator(diskBytes(t, dir, stateTopic, 0)); it.Next(); {
		if err := eachRecord(it.Batch(), func(key, value []byte) error {
			r, err := DecodeStateRecord(key, value)
			records = append(records, r)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	return records
}
