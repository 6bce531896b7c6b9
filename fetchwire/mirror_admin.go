package fetchwire

// The requests of Cluster Mirroring's administration, all of version 0 and flexible. KIP-1279; the tagged fields are
// this project's own.

// CreateMirrorRequest makes a mirror.
type CreateMirrorRequest struct {
	MirrorName string
	Config     []MirrorConfig
}

// MirrorConfig is one key of a mirror's configuration.
type MirrorConfig struct {
	Name  string
	Value *string
}

// StartMirrorTopicsRequest starts topics, and patterns that go on finding topics.
type StartMirrorTopicsRequest struct {
	MirrorName      string
	Topics          []StartMirrorTopic
	IncludePatterns []string
	ExcludePatterns []string
}

// StartMirrorTopic is a topic to start, as its source has it.
type StartMirrorTopic struct {
	TopicID       [16]byte // zero = not known
	TopicName     string
	NumPartitions int32
}

// StopMirrorTopicsRequest stops topics and patterns.
type StopMirrorTopicsRequest struct {
	MirrorName string
	Topics     []MirrorTopic
	Patterns   []string
}

// MirrorTopic names a topic of a mirror.
type MirrorTopic struct {
	TopicID   [16]byte // zero = not known
	TopicName string
}

// PauseMirrorTopicsRequest pauses topics.
type PauseMirrorTopicsRequest struct {
	MirrorName string
	Topics     []MirrorTopic
}

// ResumeMirrorTopicsRequest goes on with paused topics.
type ResumeMirrorTopicsRequest struct {
	MirrorName string
	Topics     []MirrorTopic
}

// DeleteMirrorRequest deletes a mirror that has no topics, or stopped ones only.
type DeleteMirrorRequest struct{ MirrorName string }

// ListMirrorsRequest asks for all mirrors.
type ListMirrorsRequest struct{}

// DescribeMirrorsRequest asks for the partitions of mirrors.
type DescribeMirrorsRequest struct {
	MirrorNames          []string // empty = all; null is read as empty
	IncludeAuthorizedOps bool
}

// Key returns the API key.
func (*CreateMirrorRequest) Key() int16 { return KeyCreateMirror }

// AppendTo appends the request's body.
func (m *CreateMirrorRequest) AppendTo(dst []byte, _ int16) []byte {
	dst = appendString(dst, m.MirrorName, true)
	dst = appendEach(dst, m.Config, true, func(dst []byte, c *MirrorConfig) []byte {
		return appendNullableString(appendString(dst, c.Name, true), c.Value, true)
	})
	return appendNoTags(dst, true)
}

// DecodeFrom decodes a request's body. Errors: *DecodeError.
func (m *CreateMirrorRequest) DecodeFrom(src []byte, version int16) error {
	r := newReader(src, KeyCreateMirror, version)
	*m = CreateMirrorRequest{MirrorName: r.str("mirror_name")}
	m.Config = readEach(r, 3, "config", func(c *MirrorConfig) {
		c.Name = r.str("name")
		c.Value = r.nullableStr("value")
	})
	r.skipTags()
	return r.done()
}

// Key returns the API key.
func (*StartMirrorTopicsRequest) Key() int16 { return KeyStartMirrorTopics }

// AppendTo appends the request's body.
func (m *StartMirrorTopicsRequest) AppendTo(dst []byte, _ int16) []byte {
	dst = appendString(dst, m.MirrorName, true)
	dst = appendEach(dst, m.Topics, true, func(dst []byte, t *StartMirrorTopic) []byte {
		dst = append(dst, t.TopicID[:]...)
		return appendInt32(appendString(dst, t.TopicName, true), t.NumPartitions)
	})
	dst = appendStrings(dst, m.IncludePatterns, true)
	dst = appendStrings(dst, m.ExcludePatterns, true)
	return appendNoTags(dst, true)
}

// DecodeFrom decodes a request's body. Errors: *DecodeError.
func (m *StartMirrorTopicsRequest) DecodeFrom(src []byte, version int16) error {
	r := newReader(src, KeyStartMirrorTopics, version)
	*m = StartMirrorTopicsRequest{MirrorName: r.str("mirror_name")}
	m.Topics = readEach(r, 22, "topics", func(t *StartMirrorTopic) {
		t.TopicID = r.uuid("topic_id")
		t.TopicName = r.str("topic_name")
		t.NumPartitions = r.int32("num_partitions")
	})
	m.IncludePatterns = r.strs("include_patterns")
	m.ExcludePatterns = r.strs("exclude_patterns")
	r.skipTags()
	return r.done()
}

// Key returns the API key.
func (*StopMirrorTopicsRequest) Key() int16 { return KeyStopMirrorTopics }

// AppendTo appends the request's body.
func (m *StopMirrorTopicsRequest) AppendTo(dst []byte, _ int16) []byte {
	dst = appendMirrorTopics(appendString(dst, m.MirrorName, true), m.Topics)
	return appendNoTags(appendStrings(dst, m.Patterns, true), true)
}

// DecodeFrom decodes a request's body. Errors: *DecodeError.
func (m *StopMirrorTopicsRequest) DecodeFrom(src []byte, version int16) error {
	r := newReader(src, KeyStopMirrorTopics, version)
	*m = StopMirrorTopicsRequest{
		MirrorName: r.str("mirror_name"), Topics: r.mirrorTopics(), Patterns: r.strs("patterns"),
	}
	r.skipTags()
	return r.done()
}

func appendMirrorTopics(dst []byte, topics []MirrorTopic) []byte {
	return appendEach(dst, topics, true, func(dst []byte, t *MirrorTopic) []byte {
		return appendString(append(dst, t.TopicID[:]...), t.TopicName, true)
	})
}

func (r *reader) mirrorTopics() []MirrorTopic {
	return readEach(r, 18, "topics", func(t *MirrorTopic) {
		t.TopicID = r.uuid("topic_id")
		t.TopicName = r.str("topic_name")
	})
}

// Key returns the API key.
func (*PauseMirrorTopicsRequest) Key() int16 { return KeyPauseMirrorTopics }

// AppendTo appends the request's body.
func (m *PauseMirrorTopicsRequest) AppendTo(dst []byte, _ int16) []byte {
	return appendNoTags(appendMirrorTopics(appendString(dst, m.MirrorName, true), m.Topics), true)
}

// DecodeFrom decodes a request's body. Errors: *DecodeError.
func (m *PauseMirrorTopicsRequest) DecodeFrom(src []byte, version int16) error {
	r := newReader(src, KeyPauseMirrorTopics, version)
	*m = PauseMirrorTopicsRequest{MirrorName: r.str("mirror_name"), Topics: r.mirrorTopics()}
	r.skipTags()
	return r.done()
}

// Key returns the API key.
func (*ResumeMirrorTopicsRequest) Key() int16 { return KeyResumeMirrorTopics }

// AppendTo appends the request's body.
func (m *ResumeMirrorTopicsRequest) AppendTo(dst []byte, _ int16) []byte {
	return appendNoTags(appendMirrorTopics(appendString(dst, m.MirrorName, true), m.Topics), true)
}

// DecodeFrom decodes a request's body. Errors: *DecodeError.
func (m *ResumeMirrorTopicsRequest) DecodeFrom(src []byte, version int16) error {
	r := newReader(src, KeyResumeMirrorTopics, version)
	*m = ResumeMirrorTopicsRequest{MirrorName: r.str("mirror_name"), Topics: r.mirrorTopics()}
	r.skipTags()
	return r.done()
}

// Key returns the API key.
func (*DeleteMirrorRequest) Key() int16 { return KeyDeleteMirror }

// AppendTo appends the request's body.
func (m *DeleteMirrorRequest) AppendTo(dst []byte, _ int16) []byte {
	return appendNoTags(appendString(dst, m.MirrorName, true), true)
}

// DecodeFrom decodes a request's body. Errors: *DecodeError.
func (m *DeleteMirrorRequest) DecodeFrom(src []byte, version int16) error {
	r := newReader(src, KeyDeleteMirror, version)
	m.MirrorName = r.str("mirror_name")
	r.skipTags()
	return r.done()
}

// Key returns the API key.
func (*ListMirrorsRequest) Key() int16 { return KeyListMirrors }

// AppendTo appends the request's body.
func (*ListMirrorsRequest) AppendTo(dst []byte, _ int16) []byte { return appendNoTags(dst, true) }

// DecodeFrom decodes a request's body. Errors: *DecodeError.
func (*ListMirrorsRequest) DecodeFrom(src []byte, version int16) error {
	r := newReader(src, KeyListMirrors, version)
	r.skipTags()
	return r.done()
}

// Key returns the API key.
func (*DescribeMirrorsRequest) Key() int16 { return KeyDescribeMirrors }

// AppendTo appends the request's body.
func (m *DescribeMirrorsRequest) AppendTo(dst []byte, _ int16) []byte {
	dst = appendStrings(dst, m.MirrorNames, true)
	return appendNoTags(appendBool(dst, m.IncludeAuthorizedOps), true)
}

// DecodeFrom decodes a request's body. Errors: *DecodeError.
func (m *DescribeMirrorsRequest) DecodeFrom(src []byte, version int16) error {
	*m = DescribeMirrorsRequest{}
	r := newReader(src, KeyDescribeMirrors, version)
	if n := r.arrayLen(1, "mirror_names"); n > 0 {
		m.MirrorNames = make([]string, n)
	}
	for i := range m.MirrorNames {
		m.MirrorNames[i] = r.str("mirror_names")
	}
	m.IncludeAuthorizedOps = r.bool("include_authorized_operations")
	r.skipTags()
	return r.done()
}
