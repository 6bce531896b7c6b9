package replicator

import (
	"log/slog"
	"reflect"
	"time"

	"segmirror/segment"
)

// look has the mirror look at what is stored of it and of its topics. Any goroutine.
func (m *mirror) look() {
	if !m.board.looking.Swap(true) {
		m.inbox.put(event{look: true})
	}
}

// reconsider takes up what is stored of the mirror's configuration and of its topics.
func (m *mirror) reconsider() {
	if !m.agent.exists(m.name) { // it is being deleted
		return
	}
	m.reconfigure()
	m.rewant()
}

// reconfigure takes up a changed configuration: where only patterns changed the source is asked again, anything else
// makes every connection anew. States stay as they are.
func (m *mirror) reconfigure() {
	cfg, err := m.agent.mirrorConfig(m.name)
	if err == nil && cfg.EpochPolicyChosen && cfg.EpochPolicy != m.board.policy {
		m.logger.Error("mirror.leader.epoch.policy is fixed since the mirror's first start", slog.String("is",
			m.board.policy.String()), slog.String("given", cfg.EpochPolicy.String()))
		cfg.EpochPolicy = m.board.policy
	}
	if err != nil {
		m.logger.Error("the mirror's configuration cannot be used", slog.Any("err", err))
		return
	}
	was, is := m.cfg, cfg
	newPatterns := !patternsOf(&was).equal(patternsOf(&is))
	for _, c := range []*MirrorConfig{&was, &is} {
		c.TopicsInclude, c.TopicsExclude, c.Reserved = nil, nil, nil
		c.EpochPolicy, c.EpochPolicyChosen, c.ThrottledRate = EpochPolicyDefault, false, 0
	}
	again := !reflect.DeepEqual(was, is)
	if !again && !newPatterns {
		return
	}
	if err := m.configured(cfg); err != nil {
		m.logger.Error("the mirror's patterns cannot be used", slog.Any("err", err))
		return
	}
	if newPatterns {
		m.logger.Info("patterns changed", slog.Any("include", cfg.TopicsInclude), slog.Any("exclude", cfg.TopicsExclude))
		m.enforceExclude()
	}
	if again {
		m.reconnect()
		return
	}
	m.ask()
}

// enforceExclude stops topics that are mirrored and that the patterns exclude now.
func (m *mirror) enforceExclude() {
	stopped, err := m.agent.stopExcluded(m.name, m.filter)
	if err != nil {
		m.logger.Error("topics that are excluded now could not be stopped", slog.Any("err", err))
		return
	}
	for _, topic := range stopped {
		m.logger.Info("topic is excluded now: it is stopped", slog.String("topic", topic))
	}
}

// reconnect makes every connection to the source anew, with the configuration the mirror has now. Partitions come back
// from their fetchers in the state they are in, and are given away once the source has said again which cluster it is.
func (m *mirror) reconnect() {
	m.logger.Info("configuration changed: connections are made anew", slog.Any("source", m.cfg.Client))
	m.source.stop()
	for key, f := range m.fetchers {
		m.dismiss(key)
		f.link.stop()
	}
	m.refreshes = refreshState{asked: m.refreshes.asked}
	m.startSource()
	m.ask()
	for _, t := range m.topics {
		for _, p := range t.partitions {
			p.tryAgain()
		}
	}
}

// tryAgain makes a FAILED partition's attempts begin anew.
func (p *partition) tryAgain() {
	if p.state() == StateFailed {
		p.stats.attempts.Store(0)
		p.desk.gaveUp, p.desk.due = false, time.Time{}
	}
}

// rewant takes up what is wanted of the mirror's topics.
func (m *mirror) rewant() {
	held, ask := m.agent.bindingsOf(m.name), false
	for name, want := range held {
		t := m.topic(name)
		if was := Wanted(t.want.Swap(int32(want))); was == want {
			continue
		}
		m.await(t, want)
		m.logger.Info("wanted", slog.String("topic", name), slog.String("what", want.String()))
		for _, p := range t.partitions {
			p.desk.retry = time.Time{}
		}
		if want == WantedMirroring {
			m.takeUp(t)
			ask = true
		}
	}
	for name, t := range m.topics {
		if _, ok := held[name]; !ok && Wanted(t.want.Load()) != WantedNone {
			m.letGo(t)
		}
	}
	if ask {
		m.ask()
	}
}

// takeUp makes a topic's partitions wait for the source's next answer, which says whether it is the topic it was.
func (m *mirror) takeUp(t *topic) {
	t.missing, t.problem = 0, nil
	for _, p := range t.partitions {
		p.desk.refresh = m.refreshes.asked + 1
		p.tryAgain()
	}
}

// letGo forgets a topic that another mirror holds now: it was stopped here.
func (m *mirror) letGo(t *topic) {
	t.want.Store(int32(WantedNone))
	delete(m.topics, t.name)
	m.board.mu.Lock()
	defer m.board.mu.Unlock()
	var left []*partition
	for _, p := range m.board.parts {
		if p.topic != t {
			left = append(left, p)
		}
	}
	m.board.parts = left
}

// restart begins anew with topics that a request started.
func (m *mirror) restart(names []string) {
	for _, name := range names {
		t := m.topics[name]
		if t == nil {
			continue
		}
		t.told = true
		for _, p := range t.partitions {
			p.tryAgain()
		}
	}
	m.ask()
}

// boundTo returns the topic ids, of one source cluster, that the directories of a topic are copies of.
func (a *Agent) boundTo(topic, cluster string) (ids []segment.TopicID) {
	for source := range a.logs.bindings(topic) {
		if source.ClusterID == cluster && !source.TopicID.IsZero() {
			ids = append(ids, source.TopicID)
		}
	}
	return ids
}
