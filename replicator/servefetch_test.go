package replicator

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"segmirror/fetchwire"
	"segmirror/segment"
)

// reader is a connection to an agent, and the ids of its topics.
type reader struct {
	*fetchwire.Conn
	ids map[string][16]byte
}

func readerOf(t *testing.T, a *runningAgent, clientID string) *reader {
	t.Helper()
	conn, err := fetchwire.Dial(t.Context(), fetchwire.DialConfig{Addr: a.ListenerAddrs()[0], ClientID: clientID})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	meta, err := conn.Metadata(t.Context(), &fetchwire.MetadataRequest{})
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{Conn: conn, ids: map[string][16]byte{}}
	for _, topic := range meta.Topics {
		r.ids[*topic.Name] = topic.TopicID
	}
	return r
}

func (r *reader) want(topic string, index int32, offset int64) fetchwire.SessionPartition {
	return fetchwire.SessionPartition{
		Topic: topic, TopicID: r.ids[topic], Slot: int(index), FetchPartition: fetchwire.FetchPartition{
			Partition: index, CurrentLeaderEpoch: -1, FetchOffset: offset, LastFetchedEpoch: -1, LogStartOffset: -1,
			MaxBytes: 1 << 20, HighWatermark: fetchwire.NoHighWatermark, MirrorLeaderEpoch: -1,
		},
	}
}

// answered is what one fetch said of a partition.
type answered struct {
	code      int16
	highMark  int64
	diverging fetchwire.EpochEndOffset
	next      int64 // behind the last batch; 0 = no records
	batches   int
	epoch     int32 // MirrorLeaderEpoch
}

// ask fetches and returns the top-level code, and the answers by partition.
func (r *reader) ask(t *testing.T, req *fetchwire.FetchRequest) (fetchwire.FetchHead, map[int32]answered) {
	t.Helper()
	stream, err := r.Fetch(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	head, out := stream.Head(), map[int32]answered{}
	for stream.Next() {
		p := *stream.Partition()
		records, err := io.ReadAll(stream)
		if err != nil {
			t.Fatal(err)
		}
		tail, err := stream.Finish()
		if err != nil {
			t.Fatal(err)
		}
		got := answered{code: p.ErrorCode, highMark: p.HighWatermark, diverging: tail.DivergingEpoch, epoch: tail.MirrorLeaderEpoch}
		for it := segment.NewBatchIterator(records); it.Next(); got.batches++ {
			got.next = it.Batch().LastOffset() + 1
		}
		out[p.Index] = got
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	return head, out
}

func TestServedFetch_ASessionTellsOnlyWhatChanged(t *testing.T) {
	s := newFakeKafka(t)
	s.createTopic(t, "orders", 3)
	s.produce(t, "orders", 0, 20)
	a := serving(t, s)
	caughtUp(t, a, "orders", 3)
	r := readerOf(t, a, "reader")
	session := fetchwire.NewFetchSession(18)
	wanted := []fetchwire.SessionPartition{r.want("orders", 0, 0), r.want("orders", 1, 0), r.want("orders", 2, 0)}
	next := func(maxWait, minBytes int32) map[int32]answered {
		head, got := r.ask(t, session.Next(
			fetchwire.FetchParams{MaxWaitMs: maxWait, MinBytes: minBytes, MaxBytes: 1 << 20}, wanted))
		if err := session.HandleResponse(head.SessionID, head.ErrorCode); err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := next(0, 1); len(got) != 3 || got[0].next != 20 || got[0].highMark != 20 || got[1].batches != 0 {
		t.Fatalf("the full answer: %+v", got)
	}
	wanted[0].FetchOffset = 20
	if got := next(0, 1); len(got) != 0 {
		t.Errorf("nothing changed: %+v", got)
	}
	produced := make(chan error, 1)
	go func() {
		produced <- s.client.ProduceSync(context.Background(), &kgo.Record{Topic: "orders", Partition: 1}).FirstErr()
	}()
	began := time.Now()
	if got := next(longPollMs, 1); len(got) != 1 || got[1].next != 1 || time.Since(began) > patience {
		t.Errorf("a long poll, after %v: %+v", time.Since(began), got)
	}
	if err := <-produced; err != nil {
		t.Fatal(err)
	}
	wanted = wanted[1:]
	wanted[0].FetchOffset = 1
	s.produce(t, "orders", 0, 10)
	a.awaitEnd(t, "orders", 0, 30)
	if got := next(0, 1); len(got) != 0 {
		t.Errorf("a forgotten partition: %+v", got)
	}
}

func TestServedFetch_RefusesSessionsThatAreNotOurs(t *testing.T) {
	s := newFakeKafka(t)
	s.createTopic(t, "orders", 1)
	a := serving(t, s)
	caughtUp(t, a, "orders", 1)
	r := readerOf(t, a, "reader")
	ask := func(id, epoch int32) fetchwire.FetchHead {
		want := r.want("orders", 0, 0)
		head, _ := r.ask(t, &fetchwire.FetchRequest{
			ReplicaID: -1, ReplicaEpoch: -1, MaxBytes: 1, SessionID: id, SessionEpoch: epoch, Topics: []fetchwire.FetchTopic{
				{TopicID: want.TopicID, Partitions: []fetchwire.FetchPartition{want.FetchPartition}},
			},
		})
		return head
	}
	if head := ask(77, 1); head.ErrorCode != fetchwire.CodeFetchSessionIDNotFound {
		t.Errorf("an unknown session: %+v", head)
	}
	opened := ask(0, 0)
	if opened.ErrorCode != 0 || opened.SessionID <= 0 {
		t.Fatalf("a new session: %+v", opened)
	}
	if head := ask(opened.SessionID, 2); head.ErrorCode != fetchwire.CodeInvalidFetchSessionEpoch {
		t.Errorf("an epoch ahead: %+v", head)
	}
	if head := ask(opened.SessionID, 1); head.ErrorCode != 0 || head.SessionID != opened.SessionID {
		t.Errorf("the next epoch: %+v", head)
	}
	if head := ask(opened.SessionID, -1); head.ErrorCode != 0 || head.SessionID != 0 {
		t.Errorf("the session's end: %+v", head)
	}
	if head := ask(opened.SessionID, 2); head.ErrorCode != fetchwire.CodeFetchSessionIDNotFound {
		t.Errorf("after its end: %+v", head)
	}
}

func TestServedFetch_AnswersEachPartitionForItself(t *testing.T) {
	s := newFakeKafka(t)
	s.createTopic(t, "orders", 2)
	s.produce(t, "orders", 0, 30)
	s.produce(t, "orders", 1, 30)
	a := serving(t, s)
	caughtUp(t, a, "orders", 2)
	r := readerOf(t, a, "reader")
	once := func(maxBytes int32, wanted ...fetchwire.SessionPartition) map[int32]answered {
		_, got := r.ask(t, fetchwire.NewFetchSession(18).Next(fetchwire.FetchParams{MinBytes: 1, MaxBytes: maxBytes}, wanted))
		return got
	}
	beyond := r.want("orders", 0, 31)
	if got := once(1<<20, beyond, r.want("orders", 1, 0)); got[0].code != fetchwire.CodeOffsetOutOfRange || got[1].next != 30 {
		t.Errorf("an offset beyond the end: %+v", got)
	}
	if got := once(1<<20, r.want("orders", 7, 0)); got[7].code != fetchwire.CodeUnknownTopicOrPartition {
		t.Errorf("a partition that is not there: %+v", got)
	}
	unknown := r.want("orders", 0, 0)
	unknown.Topic, unknown.TopicID = "other", [16]byte{1}
	if got := once(1<<20, unknown); got[0].code != fetchwire.CodeUnknownTopicID {
		t.Errorf("a topic id that is not there: %+v", got)
	}
	future := r.want("orders", 0, 0)
	future.CurrentLeaderEpoch = 99
	if got := once(1<<20, future); got[0].code != fetchwire.CodeUnknownLeaderEpoch {
		t.Errorf("a leader epoch to come: %+v", got)
	}
	if got := once(1, r.want("orders", 0, 0), r.want("orders", 1, 0)); got[0].batches != 1 || got[1].batches != 0 {
		t.Errorf("one byte: the first batch and no other: %+v", got)
	}
	parted := r.want("orders", 0, 20)
	parted.LastFetchedEpoch = leaderEpochOf(t, r) + 5
	got := once(1<<20, parted)
	if got[0].diverging.EndOffset < 0 && got[0].code != fetchwire.CodeOffsetOutOfRange {
		t.Errorf("an epoch the copy never had: %+v", got)
	}
}

func leaderEpochOf(t *testing.T, r *reader) int32 {
	t.Helper()
	meta, err := r.Metadata(t.Context(), &fetchwire.MetadataRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return meta.Topics[0].Partitions[0].LeaderEpoch
}

func TestServer_ClosesWhatItDoesNotSpeakAndServesTheOthers(t *testing.T) {
	s := newFakeKafka(t)
	s.createTopic(t, "orders", 1)
	a := serving(t, s)
	caughtUp(t, a, "orders", 1)
	stranger := readerOf(t, a, "stranger")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := stranger.Call(ctx, &fetchwire.ProduceRequest{}, &fetchwire.ProduceResponse{}); err == nil {
		t.Error("records without acks were answered")
	}
	if r := readerOf(t, a, "reader"); len(r.ids) != 1 {
		t.Errorf("topics %v", r.ids)
	}
}

// oneShot is a fetch of one partition from an offset, without a session.
func oneShot(r *reader, topic string, offset int64) *fetchwire.FetchRequest {
	return fetchwire.NewFetchSession(18).Next(fetchwire.FetchParams{MinBytes: 1, MaxBytes: 1 << 20},
		[]fetchwire.SessionPartition{r.want(topic, 0, offset)})
}
