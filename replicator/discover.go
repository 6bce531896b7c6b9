package replicator

import (
	"cmp"
	"log/slog"
	"slices"
	"time"

	"segmirror/fetchwire"
	"segmirror/segment"
)

// A look at the metadata that something called for comes after firstLook, then at doubling intervals up to lastLook.
const (
	firstLook = 50 * time.Millisecond
	lastLook  = 2 * time.Second
)

// ask asks the source for its metadata.
func (m *mirror) ask() {
	r := &m.refreshes
	if r.pending {
		r.again = true
		return
	}
	r.asked++
	r.pending = true
	known := map[string]bool{}
	for name, t := range m.topics {
		if t.followed() {
			known[name] = true
		}
	}
	m.source.asks.put(sourceAsk{seq: r.asked, known: known, filter: m.filter})
}

// followed reports whether the source is asked about a topic that a mirror lists: not while it rests.
func (t *topic) followed() bool {
	switch want := t.wanted(); want {
	case WantedStopped:
		return false
	case WantedPaused: // a partition may be on its way there
		return slices.ContainsFunc(t.partitions, func(p *partition) bool { return needsSource(p.state(), want) })
	default:
		return true
	}
}

// askSoon asks at once, and at growing intervals when asked again and again.
func (m *mirror) askSoon() {
	r := &m.refreshes
	if r.pending {
		r.again = true
		return
	}
	due := time.Now().Add(min(firstLook<<min(r.soon, 10), lastLook))
	if due.Before(r.due) {
		r.due = due
		r.soon++
	}
}

// answered takes an answer of the source.
func (m *mirror) answered(a *refresh) {
	r := &m.refreshes
	r.pending = false
	now := time.Now()
	if a.err != nil {
		r.failures++
		r.due = now.Add(min(m.agent.cfg.Retry.backoff(r.failures), m.agent.cfg.MetadataRefresh))
		m.errors.add(CauseSourceUnreachable)
		m.noteRefresh(time.Time{}, a.err.Error())
		if r.failures == 1 || r.failures%10 == 0 {
			m.logger.Warn("the source could not be asked", slog.Int("failures", r.failures), slog.Any("err", a.err))
		}
		m.unreachable(a.err)
		return
	}
	if r.failures > 0 {
		m.logger.Info("the source answers again", slog.Int("failures", r.failures))
	}
	r.back = r.failures > 0
	r.failures, r.answered = 0, a.seq
	r.due = now.Add(m.agent.cfg.MetadataRefresh)
	if r.again {
		r.again = false
		m.askSoon()
	} else {
		r.soon /= 2
	}
	m.noteRefresh(now, "")
	m.brokers = a.brokers
	for key, f := range m.fetchers {
		if addr := a.brokers[key.broker]; addr != "" {
			f.addr.Store(&addr)
		}
	}
	if !m.sameCluster(a.clusterID) {
		return
	}
	m.discover(a)
}

// noteRefresh publishes the outcome of a refresh for Status.
func (m *mirror) noteRefresh(at time.Time, err string) {
	m.board.mu.Lock()
	defer m.board.mu.Unlock()
	if !at.IsZero() {
		m.board.refreshed = at
	}
	m.board.refErr = err
}

// unreachable fails the partitions nobody fetches when the whole source cannot be asked. Those with a fetcher are
// its own affair: a bootstrap server that is away does not hurt them.
func (m *mirror) unreachable(err error) {
	if m.refreshes.failures < dialTries {
		return
	}
	cause := CauseSourceUnreachable
	if unauthenticated(err) {
		cause = CauseNotAuthorized
	}
	for _, t := range m.topics {
		for _, p := range t.partitions {
			if p.desk.phase == phaseWaiting && p.state() != StateFailed && t.followed() {
				m.fail(p, failf(cause, "%v", err))
			}
		}
	}
	m.store()
}

// sameCluster binds the mirror to the first cluster it meets, and fails everything at another.
func (m *mirror) sameCluster(id string) bool {
	if m.board.clusterID == "" && id != "" {
		if err := m.agent.states.append(StateRecord{
			Type: recordMirrorSource, Mirror: m.name, SourceClusterID: id, EpochPolicy: m.board.policy,
		}); err != nil {
			m.logger.Error("the source's cluster id could not be stored", slog.Any("err", err))
			m.refreshes.answered = 0
			m.refreshes.due = time.Now().Add(time.Second)
			return false
		}
		m.board.mu.Lock()
		m.board.clusterID = id
		m.board.mu.Unlock()
		m.logger.Info("source found", slog.String("source_cluster_id", id),
			slog.String("epoch_policy", m.board.policy.String()))
	}
	if id == m.board.clusterID {
		return true
	}
	why := failf(CauseClusterChanged, "the mirror is of cluster %s, the source is now %s", m.board.clusterID, id)
	for _, t := range m.topics {
		if t.followed() {
			m.setProblem(t, why)
		}
	}
	return false
}

// discover follows the source's topics and partitions.
func (m *mirror) discover(a *refresh) {
	if !m.claim(a) {
		return
	}
	answered := map[string]bool{}
	for i := range a.topics {
		found := &a.topics[i]
		answered[found.name] = true
		t := m.topics[found.name]
		if t != nil && !t.followed() {
			continue
		}
		switch found.code {
		case fetchwire.CodeNone:
			if t != nil {
				m.seen(t, found, a)
			}
		case fetchwire.CodeTopicAuthorizationFailed:
			if t != nil {
				m.setProblem(t, failf(CauseNotAuthorized, "%v", fetchwire.CodeError(found.code)))
			} else {
				m.logger.Warn("a topic may not be described", slog.String("topic", found.name))
			}
		case fetchwire.CodeUnknownTopicOrPartition, fetchwire.CodeUnknownTopicID:
			if t != nil {
				m.absent(t)
			}
		default: // passes, as LEADER_NOT_AVAILABLE of a new topic
			m.askSoon()
		}
	}
	for name, t := range m.topics {
		if !answered[name] && t.followed() {
			m.absent(t)
		}
	}
	m.discovered = true
}

// claim binds what the patterns found and nobody holds to the mirror. A topic that another mirror holds is listed, and
// is a conflict; one that another mirror stopped is left alone, as are our own.
func (m *mirror) claim(a *refresh) bool {
	var names []string
	for i := range a.topics {
		found := &a.topics[i]
		t := m.topics[found.name]
		held := t != nil && Wanted(t.want.Load()) != WantedNone
		if found.code == fetchwire.CodeNone && len(found.partitions) > 0 && !held && m.filter.match(found.name) {
			names = append(names, found.name)
		}
	}
	if len(names) == 0 {
		return true
	}
	bound, err := m.agent.claim(m.name, names)
	if err != nil {
		m.logger.Error("topics that were found could not be taken up", slog.Int("topics", len(names)), slog.Any("err", err))
		m.askSoon()
		return false
	}
	for _, name := range names {
		switch b := bound[name]; {
		case b.mirror == m.name:
			m.topic(name).want.Store(int32(b.want))
			m.logger.Info("topic found", slog.String("topic", name))
		case b.want != WantedStopped:
			m.topic(name)
		case !m.skipped[name]:
			m.skipped[name] = true
			m.logger.Info("a topic that was found is left alone: another mirror stopped it", slog.String("topic", name),
				slog.String("other", b.mirror))
		}
	}
	return true
}

// absent counts a sighting without the topic. The second makes it FAILED: nothing is cut, nothing sealed.
func (m *mirror) absent(t *topic) {
	if t.missing++; t.missing < 2 {
		m.askSoon()
		return
	}
	m.setProblem(t, failf(CauseTopicGone, "the source has no such topic any more; the copy is kept"))
}

// seen follows one topic that the source described.
func (m *mirror) seen(t *topic, found *sourceTopic, a *refresh) {
	t.missing = 0
	why := m.notOurs(t, found)
	if why == nil {
		why = m.misplaced(a)
	}
	if why == nil {
		why = m.follow(t, a.upstreams[t.name])
	}
	if why != nil {
		m.setProblem(t, why)
		m.growFailed(t, found, why)
		return
	}
	if t.id.IsZero() {
		t.id = found.id
	}
	m.setProblem(t, nil)
	m.readConfig(t, a)
	first := len(t.partitions) == 0
	slices.SortFunc(found.partitions, func(x, y sourcePartition) int { return cmp.Compare(x.index, y.index) })
	for _, sp := range found.partitions {
		p := t.byIndex[sp.index]
		if p == nil {
			p = m.addPartition(t, sp.index)
			p.late = !first || m.discovered && !t.told
			m.takeLog(p)
		}
		m.lead(p, sp)
	}
	m.closeAfter(t, a.upstreams[t.name])
}

// growFailed lists the partitions of a topic that is not ours, without making a directory for any.
func (m *mirror) growFailed(t *topic, found *sourceTopic, why *failure) {
	for _, sp := range found.partitions {
		if t.byIndex[sp.index] != nil {
			continue
		}
		p := m.addPartition(t, sp.index)
		if why.cause != CauseConflict {
			m.takeLog(p)
		}
		m.fail(p, why)
	}
}

// notOurs says why a topic of this name is not the one we hold a copy of: any partition's directory tells.
func (m *mirror) notOurs(t *topic, found *sourceTopic) *failure {
	if Wanted(t.want.Load()) == WantedNone {
		return failf(CauseConflict, "mirror %s holds the topic", m.agent.binding(t.name).mirror)
	}
	if !t.id.IsZero() && t.id != found.id {
		return mismatch(segment.SourceID{ClusterID: m.board.clusterID, TopicID: t.id},
			segment.SourceID{ClusterID: m.board.clusterID, TopicID: found.id})
	}
	want := segment.SourceID{ClusterID: m.board.clusterID, TopicID: found.id}
	for bound := range m.agent.logs.bindings(found.name) {
		if !sameSource(bound, want) {
			return mismatch(bound, want)
		}
	}
	return nil
}

// sameSource reports whether a copy bound to one topic may go on from the other: a source that was older than topic
// ids gives its topics ids when it is upgraded.
func sameSource(bound, want segment.SourceID) bool {
	return bound == want || bound.ClusterID == want.ClusterID && bound.TopicID.IsZero()
}

// setProblem fails a topic's partitions for what the metadata says, or lifts that once it does not say so any more.
func (m *mirror) setProblem(t *topic, why *failure) {
	lifted := t.problem != nil && why == nil
	t.problem = why
	for _, p := range t.partitions {
		switch {
		case why != nil && p.desk.phase == phaseFetching:
			p.desk.pending = why
			p.desk.fetcher.remove(p)
		case why != nil && p.desk.phase == phaseWaiting:
			if p.state() != StateFailed || p.cause() != why.cause {
				m.fail(p, why)
			}
		case why == nil && p.desk.phase == phaseWaiting && p.state() == StateFailed &&
			(lifted && p.cause().fromMetadata() || m.refreshes.back && p.cause() == CauseSourceUnreachable):
			p.desk.gaveUp, p.desk.due = false, time.Time{}
		}
	}
}

// readConfig takes up what a topic's configuration says; one that cannot be read leaves what was known, at first the
// agent's defaults.
func (m *mirror) readConfig(t *topic, a *refresh) {
	c, ok := a.configs[t.name]
	switch {
	case ok && c.err == nil:
		t.config, t.warned = c, false
	case ok && !t.warned:
		t.warned = true
		m.logger.Warn("the topic's configuration could not be read: the agent's defaults are used",
			slog.String("topic", t.name), slog.Any("err", c.err))
	}
	for _, p := range t.partitions {
		m.configure(p)
	}
}

// lead takes up who leads a partition; one whose leader moved is taken from its fetcher.
func (m *mirror) lead(p *partition, sp sourcePartition) {
	if sp.leaderEpoch >= 0 && sp.leaderEpoch < p.leaderEpoch.Load() && p.desk.older < 3 {
		p.desk.older++ // the broker asked lags behind the leader, which told us itself
		return
	}
	p.desk.older = 0
	moved := sp.leader != p.desk.leader
	p.desk.leader = sp.leader
	p.leaderEpoch.Store(sp.leaderEpoch)
	if sp.leader >= 0 {
		p.desk.noLeader = 0
	}
	if waits := p.desk.phase == phaseWaiting && p.state() == StateFailed && sp.leader >= 0; waits &&
		(p.cause() == CauseNoLeader || p.cause() == CauseSourceUnreachable && moved) {
		p.desk.due = time.Time{}
	}
	if moved && sp.leader >= 0 && p.desk.phase == phaseFetching {
		m.logger.Info("leader moved", topicAttr(p.tp), partitionAttr(p.tp), slog.Int("broker", int(sp.leader)),
			slog.Int("leader_epoch", int(sp.leaderEpoch)))
		p.desk.fetcher.remove(p)
	}
}
