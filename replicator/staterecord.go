package replicator

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"segmirror/segment"
)

// The record types of `__mirror_state`. A key is int16 type and the mirror's name as int16 length and bytes; a value
// is int16 version 0 and then the fields in Kafka's flexible encoding, big-endian.
//
//	type  key            value
//	   1  mirror         Topics[] { Name string, Partitions[] { PartitionIndex int32, LastMirrorEpoch int32,
//	                     tag 0: LastMirroredEnd int64 } }
//	   2  mirror         TopicName string, Partition int32, State int8,
//	                     tag 0: Cause int8, Attempts int32, Text string (FAILED only)
//	                     tag 1: SegmentBytes int32, SegmentMs int64, IndexIntervalBytes int32, SegmentIndexBytes int32
//	1200  mirror         TopicName string, Partition int32, From int64, To int64, AtMs int64
//	1201  mirror         SourceClusterId string, EpochPolicy int8
//
// 1 and 2 are Cluster Mirroring's, tags apart; 1200 and up are this agent's. A null value is a tombstone.
const (
	recordLastMirrorEpochs int16 = 1
	recordPartitionState   int16 = 2
	recordLostRange        int16 = 1200
	recordMirrorSource     int16 = 1201

	maxStateText = 4096 // bytes of a cause's text that are kept
)

// ErrStateRecord marks a record of the state log that cannot be read.
var ErrStateRecord = errors.New("unreadable mirror state record")

// StateRecord is one record of `__mirror_state`, decoded. Type says which of the fields are meant.
type StateRecord struct {
	Type      int16
	Mirror    string
	Tombstone bool

	Topic     string // types 2 and 1200
	Partition int32
	State     State // type 2
	Cause     Cause
	Attempts  int32
	Text      string
	Shape     logShape // zero = not stored
	Lost      LostSpan // type 1200

	SourceClusterID string // type 1201
	EpochPolicy     EpochPolicy

	Epochs []LastMirrorEpoch // type 1
}

// logShape is what of a source topic's configuration shapes the files of its copy: recovery, which comes before the
// source is asked, must rebuild what an append would have made.
type logShape struct {
	segmentBytes       int32
	segmentMs          int64
	indexIntervalBytes int32
	indexMaxBytes      int32
}

const logShapeSize = 4 + 8 + 4 + 4

func shapeOf(cfg *segment.Config) logShape {
	return logShape{cfg.SegmentBytes, cfg.SegmentMs, cfg.IndexIntervalBytes, cfg.IndexMaxBytes}
}

// or returns the shape with what it does not say taken from other.
func (s logShape) or(other logShape) logShape {
	return logShape{
		segmentBytes: cmp.Or(s.segmentBytes, other.segmentBytes), segmentMs: cmp.Or(s.segmentMs, other.segmentMs),
		indexIntervalBytes: cmp.Or(s.indexIntervalBytes, other.indexIntervalBytes),
		indexMaxBytes:      cmp.Or(s.indexMaxBytes, other.indexMaxBytes),
	}
}

// apply returns cfg in this shape; one that was not stored, or cannot work, changes nothing.
func (s logShape) apply(cfg segment.Config) segment.Config {
	shaped := cfg
	shaped.SegmentBytes, shaped.SegmentMs = s.segmentBytes, s.segmentMs
	shaped.IndexIntervalBytes, shaped.IndexMaxBytes = s.indexIntervalBytes, s.indexMaxBytes
	if s == (logShape{}) || shaped.Validate() != nil {
		return cfg
	}
	return shaped
}

// LostSpan is a lost range as stored: offsets [From, To) and when it was noticed, in ms since the epoch.
type LostSpan struct{ From, To, AtMs int64 }

// LastMirrorEpoch is the last mirror epoch of one partition, and the last mirrored end offset (-1 = not stored).
type LastMirrorEpoch struct {
	Topic     string
	Partition int32
	Epoch     int32
	EndOffset int64
}

// AppendKey appends the record's key.
func (r *StateRecord) AppendKey(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(r.Type))
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(r.Mirror)))
	return append(dst, r.Mirror...)
}

// AppendValue appends the record's value, nothing for a tombstone.
func (r *StateRecord) AppendValue(dst []byte) []byte {
	if r.Tombstone {
		return dst
	}
	dst = append(dst, 0, 0)
	switch r.Type {
	case recordLastMirrorEpochs:
		return r.appendEpochs(dst)
	case recordPartitionState:
		dst = appendCompact(dst, r.Topic)
		dst = binary.BigEndian.AppendUint32(dst, uint32(r.Partition))
		dst = append(dst, byte(r.State))
		return r.appendStateTags(dst)
	case recordLostRange:
		dst = appendCompact(dst, r.Topic)
		dst = binary.BigEndian.AppendUint32(dst, uint32(r.Partition))
		dst = binary.BigEndian.AppendUint64(dst, uint64(r.Lost.From))
		dst = binary.BigEndian.AppendUint64(dst, uint64(r.Lost.To))
		dst = binary.BigEndian.AppendUint64(dst, uint64(r.Lost.AtMs))
		return append(dst, 0)
	case recordMirrorSource:
		dst = appendCompact(dst, r.SourceClusterID)
		return append(dst, byte(r.EpochPolicy), 0)
	default:
		panic("BUG: state record of an unknown type")
	}
}

func (r *StateRecord) appendStateTags(dst []byte) []byte {
	failed, shaped := r.Cause != CauseNone, r.Shape != logShape{}
	tags := byte(0)
	for _, has := range []bool{failed, shaped} {
		if has {
			tags++
		}
	}
	dst = append(dst, tags)
	if failed {
		text := r.Text[:min(len(r.Text), maxStateText)]
		dst = append(dst, 0)
		dst = binary.AppendUvarint(dst, uint64(1+4+len(appendCompact(nil, text))))
		dst = append(dst, byte(r.Cause))
		dst = binary.BigEndian.AppendUint32(dst, uint32(r.Attempts))
		dst = appendCompact(dst, text)
	}
	if shaped {
		dst = append(dst, 1, logShapeSize)
		dst = binary.BigEndian.AppendUint32(dst, uint32(r.Shape.segmentBytes))
		dst = binary.BigEndian.AppendUint64(dst, uint64(r.Shape.segmentMs))
		dst = binary.BigEndian.AppendUint32(dst, uint32(r.Shape.indexIntervalBytes))
		dst = binary.BigEndian.AppendUint32(dst, uint32(r.Shape.indexMaxBytes))
	}
	return dst
}

func (r *StateRecord) appendEpochs(dst []byte) []byte {
	topics := groupByTopic(r.Epochs)
	dst = binary.AppendUvarint(dst, uint64(len(topics)+1))
	for _, group := range topics {
		dst = appendCompact(dst, group[0].Topic)
		dst = binary.AppendUvarint(dst, uint64(len(group)+1))
		for _, e := range group {
			dst = binary.BigEndian.AppendUint32(dst, uint32(e.Partition))
			dst = binary.BigEndian.AppendUint32(dst, uint32(e.Epoch))
			if e.EndOffset < 0 {
				dst = append(dst, 0)
				continue
			}
			dst = append(dst, 1, 0, 8)
			dst = binary.BigEndian.AppendUint64(dst, uint64(e.EndOffset))
		}
		dst = append(dst, 0)
	}
	return append(dst, 0)
}

// groupByTopic cuts epochs where the topic changes; the order stays.
func groupByTopic(epochs []LastMirrorEpoch) [][]LastMirrorEpoch {
	var groups [][]LastMirrorEpoch
	for i, e := range epochs {
		if i == 0 || epochs[i-1].Topic != e.Topic {
			groups = append(groups, epochs[i:i:len(epochs)])
		}
		last := &groups[len(groups)-1]
		*last = append(*last, e)
	}
	return groups
}

func appendCompact(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)+1))
	return append(dst, s...)
}

// DecodeStateRecord decodes a record of `__mirror_state`; a nil value is a tombstone. It keeps no part of key or
// value. Errors wrap ErrStateRecord: a type or version this program does not know, lengths that do not fit, bytes
// left over.
func DecodeStateRecord(key, value []byte) (StateRecord, error) {
	k := stateReader{b: key}
	r := StateRecord{Type: int16(k.uint16())}
	r.Mirror = string(k.take(int(k.uint16())))
	if err := k.end("key"); err != nil {
		return StateRecord{}, err
	}
	switch r.Type {
	case recordLastMirrorEpochs, recordPartitionState, recordLostRange, recordMirrorSource:
	default:
		return StateRecord{}, fmt.Errorf("%w: key type %d", ErrStateRecord, r.Type)
	}
	if value == nil {
		r.Tombstone = true
		return r, nil
	}
	v := stateReader{b: value}
	if version := v.uint16(); version != 0 && !v.bad {
		return StateRecord{}, fmt.Errorf("%w: type %d has version %d", ErrStateRecord, r.Type, version)
	}
	v.record(&r)
	return r, v.end("value")
}

// stateReader reads big-endian fields; after a short read every field is zero and end reports it.
type stateReader struct {
	b   []byte
	bad bool
}

func (s *stateReader) take(n int) []byte {
	if s.bad || n < 0 || n > len(s.b) {
		s.bad = true
		return nil
	}
	out := s.b[:n:n]
	s.b = s.b[n:]
	return out
}

func (s *stateReader) uint16() uint16 {
	if b := s.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (s *stateReader) int32() int32 {
	if b := s.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (s *stateReader) int64() int64 {
	if b := s.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (s *stateReader) int8() int8 {
	if b := s.take(1); b != nil {
		return int8(b[0])
	}
	return 0
}

// length reads an unsigned varint that counts bytes or elements, each at least one byte of what is left.
func (s *stateReader) length() int {
	n, size := binary.Uvarint(s.b)
	if s.bad || size <= 0 || n > uint64(len(s.b)) {
		s.bad = true
		return 0
	}
	s.b = s.b[size:]
	return int(n)
}

// compact reads a compact string, length plus one first; null is refused.
func (s *stateReader) compact() string {
	n := s.length()
	if n == 0 {
		s.bad = true
		return ""
	}
	return string(s.take(n - 1))
}

// tags reads a tagged section; uses[n] reads tag n, other tags are skipped.
func (s *stateReader) tags(uses ...func(*stateReader)) {
	last := -1
	for n := s.length(); n > 0 && !s.bad; n-- {
		tag, size := binary.Uvarint(s.b)
		if size <= 0 || tag > math.MaxInt32 || int(tag) <= last {
			s.bad = true
			return
		}
		last = int(tag)
		s.b = s.b[size:]
		field := stateReader{b: s.take(s.length())}
		if int(tag) < len(uses) {
			uses[tag](&field)
			s.bad = s.bad || field.bad || len(field.b) > 0
		}
	}
}

func (s *stateReader) end(what string) error {
	if s.bad {
		return fmt.Errorf("%w: %s is cut short or has a length that does not fit", ErrStateRecord, what)
	}
	if len(s.b) > 0 {
		return fmt.Errorf("%w: %d bytes behind the %s", ErrStateRecord, len(s.b), what)
	}
	return nil
}

func (s *stateReader) record(r *StateRecord) {
	switch r.Type {
	case recordLastMirrorEpochs:
		s.epochs(r)
	case recordPartitionState:
		r.Topic = s.compact()
		r.Partition = s.int32()
		r.State = State(s.int8())
		s.tags(func(f *stateReader) {
			r.Cause = Cause(f.int8())
			r.Attempts = f.int32()
			r.Text = f.compact()
		}, func(f *stateReader) {
			r.Shape = logShape{f.int32(), f.int64(), f.int32(), f.int32()}
		})
	case recordLostRange:
		r.Topic = s.compact()
		r.Partition = s.int32()
		r.Lost = LostSpan{From: s.int64(), To: s.int64(), AtMs: s.int64()}
		s.tags()
	case recordMirrorSource:
		r.SourceClusterID = s.compact()
		r.EpochPolicy = EpochPolicy(s.int8())
		s.tags()
	}
}

func (s *stateReader) epochs(r *StateRecord) {
	for topics := s.length(); topics > 1 && !s.bad; topics-- {
		topic := s.compact()
		for parts := s.length(); parts > 1 && !s.bad; parts-- {
			e := LastMirrorEpoch{Topic: topic, Partition: s.int32(), Epoch: s.int32(), EndOffset: -1}
			s.tags(func(f *stateReader) { e.EndOffset = f.int64() })
			r.Epochs = append(r.Epochs, e)
		}
		s.tags()
	}
	s.tags()
}
