package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// Codecs of a batch's attributes. Kafka: CompressionType.
const (
	CodecNone   int8 = 0
	CodecGzip   int8 = 1
	CodecSnappy int8 = 2
	CodecLZ4    int8 = 3
	CodecZstd   int8 = 4
)

// CodecName returns a codec's name as Kafka's tools print it, "unknown(n)" for a number that is no codec.
func CodecName(codec int8) string {
	names := []string{"none", "gzip", "snappy", "lz4", "zstd"}
	if codec < 0 || int(codec) >= len(names) {
		return fmt.Sprintf("unknown(%d)", codec)
	}
	return names[codec]
}

var (
	// ErrUnknownCodec says that a batch's attributes name no codec. The batch is stored all the same.
	ErrUnknownCodec = errors.New("unknown compression codec")
	// ErrTooLarge says that records would take more memory than the reader was allowed.
	ErrTooLarge = errors.New("decompressed records exceed the limit")
)

// DefaultDecompressLimit is what one batch may take when it is decompressed, in bytes.
const DefaultDecompressLimit = 256 << 20

// Decompressor makes the records of compressed batches readable, batch after batch. It is for inspection: appending,
// checking and serving never decompress.
//
// A batch that would take more than the limit is ErrTooLarge; no more than that is allocated for it. A Decompressor
// belongs to one goroutine. Kafka: the classes in common.compress.
type Decompressor struct {
	limit int
	out   []byte
	gzip  *gzip.Reader
	zstd  *zstd.Decoder
}

// NewDecompressor returns a Decompressor that makes at most limit bytes of one batch; 0 means
// DefaultDecompressLimit.
func NewDecompressor(limit int) *Decompressor {
	if limit <= 0 {
		limit = DefaultDecompressLimit
	}
	return &Decompressor{limit: limit}
}

// Close releases the decoders.
func (d *Decompressor) Close() {
	if d.zstd != nil {
		d.zstd.Close()
		d.zstd = nil
	}
}

// Decompress returns the plain records of src, what follows a batch's header (or the value of a v0 or v1 wrapper).
//
// magic is the batch's: in magic 0, LZ4 frames have a header checksum made over the wrong bytes, which is not checked.
// The result is the Decompressor's and valid until the next call; without a codec it is src itself. src stays the
// caller's. ErrUnknownCodec, ErrTooLarge, or ErrCorruptRecord with the codec's reason; the result is then what came
// before the damage.
func (d *Decompressor) Decompress(codec, magic int8, src []byte) ([]byte, error) {
	var err error
	d.out = d.out[:0]
	switch codec {
	case CodecNone:
		return src, nil
	case CodecGzip:
		err = d.gunzip(src)
	case CodecSnappy:
		err = d.unsnappy(src)
	case CodecLZ4:
		err = d.unlz4(src, magic)
	case CodecZstd:
		err = d.unzstd(src)
	default:
		return nil, fmt.Errorf("%w: %d", ErrUnknownCodec, codec)
	}
	if err == nil {
		return d.out[:len(d.out):len(d.out)], nil
	}
	if errors.Is(err, ErrTooLarge) {
		return d.out, fmt.Errorf("%w of %d bytes: %s", ErrTooLarge, d.limit, CodecName(codec))
	}
	return d.out, fmt.Errorf("%w: %s: %w", ErrCorruptRecord, CodecName(codec), err)
}

// gunzip reads concatenated members; what follows the last one and is no member is ignored, as Java does.
func (d *Decompressor) gunzip(src []byte) error {
	in := bytes.NewReader(src)
	for member := 0; ; member++ {
		var err error
		if d.gzip == nil {
			d.gzip, err = gzip.NewReader(in)
		} else {
			err = d.gzip.Reset(in)
		}
		if err != nil {
			if member > 0 {
				return nil
			}
			return err
		}
		d.gzip.Multistream(false)
		if err := d.readFrom(d.gzip); err != nil {
			return err
		}
	}
}

// readFrom appends what r has to out, growing it by what is there and not by what is announced.
func (d *Decompressor) readFrom(r io.Reader) error {
	for {
		if len(d.out) == cap(d.out) {
			d.out = append(d.out, 0)[:len(d.out)]
		}
		n, err := r.Read(d.out[len(d.out):cap(d.out)])
		d.out = d.out[:len(d.out)+n]
		if len(d.out) > d.limit {
			return ErrTooLarge
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

const (
	xerialMagic      = "\x82SNAPPY\x00"
	xerialHeaderSize = len(xerialMagic) + 8 // version and compatible version, which writers disagree on: not looked at

	// snappyMaxRatio is above what any snappy block can expand to: 64 bytes for 3.
	snappyMaxRatio = 32
)

// unsnappy reads xerial's block stream, or one raw block where its magic is absent.
func (d *Decompressor) unsnappy(src []byte) error {
	if !bytes.HasPrefix(src, []byte(xerialMagic)) {
		return d.snappyBlock(src)
	}
	for len(src) > 0 {
		if bytes.HasPrefix(src, []byte(xerialMagic)) {
			if len(src) < xerialHeaderSize {
				return fmt.Errorf("stream header of %d bytes", len(src))
			}
			src = src[xerialHeaderSize:]
			continue
		}
		if len(src) < 4 {
			return fmt.Errorf("%d bytes where a block's length should be", len(src))
		}
		size := int64(int32(binary.BigEndian.Uint32(src)))
		if src = src[4:]; size < 0 || size > int64(len(src)) {
			return fmt.Errorf("block of %d bytes where %d are left", size, len(src))
		}
		if err := d.snappyBlock(src[:size]); err != nil {
			return err
		}
		src = src[size:]
	}
	return nil
}

func (d *Decompressor) snappyBlock(block []byte) error {
	n, err := snappy.DecodedLen(block)
	if err != nil {
		return err
	}
	if n > d.limit-len(d.out) {
		return ErrTooLarge
	}
	if n > snappyMaxRatio*len(block) {
		return fmt.Errorf("block of %d bytes claims to hold %d", len(block), n)
	}
	start := len(d.out)
	d.grow(n)
	if _, err = snappy.Decode(d.out[start:start+n], block); err != nil {
		d.out = d.out[:start]
	}
	return err
}

// grow makes out n bytes longer; their content is undefined.
func (d *Decompressor) grow(n int) {
	d.out = append(d.out, make([]byte, n)...)
}

// unzstd reads concatenated frames, with or without a stated size, and skips skippable ones.
func (d *Decompressor) unzstd(src []byte) error {
	if d.zstd == nil {
		decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxMemory(uint64(d.limit)))
		if err != nil {
			return err
		}
		d.zstd = decoder
	}
	out, err := d.zstd.DecodeAll(src, d.out)
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return ErrTooLarge
	}
	d.out = out
	return err
}
