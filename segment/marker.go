package segment

import (
	"encoding/binary"
	"fmt"

	"segmirror/psm"
)

const (
	controlKeySize      = 4 // int16 version, int16 type
	endTxnMarkerSize    = 6 // int16 version, int32 coordinator epoch
	controlTypeAbort    = 0
	controlTypeCommit   = 1
	controlTypePidReset = 7

	// maxControlKey bounds a control record's key, so that all of it that counts lies within headNeed bytes: append,
	// recovery and replay, which reads heads only, must understand a marker alike.
	maxControlKey = 128
)

// batchMeta is what append, recovery and checks keep of one batch's header.
type batchMeta struct {
	pos   int64 // byte position in its .log file
	size  int64
	epoch int32
	magic int8
	psm.Batch
}

// read fills m from b, a batch at pos. b may be cut behind the header, for a control batch behind its first record.
//
// ErrMalformedMarker is a control batch of a producer that no broker could read.
func (m *batchMeta) read(b Batch, pos int64) error {
	*m = batchMeta{
		pos: pos, size: int64(b.Size()), epoch: b.LeaderEpoch(), magic: b.Magic(),
		Batch: psm.Batch{
			BaseOffset: b.BaseOffset(), LastOffset: b.LastOffset(), LastOffsetDelta: b.LastOffsetDelta(),
			RecordsCount: b.RecordsCount(), ProducerID: b.ProducerID(), ProducerEpoch: b.ProducerEpoch(),
			BaseSequence: b.BaseSequence(), MaxTimestampMs: b.MaxTimestampMs(),
			Transactional: b.Transactional(), Control: b.Control(),
		},
	}
	if !m.Control || m.RecordsCount == 0 {
		return nil
	}
	marker, ok := readMarker(b)
	if !ok && m.ProducerID >= 0 {
		return fmt.Errorf("%w: producer %d", ErrMalformedMarker, m.ProducerID)
	}
	m.Marker = marker
	return nil
}

// readMarker reads the first control record; false when it cannot be parsed. Kafka: ControlRecordType.parse,
// EndTransactionMarker.deserialize.
func readMarker(b Batch) (psm.Marker, bool) {
	unknown := psm.Marker{Type: psm.MarkerUnknown}
	if b.Codec() != 0 || len(b) <= batchHeaderSize {
		return unknown, false
	}
	key, value, ok := firstRecord(b[batchHeaderSize:], int64(b.Size())-int64(len(b)))
	if !ok || len(key) < controlKeySize || len(key) > maxControlKey || int16(binary.BigEndian.Uint16(key)) < 0 {
		return unknown, false
	}
	switch binary.BigEndian.Uint16(key[2:]) {
	case controlTypePidReset:
		return psm.Marker{Type: psm.MarkerPidReset}, true
	case controlTypeAbort:
		unknown.Type = psm.MarkerAbort
	case controlTypeCommit:
		unknown.Type = psm.MarkerCommit
	default:
		return unknown, true
	}
	if len(value) < endTxnMarkerSize || int16(binary.BigEndian.Uint16(value)) < 0 {
		return psm.Marker{Type: psm.MarkerUnknown}, false
	}
	return psm.Marker{Type: unknown.Type, CoordinatorEpoch: int32(binary.BigEndian.Uint32(value[2:]))}, true
}

// firstRecord slices key and value out of the record at the start of b, without copying. Behind b the batch has more
// bytes, which are not at hand: the value may be cut there.
func firstRecord(b []byte, more int64) (key, value []byte, ok bool) {
	length, n := binary.Varint(b)
	if n <= 0 || length < 1 || length > int64(len(b)-n)+more {
		return nil, nil, false
	}
	b = b[n:]
	if length <= int64(len(b)) {
		b, more = b[:length], 0
	} else {
		more = length - int64(len(b))
	}
	if len(b) == 0 {
		return nil, nil, false
	}
	b = b[1:]     // attributes
	for range 2 { // timestampDelta, offsetDelta
		_, n = binary.Varint(b)
		if n <= 0 {
			return nil, nil, false
		}
		b = b[n:]
	}
	if key, b, ok = varBytes(b, 0); !ok {
		return nil, nil, false
	}
	value, _, ok = varBytes(b, more)
	return key, value, ok
}

// varBytes takes a varint length and that many bytes, or those of them that are there when more follow; -1 is null.
func varBytes(b []byte, more int64) (field, rest []byte, ok bool) {
	length, n := binary.Varint(b)
	if n <= 0 || length < -1 || length > int64(len(b)-n)+more {
		return nil, nil, false
	}
	if length < 0 {
		return nil, b[n:], true
	}
	end := n + int(min(length, int64(len(b)-n)))
	return b[n:end], b[end:], true
}
