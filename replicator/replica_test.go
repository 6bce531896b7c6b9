package replicator

import (
	"slices"
	"strings"
	"testing"

	"segmirror/fetchwire"
)

// primaryAndReplica starts a first agent, node 1, and a replica of it, node 2 unless more says otherwise.
func primaryAndReplica(t *testing.T, more ...string) (s *testSource, topic *testTopic, primary, replica *testAgent) {
	t.Helper()
	s = newTestSource(t)
	topic = s.addTopic("t", 2)
	s.update(func() {
		for _, p := range topic.partitions {
			p.append(dataBatch(0, 10), txnBatch(10, 5, 4001))
		}
	})
	primary = agentOf(t, "cluster-b", "127.0.0.1:0", s.addr())
	replica = agentOf(t, "cluster-b", "127.0.0.1:0", primary.ListenerAddrs()[0],
		append([]string{"mirror.role", "replica", "node.id", "2"}, more...)...)
	return s, topic, primary, replica
}

func TestReplica_TakesTheFirstAgentsRecordsAndStopsAfterIt(t *testing.T) {
	s, topic, primary, replica := primaryAndReplica(t)
	for i := range topic.partitions {
		replica.awaitEnd(t, "t", i, 15)
	}
	replica.stopTopic(t, "t") // waits
	abort, reset := []byte{0, 0, 0, 0}, []byte{0, 0, 0, 7}
	s.update(func() { // as a first agent writes them when it stops: data to a replica
		for _, p := range topic.partitions {
			p.append(markerBatch(15, 4001, abort, []byte{0, 0, 0, 0, 0, 0}), markerBatch(16, -1, reset, []byte{0, 0, 2, 'c', 0}))
		}
	})
	for i := range topic.partitions {
		primary.awaitEnd(t, "t", i, 17)
		replica.awaitEnd(t, "t", i, 17)
	}
	if p := replica.awaitState(t, "t", StateMirroring); p.EndOffset != 17 {
		t.Errorf("%+v", p)
	}
	primary.stopTopic(t, "t")
	primary.awaitState(t, "t", StateStopped)
	for i := range topic.partitions {
		await(t, patience, "the replica stops", func() bool { return replica.partition("t", i).State == StateStopped })
	}
	primary.stop()
	replica.stop()
	for i := range topic.partitions {
		checkSame(t, diskBytes(t, replica.dir, "t", i), diskBytes(t, primary.dir, "t", i))
	}
	if log := replica.logged.String(); !strings.Contains(log, "the stop waits for the first agent") {
		t.Error("the wait was not named")
	}
}

func TestReplica_FollowsAStopThatNobodyAskedItForAndStaysStoppedAfterARestart(t *testing.T) {
	_, topic, primary, replica := primaryAndReplica(t)
	for i := range topic.partitions {
		replica.awaitEnd(t, "t", i, 15)
	}
	r := readerOf(t, &runningAgent{Agent: replica.Agent}, "operator")
	var described fetchwire.DescribeMirrorsResponse
	if err := r.Call(t.Context(), &fetchwire.DescribeMirrorsRequest{}, &described); err != nil {
		t.Fatal(err)
	}
	if m := described.Mirrors[0]; !m.Replica || !slices.Equal(m.Topics[0].SourceChain, []string{"cluster-b", "test-source-cluster-id"}) {
		t.Errorf("described as %+v", m)
	}
	primary.stopTopic(t, "t")
	replica.awaitState(t, "t", StateStopped)
	replica.stop()
	again := agentOfDir(t, replica.dir, "cluster-b", primary.ListenerAddrs()[0], "mirror.role", "replica", "node.id", "2")
	at := again.Status().Mirrors[0].Refreshed
	await(t, patience, "a look", func() bool { return again.Status().Mirrors[0].Refreshed.After(at) })
	if p := again.partition("t", 0); p.State != StateStopped {
		t.Errorf("%+v", p)
	}
}

func TestReplica_OfWhatItMayNotMirrorIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ cluster, node, words string }{
		"itself":          {"cluster-b", "1", "node 1 of cluster cluster-b, as this agent is"},
		"another cluster": {"cluster-c", "2", "has to be an agent of cluster cluster-c, and is an agent of cluster cluster-b"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, _, replica := primaryAndReplica(t, "cluster.id", c.cluster, "node.id", c.node)
			await(t, patience, "refused", func() bool { return replica.partition("t", 0).Cause == CauseRole })
			if text := replica.partition("t", 0).CauseText; !strings.Contains(text, c.words) {
				t.Errorf("%q", text)
			}
		})
	}
	s, _ := tenBatches(t)
	a := agentOf(t, "test-source-cluster-id", "127.0.0.1:0", s.addr(), "mirror.role", "replica")
	await(t, patience, "refused", func() bool { return a.partition("t", 0).Cause == CauseRole })
}
