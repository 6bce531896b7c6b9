package replicator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"segmirror/fetchwire"
)

const (
	dialTries      = 3                      // failed connections in a row before the partitions are FAILED
	dialPause      = 250 * time.Millisecond // between them, times the try
	corruptTries   = 3                      // refused answers in a row before a partition is FAILED
	passingTries   = 5                      // answers with a code that may pass, likewise
	outsideTries   = 3                      // OFFSET_OUT_OF_RANGE that a second look did not explain, likewise
	throttledPause = 20 * time.Millisecond  // look again at partitions that wait for the disk
)

// fetcherKey names a fetcher: partitions of one source broker are spread over several.
type fetcherKey struct {
	broker int32
	number int
}

// fetcher owns a connection to one source broker and the logs of the partitions it holds: it asks, and what comes is
// appended, on one goroutine. The mirror adds and removes partitions through its inbox; the fetcher lets go of one by
// an event.
type fetcher struct {
	// immutable
	key    fetcherKey
	mirror *mirror
	cfg    MirrorConfig // the mirror's when the fetcher was made
	inbox  *mailbox[command]
	done   chan struct{} // closed when run has returned

	// owner
	conn    *fetchwire.Conn
	session *fetchwire.FetchSession
	slots   []*partition // by slot; nil = free
	care    care         // of those
	fresh   []*partition // added, not prepared yet
	leaving []release
	spare   []command
	speech
	quit bool
	findings
	plan  fetchPlan
	quota sourceQuota
	link  link

	// atomic
	addr  atomic.Pointer[string]
	stats fetcherStats
}

// findings are what the answer at hand left to be done once it is read.
type findings struct {
	suspected []*partition   // refused as out of range
	announced []announcement // of the source's epoch
}

// speech is what the broker of the connection says by itself.
type speech struct {
	// tellsDivergence: the broker compares our newest epoch at each fetch (version 12 on); an older one is asked when a
	// partition is added, and so after each change of its leader.
	tellsDivergence bool
	// announces: the broker is an agent that tells its source's epochs beside the batches (version 19).
	announces bool
}

type fetcherStats struct {
	partitions, busyNs, throttledNs, fetches atomic.Int64
	answered                                 atomic.Int64 // when the newest answer came, ms
	throttledUntil                           atomic.Int64 // ms: the source told us to ask nothing before, 0 = never
}

// command adds a partition, removes it, or ends a fetcher that holds none.
type command struct {
	p      *partition
	remove bool
	quit   bool
}

// release is a partition that leaves, and why: a failure, or nil with stale when the source should be asked again.
type release struct {
	p     *partition
	why   *failure
	stale bool
	hint  fetchwire.LeaderIDAndEpoch
	addr  string // the hinted leader's, "" = not said
}

func newFetcher(m *mirror, key fetcherKey, addr string) *fetcher {
	f := &fetcher{
		key:    key,
		mirror: m,
		cfg:    m.cfg,
		inbox:  newMailbox[command](),
		done:   make(chan struct{}),
	}
	f.addr.Store(&addr)
	return f
}

// run fetches until ctx is done. The mirror starts it and waits for done.
func (f *fetcher) run(ctx context.Context) {
	defer close(f.done)
	defer f.dropLink()
	defer f.link.stop()
	defer f.disconnect()
	defer f.plan.leave()
	for ctx.Err() == nil && !f.quit {
		f.takeCommands()
		f.round(ctx)
	}
	f.takeCommands()
	for _, p := range f.all() {
		f.release(release{p: p})
	}
	f.letGo(nil)
}

// round does the next thing there is to do: connect, prepare, fetch once or wait.
func (f *fetcher) round(ctx context.Context) {
	if len(f.fresh) == 0 && f.stats.partitions.Load() == 0 {
		f.plan.leave()
		if f.conn != nil {
			f.closeSession(f.link.ctx)
		}
		if !f.quit {
			f.wait(ctx, time.Hour)
		}
		return
	}
	if f.sitOut(ctx) || f.conn == nil && !f.connect(ctx) {
		return
	}
	f.prepareFresh(f.link.ctx)
	if f.conn == nil { // lost while partitions were prepared: connect again, they have not been asked about yet
		return
	}
	f.keep(time.Now())
	if wait := f.choose(time.Now()); len(f.plan.wanted) == 0 {
		f.letGo(nil)
		f.wait(ctx, wait)
		return
	}
	f.fetch(f.link.ctx)
}

// wait sleeps until something is in the inbox, d has passed or ctx is done.
func (f *fetcher) wait(ctx context.Context, d time.Duration) {
	f.link.asking.Store(0)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-f.inbox.ready:
	case <-timer.C:
	}
}

func (f *fetcher) takeCommands() {
	commands := f.inbox.take(f.spare)
	for _, c := range commands {
		switch {
		case c.quit:
			f.quit = true
			continue
		case c.remove:
			f.release(release{p: c.p})
			continue
		}
		f.fresh = append(f.fresh, c.p)
	}
	if commands != nil {
		clear(commands)
		f.spare = commands
	}
	f.letGo(nil)
}

// all returns every partition the fetcher holds.
func (f *fetcher) all() []*partition {
	out := slices.Clone(f.fresh)
	for _, p := range f.slots {
		if p != nil {
			out = append(out, p)
		}
	}
	return out
}

// seat gives a prepared partition a slot.
func (f *fetcher) seat(p *partition) {
	p.stats.answered.Store(&f.stats.answered)
	p.feed.notBefore = time.Time{}
	slot := slices.Index(f.slots, nil)
	if slot < 0 {
		slot = len(f.slots)
		f.slots = append(f.slots, nil)
	}
	f.slots[slot] = p
	p.feed.slot = slot
	f.care.last = time.Time{}
	f.stats.partitions.Add(1)
}

// release takes a partition out and queues it for the mirror; letGo sends it.
func (f *fetcher) release(r release) {
	if i := slices.Index(f.fresh, r.p); i >= 0 {
		f.fresh = slices.Delete(f.fresh, i, i+1)
	} else if r.p.feed.slot < len(f.slots) && f.slots[r.p.feed.slot] == r.p {
		f.slots[r.p.feed.slot] = nil
		f.stats.partitions.Add(-1)
	} else {
		return // left before
	}
	last := new(atomic.Int64) // what others hear of this broker is no answer about this partition any more
	last.Store(f.stats.answered.Load())
	r.p.stats.answered.Store(last)
	f.leaving = append(f.leaving, r)
}

// letGo sends what left to the mirror. Leader addresses named by an answer are filled in.
func (f *fetcher) letGo(endpoints []fetchwire.NodeEndpoint) {
	for _, r := range f.leaving {
		for _, e := range endpoints {
			if r.hint.LeaderID >= 0 && e.NodeID == r.hint.LeaderID {
				r.addr = hostPort(e.Host, e.Port)
			}
		}
		f.mirror.inbox.put(event{released: &r, fetcher: f})
	}
	clear(f.leaving)
	f.leaving = f.leaving[:0]
}

func (f *fetcher) disconnect() {
	if f.conn != nil {
		f.conn.Close() // nothing is lost with it
		f.conn = nil
	}
}

// announcedVersion is the version of Fetch from which agents tell each other the epochs of the source. Kafka has none
// of it yet; fetchwire uses it with agents only.
const announcedVersion = 19

func (f *fetcher) clientID() string {
	return fmt.Sprintf("broker-%d-fetcher-%d-mirror-%s", f.mirror.agent.cfg.NodeID, f.key.number, f.mirror.name)
}

// connect dials; after dialTries failures in a row every partition is let go, FAILED.
func (f *fetcher) connect(ctx context.Context) bool {
	ctx = f.newLink(ctx)
	cfg := &f.cfg.Client
	dial, err := cfg.dialConfig(*f.addr.Load(), f.clientID(), cfg.SocketTimeout)
	if err == nil {
		f.conn, err = fetchwire.Dial(ctx, dial)
	}
	if err == nil {
		var version int16
		if version, err = f.conn.Version(fetchwire.KeyFetch); err == nil {
			f.session = fetchwire.NewFetchSession(version)
			f.speech = speech{tellsDivergence: version >= 12, announces: version >= announcedVersion}
			return true
		}
	}
	f.lost(ctx, err)
	return false
}

// lost closes a broken connection and waits before the next try, or lets every partition go after the last.
func (f *fetcher) lost(ctx context.Context, err error) {
	over := ctx.Err() != nil // of the agent, or hung up
	f.disconnect()
	if over {
		return
	}
	f.link.dialFails++
	f.mirror.errors.add(CauseSourceUnreachable)
	f.mirror.logger.Warn("source broker lost", slog.Int("broker", int(f.key.broker)),
		slog.String("addr", *f.addr.Load()), slog.Int("attempt", f.link.dialFails), slog.Any("err", err))
	f.mirror.inbox.put(event{brokerLost: true, fetcher: f})
	if f.link.dialFails < dialTries {
		f.wait(ctx, dialPause*time.Duration(f.link.dialFails))
		return
	}
	cause := CauseSourceUnreachable
	if unauthenticated(err) {
		cause = CauseNotAuthorized
	}
	f.link.dialFails = 0
	for _, p := range f.all() {
		f.release(release{p: p, why: failf(cause, "broker %d at %s: %v", f.key.broker, *f.addr.Load(), err)})
	}
	f.letGo(nil)
}

func unauthenticated(err error) bool {
	var code fetchwire.KafkaError
	return errors.Is(err, fetchwire.ErrSASL) || errors.As(err, &code) &&
		(code.Code == fetchwire.CodeSaslAuthenticationFailed || code.Code == fetchwire.CodeUnsupportedSaslMechanism)
}

// closeSession tells a broker that is not needed any more to forget us, and hangs up.
func (f *fetcher) closeSession(ctx context.Context) {
	if req := f.session.CloseRequest(); req != nil && !f.quota.holds(time.Now()) {
		if stream, err := f.conn.Fetch(ctx, req); err == nil {
			for stream.Next() { // a closing answer holds nothing
			}
			stream.Close() // the connection goes next
		}
	}
	f.disconnect()
}

// care is when a fetcher looked after its partitions.
type care struct {
	last time.Time    // zero = one came since
	idle []*partition // to be parked; reused
}

// keepPause is how often a fetcher looks after the partitions it holds.
const keepPause = 100 * time.Millisecond

// keep does what is due for the partitions between two fetches, now and then: recovery points, new configurations,
// parking.
func (f *fetcher) keep(now time.Time) {
	if now.Sub(f.care.last) < keepPause {
		return
	}
	f.care.last = now
	for _, p := range f.slots {
		if p == nil {
			continue
		}
		if p.stats.disk.durable.Load() >= 0 {
			p.feed.log.MarkFlushed(p.stats.disk.durable.Swap(-1))
		}
		if err := f.keepOne(p); err != nil {
			f.release(release{p: p, why: f.ioFailure(p, err)})
		}
	}
	f.parkIdle(now)
}

func (f *fetcher) keepOne(p *partition) error {
	if p.stats.disk.gone.Load() {
		return errDirectoryLost
	}
	if err := p.feed.log.Failed(); err != nil {
		return err
	}
	if cfg := p.config.Load(); cfg != nil && cfg != p.feed.config {
		if err := p.feed.log.SetConfig(*cfg); err != nil {
			return err
		}
		p.feed.config = cfg
	}
	return nil
}

// fetch asks once and appends what comes.
func (f *fetcher) fetch(ctx context.Context) {
	cfg := &f.cfg.Fetch
	req := f.session.Next(fetchwire.FetchParams{
		MaxWaitMs: int32(f.plan.maxWait / time.Millisecond), MinBytes: cfg.MinBytes, MaxBytes: f.plan.maxBytes,
	}, f.plan.wanted)
	f.plan.asked = time.Now()
	f.link.asking.Store(f.plan.asked.UnixNano())
	stream, err := f.conn.Fetch(ctx, req)
	if err != nil {
		f.lost(ctx, err)
		return
	}
	began := time.Now()
	f.link.asking.Store(began.UnixNano())
	f.stats.fetches.Add(1)
	f.stats.answered.Store(began.UnixMilli())
	head := stream.Head()
	sessionErr := f.session.HandleResponse(head.SessionID, head.ErrorCode)
	bytes := int64(0)
	for stream.Next() {
		bytes += int64(stream.Partition().RecordsSize)
		f.apply(ctx, stream)
	}
	err = stream.Err()
	f.recordAnnounced(began)
	f.letGo(stream.NodeEndpoints())
	stream.Close() // says again what Err said
	took := time.Since(began)
	f.plan.noteAnswer(bytes, took)
	f.stats.busyNs.Add(int64(took))
	if f.mirror.logger.Enabled(ctx, slog.LevelDebug) {
		f.mirror.logger.LogAttrs(ctx, slog.LevelDebug, "fetched", slog.Int("broker", int(f.key.broker)),
			slog.Int("partitions", len(f.plan.wanted)), slog.Int64("bytes", bytes), slog.Duration("took", took))
	}
	if err != nil {
		f.lost(ctx, err)
		return
	}
	f.link.dialFails = 0
	f.afterFetch(ctx, sessionErr, head.ThrottleMs)
}

// afterFetch waits as the source told us to, and asks again for a session that was lost.
func (f *fetcher) afterFetch(ctx context.Context, sessionErr error, throttleMs int32) {
	f.investigate(ctx)
	if sessionErr != nil && !sessionGone(sessionErr) {
		f.mirror.logger.Warn("fetch refused", slog.Int("broker", int(f.key.broker)), slog.Any("err", sessionErr))
		f.mirror.errors.add(CauseProtocol)
		f.refusedWhole(ctx, sessionErr)
	}
	if sessionErr == nil {
		f.link.refusals = 0
	}
	f.noteQuota(time.Now(), throttleMs)
}

// refusedWhole waits before the next try after an answer that was refused as a whole, or lets every partition go.
func (f *fetcher) refusedWhole(ctx context.Context, err error) {
	if f.link.refusals++; f.link.refusals < passingTries {
		f.wait(ctx, f.cfg.Fetch.Backoff)
		return
	}
	cause := CauseProtocol
	if code := (fetchwire.KafkaError{}); errors.As(err, &code) && kindOf(code.Code) == codeAuthorization {
		cause = CauseNotAuthorized
	}
	for _, p := range f.all() {
		f.release(release{p: p, why: failf(cause, "broker %d refused %d fetches: %v", f.key.broker, f.link.refusals, err)})
	}
	f.link.refusals = 0
	f.letGo(nil)
}

func sessionGone(err error) bool {
	var code fetchwire.KafkaError
	return errors.As(err, &code) && (code.Code == fetchwire.CodeFetchSessionIDNotFound ||
		code.Code == fetchwire.CodeInvalidFetchSessionEpoch || code.Code == fetchwire.CodeFetchSessionTopicIDError)
}

// ioFailure says why a log here cannot go on.
func (f *fetcher) ioFailure(p *partition, err error) *failure {
	switch {
	case p.stats.disk.gone.Load() || isGone(err):
		return failf(CauseDirectoryLost, "%s: %v", p.feed.log.Dir(), err)
	case isNoSpace(err):
		return failf(CauseDiskFull, "%v", err)
	default:
		return failf(CauseIO, "%v", err)
	}
}
