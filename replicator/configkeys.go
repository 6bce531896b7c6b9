package replicator

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// agentKey is one key of agent.properties.
type agentKey struct {
	set      func(c *Config, value string) error
	noEffect bool // belongs to a capability that this version does not have: checked, kept, reported
}

// agentKeys are the keys of agent.properties apart from those of one mirror.
var agentKeys = map[string]agentKey{
	"node.id": {set: func(c *Config, v string) error { return setInt32(&c.NodeID, v, 0) }},
	"cluster.id": {set: func(c *Config, v string) error {
		c.ClusterID = v
		return nil
	}},
	"log.dirs": {set: func(c *Config, v string) error {
		c.LogDirs = splitList(v)
		return nil
	}},
	"metadata.log.dir": {set: func(c *Config, v string) error {
		c.MetadataLogDir = filepath.Clean(v)
		return nil
	}},
	"metrics.listener": {set: func(c *Config, v string) error { return setHostPort(&c.MetricsListener, v) }},
	"min.free.bytes":   {set: func(c *Config, v string) error { return setInt64(&c.MinFreeBytes, v, 0) }},
	"num.recovery.threads.per.data.dir": {
		set: func(c *Config, v string) error { return setInt(&c.RecoveryThreads, v, 1) },
	},
	"mirror.idle.partition.close.ms": {set: func(c *Config, v string) error { return setMs(&c.IdlePartitionAge, v, 1) }},
	"mirror.num.replica.fetchers":    {set: func(c *Config, v string) error { return setInt(&c.NumFetchers, v, 1) }},
	"mirror.metadata.refresh.interval.ms": {
		set: func(c *Config, v string) error { return setMs(&c.MetadataRefresh, v, 10) },
	},
	throttleRateKey: {set: func(c *Config, v string) error { return setThrottleRate(&c.ThrottledRate, v) }},
	"mirror.failed.retry.initial.backoff.ms": {
		set: func(c *Config, v string) error { return setMs(&c.Retry.InitialBackoff, v, 1) },
	},
	"mirror.failed.retry.max.backoff.ms": {
		set: func(c *Config, v string) error { return setMs(&c.Retry.MaxBackoff, v, 1) },
	},
	"mirror.failed.retry.max.attempts": {
		set: func(c *Config, v string) error { return setInt(&c.Retry.MaxAttempts, v, 0) },
	},
	"mirror.role": {set: func(c *Config, v string) error {
		c.Role = v
		return nil
	}},
	"mirror.state.topic.num.partitions": {
		noEffect: true, set: func(c *Config, v string) error { return setInt32(&c.StatePartitions, v, 1) },
	},
	"mirror.nodes": {noEffect: true, set: func(c *Config, v string) error {
		c.Nodes = splitList(v)
		return nil
	}},
	"listeners": {set: func(c *Config, v string) error { return setListeners(&c.Server.Listeners, v) }},
	"advertised.listeners": {
		set: func(c *Config, v string) error { return setListeners(&c.Server.AdvertisedListeners, v) },
	},
	"handoff.bootstrap.servers": {
		set: func(c *Config, v string) error { return setAddrs(&c.Handoff.BootstrapServers, v) },
	},
	"handoff.log.dirs": {noEffect: true, set: func(c *Config, v string) error {
		c.Handoff.LogDirs = splitList(v)
		return nil
	}},
	"handoff.on.stop": {noEffect: true, set: func(c *Config, v string) error { return setBool(&c.Handoff.OnStop, v) }},
}

// logKeys are the log.* keys.
var logKeys = map[string]func(c *LogConfig, value string) error{
	"log.segment.bytes":        func(c *LogConfig, v string) error { return setInt32(&c.SegmentBytes, v, 1024) },
	"log.roll.ms":              func(c *LogConfig, v string) error { return setMs(&c.RollAge, v, 1) },
	"log.index.interval.bytes": func(c *LogConfig, v string) error { return setInt32(&c.IndexIntervalBytes, v, 0) },
	"log.index.size.max.bytes": func(c *LogConfig, v string) error { return setInt32(&c.IndexMaxBytes, v, 24) },
	"log.flush.interval.messages": func(c *LogConfig, v string) error {
		return setInt64(&c.FlushMessages, v, 1)
	},
	"log.flush.interval.ms":           func(c *LogConfig, v string) error { return setMs(&c.FlushInterval, v, 1) },
	"log.flush.scheduler.interval.ms": func(c *LogConfig, v string) error { return setMs(&c.FlushSchedule, v, 1) },
	"log.flush.interval.bytes":        func(c *LogConfig, v string) error { return setInt64(&c.FlushBytes, v, 1) },
	"log.flush.offset.checkpoint.interval.ms": func(c *LogConfig, v string) error {
		return setMs(&c.CheckpointInterval, v, 1)
	},
}

// mirrorKey is one mirror-level key.
type mirrorKey struct {
	set      func(m *MirrorConfig, value string) error
	noEffect bool
}

// mirrorKeys are the keys of one mirror, as they follow `mirror.<name>.`. Those that begin with `mirror.` may also
// stand in agent.properties by themselves: they are then the default of every mirror.
var mirrorKeys = map[string]mirrorKey{
	"bootstrap.servers": {set: func(m *MirrorConfig, v string) error { return setAddrs(&m.Client.BootstrapServers, v) }},
	"request.timeout.ms": {
		set: func(m *MirrorConfig, v string) error { return setMs(&m.Client.RequestTimeout, v, 1) },
	},
	"socket.connection.setup.timeout.ms": {
		set: func(m *MirrorConfig, v string) error { return setMs(&m.Client.ConnectTimeout, v, 1) },
	},
	"mirror.topics.include": {set: func(m *MirrorConfig, v string) error { return setPatterns(&m.TopicsInclude, v) }},
	"mirror.topics.exclude": {set: func(m *MirrorConfig, v string) error { return setPatterns(&m.TopicsExclude, v) }},
	"mirror.groups.include": {noEffect: true, set: reservePatterns("mirror.groups.include")},
	"mirror.groups.exclude": {noEffect: true, set: reservePatterns("mirror.groups.exclude")},
	"mirror.acl.include": {noEffect: true, set: func(m *MirrorConfig, v string) error {
		if _, err := parseACLRules(v); err != nil {
			return err
		}
		return reserve("mirror.acl.include")(m, v)
	}},
	"mirror.topic.properties.exclude": {
		noEffect: true, set: reserve("mirror.topic.properties.exclude"),
	},
	"mirror.fetch.wait.max.ms": {set: func(m *MirrorConfig, v string) error { return setMs(&m.Fetch.WaitMax, v, 0) }},
	"mirror.fetch.min.bytes":   {set: func(m *MirrorConfig, v string) error { return setInt32(&m.Fetch.MinBytes, v, 0) }},
	"mirror.fetch.max.bytes":   {set: func(m *MirrorConfig, v string) error { return setInt32(&m.Fetch.MaxBytes, v, 1) }},
	"mirror.fetch.response.max.bytes": {
		set: func(m *MirrorConfig, v string) error { return setInt32(&m.Fetch.ResponseMaxBytes, v, 1) },
	},
	"mirror.fetch.backoff.ms": {set: func(m *MirrorConfig, v string) error { return setMs(&m.Fetch.Backoff, v, 0) }},
	"mirror.socket.timeout.ms": {
		set: func(m *MirrorConfig, v string) error { return setMs(&m.Client.SocketTimeout, v, 1) },
	},
	"mirror.socket.receive.buffer.bytes": {
		set: func(m *MirrorConfig, v string) error { return setInt(&m.Client.ReceiveBufferBytes, v, -1) },
	},
	"mirror.start.position": {set: func(m *MirrorConfig, v string) (err error) {
		m.Start, err = parseStartPosition(v)
		return err
	}},
	"mirror.gap.policy": {set: func(m *MirrorConfig, v string) error {
		if v != "resume" && v != "fail" {
			return fmt.Errorf("%q is neither resume nor fail", v)
		}
		m.GapFail = v == "fail"
		return nil
	}},
	"mirror.leader.epoch.policy": {set: func(m *MirrorConfig, v string) error {
		switch v {
		case "preserve":
			m.EpochPolicy = EpochPolicyPreserve
		case "rebase":
			m.EpochPolicy = EpochPolicyRebase
		default:
			return fmt.Errorf("%q is neither preserve nor rebase", v)
		}
		return nil
	}},
	throttleRateKey: {set: func(m *MirrorConfig, v string) error { return setThrottleRate(&m.ThrottledRate, v) }},
	"mirror.unclean.leader.election.enable": {
		set: func(m *MirrorConfig, v string) error { return setBool(&m.UncleanElection, v) },
	},
	"mirror.peer.bootstrap.servers": {
		noEffect: true, set: func(m *MirrorConfig, v string) error { return setAddrs(&m.PeerBootstrap, v) },
	},
}

func reserve(key string) func(*MirrorConfig, string) error {
	return func(m *MirrorConfig, v string) error {
		if m.Reserved == nil {
			m.Reserved = map[string]string{}
		}
		m.Reserved[key] = v
		return nil
	}
}

func reservePatterns(key string) func(*MirrorConfig, string) error {
	keep := reserve(key)
	return func(m *MirrorConfig, v string) error {
		if _, err := newPattern(splitList(v)); err != nil {
			return err
		}
		return keep(m, v)
	}
}

// takenNames are the first words behind `mirror.` of every agent key: a mirror so called could not be told from them.
func takenNames() map[string]bool {
	taken := map[string]bool{}
	add := func(key string) {
		if rest, ok := strings.CutPrefix(key, "mirror."); ok {
			taken[strings.SplitN(rest, ".", 2)[0]] = true
		}
	}
	for key := range agentKeys {
		add(key)
	}
	for key := range mirrorKeys {
		add(key)
	}
	taken["metadata"] = true
	return taken
}

// nearestKey returns the known key with the smallest edit distance to key.
func nearestKey(key string, known []string) string {
	best, least := "", math.MaxInt
	slices.Sort(known)
	for _, k := range known {
		if d := editDistance(key, k); d < least {
			best, least = k, d
		}
	}
	return best
}

func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func splitList(v string) []string {
	var out []string
	for part := range strings.SplitSeq(v, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

func setInt64(dst *int64, v string, least int64) error {
	n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
	if err != nil {
		return fmt.Errorf("%q is not a whole number", v)
	}
	if n < least {
		return fmt.Errorf("%d is below %d", n, least)
	}
	*dst = n
	return nil
}

func setInt32(dst *int32, v string, least int32) error {
	n := int64(*dst)
	if err := setInt64(&n, v, int64(least)); err != nil {
		return err
	}
	if n > math.MaxInt32 {
		return fmt.Errorf("%d is above %d", n, math.MaxInt32)
	}
	*dst = int32(n)
	return nil
}

func setInt(dst *int, v string, least int32) error {
	n := int32(0)
	if err := setInt32(&n, v, least); err != nil {
		return err
	}
	*dst = int(n)
	return nil
}

// setMs reads whole milliseconds; what time.Duration cannot hold becomes its maximum.
func setMs(dst *time.Duration, v string, least int64) error {
	n := int64(0)
	if err := setInt64(&n, v, least); err != nil {
		return err
	}
	*dst = time.Duration(min(n, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	return nil
}

func setBool(dst *bool, v string) error {
	switch strings.ToLower(strings.TrimSpace(v)) {
	case "true":
		*dst = true
	case "false":
		*dst = false
	default:
		return fmt.Errorf("%q is neither true nor false", v)
	}
	return nil
}
