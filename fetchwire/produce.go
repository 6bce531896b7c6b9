package fetchwire

// ProduceRequest brings records. A mirror reads it only to refuse it in words.
//
// ProduceRequest.json, versions 3-13.
type ProduceRequest struct {
	TransactionID *string
	Acks          int16 // 0 = no answer is wanted
	TimeoutMs     int32
	Topics        []ProduceTopic
}

// ProduceTopic is one topic of a ProduceRequest.
type ProduceTopic struct {
	Topic      string   // v3-v12
	TopicID    [16]byte // v13+
	Partitions []ProducePartition
}

// ProducePartition is one partition of a ProduceRequest.
type ProducePartition struct {
	Partition int32
	Records   []byte // a part of the decoded message; nil = null
}

// ProduceResponse tells of each partition whether its records were taken.
//
// ProduceResponse.json, versions 3-13.
type ProduceResponse struct {
	Topics        []ProduceTopicResult
	ThrottleMs    int32
	NodeEndpoints []NodeEndpoint // v10+, tag
}

// ProduceTopicResult is one topic of a ProduceResponse.
type ProduceTopicResult struct {
	Topic      string   // v3-v12
	TopicID    [16]byte // v13+
	Partitions []ProduceResult
}

// ProduceResult is the answer for one partition. Begin with NewProduceResult: zero means something in most fields.
type ProduceResult struct {
	Partition      int32
	ErrorCode      int16
	BaseOffset     int64 // -1 = none
	LogAppendTime  int64 // ms; -1 = the producer's timestamps stay
	LogStartOffset int64 // v5+; -1 = not said
	ErrorRecords   []ProduceErrorRecord
	ErrorMessage   *string          // v8+
	CurrentLeader  LeaderIDAndEpoch // v10+, tag
}

// ProduceErrorRecord names a record that made its batch be dropped. v8+.
type ProduceErrorRecord struct {
	RelativeOffset int32
	ErrorMessage   *string
}

// NewProduceResult returns a result with a code, and words for versions that have room for them.
func NewProduceResult(partition int32, code int16, message string) ProduceResult {
	return ProduceResult{
		Partition: partition, ErrorCode: code, BaseOffset: -1, LogAppendTime: -1, LogStartOffset: -1,
		ErrorMessage: &message, CurrentLeader: noLeader,
	}
}

// Key returns the API key.
func (*ProduceRequest) Key() int16 { return KeyProduce }

// AppendTo appends the request's body as version.
func (m *ProduceRequest) AppendTo(dst []byte, version int16) []byte {
	compact := flexible(KeyProduce, version)
	dst = appendNullableString(dst, m.TransactionID, compact)
	dst = appendInt16(dst, m.Acks)
	dst = appendInt32(dst, m.TimeoutMs)
	dst = appendArrayLen(dst, len(m.Topics), compact)
	for i := range m.Topics {
		t := &m.Topics[i]
		dst = appendProduceTopic(dst, t.Topic, &t.TopicID, version)
		dst = appendArrayLen(dst, len(t.Partitions), compact)
		for j := range t.Partitions {
			dst = appendInt32(dst, t.Partitions[j].Partition)
			dst = appendBytes(dst, t.Partitions[j].Records, compact, true)
			dst = appendNoTags(dst, compact)
		}
		dst = appendNoTags(dst, compact)
	}
	return appendNoTags(dst, compact)
}

// appendProduceTopic appends the name or, from version 13, the id.
func appendProduceTopic(dst []byte, topic string, id *[16]byte, version int16) []byte {
	if version >= 13 {
		return append(dst, id[:]...)
	}
	return appendString(dst, topic, flexible(KeyProduce, version))
}

// DecodeFrom decodes a request's body; Records belong to src. Errors: *DecodeError.
func (m *ProduceRequest) DecodeFrom(src []byte, version int16) error {
	*m = ProduceRequest{}
	r := newReader(src, KeyProduce, version)
	m.TransactionID = r.nullableStr("transactional_id")
	m.Acks = r.int16("acks")
	m.TimeoutMs = r.int32("timeout_ms")
	m.Topics = make([]ProduceTopic, r.array(3, "topic_data"))
	for i := range m.Topics {
		t := &m.Topics[i]
		t.Topic, t.TopicID = r.topic()
		t.Partitions = make([]ProducePartition, r.array(5, "partition_data"))
		for j := range t.Partitions {
			t.Partitions[j].Partition = r.int32("index")
			t.Partitions[j].Records = r.nullableBytes("records")
			r.skipTags()
		}
		r.skipTags()
	}
	r.skipTags()
	return r.done()
}

// Key returns the API key.
func (*ProduceResponse) Key() int16 { return KeyProduce }

// AppendTo appends the response's body as version.
func (m *ProduceResponse) AppendTo(dst []byte, version int16) []byte {
	compact := flexible(KeyProduce, version)
	dst = appendArrayLen(dst, len(m.Topics), compact)
	for i := range m.Topics {
		t := &m.Topics[i]
		dst = appendProduceTopic(dst, t.Topic, &t.TopicID, version)
		dst = appendArrayLen(dst, len(t.Partitions), compact)
		for j := range t.Partitions {
			dst = t.Partitions[j].appendTo(dst, version, compact)
		}
		dst = appendNoTags(dst, compact)
	}
	dst = appendInt32(dst, m.ThrottleMs)
	if !compact {
		return dst
	}
	if version < 10 || len(m.NodeEndpoints) == 0 {
		return appendNoTags(dst, compact)
	}
	return appendTag(appendUvarint(dst, 1), 0, appendNodeEndpoints(nil, m.NodeEndpoints))
}

func (p *ProduceResult) appendTo(dst []byte, version int16, compact bool) []byte {
	dst = appendInt32(dst, p.Partition)
	dst = appendInt16(dst, p.ErrorCode)
	dst = appendInt64(dst, p.BaseOffset)
	dst = appendInt64(dst, p.LogAppendTime)
	if version >= 5 {
		dst = appendInt64(dst, p.LogStartOffset)
	}
	if version >= 8 {
		dst = appendArrayLen(dst, len(p.ErrorRecords), compact)
		for i := range p.ErrorRecords {
			dst = appendInt32(dst, p.ErrorRecords[i].RelativeOffset)
			dst = appendNullableString(dst, p.ErrorRecords[i].ErrorMessage, compact)
			dst = appendNoTags(dst, compact)
		}
		dst = appendNullableString(dst, p.ErrorMessage, compact)
	}
	if version < 10 || p.CurrentLeader == noLeader {
		return appendNoTags(dst, compact)
	}
	dst = appendTagHead(appendUvarint(dst, 1), 0, 4+4+1)
	dst = appendInt32(dst, p.CurrentLeader.LeaderID)
	dst = appendInt32(dst, p.CurrentLeader.LeaderEpoch)
	return appendNoTags(dst, true)
}

// DecodeFrom decodes a response's body. Errors: *DecodeError.
func (m *ProduceResponse) DecodeFrom(src []byte, version int16) error {
	*m = ProduceResponse{}
	r := newReader(src, KeyProduce, version)
	m.Topics = make([]ProduceTopicResult, r.array(3, "responses"))
	for i := range m.Topics {
		t := &m.Topics[i]
		t.Topic, t.TopicID = r.topic()
		t.Partitions = make([]ProduceResult, r.array(22, "partition_responses"))
		for j := range t.Partitions {
			t.Partitions[j].decode(r)
		}
		r.skipTags()
	}
	m.ThrottleMs = r.int32("throttle_time_ms")
	for n := r.tagCount("tagged fields"); n > 0 && r.err == nil; n-- {
		tag, whole := r.openTag()
		if tag == 0 && version >= 10 {
			m.NodeEndpoints = r.nodeEndpoints()
		} else {
			r.skipTag()
		}
		r.closeTag(whole)
	}
	return r.done()
}

func (p *ProduceResult) decode(r *reader) {
	*p = ProduceResult{LogStartOffset: -1, CurrentLeader: noLeader}
	p.Partition = r.int32("index")
	p.ErrorCode = r.int16("error_code")
	p.BaseOffset = r.int64("base_offset")
	p.LogAppendTime = r.int64("log_append_time_ms")
	if r.version >= 5 {
		p.LogStartOffset = r.int64("log_start_offset")
	}
	if r.version >= 8 {
		p.ErrorRecords = make([]ProduceErrorRecord, r.array(5, "record_errors"))
		for i := range p.ErrorRecords {
			p.ErrorRecords[i].RelativeOffset = r.int32("batch_index")
			p.ErrorRecords[i].ErrorMessage = r.nullableStr("batch_index_error_message")
			r.skipTags()
		}
		p.ErrorMessage = r.nullableStr("error_message")
	}
	for n := r.tagCount("tagged fields"); n > 0 && r.err == nil; n-- {
		tag, whole := r.openTag()
		if tag == 0 && r.version >= 10 {
			p.CurrentLeader.LeaderID = r.int32("current_leader.leader_id")
			p.CurrentLeader.LeaderEpoch = r.int32("current_leader.leader_epoch")
			r.skipTags()
		} else {
			r.skipTag()
		}
		r.closeTag(whole)
	}
}
