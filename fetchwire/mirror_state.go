package fetchwire

// The requests agents make of each other, all of version 0 and flexible. KIP-1279; the tagged fields are this
// project's own.

// ReadMirrorStatesRequest asks for the stored states of partitions.
type ReadMirrorStatesRequest struct {
	MirrorName string
	Topics     []ReadMirrorStatesTopic
}

// ReadMirrorStatesTopic is one topic of the request.
type ReadMirrorStatesTopic struct {
	Name       string
	Partitions []int32
}

// ReadMirrorStatesResponse gives them.
type ReadMirrorStatesResponse struct {
	MirrorResult
	Topics []MirrorStatesTopic
}

// MirrorStatesTopic is one topic of a ReadMirrorStatesResponse.
type MirrorStatesTopic struct {
	Name       string
	Partitions []MirrorPartitionState
}

// MirrorPartitionState is the stored state of a partition.
type MirrorPartitionState struct {
	PartitionIndex  int32
	LastMirrorEpoch int32 // -1 = none
	State           int8
	ErrorCode       int16 // not in requests
	LastMirroredEnd int64 // tag 0; exclusive; -1 = none
}

// WriteMirrorStatesRequest stores states.
type WriteMirrorStatesRequest struct {
	MirrorName    string
	Topics        []MirrorStatesTopic
	StoppedTopics []string
}

// WriteMirrorStatesResponse tells of each partition whether its state was stored.
type WriteMirrorStatesResponse struct {
	MirrorResult
	Topics []MirrorPartitionsResult
}

// MirrorPartitionsResult is the answer for the partitions of one topic.
type MirrorPartitionsResult struct {
	Name       string
	Partitions []MirrorPartitionResult
}

// MirrorPartitionResult is the answer for one partition.
type MirrorPartitionResult struct {
	PartitionIndex int32
	ErrorCode      int16
}

// BumpLeaderEpochsRequest raises leader epochs.
type BumpLeaderEpochsRequest struct{ Topics []BumpLeaderEpochsTopic }

// BumpLeaderEpochsTopic is one topic of the request.
type BumpLeaderEpochsTopic struct {
	TopicID    [16]byte
	Partitions []BumpLeaderEpoch
}

// BumpLeaderEpoch is one partition of the request.
type BumpLeaderEpoch struct {
	PartitionIndex int32
	MinLeaderEpoch int32 // -1 = none
}

// BumpLeaderEpochsResponse tells of each partition whether its epoch is as high as asked.
type BumpLeaderEpochsResponse struct {
	ThrottleMs int32
	ErrorCode  int16
	Topics     []MirrorPartitionsResult
}

// Key returns the API key.
func (*ReadMirrorStatesRequest) Key() int16 { return KeyReadMirrorStates }

// AppendTo appends the request's body.
func (m *ReadMirrorStatesRequest) AppendTo(dst []byte, _ int16) []byte {
	dst = appendString(dst, m.MirrorName, true)
	dst = appendEach(dst, m.Topics, true, func(dst []byte, t *ReadMirrorStatesTopic) []byte {
		dst = appendString(dst, t.Name, true)
		return appendEach(dst, t.Partitions, true, func(dst []byte, p *int32) []byte { return appendInt32(dst, *p) })
	})
	return appendNoTags(dst, true)
}

// DecodeFrom decodes a request's body. Errors: *DecodeError.
func (m *ReadMirrorStatesRequest) DecodeFrom(src []byte, version int16) error {
	r := newReader(src, KeyReadMirrorStates, version)
	*m = ReadMirrorStatesRequest{MirrorName: r.str("mirror_name")}
	m.Topics = readEach(r, 3, "topics", func(t *ReadMirrorStatesTopic) {
		t.Name = r.str("name")
		t.Partitions = readEach(r, 5, "partitions", func(p *int32) { *p = r.int32("partition_index") })
	})
	r.skipTags()
	return r.done()
}

// Key returns the API key.
func (*ReadMirrorStatesResponse) Key() int16 { return KeyReadMirrorStates }

// AppendTo appends the response's body.
func (m *ReadMirrorStatesResponse) AppendTo(dst []byte, _ int16) []byte {
	return appendNoTags(appendStatesTopics(m.appendTo(dst), m.Topics, true), true)
}

// DecodeFrom decodes a response's body. Errors: *DecodeError.
func (m *ReadMirrorStatesResponse) DecodeFrom(src []byte, version int16) error {
	r := newReader(src, KeyReadMirrorStates, version)
	*m = ReadMirrorStatesResponse{MirrorResult: r.mirrorResult(), Topics: r.statesTopics(true)}
	r.skipTags()
	return r.done()
}

// appendStatesTopics appends states; codes says that each has an error code.
func appendStatesTopics(dst []byte, topics []MirrorStatesTopic, codes bool) []byte {
	dst = appendArrayLen(dst, len(topics), true)
	for i := range topics {
		t := &topics[i]
		dst = appendString(dst, t.Name, true)
		dst = appendArrayLen(dst, len(t.Partitions), true)
		for _, p := range t.Partitions {
			dst = appendInt32(dst, p.PartitionIndex)
			dst = appendInt32(dst, p.LastMirrorEpoch)
			dst = appendInt8(dst, p.State)
			if codes {
				dst = appendInt16(dst, p.ErrorCode)
			}
			if p.LastMirroredEnd == -1 {
				dst = appendNoTags(dst, true)
				continue
			}
			dst = appendInt64(appendTagHead(appendUvarint(dst, 1), 0, 8), p.LastMirroredEnd)
		}
		dst = appendNoTags(dst, true)
	}
	return dst
}

func (r *reader) statesTopics(codes bool) []MirrorStatesTopic {
	topics := make([]MirrorStatesTopic, r.array(3, "topics"))
	for i := range topics {
		t := &topics[i]
		t.Name = r.str("name")
		t.Partitions = make([]MirrorPartitionState, r.array(10, "partitions"))
		for j := range t.Partitions {
			p := &t.Partitions[j]
			p.PartitionIndex = r.int32("partition_index")
			p.LastMirrorEpoch = r.int32("last_mirror_epoch")
			p.State = r.int8("state")
			if codes {
				p.ErrorCode = r.int16("error_code")
			}
			p.LastMirroredEnd = -1
			for n := r.tagCount("tagged fields"); n > 0 && r.err == nil; n-- {
				tag, whole := r.openTag()
				if tag == 0 {
					p.LastMirroredEnd = r.int64("last_mirrored_end")
				} else {
					r.skipTag()
				}
				r.closeTag(whole)
			}
		}
		r.skipTags()
	}
	return topics
}

// Key returns the API key.
func (*WriteMirrorStatesRequest) Key() int16 { return KeyWriteMirrorStates }

// AppendTo appends the request's body.
func (m *WriteMirrorStatesRequest) AppendTo(dst []byte, _ int16) []byte {
	dst = appendStatesTopics(appendString(dst, m.MirrorName, true), m.Topics, false)
	return appendNoTags(appendStrings(dst, m.StoppedTopics, true), true)
}

// DecodeFrom decodes a request's body. Errors: *DecodeError.
func (m *WriteMirrorStatesRequest) DecodeFrom(src []byte, version int16) error {
	r := newReader(src, KeyWriteMirrorStates, version)
	*m = WriteMirrorStatesRequest{
		MirrorName: r.str("mirror_name"), Topics: r.statesTopics(false), StoppedTopics: r.strs("stopped_topics"),
	}
	r.skipTags()
	return r.done()
}

// Key returns the API key.
func (*WriteMirrorStatesResponse) Key() int16 { return KeyWriteMirrorStates }

// AppendTo appends the response's body.
func (m *WriteMirrorStatesResponse) AppendTo(dst []byte, _ int16) []byte {
	return appendNoTags(appendPartitionsResults(m.appendTo(dst), m.Topics), true)
}

// DecodeFrom decodes a response's body. Errors: *DecodeError.
func (m *WriteMirrorStatesResponse) DecodeFrom(src []byte, version int16) error {
	r := newReader(src, KeyWriteMirrorStates, version)
	*m = WriteMirrorStatesResponse{MirrorResult: r.mirrorResult(), Topics: r.partitionsResults()}
	r.skipTags()
	return r.done()
}

func appendPartitionsResults(dst []byte, topics []MirrorPartitionsResult) []byte {
	return appendEach(dst, topics, true, func(dst []byte, t *MirrorPartitionsResult) []byte {
		dst = appendString(dst, t.Name, true)
		return appendEach(dst, t.Partitions, true, func(dst []byte, p *MirrorPartitionResult) []byte {
			return appendInt16(appendInt32(dst, p.PartitionIndex), p.ErrorCode)
		})
	})
}

func (r *reader) partitionsResults() []MirrorPartitionsResult {
	return readEach(r, 3, "topics", func(t *MirrorPartitionsResult) {
		t.Name = r.str("name")
		t.Partitions = readEach(r, 7, "partitions", func(p *MirrorPartitionResult) {
			p.PartitionIndex = r.int32("partition_index")
			p.ErrorCode = r.int16("error_code")
		})
	})
}

// Key returns the API key.
func (*BumpLeaderEpochsRequest) Key() int16 { return KeyBumpLeaderEpochs }

// AppendTo appends the request's body.
func (m *BumpLeaderEpochsRequest) AppendTo(dst []byte, _ int16) []byte {
	dst = appendEach(dst, m.Topics, true, func(dst []byte, t *BumpLeaderEpochsTopic) []byte {
		dst = append(dst, t.TopicID[:]...)
		return appendEach(dst, t.Partitions, true, func(dst []byte, p *BumpLeaderEpoch) []byte {
			return appendInt32(appendInt32(dst, p.PartitionIndex), p.MinLeaderEpoch)
		})
	})
	return appendNoTags(dst, true)
}

// DecodeFrom decodes a request's body. Errors: *DecodeError.
func (m *BumpLeaderEpochsRequest) DecodeFrom(src []byte, version int16) error {
	r := newReader(src, KeyBumpLeaderEpochs, version)
	m.Topics = readEach(r, 18, "topics", func(t *BumpLeaderEpochsTopic) {
		t.TopicID = r.uuid("topic_id")
		t.Partitions = readEach(r, 9, "partitions", func(p *BumpLeaderEpoch) {
			p.PartitionIndex = r.int32("partition_index")
			p.MinLeaderEpoch = r.int32("min_leader_epoch")
		})
	})
	r.skipTags()
	return r.done()
}

// Key returns the API key.
func (*BumpLeaderEpochsResponse) Key() int16 { return KeyBumpLeaderEpochs }

// AppendTo appends the response's body.
func (m *BumpLeaderEpochsResponse) AppendTo(dst []byte, _ int16) []byte {
	dst = appendInt32(dst, m.ThrottleMs)
	dst = appendInt16(dst, m.ErrorCode)
	return appendNoTags(appendPartitionsResults(dst, m.Topics), true)
}

// DecodeFrom decodes a response's body. Errors: *DecodeError.
func (m *BumpLeaderEpochsResponse) DecodeFrom(src []byte, version int16) error {
	r := newReader(src, KeyBumpLeaderEpochs, version)
	*m = BumpLeaderEpochsResponse{
		ThrottleMs: r.int32("throttle_time_ms"), ErrorCode: r.int16("error_code"), Topics: r.partitionsResults(),
	}
	r.skipTags()
	return r.done()
}
