package replicator

import (
	"strings"
	"testing"

	"segmirror/fetchwire"
)

// agentOf starts an agent of a cluster that serves, and mirrors every topic of source.
func agentOf(t *testing.T, cluster, listen, source string, more ...string) *testAgent {
	t.Helper()
	return agentOfDir(t, t.TempDir(), cluster, source, append([]string{"listeners", "PLAINTEXT://" + listen}, more...)...)
}

// agentOfDir is agentOf in a directory that may hold something already.
func agentOfDir(t *testing.T, dir, cluster, source string, more ...string) *testAgent {
	t.Helper()
	props := map[string]string{"cluster.id": cluster, "mirror.m.bootstrap.servers": source}
	for i := 0; i < len(more); i += 2 {
		props[more[i]] = more[i+1]
	}
	return startAgent(t, newTestSource(t), dir, props)
}

// stopTopic stops a topic of an agent's mirror "m".
func (a *testAgent) stopTopic(t *testing.T, name string) {
	t.Helper()
	conn, err := fetchwire.Dial(t.Context(), fetchwire.DialConfig{Addr: a.ListenerAddrs()[0], ClientID: "operator"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var resp fetchwire.StopMirrorTopicsResponse
	req := &fetchwire.StopMirrorTopicsRequest{MirrorName: "m", Topics: []fetchwire.MirrorTopic{{TopicName: name}}}
	if err := conn.Call(t.Context(), req, &resp); err != nil || resp.ErrorCode != fetchwire.CodeNone {
		t.Fatalf("%+v, %v", resp, err)
	}
}

func (a *testAgent) awaitState(t *testing.T, topic string, state State) PartitionStatus {
	t.Helper()
	var p PartitionStatus
	await(t, patience, topic+" is "+state.String(), func() bool {
		p = a.partition(topic, 0)
		return p.State == state
	})
	return p
}

// TestLoop_IsRefusedWhereItCloses has a cluster A with an agent of its own, and the agents B and C; t goes from A to B
// and, in one case, on to C.
func TestLoop_IsRefusedWhereItCloses(t *testing.T) {
	for name, third := range map[string]bool{"directly": false, "through a third": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, topic := tenBatches(t)
			const own = "test-source-cluster-id"
			b := agentOf(t, "cluster-b", "127.0.0.1:0", s.addr())
			from, forward, want := b, []*testAgent{b}, own+" <- cluster-b <- "+own
			if third {
				from = agentOf(t, "cluster-c", "127.0.0.1:0", b.ListenerAddrs()[0])
				forward, want = append(forward, from), own+" <- cluster-c <- cluster-b <- "+own
			}
			a := agentOf(t, own, "127.0.0.1:0", from.ListenerAddrs()[0]) // all start at once
			await(t, patience, "the loop is found", func() bool { return a.partition("t", 0).Cause == CauseLoop })
			if p := a.awaitState(t, "t", StateFailed); p.CauseText != "mirror loop: t: "+want {
				t.Errorf("%q, want %q", p.CauseText, want)
			}
			s.update(func() { topic.partitions[0].append(dataBatch(100, 10)) })
			for _, f := range forward {
				f.awaitEnd(t, "t", 0, 110)
			}
			for range 5 { // it stays so, look after look
				at := a.Status().Mirrors[0].Refreshed
				await(t, patience, "another look", func() bool { return a.Status().Mirrors[0].Refreshed.After(at) })
				if p := a.partition("t", 0); p.Cause != CauseLoop {
					t.Fatalf("%+v", p)
				}
			}
			from.stopTopic(t, "t")
			from.awaitState(t, "t", StateStopped)
			a.awaitEnd(t, "t", 0, 110)
		})
	}
}

func TestLoop_MirrorsOfDifferentTopicsBothWaysAreNone(t *testing.T) {
	s1, s2 := newTestSource(t), newTestSource(t)
	s2.clusterID = "other-source"
	for s, name := range map[*testSource]string{s1: "one", s2: "two"} {
		topic := s.addTopic(name, 1)
		s.update(func() { topic.partitions[0].append(dataBatch(0, 10)) })
	}
	two := []string{
		"mirrors", "m,back", "mirror.back.mirror.topics.include", ".*", "mirror.back.mirror.fetch.wait.max.ms", "100",
	}
	x := agentOf(t, "cluster-x", "127.0.0.1:0", s1.addr(), "mirror.m.mirror.topics.include", "one")
	y := agentOf(t, "cluster-y", "127.0.0.1:0", s2.addr(), append(two, "mirror.back.bootstrap.servers", x.ListenerAddrs()[0],
		"mirror.m.mirror.topics.include", "two", "mirror.back.mirror.topics.include", "one")...)
	z := agentOf(t, "cluster-x", "127.0.0.1:0", y.ListenerAddrs()[0], "mirror.m.mirror.topics.include", "two", "node.id", "2")
	y.awaitEnd(t, "one", 0, 10)
	y.awaitEnd(t, "two", 0, 10)
	z.awaitEnd(t, "two", 0, 10)
}

func TestLoop_AMirrorOfTheOwnClusterIsOne(t *testing.T) {
	s, _ := tenBatches(t)
	a := agentOf(t, "test-source-cluster-id", "127.0.0.1:0", s.addr())
	await(t, patience, "the loop is found", func() bool { return a.partition("t", 0).Cause == CauseLoop })
	if p := a.partition("t", 0); !strings.HasSuffix(p.CauseText, "t: test-source-cluster-id <- test-source-cluster-id") {
		t.Errorf("%q", p.CauseText)
	}
}
