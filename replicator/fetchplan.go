package replicator

import (
	"math"
	"math/bits"
	"time"

	"segmirror/fetchwire"
)

const (
	// tailWait is about how long an answer may take that others at the end of their logs wait behind.
	tailWait = 200 * time.Millisecond
	// leastBackfill is what a partition that is far behind is asked for at least, while others are at their ends.
	leastBackfill = 1 << 20
	// leastThrottled is the same for one under a throttle that several share.
	leastThrottled = 64 << 10
	// turnWait bounds a fetch that leaves out partitions whose turn it is not.
	turnWait = 50 * time.Millisecond
	// usualRecord is what a record is taken to be in bytes until one has come.
	usualRecord = 1 << 10
)

// fetchPlan shares the next answer among the partitions that may be asked for: those near their logs' ends come
// before those far behind, and what is throttled is not asked for more than its throttle has free. Owner: a fetcher.
//
// A broker fills an answer in the order of its session, up to the limit of the whole, and lets one first batch of any
// size pass. So those far behind are given a part of the limit, few at a time and by turns, and those near their ends
// always find room.
type fetchPlan struct {
	wanted     []fetchwire.SessionPartition // the outcome
	candidates []*partition
	tails      int
	backfill   turns // far behind, while others are not
	throttled  turns // listed, and with records waiting
	listed     int   // listed, near their ends
	free       int64 // of the node's throttle
	maxBytes   int32 // of the whole answer
	maxWait    time.Duration
	lastAsked  int32 // maxBytes of the fetch before
	lastBytes  int64 // what came in answer to it

	speed  float64       // bytes/s at which answers are read and appended, 0 = not known
	asked  time.Time     // when the newest fetch was sent
	window time.Duration // for throttles
	shares [2]*throttle  // whose sharers this fetcher is counted among
}

// turns lets some of a group through at a time.
type turns struct {
	n, admit int
	ask      int32 // what each may be asked for
	at, seen int
}

// divide settles how many of the group share budget bytes this time: each gets at least least bytes, at most most.
func (t *turns) divide(budget, least int64, most int32) {
	t.seen = 0
	if t.n == 0 {
		return
	}
	t.at %= t.n
	t.admit = int(min(max(budget/least, 1), int64(t.n)))
	t.ask = int32(min(max(budget/int64(t.admit), 1), int64(most)))
}

// next reports whether the next of the group is let through.
func (t *turns) next() bool {
	i := t.seen - t.at
	if i < 0 {
		i += t.n
	}
	t.seen++
	return i < t.admit
}

// rest ends a round: the next begins behind those let through. It reports whether any was left out.
func (t *turns) rest() bool {
	waits := t.n > t.admit
	if t.n > 0 {
		t.at = (t.at + t.admit) % t.n
	}
	t.n, t.admit = 0, 0
	return waits
}

// choose fills the plan's wanted with the partitions to ask for now, and returns how long to wait if there is none.
func (f *fetcher) choose(now time.Time) time.Duration {
	wait := time.Hour
	plan := &f.plan
	plan.candidates, plan.tails, plan.listed = plan.candidates[:0], 0, 0
	node, mine := &f.mirror.agent.throttles.node, f.mirror.throttle
	list := f.mirror.agent.throttles.listed.Load()
	free, nodeWait := node.free(now, plan.window)
	mineFree, mineWait := mine.free(now, plan.window)
	anyListed := false
	for _, p := range f.slots {
		if p == nil {
			continue
		}
		if p.feed.list != list {
			p.feed.list, p.feed.listed = list, list.holds(p.tp, f.mirror.agent.throttles.nodeID)
		}
		throttled := p.feed.listed && free != math.MaxInt64
		anyListed = anyListed || throttled
		due := f.ready(p, now)
		if throttled {
			due = max(due, nodeWait)
		}
		if due = max(due, mineWait); due > 0 {
			wait = min(wait, due)
			continue
		}
		if f.slots[p.feed.slot] == p { // it was not let go just now
			plan.add(p, throttled)
		}
	}
	plan.share(0, node, anyListed)
	plan.share(1, mine, mine.rate.Load() > 0)
	plan.free = free
	f.fill(mineFree)
	plan.maxWait = max(min(plan.maxWait, wait), min(leastPause, plan.maxWait))
	return wait
}

// ready returns how long a partition has to wait for its back-off or for the disk, 0 = it does not.
func (f *fetcher) ready(p *partition, now time.Time) time.Duration {
	if p.feed.notBefore.After(now) {
		return p.feed.notBefore.Sub(now)
	}
	if p.unflushed() > 2*f.mirror.agent.cfg.Log.FlushBytes { // the disk is slower than the source
		f.mirror.agent.flusher.kick()
		return throttledPause
	}
	if p.feed.held.dir.full.Load() {
		f.release(release{p: p, why: failf(CauseDiskFull, "%s has less than min.free.bytes", p.feed.held.dir.dir.Path())})
	}
	return 0
}

func (plan *fetchPlan) add(p *partition, throttled bool) {
	plan.candidates = append(plan.candidates, p)
	switch behind := p.feed.waiting > 0; {
	case throttled && behind:
		plan.throttled.n++
	case throttled:
		plan.listed++
	case p.feed.waiting > leastBackfill:
		plan.backfill.n++
	default:
		plan.tails++
	}
}

// share counts the fetcher among those that share a throttle, while it holds partitions under it.
func (plan *fetchPlan) share(i int, t *throttle, shares bool) {
	switch was := plan.shares[i] != nil; {
	case shares && !was:
		t.sharers.Add(1)
		plan.shares[i] = t
	case !shares && was:
		plan.shares[i].sharers.Add(-1)
		plan.shares[i] = nil
	}
}

// leave takes the fetcher out of every throttle's sharers.
func (plan *fetchPlan) leave() {
	for i := range plan.shares {
		plan.share(i, nil, false)
	}
}

// fill shares the answer among the candidates and makes wanted of them, those near their ends first. mineFree is what
// the mirror's throttle has free.
func (f *fetcher) fill(mineFree int64) {
	plan, cfg := &f.plan, &f.cfg.Fetch
	budget := min(int64(cfg.ResponseMaxBytes), mineFree)
	if plan.tails == 0 && plan.backfill.n == 0 {
		budget = min(budget, plan.free)
	}
	plan.maxBytes = int32(budget)
	most := cfg.MaxBytes
	if plan.maxBytes < most {
		most = steady(budget)
	}
	mixed := plan.tails+plan.listed > 0 && plan.backfill.n > 0
	if mixed {
		plan.backfill.divide(plan.backfillBytes(), leastBackfill, most)
	} else {
		plan.backfill.n = 0
	}
	plan.throttled.divide(plan.free, leastThrottled, most)
	listedAsk := min(most, steady(max(plan.free/int64(max(plan.listed, 1)), leastThrottled/4)))
	plan.wanted = plan.wanted[:0]
	for _, late := range [2]bool{false, true} {
		for _, p := range plan.candidates {
			throttled := p.feed.listed && plan.free != math.MaxInt64
			ask, through := most, true
			turned := throttled && p.feed.waiting > 0 || mixed && !throttled && p.feed.waiting > leastBackfill
			if turned != late {
				continue
			}
			switch {
			case throttled && turned:
				ask, through = plan.throttled.ask, plan.throttled.next()
			case throttled:
				ask = listedAsk
			case turned:
				ask, through = plan.backfill.ask, plan.backfill.next()
			}
			if through {
				plan.wanted = append(plan.wanted, f.want(p, plan.enough(p, ask, cfg.MaxBytes)))
			}
		}
		if plan.throttled.n == 0 && !mixed {
			break
		}
	}
	plan.maxWait = cfg.WaitMax
	if left := plan.throttled.rest(); plan.backfill.rest() || left {
		plan.maxWait = min(plan.maxWait, turnWait)
	}
}

// steady rounds down to a power of two, so that what varies from fetch to fetch does not make a session name every
// partition each time.
func steady(bytes int64) int32 {
	return 1 << min(bits.Len64(uint64(max(bytes, 1)))-1, 30)
}

// backfillBytes is how much of an answer is for those far behind: not so much that the others wait long for its end.
func (plan *fetchPlan) backfillBytes() int64 {
	bytes := int64(plan.maxBytes) / 4 * 3
	if plan.speed > 0 {
		bytes = min(bytes, max(int64(plan.speed*tailWait.Seconds()), leastBackfill))
	}
	return bytes
}

// enough raises what a partition is asked for to what its next batch needs: a broker sends a batch that is larger only
// first in its answer. That one did not come although there was room says that it is.
func (plan *fetchPlan) enough(p *partition, ask, most int32) int32 {
	feed := &p.feed
	next := feed.log.LogEndOffset()
	if feed.asked.bytes > 0 && feed.asked.offset == next && p.stats.sourceOffset.Load() > next &&
		plan.lastBytes+int64(feed.asked.bytes) <= int64(plan.lastAsked) {
		feed.least = min(2*min(feed.asked.bytes, most/2), most)
	}
	ask = max(ask, min(feed.least, most))
	feed.asked.offset, feed.asked.bytes = next, 0
	if ask < most {
		feed.asked.bytes = ask
	}
	return ask
}

func (f *fetcher) want(p *partition, maxBytes int32) fetchwire.SessionPartition {
	log := p.feed.log
	epoch, known := log.LatestSourceEpoch()
	if !known {
		epoch = -1
	}
	last := epoch
	if f.announces {
		last = -1 // the source's epoch says it, in its own field
	}
	return fetchwire.SessionPartition{
		Topic: p.tp.Topic, TopicID: p.identity.Load().TopicID, Slot: p.feed.slot,
		FetchPartition: fetchwire.FetchPartition{
			Partition: p.tp.Partition, CurrentLeaderEpoch: p.leaderEpoch.Load(), FetchOffset: log.LogEndOffset(),
			LastFetchedEpoch: last, LogStartOffset: -1, MaxBytes: maxBytes,
			HighWatermark: fetchwire.NoHighWatermark, MirrorLeaderEpoch: epoch,
		},
	}
}

// noteAnswer keeps what the next plan is made by: bytes came, and were appended in took.
func (plan *fetchPlan) noteAnswer(bytes int64, took time.Duration) {
	plan.lastAsked, plan.lastBytes = plan.maxBytes, bytes
	plan.window = min(max(throttleWindow, time.Since(plan.asked)), 10*throttleWindow)
	if bytes >= leastThrottled && took > 0 {
		speed := float64(bytes) / took.Seconds()
		if plan.speed > 0 {
			speed = (3*plan.speed + speed) / 4
		}
		plan.speed = speed
	}
}
