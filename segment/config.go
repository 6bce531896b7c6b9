package segment

import (
	"errors"
	"fmt"
	"math"
)

// EpochPolicy says what becomes of a batch's partitionLeaderEpoch on append.
type EpochPolicy int8

const (
	// EpochPreserve stores the source's bytes.
	EpochPreserve EpochPolicy = iota
	// EpochRebase stamps one constant epoch on every batch, outside the CRC.
	EpochRebase
)

// String names the policy as mirror.leader.epoch.policy spells it.
func (p EpochPolicy) String() string {
	if p == EpochRebase {
		return "rebase"
	}
	return "preserve"
}

// Config steers one Log. It is copied at open; SetConfig replaces it between appends.
type Config struct {
	SegmentBytes       int32       // segment.bytes: a segment is filled to this, a larger batch gets its own
	SegmentMs          int64       // segment.ms: age, by record timestamps, at which a segment is rolled
	IndexIntervalBytes int32       // index.interval.bytes
	IndexMaxBytes      int32       // segment.index.bytes: an index this large is full and rolls the segment
	ProducerExpiryMs   int64       // producer.id.expiration.ms, counted from the log's newest timestamp
	Policy             EpochPolicy // mirror.leader.epoch.policy
	CutDir             string      // --cut-dir: where what recovery cuts is kept; empty keeps nothing
	CutMaxBytes        int64       // how many bytes of one cut are kept at most
	Private            bool        // the directory and its .log files are closed to other users: they hold secrets

	// AfterSync is called after each sync of a .log file that worked, by who synced; it must not use the Log. It is how
	// tests learn what a power cut may not take. nil is not called.
	AfterSync func(path string)

	open openFileFunc // the seam for fault tests; nil opens real files
}

// DefaultConfig holds Kafka's defaults.
func DefaultConfig() Config {
	return Config{
		SegmentBytes:       1 << 30,
		SegmentMs:          7 * 24 * 3600 * 1000,
		IndexIntervalBytes: 4096,
		IndexMaxBytes:      10 << 20,
		ProducerExpiryMs:   24 * 3600 * 1000,
		CutMaxBytes:        64 << 20,
	}
}

// Validate reports every value that cannot work, joined.
func (c Config) Validate() error {
	var errs []error
	least := func(key string, v, least int64) {
		if v < least {
			errs = append(errs, fmt.Errorf("%s is %d, must be at least %d", key, v, least))
		}
	}
	least("segment.bytes", int64(c.SegmentBytes), 61)
	least("segment.ms", c.SegmentMs, 1)
	least("index.interval.bytes", int64(c.IndexIntervalBytes), 0)
	least("segment.index.bytes", int64(c.IndexMaxBytes), 24)
	least("producer.id.expiration.ms", c.ProducerExpiryMs, 1)
	least("cut bytes", c.CutMaxBytes, 0)
	if c.Policy != EpochPreserve && c.Policy != EpochRebase {
		errs = append(errs, fmt.Errorf("mirror.leader.epoch.policy is %d", c.Policy))
	}
	return errors.Join(errs...)
}

// indexMax is IndexMaxBytes, or no limit where a zero Config came in.
func (c Config) indexMax() int32 {
	if c.IndexMaxBytes <= 0 {
		return math.MaxInt32
	}
	return c.IndexMaxBytes
}
