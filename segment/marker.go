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
	key, value, ok := firstRecord(b[batchHeaderSize:])
	if !ok || len(key) < controlKeySize || int16(binary.BigEndian.Uint16(key)) < 0 {
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

// firstRecord slices key and value out of the record at the start of b, without copying.
func firstRecord(b []byte) (key, value []byte, ok bool) {
	length, n := binary.Varint(b)
	if n <= 0 || length < 1 || length > int64(len(b)-n) {
		return nil, nil, false
	}
	b = b[n : n+int(length)]
	b = b[1:]     // attributes
	for range 2 { // timestampDelta, offsetDelta
		_, n = binary.Varint(b)
		if n <= 0 {
			return nil, nil, false
		}
		b = b[n:]
	}
	if key, b, ok = varBytes(b); !ok {
		return nil, nil, false
	}
	value, _, ok = varBytes(b)
	return key, value, ok
}

// varBytes takes a varint length and that many bytes; -1 is null.
func varBytes(b []byte) (field, rest []byte, ok bool) {
	length, n := binary.Varint(b)
	if n <= 0 || length < -1 || length > int64(len(b)-n) {
		return nil, nil, false
	}
	if length < 0 {
		return nil, b[n:], true
	}
	return b[n : n+int(length)], b[n+int(length):], true
}
