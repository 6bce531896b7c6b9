package fetchwire

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
)

func wantPartition(topic string, id byte, index int32, offset int64) SessionPartition {
	return SessionPartition{
		Topic: topic, TopicID: [16]byte{id}, Slot: int(index) * 10,
		FetchPartition: FetchPartition{Partition: index, FetchOffset: offset, LastFetchedEpoch: -1},
	}
}

// named lists a request's partitions as topic-partition@offset, the forgotten ones as -topic-partition, in order.
func named(req *FetchRequest) (list []string) {
	for _, t := range req.Topics {
		for _, p := range t.Partitions {
			list = append(list, fmt.Sprintf("%s/%d-%d@%d", t.Topic, t.TopicID[0], p.Partition, p.FetchOffset))
		}
	}
	var forgotten []string // in no particular order
	for _, t := range req.Forgotten {
		for _, p := range t.Partitions {
			forgotten = append(forgotten, fmt.Sprintf("-%s/%d-%d", t.Topic, t.TopicID[0], p))
		}
	}
	slices.Sort(forgotten)
	return append(list, forgotten...)
}

// step is one round of a session: what is wanted, what the request must say, and the broker's answer.
type step struct {
	wanted []SessionPartition
	says   []string
	id     int32 // of the request
	epoch  int32
	answer int32 // session id answered
	code   int16
}

func run(t *testing.T, s *FetchSession, steps []step) {
	t.Helper()
	for i, st := range steps {
		req := s.Next(FetchParams{MaxBytes: 5}, st.wanted)
		if got := named(req); !reflect.DeepEqual(got, st.says) {
			t.Fatalf("step %d: the request says %q, want %q", i, got, st.says)
		}
		if req.SessionID != st.id || req.SessionEpoch != st.epoch {
			t.Fatalf("step %d: session %d epoch %d, want %d and %d", i, req.SessionID, req.SessionEpoch, st.id, st.epoch)
		}
		if req.ReplicaID != ConsumerReplicaID || req.ReplicaEpoch != -1 || req.MaxBytes != 5 {
			t.Fatalf("step %d: %+v", i, req)
		}
		err := s.HandleResponse(st.answer, st.code)
		if !errors.Is(err, CodeError(st.code)) {
			t.Fatalf("step %d: %v", i, err)
		}
	}
}

func TestFetchSession_SaysOnlyWhatChanged(t *testing.T) {
	a0, a1, b0 := wantPartition("a", 1, 0, 10), wantPartition("a", 1, 1, 20), wantPartition("b", 2, 0, 30)
	a0next := wantPartition("a", 1, 0, 11)
	run(t, NewFetchSession(17), []step{
		{[]SessionPartition{a0, b0, a1, a1}, []string{"a/1-0@10", "a/1-1@20", "b/2-0@30"}, 0, 0, 7, 0},
		{[]SessionPartition{a0, b0, a1}, nil, 7, 1, 7, 0},
		{[]SessionPartition{b0, a1, a0next}, []string{"a/1-0@11"}, 7, 2, 7, 0},
		{[]SessionPartition{a0next, a1}, []string{"-b/2-0"}, 7, 3, 7, 0},
		{[]SessionPartition{b0, a1}, []string{"b/2-0@30", "-a/1-0"}, 7, 4, 7, 0},
		{nil, []string{"-a/1-1", "-b/2-0"}, 7, 5, 7, 0},
		{[]SessionPartition{a0}, []string{"a/1-0@10"}, 7, 6, 7, 0},
	})
}

func TestFetchSession_BeginsAnewAfterErrors(t *testing.T) {
	a0 := []SessionPartition{wantPartition("a", 1, 0, 10)}
	all := []string{"a/1-0@10"}
	run(t, NewFetchSession(17), []step{
		{a0, all, 0, 0, 7, 0},
		{a0, nil, 7, 1, 0, CodeFetchSessionIDNotFound}, // evicted: the broker knows no id
		{a0, all, 0, 0, 8, 0},
		{a0, nil, 8, 1, 0, CodeInvalidFetchSessionEpoch}, // full, and the broker drops 8
		{a0, all, 8, 0, 9, 0},
		{a0, nil, 9, 1, 0, CodeFetchSessionTopicIDError},
		{a0, all, 9, 0, 10, 0},
		{a0, nil, 10, 1, 0, 0}, // the broker closed it
		{a0, all, 0, 0, 0, 0},  // the broker has no room: every request is full
		{a0, all, 0, 0, 11, 0},
		{a0, nil, 11, 1, 12, 0}, // an answer from another session
		{a0, all, 0, 0, 13, 0},
	})
}

func TestFetchSession_ResetAsksForAllAndEndsTheOldOne(t *testing.T) {
	a0 := []SessionPartition{wantPartition("a", 1, 0, 10)}
	s := NewFetchSession(17)
	run(t, s, []step{{a0, []string{"a/1-0@10"}, 0, 0, 7, 0}})
	s.Reset()
	run(t, s, []step{{nil, nil, 7, 0, 8, 0}, {a0, []string{"a/1-0@10"}, 8, 1, 8, 0}})
	end := s.CloseRequest()
	if end == nil || end.SessionID != 8 || end.SessionEpoch != -1 || len(end.Topics)+len(end.Forgotten) != 0 {
		t.Errorf("closing request: %+v", end)
	}
	if s.CloseRequest() != nil {
		t.Error("a closed session is closed again")
	}
	run(t, s, []step{{a0, []string{"a/1-0@10"}, 0, 0, 9, 0}})
}

func TestFetchSession_TopicCreatedAgainLeavesUnderItsOldID(t *testing.T) {
	run(t, NewFetchSession(17), []step{
		{[]SessionPartition{wantPartition("a", 1, 0, 10)}, []string{"a/1-0@10"}, 0, 0, 7, 0},
		{[]SessionPartition{wantPartition("a", 2, 0, 0)}, []string{"a/2-0@0", "-a/1-0"}, 7, 1, 7, 0},
	})
}

func TestFetchSession_GoesByNamesWhileAnIDIsUnknown(t *testing.T) {
	a, b := wantPartition("a", 1, 0, 1), wantPartition("b", 0, 0, 2)
	s := NewFetchSession(17)
	run(t, s, []step{
		{[]SessionPartition{a}, []string{"a/1-0@1"}, 0, 0, 7, 0},
		{[]SessionPartition{a, b}, []string{"a/1-0@1", "b/0-0@2"}, 7, 0, 8, 0},
	})
	if s.req.Version != 12 {
		t.Errorf("version %d", s.req.Version)
	}
	b.TopicID[0] = 2
	run(t, s, []step{{[]SessionPartition{a, b}, []string{"a/1-0@1", "b/2-0@2"}, 8, 0, 9, 0}})
	if s.req.Version != 17 {
		t.Errorf("version %d", s.req.Version)
	}
}

func TestFetchSession_OldBrokersHaveNone(t *testing.T) {
	a0 := []SessionPartition{wantPartition("a", 0, 0, 10)}
	all := []string{"a/0-0@10"}
	run(t, NewFetchSession(6), []step{{a0, all, 0, -1, 0, 0}, {a0, all, 0, -1, 0, 0}})
}

func TestFetchSession_EpochWrapsToOne(t *testing.T) {
	s := NewFetchSession(17)
	s.id, s.epoch, s.version = 7, math.MaxInt32, 17
	run(t, s, []step{{nil, nil, 7, math.MaxInt32, 7, 0}, {nil, nil, 7, 1, 7, 0}})
}

func TestFetchSession_WorksAgainstKfake(t *testing.T) {
	c := dialTest(t, startKfake(t, "one"))
	id := topicID(t, c, "t")
	version, err := c.Version(KeyFetch)
	if err != nil {
		t.Fatal(err)
	}
	s := NewFetchSession(version)
	for i := range int64(6) {
		want := wantPartition("t", 0, 0, i%2)
		want.TopicID, want.MaxBytes, want.CurrentLeaderEpoch = id, 1<<20, -1
		records := fetchOnce(t, c, s, want)
		if (len(records) > 0) != (want.FetchOffset == 0) {
			t.Fatalf("round %d: %d bytes from offset %d", i, len(records), want.FetchOffset)
		}
	}
	if s.id == 0 || s.epoch != 6 {
		t.Errorf("after six rounds: session %d, epoch %d", s.id, s.epoch)
	}
	stream, err := c.Fetch(t.Context(), s.CloseRequest())
	if err != nil {
		t.Fatal(err)
	}
	if stream.Next() || stream.Close() != nil || stream.Head().ErrorCode != CodeNone {
		t.Errorf("closing: %+v, %v", stream.Head(), stream.Err())
	}
}

func topicID(t *testing.T, c *Conn, name string) [16]byte {
	t.Helper()
	md, err := c.Metadata(t.Context(), &MetadataRequest{Topics: []MetadataRequestTopic{{Name: &name}}})
	if err != nil {
		t.Fatal(err)
	}
	return md.Topics[0].TopicID
}
