package replicator

import (
	"log/slog"
	"time"
)

// roleReplica is the value of mirror.role for an agent that mirrors the first agent of its own cluster. It takes that
// one's markers and producer reset as data and never writes its own: a topic is STOPPED here once it is there and both
// hold the same, and not before, whatever is asked for.
const roleReplica = "replica"

// closing is how a replica follows the first agent into STOPPED. Owner: the mirror's goroutine.
type closing struct {
	since time.Time // when the first agent was first seen to have stopped the topic; zero = it has not
	done  bool      // both hold the same
}

// misplaced says why this agent must not mirror that source: a replica follows an agent of its own cluster, and never
// itself.
func (m *mirror) misplaced(a *refresh) *failure {
	own := m.agent.clusterID()
	switch {
	case m.agent.cfg.Role != roleReplica:
		return nil
	case a.clusterID != own || !a.agent:
		what := "a broker"
		if a.agent {
			what = "an agent"
		}
		return failf(CauseRole, "mirror.role is replica: the source has to be an agent of cluster %s, and is %s of cluster "+
			"%s", own, what, a.clusterID)
	case a.brokers[m.agent.cfg.NodeID] != "":
		return failf(CauseRole, "the source is node %d of cluster %s, as this agent is", m.agent.cfg.NodeID, own)
	}
	return nil
}

// wanted is what is to become of a topic: one that is to be stopped and has to wait for the first agent is mirrored.
// Any goroutine.
func (t *topic) wanted() Wanted {
	want := Wanted(t.want.Load())
	if want == WantedStopped && t.waits.Load() {
		return WantedMirroring
	}
	return want
}

// await settles whether a topic that is to be stopped waits for the first agent.
func (m *mirror) await(t *topic, want Wanted) {
	if want != WantedStopped {
		t.closing.done = false
	}
	waits := want == WantedStopped && m.agent.cfg.Role == roleReplica && !t.closing.done
	if waits && !t.waits.Load() {
		m.logger.Info("the stop waits for the first agent to stop the topic", slog.String("topic", t.name))
	}
	t.waits.Store(waits)
}

// closeAfter stops a replica's topic once the first agent has, and both hold the same: by an answer of each partition's
// source that came after that was seen.
func (m *mirror) closeAfter(t *topic, up upstream) {
	if m.agent.cfg.Role != roleReplica || t.closing.done {
		return
	}
	if !up.stopped {
		t.closing.since = time.Time{}
		return
	}
	m.askSoon()
	if t.closing.since.IsZero() {
		t.closing.since = time.Now()
		return
	}
	if len(t.partitions) != len(up.ends) {
		return
	}
	for _, p := range t.partitions {
		if !p.equalsStopped(t.closing.since, up.ends) {
			return
		}
	}
	m.logger.Info("the first agent has stopped the topic and both hold the same: it is stopped",
		slog.String("topic", t.name))
	t.closing.done = true
	t.waits.Store(false)
	if err := m.agent.stopFollowed(m.name, t.name); err != nil {
		t.closing.done = false
		m.logger.Error("a topic could not be stopped", slog.String("topic", t.name), slog.Any("err", err))
	}
}

// equalsStopped reports whether a partition ends where the source's does, by an answer that came after since.
func (p *partition) equalsStopped(since time.Time, ends map[int32]int64) bool {
	log, answered := p.stats.log.Load(), p.stats.answered.Load()
	last, known := ends[p.tp.Partition]
	if log == nil || answered == nil || !known || p.state() != StateMirroring {
		return false
	}
	end := log.LogEndOffset()
	return answered.Load() > since.UnixMilli() && p.stats.sourceOffset.Load() == end && last <= end
}

// stopFollowed makes a topic of a mirror wanted STOPPED, unless it is.
func (a *Agent) stopFollowed(mirror, topic string) error {
	a.control.Lock()
	defer a.control.Unlock()
	if b := a.binding(topic); b.mirror != mirror || b.want == WantedStopped {
		return nil
	}
	return a.change([]MetadataRecord{bindRecord(topic, binding{mirror: mirror, want: WantedStopped})})
}
