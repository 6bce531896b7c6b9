package replicator

import (
	"fmt"
	"regexp"
	"time"
)

// StartAt is where an empty partition begins.
type StartAt int8

const (
	// StartEarliest begins at the source's log start.
	StartEarliest StartAt = iota
	// StartLatest begins at the source's end.
	StartLatest
	// StartTimestamp begins at the first offset whose timestamp is at or after Value (ms).
	StartTimestamp
	// StartOffset begins at offset Value.
	StartOffset
)

// StartPosition is mirror.start.position.
type StartPosition struct {
	At    StartAt
	Value int64 // milliseconds for StartTimestamp, an offset for StartOffset
}

// MirrorConfig is one mirror: a source cluster and what of it is mirrored.
type MirrorConfig struct {
	Name            string
	Client          ClientConfig
	TopicsInclude   []string          // mirror.topics.include: names or RE2, matched whole
	TopicsExclude   []string          // mirror.topics.exclude
	Fetch           FetchConfig       // mirror.fetch.*
	Start           StartPosition     // mirror.start.position
	GapFail         bool              // mirror.gap.policy = fail
	EpochPolicy     EpochPolicy       // mirror.leader.epoch.policy
	UncleanElection bool              // mirror.unclean.leader.election.enable
	PeerBootstrap   []string          // mirror.peer.bootstrap.servers
	Reserved        map[string]string // keys of capabilities this version does not have
}

// FetchConfig holds the mirror.fetch.* keys.
type FetchConfig struct {
	WaitMax          time.Duration // mirror.fetch.wait.max.ms
	MinBytes         int32         // mirror.fetch.min.bytes
	MaxBytes         int32         // mirror.fetch.max.bytes, a partition
	ResponseMaxBytes int32         // mirror.fetch.response.max.bytes
	Backoff          time.Duration // mirror.fetch.backoff.ms
}

var mirrorName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)

// DefaultMirrorConfig returns the defaults of the mirror-level keys for a mirror of that name.
func DefaultMirrorConfig(name string) MirrorConfig {
	return MirrorConfig{
		Name:          name,
		Client:        DefaultClientConfig(),
		TopicsExclude: []string{"__.*"},
		Fetch: FetchConfig{
			WaitMax:          500 * time.Millisecond,
			MinBytes:         1,
			MaxBytes:         8 << 20,
			ResponseMaxBytes: 32 << 20,
			Backoff:          time.Second,
		},
	}
}

// Validate joins the faults of one mirror.
func (m *MirrorConfig) Validate() error {
	if !mirrorName.MatchString(m.Name) {
		return fmt.Errorf("%w: mirror name %q", ErrConfig, m.Name)
	}
	return nil
}
