package replicator

import (
	"context"
	"errors"
	"time"

	"segmirror/fetchwire"
	"segmirror/segment"
)

const (
	maxAnswerBytes = 55 << 20         // of records in one answer; a first batch may be larger. Kafka: fetch.max.bytes
	maxAnswerFiles = 500              // partitions with records in one answer: each holds a descriptor until it is sent
	maxFetchWait   = 30 * time.Second // a long poll is answered then, whatever was asked
)

var errWithoutAcks = errors.New("records without acks are refused: " + refusal)

// fetchAnswer is what a connection keeps between fetches, and the answer being made.
type fetchAnswer struct {
	session *fetchSession
	frame   fetchwire.FetchFrame
	resp    fetchwire.FetchResponse
	sizes   []int32
	slices  []*segment.Slice // of the partitions in resp, in order; nil = no records
	bytes   int64
	urgent  bool // something other than records is to be told at once
}

// release lets go of the files.
func (a *fetchAnswer) release() error {
	var errs []error
	for _, s := range a.slices {
		if s != nil {
			errs = append(errs, s.Release())
		}
	}
	a.slices = a.slices[:0]
	return errors.Join(errs...)
}

// serveFetch answers when there are records enough, something else to tell, or the client has waited long enough.
func (c *client) serveFetch(m fetchwire.Message) (fetchwire.Response, error) {
	req := m.(*fetchwire.FetchRequest)
	session, full, code := c.sessionFor(req)
	if code != fetchwire.CodeNone {
		return &fetchwire.FetchResponse{ErrorCode: code}, nil
	}
	wait, cancel := context.WithTimeout(c.server.ctx,
		min(maxFetchWait, time.Duration(max(req.MaxWaitMs, 0))*time.Millisecond))
	defer cancel()
	for {
		changed := c.server.agent.served.wait()
		c.read(session, req, full)
		enough := c.fetch.bytes >= int64(req.MinBytes) || c.fetch.urgent || len(session.parts) == 0
		if enough || wait.Err() != nil {
			break
		}
		if err := c.fetch.release(); err != nil {
			return nil, err
		}
		select {
		case <-changed:
		case <-wait.Done():
		}
	}
	if c.server.ctx.Err() != nil {
		return nil, errors.Join(errServerClosed, c.fetch.release())
	}
	return nil, errors.Join(c.send(session), c.fetch.release())
}

// read makes the answer for what the log holds now.
func (c *client) read(session *fetchSession, req *fetchwire.FetchRequest, full bool) {
	a := &c.fetch
	a.resp = fetchwire.FetchResponse{SessionID: session.id, Topics: a.resp.Topics[:0]}
	a.sizes, a.slices, a.bytes, a.urgent = a.sizes[:0], a.slices[:0], 0, false
	left, files := int64(min(max(req.MaxBytes, 0), maxAnswerBytes)), 0
	for _, p := range session.parts {
		if !full && p.quiet(c.catalog()) {
			continue
		}
		part, slice := c.readPartition(p, req, left)
		size := int64(0)
		if slice != nil {
			size = slice.Size()
		}
		changed := part.HighWatermark != p.highMark || part.LogStartOffset != p.logStart || !p.toldSince
		tell := part.ErrorCode != fetchwire.CodeNone || part.DivergingEpoch.Epoch >= 0 ||
			size == 0 && part.MirrorLeaderEpoch >= 0
		if tell {
			p.log = nil
		}
		if !full && size == 0 && !changed && !tell {
			continue
		}
		left -= size
		if size > 0 {
			if files++; files == maxAnswerFiles {
				left = 0
			}
		}
		a.bytes += size
		a.urgent = a.urgent || tell
		a.add(p.key, part)
		a.sizes, a.slices = append(a.sizes, int32(size)), append(a.slices, slice)
	}
}

// add appends a partition to the answer, beside the one before it where the topic is the same.
func (a *fetchAnswer) add(key sessionKey, part fetchwire.FetchPartitionResponse) {
	topics := a.resp.Topics
	if n := len(topics); n == 0 || topics[n-1].Topic != key.topic || topics[n-1].TopicID != key.id {
		topics = append(topics, fetchwire.FetchTopicResponse{Topic: key.topic, TopicID: key.id})
	}
	last := &topics[len(topics)-1]
	last.Partitions = append(last.Partitions, part)
	a.resp.Topics = topics
}

// readPartition reads at most left bytes of one partition; of a first batch that is larger all, if nothing else is in
// the answer yet.
func (c *client) readPartition(
	p *sessionPart, req *fetchwire.FetchRequest, left int64,
) (fetchwire.FetchPartitionResponse, *segment.Slice) {
	part := fetchwire.NewFetchPartitionResponse(p.key.index)
	part.HighWatermark = -1
	log, code := c.servedLog(p, req.Version)
	if code != fetchwire.CodeNone {
		part.ErrorCode = code
		return part, nil
	}
	announces := req.Version >= announcedVersion && c.mirrors()
	if c.diverged(p, announces, log, &part) {
		return part, nil
	}
	if left <= 0 && c.fetch.bytes > 0 { // the answer is full: its records come in another
		tellOffsets(&part, log)
		return part, nil
	}
	iso := isolation(req.IsolationLevel)
	limit := min(left, int64(max(p.asked.MaxBytes, 0)))
	var slice *segment.Slice
	var err error
	if announces {
		slice, part.MirrorLeaderEpoch, err = readAnnounced(log, &p.asked, int(limit), iso)
	} else {
		slice, err = log.Read(p.asked.FetchOffset, int(limit), iso)
	}
	switch {
	case errors.Is(err, errEpochUnknown):
		part.ErrorCode = fetchwire.CodeLeaderNotAvailable
		return part, nil
	case errors.Is(err, segment.ErrOffsetOutOfRange):
		part.ErrorCode = fetchwire.CodeOffsetOutOfRange
		return part, nil
	case err != nil:
		part.ErrorCode = fetchwire.CodeKafkaStorageError
		return part, nil
	}
	tellOffsets(&part, log)
	p.held, p.log, p.epoch = c.server.agent.logs.get(log.TopicPartition()), log, c.catalog().leaderEpoch(log)
	if slice == nil { // an epoch is to be told first
		return part, nil
	}
	if iso == segment.ReadCommitted {
		part.AbortedTxns = []fetchwire.FetchAbortedTxn{}
	}
	if slice.Size() > limit && c.fetch.bytes > 0 || slice.Size() > 1<<30 {
		if slice.Release() != nil {
			part.ErrorCode = fetchwire.CodeKafkaStorageError
		}
		part.MirrorLeaderEpoch = -1
		return part, nil
	}
	for _, txn := range slice.Aborted() {
		part.AbortedTxns = append(part.AbortedTxns,
			fetchwire.FetchAbortedTxn{ProducerID: txn.ProducerID, FirstOffset: txn.FirstOffset})
	}
	return part, slice
}

func tellOffsets(part *fetchwire.FetchPartitionResponse, log *segment.Log) {
	part.HighWatermark = min(log.HighWatermark(), log.LogEndOffset())
	part.LastStableOffset = min(log.LastStableOffset(), part.HighWatermark)
	part.LogStartOffset = log.LogStartOffset()
}

// servedLog returns the log of a partition, or the code that refuses to read it.
func (c *client) servedLog(p *sessionPart, version int16) (*segment.Log, int16) {
	topic := p.key.topic
	if version >= 13 {
		if topic = c.catalog().name(p.key.id); topic == "" {
			return nil, fetchwire.CodeUnknownTopicID
		}
	}
	log, code := c.log(topic, p.key.index)
	if code != fetchwire.CodeNone {
		return nil, code
	}
	if version >= 13 && sourceTopicID(log) != p.key.id {
		return nil, fetchwire.CodeInconsistentTopicID
	}
	if !c.mirrors() {
		return log, c.catalog().fenced(log, p.asked.CurrentLeaderEpoch)
	}
	if version < announcedVersion && !log.BatchesCarrySourceEpochs() {
		return nil, fetchwire.CodeUnsupportedVersion // one who cannot hear the source's epochs would take others for them
	}
	return log, fetchwire.CodeNone
}

// diverged fills part when the epoch a client fetched last ended elsewhere here. Kafka: Partition.readRecords.
func (c *client) diverged(
	p *sessionPart, announces bool, log *segment.Log, part *fetchwire.FetchPartitionResponse,
) bool {
	last := p.asked.LastFetchedEpoch
	if announces {
		last = p.asked.MirrorLeaderEpoch
	}
	if last < 0 {
		return false
	}
	epoch, end := c.endOffset(log, last)
	if epoch < 0 || end < 0 {
		part.ErrorCode = fetchwire.CodeOffsetOutOfRange
		return true
	}
	if epoch == last && end >= p.asked.FetchOffset {
		return false
	}
	if announces {
		part.MirrorLeaderEpoch = c.newestEpoch(log)
	}
	part.HighWatermark = min(log.HighWatermark(), log.LogEndOffset())
	part.LastStableOffset, part.LogStartOffset = -1, log.LogStartOffset()
	part.DivergingEpoch = fetchwire.EpochEndOffset{Epoch: epoch, EndOffset: end}
	return true
}

// send writes the answer, the records straight from their files.
func (c *client) send(session *fetchSession) error {
	a := &c.fetch
	a.frame.Append(c.head, &a.resp, a.sizes)
	from := 0
	for i, cut := range a.frame.Cuts {
		if a.slices[i] == nil || a.sizes[i] == 0 {
			continue
		}
		if err := c.write(a.frame.Bytes[from:cut]); err != nil {
			return err
		}
		if _, err := a.slices[i].WriteTo(c.conn); err != nil {
			return err
		}
		from = cut
	}
	if err := c.write(a.frame.Bytes[from:]); err != nil {
		return err
	}
	if session.id != 0 {
		a.told(session)
	}
	return nil
}

// told notes what the client now knows, and lets partitions that had records wait behind the others.
func (a *fetchAnswer) told(session *fetchSession) {
	i, back := 0, false
	for _, t := range a.resp.Topics {
		for _, part := range t.Partitions {
			if p := session.index[sessionKey{topic: t.Topic, id: t.TopicID, index: part.Index}]; p != nil {
				p.highMark, p.logStart, p.toldSince = part.HighWatermark, part.LogStartOffset, true
				p.sent = a.sizes[i] > 0
				back = back || p.sent
			}
			i++
		}
	}
	if back {
		session.sendBack()
	}
}
