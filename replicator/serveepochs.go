package replicator

import (
	"errors"
	"slices"

	"segmirror/fetchwire"
	"segmirror/segment"
)

// errEpochUnknown is a copy that has not learned yet of which epochs of its source its records are.
var errEpochUnknown = errors.New("the source's epochs are not known yet")

// readAnnounced reads for a mirror that hears the source's epochs: batches of the epoch it named and no other, or no
// slice and the epoch of those at its offset, which it names the next time. epoch is -1 where nothing is to be read.
func readAnnounced(log *segment.Log, asked *fetchwire.FetchPartition, limit int, iso segment.Isolation) (
	slice *segment.Slice, epoch int32, err error,
) {
	for {
		history := log.SourceEpochs()
		if slice, err = log.Read(asked.FetchOffset, limit, iso); err != nil || slice.Size() == 0 {
			return slice, -1, err
		}
		var end int64
		epoch, end = epochSpan(history, max(slice.BaseOffset(), asked.FetchOffset))
		if epoch != asked.MirrorLeaderEpoch {
			if epoch < 0 {
				err = errEpochUnknown
			}
			return nil, epoch, errors.Join(err, slice.Release())
		}
		if slice.NextOffset() > end {
			err = slice.Release()
			if err == nil {
				slice, err = log.ReadBelow(end, asked.FetchOffset, limit, iso)
			}
		}
		if err != nil || slices.Equal(history, log.SourceEpochs()) {
			return slice, epoch, err
		}
		if err = slice.Release(); err != nil { // the history changed meanwhile: these may be batches of another epoch
			return nil, -1, err
		}
	}
}

// newestEpoch is what a mirror is told beside an epoch that ended: the newest one known of where the records come from.
func (c *client) newestEpoch(log *segment.Log) int32 {
	h := c.catalog().logs.get(log.TopicPartition())
	if h == nil {
		return -1
	}
	return h.newestEpoch()
}

// epochSpan returns the epoch of the record at offset and where it ends, -1 when it is not known.
func epochSpan(history []segment.EpochEntry, offset int64) (epoch int32, end int64) {
	epoch, end = -1, 1<<63-1
	for _, e := range history {
		if e.StartOffset > offset {
			return epoch, e.StartOffset
		}
		epoch = e.Epoch
	}
	return epoch, end
}

// log returns the open log of a partition for this client, or the code that says why there is none. A mirror waits
// until a copy knows what it is a copy of: its start and its epochs are settled then.
func (c *client) log(topic string, partition int32) (*segment.Log, int16) {
	log, code := c.catalog().log(topic, partition)
	if log == nil || !c.mirrors() {
		return log, code
	}
	if _, bound := log.Source(); !bound && c.server.agent.mirrorsTopic(topic) {
		return nil, fetchwire.CodeLeaderNotAvailable
	}
	return log, code
}
