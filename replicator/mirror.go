package replicator

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"segmirror/segment"
)

// mirror runs one declared mirror: it keeps the list of partitions, says who works on which, and decides what
// becomes of failures. Everything under owner is touched by run alone; fetchers, workers and the source report
// through the inbox.
type mirror struct {
	// immutable
	agent  *Agent
	cfg    MirrorConfig
	filter topicFilter
	logger *slog.Logger
	inbox  *mailbox[event]
	source *source
	errors *errorCounts

	throttle *throttle // of all its partitions together

	// owner
	ctx        context.Context // of run
	topics     map[string]*topic
	brokers    map[int32]string
	fetchers   map[fetcherKey]*fetcher
	refreshes  refreshState
	changed    []*partition // whose state is to be stored
	openers    int          // workers that open logs now
	toOpen     []*partition
	work       sync.WaitGroup
	discovered bool      // the first answer about topics was taken: what comes later is new at the source, too
	looked     time.Time // when the newest look at the partitions began
	owed       bool      // an event came since, which that look did not see

	board board
}

// board is what Status reads of a mirror. The mirror's goroutine writes it under mu, and may read it without.
type board struct {
	mu        sync.Mutex
	clusterID string
	policy    EpochPolicy
	parts     []*partition
	running   []*fetcher
	refreshed time.Time
	refErr    string
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
	id         segment.TopicID
	partitions []*partition
	byIndex    map[int32]*partition
	missing    int // sightings in a row without it
	problem    *failure
	config     topicConfig
	warned     bool // that its configuration may not be read
}

// event is one report to the mirror's goroutine: exactly one field but fetcher is set.
type event struct {
	released   *release
	opened     *opened
	refresh    *refresh
	brokerLost bool
	fetcher    *fetcher
}

func newMirror(a *Agent, cfg MirrorConfig) (*mirror, error) {
	filter, err := newTopicFilter(cfg.TopicsInclude, cfg.TopicsExclude)
	if err != nil {
		return nil, err
	}
	m := &mirror{
		agent:    a,
		cfg:      cfg,
		filter:   filter,
		logger:   a.logger.With(slog.String("mirror", cfg.Name)),
		inbox:    newMailbox[event](),
		errors:   &errorCounts{},
		ctx:      context.Background(),
		topics:   map[string]*topic{},
		fetchers: map[fetcherKey]*fetcher{},
	}
	m.throttle = a.throttles.mirror(cfg.Name, cfg.ThrottledRate, a.metadata.config(resource{resourceMirror, cfg.Name}))
	m.source = &source{
		cfg:      cfg.Client,
		filter:   filter,
		explicit: filter.include.plainNames(),
		clientID: fmt.Sprintf("broker-%d-metadata-mirror-%s", a.cfg.NodeID, cfg.Name),
		logger:   m.logger,
		asks:     newMailbox[sourceAsk](),
		answer:   func(r refresh) { m.inbox.put(event{refresh: &r}) },
	}
	if err := m.restore(); err != nil {
		return nil, err
	}
	return m, nil
}

// restore takes up what the state log holds of the mirror.
func (m *mirror) restore() error {
	stored := m.agent.states.mirror(m.cfg.Name)
	m.board.clusterID, m.board.policy = stored.sourceClusterID, m.cfg.EpochPolicy
	if stored.epochPolicy != EpochPolicyDefault {
		if m.cfg.EpochPolicyChosen && m.cfg.EpochPolicy != stored.epochPolicy {
			return fmt.Errorf("%w: mirror.%s.mirror.leader.epoch.policy is %s since the mirror's first start and cannot "+
				"become %s", ErrConfig, m.cfg.Name, stored.epochPolicy, m.cfg.EpochPolicy)
		}
		m.board.policy = stored.epochPolicy
	}
	for _, tp := range slices.SortedFunc(maps.Keys(stored.partitions), compareTP) {
		rec := stored.partitions[tp]
		if !m.filter.match(tp.Topic) {
			m.logger.Info("no pattern names the topic any more: its copy is left as it is", topicAttr(tp), partitionAttr(tp))
			continue
		}
		m.agent.claimTopic(tp.Topic, m)
		p := m.addPartition(m.topic(tp.Topic), tp.Partition)
		p.stats.state.Store(int32(rec.state))
		p.desk.stored = true
		if rec.cause != CauseNone {
			p.stats.failure.Store(&failure{cause: rec.cause, text: rec.text})
		}
		for _, span := range rec.lost {
			p.lose(span)
		}
		m.takeLog(p)
		if p.feed.held == nil && rec.state == StateMirroring {
			m.logger.Warn("the partition's directory is gone: it begins again", topicAttr(tp), partitionAttr(tp))
			p.stats.state.Store(int32(StateUnknown))
		}
	}
	return nil
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

// run mirrors until ctx is done: then every fetcher and worker has returned and no log is touched any more.
func (m *mirror) run(ctx context.Context) {
	m.ctx = ctx
	m.work.Go(func() { m.source.run(ctx) })
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
			m.openSome()
			continue
		}
		m.looked = now
		m.tick(now)
	}
	for _, f := range m.fetchers {
		<-f.done
	}
	m.work.Wait()
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
			if p.desk.phase == phaseWaiting && !m.blocked(p) {
				wait = min(wait, p.desk.due.Sub(now))
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
	case e.refresh != nil:
		m.answered(e.refresh)
	case e.brokerLost:
		m.askSoon()
	}
}

// tick starts whatever is due.
func (m *mirror) tick(now time.Time) {
	if !m.refreshes.pending && !m.refreshes.due.After(now) {
		m.ask()
	}
	var starting []*partition
	for _, t := range m.topics {
		for _, p := range t.partitions {
			if m.canWork(p, now) && m.begin(p) {
				starting = append(starting, p)
			}
		}
	}
	m.store(starting)
	m.openSome()
	m.retireFetchers()
}

// fullPause is how often a partition looks whether its disk has room again.
const fullPause = 200 * time.Millisecond

// leastPause bounds how often the mirror's goroutine looks at its list: events that come faster share one look.
const leastPause = 5 * time.Millisecond

// canWork reports whether a waiting partition's time has come.
func (m *mirror) canWork(p *partition, now time.Time) bool {
	return p.desk.phase == phaseWaiting && !m.blocked(p) && !p.desk.due.After(now)
}

// blocked reports whether a partition waits for something else than time: an answer of the source, or an operator.
func (m *mirror) blocked(p *partition) bool {
	r := &m.refreshes
	return p.desk.gaveUp || r.answered == 0 || p.desk.refresh > r.answered ||
		r.failures > 0 && p.state() == StateFailed && p.cause() == CauseSourceUnreachable
}

// begin brings a waiting partition one step further. It reports whether the partition waits for its PREPARING to be
// stored, which the caller does for all of them at once.
func (m *mirror) begin(p *partition) bool {
	t := p.topic
	if t.problem != nil {
		m.fail(p, t.problem)
		return false
	}
	if p.desk.leader < 0 || m.brokers[p.desk.leader] == "" {
		m.leaderless(p)
		return false
	}
	switch p.state() {
	case StateUnknown, StateFailed:
		if h := p.feed.held; p.cause() == CauseDiskFull && h != nil && h.dir.full.Load() {
			p.desk.due = time.Now().Add(fullPause)
			return false
		}
		p.feed.prior = p.cause()
		if !p.move(StatePreparing, nil) {
			return false
		}
		return true
	case StatePreparing, StateMirroring:
		if !p.desk.stored {
			return true
		}
		m.assign(p)
	default: // a state that only later work enters: nothing is fetched in it
		p.desk.gaveUp = true
	}
	return false
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

// store makes the PREPARING of starting and every other changed state durable with one sync. An action follows only
// where that worked; a FAILED that could not be stored stands all the same: it is found again after a restart.
func (m *mirror) store(starting []*partition) {
	var records []StateRecord
	for _, p := range starting {
		records = append(records, p.record())
	}
	changed := m.changed
	m.changed = nil
	for _, p := range changed {
		p.desk.changed = false
		records = append(records, p.record())
	}
	if len(records) == 0 {
		return
	}
	if err := m.agent.states.append(records...); err != nil {
		m.logger.Error("states could not be stored", slog.Int("partitions", len(records)), slog.Any("err", err))
		for _, p := range starting {
			m.fail(p, failf(causeOf(err), "%v", err))
		}
		return
	}
	for _, p := range changed {
		p.desk.stored = true
	}
	for _, p := range starting {
		p.desk.stored = true
		m.assign(p)
	}
}

// assign gives a partition whose state is stored to a worker that opens its log, or to its fetcher.
func (m *mirror) assign(p *partition) {
	m.configure(p)
	log := p.feed.log
	if log == nil || log.Failed() != nil || p.stats.disk.gone.Load() || p.feed.held.policy != p.config.Load().Policy {
		p.desk.phase = phaseOpening
		m.toOpen = append(m.toOpen, p)
		return
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
		m.fetchers[key] = f
		m.board.mu.Lock()
		m.board.running = append(m.board.running, f)
		m.board.mu.Unlock()
		m.work.Go(func() { f.run(m.ctx) })
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

// released takes back a partition that a fetcher let go.
func (m *mirror) released(r *release) {
	p := r.p
	p.desk.phase, p.desk.fetcher = phaseWaiting, nil
	p.stats.leader.Store(-1)
	if m.ctx.Err() != nil {
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
	attempts := int(p.stats.attempts.Load())
	same := p.state() == StateFailed && p.cause() == why.cause
	attempts++
	p.stats.attempts.Store(int32(attempts))
	p.move(StateFailed, why)
	wait, again := m.agent.cfg.Retry.next(why.cause, attempts)
	p.desk.gaveUp = !again
	p.desk.due = time.Now().Add(wait)
	p.desk.noLeader = 0
	if !again && !same && why.cause.retryClass() == retryCounted {
		m.logger.Error("not tried again", topicAttr(p.tp), partitionAttr(p.tp), slog.Int("attempts", attempts-1),
			slog.String("cause", why.cause.String()), slog.String("remedy", why.cause.remedy()))
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
		delete(m.fetchers, key)
		m.board.mu.Lock()
		m.board.running = slices.DeleteFunc(m.board.running, func(other *fetcher) bool { return other == f })
		m.board.mu.Unlock()
		f.inbox.put(command{quit: true})
	}
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
