package dump

import (
	"encoding/binary"
	"math"

	"segmirror/segment"
)

// record is one record as it is printed. key and value are nil where they are null.
type record struct {
	offset      int64
	timestampMs int64
	sequence    int32
	keySize     int32
	valueSize   int32
	key         []byte
	value       []byte
	headers     headerRange

	legacy *legacyMessage // of a v0 or v1 record
}

// headerRange are the keys of a record's headers: those of the reader's headerKeys between two indexes.
type headerRange struct{ from, to int }

// recordReader reads the records of v2 batches as Kafka does, up to the same record, with the same exception.
// Compressed batches are read whole before the first record is given out. Kafka: DefaultRecordBatch.iterator,
// DefaultRecord.
type recordReader struct {
	control    bool
	batch      segment.Batch
	count      int32
	read       int32
	plain      []byte
	rec        record
	headerKeys [][]byte

	compressed bool
	damage     error // why plain ends early
	all        []record
}

// compressed says whether a v2 batch has records that are compressed.
func compressed(full segment.Batch) bool {
	return len(full) >= batchOverhead && full.Codec() != segment.CodecNone && full.RecordsCount() != 0
}

// start begins with a batch. What holds its records must stay until the last one was used: the batch, or what was made
// of it where it is compressed.
func (r *recordReader) start(full segment.Batch, u unpacked) *Exception {
	if len(full) < batchOverhead {
		return throwNoMessage(classIndexBounds)
	}
	r.batch, r.control = full, full.Control()
	r.count, r.read = full.RecordsCount(), 0
	r.headerKeys, r.all, r.damage = r.headerKeys[:0], r.all[:0], nil
	r.compressed = compressed(full)
	switch {
	case r.count == 0:
		return nil
	case !r.compressed:
		r.plain = full.Records()
		return r.checkCount()
	case u.thrown != nil:
		return u.thrown
	}
	r.plain, r.damage = u.plain, u.damage
	if thrown := r.checkCount(); thrown != nil {
		return thrown
	}
	for r.read < r.count {
		thrown := r.one()
		if thrown != nil {
			return thrown
		}
		r.all = append(r.all, r.rec)
	}
	r.read = 0
	return nil
}

func (r *recordReader) checkCount() *Exception {
	if r.count < 0 {
		return throwf(classInvalidRecord, "Found invalid record count %d in magic v%d batch", r.count, r.batch.Magic())
	}
	return nil
}

// next returns the next record, valid until the call after it; nil at the end and with an exception.
func (r *recordReader) next() (*record, *Exception) {
	if r.read >= r.count {
		return nil, nil
	}
	if r.compressed {
		r.read++
		return &r.all[r.read-1], nil
	}
	r.headerKeys = r.headerKeys[:0]
	if thrown := r.one(); thrown != nil {
		return nil, thrown
	}
	return &r.rec, nil
}

// one reads a record into rec.
func (r *recordReader) one() *Exception {
	r.read++
	in := cursor{b: r.plain}
	if r.compressed {
		if thrown := r.oneOfStream(&in); thrown != nil {
			return thrown
		}
	} else if thrown := r.oneOfBuffer(&in); thrown != nil {
		return thrown
	}
	r.plain = in.b
	if r.read < r.count {
		return nil
	}
	if len(r.plain) > 0 {
		return throwf(classInvalidRecord, messageStillRemaining)
	}
	if r.damage != nil {
		return throwf(classKafka, "Error checking for remaining bytes after reading batch")
	}
	return nil
}

// oneOfBuffer reads a record of a batch that is not compressed. It may reach into the next one before that is
// noticed.
func (r *recordReader) oneOfBuffer(in *cursor) *Exception {
	size := in.varint()
	switch {
	case in.short:
		return throwf(classInvalidRecord, messageDeclaredSize)
	case in.illegal != nil:
		return in.illegal
	case int64(len(in.b)) < int64(size):
		return throwf(classInvalidRecord, "Invalid record size: expected %d bytes in record payload, "+
			"but instead the buffer has only %d remaining bytes.", size, len(in.b))
	}
	return r.body(in, size)
}

// oneOfStream reads a record of a compressed batch. Kafka copies it out first.
func (r *recordReader) oneOfStream(in *cursor) *Exception {
	size := in.varint()
	if (in.short || int64(len(in.b)) < int64(size)) && r.damage != nil {
		return throwf(classKafka, "Failed to decompress record stream")
	}
	switch {
	case in.short, in.illegal != nil, size < 0:
		return throwf(classInvalidRecord, messageDeclaredSize)
	case int64(len(in.b)) < int64(size):
		return throwf(classInvalidRecord, "Invalid record size: expected %d bytes in record payload, "+
			"but the record payload reached EOF.", size)
	}
	body := cursor{b: in.b[:size:size]}
	in.b = in.b[size:]
	return r.body(&body, size)
}

// body reads what follows a record's size.
func (r *recordReader) body(in *cursor, size int32) *Exception {
	start := len(in.b)
	b := r.batch
	rec := &r.rec
	in.byte() // attributes, of which none is in use
	rec.timestampMs = b.BaseTimestampMs() + in.varlong()
	if b.LogAppendTime() {
		rec.timestampMs = b.MaxTimestampMs()
	}
	delta := in.varint()
	rec.offset = b.BaseOffset() + int64(delta)
	rec.sequence = -1
	if base := b.BaseSequence(); base >= 0 {
		rec.sequence = addSequence(base, delta)
	}
	rec.key, rec.keySize = in.nullable()
	rec.value, rec.valueSize = in.nullable()
	headers := in.varint()
	switch {
	case in.failed():
		return throwf(classInvalidRecord, messageRecordStruct)
	case headers < 0:
		return throwf(classInvalidRecord, "Found invalid number of record headers %d", headers)
	case int64(headers) > int64(len(in.b)):
		return throwf(classInvalidRecord, "Found invalid number of record headers. %d is larger than the remaining size "+
			"of the buffer", headers)
	}
	if thrown := r.headers(in, headers); thrown != nil {
		return thrown
	}
	if used := start - len(in.b); used != int(size) {
		return throwf(classInvalidRecord, "Invalid record size: expected to read %d bytes in record payload, "+
			"but instead read %d", size, used)
	}
	return nil
}

func (r *recordReader) headers(in *cursor, count int32) *Exception {
	r.rec.headers.from = len(r.headerKeys)
	for range count {
		size := in.varint()
		if !in.failed() && size < 0 {
			return throwf(classInvalidRecord, "Invalid negative header key size %d", size)
		}
		key := in.take(size)
		in.nullable()
		if in.failed() {
			return throwf(classInvalidRecord, messageRecordStruct)
		}
		r.headerKeys = append(r.headerKeys, key)
	}
	r.rec.headers.to = len(r.headerKeys)
	return nil
}

// addSequence adds n to a sequence number, which wraps from 2^31-1 to 0. Kafka: DefaultRecordBatch.incrementSequence.
func addSequence(sequence, n int32) int32 {
	if sequence > math.MaxInt32-n {
		return n - (math.MaxInt32 - sequence) - 1
	}
	return sequence + n
}

// cursor reads off the front of b. After a failure everything read is zero.
type cursor struct {
	b       []byte
	short   bool       // b ended inside a field
	illegal *Exception // what is no field
}

func (c *cursor) failed() bool { return c.short || c.illegal != nil }

func (c *cursor) byte() byte {
	if len(c.b) == 0 || c.failed() {
		c.short = c.short || !c.failed()
		return 0
	}
	v := c.b[0]
	c.b = c.b[1:]
	return v
}

// unsigned reads a varint of at most five bytes; bits beyond the 32nd are lost. Kafka: ByteUtils.readUnsignedVarint.
func (c *cursor) unsigned() int32 {
	if len(c.b) > 0 && c.b[0] < 0x80 && !c.failed() {
		v := c.b[0]
		c.b = c.b[1:]
		return int32(v)
	}
	var v uint32
	for shift := 0; ; shift += 7 {
		b := c.byte()
		if c.failed() {
			return 0
		}
		if shift == 28 {
			// The last byte is not masked: Java shifts it with its sign.
			v |= uint32(int32(int8(b)) << 28)
			if b >= 0x80 {
				c.illegal = throwf(classIllegalArgument,
					"Varint is too long, the most significant bit in the 5th byte is set, converted value: %x", v)
				return 0
			}
			return int32(v)
		}
		v |= uint32(b&0x7f) << shift
		if b < 0x80 {
			return int32(v)
		}
	}
}

// varint reads a zig-zag varint of at most five bytes.
func (c *cursor) varint() int32 {
	v := uint32(c.unsigned())
	return int32(v>>1) ^ -int32(v&1)
}

// varlong reads a zig-zag varint of at most ten bytes. Kafka: ByteUtils.readVarlong.
func (c *cursor) varlong() int64 {
	var v uint64
	for shift := 0; ; shift += 7 {
		b := c.byte()
		switch {
		case c.failed():
			return 0
		case shift > 63:
			c.illegal = throwf(classIllegalArgument, "varlong")
			return 0
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return int64(v>>1) ^ -int64(v&1)
		}
	}
}

func (c *cursor) take(n int32) []byte {
	if c.failed() || int64(n) > int64(len(c.b)) {
		c.short = true
		return nil
	}
	v := c.b[:n:n]
	c.b = c.b[n:]
	return v
}

// nullable reads bytes behind their length; any negative length is null.
func (c *cursor) nullable() ([]byte, int32) {
	n := c.varint()
	if n < 0 || c.failed() {
		return nil, -1
	}
	v := c.take(n)
	if v == nil {
		v = []byte{}
	}
	return v, n
}

func int64be(b []byte) int64 { return int64(binary.BigEndian.Uint64(b)) }
func int32be(b []byte) int32 { return int32(binary.BigEndian.Uint32(b)) }
func int16be(b []byte) int16 { return int16(binary.BigEndian.Uint16(b)) }
