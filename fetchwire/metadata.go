package fetchwire

// NoAuthorizedOperations is the value of authorized operations that were not asked for.
const NoAuthorizedOperations int32 = -1 << 31

// MetadataRequest asks for brokers, topics and leaders.
//
// MetadataRequest.json, versions 4-13.
type MetadataRequest struct {
	Topics                      []MetadataRequestTopic // nil = all, empty = none
	AllowAutoTopicCreation      bool
	IncludeClusterAuthorizedOps bool // v8-v10
	IncludeTopicAuthorizedOps   bool // v8+
}

// MetadataRequestTopic names a topic by name, or by id (v12+ in practice).
type MetadataRequestTopic struct {
	TopicID [16]byte // v10+
	Name    *string  // nil = by id, v10+
}

// MetadataResponse lists brokers and topics.
//
// MetadataResponse.json, versions 4-13.
type MetadataResponse struct {
	ThrottleMs           int32
	Brokers              []MetadataBroker
	ClusterID            *string
	ControllerID         int32 // -1 = unknown
	Topics               []MetadataTopic
	ClusterAuthorizedOps int32 // v8-v10
	ErrorCode            int16 // v13+
}

// MetadataBroker is a broker's address.
type MetadataBroker struct {
	NodeID int32
	Host   string
	Port   int32
	Rack   *string
}

// MetadataTopic is one topic.
type MetadataTopic struct {
	ErrorCode     int16
	Name          *string  // nil only for an unknown id, v12+
	TopicID       [16]byte // v10+
	IsInternal    bool
	Partitions    []MetadataPartition
	AuthorizedOps int32 // v8+
}

// MetadataPartition is one partition and its leader.
type MetadataPartition struct {
	ErrorCode       int16
	Index           int32
	LeaderID        int32 // -1 = none
	LeaderEpoch     int32 // v7+; -1 = unknown
	Replicas        []int32
	Isr             []int32
	OfflineReplicas []int32 // v5+
}

// Key returns the API key.
func (*MetadataRequest) Key() int16 { return KeyMetadata }

// AppendTo appends the request's body as version.
func (m *MetadataRequest) AppendTo(dst []byte, version int16) []byte {
	compact := flexible(KeyMetadata, version)
	if m.Topics == nil {
		dst = appendArrayLen(dst, -1, compact)
	} else {
		dst = appendArrayLen(dst, len(m.Topics), compact)
	}
	for i := range m.Topics {
		t := &m.Topics[i]
		if version >= 10 {
			dst = append(dst, t.TopicID[:]...)
			dst = appendNullableString(dst, t.Name, compact)
		} else {
			dst = appendString(dst, deref(t.Name), compact)
		}
		dst = appendNoTags(dst, compact)
	}
	dst = appendBool(dst, m.AllowAutoTopicCreation)
	if version >= 8 && version <= 10 {
		dst = appendBool(dst, m.IncludeClusterAuthorizedOps)
	}
	if version >= 8 {
		dst = appendBool(dst, m.IncludeTopicAuthorizedOps)
	}
	return appendNoTags(dst, compact)
}

// DecodeFrom decodes a request's body. Errors: *DecodeError.
func (m *MetadataRequest) DecodeFrom(src []byte, version int16) error {
	*m = MetadataRequest{}
	r := newReader(src, KeyMetadata, version)
	if n := r.arrayLen(2, "topics"); n >= 0 {
		m.Topics = make([]MetadataRequestTopic, n)
	}
	for i := range m.Topics {
		t := &m.Topics[i]
		if version >= 10 {
			t.TopicID = r.uuid("topic_id")
			t.Name = r.nullableStr("name")
		} else {
			name := r.str("name")
			t.Name = &name
		}
		r.skipTags()
	}
	m.AllowAutoTopicCreation = r.bool("allow_auto_topic_creation")
	if version >= 8 && version <= 10 {
		m.IncludeClusterAuthorizedOps = r.bool("include_cluster_authorized_operations")
	}
	if version >= 8 {
		m.IncludeTopicAuthorizedOps = r.bool("include_topic_authorized_operations")
	}
	r.skipTags()
	return r.done()
}

// Key returns the API key.
func (*MetadataResponse) Key() int16 { return KeyMetadata }

// AppendTo appends the response's body as version.
func (m *MetadataResponse) AppendTo(dst []byte, version int16) []byte {
	compact := flexible(KeyMetadata, version)
	dst = appendInt32(dst, m.ThrottleMs)
	dst = appendArrayLen(dst, len(m.Brokers), compact)
	for i := range m.Brokers {
		b := &m.Brokers[i]
		dst = appendInt32(dst, b.NodeID)
		dst = appendString(dst, b.Host, compact)
		dst = appendInt32(dst, b.Port)
		dst = appendNullableString(dst, b.Rack, compact)
		dst = appendNoTags(dst, compact)
	}
	dst = appendNullableString(dst, m.ClusterID, compact)
	dst = appendInt32(dst, m.ControllerID)
	dst = appendArrayLen(dst, len(m.Topics), compact)
	for i := range m.Topics {
		dst = m.Topics[i].appendTo(dst, version, compact)
	}
	if version >= 8 && version <= 10 {
		dst = appendInt32(dst, m.ClusterAuthorizedOps)
	}
	if version >= 13 {
		dst = appendInt16(dst, m.ErrorCode)
	}
	return appendNoTags(dst, compact)
}

func (t *MetadataTopic) appendTo(dst []byte, version int16, compact bool) []byte {
	dst = appendInt16(dst, t.ErrorCode)
	if version >= 12 {
		dst = appendNullableString(dst, t.Name, compact)
	} else {
		dst = appendString(dst, deref(t.Name), compact)
	}
	if version >= 10 {
		dst = append(dst, t.TopicID[:]...)
	}
	dst = appendBool(dst, t.IsInternal)
	dst = appendArrayLen(dst, len(t.Partitions), compact)
	for i := range t.Partitions {
		p := &t.Partitions[i]
		dst = appendInt16(dst, p.ErrorCode)
		dst = appendInt32(dst, p.Index)
		dst = appendInt32(dst, p.LeaderID)
		if version >= 7 {
			dst = appendInt32(dst, p.LeaderEpoch)
		}
		dst = appendInt32s(dst, p.Replicas, compact)
		dst = appendInt32s(dst, p.Isr, compact)
		if version >= 5 {
			dst = appendInt32s(dst, p.OfflineReplicas, compact)
		}
		dst = appendNoTags(dst, compact)
	}
	if version >= 8 {
		dst = appendInt32(dst, t.AuthorizedOps)
	}
	return appendNoTags(dst, compact)
}

// DecodeFrom decodes a response's body. Errors: *DecodeError.
func (m *MetadataResponse) DecodeFrom(src []byte, version int16) error {
	*m = MetadataResponse{ClusterAuthorizedOps: NoAuthorizedOperations}
	r := newReader(src, KeyMetadata, version)
	m.ThrottleMs = r.int32("throttle_time_ms")
	m.Brokers = make([]MetadataBroker, r.array(10, "brokers"))
	for i := range m.Brokers {
		b := &m.Brokers[i]
		b.NodeID = r.int32("node_id")
		b.Host = r.str("host")
		b.Port = r.int32("port")
		b.Rack = r.nullableStr("rack")
		r.skipTags()
	}
	m.ClusterID = r.nullableStr("cluster_id")
	m.ControllerID = r.int32("controller_id")
	m.Topics = make([]MetadataTopic, r.array(6, "topics"))
	for i := range m.Topics {
		m.Topics[i].decode(r)
	}
	if version >= 8 && version <= 10 {
		m.ClusterAuthorizedOps = r.int32("cluster_authorized_operations")
	}
	if version >= 13 {
		m.ErrorCode = r.int16("error_code")
	}
	r.skipTags()
	return r.done()
}

func (t *MetadataTopic) decode(r *reader) {
	t.AuthorizedOps = NoAuthorizedOperations
	t.ErrorCode = r.int16("error_code")
	if r.version >= 12 {
		t.Name = r.nullableStr("name")
	} else {
		name := r.str("name")
		t.Name = &name
	}
	if r.version >= 10 {
		t.TopicID = r.uuid("topic_id")
	}
	t.IsInternal = r.bool("is_internal")
	t.Partitions = make([]MetadataPartition, r.array(16, "partitions"))
	for i := range t.Partitions {
		p := &t.Partitions[i]
		p.LeaderEpoch = -1
		p.ErrorCode = r.int16("error_code")
		p.Index = r.int32("partition_index")
		p.LeaderID = r.int32("leader_id")
		if r.version >= 7 {
			p.LeaderEpoch = r.int32("leader_epoch")
		}
		p.Replicas = r.int32s("replica_nodes")
		p.Isr = r.int32s("isr_nodes")
		if r.version >= 5 {
			p.OfflineReplicas = r.int32s("offline_replicas")
		}
		r.skipTags()
	}
	if r.version >= 8 {
		t.AuthorizedOps = r.int32("topic_authorized_operations")
	}
	r.skipTags()
}

// deref returns "" for nil: for versions in which a string cannot be null.
func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
