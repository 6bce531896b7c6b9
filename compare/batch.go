package compare

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Where the fields of a v2 batch header lie. All are big-endian.
//
//	pos size field
//	  0    8 baseOffset
//	  8    4 length                bytes after this field
//	 12    4 partitionLeaderEpoch  outside the CRC
//	 16    1 magic
//	 17    4 crc                   CRC-32C of 21..end
//	 21    2 attributes
//	 23    4 lastOffsetDelta
//	 27    8 baseTimestamp
//	 35    8 maxTimestamp
//	 43    8 producerId
//	 51    2 producerEpoch
//	 53    4 baseSequence
//	 57    4 recordsCount
//	 61      records
const (
	posLength          = 8
	posEpoch           = 12
	posMagic           = 16
	posCRC             = 17
	posAttributes      = 21
	posLastOffsetDelta = 23
	posBaseTimestamp   = 27
	posMaxTimestamp    = 35
	posProducerID      = 43
	posProducerEpoch   = 51
	posBaseSequence    = 53
	posRecordsCount    = 57
	headerSize         = 61

	// overhead is what a batch's size counts beyond its length field.
	overhead = 12
)

// fields names the header's parts in order, each from its position to the next one's.
var fields = []struct {
	pos  int
	name string
}{
	{0, "baseOffset"},
	{posLength, "length"},
	{posEpoch, "partitionLeaderEpoch"},
	{posMagic, "magic"},
	{posCRC, "crc"},
	{posAttributes, "attributes"},
	{posLastOffsetDelta, "lastOffsetDelta"},
	{posBaseTimestamp, "baseTimestamp"},
	{posMaxTimestamp, "maxTimestamp"},
	{posProducerID, "producerId"},
	{posProducerEpoch, "producerEpoch"},
	{posBaseSequence, "baseSequence"},
	{posRecordsCount, "recordsCount"},
	{headerSize, "records"},
}

// ErrBadBatch marks bytes that are not a whole, intact v2 batch.
var ErrBadBatch = errors.New("bad batch")

// Batch is one record batch with its header: the bytes as stored or fetched.
type Batch []byte

// BaseOffset returns the offset of the batch's first record.
func (b Batch) BaseOffset() int64 { return int64(binary.BigEndian.Uint64(b)) }

// LastOffset returns the offset of the batch's last record, inclusive.
func (b Batch) LastOffset() int64 {
	return b.BaseOffset() + int64(int32(binary.BigEndian.Uint32(b[posLastOffsetDelta:])))
}

// LeaderEpoch returns the leader epoch the batch was written under.
func (b Batch) LeaderEpoch() int32 { return int32(binary.BigEndian.Uint32(b[posEpoch:])) }

// RecordsCount returns the number of records the header states.
func (b Batch) RecordsCount() int32 { return int32(binary.BigEndian.Uint32(b[posRecordsCount:])) }

// Codec returns the compression codec: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
func (b Batch) Codec() int { return int(b[posAttributes+1] & 7) }

// Transactional tells whether the batch belongs to a transaction.
func (b Batch) Transactional() bool { return b[posAttributes+1]&0x10 != 0 }

// Control tells whether the batch holds control records, such as a transaction's marker.
func (b Batch) Control() bool { return b[posAttributes+1]&0x20 != 0 }

// batchSize returns the size in bytes of the batch that begins with head, of at least overhead bytes.
func batchSize(head []byte) int64 {
	return int64(int32(binary.BigEndian.Uint32(head[posLength:]))) + overhead
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// check returns an error wrapping ErrBadBatch unless b, of the size its header states, is intact.
func check(b Batch) error {
	switch {
	case len(b) < headerSize:
		return fmt.Errorf("%w: %d bytes are no header", ErrBadBatch, len(b))
	case b[posMagic] != 2:
		return fmt.Errorf("%w: magic %d", ErrBadBatch, b[posMagic])
	case b.BaseOffset() < 0:
		return fmt.Errorf("%w: base offset %d", ErrBadBatch, b.BaseOffset())
	case b.LastOffset() < b.BaseOffset():
		return fmt.Errorf("%w: last offset %d before its base offset %d", ErrBadBatch, b.LastOffset(), b.BaseOffset())
	}
	stated := binary.BigEndian.Uint32(b[posCRC:])
	if sum := crc32.Checksum(b[posAttributes:], castagnoli); sum != stated {
		return fmt.Errorf("%w: base offset %d: CRC %#08x, the header states %#08x", ErrBadBatch, b.BaseOffset(), sum, stated)
	}
	return nil
}

// firstDifference returns the name of the first field in which a and b differ and both values in hexadecimal, "" when
// they are equal. Of differing records it gives the position in the batch and a few bytes.
func firstDifference(a, b Batch, ignoreEpoch bool) (field, valueA, valueB string) {
	for i, f := range fields {
		end := headerSize
		if i+1 < len(fields) {
			end = fields[i+1].pos
		}
		if f.pos == headerSize || ignoreEpoch && f.pos == posEpoch {
			continue
		}
		if string(a[f.pos:end]) != string(b[f.pos:end]) {
			return f.name, fmt.Sprintf("%x", a[f.pos:end]), fmt.Sprintf("%x", b[f.pos:end])
		}
	}
	for i := headerSize; i < len(a); i++ {
		if a[i] != b[i] {
			end := min(i+8, len(a))
			return fmt.Sprintf("records, byte %d of the batch", i), fmt.Sprintf("%x", a[i:end]), fmt.Sprintf("%x", b[i:end])
		}
	}
	return "", "", ""
}
