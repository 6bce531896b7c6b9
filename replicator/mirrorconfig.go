package replicator

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
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
	Name              string
	Client            ClientConfig
	TopicsInclude     []string          // mirror.topics.include: names or RE2, matched whole
	TopicsExclude     []string          // mirror.topics.exclude
	Fetch             FetchConfig       // mirror.fetch.*
	Start             StartPosition     // mirror.start.position
	GapFail           bool              // mirror.gap.policy = fail
	EpochPolicy       EpochPolicy       // mirror.leader.epoch.policy
	EpochPolicyChosen bool              // it was given, not chosen by default
	ThrottledRate     int64             // mirror.replication.throttled.rate, bytes/s of all partitions; 0 = no limit
	UncleanElection   bool              // mirror.unclean.leader.election.enable
	PeerBootstrap     []string          // mirror.peer.bootstrap.servers
	Reserved          map[string]string // keys of capabilities this version does not have
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

// checkMirrorName says what is wrong with a mirror's name.
func checkMirrorName(name string) error {
	if !legalTopic(name) {
		return errors.New("a name is 1 to 249 ASCII letters, digits, '.', '_' or '-'")
	}
	if strings.HasSuffix(name, endingStopped) || strings.HasSuffix(name, endingPaused) {
		return errors.New("a name may not end in .stopped or .paused")
	}
	return nil
}

// Validate joins the faults of one mirror.
func (m *MirrorConfig) Validate() error {
	var errs []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("%w: mirror %s: "+format, append([]any{ErrConfig, m.Name}, args...)...))
		}
	}
	if err := checkMirrorName(m.Name); err != nil {
		fault(true, "%w", err)
	}
	fault(len(m.Client.BootstrapServers) == 0, "bootstrap.servers is required")
	fault(m.Fetch.WaitMax >= m.Client.SocketTimeout,
		"mirror.fetch.wait.max.ms %d is not below mirror.socket.timeout.ms %d",
		m.Fetch.WaitMax.Milliseconds(), m.Client.SocketTimeout.Milliseconds())
	if _, err := newTopicFilter(m.TopicsInclude, m.TopicsExclude); err != nil {
		fault(true, "%w", err)
	}
	if err := m.Client.Validate(); err != nil {
		fault(true, "%w", err)
	}
	return errors.Join(errs...)
}

// parseMirror reads one mirror's keys over the defaults of all mirrors, and names those without effect.
func parseMirror(name string, defaults, own map[string]string) (MirrorConfig, []string, error) {
	m := DefaultMirrorConfig(name)
	var errs []error
	var noEffect []string
	apply := func(key, value, shown string) {
		if isClientKey(key) {
			m.Client.Security[key] = value
			return
		}
		k := mirrorKeys[key]
		if err := k.set(&m, value); err != nil {
			errs = append(errs, fmt.Errorf("%w: %s: %w", ErrConfig, shown, err))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(defaults)) {
		if _, mine := own[key]; !mine {
			apply(key, defaults[key], key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(own)) {
		apply(key, own[key], "mirror."+name+"."+key)
		if mirrorKeys[key].noEffect || clientKeys[key] == clientNoEffect {
			noEffect = append(noEffect, key)
		}
	}
	return m, noEffect, errors.Join(errs...)
}

func parseStartPosition(v string) (StartPosition, error) {
	word, number, hasNumber := strings.Cut(v, ":")
	switch {
	case v == "earliest":
		return StartPosition{At: StartEarliest}, nil
	case v == "latest":
		return StartPosition{At: StartLatest}, nil
	case hasNumber && (word == "timestamp" || word == "offset"):
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n < 0 {
			return StartPosition{}, fmt.Errorf("%q is not a whole number from 0", number)
		}
		if word == "timestamp" {
			return StartPosition{At: StartTimestamp, Value: n}, nil
		}
		return StartPosition{At: StartOffset, Value: n}, nil
	}
	return StartPosition{}, fmt.Errorf("%q is none of earliest, latest, timestamp:MS, offset:N", v)
}
