package replicator

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"segmirror/segment"
)

func TestStateRecord_HasTheBytesOfTheKIP(t *testing.T) {
	r := StateRecord{Type: recordPartitionState, Mirror: "my-mirror", Topic: "my-topic", State: StateStopped}
	key, value := r.AppendKey(nil), r.AppendValue(nil)
	if got := hex.EncodeToString(key); got != "00020009"+hex.EncodeToString([]byte("my-mirror")) {
		t.Errorf("key %s", got)
	}
	if got := hex.EncodeToString(value); got != "000009"+hex.EncodeToString([]byte("my-topic"))+"000000000500" {
		t.Errorf("value %s", got)
	}
	batch := appendStateRecords(0, 1_700_000_000_000, []StateRecord{r})
	if len(key) != 13 || len(value) != 17 || len(batch) != 98 {
		t.Errorf("key %d, value %d, batch %d bytes; want 13, 17, 98", len(key), len(value), len(batch))
	}
}

// genStateRecord draws a record as the agent makes them.
func genStateRecord(t *rapid.T) StateRecord {
	r := StateRecord{
		Type: rapid.SampledFrom([]int16{
			recordLastMirrorEpochs, recordPartitionState, recordLostRange, recordMirrorSource,
		}).Draw(t, "type"),
		Mirror: rapid.StringMatching(`[a-z]{1,3}`).Draw(t, "mirror"),
	}
	topic, partition := rapid.StringMatching(`[a-z]{1,2}`), rapid.Int32Range(0, 3)
	switch r.Type {
	case recordPartitionState:
		r.Topic, r.Partition = topic.Draw(t, "topic"), partition.Draw(t, "partition")
		r.State = rapid.SampledFrom([]State{StatePreparing, StateMirroring, StateFailed}).Draw(t, "state")
		if r.State == StateFailed {
			r.Cause = rapid.SampledFrom([]Cause{CauseIO, CauseDiverged}).Draw(t, "cause")
			r.Attempts, r.Text = rapid.Int32Range(0, 99).Draw(t, "attempts"), rapid.String().Draw(t, "text")
		}
		if rapid.Bool().Draw(t, "shaped") {
			r.Shape = logShape{rapid.Int32Range(61, 1<<30).Draw(t, "segment"), 7, rapid.Int32().Draw(t, "interval"), 9}
		}
	case recordLostRange:
		r.Topic, r.Partition = topic.Draw(t, "topic"), partition.Draw(t, "partition")
		from := rapid.Int64Range(0, 60).Draw(t, "from") // ranges that touch
		r.Lost = LostSpan{From: from, To: from + rapid.Int64Range(1, 40).Draw(t, "n"), AtMs: 5}
	case recordMirrorSource:
		r.SourceClusterID, r.EpochPolicy = rapid.String().Draw(t, "cluster"), EpochPolicyRebase
	case recordLastMirrorEpochs:
		for i := range rapid.IntRange(0, 4).Draw(t, "epochs") {
			r.Epochs = append(r.Epochs, LastMirrorEpoch{
				Topic: fmt.Sprintf("t%d", i/2), Partition: int32(i), Epoch: rapid.Int32().Draw(t, "epoch"),
				EndOffset: rapid.Int64Range(-1, 1<<50).Draw(t, "end"),
			})
		}
	}
	return r
}

func TestStateRecord_RoundTripsAndRefusesEveryCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := genStateRecord(t)
		r.Tombstone = rapid.IntRange(0, 9).Draw(t, "tombstone") == 0
		key, value := r.AppendKey(nil), r.AppendValue(nil)
		if r.Tombstone {
			value = nil
			r = StateRecord{Type: r.Type, Mirror: r.Mirror, Tombstone: true}
		}
		got, err := DecodeStateRecord(key, value)
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Fatalf("got %+v, %v\nwant %+v", got, err, r)
		}
		for n := range value {
			if _, err := DecodeStateRecord(key, value[:n:n]); !errors.Is(err, ErrStateRecord) {
				t.Fatalf("the first %d of %d bytes: %v", n, len(value), err)
			}
		}
	})
}

func FuzzDecodeStateRecord(f *testing.F) {
	for _, r := range []StateRecord{
		{Type: recordPartitionState, Mirror: "m", Topic: "t", State: StateFailed, Cause: CauseIO, Attempts: 3, Text: "x"},
		{Type: recordLostRange, Mirror: "m", Topic: "t", Partition: 7, Lost: LostSpan{From: 1, To: 2, AtMs: 3}},
		{Type: recordMirrorSource, Mirror: "m", SourceClusterID: "c", EpochPolicy: EpochPolicyRebase},
		{Type: recordLastMirrorEpochs, Mirror: "m", Epochs: []LastMirrorEpoch{
			{Topic: "a", Epoch: 1, EndOffset: -1}, {Topic: "b", Partition: 1, Epoch: 2, EndOffset: 9},
		}},
	} {
		f.Add(r.AppendKey(nil), r.AppendValue(nil))
	}
	f.Add([]byte{0, 9, 0, 0}, []byte{0, 0})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		r, err := DecodeStateRecord(key, value)
		if err != nil {
			if !errors.Is(err, ErrStateRecord) {
				t.Fatalf("%v does not wrap ErrStateRecord", err)
			}
			return
		}
		if len(r.Epochs) > len(value) {
			t.Fatalf("%d entries from %d bytes", len(r.Epochs), len(value))
		}
		if r.Tombstone || len(r.Text) > maxStateText {
			return
		}
		again, err := DecodeStateRecord(r.AppendKey(nil), r.AppendValue(nil))
		if err != nil || !reflect.DeepEqual(again, r) && r.State != StateFailed && r.Type != recordLastMirrorEpochs &&
			r.Cause != CauseNone {
			t.Fatalf("reads as %+v, written again as %+v, %v", r, again, err)
		}
	})
}

func openStates(t *testing.T, path string) (*segment.LogDir, *stateLog) {
	t.Helper()
	dir, err := segment.OpenLogDir(path, segment.Identity{ClusterID: "c", NodeID: 1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := openStateLog(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return dir, s
}

func TestStateLog_ReplaysWhatWasAppended(t *testing.T) {
	path := t.TempDir()
	dir, s := openStates(t, path)
	lost := StateRecord{
		Type: recordLostRange, Mirror: "m", Topic: "t", Partition: 1, Lost: LostSpan{From: 5, To: 9, AtMs: 77},
	}
	for _, records := range [][]StateRecord{
		{{Type: recordMirrorSource, Mirror: "m", SourceClusterID: "src", EpochPolicy: EpochPolicyRebase}},
		{
			{Type: recordPartitionState, Mirror: "m", Topic: "t", Partition: 0, State: StatePreparing},
			{Type: recordPartitionState, Mirror: "m", Topic: "t", Partition: 1, State: StatePreparing},
		},
		{{Type: recordPartitionState, Mirror: "m", Topic: "t", Partition: 0, State: StateMirroring}},
		{lost},
		{{
			Type: recordPartitionState, Mirror: "m", Topic: "t", Partition: 1, State: StateFailed, Cause: CauseDiverged,
			Attempts: 1, Text: "diverged at 5",
		}},
		{{Type: recordPartitionState, Mirror: "gone", Topic: "t", State: StateStopped}},
		{{Type: recordPartitionState, Mirror: "gone", Tombstone: true}},
	} {
		if err := s.append(records...); err != nil {
			t.Fatal(err)
		}
	}
	s.close()
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	dir, s = openStates(t, path)
	defer dir.Close() // the test's end
	defer s.close()
	m := s.mirror("m")
	if m.sourceClusterID != "src" || m.epochPolicy != EpochPolicyRebase || len(m.partitions) != 2 {
		t.Fatalf("got %+v", m)
	}
	if p := m.partitions[segment.TopicPartition{Topic: "t"}]; p.state != StateMirroring || p.cause != CauseNone {
		t.Errorf("t-0 is %+v", p)
	}
	p := m.partitions[segment.TopicPartition{Topic: "t", Partition: 1}]
	if p.state != StateFailed || p.cause != CauseDiverged || p.text != "diverged at 5" || len(p.lost) != 1 ||
		p.lost[0] != lost.Lost {
		t.Errorf("t-1 is %+v", p)
	}
	if gone := s.mirror("gone"); len(gone.partitions) != 0 {
		t.Errorf("a deleted mirror came back: %+v", gone)
	}
}

func TestStateLog_IsDurableBeforeItAnswers(t *testing.T) {
	path := t.TempDir()
	dir, s := openStates(t, path)
	var writers sync.WaitGroup
	for i := range int32(20) {
		writers.Go(func() {
			err := s.append(StateRecord{Type: recordPartitionState, Mirror: "m", Topic: "t", Partition: i, State: StateMirroring})
			if err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	if s.log.RecoveryPoint() != s.log.LogEndOffset() || s.log.LogEndOffset() != 20 {
		t.Errorf("durable up to %d of %d", s.log.RecoveryPoint(), s.log.LogEndOffset())
	}
	s.close()
	if err := s.append(StateRecord{Type: recordMirrorSource, Mirror: "m"}); !errors.Is(err, errRecordLogClosed) {
		t.Errorf("append after close: %v", err)
	}
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestStateLog_IsRewrittenWhenItHasGrownAndSaysTheSame(t *testing.T) {
	path := t.TempDir()
	dir, s := openStates(t, path)
	text := string(bytes.Repeat([]byte("x"), maxStateText))
	if err := s.append(
		StateRecord{Type: recordMirrorSource, Mirror: "m", SourceClusterID: "src", EpochPolicy: EpochPolicyPreserve},
		StateRecord{Type: recordLostRange, Mirror: "m", Topic: "t", Lost: LostSpan{From: 1, To: 2, AtMs: 3}},
		StateRecord{Type: recordLastMirrorEpochs, Mirror: "m", Epochs: []LastMirrorEpoch{{Topic: "t", Epoch: 4, EndOffset: 9}}},
	); err != nil {
		t.Fatal(err)
	}
	for i := range 3 * recordLogRewriteBytes / maxStateText {
		if err := s.append(StateRecord{
			Type: recordPartitionState, Mirror: "m", Topic: "t", State: StateFailed, Cause: CauseIO, Attempts: int32(i), Text: text,
		}); err != nil {
			t.Fatal(err)
		}
	}
	before := s.mirror("m")
	s.close()
	if size := s.log.Size(); size > recordLogRewriteBytes+100_000 {
		t.Errorf("the log has %d bytes after all: it was not rewritten", size)
	}
	if s.log.LogStartOffset() == 0 {
		t.Error("the log start did not move")
	}
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	dir, s = openStates(t, path)
	defer dir.Close() // the test's end
	defer s.close()
	if after := s.mirror("m"); !reflect.DeepEqual(after, before) {
		t.Errorf("after a rewrite and a restart: %+v\nwant %+v", after, before)
	}
}

func TestAppendState_MergesWhatASecondRunRepeats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var records []StateRecord
		for range rapid.IntRange(0, 30).Draw(t, "n") {
			records = append(records, genStateRecord(t))
		}
		table := map[string]*mirrorRecord{}
		for i := range records {
			applyState(table, &records[i])
		}
		// A rewrite says the same alone. One that was cut short anywhere leaves what it has, behind what it was made
		// from: replaying it over that must change nothing.
		again := map[string]*mirrorRecord{}
		rewritten := stateRecords(table)
		for i := range rewritten {
			applyState(again, &rewritten[i])
			applyState(table, &rewritten[i])
			if over := stateRecords(table); !reflect.DeepEqual(over, rewritten) {
				t.Fatalf("got %+v\nwant %+v\nafter %d of them", over, rewritten, i+1)
			}
		}
		if alone := stateRecords(again); !reflect.DeepEqual(alone, rewritten) {
			t.Fatalf("got %+v\nwant %+v", alone, rewritten)
		}
	})
}
