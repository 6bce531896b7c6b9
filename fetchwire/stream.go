package fetchwire

import (
	"fmt"
	"io"
)

// FetchHead is the head of a fetch response.
type FetchHead struct {
	ThrottleMs int32
	ErrorCode  int16 // v7+
	SessionID  int32 // v7+
}

// PartitionHead is what a fetch response says of a partition before its records.
type PartitionHead struct {
	Topic            string // the string of the request, no copy
	TopicID          [16]byte
	Index            int32
	Slot             int // SessionPartition.Slot; for a request built by hand the partition's place in it
	ErrorCode        int16
	HighWatermark    int64
	LastStableOffset int64 // -1 = not said
	LogStartOffset   int64 // -1 = not said
	PreferredReplica int32 // -1 = none
	AbortedTxns      int   // how many were listed (only for read committed); they are skipped
	RecordsSize      int   // bytes of records that follow; 0 also for null
}

// PartitionTail is what a fetch response says of a partition behind its records (v12+).
type PartitionTail struct {
	DivergingEpoch    EpochEndOffset   // -1, -1 = none
	CurrentLeader     LeaderIDAndEpoch // -1, -1 = none
	SnapshotID        EpochEndOffset   // -1, -1 = none
	MirrorLeaderEpoch int32            // v19+: source epoch of all the records; -1 = not said
}

var noTail = PartitionTail{DivergingEpoch: noEpoch, CurrentLeader: noLeader, SnapshotID: noEpoch, MirrorLeaderEpoch: -1}

// Diverged reports whether the broker found that our log and its own part.
func (t *PartitionTail) Diverged() bool { return t.DivergingEpoch != noEpoch }

// streamState says what the next bytes of a FetchStream are.
type streamState uint8

const (
	streamEnded     streamState = iota // nothing: no response is being read
	streamTopics                       // a partition's or topic's head, or the end
	streamPartition                    // records, or what follows them
)

// FetchStream reads one fetch response, the records straight from the socket into the caller's memory.
//
//	for s.Next() {
//		head := s.Partition()
//		... s.Read(buf) ...       // io.Reader over head.RecordsSize bytes
//		tail, err := s.Finish()   // skips what was not read
//	}
//	err := s.Err()
//
// Owner only. It belongs to its Conn and is reused by the next Conn.Fetch. Errors are sticky and break the Conn:
// *DecodeError, ErrUnexpectedPartition, io.ErrUnexpectedEOF, or the network's. No allocation in the steady state.
type FetchStream struct {
	frame   frameReader
	ended   func(error) // told once, at the end of the response or at the first error
	req     *FetchRequest
	version int16
	compact bool
	state   streamState
	err     error

	head      FetchHead
	part      PartitionHead
	tail      PartitionTail
	endpoints []NodeEndpoint

	topicsLeft     int
	partitionsLeft int
	topic          streamTopic
	recordsLeft    int64
}

// streamTopic is the topic whose partitions are being read.
type streamTopic struct {
	open    bool
	session *sessionTopic // nil = of a request built by hand
	request *FetchTopic
	slot    int // of the request's first partition of the topic
}

// start begins a response whose frame.begin succeeded.
func (s *FetchStream) start(req *FetchRequest, version int16, correlationID int32) error {
	s.req, s.version, s.compact = req, version, flexible(KeyFetch, version)
	s.state, s.err, s.endpoints = streamTopics, nil, nil
	s.head, s.topic, s.partitionsLeft, s.recordsLeft = FetchHead{}, streamTopic{}, 0, 0
	if got := s.int32("correlation_id"); s.err == nil && got != correlationID {
		s.fail(fmt.Errorf("%w: correlation id %d, want %d", ErrCorrelation, got, correlationID))
	}
	s.skipTags()
	s.head.ThrottleMs = s.int32("throttle_time_ms")
	if version >= 7 {
		s.head.ErrorCode = s.int16("error_code")
		s.head.SessionID = s.int32("session_id")
	}
	s.topicsLeft = s.count(3, "responses")
	return s.err
}

// Head returns the head of the response. A non-zero ErrorCode comes with no partitions.
func (s *FetchStream) Head() FetchHead { return s.head }

// Next moves to the next partition, finishing the current one; false at the end or on an error.
func (s *FetchStream) Next() bool {
	if s.state == streamPartition {
		s.finish()
	}
	for s.err == nil && s.state == streamTopics {
		if s.partitionsLeft > 0 {
			s.partitionsLeft--
			s.partitionHead()
			return s.err == nil
		}
		if s.topic.open {
			s.topic = streamTopic{}
			s.skipTags()
		}
		if s.topicsLeft == 0 {
			s.end()
			return false
		}
		s.topicsLeft--
		s.topicHead()
	}
	return false
}

// Partition returns the head of the current partition, valid until Next.
func (s *FetchStream) Partition() *PartitionHead { return &s.part }

// Remaining returns how many bytes of the current partition's records were not read yet.
func (s *FetchStream) Remaining() int { return int(s.recordsLeft) }

// Read reads at most the rest of the current partition's records, straight from the socket once the head buffer is
// drained, and io.EOF at their end. A connection cut inside the response is io.ErrUnexpectedEOF, never io.EOF.
func (s *FetchStream) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if s.recordsLeft == 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > s.recordsLeft {
		p = p[:s.recordsLeft]
	}
	n, err := s.frame.read(p)
	s.recordsLeft -= int64(n)
	if err != nil {
		s.fail(err)
		return n, s.err
	}
	return n, nil
}

// Finish skips what is left of the current partition's records and decodes what follows them. Called again it
// returns the same.
func (s *FetchStream) Finish() (PartitionTail, error) {
	if s.state == streamPartition {
		s.finish()
	}
	return s.tail, s.err
}

// NodeEndpoints returns the addresses of leaders named at the end of the response (v16+), after Next returned false.
// The slice is the caller's.
func (s *FetchStream) NodeEndpoints() []NodeEndpoint { return s.endpoints }

// Err returns the first error, nil at the clean end of a response.
func (s *FetchStream) Err() error { return s.err }

// Close ends the use of the stream. A response that was not read to its end breaks the Conn: Close then closes it
// and returns ErrConnBroken; after the end or an error it returns Err.
func (s *FetchStream) Close() error {
	if s.err == nil && s.state != streamEnded {
		s.fail(fmt.Errorf("%w: a fetch response was not read to its end", ErrConnBroken))
	}
	return s.err
}

// fail keeps the first error and ends the response.
func (s *FetchStream) fail(err error) {
	if s.err != nil {
		return
	}
	s.err, s.state = err, streamEnded
	s.recordsLeft, s.partitionsLeft, s.topicsLeft = 0, 0, 0
	s.ended(err)
}

func (s *FetchStream) malformed(field, reason string) {
	s.fail(&DecodeError{API: KeyFetch, Version: s.version, Field: field, Pos: s.frame.pos(), Reason: reason})
}

// end decodes what follows the last topic and checks that the frame ends there.
func (s *FetchStream) end() {
	for n := s.tagCount(); n > 0 && s.err == nil; n-- {
		tag, size := s.tagHead()
		if tag == 0 && s.version >= 16 {
			s.nodeEndpoints(size)
		} else {
			s.skip(size)
		}
	}
	if s.err == nil && s.frame.left != 0 {
		s.malformed("end of response", "bytes left over")
	}
	if s.err == nil {
		s.state = streamEnded
		s.ended(nil)
	}
}

func (s *FetchStream) topicHead() {
	s.topic = streamTopic{open: true}
	if s.version >= 13 {
		if b := s.bytes(16, "topic_id"); b != nil {
			s.findTopicID([16]byte(b))
			s.frame.consume(16)
		}
	} else if n := s.length(false, "topic"); s.err == nil {
		if n < 1 || n > maxTopicNameBytes {
			s.malformed("topic", "not the length of a topic name")
		} else if b := s.bytes(n, "topic"); b != nil {
			s.findTopicNamed(b)
			s.frame.consume(n)
		}
	}
	s.partitionsLeft = s.count(26, "partitions")
}

// findTopicNamed looks up a name without making a string of it.
func (s *FetchStream) findTopicNamed(name []byte) {
	if session := s.req.session; session != nil {
		if s.topic.session = session.byName[string(name)]; s.topic.session == nil {
			s.fail(fmt.Errorf("%w: topic %q", ErrUnexpectedPartition, name))
		}
		return
	}
	slot := 0
	for i := range s.req.Topics {
		if t := &s.req.Topics[i]; t.Topic == string(name) {
			s.topic.request, s.topic.slot = t, slot
			return
		}
		slot += len(s.req.Topics[i].Partitions)
	}
	s.fail(fmt.Errorf("%w: topic %q", ErrUnexpectedPartition, name))
}

func (s *FetchStream) findTopicID(id [16]byte) {
	if session := s.req.session; session != nil {
		if s.topic.session = session.byID[id]; s.topic.session == nil {
			s.fail(fmt.Errorf("%w: topic id %x", ErrUnexpectedPartition, id))
		}
		return
	}
	slot := 0
	for i := range s.req.Topics {
		if t := &s.req.Topics[i]; t.TopicID == id {
			s.topic.request, s.topic.slot = t, slot
			return
		}
		slot += len(s.req.Topics[i].Partitions)
	}
	s.fail(fmt.Errorf("%w: topic id %x", ErrUnexpectedPartition, id))
}

// findPartition fills the part of the head that comes from the request.
func (s *FetchStream) findPartition(index int32) {
	s.part = PartitionHead{Index: index, LogStartOffset: -1, PreferredReplica: -1}
	if t := s.topic.session; t != nil {
		if p := t.partitions[index]; p != nil {
			s.part.Topic, s.part.TopicID, s.part.Slot = t.name, t.id, p.slot
			return
		}
		s.fail(fmt.Errorf("%w: %s-%d", ErrUnexpectedPartition, t.name, index))
		return
	}
	t := s.topic.request
	for i := range t.Partitions {
		if t.Partitions[i].Partition == index {
			s.part.Topic, s.part.TopicID, s.part.Slot = t.Topic, t.TopicID, s.topic.slot+i
			return
		}
	}
	s.fail(fmt.Errorf("%w: %s-%d", ErrUnexpectedPartition, t.Topic, index))
}

func (s *FetchStream) partitionHead() {
	index := s.int32("partition_index")
	if s.err != nil {
		return
	}
	s.findPartition(index)
	p := &s.part
	p.ErrorCode = s.int16("error_code")
	p.HighWatermark = s.int64("high_watermark")
	p.LastStableOffset = s.int64("last_stable_offset")
	if s.version >= 5 {
		p.LogStartOffset = s.int64("log_start_offset")
	}
	s.abortedTxns()
	if s.version >= 11 {
		p.PreferredReplica = s.int32("preferred_read_replica")
	}
	n := s.length(true, "records")
	if s.err != nil {
		return
	}
	p.RecordsSize = max(n, 0)
	s.recordsLeft = int64(p.RecordsSize)
	s.tail = noTail
	s.state = streamPartition
}

func (s *FetchStream) abortedTxns() {
	n := s.length(true, "aborted_transactions")
	if n > 0 && int64(n) > s.frame.left/16 {
		s.malformed("aborted_transactions", "more elements than the frame has room for")
	}
	for i := 0; i < n && s.err == nil; i++ {
		s.skip(16)
		s.skipTags()
	}
	s.part.AbortedTxns = max(n, 0)
}

// finish moves behind the current partition.
func (s *FetchStream) finish() {
	n := s.recordsLeft
	s.recordsLeft = 0
	if err := s.frame.skip(n); err != nil {
		s.fail(err)
		return
	}
	for n := s.tagCount(); n > 0 && s.err == nil; n-- {
		s.partitionTag()
	}
	if s.err == nil {
		s.state = streamTopics
	}
}

func (s *FetchStream) partitionTag() {
	tag, size := s.tagHead()
	if s.err != nil || tag > 3 {
		s.skip(size)
		return
	}
	if size > maxStreamTagBytes {
		s.malformed("tagged field", "longer than any known one")
		return
	}
	b := s.bytes(int(size), "tagged field")
	if b == nil {
		return
	}
	r := reader{src: b, api: KeyFetch, version: s.version, compact: true}
	r.partitionTag(tag, &s.tail)
	if err := r.done(); err != nil {
		s.malformed(r.err.Field, r.err.Reason)
		return
	}
	s.frame.consume(int(size))
}

// nodeEndpoints decodes the tagged field of size bytes element by element: it may be larger than the window.
func (s *FetchStream) nodeEndpoints(size int64) {
	end := s.frame.left - size
	n := s.count(11, "node_endpoints")
	if n > maxNodeEndpoints {
		s.malformed("node_endpoints", "more nodes than any cluster has")
	}
	s.endpoints = nil
	for i := 0; i < n && s.err == nil; i++ {
		e := NodeEndpoint{NodeID: s.int32("node_id")}
		if host := s.nullableStr("host"); host != nil {
			e.Host = *host
		} else {
			s.malformed("host", "null where Kafka allows none")
		}
		e.Port = s.int32("port")
		e.Rack = s.nullableStr("rack")
		s.skipTags()
		s.endpoints = append(s.endpoints, e)
	}
	if s.err == nil && s.frame.left != end {
		s.malformed("node_endpoints", "does not fill its tagged field")
	}
}
