package replicator

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestTopology_OneSourceIntoTwoAgents(t *testing.T) {
	s, topic := tenBatches(t)
	x := agentOf(t, "cluster-x", "127.0.0.1:0", s.addr())
	y := agentOf(t, "cluster-y", "127.0.0.1:0", s.addr(), "mirror.m.mirror.leader.epoch.policy", "rebase")
	s.update(func() { topic.partitions[0].append(dataBatch(100, 10)) })
	x.awaitEnd(t, "t", 0, 110)
	y.awaitEnd(t, "t", 0, 110)
	x.mustEqual(t, s, topic, 0)
	y.mustEqual(t, s, topic, 0)
}

// TestTopology_TwoSourcesIntoOneAgent has a topic of each, and one that both have: the mirror that held it first keeps it.
func TestTopology_TwoSourcesIntoOneAgent(t *testing.T) {
	s1, s2 := newTestSource(t), newTestSource(t)
	s2.clusterID = "other-source"
	one, two := s1.addTopic("one", 1), s2.addTopic("two", 1)
	both := s1.addTopic("both", 1)
	s1.update(func() {
		one.partitions[0].append(dataBatch(0, 10))
		both.partitions[0].append(dataBatch(0, 10))
	})
	s2.update(func() { two.partitions[0].append(dataBatch(0, 20)) })
	a := agentOf(t, "cluster-x", "127.0.0.1:0", s1.addr(), "mirrors", "m,n",
		"mirror.n.bootstrap.servers", s2.addr(), "mirror.n.mirror.topics.include", ".*",
		"mirror.n.mirror.fetch.wait.max.ms", "100")
	a.awaitEnd(t, "one", 0, 10)
	a.awaitEnd(t, "two", 0, 20)
	a.awaitEnd(t, "both", 0, 10)
	other := s2.addTopic("both", 1)
	s2.update(func() { other.partitions[0].append(dataBatch(0, 30)) })
	await(t, patience, "the second mirror's is a conflict", func() bool {
		for _, m := range a.Status().Mirrors {
			for _, p := range m.Partitions {
				if m.Name == "n" && p.Topic == "both" {
					return p.State == StateFailed && p.Cause == CauseConflict
				}
			}
		}
		return false
	})
	a.mustEqual(t, s1, one, 0)
	a.mustEqual(t, s2, two, 0)
	a.mustEqual(t, s1, both, 0)
}

func TestServing_ReadCommittedStopsBeforeATransactionThatIsOpen(t *testing.T) {
	s := newTestSource(t)
	topic := s.addTopic("t", 1)
	s.update(func() { topic.partitions[0].append(dataBatch(0, 5), txnBatch(5, 3, 4001), dataBatch(8, 4)) })
	a := agentOf(t, "cluster-x", "127.0.0.1:0", s.addr())
	await(t, patience, "served", func() bool { return a.partition("t", 0).HighWatermark == 12 })
	r := &runningAgent{Agent: a.Agent}
	client := consumer(t, r, "t", 1, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if got := consume(t, client, 5); len(got[0]) != 5 {
		t.Fatalf("%d records before the open transaction", len(got[0]))
	}
	if got := consume(t, consumer(t, r, "t", 1), 12); len(got[0]) != 12 {
		t.Errorf("%d records uncommitted", len(got[0]))
	}
	commit := []byte{0, 0, 0, 1}
	s.update(func() { topic.partitions[0].append(markerBatch(12, 4001, commit, []byte{0, 0, 0, 0, 0, 0})) })
	if got := consume(t, client, 7); len(got[0]) != 7 {
		t.Errorf("%d records once it was committed", len(got[0]))
	}
}

func TestServing_LogStartFollowsTheSources(t *testing.T) {
	s, topic := tenBatches(t)
	a := agentOf(t, "cluster-x", "127.0.0.1:0", s.addr())
	a.awaitEnd(t, "t", 0, 100)
	s.update(func() { topic.partitions[0].logStart = 40 })
	await(t, patience, "the log start follows", func() bool { return a.partition("t", 0).LogStart == 40 })
	r := readerOf(t, &runningAgent{Agent: a.Agent}, "reader")
	for offset, code := range map[int64]int16{39: 1, 40: 0} {
		req := oneShot(r, "t", offset)
		if _, got := r.ask(t, req); got[0].code != code || code == 0 && got[0].next != 100 {
			t.Errorf("offset %d: %+v, want code %d", offset, got[0], code)
		}
	}
}
