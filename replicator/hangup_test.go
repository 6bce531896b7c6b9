package replicator

import (
	"testing"
	"time"

	"segmirror/fetchwire"
	"segmirror/segment"
)

// TestHangUp_HungLeaderLetsItsPartitionGo has a leader that answers no fetch, and then another leader: the partition
// is not held until the socket's time is over, which is an hour here.
func TestHangUp_HungLeaderLetsItsPartitionGo(t *testing.T) {
	s, hung := newTestSource(t), newTestSource(t)
	topic, same := s.addTopic("t", 1), hung.addTopic("t", 1)
	host, port := hung.hostPort()
	hung.update(func() { hung.hung = true })
	s.update(func() {
		s.others = []fetchwire.MetadataBroker{{NodeID: 2, Host: host, Port: port}}
		topic.partitions[0].leader = 2
		topic.partitions[0].append(dataBatch(0, 5))
	})
	a := startAgent(t, s, t.TempDir(), stayFailed("mirror.m.mirror.socket.timeout.ms", "3600000"))
	await(t, patience, "a fetch from the leader that hangs", func() bool {
		return len(hung.fetches(same.partitions[0])) > 0
	})
	s.update(func() {
		p := topic.partitions[0]
		p.leader, p.leaderEpoch = 1, 1
		p.epochs = append(p.epochs, segment.EpochEntry{Epoch: 1, StartOffset: p.end})
	})
	began := time.Now()
	a.awaitEnd(t, "t", 0, 5)
	t.Logf("left after %v", time.Since(began))
	a.mustEqual(t, s, topic, 0)
}
