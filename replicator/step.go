package replicator

import (
	"context"
	"log/slog"
	"time"

	"segmirror/segment"
)

// step is a move that is made, and acted on, once it is stored.
type step struct {
	p  *partition
	to State
}

// fullPause is how often a partition looks whether its disk has room again.
const fullPause = 200 * time.Millisecond

// leastPause bounds how often the mirror's goroutine looks at its list: events that come faster share one look.
const leastPause = 5 * time.Millisecond

// storePause is the wait after a state could not be stored.
const storePause = time.Second

// tick starts whatever is due.
func (m *mirror) tick(now time.Time) {
	if !m.refreshes.pending && !m.refreshes.due.After(now) {
		m.ask()
	}
	for _, t := range m.topics {
		for _, p := range t.partitions {
			m.advance(p, now)
		}
	}
	m.store()
	m.startWork()
	m.retireFetchers()
}

// due returns when something is to be done for a partition, false when it rests, is being worked on, or waits for
// something else than time.
func (m *mirror) due(p *partition) (time.Time, bool) {
	state, want := p.state(), p.want()
	switch {
	case p.desk.phase == phaseOpening || p.desk.phase == phaseSettling || p.desk.leaving:
		return time.Time{}, false
	case p.desk.phase == phaseFetching:
		next := nextState(state, want)
		return p.desk.retry, next == StatePausing || next == StateStopping
	case atRest(state, want):
		return time.Time{}, false
	case !needsSource(state, want):
		return p.desk.retry, true
	case m.blocked(p):
		return time.Time{}, false
	}
	return p.desk.due, true
}

// blocked reports whether a partition waits for something else than time: an answer of the source, or an operator.
func (m *mirror) blocked(p *partition) bool {
	r := &m.refreshes
	return p.desk.gaveUp || r.answered == 0 || p.desk.refresh > r.answered ||
		r.failures > 0 && p.state() == StateFailed && p.cause() == CauseSourceUnreachable
}

// advance brings a partition one step further if its time has come.
func (m *mirror) advance(p *partition, now time.Time) {
	if due, ok := m.due(p); !ok || due.After(now) {
		return
	}
	state, want := p.state(), p.want()
	next := nextState(state, want)
	switch {
	case p.desk.phase == phaseFetching && state == StatePreparing:
		m.recall(p) // the fetcher may make it MIRRORING at any moment: it lets go first
	case next == StatePaused && state == StatePausing, next == StateStopped && state == StateStopping:
		if !p.desk.settled {
			m.settle(p)
			return
		}
		m.steps = append(m.steps, step{p, next})
	case needsSource(state, want):
		m.begin(p)
	default:
		m.steps = append(m.steps, step{p, next})
	}
}

// begin brings a waiting partition that is to be mirrored one step further.
func (m *mirror) begin(p *partition) {
	t := p.topic
	if t.problem != nil {
		m.fail(p, t.problem)
		return
	}
	if p.desk.leader < 0 || m.brokers[p.desk.leader] == "" {
		m.leaderless(p)
		return
	}
	switch state := p.state(); state {
	case StateUnknown, StateStopped, StateFailed:
		if h := p.feed.held; p.cause() == CauseDiskFull && h != nil && h.dir.full.Load() {
			p.desk.due = time.Now().Add(fullPause)
			return
		}
		p.feed.prior = p.cause()
		m.steps = append(m.steps, step{p, StatePreparing})
	case StatePaused:
		m.steps = append(m.steps, step{p, StateMirroring})
	default:
		if !p.desk.stored {
			m.steps = append(m.steps, step{p, state})
			return
		}
		m.assign(p)
	}
}

func (m *mirror) leaderless(p *partition) {
	p.desk.noLeader++
	if p.desk.noLeader >= 3 {
		m.fail(p, failf(CauseNoLeader, "the source names no leader"))
		return
	}
	p.desk.refresh = m.refreshes.asked + 1
	m.askSoon()
}

// store makes the steps and every other changed state durable with one sync. An action follows only where that worked;
// a FAILED that could not be stored stands all the same: it is found again after a restart.
func (m *mirror) store() {
	var records []StateRecord
	changed, steps := m.changed, m.steps
	m.changed, m.steps = nil, nil
	for _, p := range changed {
		p.desk.changed = false
		records = append(records, p.record())
	}
	for _, s := range steps {
		r := s.p.record()
		r.State, r.Cause, r.Text, r.Attempts = s.to, CauseNone, "", 0
		records = append(records, r)
	}
	if len(records) == 0 {
		return
	}
	if err := m.agent.states.append(records...); err != nil {
		m.logger.Error("states could not be stored", slog.Int("partitions", len(records)), slog.Any("err", err))
		for _, s := range steps {
			if s.to == StatePreparing || s.to == StateMirroring {
				m.fail(s.p, failf(causeOf(err), "%v", err))
				continue
			}
			s.p.desk.retry = time.Now().Add(storePause)
		}
		return
	}
	for _, p := range changed {
		p.desk.stored = true
	}
	for _, s := range steps {
		if s.p.move(s.to, nil) {
			s.p.desk.stored = true
			m.act(s.p)
		}
	}
}

// act runs the action of a partition's state, which is stored.
func (m *mirror) act(p *partition) {
	switch p.state() {
	case StatePreparing, StateMirroring:
		if p.want() != WantedStopped {
			m.assign(p)
		}
	case StatePausing, StateStopping:
		p.desk.settled = false
		if p.desk.phase == phaseFetching {
			m.recall(p) // released settles it
			return
		}
		m.settle(p)
	case StatePaused, StateStopped:
		p.stats.attempts.Store(0)
		p.stats.sourceOffset.Store(-1) // nobody asks any more
		p.desk.gaveUp, p.desk.due = false, time.Time{}
	}
}

// recall asks a partition's fetcher to let it go.
func (m *mirror) recall(p *partition) {
	p.desk.leaving = true
	p.desk.fetcher.remove(p)
}

// assign gives a partition whose state is stored to a worker that opens its log, or to its fetcher.
func (m *mirror) assign(p *partition) {
	m.configure(p)
	log := p.feed.log
	if log == nil || log.Failed() != nil || p.stats.disk.gone.Load() || p.feed.held.policy != p.config.Load().Policy {
		m.open(p)
		return
	}
	if p.desk.resting {
		p.desk.resting = false
		m.agent.flusher.add(p)
	}
	bound, ok := log.Source()
	switch {
	case ok && !sameSource(bound, *p.identity.Load()):
		m.fail(p, mismatch(bound, *p.identity.Load()))
		return
	case ok && bound != *p.identity.Load():
		if err := rebind(log, *p.identity.Load()); err != nil {
			m.fail(p, failf(causeOf(err), "%v", err))
			return
		}
	case !ok && p.state() == StateMirroring:
		m.fail(p, failf(CauseIO, "%s does not say any more what it is a copy of: it will be compared", log.Dir()))
		return
	}
	key := fetcherKey{broker: p.desk.leader, number: int(hashOf(p.tp) % uint32(m.agent.cfg.NumFetchers))}
	f := m.fetchers[key]
	if f == nil {
		f = newFetcher(m, key, m.brokers[p.desk.leader])
		var ctx context.Context
		ctx, f.link.stop = context.WithCancel(m.ctx)
		m.fetchers[key] = f
		m.board.mu.Lock()
		m.board.running = append(m.board.running, f)
		m.board.mu.Unlock()
		m.work.Go(func() { f.run(ctx) })
	}
	p.desk.phase, p.desk.fetcher, p.feed.steady = phaseFetching, f, false
	p.stats.leader.Store(p.desk.leader)
	f.inbox.put(command{p: p})
}

// rebind names the topic's id to a log that was begun before its source had ids; the history stays.
func rebind(log *segment.Log, id segment.SourceID) error {
	entries := log.SourceEpochEntries()
	if err := log.Rebind(id); err != nil {
		return err
	}
	if len(entries) == 0 {
		return nil
	}
	return log.ReplaceSourceEpochs(entries)
}

// configure gives a partition the configuration of its source topic.
func (m *mirror) configure(p *partition) {
	if p.config.Load() == nil || p.desk.configured != p.topic.config {
		cfg := p.topic.config.apply(m.agent.cfg.Log.segmentConfig(m.board.policy, m.agent.cutDirOf(p.tp)))
		old := p.config.Swap(&cfg)
		if old != nil && shapeOf(old) != shapeOf(&cfg) && p.state() == StateMirroring {
			m.changedState(p)
		}
		p.desk.configured = p.topic.config
	}
	id := segment.SourceID{ClusterID: m.board.clusterID, TopicID: p.topic.id}
	if old := p.identity.Load(); old == nil || *old != id {
		p.identity.Store(&id)
	}
	p.compacted.Store(p.topic.config.compacted)
}

func hashOf(tp segment.TopicPartition) uint32 {
	h := uint32(2166136261)
	for i := range len(tp.Topic) {
		h = (h ^ uint32(tp.Topic[i])) * 16777619
	}
	return h + uint32(tp.Partition)
}
