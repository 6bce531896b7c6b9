package dumpcases

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"segmirror/segment"
)

const baseTimeMs = 1_700_000_000_000

// plain is a v2 batch of records with keys and values, from base on.
func plain(base int64, count int) []byte {
	h := segment.BatchHeader{
		BaseOffset: base, LastOffsetDelta: int32(count - 1), BaseTimestampMs: baseTimeMs, MaxTimestampMs: baseTimeMs,
		ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, RecordsCount: int32(count),
	}
	var records []byte
	for i := range count {
		records = segment.AppendRecord(records, base, baseTimeMs, &segment.Record{
			Offset: base + int64(i), TimestampMs: baseTimeMs, Key: []byte{'k', byte('0' + i)},
			Value: bytes.Repeat([]byte("v"), 40),
		})
	}
	return segment.AppendBatch(nil, &h, records)
}

// three is a log of three batches with records 0..2, 3..4 and 5.
func three() []byte {
	return append(append(plain(0, 3), plain(3, 2)...), plain(5, 1)...)
}

// single is a batch of one record, which may be a control record.
func single(offset int64, attributes int16, r segment.Record) []byte {
	r.Offset, r.TimestampMs = offset, baseTimeMs
	h := segment.BatchHeader{
		BaseOffset: offset, Attributes: attributes, BaseTimestampMs: baseTimeMs, MaxTimestampMs: baseTimeMs,
		ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, RecordsCount: 1,
	}
	return segment.AppendBatch(nil, &h, segment.AppendRecord(nil, offset, baseTimeMs, &r))
}

// many is one batch of many records.
func many(records []segment.Record) []byte {
	h := segment.BatchHeader{
		LastOffsetDelta: int32(len(records) - 1), BaseTimestampMs: baseTimeMs, MaxTimestampMs: baseTimeMs,
		ProducerID: 9, ProducerEpoch: 1, BaseSequence: 1<<31 - 3, RecordsCount: int32(len(records)),
	}
	var body []byte
	for i, r := range records {
		r.Offset, r.TimestampMs = int64(i), baseTimeMs
		body = segment.AppendRecord(body, 0, baseTimeMs, &r)
	}
	return segment.AppendBatch(nil, &h, body)
}

// resum sets the sum of a v2 batch right.
func resum(batch []byte) []byte {
	sum := crc32.Checksum(batch[21:], crc32.MakeTable(crc32.Castagnoli))
	binary.BigEndian.PutUint32(batch[17:], sum)
	return batch
}

// edited is a copy of a v2 batch with bytes changed and the sum set right.
func edited(batch []byte, edit func(b []byte)) []byte {
	b := append([]byte{}, batch...)
	edit(b)
	return resum(b)
}

// legacy is a v0 or v1 message. A nil key or value is null.
func legacy(offset int64, magic, attributes byte, key, value []byte) []byte {
	body := []byte{magic, attributes}
	if magic > 0 {
		body = binary.BigEndian.AppendUint64(body, uint64(baseTimeMs+offset))
	}
	for _, field := range [][]byte{key, value} {
		if field == nil {
			body = binary.BigEndian.AppendUint32(body, 0xffffffff)
			continue
		}
		body = binary.BigEndian.AppendUint32(body, uint32(len(field)))
		body = append(body, field...)
	}
	out := binary.BigEndian.AppendUint64(nil, uint64(offset))
	out = binary.BigEndian.AppendUint32(out, uint32(len(body)+4))
	out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(body))
	return append(out, body...)
}

// storedGzip is a gzip member that holds b in one stored block.
func storedGzip(b []byte) []byte {
	out := []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff, 1}
	out = binary.LittleEndian.AppendUint16(out, uint16(len(b)))
	out = binary.LittleEndian.AppendUint16(out, ^uint16(len(b)))
	out = append(out, b...)
	out = binary.LittleEndian.AppendUint32(out, crc32.ChecksumIEEE(b))
	return binary.LittleEndian.AppendUint32(out, uint32(len(b)))
}

// oldFormats is a log of v0 and v1 messages, wrappers with gaps, and a v2 batch.
func oldFormats() []byte {
	join := func(parts ...[]byte) (all []byte) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	k, v := []byte("k"), []byte("value")
	return join(
		legacy(0, 0, 0, k, v), legacy(1, 1, 0, nil, v), legacy(2, 1, 8, k, nil),
		legacy(11, 1, 1, nil, storedGzip(join(legacy(0, 1, 0, k, v), legacy(4, 1, 0, nil, nil), legacy(9, 1, 0, k, v)))),
		legacy(22, 0, 1, nil, storedGzip(join(legacy(20, 0, 0, k, v), legacy(22, 0, 0, nil, v)))),
		legacy(30, 1, 9, nil, storedGzip(join(legacy(0, 1, 0, k, v), legacy(1, 1, 0, k, v)))),
		plain(31, 2))
}
