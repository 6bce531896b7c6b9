package replicator

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"segmirror/segment"
)

// mirror runs one mirror: it keeps the list of partitions, says who works on which, and decides what
// becomes of failures. Everything under owner is touched by run alone; fetchers, workers and the source report
// through the inbox.
type mirror struct {
	// immutable
	agent  *Agent
	name   string
	logger *slog.Logger
	inbox  *mailbox[event]
	errors *errorCounts
	lifetime

	throttle *throttle // of all its partitions together

	// owner
	cfg       MirrorConfig
	filter    topicFilter
	source    *source
	ctx       context.Context // of run
	topics    map[string]*topic
	brokers   map[int32]string
	fetchers  map[fetcherKey]*fetcher
	refreshes refreshState
	pending
	skipped    map[string]bool // topics found that another mirror holds stopped: said once
	work       sync.WaitGroup
	discovered bool // the first answer about topics was taken: what comes later is new at the source, too

	board board
}

// lifetime is how a mirror ends.
type lifetime struct {
	quit  context.CancelFunc // ends run
	quits context.Context    // done when quit was called
	ended chan struct{}      // closed when run has returned
}

// pending is what waits to be stored, or for a worker. Owner: the mirror's goroutine.
type pending struct {
	changed []*partition // whose state is to be stored
	steps   []step       // moves to be stored and then made
	workers int          // that open or settle logs now
	toWork  []func()     // more of them
	looked  time.Time    // when the newest look at the partitions began
	owed    bool         // an event came since, which that look did not see
}

// board is what Status reads of a mirror. The mirror's goroutine writes it under mu, and may read it without.
type board struct {
	mu        sync.Mutex
	bootstrap []string
	clusterID string
	policy    EpochPolicy
	parts     []*partition
	running   []*fetcher
	refreshed time.Time
	refErr    string

	looking atomic.Bool // a look at what is stored is under way to the inbox
}

// refreshState says when the source is asked again.
type refreshState struct {
	asked    int // number of the newest ask
	answered int // of the newest ask that was answered well
	pending  bool
	again    bool // asked for while one was pending
	due      time.Time
	failures int  // in a row
	soon     int  // quick looks in a row that something called for
	back     bool // the newest answer is the first after failures
}

// topic is one topic of a mirror. Owner: the mirror's goroutine; name is immutable.
type topic struct {
	name       string
	want       atomic.Int32 // a Wanted: what is stored; any goroutine
	waits      atomic.Bool  // a stop waits for the first agent; any goroutine
	closing    closing
	told       bool // started by a request: what was there then is not new at the source
	id         segment.TopicID
	partitions []*partition
	byIndex    map[int32]*partition
	missing    int // sightings in a row without it
	problem    *failure
	config     topicConfig
	warned     bool     // that its configuration may not be read
	chain      []string // clusters its records come through, nearest first; guarded by the mirror's board.mu
}

// event is one report to the mirror's goroutine: exactly one field but fetcher is set.
type event struct {
	released   *release
	opened     *opened
	settled    *settled
	refresh    *refresh
	look       bool     // at what is stored of the mirror and its topics
	started    []string // topics that a request started
	brokerLost bool
	fetcher    *fetcher
}

func newMirror(a *Agent, cfg MirrorConfig) (*mirror, error) {
	m := &mirror{
		agent:    a,
		name:     cfg.Name,
		logger:   a.logger.With(slog.String("mirror", cfg.Name)),
		inbox:    newMailbox[event](),
		errors:   &errorCounts{},
		lifetime: lifetime{ended: make(chan struct{})},
		ctx:      context.Background(),
		topics:   map[string]*topic{},
		fetchers: map[fetcherKey]*fetcher{},
		skipped:  map[string]bool{},
	}
	m.throttle = a.throttles.mirror(cfg.Name, cfg.ThrottledRate, a.metadata.config(resource{resourceMirror, cfg.Name}))
	m.quits, m.quit = context.WithCancel(context.Background())
	if err := m.configured(cfg); err != nil {
		return nil, err
	}
	if err := m.restore(); err != nil {
		return nil, err
	}
	return m, nil
}

// configured takes up a configuration; a source that was made before goes on with the old one.
func (m *mirror) configured(cfg MirrorConfig) error {
	filter, err := newTopicFilter(cfg.TopicsInclude, cfg.TopicsExclude)
	if err != nil {
		return err
	}
	m.cfg, m.filter = cfg, filter
	m.board.mu.Lock()
	m.board.bootstrap = cfg.Client.BootstrapServers
	m.board.mu.Unlock()
	return nil
}

// restore takes up what the state log holds of the mirror, and what is wanted of its topics.
func (m *mirror) restore() error {
	stored := m.agent.states.mirror(m.name)
	m.board.clusterID, m.board.policy = stored.sourceClusterID, m.cfg.EpochPolicy
	if stored.epochPolicy != EpochPolicyDefault {
		if m.cfg.EpochPolicyChosen && m.cfg.EpochPolicy != stored.epochPolicy {
			return fmt.Errorf("%w: mirror.%s.mirror.leader.epoch.policy is %s since the mirror's first start and cannot "+
				"become %s", ErrConfig, m.name, stored.epochPolicy, m.cfg.EpochPolicy)
		}
		m.board.policy = stored.epochPolicy
	}
	held, err := m.rebound(&stored)
	if err != nil {
		return err
	}
	for topic, want := range held {
		t := m.topic(topic)
		t.want.Store(int32(want))
		m.await(t, want)
	}
	for _, tp := range slices.SortedFunc(maps.Keys(stored.partitions), compareTP) {
		if t := m.topics[tp.Topic]; t != nil {
			m.restorePartition(t, tp, stored.partitions[tp])
		}
	}
	return nil
}

// rebound returns what is wanted of the topics the mirror holds. What is declared has the last word about topics that
// are mirrored: one that no pattern names any more is let go, its copy left as it is. One with states of the mirror
// and held by none, as those stored before topics were bound, is bound to it.
func (m *mirror) rebound(stored *mirrorRecord) (map[string]Wanted, error) {
	held := m.agent.bindingsOf(m.name)
	if m.agent.declared[m.name] == nil {
		return held, nil
	}
	var records []MetadataRecord
	for topic, want := range held {
		if want == WantedMirroring && !m.filter.match(topic) {
			m.logger.Info("no pattern names the topic any more: its copy is left as it is", slog.String("topic", topic))
			records = append(records, bindRecord(topic, binding{}))
			delete(held, topic)
		}
	}
	for tp, rec := range stored.partitions {
		free := m.agent.binding(tp.Topic).want == WantedNone && rec.cause != CauseConflict
		if _, known := held[tp.Topic]; !known && free && m.filter.match(tp.Topic) {
			held[tp.Topic] = WantedMirroring
			records = append(records, bindRecord(tp.Topic, binding{m.name, WantedMirroring}))
		}
	}
	return held, m.agent.change(records)
}

func (m *mirror) restorePartition(t *topic, tp segment.TopicPartition, rec *partitionRecord) {
	p := m.addPartition(t, tp.Partition)
	p.stats.state.Store(int32(rec.state))
	p.desk.stored = true
	if rec.state == StateStopping || rec.state == StateStopped { // it was time for it
		t.closing.done = true
		m.await(t, Wanted(t.want.Load()))
	}
	if rec.cause != CauseNone {
		p.stats.failure.Store(&failure{cause: rec.cause, text: rec.text})
		p.stats.attempts.Store(int32(rec.attempts))
	}
	for _, span := range rec.lost {
		p.lose(span)
	}
	m.takeLog(p)
	if rec.state == StateStopped {
		m.showWhole(p)
	}
	if p.feed.held == nil && rec.state == StateMirroring {
		m.logger.Warn("the partition's directory is gone: it begins again", topicAttr(tp), partitionAttr(tp))
		p.stats.state.Store(int32(StateUnknown))
	}
}

// takeLog gives a new partition the directory it has, if it has one.
func (m *mirror) takeLog(p *partition) {
	h := m.agent.logs.get(p.tp)
	if h == nil {
		return
	}
	p.feed.held = h
	if log := h.open(); log != nil {
		p.setLog(h, log)
		m.agent.flusher.add(p)
	}
}

func (m *mirror) topic(name string) *topic {
	t := m.topics[name]
	if t == nil {
		t = &topic{name: name, byIndex: map[int32]*partition{}}
		m.topics[name] = t
	}
	return t
}

func (m *mirror) addPartition(t *topic, index int32) *partition {
	p := newPartition(m, t, index)
	t.partitions = append(t.partitions, p)
	t.byIndex[index] = p
	m.board.mu.Lock()
	m.board.parts = append(m.board.parts, p)
	m.board.mu.Unlock()
	return p
}

// run mirrors until ctx is done or quit is called: then every fetcher and worker has returned and no log is touched
// any more.
func (m *mirror) run(ctx context.Context) {
	defer close(m.ended)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(m.quits, stop)()
	m.ctx = ctx
	m.startSource()
	m.ask()
	var spare []event
	for ctx.Err() == nil {
		m.waitForWork(ctx)
		events := m.inbox.take(spare)
		for i := range events {
			m.handle(&events[i])
		}
		clear(events)
		spare = events
		now := time.Now()
		if m.owed = now.Before(m.looked.Add(leastPause)); m.owed {
			m.startWork()
			continue
		}
		m.looked = now
		m.tick(now)
	}
	m.work.Wait()
	for _, t := range m.topics {
		for _, p := range t.partitions {
			m.agent.flusher.drop(p)
		}
	}
}

// startSource starts what asks the source, with the configuration the mirror has now.
func (m *mirror) startSource() {
	ctx, stop := context.WithCancel(m.ctx)
	s := &source{
		cfg:      m.cfg.Client,
		clientID: fmt.Sprintf("broker-%d-metadata-mirror-%s", m.agent.cfg.NodeID, m.name),
		logger:   m.logger,
		asks:     newMailbox[sourceAsk](),
		stop:     stop,
	}
	s.answer = func(r refresh) { m.inbox.put(event{refresh: &r}) }
	m.source = s
	m.work.Go(func() { s.run(ctx) })
}

// waitForWork sleeps until there is an event or something is due.
func (m *mirror) waitForWork(ctx context.Context) {
	timer := time.NewTimer(m.nextLook(time.Now()))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-m.inbox.ready:
	case <-timer.C:
	}
}

// nextLook returns how long nothing is due.
func (m *mirror) nextLook(now time.Time) time.Duration {
	if m.owed {
		return m.looked.Add(leastPause).Sub(now)
	}
	wait := time.Hour
	if !m.refreshes.pending {
		wait = m.refreshes.due.Sub(now)
	}
	for _, t := range m.topics {
		for _, p := range t.partitions {
			if due, ok := m.due(p); ok {
				wait = min(wait, due.Sub(now))
			}
		}
	}
	return max(wait, leastPause)
}

func (m *mirror) handle(e *event) {
	switch {
	case e.released != nil:
		m.released(e.released)
	case e.opened != nil:
		m.opened(e.opened)
	case e.settled != nil:
		m.settled(e.settled)
	case e.refresh != nil:
		if e.refresh.from == m.source {
			m.answered(e.refresh)
		}
	case e.look:
		m.board.looking.Store(false)
		m.reconsider()
	case e.started != nil:
		m.restart(e.started)
	case e.brokerLost:
		m.askSoon()
	}
}

// released takes back a partition that a fetcher let go.
func (m *mirror) released(r *release) {
	p := r.p
	p.desk.phase, p.desk.fetcher, p.desk.leaving = phaseWaiting, nil, false
	p.stats.leader.Store(-1)
	if m.ctx.Err() != nil {
		return
	}
	if state := p.state(); state == StatePausing || state == StateStopping { // the source's troubles are ours no more
		p.desk.pending = nil
		if r.why != nil && r.why.cause == CauseDirectoryLost {
			m.abandonLog(p)
		}
		m.settle(p)
		return
	}
	if why := p.desk.pending; why != nil {
		p.desk.pending = nil
		m.fail(p, why)
		return
	}
	if r.why != nil {
		if r.why.cause == CauseDirectoryLost {
			m.abandonLog(p)
		}
		m.fail(p, r.why)
		return
	}
	if !r.stale {
		return
	}
	if p.feed.steady {
		p.desk.stale = 0
	}
	if p.desk.stale++; p.desk.stale > staleTries {
		p.desk.stale = 0
		m.fail(p, failf(CauseNoLeader, "no broker of the source serves it, asked %d times", staleTries))
		return
	}
	p.desk.due = time.Now().Add(stalePause)
	known := r.hint.LeaderID >= 0 && (m.brokers[r.hint.LeaderID] != "" || r.addr != "")
	if known && r.hint.LeaderEpoch > p.leaderEpoch.Load() {
		if r.addr != "" {
			m.brokers[r.hint.LeaderID] = r.addr
		}
		p.desk.leader = r.hint.LeaderID
		p.leaderEpoch.Store(r.hint.LeaderEpoch)
		p.desk.due = time.Time{}
		m.logger.Info("leader moved", topicAttr(p.tp), partitionAttr(p.tp), slog.Int("broker", int(p.desk.leader)),
			slog.Int("leader_epoch", int(r.hint.LeaderEpoch)))
	} else {
		p.desk.refresh = m.refreshes.asked + 1
	}
	m.askSoon()
}

// abandonLog closes the log of a directory that is not ours any more; it will not be opened again.
func (m *mirror) abandonLog(p *partition) {
	m.agent.flusher.drop(p)
	p.feed.log = nil
	if err := m.agent.logs.abandon(p.feed.held); err != nil {
		m.logger.Warn("closing the log of a lost directory", topicAttr(p.tp), partitionAttr(p.tp), slog.Any("err", err))
	}
}

// A partition whose leader is not settled is tried again after stalePause, staleTries times.
const (
	stalePause = 100 * time.Millisecond
	staleTries = 20
)

// fail makes a partition FAILED, or keeps it so, and settles when it is tried again.
func (m *mirror) fail(p *partition, why *failure) {
	state, want := p.state(), p.want()
	if want != WantedNone && state != StatePausing && !needsSource(state, want) {
		return // what is wrong with the source is no concern of a partition that is to rest
	}
	attempts := int(p.stats.attempts.Load())
	same := state == StateFailed && p.cause() == why.cause
	attempts++
	p.stats.attempts.Store(int32(attempts))
	p.move(StateFailed, why)
	wait, again := m.agent.cfg.Retry.next(why.cause, attempts)
	p.desk.gaveUp = !again
	p.desk.due = time.Now().Add(wait)
	p.desk.noLeader = 0
	if !again && !same && why.cause.retryClass() == retryCounted {
		m.logger.Error("not tried again", topicAttr(p.tp), partitionAttr(p.tp), slog.Int("attempts", attempts-1),
			slog.String("cause", why.cause.String()),
			slog.String("remedy", why.cause.remedy(m.agent.commands(m.name, p.tp.Topic))))
	}
	if !same {
		m.changedState(p)
	}
}

// changedState queues what the state log is to hold of a partition.
func (m *mirror) changedState(p *partition) {
	if !p.desk.changed {
		p.desk.changed = true
		m.changed = append(m.changed, p)
	}
}

// retireFetchers forgets fetchers of brokers that are gone from the cluster; one that holds nothing costs nothing.
func (m *mirror) retireFetchers() {
	if len(m.fetchers) <= len(m.brokers)*m.agent.cfg.NumFetchers {
		return
	}
	for key, f := range m.fetchers {
		if m.brokers[key.broker] != "" || m.holds(f) {
			continue
		}
		m.dismiss(key)
		f.inbox.put(command{quit: true})
	}
}

// dismiss forgets a fetcher.
func (m *mirror) dismiss(key fetcherKey) {
	f := m.fetchers[key]
	delete(m.fetchers, key)
	m.board.mu.Lock()
	m.board.running = slices.DeleteFunc(m.board.running, func(other *fetcher) bool { return other == f })
	m.board.mu.Unlock()
}

func (m *mirror) holds(f *fetcher) bool {
	for _, t := range m.topics {
		for _, p := range t.partitions {
			if p.desk.fetcher == f {
				return true
			}
		}
	}
	return false
}
