package fetchwire

import "encoding/binary"

// The append functions below are the encoder: each appends one field to dst and returns it. compact picks the
// encoding of flexible versions. A string is cut at what a length can say (32,767 bytes).

func appendInt8(dst []byte, v int8) []byte { return append(dst, byte(v)) }

func appendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 1)
	}
	return append(dst, 0)
}

func appendInt16(dst []byte, v int16) []byte { return binary.BigEndian.AppendUint16(dst, uint16(v)) }

func appendInt32(dst []byte, v int32) []byte { return binary.BigEndian.AppendUint32(dst, uint32(v)) }

func appendInt64(dst []byte, v int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(v)) }

func appendUvarint(dst []byte, v uint32) []byte { return binary.AppendUvarint(dst, uint64(v)) }

// appendLength appends a length or count; -1 is null. wide says that the classic form has four bytes.
func appendLength(dst []byte, n int, compact, wide bool) []byte {
	switch {
	case compact:
		return appendUvarint(dst, uint32(n+1))
	case wide:
		return appendInt32(dst, int32(n))
	default:
		return appendInt16(dst, int16(n))
	}
}

func appendString(dst []byte, s string, compact bool) []byte {
	if len(s) > maxStringBytes {
		s = s[:maxStringBytes]
	}
	return append(appendLength(dst, len(s), compact, false), s...)
}

func appendNullableString(dst []byte, s *string, compact bool) []byte {
	if s == nil {
		return appendLength(dst, -1, compact, false)
	}
	return appendString(dst, *s, compact)
}

// appendBytes appends b behind its length; null says that nil b is null and not empty.
func appendBytes(dst, b []byte, compact, null bool) []byte {
	if b == nil && null {
		return appendLength(dst, -1, compact, true)
	}
	return append(appendLength(dst, len(b), compact, true), b...)
}

func appendArrayLen(dst []byte, n int, compact bool) []byte {
	return appendLength(dst, n, compact, true)
}

func appendInt32s(dst []byte, v []int32, compact bool) []byte {
	dst = appendArrayLen(dst, len(v), compact)
	for _, e := range v {
		dst = appendInt32(dst, e)
	}
	return dst
}

func appendStrings(dst []byte, v []string, compact bool) []byte {
	dst = appendArrayLen(dst, len(v), compact)
	for _, e := range v {
		dst = appendString(dst, e, compact)
	}
	return dst
}

// appendNoTags ends a structure that has no tagged fields to send.
func appendNoTags(dst []byte, compact bool) []byte {
	if compact {
		return append(dst, 0)
	}
	return dst
}

// appendTag appends one tagged field whose body is ready.
func appendTag(dst []byte, tag uint32, body []byte) []byte {
	dst = appendTagHead(dst, tag, len(body))
	return append(dst, body...)
}

// appendTagHead appends the head of a tagged field of size bytes.
func appendTagHead(dst []byte, tag uint32, size int) []byte {
	return appendUvarint(appendUvarint(dst, tag), uint32(size))
}

// appendEach appends an array of structures; element appends one but for its tags, of which there are none.
func appendEach[T any](dst []byte, items []T, compact bool, element func(dst []byte, item *T) []byte) []byte {
	dst = appendArrayLen(dst, len(items), compact)
	for i := range items {
		dst = appendNoTags(element(dst, &items[i]), compact)
	}
	return dst
}
