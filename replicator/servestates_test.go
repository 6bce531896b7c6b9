package replicator

import (
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"segmirror/fetchwire"
	"segmirror/segment"
)

// toldLeaderEpoch is the leader epoch that clients are told of a partition, and its topic's id.
func toldLeaderEpoch(t *testing.T, a *runningAgent, topic string, partition int32) (int32, [16]byte) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(a.ListenerAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	topics, err := kadm.NewClient(client).ListTopics(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	return topics[topic].Partitions[partition].LeaderEpoch, topics[topic].ID
}

func TestBumpLeaderEpochs_IsServedAndKept(t *testing.T) {
	s := newFakeKafka(t)
	s.createTopic(t, "orders", 2)
	s.produce(t, "orders", 0, 30)
	props := s.properties(t.TempDir(), "listeners", "PLAINTEXT://127.0.0.1:0")
	a := runAgent(t, props)
	caughtUp(t, a, "orders", 2)
	client := consumer(t, a, "orders", 2)
	consume(t, client, 30)
	before, id := toldLeaderEpoch(t, a, "orders", 0)
	conn := caller(t, a)
	bump := func(id [16]byte, partition, epoch int32) int16 {
		resp := call(t, conn, &fetchwire.BumpLeaderEpochsRequest{Topics: []fetchwire.BumpLeaderEpochsTopic{
			{TopicID: id, Partitions: []fetchwire.BumpLeaderEpoch{{PartitionIndex: partition, MinLeaderEpoch: epoch}}},
		}}, &fetchwire.BumpLeaderEpochsResponse{})
		return resp.Topics[0].Partitions[0].ErrorCode
	}
	for _, c := range []struct {
		id               [16]byte
		partition, epoch int32
		want             int16
	}{
		{id, 0, -1, fetchwire.CodeNone},
		{id, 0, before + 40, fetchwire.CodeNone},
		{id, 0, before + 10, fetchwire.CodeNone}, // lower: it is as high as asked
		{id, 0, -2, fetchwire.CodeInvalidRequest},
		{id, 7, 5, fetchwire.CodeUnknownTopicOrPartition},
		{[16]byte{1}, 0, 5, fetchwire.CodeUnknownTopicID},
	} {
		if got := bump(c.id, c.partition, c.epoch); got != c.want {
			t.Errorf("epoch %d of partition %d: %s, want %s", c.epoch, c.partition, fetchwire.ErrorName(got),
				fetchwire.ErrorName(c.want))
		}
	}
	check := func() {
		t.Helper()
		if got, _ := toldLeaderEpoch(t, a, "orders", 0); got != before+40 {
			t.Errorf("clients are told leader epoch %d, want %d", got, before+40)
		}
		if got, _ := toldLeaderEpoch(t, a, "orders", 1); got != before {
			t.Errorf("of the other partition clients are told leader epoch %d, want %d", got, before)
		}
	}
	check()
	for _, c := range []struct {
		current, asked int32
		code           int16
		epoch          int32
		end            int64
	}{
		{before, before, fetchwire.CodeFencedLeaderEpoch, -1, -1},
		{before + 41, before, fetchwire.CodeUnknownLeaderEpoch, -1, -1},
		{before + 40, before, fetchwire.CodeNone, before, 30},
		{before + 40, before + 39, fetchwire.CodeNone, before, 30},
		{before + 40, before + 40, fetchwire.CodeNone, before + 40, 30},
	} {
		resp := call(t, conn, &fetchwire.OffsetForLeaderEpochRequest{
			ReplicaID: -1, Topics: []fetchwire.OffsetForLeaderTopic{{Topic: "orders", Partitions: []fetchwire.OffsetForLeaderPartition{
				{Partition: 0, CurrentLeaderEpoch: c.current, LeaderEpoch: c.asked},
			}}},
		}, &fetchwire.OffsetForLeaderEpochResponse{})
		p := resp.Topics[0].Partitions[0]
		if p.ErrorCode != c.code || p.LeaderEpoch != c.epoch || p.EndOffset != c.end {
			t.Errorf("leader epoch %d asks where %d ends: %+v, want %+v", c.current, c.asked, p, c)
		}
	}
	s.produce(t, "orders", 0, 20)
	consume(t, client, 20) // it was told another epoch before
	a.stop(t)
	a = runAgent(t, props)
	caughtUp(t, a, "orders", 2)
	check()
	consume(t, consumer(t, a, "orders", 2), 50)
}

func TestMirrorStates_AreReadAndWritten(t *testing.T) {
	s := newFakeKafka(t)
	s.createTopic(t, "orders", 2)
	s.createTopic(t, "payments", 1)
	props := s.properties(t.TempDir(), "listeners", "PLAINTEXT://127.0.0.1:0")
	a := runAgent(t, props)
	caughtUp(t, a, "orders", 2)
	caughtUp(t, a, "payments", 1)
	conn := caller(t, a)
	read := func(topics ...fetchwire.ReadMirrorStatesTopic) string {
		t.Helper()
		resp := call(t, conn, &fetchwire.ReadMirrorStatesRequest{MirrorName: "dr", Topics: topics},
			&fetchwire.ReadMirrorStatesResponse{})
		if err := resp.Err(); err != nil {
			t.Fatal(err)
		}
		out := ""
		for _, topic := range resp.Topics {
			for _, p := range topic.Partitions {
				out += fmt.Sprintf("%s-%d %s epoch %d end %d code %d; ", topic.Name, p.PartitionIndex, State(p.State),
					p.LastMirrorEpoch, p.LastMirroredEnd, p.ErrorCode)
			}
		}
		return out
	}
	write := func(stopped []string, states ...fetchwire.MirrorStatesTopic) (string, error) {
		t.Helper()
		resp := call(t, conn, &fetchwire.WriteMirrorStatesRequest{MirrorName: "dr", Topics: states, StoppedTopics: stopped},
			&fetchwire.WriteMirrorStatesResponse{})
		out := ""
		for _, topic := range resp.Topics {
			for _, p := range topic.Partitions {
				out += fmt.Sprintf("%s-%d %d; ", topic.Name, p.PartitionIndex, p.ErrorCode)
			}
		}
		return out, resp.Err()
	}
	await(t, patience, "the states are stored", func() bool {
		return read() == "orders-0 MIRRORING epoch -1 end -1 code 0; orders-1 MIRRORING epoch -1 end -1 code 0; "+
			"payments-0 MIRRORING epoch -1 end -1 code 0; "
	})
	got, err := write(nil, fetchwire.MirrorStatesTopic{Name: "orders", Partitions: []fetchwire.MirrorPartitionState{
		{PartitionIndex: 0, State: int8(StateMirroring), LastMirrorEpoch: 4, LastMirroredEnd: 9},
		{PartitionIndex: 1, State: int8(StateStopped), LastMirrorEpoch: 4, LastMirroredEnd: 9},
		{PartitionIndex: 5, State: int8(StateMirroring), LastMirrorEpoch: -1, LastMirroredEnd: -1},
	}})
	if want := "orders-0 0; orders-1 42; orders-5 3; "; got != want || err != nil {
		t.Errorf("written: %s %v, want %s", got, err, want)
	}
	if got, want := read(fetchwire.ReadMirrorStatesTopic{Name: "orders", Partitions: []int32{0, 1, 5}}),
		"orders-0 MIRRORING epoch 4 end 9 code 0; orders-1 MIRRORING epoch -1 end -1 code 0; "+
			"orders-5 UNKNOWN epoch -1 end -1 code 3; "; got != want {
		t.Errorf("read %s\nwant %s", got, want)
	}
	var code fetchwire.KafkaError
	if _, err := write([]string{"none"}); !errors.As(err, &code) || code.Code != fetchwire.CodeUnknownTopicOrPartition {
		t.Errorf("an unknown topic to be stopped: %v", err)
	}
	if _, err := write([]string{"payments"}); err != nil {
		t.Error(err)
	}
	if got := a.metadata.config(resource{resourceTopic, "payments"})[keyMirrorName]; got != "dr.stopped" {
		t.Errorf("payments is bound to %q", got)
	}
	a.awaitState(t, "payments", 0, StateStopped)
	unknown := call(t, conn, &fetchwire.ReadMirrorStatesRequest{MirrorName: "us"}, &fetchwire.ReadMirrorStatesResponse{})
	if unknown.ErrorCode != fetchwire.CodeUnknownMirror {
		t.Errorf("an unknown mirror: %v", unknown.Err())
	}
}

// A mirror that is deleted leaves nothing: the tombstones of its states, and then that of its last mirror epochs.
func TestDeleteMirror_WritesTombstonesStatesFirst(t *testing.T) {
	s := newFakeKafka(t)
	a, conn := withCreated(t, s, "cluster.id", "c", "node.id", "1")
	resp := call(t, conn, &fetchwire.DeleteMirrorRequest{MirrorName: "eu"}, &fetchwire.DeleteMirrorResponse{})
	if err := resp.Err(); err != nil {
		t.Fatal(err)
	}
	a.stop(t)
	dir, log := openStates(t, a.cfg.LogDirs[0])
	var records []StateRecord
	for offset := log.log.LogStartOffset(); offset < log.log.LogEndOffset(); {
		slice, err := log.log.Read(offset, 1<<20, segment.ReadLogEnd)
		if err != nil {
			t.Fatal(err)
		}
		if err := slice.View(func(b []byte) error {
			for it := segment.NewBatchIterator(b); it.Next(); {
				if err := eachRecord(it.Batch(), func(key, value []byte) error {
					r, err := DecodeStateRecord(key, value)
					records = append(records, r)
					return err
				}); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		offset = slice.NextOffset()
		if err := slice.Release(); err != nil {
			t.Fatal(err)
		}
	}
	var tombstones []int16
	for _, r := range records {
		if r.Mirror == "eu" && r.Tombstone {
			tombstones = append(tombstones, r.Type)
		}
	}
	if got := fmt.Sprint(tombstones); got != fmt.Sprint([]int16{recordPartitionState, recordLastMirrorEpochs}) {
		t.Errorf("tombstones of types %s", got)
	}
	if m := log.mirror("eu"); m.sourceClusterID != "" || len(m.partitions) > 0 {
		t.Errorf("%+v is left", m)
	}
	log.close()
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
}
