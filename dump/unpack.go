package dump

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/flate"

	"segmirror/segment"
)

// How much Kafka's readers decompress at once. Where that fails, none of it is seen.
const (
	gzipPiece = 16 << 10
	zstdPiece = 128 << 10
)

// unpacked is what was decompressed. Where that failed in the middle, damage says why and plain is what Kafka's reader
// would have seen by then. What it fails at in the beginning is thrown.
type unpacked struct {
	plain  []byte
	damage error
	thrown *Exception
}

// unpack decompresses src. The result is d's until its next use.
func unpack(d *segment.Decompressor, codec, magic int8, src []byte) unpacked {
	plain, err := d.Decompress(codec, magic, src)
	if err == nil {
		return unpacked{plain: plain}
	}
	if errors.Is(err, segment.ErrTooLarge) {
		return unpacked{thrown: throwf(classKafka, "%s", err)}
	}
	if cause := unpackCause(codec, magic, src); cause != "" {
		return unpacked{thrown: throwf(classKafka, "%s", cause)}
	}
	var corrupt flate.CorruptInputError
	switch {
	case codec == segment.CodecGzip && errors.As(err, &corrupt):
		plain = plain[:len(plain)/gzipPiece*gzipPiece]
	case codec == segment.CodecZstd:
		plain = plain[:len(plain)/zstdPiece*zstdPiece]
	}
	return unpacked{plain: plain, damage: err}
}

// unpackCause is what Kafka's reader fails at before the first byte, "" where it does not.
func unpackCause(codec, magic int8, src []byte) string {
	switch codec {
	case segment.CodecGzip:
		return gzipCause(src)
	case segment.CodecLZ4:
		return lz4Cause(magic, src)
	case segment.CodecSnappy:
		if !bytes.HasPrefix(src, []byte("\x82SNAPPY\x00")) {
			return "java.io.IOException: FAILED_TO_UNCOMPRESS(5)"
		}
	}
	return ""
}

func gzipCause(src []byte) string {
	switch {
	case len(src) < 2:
		return "java.io.EOFException"
	case src[0] != 0x1f || src[1] != 0x8b:
		return "java.util.zip.ZipException: Not in GZIP format"
	case len(src) > 2 && src[2] != 8:
		return "java.util.zip.ZipException: Unsupported compression method"
	case len(src) < 10:
		return "java.io.EOFException"
	default:
		return ""
	}
}

// lz4Cause checks a frame's head. Kafka: Lz4BlockInputStream.readHeader.
func lz4Cause(magic int8, src []byte) string {
	const headSize, frameMagic = 6, 0x184d2204
	switch {
	case len(src) < headSize:
		return "java.io.IOException: Stream ended prematurely"
	case binary.LittleEndian.Uint32(src) != frameMagic:
		return "java.io.IOException: Stream unsupported (invalid magic bytes)"
	}
	flg, bd := src[4], src[5]
	switch {
	case flg&3 != 0:
		return "java.lang.RuntimeException: Reserved bits must be 0"
	case flg>>5&1 != 1:
		return "java.lang.RuntimeException: Dependent block stream is unsupported"
	case flg>>6 != 1:
		return fmt.Sprintf("java.lang.RuntimeException: Version %d is unsupported", flg>>6)
	case bd&15 != 0:
		return "java.lang.RuntimeException: Reserved2 field must be 0"
	case bd>>4&7 < 4:
		return "java.lang.RuntimeException: Block size value must be between 4 and 7"
	case bd>>7 != 0:
		return "java.lang.RuntimeException: Reserved3 field must be 0"
	}
	end := headSize
	if flg>>3&1 == 1 {
		end += 8
	}
	if len(src) < end {
		return "java.io.IOException: Stream ended prematurely"
	}
	if magic > 0 && len(src) > end && !segment.LZ4HeaderSumFits(src[4:end], src[end]) {
		return "java.io.IOException: Stream frame descriptor corrupted"
	}
	return ""
}
