package replicator

import "time"

// Status is a snapshot of an agent. Its slices belong to the caller.
type Status struct {
	NodeID    int32
	ClusterID string
	Mirrors   []MirrorStatus
	LogDirs   []LogDirStatus
}

// MirrorStatus is one mirror: its source, partitions (sorted by topic and partition) and fetchers.
type MirrorStatus struct {
	Name            string
	SourceClusterID string // "" until known
	EpochPolicy     EpochPolicy
	Refreshed       time.Time // last metadata answer of the source; zero = none yet
	RefreshError    string    // why the newest refresh failed; "" = it did not
	Partitions      []PartitionStatus
	Fetchers        []FetcherStatus
}

// PartitionStatus is one mirrored partition. Offsets and lags are -1 while they are not known.
type PartitionStatus struct {
	Topic         string
	Partition     int32
	State         State
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
	Bytes         int64 // appended since the agent started
	Batches       int64
	LostRecords   int64
	Lost          []LostRange
	Dir           string // the log directory that holds it
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
}

// LogDirStatus is one entry of log.dirs.
type LogDirStatus struct {
	Path       string
	FreeBytes  int64 // -1 = not known
	TotalBytes int64
	Full       bool // appends are paused for want of room
}
