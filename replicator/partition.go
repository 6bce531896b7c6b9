package replicator

import (
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"segmirror/segment"
)

// partition is one mirrored partition. It is held by its mirror's goroutine or by one fetcher; the fields under feed
// and its log belong to the holder, those under desk to the mirror always.
type partition struct {
	// immutable
	tp     segment.TopicPartition
	mirror *mirror
	topic  *topic
	late   bool // found after its topic or mirror: it begins at the source's log start

	desk desk
	feed feed

	// atomic: set by the mirror, followed by the fetcher that holds it
	leaderEpoch atomic.Int32                   // -1 = not known
	config      atomic.Pointer[segment.Config] // what the log should have
	identity    atomic.Pointer[segment.SourceID]
	compacted   atomic.Bool

	stats stats
}

// phase is who works on a partition.
type phase int8

const (
	phaseWaiting  phase = iota // nobody: for a leader, a refresh or its next try
	phaseOpening               // a worker opens its log
	phaseFetching              // a fetcher holds it
	phaseSettling              // a worker makes what it has durable: it is being paused or stopped
)

// desk is what the mirror's goroutine knows of a partition.
type desk struct {
	phase      phase
	leader     int32 // -1 = none
	fetcher    *fetcher
	leaving    bool        // its fetcher was asked to let go, for a state it is to have
	settled    bool        // the action of PAUSING or STOPPING is done
	resting    bool        // settled, and not among the partitions that are flushed
	retry      time.Time   // what needs no source is not tried before
	pending    *failure    // becomes its failure once the fetcher has let go
	due        time.Time   // not before; zero = now
	gaveUp     bool        // FAILED and not tried again
	refresh    int         // waits for the answer to this ask
	stale      int         // releases in a row for a leader that is not settled
	noLeader   int         // refreshes in a row without a leader
	stored     bool        // its state in the state log is the present one
	changed    bool        // is in the list of states to be stored
	configured topicConfig // what config was made from
	older      int         // answers in a row with an older leader epoch than the one we know
}

// feed is what the holder knows of a partition.
type feed struct {
	held      *heldLog
	log       *segment.Log
	config    *segment.Config // what the log has
	slot      int
	prior     Cause // why it was FAILED before this start: some causes are checked before it goes on
	steady    bool  // the source answered well since it was added
	corrupt   int   // refused answers in a row
	outside   int   // OFFSET_OUT_OF_RANGE in a row that a second look did not explain
	errors    int   // codes in a row that may pass
	announced bool  // an epoch was told in the answer at hand
	notBefore time.Time
	lastBatch time.Time
	files     files
	appended  int64 // bytes appended to this log since it was opened

	waiting    int64 // about how many bytes the source has beyond our end
	recordSize int64 // of those that came last, in bytes; 0 = none came
	list       *throttleList
	listed     bool  // in list
	least      int32 // what it is asked for at least: less did not let its next batch through
	asked      struct {
		offset int64
		bytes  int32 // 0 = as much as ever
	}
}

// noteLag estimates how much waits at the source after an answer that left lag records there.
func (d *feed) noteLag(lag int64, info *segment.AppendInfo) {
	if info.Batches > 0 {
		d.recordSize = max(1, int64(info.Bytes)/(info.LastOffset-info.FirstOffset+1))
	}
	size := d.recordSize
	if size == 0 {
		size = usualRecord
	}
	d.waiting = max(lag, 0) * size
}

// stats are the numbers others see. All atomic but for lost.
type stats struct {
	state        atomic.Int32
	failure      atomic.Pointer[failure]
	attempts     atomic.Int32
	leader       atomic.Int32
	log          atomic.Pointer[segment.Log] // the newest log, also after it was closed
	sourceOffset atomic.Int64                // -1 = no answer yet
	sourceStart  atomic.Int64                // -1 = no answer yet
	answered     atomic.Pointer[atomic.Int64]
	maxTimestamp atomic.Int64 // of the newest batch with one, -1 = none
	received     atomic.Int64 // when the newest batch was appended, ms; 0 = none
	bytes        atomic.Int64
	batches      atomic.Int64
	gaps         atomic.Int64
	lostRecords  atomic.Int64
	truncated    atomic.Int64 // records cut because the source diverged

	disk diskStats

	// mu guards lost, and makes state and failure one for those who want both.
	mu   sync.Mutex
	lost []LostRange
}

// diskStats pass between the holder and the flusher. All atomic.
type diskStats struct {
	appended atomic.Int64 // bytes since the log was opened
	flushed  atomic.Int64 // of which are durable
	durable  atomic.Int64 // offset, for MarkFlushed; -1 = nothing new
	gone     atomic.Bool  // the directory is not where it was
}

func newPartition(m *mirror, t *topic, index int32) *partition {
	p := &partition{tp: segment.TopicPartition{Topic: t.name, Partition: index}, mirror: m, topic: t}
	p.desk.leader = -1
	p.leaderEpoch.Store(-1)
	p.stats.state.Store(int32(StateUnknown))
	p.stats.leader.Store(-1)
	p.stats.sourceOffset.Store(-1)
	p.stats.sourceStart.Store(-1)
	p.stats.maxTimestamp.Store(-1)
	p.stats.disk.durable.Store(-1)
	return p
}

// state returns the partition's state. Any goroutine.
func (p *partition) state() State { return State(p.stats.state.Load()) }

// want returns what is wanted of its topic. Any goroutine.
func (p *partition) want() Wanted { return p.topic.wanted() }

func (p *partition) cause() Cause {
	if f := p.stats.failure.Load(); f != nil {
		return f.cause
	}
	return CauseNone
}

// move makes next the partition's state, logs it, and reports whether that is legal. Holder only.
func (p *partition) move(next State, why *failure) bool {
	old := p.state()
	logger := p.mirror.logger
	if !old.CanMoveTo(next) {
		logger.Warn("an illegal state change was dropped", topicAttr(p.tp), partitionAttr(p.tp),
			slog.String("old", old.String()), slog.String("new", next.String()))
		return false
	}
	p.stats.mu.Lock()
	before := p.stats.failure.Swap(why)
	p.stats.state.Store(int32(next))
	p.stats.mu.Unlock()
	if why != nil {
		p.mirror.errors.add(why.cause)
	}
	if old == next && (why == nil || before != nil && before.cause == why.cause) {
		return true
	}
	level := slog.LevelInfo
	attrs := []slog.Attr{
		topicAttr(p.tp), partitionAttr(p.tp),
		slog.String("old", old.String()), slog.String("new", next.String()),
	}
	if why != nil {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("cause", why.cause.String()), slog.String("err", why.text))
		if why.cause.retryClass() == retryNever {
			level = slog.LevelError
			remedy := why.cause.remedy(p.mirror.agent.commands(p.mirror.name, p.tp.Topic))
			attrs = append(attrs, slog.String("remedy", remedy))
		}
	}
	logger.LogAttrs(p.mirror.ctx, level, "state change", attrs...)
	return true
}

// record returns what the state log is to hold of the partition.
func (p *partition) record() StateRecord {
	r := StateRecord{
		Type: recordPartitionState, Mirror: p.mirror.name, Topic: p.tp.Topic, Partition: p.tp.Partition,
		State: p.state(),
	}
	if cfg := p.config.Load(); cfg != nil {
		r.Shape = shapeOf(cfg)
	}
	if f := p.stats.failure.Load(); f != nil {
		r.Cause, r.Text, r.Attempts = f.cause, f.text, p.stats.attempts.Load()
	}
	return r
}

// setLog makes log the partition's log. Holder only.
func (p *partition) setLog(h *heldLog, log *segment.Log) {
	p.feed.held, p.feed.log = h, log
	p.feed.config = nil
	p.mirror.agent.working.end(p, filesResting)
	p.feed.lastBatch = time.Now()
	p.feed.appended = 0
	p.feed.waiting, p.feed.least = 0, 0
	p.stats.disk.appended.Store(0)
	p.stats.disk.flushed.Store(0)
	p.stats.disk.durable.Store(-1)
	p.stats.disk.gone.Store(false)
	p.stats.log.Store(log)
}

// lose records that offsets [from, to) were deleted at the source before they were fetched.
func (p *partition) lose(span LostSpan) {
	p.stats.mu.Lock()
	defer p.stats.mu.Unlock()
	p.stats.lost = append(p.stats.lost, LostRange{From: span.From, To: span.To, At: time.UnixMilli(span.AtMs)})
	p.stats.lostRecords.Add(span.To - span.From)
}

// unflushed returns how many appended bytes are not known to be durable. Any goroutine.
func (p *partition) unflushed() int64 {
	return p.stats.disk.appended.Load() - p.stats.disk.flushed.Load()
}

// status returns a snapshot. Any goroutine.
func (p *partition) status(now time.Time) PartitionStatus {
	s := &p.stats
	s.mu.Lock()
	state, why, lost := p.state(), s.failure.Load(), slices.Clone(s.lost)
	s.mu.Unlock()
	out := PartitionStatus{
		Topic: p.tp.Topic, Partition: p.tp.Partition, State: state, Wanted: p.want(), Lost: lost,
		Attempts: int(s.attempts.Load()), Leader: s.leader.Load(), SourceOffset: s.sourceOffset.Load(),
		EndOffset: -1, LogStart: -1, HighWatermark: -1, LagRecords: -1, LagSeconds: -1,
		PartitionCounts: PartitionCounts{
			Bytes: s.bytes.Load(), Batches: s.batches.Load(), LostRecords: s.lostRecords.Load(), Gaps: s.gaps.Load(),
			Truncated: s.truncated.Load(),
		},
	}
	if why != nil {
		out.Cause, out.CauseText = why.cause, why.text
	}
	if log := s.log.Load(); log != nil {
		out.LogStart, out.EndOffset, out.HighWatermark = log.LogStartOffset(), log.LogEndOffset(), log.HighWatermark()
		out.Dir = log.Dir()
	}
	if out.SourceOffset >= 0 && out.EndOffset >= 0 {
		out.LagRecords = max(0, out.SourceOffset-out.EndOffset)
		out.LagSeconds = s.lagSeconds(now, out.LagRecords)
	}
	return out
}

// answerGrace is how old the newest answer may be for a partition to count as caught up: a long poll waits that long.
const answerGrace = 5 * time.Second

// lagSeconds is how far behind the source the copy is, by the clock of the records: the age of the newest mirrored
// batch while records are missing, 0 when none is, and the age of the last answer once the source is silent. -1 =
// not known: batches without a timestamp.
func (s *stats) lagSeconds(now time.Time, lagRecords int64) float64 {
	silent := time.Duration(math.MaxInt64)
	if at := s.answered.Load(); at != nil {
		silent = now.Sub(time.UnixMilli(at.Load()))
	}
	if lagRecords == 0 {
		if silent <= answerGrace {
			return 0
		}
		return silent.Seconds()
	}
	newest := s.maxTimestamp.Load()
	if newest < 0 {
		return -1
	}
	return max(0, now.Sub(time.UnixMilli(newest)).Seconds())
}

// noteAppend counts one answer's batches. Holder only; no allocation.
func (p *partition) noteAppend(info *segment.AppendInfo, now time.Time) {
	if info.Batches == 0 {
		return
	}
	s := &p.stats
	p.feed.lastBatch = now
	p.feed.appended += int64(info.Bytes)
	s.disk.appended.Store(p.feed.appended)
	s.bytes.Add(int64(info.Bytes))
	s.batches.Add(int64(info.Batches))
	if info.MaxTimestampMs >= 0 {
		s.maxTimestamp.Store(info.MaxTimestampMs)
	}
	s.received.Store(now.UnixMilli())
	if info.Gaps > 0 && !p.compacted.Load() {
		s.gaps.Add(int64(info.Gaps))
	}
}

func topicAttr(tp segment.TopicPartition) slog.Attr { return slog.String("topic", tp.Topic) }
func partitionAttr(tp segment.TopicPartition) slog.Attr {
	return slog.Int("partition", int(tp.Partition))
}
