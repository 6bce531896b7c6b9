package replicator

import (
	"math/rand/v2"
	"slices"

	"segmirror/fetchwire"
	"segmirror/segment"
)

// fetchSession is what a client fetches, so that its requests and our answers name only what changed. It lives as long
// as its connection: a client that comes back begins a new one. Owner: the connection's goroutine.
//
// Kafka: FetchSession, KIP-227.
type fetchSession struct {
	id    int32
	epoch int32          // of the next request
	byID  bool           // topics are named by id
	parts []*sessionPart // in the order in which they are read
	index map[sessionKey]*sessionPart
}

// sessionKey names a partition as its client does.
type sessionKey struct {
	topic string
	id    [16]byte
	index int32
}

// sessionPart is one partition that a client fetches, and what it was last told of it.
type sessionPart struct {
	key       sessionKey
	asked     fetchwire.FetchPartition
	highMark  int64
	logStart  int64
	toldSince bool // something was told of it in this session
	sent      bool // the newest answer held records of it

	// of the newest answer that was not an error: while they stand there is nothing to tell
	held  *heldLog
	log   *segment.Log
	epoch int32
}

// quiet reports whether the client knows all there is: what most partitions are at most looks.
func (p *sessionPart) quiet(catalog *catalog) bool {
	log := p.log
	return log != nil && p.toldSince && p.held.open() == log && log.LogEndOffset() == p.asked.FetchOffset &&
		log.HighWatermark() == p.highMark && log.LogStartOffset() == p.logStart &&
		catalog.leaderEpoch(log) == p.epoch
}

// openSession begins a session with the partitions of a full request; id 0 is for a client that wants none.
func openSession(req *fetchwire.FetchRequest, id int32) *fetchSession {
	s := &fetchSession{id: id, epoch: 1, byID: req.Version >= 13, index: map[sessionKey]*sessionPart{}}
	s.take(req)
	return s
}

func newSessionID() int32 { return 1 + rand.Int32N(1<<31-1) }

// take adds and changes the partitions a request names.
func (s *fetchSession) take(req *fetchwire.FetchRequest) {
	for i := range req.Topics {
		t := &req.Topics[i]
		for _, p := range t.Partitions {
			key := sessionKey{topic: t.Topic, id: t.TopicID, index: p.Partition}
			if known := s.index[key]; known != nil {
				known.asked, known.log = p, nil
				continue
			}
			part := &sessionPart{key: key, asked: p}
			s.index[key] = part
			s.parts = append(s.parts, part)
		}
	}
}

// drop takes out the partitions a request forgets.
func (s *fetchSession) drop(req *fetchwire.FetchRequest) {
	if len(req.Forgotten) == 0 {
		return
	}
	for _, f := range req.Forgotten {
		for _, p := range f.Partitions {
			delete(s.index, sessionKey{topic: f.Topic, id: f.TopicID, index: p})
		}
	}
	s.parts = slices.DeleteFunc(s.parts, func(p *sessionPart) bool { return s.index[p.key] != p })
}

// sendBack moves partitions that sent records behind the others, so that each has its turn at being first.
func (s *fetchSession) sendBack() {
	var back []*sessionPart
	s.parts = slices.DeleteFunc(s.parts, func(p *sessionPart) bool {
		if p.sent {
			back = append(back, p)
		}
		return p.sent
	})
	s.parts = append(s.parts, back...)
	for _, p := range back {
		p.sent = false
	}
}

// sessionFor finds or makes the session a request belongs to; a code refuses it. full says that everything is answered.
func (c *client) sessionFor(req *fetchwire.FetchRequest) (s *fetchSession, full bool, code int16) {
	old := c.fetch.session
	switch {
	case req.Version < 7 || req.SessionEpoch == -1:
		if old != nil && old.id == req.SessionID {
			c.fetch.session = nil
		}
		return openSession(req, 0), true, fetchwire.CodeNone
	case req.SessionEpoch == 0:
		c.fetch.session = openSession(req, newSessionID())
		return c.fetch.session, true, fetchwire.CodeNone
	case old == nil || old.id != req.SessionID:
		return nil, false, fetchwire.CodeFetchSessionIDNotFound
	case old.epoch != req.SessionEpoch:
		return nil, false, fetchwire.CodeInvalidFetchSessionEpoch
	case old.byID != (req.Version >= 13):
		return nil, false, fetchwire.CodeFetchSessionTopicIDError
	}
	if old.epoch++; old.epoch < 0 {
		old.epoch = 1
	}
	old.take(req)
	old.drop(req)
	return old, false, fetchwire.CodeNone
}
