package replicator

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"
)

// Status is a snapshot of an agent. Its slices belong to the caller.
type Status struct {
	NodeID    int32
	ClusterID string
	Throttle  ThrottleStatus // of the partitions that topics list
	Mirrors   []MirrorStatus
	LogDirs   []LogDirStatus
}

// ThrottleStatus is one limit on what is appended.
type ThrottleStatus struct {
	Rate  int64 // bytes per second, 0 = no limit
	Bytes int64 // appended under a limit since the agent started
}

// MirrorStatus is one mirror: its source, partitions (sorted by topic and partition) and fetchers.
type MirrorStatus struct {
	Name            string
	SourceClusterID string // "" until known
	EpochPolicy     EpochPolicy
	Refreshed       time.Time       // last metadata answer of the source; zero = none yet
	RefreshError    string          // why the newest refresh failed; "" = it did not
	Throttle        ThrottleStatus  // of all its partitions together
	Errors          map[Cause]int64 // since the agent started; causes without any are left out
	Partitions      []PartitionStatus
	Fetchers        []FetcherStatus
}

// PartitionStatus is one mirrored partition. Offsets and lags are -1 while they are not known.
type PartitionStatus struct {
	Topic         string
	Partition     int32
	State         State
	Wanted        Wanted // of its topic
	Cause         Cause  // why it is FAILED; CauseNone otherwise
	CauseText     string // the facts of Cause: offsets, epochs, sums
	Attempts      int
	Leader        int32 // the source broker it is fetched from, -1 = none
	SourceOffset  int64 // the source leader's high watermark
	LogStart      int64
	EndOffset     int64 // exclusive
	HighWatermark int64
	LagRecords    int64
	LagSeconds    float64
	PartitionCounts
	Lost []LostRange
	Dir  string // the log directory that holds it
}

// PartitionCounts count what became of a partition since the agent started, LostRecords since it was first mirrored.
type PartitionCounts struct {
	Bytes       int64 // appended
	Batches     int64
	Gaps        int64 // places where offsets were missing although the source does not compact
	Truncated   int64 // records cut because the source elected a leader without them
	LostRecords int64
}

// LostRange is a range of offsets [From, To) that the source had deleted before the mirror could fetch it.
type LostRange struct {
	From, To int64
	At       time.Time
}

// FetcherStatus is one fetcher: a connection to one source broker.
type FetcherStatus struct {
	Broker     int32
	Number     int
	Partitions int
	Busy       time.Duration // reading and appending, without the waits
	Throttled  time.Duration // told to wait by the source
	Fetches    int64
	// ThrottledUntil is when the source's quota lets it ask again, zero while it may.
	ThrottledUntil time.Time
}

// LogDirStatus is one entry of log.dirs.
type LogDirStatus struct {
	Path       string
	FreeBytes  int64 // -1 = not known
	TotalBytes int64
	Full       bool // appends are paused for want of room
}

// Status returns a snapshot of what the agent holds. Any goroutine.
func (a *Agent) Status() Status {
	now := time.Now()
	out := Status{NodeID: a.cfg.NodeID, ClusterID: a.clusterID(), Throttle: a.throttles.node.status()}
	for _, m := range a.allMirrors() {
		out.Mirrors = append(out.Mirrors, m.status(now))
	}
	for _, d := range a.logs.dirs {
		out.LogDirs = append(out.LogDirs, LogDirStatus{
			Path: d.dir.Path(), FreeBytes: d.free.Load(), TotalBytes: d.total.Load(), Full: d.full.Load(),
		})
	}
	return out
}

func (m *mirror) status(now time.Time) MirrorStatus {
	m.board.mu.Lock()
	out := MirrorStatus{
		Name: m.name, SourceClusterID: m.board.clusterID, EpochPolicy: m.board.policy, Refreshed: m.board.refreshed,
		RefreshError: m.board.refErr, Errors: m.errors.snapshot(), Throttle: m.throttle.status(),
	}
	parts, fetchers := slices.Clone(m.board.parts), slices.Clone(m.board.running)
	m.board.mu.Unlock()
	slices.SortFunc(parts, func(a, b *partition) int { return compareTP(a.tp, b.tp) })
	for _, p := range parts {
		out.Partitions = append(out.Partitions, p.status(now))
	}
	slices.SortFunc(fetchers, func(a, b *fetcher) int {
		return cmp.Or(cmp.Compare(a.key.broker, b.key.broker), cmp.Compare(a.key.number, b.key.number))
	})
	for _, f := range fetchers {
		out.Fetchers = append(out.Fetchers, f.status(now))
	}
	return out
}

func (f *fetcher) status(now time.Time) FetcherStatus {
	out := FetcherStatus{
		Broker: f.key.broker, Number: f.key.number, Partitions: int(f.stats.partitions.Load()),
		Busy: time.Duration(f.stats.busyNs.Load()), Throttled: time.Duration(f.stats.throttledNs.Load()),
		Fetches: f.stats.fetches.Load(),
	}
	if until := time.UnixMilli(f.stats.throttledUntil.Load()); until.After(now) {
		out.ThrottledUntil = until
	}
	return out
}

// errorCounts counts failures of one mirror by cause. Any goroutine.
type errorCounts struct{ n [32]atomic.Int64 }

func (e *errorCounts) add(c Cause) {
	if c >= 0 && int(c) < len(e.n) {
		e.n[c].Add(1)
	}
}

func (e *errorCounts) snapshot() map[Cause]int64 {
	out := map[Cause]int64{}
	for c := range e.n {
		if n := e.n[c].Load(); n > 0 {
			out[Cause(c)] = n
		}
	}
	return out
}
