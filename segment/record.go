package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// A record inside a v2 batch, after decompression. Varints are zig-zag LEB128. Kafka: DefaultRecord.
//
//	length          varint   bytes after this field
//	attributes      int8     0
//	timestampDelta  varlong
//	offsetDelta     varint
//	keyLength       varint   -1 = null
//	key
//	valueLength     varint   -1 = null
//	value
//	headersCount    varint
//	  each: keyLength varint, key (UTF-8), valueLength varint (-1 = null), value

// ErrCorruptRecord says that the records of a batch do not read: a length, a count, or compressed data that cannot be.
var ErrCorruptRecord = errors.New("corrupt record")

// Header is one header of a record. A nil Value is null, which is not the same as empty.
type Header struct {
	Key   string
	Value []byte
}

// Record is one record. A nil Key or Value is null, which is not the same as empty.
type Record struct {
	Attributes  int8
	Offset      int64
	TimestampMs int64
	Sequence    int32 // -1: none
	Key         []byte
	Value       []byte
	Headers     []Header // in the order and as often as they stand in the record
}

// RecordReader reads the records of one v2 batch. Kafka: DefaultRecordBatch.iterator.
type RecordReader struct {
	batch     Batch
	plain     []byte
	remaining int32
	err       error
	headers   []Header
}

// NewRecordReader reads the records of b, a v2 batch, from plain: b.Records() where the codec is 0, else what
// Decompressor makes of it. Both stay the caller's and must not change while records of them are in use.
func NewRecordReader(b Batch, plain []byte) *RecordReader {
	return &RecordReader{batch: b, plain: plain, remaining: b.RecordsCount()}
}

// Next returns the next record, and false at the end or after an error. Key, Value and header values are slices of
// plain; Headers is valid until the next call.
func (r *RecordReader) Next() (Record, bool) {
	if r.err != nil || r.remaining <= 0 {
		if r.err == nil && len(r.plain) > 0 {
			r.err = fmt.Errorf("%w: %d bytes behind the last of %d records",
				ErrCorruptRecord, len(r.plain), r.batch.RecordsCount())
			r.plain = nil
		}
		return Record{}, false
	}
	if len(r.plain) == 0 {
		r.err = fmt.Errorf("%w: %d of %d records are missing", ErrCorruptRecord, r.remaining, r.batch.RecordsCount())
		return Record{}, false
	}
	f := fields{b: r.plain}
	body := f.take(f.varint(), "record")
	rec := r.decode(body)
	if f.err != nil {
		r.err = f.err
	}
	if r.err != nil {
		return Record{}, false
	}
	r.plain = f.b
	r.remaining--
	return rec, true
}

// Err returns why Next ended before the batch's last record, nil where it did not.
func (r *RecordReader) Err() error { return r.err }

func (r *RecordReader) decode(body []byte) Record {
	f := fields{b: body}
	rec := Record{Attributes: int8(f.byte()), Sequence: -1}
	timestampDelta := f.varlong()
	offsetDelta := f.varint()
	rec.Key = f.nullable("key")
	rec.Value = f.nullable("value")
	count := f.varint()
	if f.err == nil && (count < 0 || int(count) > len(f.b)/2) {
		f.err = fmt.Errorf("%w: %d headers in %d bytes", ErrCorruptRecord, count, len(f.b))
	}
	r.headers = r.headers[:0]
	for range count {
		if f.err != nil {
			break
		}
		key := f.take(f.varint(), "header key")
		r.headers = append(r.headers, Header{Key: string(key), Value: f.nullable("header value")})
	}
	if f.err == nil && len(f.b) > 0 {
		f.err = fmt.Errorf("%w: %d bytes behind a record's last field", ErrCorruptRecord, len(f.b))
	}
	if f.err != nil {
		r.err = f.err
		return Record{}
	}
	rec.Headers = r.headers
	rec.Offset = r.batch.BaseOffset() + int64(offsetDelta)
	rec.TimestampMs = r.batch.BaseTimestampMs() + timestampDelta
	if r.batch.LogAppendTime() {
		rec.TimestampMs = r.batch.MaxTimestampMs()
	}
	if base := r.batch.BaseSequence(); base >= 0 {
		rec.Sequence = addSequence(base, offsetDelta)
	}
	return rec
}

// addSequence adds n to a sequence number, which wraps from 2^31-1 to 0. Kafka: DefaultRecordBatch.incrementSequence.
func addSequence(sequence, n int32) int32 {
	if sequence > math.MaxInt32-n {
		return n - (math.MaxInt32 - sequence) - 1
	}
	return sequence + n
}

// fields reads fields off the front of b. After an error everything read is zero or empty.
type fields struct {
	b   []byte
	err error
}

func (f *fields) fail(what string) {
	if f.err == nil {
		f.err = fmt.Errorf("%w: %s", ErrCorruptRecord, what)
	}
	f.b = nil
}

func (f *fields) byte() byte {
	if len(f.b) == 0 {
		f.fail("ends inside a field")
		return 0
	}
	v := f.b[0]
	f.b = f.b[1:]
	return v
}

// varlong reads a zig-zag varint of at most 10 bytes; longer encodings than needed are accepted, as in Kafka.
func (f *fields) varlong() int64 {
	v, n := binary.Varint(f.b)
	if n <= 0 {
		f.fail("a variable-length number does not end")
		return 0
	}
	f.b = f.b[n:]
	return v
}

// varint reads a zig-zag varint of at most 5 bytes.
func (f *fields) varint() int32 {
	v, n := binary.Varint(f.b[:min(len(f.b), binary.MaxVarintLen32)])
	if n <= 0 || v < math.MinInt32 || v > math.MaxInt32 {
		f.fail("a variable-length number does not end")
		return 0
	}
	f.b = f.b[n:]
	return int32(v)
}

func (f *fields) take(n int32, what string) []byte {
	if f.err != nil || n < 0 || int64(n) > int64(len(f.b)) {
		f.fail(fmt.Sprintf("%s of %d bytes where %d are left", what, n, len(f.b)))
		return nil
	}
	v := f.b[:n:n]
	f.b = f.b[n:]
	return v
}

func (f *fields) nullable(what string) []byte {
	n := f.varint()
	if f.err != nil || n == -1 {
		return nil
	}
	return f.take(n, what)
}

// AppendRecord appends r to dst as a record of a batch whose first record is at baseOffset and baseTimestampMs.
// Sequence is not part of a record. Kafka: DefaultRecord.writeTo.
func AppendRecord(dst []byte, baseOffset, baseTimestampMs int64, r *Record) []byte {
	timestampDelta := r.TimestampMs - baseTimestampMs
	offsetDelta := r.Offset - baseOffset
	size := 1 + varintSize(timestampDelta) + varintSize(offsetDelta) + nullableSize(r.Key) + nullableSize(r.Value) +
		varintSize(int64(len(r.Headers)))
	for _, h := range r.Headers {
		size += varintSize(int64(len(h.Key))) + len(h.Key) + nullableSize(h.Value)
	}
	dst = binary.AppendVarint(dst, int64(size))
	dst = append(dst, byte(r.Attributes))
	dst = binary.AppendVarint(dst, timestampDelta)
	dst = binary.AppendVarint(dst, offsetDelta)
	dst = appendNullable(dst, r.Key)
	dst = appendNullable(dst, r.Value)
	dst = binary.AppendVarint(dst, int64(len(r.Headers)))
	for _, h := range r.Headers {
		dst = binary.AppendVarint(dst, int64(len(h.Key)))
		dst = append(dst, h.Key...)
		dst = appendNullable(dst, h.Value)
	}
	return dst
}

func varintSize(v int64) int {
	n := 1
	for u := uint64(v)<<1 ^ uint64(v>>63); u >= 0x80; u >>= 7 {
		n++
	}
	return n
}

func nullableSize(b []byte) int {
	if b == nil {
		return 1
	}
	return varintSize(int64(len(b))) + len(b)
}

func appendNullable(dst, b []byte) []byte {
	if b == nil {
		return binary.AppendVarint(dst, -1)
	}
	return append(binary.AppendVarint(dst, int64(len(b))), b...)
}
