package fetchwire

// ConsumerReplicaID is the replica id of a client that is not a broker.
const ConsumerReplicaID int32 = -1

// FetchRequest asks for records. FetchSession.Next builds it; one built by hand works too.
//
// FetchRequest.json, versions 4-18, and 19 of KIP-1279.
type FetchRequest struct {
	Version        int16   // highest version to use; 0 = the newest both sides know. Not on the wire.
	ClusterID      *string // v12+, tag
	ReplicaID      int32   // ConsumerReplicaID
	ReplicaEpoch   int64   // v15+, tag; -1 = none
	MaxWaitMs      int32
	MinBytes       int32
	MaxBytes       int32 // of the whole response; the first batch may be larger
	IsolationLevel int8  // 0 = read uncommitted
	SessionID      int32 // v7+
	SessionEpoch   int32 // v7+; -1 = no session
	Topics         []FetchTopic
	Forgotten      []ForgottenTopic // v7+
	Rack           string           // v11+

	session *FetchSession // resolves the partitions of the response; nil = those of Topics
}

// FetchTopic is one topic of a FetchRequest.
type FetchTopic struct {
	Topic      string   // v4-v12
	TopicID    [16]byte // v13+
	Partitions []FetchPartition
}

// FetchPartition is one partition of a FetchRequest.
type FetchPartition struct {
	Partition          int32
	CurrentLeaderEpoch int32 // v9+; -1 = unknown
	FetchOffset        int64
	LastFetchedEpoch   int32    // v12+; -1 = none
	LogStartOffset     int64    // v5+; of a follower, else -1
	MaxBytes           int32    // the first batch may be larger
	ReplicaDirectoryID [16]byte // v17+, tag
	HighWatermark      int64    // v18+, tag; NoHighWatermark = not said
	MirrorLeaderEpoch  int32    // v19+, tag; source epoch last fetched, instead of LastFetchedEpoch; -1 = none
}

// NoHighWatermark is FetchPartition.HighWatermark of a client that does not tell it.
const NoHighWatermark int64 = 1<<63 - 1

// ForgottenTopic names partitions that leave a fetch session.
type ForgottenTopic struct {
	Topic      string   // v7-v12
	TopicID    [16]byte // v13+
	Partitions []int32
}

// EpochEndOffset is a leader epoch and the offset it ends at; both -1 when absent.
type EpochEndOffset struct {
	Epoch     int32
	EndOffset int64
}

// LeaderIDAndEpoch names a partition's leader; both -1 when absent.
type LeaderIDAndEpoch struct {
	LeaderID    int32
	LeaderEpoch int32
}

// NodeEndpoint is the address of a broker that a fetch response named as leader.
type NodeEndpoint struct {
	NodeID int32
	Host   string
	Port   int32
	Rack   *string
}

// Key returns the API key.
func (*FetchRequest) Key() int16 { return KeyFetch }

// AppendTo appends the request's body as version. No allocation when dst has room.
func (m *FetchRequest) AppendTo(dst []byte, version int16) []byte {
	compact := flexible(KeyFetch, version)
	if version < 15 {
		dst = appendInt32(dst, m.ReplicaID)
	}
	dst = appendInt32(dst, m.MaxWaitMs)
	dst = appendInt32(dst, m.MinBytes)
	dst = appendInt32(dst, m.MaxBytes)
	dst = appendInt8(dst, m.IsolationLevel)
	if version >= 7 {
		dst = appendInt32(dst, m.SessionID)
		dst = appendInt32(dst, m.SessionEpoch)
	}
	dst = appendArrayLen(dst, len(m.Topics), compact)
	for i := range m.Topics {
		t := &m.Topics[i]
		dst = appendTopic(dst, t.Topic, &t.TopicID, version)
		dst = appendArrayLen(dst, len(t.Partitions), compact)
		for j := range t.Partitions {
			dst = t.Partitions[j].appendTo(dst, version, compact)
		}
		dst = appendNoTags(dst, compact)
	}
	if version >= 7 {
		dst = appendArrayLen(dst, len(m.Forgotten), compact)
		for i := range m.Forgotten {
			f := &m.Forgotten[i]
			dst = appendTopic(dst, f.Topic, &f.TopicID, version)
			dst = appendInt32s(dst, f.Partitions, compact)
			dst = appendNoTags(dst, compact)
		}
	}
	if version >= 11 {
		dst = appendString(dst, m.Rack, compact)
	}
	if !compact {
		return dst
	}
	return m.appendTags(dst, version)
}

// appendTopic appends the name or, from version 13, the id.
func appendTopic(dst []byte, topic string, id *[16]byte, version int16) []byte {
	if version >= 13 {
		return append(dst, id[:]...)
	}
	return appendString(dst, topic, flexible(KeyFetch, version))
}

func (m *FetchRequest) appendTags(dst []byte, version int16) []byte {
	replica := version >= 15 && (m.ReplicaID != -1 || m.ReplicaEpoch != -1)
	n := uint32(0)
	if m.ClusterID != nil {
		n++
	}
	if replica {
		n++
	}
	dst = appendUvarint(dst, n)
	if m.ClusterID != nil {
		dst = appendTag(dst, 0, appendNullableString(nil, m.ClusterID, true))
	}
	if replica {
		dst = appendTagHead(dst, 1, 4+8+1)
		dst = appendInt32(dst, m.ReplicaID)
		dst = appendInt64(dst, m.ReplicaEpoch)
		dst = appendNoTags(dst, true)
	}
	return dst
}

func (p *FetchPartition) appendTo(dst []byte, version int16, compact bool) []byte {
	dst = appendInt32(dst, p.Partition)
	if version >= 9 {
		dst = appendInt32(dst, p.CurrentLeaderEpoch)
	}
	dst = appendInt64(dst, p.FetchOffset)
	if version >= 12 {
		dst = appendInt32(dst, p.LastFetchedEpoch)
	}
	if version >= 5 {
		dst = appendInt64(dst, p.LogStartOffset)
	}
	dst = appendInt32(dst, p.MaxBytes)
	if !compact {
		return dst
	}
	directory := version >= 17 && p.ReplicaDirectoryID != [16]byte{}
	watermark := version >= 18 && p.HighWatermark != NoHighWatermark
	mirror := version >= 19 && p.MirrorLeaderEpoch != -1
	n := byte(0)
	if directory {
		n++
	}
	if watermark {
		n++
	}
	if mirror {
		n++
	}
	dst = append(dst, n)
	if directory {
		dst = appendTagHead(dst, 0, 16)
		dst = append(dst, p.ReplicaDirectoryID[:]...)
	}
	if watermark {
		dst = appendTagHead(dst, 1, 8)
		dst = appendInt64(dst, p.HighWatermark)
	}
	if mirror {
		dst = appendTagHead(dst, 2, 4)
		dst = appendInt32(dst, p.MirrorLeaderEpoch)
	}
	return dst
}

// DecodeFrom decodes a request's body. Errors: *DecodeError.
func (m *FetchRequest) DecodeFrom(src []byte, version int16) error {
	*m = FetchRequest{Version: version, ReplicaID: ConsumerReplicaID, ReplicaEpoch: -1, SessionEpoch: -1}
	r := newReader(src, KeyFetch, version)
	if version < 15 {
		m.ReplicaID = r.int32("replica_id")
	}
	m.MaxWaitMs = r.int32("max_wait_ms")
	m.MinBytes = r.int32("min_bytes")
	m.MaxBytes = r.int32("max_bytes")
	m.IsolationLevel = r.int8("isolation_level")
	if version >= 7 {
		m.SessionID = r.int32("session_id")
		m.SessionEpoch = r.int32("session_epoch")
	}
	m.Topics = make([]FetchTopic, r.array(3, "topics"))
	for i := range m.Topics {
		m.Topics[i].decode(r)
	}
	if version >= 7 {
		m.Forgotten = make([]ForgottenTopic, r.array(3, "forgotten_topics_data"))
	}
	for i := range m.Forgotten {
		f := &m.Forgotten[i]
		f.Topic, f.TopicID = r.topic()
		f.Partitions = r.int32s("partitions")
		r.skipTags()
	}
	if version >= 11 {
		m.Rack = r.str("rack_id")
	}
	for n := r.tagCount("tagged fields"); n > 0 && r.err == nil; n-- {
		tag, whole := r.openTag()
		switch {
		case tag == 0:
			m.ClusterID = r.nullableStr("cluster_id")
		case tag == 1 && version >= 15:
			m.ReplicaID = r.int32("replica_id")
			m.ReplicaEpoch = r.int64("replica_epoch")
			r.skipTags()
		default:
			r.skipTag()
		}
		r.closeTag(whole)
	}
	return r.done()
}

// topic reads the name or, from version 13, the id of a topic in a fetch message.
func (r *reader) topic() (name string, id [16]byte) {
	if r.version >= 13 {
		return "", r.uuid("topic_id")
	}
	return r.str("topic"), id
}

func (t *FetchTopic) decode(r *reader) {
	t.Topic, t.TopicID = r.topic()
	t.Partitions = make([]FetchPartition, r.array(16, "partitions"))
	for i := range t.Partitions {
		p := &t.Partitions[i]
		*p = FetchPartition{
			CurrentLeaderEpoch: -1, LastFetchedEpoch: -1, LogStartOffset: -1, HighWatermark: NoHighWatermark,
			MirrorLeaderEpoch: -1,
		}
		p.Partition = r.int32("partition")
		if r.version >= 9 {
			p.CurrentLeaderEpoch = r.int32("current_leader_epoch")
		}
		p.FetchOffset = r.int64("fetch_offset")
		if r.version >= 12 {
			p.LastFetchedEpoch = r.int32("last_fetched_epoch")
		}
		if r.version >= 5 {
			p.LogStartOffset = r.int64("log_start_offset")
		}
		p.MaxBytes = r.int32("partition_max_bytes")
		for n := r.tagCount("tagged fields"); n > 0 && r.err == nil; n-- {
			tag, whole := r.openTag()
			switch {
			case tag == 0 && r.version >= 17:
				p.ReplicaDirectoryID = r.uuid("replica_directory_id")
			case tag == 1 && r.version >= 18:
				p.HighWatermark = r.int64("high_watermark")
			case tag == 2 && r.version >= 19:
				p.MirrorLeaderEpoch = r.int32("mirror_leader_epoch")
			default:
				r.skipTag()
			}
			r.closeTag(whole)
		}
	}
	r.skipTags()
}
