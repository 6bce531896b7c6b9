package fetchwire

import "math"

// FetchParams are the parts of a fetch request that do not belong to a partition.
type FetchParams struct {
	MaxWaitMs      int32
	MinBytes       int32
	MaxBytes       int32
	IsolationLevel int8 // 0 = read uncommitted
	Rack           string
}

// SessionPartition is one partition a fetcher wants to read. HighWatermark and ReplicaDirectoryID, which only brokers
// send, are ignored.
type SessionPartition struct {
	Topic   string
	TopicID [16]byte // zero = not known: the whole request then goes by names (v12)
	Slot    int      // the caller's own number, given back in PartitionHead
	FetchPartition
}

// FetchSession keeps what a broker already knows of our partitions, so that a request names only what changed.
//
// Owner only (the goroutine that owns the Conn). For another broker use another session; after a lost connection to
// the same broker, Reset. Kafka: FetchSessionHandler, KIP-227.
type FetchSession struct {
	maxVersion int16
	version    int16 // of the last request
	id         int32 // 0 = none
	epoch      int32 // of the next request; 0 = a full one that opens a session
	round      uint64
	count      int // partitions in byName
	byName     map[string]*sessionTopic
	byID       map[[16]byte]*sessionTopic
	req        FetchRequest
}

// sessionTopic is a topic of a session.
type sessionTopic struct {
	name       string
	id         [16]byte
	partitions map[int32]*sessionPartition
	round      uint64 // when place was set
	place      int    // in the request's Topics
}

// sessionPartition is a partition of a session.
type sessionPartition struct {
	slot  int
	round uint64 // when it was last wanted
	sent  FetchPartition
}

// NewFetchSession returns a session that uses at most version maxVersion, normally Conn.Version(KeyFetch).
func NewFetchSession(maxVersion int16) *FetchSession {
	return &FetchSession{
		maxVersion: maxVersion,
		byName:     make(map[string]*sessionTopic),
		byID:       make(map[[16]byte]*sessionTopic),
	}
}

// Next returns the request for the partitions wanted now: all of them when no session stands, else those that are
// new or changed, and the forgotten ones. Partitions of a topic need not be neighbours; a repeated one is ignored.
//
// The request is valid until the next call of Next and is reused by it; wanted stays the caller's.
// The order of wanted, topic by topic, is the order in which a broker fills the response to a full request; inside a
// session the broker itself rotates. No allocation once every partition was seen.
func (s *FetchSession) Next(params FetchParams, wanted []SessionPartition) *FetchRequest {
	s.round++
	version := s.chooseVersion(wanted)
	if (version >= 13) != (s.version >= 13) {
		s.epoch = 0 // names and ids do not mix in one session
	}
	s.version = version
	full := s.epoch == 0 || version < 7
	s.beginRequest(params, version)
	seen := 0
	for i := range wanted {
		if s.want(&wanted[i], full) {
			seen++
		}
	}
	if seen < s.count {
		s.forget(full)
	}
	return &s.req
}

// chooseVersion returns the newest version that can name every partition.
func (s *FetchSession) chooseVersion(wanted []SessionPartition) int16 {
	if s.maxVersion < 13 {
		return s.maxVersion
	}
	for i := range wanted {
		if wanted[i].TopicID == ([16]byte{}) {
			return 12
		}
	}
	return s.maxVersion
}

// beginRequest empties the request, keeping its memory.
func (s *FetchSession) beginRequest(params FetchParams, version int16) {
	topics, forgotten := s.req.Topics[:0], s.req.Forgotten[:0]
	s.req = FetchRequest{
		Version: version, ReplicaID: ConsumerReplicaID, ReplicaEpoch: -1,
		MaxWaitMs: params.MaxWaitMs, MinBytes: params.MinBytes, MaxBytes: params.MaxBytes,
		IsolationLevel: params.IsolationLevel, Rack: params.Rack,
		SessionID: s.id, SessionEpoch: s.epoch, Topics: topics, Forgotten: forgotten, session: s,
	}
	if version < 7 {
		s.req.SessionID, s.req.SessionEpoch = 0, -1
	}
}

// want puts one partition into the session, and into the request unless the broker knows it so already. It reports
// false for a repeated partition.
func (s *FetchSession) want(w *SessionPartition, full bool) bool {
	t := s.topic(w, full)
	p := t.partitions[w.Partition]
	known := p != nil
	if !known {
		p = &sessionPartition{}
		t.partitions[w.Partition] = p
		s.count++
	}
	if p.round == s.round {
		return false
	}
	p.round, p.slot = s.round, w.Slot
	now := w.FetchPartition
	now.HighWatermark, now.ReplicaDirectoryID = NoHighWatermark, [16]byte{}
	if known && !full && p.sent == now {
		return true
	}
	p.sent = now
	if t.round != s.round {
		t.round, t.place = s.round, len(s.req.Topics)
		s.req.Topics = growTopics(s.req.Topics)
		rt := &s.req.Topics[t.place]
		rt.Topic, rt.TopicID = t.name, t.id
	}
	rt := &s.req.Topics[t.place]
	rt.Partitions = append(rt.Partitions, now)
	return true
}

// growTopics lengthens topics by one, reusing the memory behind its end.
func growTopics(topics []FetchTopic) []FetchTopic {
	if len(topics) == cap(topics) {
		return append(topics, FetchTopic{})
	}
	topics = topics[:len(topics)+1]
	last := &topics[len(topics)-1]
	last.Partitions = last.Partitions[:0]
	return topics
}

// topic finds or makes w's topic. One that was created again under its name leaves the session under its old id.
func (s *FetchSession) topic(w *SessionPartition, full bool) *sessionTopic {
	t := s.byName[w.Topic]
	if t != nil && t.id == w.TopicID {
		return t
	}
	if t != nil {
		s.drop(t, full, func(*sessionPartition) bool { return true })
	}
	t = &sessionTopic{name: w.Topic, id: w.TopicID, partitions: make(map[int32]*sessionPartition)}
	s.byName[t.name] = t
	if t.id != ([16]byte{}) {
		s.byID[t.id] = t
	}
	return t
}

// forget drops every partition that was not wanted this time.
func (s *FetchSession) forget(full bool) {
	for _, t := range s.byName {
		s.drop(t, full, func(p *sessionPartition) bool { return p.round != s.round })
	}
}

// drop takes partitions of t out of the session, and says so in the request unless it is a full one.
func (s *FetchSession) drop(t *sessionTopic, full bool, which func(*sessionPartition) bool) {
	var gone []int32
	for index, p := range t.partitions {
		if which(p) {
			delete(t.partitions, index)
			s.count--
			gone = append(gone, index)
		}
	}
	if !full && len(gone) > 0 {
		s.req.Forgotten = append(s.req.Forgotten, ForgottenTopic{Topic: t.name, TopicID: t.id, Partitions: gone})
	}
	if len(t.partitions) == 0 {
		delete(s.byName, t.name)
		if s.byID[t.id] == t {
			delete(s.byID, t.id)
		}
	}
}

// HandleResponse moves the session on after a response whose head was decoded.
//
// errorCode is the response's top-level code. It returns nil, or the code as KafkaError after the session was
// reset (the next request is then a full one).
func (s *FetchSession) HandleResponse(sessionID int32, errorCode int16) error {
	switch {
	case errorCode == CodeFetchSessionIDNotFound:
		s.id, s.epoch = 0, 0
	case errorCode != CodeNone:
		s.epoch = 0 // with the old id, so that the broker drops what it has
	case sessionID == 0 || s.epoch != 0 && sessionID != s.id:
		s.id, s.epoch = 0, 0 // the broker has no room for a session, or closed ours
	case s.epoch == math.MaxInt32:
		s.epoch = 1
	default:
		s.id = sessionID
		s.epoch++
	}
	return CodeError(errorCode)
}

// Reset makes the next request a full one, after a network error. The broker drops the old session on seeing it.
func (s *FetchSession) Reset() { s.epoch = 0 }

// CloseRequest returns the request that ends the session on the broker, or nil if there is none. Its response holds
// no partitions.
func (s *FetchSession) CloseRequest() *FetchRequest {
	if s.id == 0 {
		return nil
	}
	s.beginRequest(FetchParams{}, s.version)
	s.req.SessionEpoch = -1
	s.id, s.epoch = 0, 0
	return &s.req
}
