package dump

import (
	"hash/crc32"

	"segmirror/segment"
)

// legacyMessage is a v0 or v1 message without the offset and size in front of it. Kafka: LegacyRecord.
//
//	pos size field
//	  0    4 crc         uint32  CRC-32 of 4..end
//	  4    1 magic       int8    0 or 1; inside a wrapper it may be anything
//	  5    1 attributes  int8    codec 0-2, timestampType 3 (v1)
//	  6    8 timestamp   int64   v1 only
//	       4 keySize     int32   below 0: null
//	         key
//	       4 valueSize   int32   below 0: null
//	         value
type legacyMessage struct {
	b []byte

	// Of the wrapper, where inner messages take their time from it.
	wrapped       bool
	wrapperTimeMs int64
	wrapperAppend bool
}

const (
	legacyMagicPos      = 4
	legacyAttributesPos = 5
	legacyTimestampPos  = 6
	legacyCodecMask     = 7
	legacyAppendTime    = 1 << 3
)

func (m *legacyMessage) magic() int8    { return int8(m.b[legacyMagicPos]) }
func (m *legacyMessage) codec() int8    { return int8(m.b[legacyAttributesPos] & legacyCodecMask) }
func (m *legacyMessage) crc() uint32    { return uint32(int32be(m.b)) }
func (m *legacyMessage) valid() bool    { return m.crc() == crc32.ChecksumIEEE(m.b[legacyMagicPos:]) }
func (m *legacyMessage) appended() bool { return m.b[legacyAttributesPos]&legacyAppendTime != 0 }

// timestampMs is -1 in magic 0.
func (m *legacyMessage) timestampMs() (int64, *Exception) {
	switch {
	case m.magic() == 0:
		return -1, nil
	case m.wrapped && m.wrapperAppend:
		return m.wrapperTimeMs, nil
	case len(m.b) < legacyTimestampPos+8:
		return 0, throwNoMessage(classIndexBounds)
	default:
		return int64be(m.b[legacyTimestampPos:]), nil
	}
}

func (m *legacyMessage) keySizePos() int {
	if m.magic() == 0 {
		return legacyHeaderV0
	}
	return legacyHeaderV1
}

func (m *legacyMessage) keySize() (int32, *Exception) { return m.sizeAt(int64(m.keySizePos())) }

// valueSizePos is where the value's size stands; a broken key size takes it anywhere.
func (m *legacyMessage) valueSizePos() (int64, *Exception) {
	keySize, thrown := m.keySize()
	return int64(int32(m.keySizePos()) + 4 + max(keySize, 0)), thrown
}

func (m *legacyMessage) valueSize() (int32, *Exception) {
	pos, thrown := m.valueSizePos()
	if thrown != nil {
		return 0, thrown
	}
	return m.sizeAt(pos)
}

// sizeAt reads a size at a position, as java.nio.ByteBuffer.getInt.
func (m *legacyMessage) sizeAt(pos int64) (int32, *Exception) {
	if pos < 0 || pos > int64(len(m.b))-4 {
		return 0, throwNoMessage(classIndexBounds)
	}
	return int32be(m.b[pos:]), nil
}

// delimited returns what stands behind a size, nil where that is below 0. Kafka: Utils.sizeDelimited.
func (m *legacyMessage) delimited(pos int64) ([]byte, *Exception) {
	size, thrown := m.sizeAt(pos)
	if thrown != nil || size < 0 {
		return nil, thrown
	}
	rest := m.b[pos+4:]
	if int64(size) > int64(len(rest)) {
		return nil, throwLimit(int(size), len(rest))
	}
	return rest[:size:size], nil
}

func (m *legacyMessage) key() ([]byte, *Exception) { return m.delimited(int64(m.keySizePos())) }

func (m *legacyMessage) value() ([]byte, *Exception) {
	pos, thrown := m.valueSizePos()
	if thrown != nil {
		return nil, thrown
	}
	return m.delimited(pos)
}

// legacyEntry is a message with its offset.
type legacyEntry struct {
	offset  int64
	message legacyMessage
}

// legacyRecords prints the messages of a v0 or v1 batch: itself, or what a compressed one wraps.
func (l *logDump) legacyRecords(full segment.Batch) *Exception {
	outer := legacyEntry{offset: full.BaseOffset(), message: legacyMessage{b: full[logOverhead:]}}
	line := recordLine{timestampType: timestampType(full)}
	if outer.message.codec() == segment.CodecNone {
		return l.legacyRecord(&line, &outer)
	}
	inner, thrown := unwrap(l.d.unpack, &outer)
	if thrown != nil {
		return thrown
	}
	for i := range inner {
		if inner[i].message.codec() != segment.CodecNone {
			return throwf(classInvalidRecord, "Inner messages must not be compressed")
		}
		if thrown := l.legacyRecord(&line, &inner[i]); thrown != nil {
			return thrown
		}
	}
	return nil
}

func (l *logDump) legacyRecord(line *recordLine, entry *legacyEntry) *Exception {
	l.offset(entry.offset)
	m := &entry.message
	rec := record{offset: entry.offset, sequence: -1, legacy: m}
	var thrown *Exception
	if !l.skipRecord {
		if rec.timestampMs, thrown = m.timestampMs(); thrown != nil {
			return thrown
		}
		if rec.keySize, thrown = m.keySize(); thrown != nil {
			return thrown
		}
		if rec.valueSize, thrown = m.valueSize(); thrown != nil {
			return thrown
		}
	}
	return l.record(line, &rec)
}

// load reads key and value of a v0 or v1 record, which may throw, when they are asked for.
func (rec *record) load() *Exception {
	if rec.legacy == nil {
		return nil
	}
	var thrown *Exception
	if rec.key, thrown = rec.legacy.key(); thrown != nil {
		return thrown
	}
	rec.value, thrown = rec.legacy.value()
	return thrown
}

// unwrap reads the messages inside a compressed one, with their absolute offsets.
//
// The offsets in magic 1 are relative: the wrapper's is that of the last message, unless it is 0, as some producers
// leave it. Those in magic 0 are absolute. Kafka: AbstractLegacyRecordBatch.DeepRecordsIterator.
func unwrap(d *segment.Decompressor, outer *legacyEntry) ([]legacyEntry, *Exception) {
	magic := outer.message.magic()
	codec := outer.message.codec()
	if codec == segment.CodecZstd {
		return nil, throwf(classInvalidRecord,
			"Invalid wrapper compressionType found in legacy deep record iterator %d", magic)
	}
	value, thrown := outer.message.value()
	if thrown != nil {
		return nil, thrown
	}
	if value == nil {
		return nil, throwf(classInvalidRecord, "Found invalid compressed record set with null value (magic = %d)", magic)
	}
	u := unpack(d, codec, magic, value)
	if u.thrown != nil {
		return nil, u.thrown
	}
	entries, thrown := innerEntries(u.plain, u.damage, outer)
	if thrown != nil || magic == 0 {
		return entries, thrown
	}
	base := int64(0)
	if last := entries[len(entries)-1].offset; outer.offset != 0 {
		if outer.offset < last {
			return nil, throwf(classInvalidRecord, "Found invalid wrapper offset in compressed v1 message set, wrapper offset "+
				"'%d' is less than the last inner message offset '%d' and it is not zero.", outer.offset, last)
		}
		base = outer.offset - last
	}
	for i := range entries {
		entries[i].offset += base
	}
	return entries, nil
}

func innerEntries(plain []byte, damage error, outer *legacyEntry) ([]legacyEntry, *Exception) {
	var entries []legacyEntry
	outerMs, thrown := outer.message.timestampMs()
	if thrown != nil {
		return nil, thrown
	}
	for {
		if len(plain) < logOverhead {
			break
		}
		size := int32be(plain[sizePos:])
		if size < minRecordSize {
			return nil, throwf(classCorruptRecord, "Record size is less than the minimum record overhead (%d)", minRecordSize)
		}
		if int64(size) > int64(len(plain)-logOverhead) {
			break
		}
		end := logOverhead + int(size)
		entry := legacyEntry{offset: int64be(plain), message: legacyMessage{b: plain[logOverhead:end:end]}}
		if entry.message.magic() == 1 {
			entry.message.wrapped, entry.message.wrapperTimeMs = true, outerMs
			entry.message.wrapperAppend = outer.message.magic() > 0 && outer.message.appended()
		}
		entries = append(entries, entry)
		plain = plain[end:]
	}
	if damage != nil {
		return nil, throwf(classKafka, "%s: %s", classIO, damage)
	}
	if len(entries) == 0 {
		return nil, throwf(classInvalidRecord, "Found invalid compressed record set with no inner records")
	}
	return entries, nil
}
