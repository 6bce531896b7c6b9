package fetchwire

// FetchResponse is a fetch response held whole: what a server writes. A client reads through FetchStream instead.
//
// FetchResponse.json, versions 4-18, and 19 of KIP-1279.
type FetchResponse struct {
	ThrottleMs    int32
	ErrorCode     int16 // v7+
	SessionID     int32 // v7+
	Topics        []FetchTopicResponse
	NodeEndpoints []NodeEndpoint // v16+, tag
}

// FetchTopicResponse is one topic of a FetchResponse.
type FetchTopicResponse struct {
	Topic      string   // v4-v12
	TopicID    [16]byte // v13+
	Partitions []FetchPartitionResponse
}

// FetchPartitionResponse is one partition of a FetchResponse. Begin with NewFetchPartitionResponse: zero means
// something in most fields.
type FetchPartitionResponse struct {
	Index            int32
	ErrorCode        int16
	HighWatermark    int64
	LastStableOffset int64
	LogStartOffset   int64            // v5+
	DivergingEpoch   EpochEndOffset   // v12+, tag
	CurrentLeader    LeaderIDAndEpoch // v12+, tag
	SnapshotID       EpochEndOffset   // v12+, tag
	AbortedTxns      []FetchAbortedTxn
	PreferredReplica int32  // v11+
	Records          []byte // nil = null
	// MirrorLeaderEpoch is the source epoch of all the records; -1 = not said. v19+, tag.
	MirrorLeaderEpoch int32
}

// FetchAbortedTxn is an aborted transaction that overlaps the records (only for read committed).
type FetchAbortedTxn struct {
	ProducerID  int64
	FirstOffset int64
}

// NewFetchPartitionResponse returns a response for one partition in which all that may be absent is absent.
func NewFetchPartitionResponse(index int32) FetchPartitionResponse {
	return FetchPartitionResponse{
		Index: index, LastStableOffset: -1, LogStartOffset: -1, PreferredReplica: -1,
		DivergingEpoch: noEpoch, CurrentLeader: noLeader, SnapshotID: noEpoch, MirrorLeaderEpoch: -1,
	}
}

var (
	noEpoch  = EpochEndOffset{Epoch: -1, EndOffset: -1}
	noLeader = LeaderIDAndEpoch{LeaderID: -1, LeaderEpoch: -1}
)

// Key returns the API key.
func (*FetchResponse) Key() int16 { return KeyFetch }

// AppendTo appends the response's body as version.
func (m *FetchResponse) AppendTo(dst []byte, version int16) []byte {
	compact := flexible(KeyFetch, version)
	return m.appendWith(dst, version, func(dst []byte, p *FetchPartitionResponse) []byte {
		return appendBytes(dst, p.Records, compact, true)
	})
}

// appendWith is AppendTo with the records' length, and the records or not, appended by records.
func (m *FetchResponse) appendWith(
	dst []byte, version int16, records func([]byte, *FetchPartitionResponse) []byte,
) []byte {
	compact := flexible(KeyFetch, version)
	dst = appendInt32(dst, m.ThrottleMs)
	if version >= 7 {
		dst = appendInt16(dst, m.ErrorCode)
		dst = appendInt32(dst, m.SessionID)
	}
	dst = appendArrayLen(dst, len(m.Topics), compact)
	for i := range m.Topics {
		t := &m.Topics[i]
		dst = appendTopic(dst, t.Topic, &t.TopicID, version)
		dst = appendArrayLen(dst, len(t.Partitions), compact)
		for j := range t.Partitions {
			p := &t.Partitions[j]
			dst = p.appendHead(dst, version, compact)
			dst = records(dst, p)
			dst = p.appendTags(dst, version, compact)
		}
		dst = appendNoTags(dst, compact)
	}
	if !compact {
		return dst
	}
	if version < 16 || len(m.NodeEndpoints) == 0 {
		return appendNoTags(dst, compact)
	}
	return appendTag(appendUvarint(dst, 1), 0, appendNodeEndpoints(nil, m.NodeEndpoints))
}

// appendHead appends what stands before the records' length.
func (p *FetchPartitionResponse) appendHead(dst []byte, version int16, compact bool) []byte {
	dst = appendInt32(dst, p.Index)
	dst = appendInt16(dst, p.ErrorCode)
	dst = appendInt64(dst, p.HighWatermark)
	dst = appendInt64(dst, p.LastStableOffset)
	if version >= 5 {
		dst = appendInt64(dst, p.LogStartOffset)
	}
	if p.AbortedTxns == nil {
		dst = appendArrayLen(dst, -1, compact)
	} else {
		dst = appendArrayLen(dst, len(p.AbortedTxns), compact)
	}
	for _, a := range p.AbortedTxns {
		dst = appendInt64(dst, a.ProducerID)
		dst = appendInt64(dst, a.FirstOffset)
		dst = appendNoTags(dst, compact)
	}
	if version >= 11 {
		dst = appendInt32(dst, p.PreferredReplica)
	}
	return dst
}

// appendTags appends what stands behind the records.
func (p *FetchPartitionResponse) appendTags(dst []byte, version int16, compact bool) []byte {
	if !compact {
		return dst
	}
	mirror := version >= 19 && p.MirrorLeaderEpoch != -1
	n := byte(0)
	for _, present := range [...]bool{
		p.DivergingEpoch != noEpoch, p.CurrentLeader != noLeader, p.SnapshotID != noEpoch, mirror,
	} {
		if present {
			n++
		}
	}
	dst = append(dst, n)
	if e := p.DivergingEpoch; e != noEpoch {
		dst = appendTagHead(dst, 0, 4+8+1)
		dst = appendInt32(dst, e.Epoch)
		dst = appendInt64(dst, e.EndOffset)
		dst = appendNoTags(dst, true)
	}
	if l := p.CurrentLeader; l != noLeader {
		dst = appendTagHead(dst, 1, 4+4+1)
		dst = appendInt32(dst, l.LeaderID)
		dst = appendInt32(dst, l.LeaderEpoch)
		dst = appendNoTags(dst, true)
	}
	if e := p.SnapshotID; e != noEpoch {
		dst = appendTagHead(dst, 2, 8+4+1)
		dst = appendInt64(dst, e.EndOffset)
		dst = appendInt32(dst, e.Epoch)
		dst = appendNoTags(dst, true)
	}
	if mirror {
		dst = appendTagHead(dst, 3, 4)
		dst = appendInt32(dst, p.MirrorLeaderEpoch)
	}
	return dst
}

func appendNodeEndpoints(dst []byte, nodes []NodeEndpoint) []byte {
	dst = appendArrayLen(dst, len(nodes), true)
	for i := range nodes {
		n := &nodes[i]
		dst = appendInt32(dst, n.NodeID)
		dst = appendString(dst, n.Host, true)
		dst = appendInt32(dst, n.Port)
		dst = appendNullableString(dst, n.Rack, true)
		dst = appendNoTags(dst, true)
	}
	return dst
}

// DecodeFrom decodes a response's body; Records belong to src. Errors: *DecodeError.
func (m *FetchResponse) DecodeFrom(src []byte, version int16) error {
	*m = FetchResponse{}
	r := newReader(src, KeyFetch, version)
	m.ThrottleMs = r.int32("throttle_time_ms")
	if version >= 7 {
		m.ErrorCode = r.int16("error_code")
		m.SessionID = r.int32("session_id")
	}
	m.Topics = make([]FetchTopicResponse, r.array(3, "responses"))
	for i := range m.Topics {
		t := &m.Topics[i]
		t.Topic, t.TopicID = r.topic()
		t.Partitions = make([]FetchPartitionResponse, r.array(26, "partitions"))
		for j := range t.Partitions {
			t.Partitions[j].decode(r)
		}
		r.skipTags()
	}
	for n := r.tagCount("tagged fields"); n > 0 && r.err == nil; n-- {
		tag, whole := r.openTag()
		if tag == 0 && version >= 16 {
			m.NodeEndpoints = r.nodeEndpoints()
		} else {
			r.skipTag()
		}
		r.closeTag(whole)
	}
	return r.done()
}

func (p *FetchPartitionResponse) decode(r *reader) {
	*p = NewFetchPartitionResponse(r.int32("partition_index"))
	p.ErrorCode = r.int16("error_code")
	p.HighWatermark = r.int64("high_watermark")
	p.LastStableOffset = r.int64("last_stable_offset")
	if r.version >= 5 {
		p.LogStartOffset = r.int64("log_start_offset")
	}
	if n := r.arrayLen(16, "aborted_transactions"); n >= 0 {
		p.AbortedTxns = make([]FetchAbortedTxn, n)
	}
	for i := range p.AbortedTxns {
		p.AbortedTxns[i].ProducerID = r.int64("producer_id")
		p.AbortedTxns[i].FirstOffset = r.int64("first_offset")
		r.skipTags()
	}
	if r.version >= 11 {
		p.PreferredReplica = r.int32("preferred_read_replica")
	}
	p.Records = r.nullableBytes("records")
	for n := r.tagCount("tagged fields"); n > 0 && r.err == nil; n-- {
		tag, whole := r.openTag()
		tail := PartitionTail{p.DivergingEpoch, p.CurrentLeader, p.SnapshotID, p.MirrorLeaderEpoch}
		r.partitionTag(tag, &tail)
		p.DivergingEpoch, p.CurrentLeader = tail.DivergingEpoch, tail.CurrentLeader
		p.SnapshotID, p.MirrorLeaderEpoch = tail.SnapshotID, tail.MirrorLeaderEpoch
		r.closeTag(whole)
	}
}

// partitionTag decodes one tagged field of a partition into t.
func (r *reader) partitionTag(tag uint32, t *PartitionTail) {
	switch {
	case tag == 0:
		t.DivergingEpoch.Epoch = r.int32("diverging_epoch.epoch")
		t.DivergingEpoch.EndOffset = r.int64("diverging_epoch.end_offset")
	case tag == 1:
		t.CurrentLeader.LeaderID = r.int32("current_leader.leader_id")
		t.CurrentLeader.LeaderEpoch = r.int32("current_leader.leader_epoch")
	case tag == 2:
		t.SnapshotID.EndOffset = r.int64("snapshot_id.end_offset")
		t.SnapshotID.Epoch = r.int32("snapshot_id.epoch")
	case tag == 3 && r.version >= 19:
		t.MirrorLeaderEpoch = r.int32("mirror_leader_epoch")
		return
	default:
		r.skipTag()
		return
	}
	r.skipTags()
}

func (r *reader) nodeEndpoints() []NodeEndpoint {
	n := r.array(11, "node_endpoints")
	if n > maxNodeEndpoints {
		r.fail("node_endpoints", "more nodes than any cluster has")
		return nil
	}
	nodes := make([]NodeEndpoint, n)
	for i := range nodes {
		e := &nodes[i]
		e.NodeID = r.int32("node_id")
		e.Host = r.str("host")
		e.Port = r.int32("port")
		e.Rack = r.nullableStr("rack")
		r.skipTags()
	}
	return nodes
}
