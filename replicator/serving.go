package replicator

import (
	"slices"
	"strings"
	"sync"

	"segmirror/fetchwire"
	"segmirror/segment"
)

// catalog is what clients may see: the mirrored topics, by name and by their source's id.
type catalog struct {
	logs     *logSet
	metadata *metadataLog

	// guarded by mu
	mu    sync.Mutex
	names map[[16]byte]string // of the newest look
}

// servedTopic is a topic as clients see it.
type servedTopic struct {
	name       string
	id         [16]byte // the source's; zero = the source has none
	partitions []*heldLog
}

// topics returns every mirrored topic, in order of name, its partitions in order of index. Any goroutine.
func (c *catalog) topics() []servedTopic {
	var out []servedTopic
	names := map[[16]byte]string{}
	for _, h := range c.logs.all() {
		if strings.HasPrefix(h.tp.Topic, "__cluster_metadata") {
			continue
		}
		if n := len(out); n == 0 || out[n-1].name != h.tp.Topic {
			out = append(out, servedTopic{name: h.tp.Topic})
		}
		t := &out[len(out)-1]
		t.partitions = append(t.partitions, h)
		if id := sourceTopicID(h.open()); id != ([16]byte{}) {
			t.id, names[id] = id, t.name
		}
	}
	c.mu.Lock()
	c.names = names
	c.mu.Unlock()
	return out
}

// name returns the topic of an id, "" for none. Any goroutine.
func (c *catalog) name(id [16]byte) string {
	if id == ([16]byte{}) {
		return ""
	}
	c.mu.Lock()
	name := c.names[id]
	c.mu.Unlock()
	if name != "" {
		return name
	}
	c.topics() // it may be new
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.names[id]
}

// log returns the open log of a partition, or the code that says why there is none.
func (c *catalog) log(topic string, partition int32) (*segment.Log, int16) {
	h := c.logs.get(segment.TopicPartition{Topic: topic, Partition: partition})
	if h == nil {
		return nil, fetchwire.CodeUnknownTopicOrPartition
	}
	log := h.open()
	switch {
	case log == nil && h.err.Load() != nil:
		return nil, fetchwire.CodeKafkaStorageError
	case log == nil:
		return nil, fetchwire.CodeLeaderNotAvailable
	}
	return log, fetchwire.CodeNone
}

// sourceTopicID returns the id of the topic a log is a copy of, zero when it is not known.
func sourceTopicID(log *segment.Log) [16]byte {
	if log == nil {
		return [16]byte{}
	}
	id, _ := log.Source()
	return id.TopicID
}

// leaderEpoch is what clients are told: the epoch of the newest batch on disk, or the one it was raised to. Any
// goroutine.
func (c *catalog) leaderEpoch(log *segment.Log) int32 {
	epoch, ok := log.LatestEpoch()
	if !ok {
		epoch = 0
	}
	return max(epoch, c.raisedEpoch(log))
}

// raisedEpoch is the least leader epoch that a request gave a partition, -1 for none. Any goroutine.
func (c *catalog) raisedEpoch(log *segment.Log) int32 {
	if id := sourceTopicID(log); id != ([16]byte{}) {
		return c.metadata.minLeaderEpoch(id, log.TopicPartition().Partition)
	}
	return -1
}

// fenced compares the leader epoch a client believes in with ours. Kafka: Partition.checkCurrentLeaderEpoch.
func (c *catalog) fenced(log *segment.Log, current int32) int16 {
	if current < 0 {
		return fetchwire.CodeNone
	}
	switch ours := c.leaderEpoch(log); {
	case current == ours:
		return fetchwire.CodeNone
	case current < ours:
		return fetchwire.CodeFencedLeaderEpoch
	default:
		return fetchwire.CodeUnknownLeaderEpoch
	}
}

// endOffsetFor tells where an epoch of the bytes on disk ends. Those that a request raised the leader epoch over have
// no records: they end, like the raised one, at the log's end.
func (c *catalog) endOffsetFor(log *segment.Log, epoch int32) (int32, int64) {
	of, end := log.EndOffsetFor(epoch)
	if of >= 0 || epoch < 0 {
		return of, end
	}
	switch raised := c.raisedEpoch(log); {
	case epoch == raised:
		return raised, log.LogEndOffset()
	case epoch < raised:
		latest, _ := log.LatestEpoch()
		return latest, log.LogEndOffset()
	}
	return of, end
}

// epochAt returns the epoch of the batch at offset, -1 when it is not known.
func epochAt(entries []segment.EpochEntry, offset int64) int32 {
	i, found := slices.BinarySearchFunc(entries, offset, func(e segment.EpochEntry, at int64) int {
		switch {
		case e.StartOffset < at:
			return -1
		case e.StartOffset > at:
			return 1
		}
		return 0
	})
	if !found {
		i--
	}
	if i < 0 {
		return -1
	}
	return entries[i].Epoch
}
