package psm

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// A snapshot file, big-endian. Kafka: message/ProducerSnapshot.json, version 1. Checked against Kafka's bytes by
// TestSnapshot_KafkaBytes.
//
//	pos size field
//	  0    2 version  int16   1
//	  2    4 crc      uint32  CRC-32C of 6..end
//	  6    4 count    int32
//	 10      entries of 46 bytes:
//	  0    8 producerId             int64
//	  8    2 producerEpoch          int16   -1 = unknown
//	 10    4 lastSequence           int32   -1 = none
//	 14    8 lastOffset             int64   -1 = none
//	 22    4 offsetDelta            int32   0 where there is no batch
//	 26    8 timestamp              int64   ms
//	 34    4 coordinatorEpoch       int32   -1 = none
//	 38    8 currentTxnFirstOffset  int64   -1 = none
const (
	snapshotVersionPos = 0
	snapshotCRCPos     = 2
	snapshotCountPos   = 6
	snapshotHeaderSize = 10

	entryProducerIDPos       = 0
	entryProducerEpochPos    = 8
	entryLastSequencePos     = 10
	entryLastOffsetPos       = 14
	entryOffsetDeltaPos      = 22
	entryTimestampPos        = 26
	entryCoordinatorEpochPos = 34
	entryTxnFirstOffsetPos   = 38
	entrySize                = 46

	snapshotVersion = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendSnapshot appends the snapshot file of entries, in the order given, to dst.
// Kafka: ProducerStateManager.writeSnapshot.
func AppendSnapshot(dst []byte, entries []Entry) []byte {
	start := len(dst)
	dst = binary.BigEndian.AppendUint16(dst, snapshotVersion)
	dst = binary.BigEndian.AppendUint32(dst, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(entries)))
	for i := range entries {
		e := &entries[i]
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.ProducerID))
		dst = binary.BigEndian.AppendUint16(dst, uint16(e.ProducerEpoch))
		dst = binary.BigEndian.AppendUint32(dst, uint32(e.LastSequence))
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.LastOffset))
		dst = binary.BigEndian.AppendUint32(dst, uint32(e.OffsetDelta))
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.TimestampMs))
		dst = binary.BigEndian.AppendUint32(dst, uint32(e.CoordinatorEpoch))
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.CurrentTxnFirstOffset))
	}
	crc := crc32.Checksum(dst[start+snapshotCountPos:], castagnoli)
	binary.BigEndian.PutUint32(dst[start+snapshotCRCPos:], crc)
	return dst
}

// DecodeSnapshot reads a whole snapshot file. The entries are in file order and the caller's.
//
// ErrCorruptSnapshot names the reason: too short, version, CRC, or a count that is not what the bytes hold.
// What is allocated is bounded by len(b). Kafka: ProducerStateManager.readSnapshot.
func DecodeSnapshot(b []byte) ([]Entry, error) {
	if len(b) < snapshotHeaderSize {
		return nil, fmt.Errorf("%d bytes, fewer than the header's %d: %w", len(b), snapshotHeaderSize, ErrCorruptSnapshot)
	}
	if version := int16(binary.BigEndian.Uint16(b[snapshotVersionPos:])); version != snapshotVersion {
		return nil, fmt.Errorf("version %d: %w", version, ErrCorruptSnapshot)
	}
	stored := binary.BigEndian.Uint32(b[snapshotCRCPos:])
	if computed := crc32.Checksum(b[snapshotCountPos:], castagnoli); stored != computed {
		return nil, fmt.Errorf("stored CRC %08x, computed %08x: %w", stored, computed, ErrCorruptSnapshot)
	}
	count := int64(int32(binary.BigEndian.Uint32(b[snapshotCountPos:])))
	body := b[snapshotHeaderSize:]
	if count < 0 || count*entrySize != int64(len(body)) {
		return nil, fmt.Errorf("%d entries stated, %d bytes of them: %w", count, len(body), ErrCorruptSnapshot)
	}
	entries := make([]Entry, count)
	for i := range entries {
		p := body[i*entrySize : (i+1)*entrySize]
		entries[i] = Entry{
			ProducerID:            int64(binary.BigEndian.Uint64(p[entryProducerIDPos:])),
			ProducerEpoch:         int16(binary.BigEndian.Uint16(p[entryProducerEpochPos:])),
			LastSequence:          int32(binary.BigEndian.Uint32(p[entryLastSequencePos:])),
			LastOffset:            int64(binary.BigEndian.Uint64(p[entryLastOffsetPos:])),
			OffsetDelta:           int32(binary.BigEndian.Uint32(p[entryOffsetDeltaPos:])),
			TimestampMs:           int64(binary.BigEndian.Uint64(p[entryTimestampPos:])),
			CoordinatorEpoch:      int32(binary.BigEndian.Uint32(p[entryCoordinatorEpochPos:])),
			CurrentTxnFirstOffset: int64(binary.BigEndian.Uint64(p[entryTxnFirstOffsetPos:])),
		}
	}
	return entries, nil
}
