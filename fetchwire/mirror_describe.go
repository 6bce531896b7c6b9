package fetchwire

// ListMirrorsResponse lists mirrors.
type ListMirrorsResponse struct {
	MirrorResult
	Mirrors []ListedMirror
}

// ListedMirror is one mirror.
type ListedMirror struct {
	MirrorName      string
	SourceBootstrap string
	SourceClusterID string // "" = not known
	TopicCount      int32
}

// Key returns the API key.
func (*ListMirrorsResponse) Key() int16 { return KeyListMirrors }

// AppendTo appends the response's body.
func (m *ListMirrorsResponse) AppendTo(dst []byte, _ int16) []byte {
	dst = m.appendTo(dst)
	dst = appendArrayLen(dst, len(m.Mirrors), true)
	for i := range m.Mirrors {
		l := &m.Mirrors[i]
		dst = appendString(dst, l.MirrorName, true)
		dst = appendString(dst, l.SourceBootstrap, true)
		dst = appendString(dst, l.SourceClusterID, true)
		dst = appendInt32(dst, l.TopicCount)
		dst = appendNoTags(dst, true)
	}
	return appendNoTags(dst, true)
}

// DecodeFrom decodes a response's body. Errors: *DecodeError.
func (m *ListMirrorsResponse) DecodeFrom(src []byte, version int16) error {
	r := newReader(src, KeyListMirrors, version)
	*m = ListMirrorsResponse{MirrorResult: r.mirrorResult()}
	m.Mirrors = make([]ListedMirror, r.array(8, "mirrors"))
	for i := range m.Mirrors {
		l := &m.Mirrors[i]
		l.MirrorName = r.str("mirror_name")
		l.SourceBootstrap = r.str("source_bootstrap")
		l.SourceClusterID = r.str("source_cluster_id")
		l.TopicCount = r.int32("topic_count")
		r.skipTags()
	}
	r.skipTags()
	return r.done()
}

// DescribeMirrorsResponse describes mirrors.
type DescribeMirrorsResponse struct {
	MirrorResult
	Mirrors []DescribedMirror
}

// DescribedMirror is one mirror: what the answering agent holds of it.
type DescribedMirror struct {
	ErrorCode     int16
	MirrorName    string
	AuthorizedOps int32 // NoAuthorizedOperations = not asked for
	Topics        []DescribedMirrorTopic
	// Replica is whether the agent is a replica, which follows the first agent of its cluster. Tag 0, present when true;
	// this project's own.
	Replica bool
}

// DescribedMirrorTopic is one topic of a mirror.
type DescribedMirrorTopic struct {
	TopicName  string
	Partitions []DescribedMirrorPartition
	// SourceChain is the ids of the clusters that the topic's records come through, the agent's own source first; empty
	// for a topic that nothing is mirrored into any more. Tag 0; this project's own.
	SourceChain []string
}

// DescribedMirrorPartition is one partition. Begin with NewDescribedMirrorPartition: zero means something in most
// fields.
type DescribedMirrorPartition struct {
	PartitionIndex    int32
	SourceOffset      int64 // the source leader's high watermark; -1 = not known
	DestinationOffset int64 // our log end; -1 = not known
	Lag               int64 // records; -1 = not known
	State             string
	LastMirrorEpoch   int32   // -1 = none
	LastMirroredEnd   int64   // tag 0; exclusive; -1 = none. This project's own, as what follows.
	Cause             *string // tag 1; why the partition is FAILED, and what resolves it
	Attempts          int32   // tag 2; tries since it failed
}

// NewDescribedMirrorPartition returns a partition of which nothing is known but its state.
func NewDescribedMirrorPartition(index int32, state string) DescribedMirrorPartition {
	return DescribedMirrorPartition{
		PartitionIndex: index, SourceOffset: -1, DestinationOffset: -1, Lag: -1, State: state,
		LastMirrorEpoch: -1, LastMirroredEnd: -1,
	}
}

// Key returns the API key.
func (*DescribeMirrorsResponse) Key() int16 { return KeyDescribeMirrors }

// AppendTo appends the response's body.
func (m *DescribeMirrorsResponse) AppendTo(dst []byte, _ int16) []byte {
	dst = m.appendTo(dst)
	dst = appendArrayLen(dst, len(m.Mirrors), true)
	for i := range m.Mirrors {
		d := &m.Mirrors[i]
		dst = appendInt16(dst, d.ErrorCode)
		dst = appendString(dst, d.MirrorName, true)
		dst = appendInt32(dst, d.AuthorizedOps)
		dst = appendArrayLen(dst, len(d.Topics), true)
		for j := range d.Topics {
			t := &d.Topics[j]
			dst = appendString(dst, t.TopicName, true)
			dst = appendArrayLen(dst, len(t.Partitions), true)
			for k := range t.Partitions {
				dst = t.Partitions[k].appendTo(dst)
			}
			if len(t.SourceChain) == 0 {
				dst = appendNoTags(dst, true)
				continue
			}
			chain := appendArrayLen(nil, len(t.SourceChain), true)
			for _, id := range t.SourceChain {
				chain = appendString(chain, id, true)
			}
			dst = appendTag(appendUvarint(dst, 1), 0, chain)
		}
		if d.Replica {
			dst = appendTag(appendUvarint(dst, 1), 0, nil)
		} else {
			dst = appendNoTags(dst, true)
		}
	}
	return appendNoTags(dst, true)
}

func (p *DescribedMirrorPartition) appendTo(dst []byte) []byte {
	dst = appendInt32(dst, p.PartitionIndex)
	dst = appendInt64(dst, p.SourceOffset)
	dst = appendInt64(dst, p.DestinationOffset)
	dst = appendInt64(dst, p.Lag)
	dst = appendString(dst, p.State, true)
	dst = appendInt32(dst, p.LastMirrorEpoch)
	n := uint32(0)
	for _, present := range [...]bool{p.LastMirroredEnd != -1, p.Cause != nil, p.Attempts != 0} {
		if present {
			n++
		}
	}
	dst = appendUvarint(dst, n)
	if p.LastMirroredEnd != -1 {
		dst = appendInt64(appendTagHead(dst, 0, 8), p.LastMirroredEnd)
	}
	if p.Cause != nil {
		dst = appendTag(dst, 1, appendNullableString(nil, p.Cause, true))
	}
	if p.Attempts != 0 {
		dst = appendInt32(appendTagHead(dst, 2, 4), p.Attempts)
	}
	return dst
}

// DecodeFrom decodes a response's body. Errors: *DecodeError.
func (m *DescribeMirrorsResponse) DecodeFrom(src []byte, version int16) error {
	r := newReader(src, KeyDescribeMirrors, version)
	*m = DescribeMirrorsResponse{MirrorResult: r.mirrorResult()}
	m.Mirrors = make([]DescribedMirror, r.array(9, "mirrors"))
	for i := range m.Mirrors {
		d := &m.Mirrors[i]
		d.ErrorCode = r.int16("error_code")
		d.MirrorName = r.str("mirror_name")
		d.AuthorizedOps = r.int32("authorized_operations")
		d.Topics = make([]DescribedMirrorTopic, r.array(3, "topics"))
		for j := range d.Topics {
			t := &d.Topics[j]
			t.TopicName = r.str("topic_name")
			t.Partitions = make([]DescribedMirrorPartition, r.array(34, "partitions"))
			for k := range t.Partitions {
				t.Partitions[k].decode(r)
			}
			t.decodeTags(r)
		}
		for n := r.tagCount("tagged fields"); n > 0 && r.err == nil; n-- {
			tag, whole := r.openTag()
			d.Replica = d.Replica || tag == 0
			if tag != 0 {
				r.skipTag()
			}
			r.closeTag(whole)
		}
	}
	r.skipTags()
	return r.done()
}

func (t *DescribedMirrorTopic) decodeTags(r *reader) {
	for n := r.tagCount("tagged fields"); n > 0 && r.err == nil; n-- {
		tag, whole := r.openTag()
		if tag == 0 {
			t.SourceChain = make([]string, r.array(1, "source_chain"))
			for i := range t.SourceChain {
				t.SourceChain[i] = r.str("source_chain")
			}
		} else {
			r.skipTag()
		}
		r.closeTag(whole)
	}
}

func (p *DescribedMirrorPartition) decode(r *reader) {
	*p = DescribedMirrorPartition{
		PartitionIndex: r.int32("partition_index"), SourceOffset: r.int64("source_offset"),
		DestinationOffset: r.int64("destination_offset"), Lag: r.int64("lag"), State: r.str("state"),
		LastMirrorEpoch: r.int32("last_mirror_epoch"), LastMirroredEnd: -1,
	}
	for n := r.tagCount("tagged fields"); n > 0 && r.err == nil; n-- {
		tag, whole := r.openTag()
		switch tag {
		case 0:
			p.LastMirroredEnd = r.int64("last_mirrored_end")
		case 1:
			p.Cause = r.nullableStr("cause")
		case 2:
			p.Attempts = r.int32("attempts")
		default:
			r.skipTag()
		}
		r.closeTag(whole)
	}
}
