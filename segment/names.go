package segment

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Names of the files in a partition directory. B, a base offset, is printed in 20 digits.
const (
	logSuffix         = ".log"
	offsetIndexSuffix = ".index"
	timeIndexSuffix   = ".timeindex"
	txnIndexSuffix    = ".txnindex"
	snapshotSuffix    = ".snapshot"
	deletedSuffix     = ".deleted"
	cleanedSuffix     = ".cleaned"
	swapSuffix        = ".swap"
	temporarySuffix   = ".tmp"

	epochFileName       = "leader-epoch-checkpoint"
	sourceEpochFileName = "source-leader-epoch-checkpoint"
	metadataFileName    = "partition.metadata"
	digestsFileName     = "digests"
)

// Names of the files in a log directory.
const (
	metaPropertiesName    = "meta.properties"
	lockFileName          = ".lock"
	cleanShutdownName     = ".kafka_cleanshutdown"
	recoveryPointsName    = "recovery-point-offset-checkpoint"
	logStartsName         = "log-start-offset-checkpoint"
	highWatermarksName    = "replication-offset-checkpoint"
	remoteIndexCacheName  = "remote-log-index-cache"
	offsetDigits          = 20
	maxDirNameSize        = 255
	randomSuffixHexDigits = 32
)

// ErrNotPartition says that a directory's name names no partition. A broker does not start over such a
// directory in its log.dirs.
var ErrNotPartition = errors.New("not a partition directory")

// TopicPartition names one partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String is the name of the partition's directory, for instance "orders-0".
func (tp TopicPartition) String() string { return tp.Topic + "-" + strconv.Itoa(int(tp.Partition)) }

// Compare orders by topic, then partition: below 0, 0 or above 0.
func (tp TopicPartition) Compare(other TopicPartition) int {
	if c := strings.Compare(tp.Topic, other.Topic); c != 0 {
		return c
	}
	return int(tp.Partition) - int(other.Partition)
}

// DirState is what a partition directory's name says of it.
type DirState int8

// The states a directory's name can tell.
const (
	DirNormal DirState = iota // topic-0
	DirDelete                 // topic-0.<32 hex>-delete: to be removed
	DirStray                  // topic-0.<32 hex>-stray: set aside by a broker, kept
	DirFuture                 // topic-0.<32 hex>-future: being filled by a move between log directories
)

var dirStateSuffixes = map[DirState]string{DirDelete: "-delete", DirStray: "-stray", DirFuture: "-future"}

// String is the suffix without its dash, "normal" for DirNormal.
func (s DirState) String() string {
	if s == DirNormal {
		return "normal"
	}
	return strings.TrimPrefix(dirStateSuffixes[s], "-")
}

// ParseDirName takes the name of a partition directory, without a path, apart.
//
// The topic is what stands before the last dash, so "-crypto-0" and "t--1" are partitions of "-crypto" and "t-".
// ErrNotPartition says what is wrong with any other name; a broker would not start over it.
// A partition with leading zeros is taken ("t-007" is partition 7 of "t"); its String differs from the name.
// Kafka: LocalLog.parseTopicPartitionName.
func ParseDirName(name string) (TopicPartition, DirState, error) {
	state, bare := DirNormal, name
	for s, suffix := range dirStateSuffixes {
		cut, ok := strings.CutSuffix(name, suffix)
		if !ok {
			continue
		}
		dot := strings.LastIndexByte(cut, '.')
		if dot < 0 || dot == len(cut)-1 || strings.ContainsAny(cut, " \t\r\n\f\v") {
			return TopicPartition{}, s, fmt.Errorf("%q: %w: ends in %s without .<unique id>", name, ErrNotPartition, suffix)
		}
		state, bare = s, cut[:dot]
	}
	dash := strings.LastIndexByte(bare, '-')
	if dash < 0 {
		return TopicPartition{}, state, fmt.Errorf("%q: %w: no dash", name, ErrNotPartition)
	}
	topic, digits := bare[:dash], bare[dash+1:]
	if topic == "" {
		return TopicPartition{}, state, fmt.Errorf("%q: %w: no topic", name, ErrNotPartition)
	}
	partition, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || partition < 0 || digits[0] == '+' {
		return TopicPartition{}, state, fmt.Errorf("%q: %w: partition %q", name, ErrNotPartition, digits)
	}
	return TopicPartition{Topic: topic, Partition: int32(partition)}, state, nil
}

// DirName returns the directory name of tp in the given state. unique is 32 hexadecimal digits and not used for
// DirNormal. The topic is shortened where the name would be longer than a file system takes, but for DirFuture.
// Kafka: LocalLog.logDeleteDirName, logStrayDirName, logFutureDirName.
func DirName(tp TopicPartition, state DirState, unique string) string {
	if state == DirNormal {
		return tp.String()
	}
	tail := "-" + strconv.Itoa(int(tp.Partition)) + "." + unique + dirStateSuffixes[state]
	topic := tp.Topic
	if room := maxDirNameSize - len(tail); state != DirFuture && len(topic) > room {
		topic = topic[:room]
	}
	return topic + tail
}

// segmentFileName is the name of a segment's file: its base offset in 20 digits, and a suffix.
func segmentFileName(baseOffset int64, suffix string) string {
	return fmt.Sprintf("%0*d%s", offsetDigits, baseOffset, suffix)
}

// parseSegmentFileName takes a name made by segmentFileName apart: the offset, and everything from the first dot on.
// false where what stands before the dot is not 20 digits.
func parseSegmentFileName(name string) (baseOffset int64, suffix string, ok bool) {
	dot := strings.IndexByte(name, '.')
	if dot != offsetDigits {
		return 0, "", false
	}
	for _, c := range []byte(name[:dot]) {
		if c < '0' || c > '9' {
			return 0, "", false
		}
	}
	baseOffset, err := strconv.ParseInt(name[:dot], 10, 64)
	return baseOffset, name[dot:], err == nil
}
