package replicator

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// EpochPolicy says which leader epoch a mirrored batch carries on disk.
type EpochPolicy int8

const (
	// EpochPolicyDefault lets the agent choose: rebase where a hand-off is configured, else preserve.
	EpochPolicyDefault EpochPolicy = iota
	// EpochPolicyPreserve keeps the source's epochs, so that batches are byte-identical.
	EpochPolicyPreserve
	// EpochPolicyRebase stamps one constant epoch on every batch of a partition.
	EpochPolicyRebase
)

// String returns the policy's word in configuration files.
func (p EpochPolicy) String() string {
	switch p {
	case EpochPolicyPreserve:
		return "preserve"
	case EpochPolicyRebase:
		return "rebase"
	default:
		return "default"
	}
}

// Config is everything one agent is told. It is not changed after New.
//
// Durations are whole milliseconds in the file. DefaultConfig gives the defaults, ParseConfig reads properties
// and Validate checks a Config that was made by hand.
type Config struct {
	NodeID           int32    // node.id: the id of the broker this agent stands beside
	ClusterID        string   // cluster.id: the destination cluster's; "" = asked or made once
	LogDirs          []string // log.dirs
	MetadataLogDir   string   // metadata.log.dir: where the state logs live; "" = the first of log.dirs
	MetricsListener  string   // metrics.listener: host:port of /metrics and /healthz; "" = none
	Role             string   // mirror.role: primary or replica
	MinFreeBytes     int64    // min.free.bytes: appends pause below it
	RecoveryThreads  int      // num.recovery.threads.per.data.dir
	IdlePartitionAge time.Duration
	NumFetchers      int // mirror.num.replica.fetchers, per source broker and mirror
	MetadataRefresh  time.Duration
	ThrottledRate    int64 // mirror.replication.throttled.rate, bytes/s of the partitions topics list; 0 = no limit
	Log              LogConfig
	Retry            RetryConfig
	Server           ServerConfig
	Handoff          HandoffConfig
	DeclaredMirrors
	StatePartitions int32    // mirror.state.topic.num.partitions
	Nodes           []string // mirror.nodes: reserved for several agents
	WithoutEffect   []string // keys that were accepted but belong to capabilities this version does not have
}

// DeclaredMirrors are the mirrors that a configuration declares.
type DeclaredMirrors struct {
	Mirrors []MirrorConfig

	mirrorDefaults map[string]string // mirror-level keys given for all mirrors, also for those that requests make
}

// LogConfig holds the log.* keys: the defaults of a partition whose source configuration may not be read.
type LogConfig struct {
	SegmentBytes       int32         // log.segment.bytes
	RollAge            time.Duration // log.roll.ms
	IndexIntervalBytes int32         // log.index.interval.bytes
	IndexMaxBytes      int32         // log.index.size.max.bytes
	FlushMessages      int64         // log.flush.interval.messages
	FlushInterval      time.Duration // log.flush.interval.ms: longest time a batch stays unflushed
	FlushSchedule      time.Duration // log.flush.scheduler.interval.ms
	FlushBytes         int64         // log.flush.interval.bytes: most unflushed bytes of a partition
	CheckpointInterval time.Duration // log.flush.offset.checkpoint.interval.ms
}

// RetryConfig is the back-off of FAILED partitions.
type RetryConfig struct {
	InitialBackoff time.Duration // mirror.failed.retry.initial.backoff.ms
	MaxBackoff     time.Duration // mirror.failed.retry.max.backoff.ms
	MaxAttempts    int           // mirror.failed.retry.max.attempts; 0 = none
}

// ServerConfig holds the keys of the agent's own listeners for Kafka clients, all PLAINTEXT.
type ServerConfig struct {
	Listeners           []string // listeners: host:port each; none = clients are not served
	AdvertisedListeners []string // advertised.listeners, in the order of Listeners; default = Listeners
}

// HandoffConfig holds the handoff.* keys. In this version only their presence matters: it makes rebase the
// default epoch policy.
type HandoffConfig struct {
	BootstrapServers []string // handoff.bootstrap.servers
	LogDirs          []string // handoff.log.dirs
	OnStop           bool     // handoff.on.stop
}

// DefaultConfig returns the defaults of every key. LogDirs and Mirrors have none.
func DefaultConfig() Config {
	return Config{
		NodeID:           1,
		Role:             "primary",
		MinFreeBytes:     64 << 20,
		RecoveryThreads:  2,
		IdlePartitionAge: 10 * time.Minute,
		NumFetchers:      1,
		MetadataRefresh:  30 * time.Second,
		StatePartitions:  1,
		Log: LogConfig{
			SegmentBytes:       1 << 30,
			RollAge:            7 * 24 * time.Hour,
			IndexIntervalBytes: 4096,
			IndexMaxBytes:      10 << 20,
			FlushMessages:      1<<63 - 1,
			FlushInterval:      10 * time.Second,
			FlushSchedule:      time.Second,
			FlushBytes:         64 << 20,
			CheckpointInterval: time.Minute,
		},
		Retry: RetryConfig{
			InitialBackoff: time.Second,
			MaxBackoff:     5 * time.Minute,
			MaxAttempts:    20,
		},
	}
}

// chooseEpochPolicy settles a mirror's epoch policy where none was given.
func (c *Config) chooseEpochPolicy(m *MirrorConfig) {
	m.EpochPolicyChosen = m.EpochPolicy != EpochPolicyDefault
	if m.EpochPolicyChosen {
		return
	}
	m.EpochPolicy = EpochPolicyPreserve
	if len(c.Handoff.BootstrapServers) > 0 {
		m.EpochPolicy = EpochPolicyRebase
	}
}

// Validate joins every fault of a Config: one error a fault, each naming its key.
func (c *Config) Validate() error {
	var errs []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
		}
	}
	fault(c.NodeID < 0, "node.id %d is negative", c.NodeID)
	fault(len(c.LogDirs) == 0, "log.dirs is required")
	fault(c.Role != "primary" && c.Role != "replica", "mirror.role %q is neither primary nor replica", c.Role)
	seen := map[string]bool{}
	for _, dir := range c.LogDirs {
		clean := filepath.Clean(dir)
		fault(dir == "", "log.dirs has an empty entry")
		fault(seen[clean], "log.dirs names %s twice", clean)
		seen[clean] = true
	}
	if c.MetadataLogDir != "" {
		fault(!seen[filepath.Clean(c.MetadataLogDir)], "metadata.log.dir %s is not one of log.dirs", c.MetadataLogDir)
	}
	fault(len(c.Server.AdvertisedListeners) > len(c.Server.Listeners),
		"advertised.listeners has %d entries, listeners %d", len(c.Server.AdvertisedListeners), len(c.Server.Listeners))
	names := map[string]bool{}
	for i := range c.Mirrors {
		m := &c.Mirrors[i]
		fault(names[m.Name], "mirror %s is declared twice", m.Name)
		names[m.Name] = true
		if err := m.Validate(); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
