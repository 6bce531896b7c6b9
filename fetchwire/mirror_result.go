package fetchwire

// MirrorResult is how the responses of Cluster Mirroring begin.
type MirrorResult struct {
	ThrottleMs   int32
	ErrorCode    int16
	ErrorMessage *string
}

// Err returns the top-level code as KafkaError, nil for none.
func (m *MirrorResult) Err() error {
	if m.ErrorCode == CodeNone {
		return nil
	}
	return KafkaError{Code: m.ErrorCode, Message: deref(m.ErrorMessage)}
}

func (m *MirrorResult) appendTo(dst []byte) []byte {
	dst = appendInt32(dst, m.ThrottleMs)
	dst = appendInt16(dst, m.ErrorCode)
	return appendNullableString(dst, m.ErrorMessage, true)
}

func (r *reader) mirrorResult() MirrorResult {
	return MirrorResult{
		ThrottleMs: r.int32("throttle_time_ms"), ErrorCode: r.int16("error_code"),
		ErrorMessage: r.nullableStr("error_message"),
	}
}

// MirrorTopicsResult is what the responses to Start, Stop, Pause and Resume hold.
type MirrorTopicsResult struct {
	MirrorResult
	MirrorName string
	Topics     []MirrorTopicResult
}

// MirrorTopicResult is the answer for one topic.
type MirrorTopicResult struct {
	Name         string
	ErrorCode    int16
	ErrorMessage *string // tag 0, this project's own
}

func (m *MirrorTopicsResult) appendTo(dst []byte) []byte {
	dst = m.MirrorResult.appendTo(dst)
	dst = appendString(dst, m.MirrorName, true)
	dst = appendArrayLen(dst, len(m.Topics), true)
	for i := range m.Topics {
		t := &m.Topics[i]
		dst = appendString(dst, t.Name, true)
		dst = appendInt16(dst, t.ErrorCode)
		if t.ErrorMessage == nil {
			dst = appendNoTags(dst, true)
			continue
		}
		dst = appendTag(appendUvarint(dst, 1), 0, appendNullableString(nil, t.ErrorMessage, true))
	}
	return appendNoTags(dst, true)
}

func (m *MirrorTopicsResult) decode(src []byte, key, version int16) error {
	r := newReader(src, key, version)
	*m = MirrorTopicsResult{MirrorResult: r.mirrorResult(), MirrorName: r.str("mirror_name")}
	m.Topics = make([]MirrorTopicResult, r.array(4, "topics"))
	for i := range m.Topics {
		t := &m.Topics[i]
		t.Name = r.str("name")
		t.ErrorCode = r.int16("error_code")
		for n := r.tagCount("tagged fields"); n > 0 && r.err == nil; n-- {
			tag, whole := r.openTag()
			if tag == 0 {
				t.ErrorMessage = r.nullableStr("error_message")
			} else {
				r.skipTag()
			}
			r.closeTag(whole)
		}
	}
	r.skipTags()
	return r.done()
}

// StartMirrorTopicsResponse answers a StartMirrorTopicsRequest.
type StartMirrorTopicsResponse struct{ MirrorTopicsResult }

// StopMirrorTopicsResponse answers a StopMirrorTopicsRequest.
type StopMirrorTopicsResponse struct{ MirrorTopicsResult }

// PauseMirrorTopicsResponse answers a PauseMirrorTopicsRequest.
type PauseMirrorTopicsResponse struct{ MirrorTopicsResult }

// ResumeMirrorTopicsResponse answers a ResumeMirrorTopicsRequest.
type ResumeMirrorTopicsResponse struct{ MirrorTopicsResult }

// Key returns the API key.
func (*StartMirrorTopicsResponse) Key() int16 { return KeyStartMirrorTopics }

// AppendTo appends the response's body.
func (m *StartMirrorTopicsResponse) AppendTo(dst []byte, _ int16) []byte { return m.appendTo(dst) }

// DecodeFrom decodes a response's body. Errors: *DecodeError.
func (m *StartMirrorTopicsResponse) DecodeFrom(src []byte, version int16) error {
	return m.decode(src, KeyStartMirrorTopics, version)
}

// Key returns the API key.
func (*StopMirrorTopicsResponse) Key() int16 { return KeyStopMirrorTopics }

// AppendTo appends the response's body.
func (m *StopMirrorTopicsResponse) AppendTo(dst []byte, _ int16) []byte { return m.appendTo(dst) }

// DecodeFrom decodes a response's body. Errors: *DecodeError.
func (m *StopMirrorTopicsResponse) DecodeFrom(src []byte, version int16) error {
	return m.decode(src, KeyStopMirrorTopics, version)
}

// Key returns the API key.
func (*PauseMirrorTopicsResponse) Key() int16 { return KeyPauseMirrorTopics }

// AppendTo appends the response's body.
func (m *PauseMirrorTopicsResponse) AppendTo(dst []byte, _ int16) []byte { return m.appendTo(dst) }

// DecodeFrom decodes a response's body. Errors: *DecodeError.
func (m *PauseMirrorTopicsResponse) DecodeFrom(src []byte, version int16) error {
	return m.decode(src, KeyPauseMirrorTopics, version)
}

// Key returns the API key.
func (*ResumeMirrorTopicsResponse) Key() int16 { return KeyResumeMirrorTopics }

// AppendTo appends the response's body.
func (m *ResumeMirrorTopicsResponse) AppendTo(dst []byte, _ int16) []byte { return m.appendTo(dst) }

// DecodeFrom decodes a response's body. Errors: *DecodeError.
func (m *ResumeMirrorTopicsResponse) DecodeFrom(src []byte, version int16) error {
	return m.decode(src, KeyResumeMirrorTopics, version)
}

// CreateMirrorResponse answers a CreateMirrorRequest.
type CreateMirrorResponse struct{ MirrorResult }

// Key returns the API key.
func (*CreateMirrorResponse) Key() int16 { return KeyCreateMirror }

// AppendTo appends the response's body.
func (m *CreateMirrorResponse) AppendTo(dst []byte, _ int16) []byte {
	return appendNoTags(m.appendTo(dst), true)
}

// DecodeFrom decodes a response's body. Errors: *DecodeError.
func (m *CreateMirrorResponse) DecodeFrom(src []byte, version int16) error {
	r := newReader(src, KeyCreateMirror, version)
	m.MirrorResult = r.mirrorResult()
	r.skipTags()
	return r.done()
}

// DeleteMirrorResponse answers a DeleteMirrorRequest.
type DeleteMirrorResponse struct{ MirrorResult }

// Key returns the API key.
func (*DeleteMirrorResponse) Key() int16 { return KeyDeleteMirror }

// AppendTo appends the response's body.
func (m *DeleteMirrorResponse) AppendTo(dst []byte, _ int16) []byte {
	return appendNoTags(m.appendTo(dst), true)
}

// DecodeFrom decodes a response's body. Errors: *DecodeError.
func (m *DeleteMirrorResponse) DecodeFrom(src []byte, version int16) error {
	r := newReader(src, KeyDeleteMirror, version)
	m.MirrorResult = r.mirrorResult()
	r.skipTags()
	return r.done()
}
