package segment

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
)

// A v2 record batch, big-endian. Kafka: DefaultRecordBatch.
//
//	pos size field
//	  0    8 baseOffset            int64
//	  8    4 length                int32   bytes after this field
//	 12    4 partitionLeaderEpoch  int32   outside the CRC, so it may be stamped without a new sum
//	 16    1 magic                 int8    2
//	 17    4 crc                   uint32  CRC-32C of 21..end
//	 21    2 attributes            int16   codec 0-2, timestampType 3, transactional 4, control 5, deleteHorizon 6
//	 23    4 lastOffsetDelta       int32
//	 27    8 baseTimestamp         int64   ms
//	 35    8 maxTimestamp          int64   ms
//	 43    8 producerId            int64   -1 = none
//	 51    2 producerEpoch         int16
//	 53    4 baseSequence          int32
//	 57    4 recordsCount          int32
//	 61      records
const (
	baseOffsetPos      = 0
	lengthPos          = 8
	leaderEpochPos     = 12
	magicPos           = 16
	crcPos             = 17
	attributesPos      = 21
	lastOffsetDeltaPos = 23
	baseTimestampPos   = 27
	maxTimestampPos    = 35
	producerIDPos      = 43
	producerEpochPos   = 51
	baseSequencePos    = 53
	recordsCountPos    = 57
	batchHeaderSize    = 61

	lengthOverhead  = 12 // bytes before and in the length field, which it does not count
	batchPrefixSize = 17 // what all magics share; enough to walk a file
)

// A v0 or v1 message, which stands alone as a batch; a compressed wrapper's offset is its last inner one.
//
//	pos size field
//	  0    8 offset     int64
//	  8    4 length     int32
//	 12    4 crc        uint32  CRC-32 IEEE of 16..end
//	 16    1 magic      int8    0 or 1
//	 17    1 attributes int8    codec 0-2, timestampType 3 (v1)
//	 18    8 timestamp  int64   v1 only
const (
	legacyCRCPos        = 12
	legacyAttributesPos = 17
	legacyTimestampPos  = 18
	legacyMinLengthV0   = 14
	legacyMinLengthV1   = 22
)

const (
	attrCodecMask     = 0x07
	attrLogAppendTime = 0x08
	attrTransactional = 0x10
	attrControl       = 0x20
	attrDeleteHorizon = 0x40
)

// Batch is one whole batch of any magic, as it lies in a file or on the wire: a view, never a copy.
//
// Its methods read the header and may be called once the framing is known to be right (BatchIterator, or a Log).
type Batch []byte

// Magic is the format version: 2, or 0 and 1 for messages of old formats.
func (b Batch) Magic() int8 { return int8(b[magicPos]) }

// Size is the number of bytes of the whole batch.
func (b Batch) Size() int {
	return lengthOverhead + int(int32(binary.BigEndian.Uint32(b[lengthPos:])))
}

// BaseOffset is the first offset; of a v0 or v1 message the only one its header tells, the last.
func (b Batch) BaseOffset() int64 { return int64(binary.BigEndian.Uint64(b[baseOffsetPos:])) }

// LastOffset is the last offset the batch stands for, present or compacted away.
func (b Batch) LastOffset() int64 {
	if b.Magic() < 2 {
		return b.BaseOffset()
	}
	return b.BaseOffset() + int64(b.LastOffsetDelta())
}

// LastOffsetDelta is LastOffset minus BaseOffset, 0 for old formats.
func (b Batch) LastOffsetDelta() int32 {
	if b.Magic() < 2 {
		return 0
	}
	return int32(binary.BigEndian.Uint32(b[lastOffsetDeltaPos:]))
}

// LeaderEpoch is the partition leader's epoch, -1 when unknown and for old formats.
func (b Batch) LeaderEpoch() int32 {
	if b.Magic() < 2 {
		return -1
	}
	return int32(binary.BigEndian.Uint32(b[leaderEpochPos:]))
}

// CRC is the stored sum: CRC-32C in v2, CRC-32 IEEE before.
func (b Batch) CRC() uint32 {
	if b.Magic() < 2 {
		return binary.BigEndian.Uint32(b[legacyCRCPos:])
	}
	return binary.BigEndian.Uint32(b[crcPos:])
}

// Attributes is the attribute field; only its low byte has a meaning.
func (b Batch) Attributes() int16 {
	if b.Magic() < 2 {
		return int16(b[legacyAttributesPos])
	}
	return int16(binary.BigEndian.Uint16(b[attributesPos:]))
}

// Codec is the compression: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
func (b Batch) Codec() int8 { return int8(b.Attributes() & attrCodecMask) }

// LogAppendTime says that every record's time is MaxTimestampMs.
func (b Batch) LogAppendTime() bool { return b.Magic() > 0 && b.Attributes()&attrLogAppendTime != 0 }

// Transactional says that the batch belongs to a transaction.
func (b Batch) Transactional() bool { return b.Magic() >= 2 && b.Attributes()&attrTransactional != 0 }

// Control says that the batch holds control records.
func (b Batch) Control() bool { return b.Magic() >= 2 && b.Attributes()&attrControl != 0 }

// HasDeleteHorizon says that BaseTimestampMs holds the delete horizon.
func (b Batch) HasDeleteHorizon() bool {
	return b.Magic() >= 2 && b.Attributes()&attrDeleteHorizon != 0
}

// BaseTimestampMs is what record timestamps are relative to; -1 in old formats.
func (b Batch) BaseTimestampMs() int64 {
	if b.Magic() < 2 {
		return -1
	}
	return int64(binary.BigEndian.Uint64(b[baseTimestampPos:]))
}

// MaxTimestampMs is the largest record timestamp, -1 when there is none.
func (b Batch) MaxTimestampMs() int64 {
	switch b.Magic() {
	case 0:
		return -1
	case 1:
		return int64(binary.BigEndian.Uint64(b[legacyTimestampPos:]))
	default:
		return int64(binary.BigEndian.Uint64(b[maxTimestampPos:]))
	}
}

// ProducerID is -1 when there is none.
func (b Batch) ProducerID() int64 {
	if b.Magic() < 2 {
		return -1
	}
	return int64(binary.BigEndian.Uint64(b[producerIDPos:]))
}

// ProducerEpoch is -1 when there is none.
func (b Batch) ProducerEpoch() int16 {
	if b.Magic() < 2 {
		return -1
	}
	return int16(binary.BigEndian.Uint16(b[producerEpochPos:]))
}

// BaseSequence is the first record's sequence, -1 when there is none.
func (b Batch) BaseSequence() int32 {
	if b.Magic() < 2 {
		return -1
	}
	return int32(binary.BigEndian.Uint32(b[baseSequencePos:]))
}

// RecordsCount is the stored number of records: 1 for an old message, 0 for an emptied batch.
func (b Batch) RecordsCount() int32 {
	if b.Magic() < 2 {
		return 1
	}
	return int32(binary.BigEndian.Uint32(b[recordsCountPos:]))
}

// Records is what follows the v2 header: records, or one compressed blob of them. For old formats it is nil.
func (b Batch) Records() []byte {
	if b.Magic() < 2 {
		return nil
	}
	return b[batchHeaderSize:len(b):len(b)]
}

// ComputeCRC sums the bytes the stored CRC covers.
func (b Batch) ComputeCRC() uint32 {
	if b.Magic() < 2 {
		return crc32.ChecksumIEEE(b[magicPos:])
	}
	return crc32.Checksum(b[attributesPos:], castagnoli)
}

// castagnoli is the polynomial of v2 batches; a table, not state.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// stampEpoch sets the leader epoch in place; it lies outside the CRC.
func (b Batch) stampEpoch(epoch int32) { binary.BigEndian.PutUint32(b[leaderEpochPos:], uint32(epoch)) }

// frame reads the prefix at the start of b and returns the whole batch's size.
//
// errPartial means that b ends before the batch does, with the size when the prefix told it, else 0.
// limit is how many bytes could follow at most: a larger length is past the end, not partial.
func frame(b []byte) (size int64, err error) {
	if len(b) < batchPrefixSize {
		return 0, errPartial
	}
	length := int64(int32(binary.BigEndian.Uint32(b[lengthPos:])))
	least := int64(legacyMinLengthV0)
	switch magic := int8(b[magicPos]); {
	case magic == 0:
	case magic == 1:
		least = legacyMinLengthV1
	case magic == 2:
		least = batchHeaderSize - lengthOverhead
	case length < least: // a zeroed or torn prefix: the length says it better than the magic
	default:
		return 0, fmt.Errorf("%w: magic %d", ErrCorruptBatch, magic)
	}
	if length < least {
		return 0, fmt.Errorf("%w: length %d is below %d", ErrCorruptBatch, length, least)
	}
	if size = length + lengthOverhead; size > int64(len(b)) {
		return size, errPartial
	}
	return size, nil
}

// validate checks a framed batch's header fields and CRC. Records are not looked at.
func (b Batch) validate() error {
	if stored, sum := b.CRC(), b.ComputeCRC(); stored != sum {
		return fmt.Errorf("%w: CRC %08x, computed %08x", ErrCorruptBatch, stored, sum)
	}
	return b.validateHeader()
}

// validateHeader checks the header fields alone.
func (b Batch) validateHeader() error {
	base, delta := b.BaseOffset(), b.LastOffsetDelta()
	switch {
	case base < 0:
		return fmt.Errorf("%w: base offset %d", ErrCorruptBatch, base)
	case delta < 0:
		return fmt.Errorf("%w: lastOffsetDelta %d", ErrCorruptBatch, delta)
	case base > math.MaxInt64-1-int64(delta):
		return fmt.Errorf("%w: base offset %d with delta %d", ErrCorruptBatch, base, delta)
	case b.RecordsCount() < 0:
		return fmt.Errorf("%w: records count %d", ErrCorruptBatch, b.RecordsCount())
	}
	return nil
}
