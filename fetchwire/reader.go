package fetchwire

import "encoding/binary"

// reader decodes one message held in memory. Its error is sticky: after the first failure every read returns zero,
// so decoders read like the schema and ask once, with done.
//
// Nothing is allocated before the bytes that would fill it are known to be there.
type reader struct {
	src     []byte // up to the end of the message, or of the tagged field being read
	pos     int
	api     int16
	version int16
	compact bool
	err     *DecodeError
}

func newReader(src []byte, api, version int16) *reader {
	return &reader{src: src, api: api, version: version, compact: flexible(api, version)}
}

// fail keeps the first failure.
func (r *reader) fail(field, reason string) {
	if r.err == nil {
		r.err = &DecodeError{API: r.api, Version: r.version, Field: field, Pos: r.pos, Reason: reason}
	}
	r.pos = len(r.src)
}

// done returns the first failure, or one for bytes left over.
func (r *reader) done() error {
	if r.err == nil && r.pos != len(r.src) {
		r.fail("end of message", "bytes left over")
	}
	if r.err != nil {
		return r.err
	}
	return nil
}

func (r *reader) remaining() int { return len(r.src) - r.pos }

// span returns the next n bytes, nil when they are not there. The bytes belong to src.
func (r *reader) span(n int, field string) []byte {
	if r.err != nil {
		return nil
	}
	if n < 0 || n > r.remaining() {
		r.fail(field, "ends early")
		return nil
	}
	b := r.src[r.pos : r.pos+n : r.pos+n]
	r.pos += n
	return b
}

func (r *reader) int8(field string) int8 {
	if b := r.span(1, field); b != nil {
		return int8(b[0])
	}
	return 0
}

func (r *reader) bool(field string) bool { return r.int8(field) != 0 }

func (r *reader) int16(field string) int16 {
	if b := r.span(2, field); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (r *reader) int32(field string) int32 {
	if b := r.span(4, field); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *reader) int64(field string) int64 {
	if b := r.span(8, field); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (r *reader) uuid(field string) (id [16]byte) {
	copy(id[:], r.span(16, field))
	return id
}

// uvarint reads an unsigned varint of at most five bytes and 32 bits. Kafka: ByteUtils.readUnsignedVarint.
func (r *reader) uvarint(field string) uint32 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.src[r.pos:])
	switch {
	case n == 0:
		r.fail(field, "ends early")
		return 0
	case n < 0 || n > 5 || v > 0xffffffff:
		r.fail(field, "varint is too large")
		return 0
	}
	r.pos += n
	return uint32(v)
}

// length reads a compact or classic length, -1 for null. wide says that the classic form has four bytes.
func (r *reader) length(wide bool, field string) int {
	var n int
	switch {
	case r.compact:
		n = int(r.uvarint(field)) - 1
	case wide:
		n = int(r.int32(field))
	default:
		n = int(r.int16(field))
	}
	if r.err != nil {
		return -1
	}
	if n < -1 {
		r.fail(field, "negative length")
		return -1
	}
	if n > r.remaining() {
		r.fail(field, "length beyond the message")
		return -1
	}
	return n
}

// nullableStr returns nil for null.
func (r *reader) nullableStr(field string) *string {
	n := r.length(false, field)
	if n < 0 {
		return nil
	}
	if n > maxStringBytes {
		r.fail(field, "string is too long")
		return nil
	}
	s := string(r.span(n, field))
	return &s
}

func (r *reader) str(field string) string {
	s := r.nullableStr(field)
	if s == nil {
		r.fail(field, "null where Kafka allows none")
		return ""
	}
	return *s
}

// nullableBytes returns nil for null; the bytes belong to src.
func (r *reader) nullableBytes(field string) []byte {
	n := r.length(true, field)
	if n < 0 {
		return nil
	}
	return r.span(n, field)
}

// bytes reads bytes that may not be null; they belong to src.
func (r *reader) bytes(field string) []byte {
	b := r.nullableBytes(field)
	if b == nil {
		r.fail(field, "null where Kafka allows none")
	}
	return b
}

// arrayLen reads an array's count, -1 for null, and refuses more elements than minSize bytes each could fit.
func (r *reader) arrayLen(minSize int, field string) int {
	n := r.length(true, field)
	if n > 0 && n > r.remaining()/minSize {
		r.fail(field, "more elements than the message has room for")
		return -1
	}
	return n
}

// array reads the count of an array that may not be null.
func (r *reader) array(minSize int, field string) int {
	n := r.arrayLen(minSize, field)
	if n < 0 {
		r.fail(field, "null where Kafka allows none")
		return 0
	}
	return n
}

func (r *reader) int32s(field string) []int32 {
	n := r.array(4, field)
	if n == 0 {
		return nil
	}
	v := make([]int32, n)
	for i := range v {
		v[i] = r.int32(field)
	}
	return v
}

// strs reads an array of strings, nil for an empty one.
func (r *reader) strs(field string) []string {
	n := r.array(1, field)
	if n == 0 {
		return nil
	}
	v := make([]string, n)
	for i := range v {
		v[i] = r.str(field)
	}
	return v
}

// tagCount reads how many tagged fields follow; none in versions that have no such thing.
func (r *reader) tagCount(field string) int {
	if !r.compact {
		return 0
	}
	n := r.uvarint(field)
	if int64(n) > int64(r.remaining()/2) {
		r.fail(field, "more tagged fields than the message has room for")
		return 0
	}
	return int(n)
}

// openTag enters the next tagged field; whole is handed to closeTag when it was read.
func (r *reader) openTag() (tag uint32, whole []byte) {
	tag = r.uvarint("tag")
	n := r.uvarint("tagged field")
	if r.err == nil && int64(n) > int64(r.remaining()) {
		r.fail("tagged field", "length beyond the message")
	}
	if r.err != nil {
		return 0, r.src
	}
	whole = r.src
	r.src = r.src[:r.pos+int(n)]
	return tag, whole
}

// skipTag steps over a tagged field that has no meaning here.
func (r *reader) skipTag() {
	if r.err == nil {
		r.pos = len(r.src)
	}
}

func (r *reader) closeTag(whole []byte) {
	if r.err == nil && r.pos != len(r.src) {
		r.fail("tagged field", "bytes left over")
	}
	r.src = whole
	if r.err != nil {
		r.pos = len(r.src)
	}
}

// skipTags steps over all tagged fields of a structure that has none we know.
func (r *reader) skipTags() {
	for n := r.tagCount("tagged fields"); n > 0 && r.err == nil; n-- {
		_, whole := r.openTag()
		r.skipTag()
		r.closeTag(whole)
	}
}

// readEach reads an array of structures of at least least bytes each; element reads one but for its tags, which are
// skipped.
func readEach[T any](r *reader, least int, field string, element func(item *T)) []T {
	items := make([]T, r.array(least, field))
	for i := range items {
		element(&items[i])
		r.skipTags()
	}
	return items
}
