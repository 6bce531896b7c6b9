package fetchwire

import (
	"encoding/binary"
	"math"
)

// The methods below read single fields of a FetchStream through its window; after the first error they return zero.

// bytes returns the next n bytes, which must fit the window, without consuming them; nil on an error.
func (s *FetchStream) bytes(n int, field string) []byte {
	if s.err != nil {
		return nil
	}
	if int64(n) > s.frame.left {
		s.malformed(field, "ends early")
		return nil
	}
	b, err := s.frame.need(n)
	if err != nil {
		s.fail(err)
		return nil
	}
	return b
}

func (s *FetchStream) int8(field string) (v int8) {
	if b := s.bytes(1, field); b != nil {
		v = int8(b[0])
		s.frame.consume(1)
	}
	return v
}

func (s *FetchStream) int16(field string) (v int16) {
	if b := s.bytes(2, field); b != nil {
		v = int16(binary.BigEndian.Uint16(b))
		s.frame.consume(2)
	}
	return v
}

func (s *FetchStream) int32(field string) (v int32) {
	if b := s.bytes(4, field); b != nil {
		v = int32(binary.BigEndian.Uint32(b))
		s.frame.consume(4)
	}
	return v
}

func (s *FetchStream) int64(field string) (v int64) {
	if b := s.bytes(8, field); b != nil {
		v = int64(binary.BigEndian.Uint64(b))
		s.frame.consume(8)
	}
	return v
}

// uvarint reads at most five bytes and 32 bits.
func (s *FetchStream) uvarint(field string) uint32 {
	var v uint64
	for shift := 0; shift < 35 && s.err == nil; shift += 7 {
		b := byte(s.int8(field))
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			if v > math.MaxUint32 {
				break
			}
			return uint32(v)
		}
	}
	s.malformed(field, "varint is too large")
	return 0
}

// length reads a length or count, -1 for null, and refuses one beyond the frame.
func (s *FetchStream) length(wide bool, field string) int {
	var n int
	switch {
	case s.compact:
		n = int(s.uvarint(field)) - 1
	case wide:
		n = int(s.int32(field))
	default:
		n = int(s.int16(field))
	}
	switch {
	case s.err != nil:
		return -1
	case n < -1:
		s.malformed(field, "negative length")
		return -1
	case int64(n) > s.frame.left:
		s.malformed(field, "length beyond the frame")
		return -1
	}
	return n
}

// count reads the count of an array that may not be null and refuses more elements than minSize bytes each fit.
func (s *FetchStream) count(minSize int64, field string) int {
	n := s.length(true, field)
	switch {
	case s.err != nil:
		return 0
	case n < 0:
		s.malformed(field, "null where Kafka allows none")
		return 0
	case int64(n) > s.frame.left/minSize:
		s.malformed(field, "more elements than the frame has room for")
		return 0
	}
	return n
}

// nullableStr copies a short string out of the window.
func (s *FetchStream) nullableStr(field string) *string {
	n := s.length(false, field)
	if s.err != nil || n < 0 {
		return nil
	}
	if n > maxStreamTagBytes {
		s.malformed(field, "string is too long")
		return nil
	}
	b := s.bytes(n, field)
	if b == nil {
		return nil
	}
	str := string(b)
	s.frame.consume(n)
	return &str
}

func (s *FetchStream) tagCount() int {
	if !s.compact || s.err != nil {
		return 0
	}
	n := s.uvarint("tagged fields")
	if int64(n) > s.frame.left/2 {
		s.malformed("tagged fields", "more than the frame has room for")
		return 0
	}
	return int(n)
}

func (s *FetchStream) tagHead() (tag uint32, size int64) {
	tag = s.uvarint("tag")
	size = int64(s.uvarint("tagged field"))
	if s.err == nil && size > s.frame.left {
		s.malformed("tagged field", "length beyond the frame")
	}
	return tag, size
}

func (s *FetchStream) skip(n int64) {
	if s.err != nil {
		return
	}
	if n > s.frame.left {
		s.malformed("skipped field", "ends early")
		return
	}
	if err := s.frame.skip(n); err != nil {
		s.fail(err)
	}
}

func (s *FetchStream) skipTags() {
	for n := s.tagCount(); n > 0 && s.err == nil; n-- {
		_, size := s.tagHead()
		s.skip(size)
	}
}
