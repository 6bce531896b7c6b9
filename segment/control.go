package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Control records are the records of control batches. The key is int16 version 0, int16 type.
//
//	type  name               value
//	   0  ABORT              int16 version 0, int32 coordinatorEpoch
//	   1  COMMIT             the same
//	   2  LEADER_CHANGE      in __cluster_metadata and snapshots of it, like the next four
//	   3  SNAPSHOT_HEADER
//	   4  SNAPSHOT_FOOTER
//	   5  KRAFT_VERSION
//	   6  KRAFT_VOTERS
//	   7  MIRROR_PID_RESET   int16 version 0, compact string sourceClusterId, tagged fields
//
// Kafka: ControlRecordType, EndTransactionMarker. MIRROR_PID_RESET is KIP-1279's; brokers that do not know it accept it
// only without a producer id.

// ControlType is the type in the key of a control record.
type ControlType int16

// The types that a log of this project can hold.
const (
	ControlAbort          ControlType = 0
	ControlCommit         ControlType = 1
	ControlLeaderChange   ControlType = 2
	ControlSnapshotHeader ControlType = 3
	ControlSnapshotFooter ControlType = 4
	ControlKRaftVersion   ControlType = 5
	ControlKRaftVoters    ControlType = 6
	ControlMirrorPidReset ControlType = 7
)

// ErrCorruptControl says that a control record's key or value cannot be read.
var ErrCorruptControl = errors.New("corrupt control record")

// ParseControlKey reads the key of a control record. Kafka: ControlRecordType.parseTypeId.
func ParseControlKey(key []byte) (ControlType, error) {
	if len(key) < 4 {
		return 0, fmt.Errorf("%w: key of %d bytes", ErrCorruptControl, len(key))
	}
	if version := int16(binary.BigEndian.Uint16(key)); version < 0 {
		return 0, fmt.Errorf("%w: key version %d", ErrCorruptControl, version)
	}
	return ControlType(binary.BigEndian.Uint16(key[2:])), nil
}

// AppendControlKey appends a control record's key to dst.
func AppendControlKey(dst []byte, kind ControlType) []byte {
	dst = binary.BigEndian.AppendUint16(dst, 0)
	return binary.BigEndian.AppendUint16(dst, uint16(kind))
}

// ParseEndTxnMarker returns the coordinator epoch in the value of a COMMIT or ABORT. Higher versions are read as
// version 0 is. Kafka: EndTransactionMarker.deserializeValue.
func ParseEndTxnMarker(value []byte) (coordinatorEpoch int32, err error) {
	if len(value) < 6 {
		return 0, fmt.Errorf("%w: transaction marker of %d bytes", ErrCorruptControl, len(value))
	}
	if version := int16(binary.BigEndian.Uint16(value)); version < 0 {
		return 0, fmt.Errorf("%w: transaction marker version %d", ErrCorruptControl, version)
	}
	return int32(binary.BigEndian.Uint32(value[2:])), nil
}

// EndTxnMarker is a batch that ends one producer's transaction.
type EndTxnMarker struct {
	Offset           int64
	LeaderEpoch      int32
	TimestampMs      int64
	ProducerID       int64
	ProducerEpoch    int16
	CoordinatorEpoch int32
	Commit           bool // false: ABORT
}

// AppendTo appends the marker's batch of 78 bytes to dst. Kafka: MemoryRecords.writeEndTransactionalMarker.
func (m *EndTxnMarker) AppendTo(dst []byte) []byte {
	kind := ControlAbort
	if m.Commit {
		kind = ControlCommit
	}
	value := binary.BigEndian.AppendUint16(make([]byte, 0, 6), 0)
	value = binary.BigEndian.AppendUint32(value, uint32(m.CoordinatorEpoch))
	record := Record{Offset: m.Offset, TimestampMs: m.TimestampMs, Key: AppendControlKey(nil, kind), Value: value}
	return AppendBatch(dst, &BatchHeader{
		BaseOffset: m.Offset, LeaderEpoch: m.LeaderEpoch, Attributes: attrControl | attrTransactional,
		BaseTimestampMs: m.TimestampMs, MaxTimestampMs: m.TimestampMs,
		ProducerID: m.ProducerID, ProducerEpoch: m.ProducerEpoch, BaseSequence: -1, RecordsCount: 1,
	}, AppendRecord(nil, m.Offset, m.TimestampMs, &record))
}

// MirrorPidReset is a batch that makes everybody forget the producers before it: they were the source's, and the new
// cluster hands out the same ids. KIP-1279: MirrorPidResetRecord.
type MirrorPidReset struct {
	Offset          int64
	LeaderEpoch     int32
	TimestampMs     int64
	SourceClusterID string
}

// AppendTo appends the reset's batch to dst. It has no producer id: stock brokers cannot load one that does.
func (m *MirrorPidReset) AppendTo(dst []byte) []byte {
	value := binary.BigEndian.AppendUint16(nil, 0)
	value = binary.AppendUvarint(value, uint64(len(m.SourceClusterID))+1)
	value = append(value, m.SourceClusterID...)
	value = binary.AppendUvarint(value, 0)
	record := Record{
		Offset: m.Offset, TimestampMs: m.TimestampMs, Key: AppendControlKey(nil, ControlMirrorPidReset), Value: value,
	}
	return AppendBatch(dst, &BatchHeader{
		BaseOffset: m.Offset, LeaderEpoch: m.LeaderEpoch, Attributes: attrControl,
		BaseTimestampMs: m.TimestampMs, MaxTimestampMs: m.TimestampMs,
		ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, RecordsCount: 1,
	}, AppendRecord(nil, m.Offset, m.TimestampMs, &record))
}

// ParseMirrorPidReset returns the source cluster's id in the value of a MIRROR_PID_RESET. Tagged fields are skipped.
func ParseMirrorPidReset(value []byte) (sourceClusterID string, err error) {
	if len(value) < 2 || int16(binary.BigEndian.Uint16(value)) < 0 {
		return "", fmt.Errorf("%w: reset of %d bytes without a version", ErrCorruptControl, len(value))
	}
	b := value[2:]
	length, n := binary.Uvarint(b)
	if n <= 0 || length == 0 || length-1 > uint64(len(b)-n) {
		return "", fmt.Errorf("%w: source cluster id does not fit %d bytes", ErrCorruptControl, len(b))
	}
	id := string(b[n : n+int(length-1)])
	return id, skipTaggedFields(b[n+int(length-1):])
}

func skipTaggedFields(b []byte) error {
	count, n := binary.Uvarint(b)
	if n <= 0 || count > uint64(len(b)) {
		return fmt.Errorf("%w: number of tagged fields", ErrCorruptControl)
	}
	b = b[n:]
	for range count {
		_, n := binary.Uvarint(b) // tag
		if n <= 0 {
			return fmt.Errorf("%w: tag of a tagged field", ErrCorruptControl)
		}
		size, m := binary.Uvarint(b[n:])
		if m <= 0 || size > uint64(len(b)-n-m) {
			return fmt.Errorf("%w: size of a tagged field", ErrCorruptControl)
		}
		b = b[n+m+int(size):]
	}
	if len(b) > 0 {
		return fmt.Errorf("%w: %d bytes behind the tagged fields", ErrCorruptControl, len(b))
	}
	return nil
}

// BatchHeader is what AppendBatch writes in front of records. The names and units are those of a Batch's methods.
type BatchHeader struct {
	BaseOffset      int64
	LeaderEpoch     int32
	Attributes      int16
	LastOffsetDelta int32
	BaseTimestampMs int64
	MaxTimestampMs  int64
	ProducerID      int64 // -1: none
	ProducerEpoch   int16 // -1: none
	BaseSequence    int32 // -1: none
	RecordsCount    int32
}

// AppendBatch appends a v2 batch to dst: header, CRC-32C, and records as they are (made by AppendRecord, or compressed
// as Attributes says). records stays the caller's. Kafka: DefaultRecordBatch.writeHeader.
func AppendBatch(dst []byte, h *BatchHeader, records []byte) []byte {
	start := len(dst)
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.BaseOffset))
	dst = binary.BigEndian.AppendUint32(dst, uint32(batchHeaderSize-lengthOverhead+len(records)))
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.LeaderEpoch))
	dst = append(dst, 2)
	dst = binary.BigEndian.AppendUint32(dst, 0)
	dst = binary.BigEndian.AppendUint16(dst, uint16(h.Attributes))
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.LastOffsetDelta))
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.BaseTimestampMs))
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.MaxTimestampMs))
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.ProducerID))
	dst = binary.BigEndian.AppendUint16(dst, uint16(h.ProducerEpoch))
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.BaseSequence))
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.RecordsCount))
	dst = append(dst, records...)
	crc := crc32.Checksum(dst[start+attributesPos:], castagnoli)
	binary.BigEndian.PutUint32(dst[start+crcPos:], crc)
	return dst
}
