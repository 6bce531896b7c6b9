package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// plainRecords is something that compresses, longer than a block of snappy's stream.
var plainRecords = []byte(strings.Repeat("the same five records, again and again; ", 3000))

func gzipped(t testing.TB, plain []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// xerialed is snappy's stream as Kafka writes it; version fields as given.
func xerialed(plain []byte, order binary.AppendByteOrder) []byte {
	out := []byte(xerialMagic)
	out = order.AppendUint32(out, 1)
	out = order.AppendUint32(out, 1)
	for len(plain) > 0 {
		n := min(len(plain), 32<<10)
		block := snappy.Encode(nil, plain[:n])
		out = binary.BigEndian.AppendUint32(out, uint32(len(block)))
		out = append(out, block...)
		plain = plain[n:]
	}
	return out
}

// lz4Frame is a frame as Kafka writes it, in blocks of at most 64 KiB.
func lz4Frame(t testing.TB, plain []byte, magic0 bool) []byte {
	t.Helper()
	out := []byte{0x04, 0x22, 0x4d, 0x18, 0x60, 0x40}
	hc := byte(xxh32(out[4:]) >> 8)
	if magic0 {
		hc = byte(xxh32(out) >> 8)
	}
	out = append(out, hc)
	for len(plain) > 0 {
		n := min(len(plain), 64<<10)
		block := make([]byte, lz4.CompressBlockBound(n))
		size, err := lz4.CompressBlock(plain[:n], block, nil)
		if err != nil {
			t.Fatal(err)
		}
		if size == 0 || size >= n {
			out = binary.LittleEndian.AppendUint32(out, uint32(n)|lz4StoredBlock)
			out = append(out, plain[:n]...)
		} else {
			out = binary.LittleEndian.AppendUint32(out, uint32(size))
			out = append(out, block[:size]...)
		}
		plain = plain[n:]
	}
	return append(out, 0, 0, 0, 0)
}

func zstded(t testing.TB, plain []byte, options ...zstd.EOption) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, options...)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return w.EncodeAll(plain, nil)
}

func decompressor(t testing.TB, limit int) *Decompressor {
	t.Helper()
	d := NewDecompressor(limit)
	t.Cleanup(d.Close)
	return d
}

func TestDecompress_EveryFramingAReaderMayMeet(t *testing.T) {
	var streamed bytes.Buffer
	w, err := zstd.NewWriter(&streamed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(plainRecords); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	half := len(plainRecords) / 2
	skippable := []byte{0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c'}
	lz4Sums := lz4Frame(t, plainRecords[:100], false)
	for name, c := range map[string]struct {
		codec, magic int8
		src          []byte
	}{
		"none":                           {CodecNone, 2, plainRecords},
		"gzip":                           {CodecGzip, 2, gzipped(t, plainRecords)},
		"gzip, two members":              {CodecGzip, 2, append(gzipped(t, plainRecords[:half]), gzipped(t, plainRecords[half:])...)},
		"gzip, junk behind":              {CodecGzip, 2, append(gzipped(t, plainRecords), "junk junk junk"...)},
		"snappy, xerial":                 {CodecSnappy, 2, xerialed(plainRecords, binary.BigEndian)},
		"snappy, little-endian versions": {CodecSnappy, 2, xerialed(plainRecords, binary.LittleEndian)},
		"snappy, one raw block":          {CodecSnappy, 2, snappy.Encode(nil, plainRecords)},
		"snappy, two xerial streams": {
			CodecSnappy, 2,
			append(xerialed(plainRecords[:half], binary.BigEndian), xerialed(plainRecords[half:], binary.BigEndian)...),
		},
		"lz4":                       {CodecLZ4, 2, lz4Frame(t, plainRecords, false)},
		"lz4, magic 0's header sum": {CodecLZ4, 0, lz4Frame(t, plainRecords, true)},
		"lz4, junk behind":          {CodecLZ4, 2, append(lz4Frame(t, plainRecords, false), "junk"...)},
		"zstd":                      {CodecZstd, 2, zstded(t, plainRecords)},
		"zstd, size not stated":     {CodecZstd, 2, streamed.Bytes()},
		"zstd, two frames":          {CodecZstd, 2, append(zstded(t, plainRecords[:half]), zstded(t, plainRecords[half:])...)},
		"zstd, skippable frame between": {
			CodecZstd, 2,
			append(append(zstded(t, plainRecords[:half]), skippable...), zstded(t, plainRecords[half:])...),
		},
	} {
		d := decompressor(t, 0)
		for range 2 { // the second time with decoders that were used
			got, err := d.Decompress(c.codec, c.magic, c.src)
			if err != nil || !bytes.Equal(got, plainRecords) {
				t.Errorf("%s: %d bytes, want %d: %v", name, len(got), len(plainRecords), err)
			}
		}
	}
	if got, err := decompressor(t, 0).Decompress(CodecLZ4, 2, lz4Sums); err != nil || !bytes.Equal(got, plainRecords[:100]) {
		t.Errorf("lz4, short: %v", err)
	}
}

func TestDecompress_LZ4FramesOfOtherWriters(t *testing.T) {
	for name, options := range map[string][]lz4.Option{
		"block and content checksums": {lz4.BlockChecksumOption(true), lz4.ChecksumOption(true)},
		"content size, 1 MiB blocks":  {lz4.SizeOption(uint64(len(plainRecords))), lz4.BlockSizeOption(lz4.Block1Mb)},
		"4 MiB blocks":                {lz4.BlockSizeOption(lz4.Block4Mb)},
	} {
		var out bytes.Buffer
		w := lz4.NewWriter(&out)
		if err := w.Apply(options...); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(plainRecords); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := decompressor(t, 0).Decompress(CodecLZ4, 2, out.Bytes())
		if err != nil || !bytes.Equal(got, plainRecords) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

func TestDecompress_LZ4HeaderSumIsKafkas(t *testing.T) {
	if got := lz4Frame(t, nil, false)[6]; got != 0x82 {
		t.Errorf("header checksum %02x, Kafka's is 82", got)
	}
	if got := lz4Frame(t, nil, true)[6]; got != 0x1a {
		t.Errorf("header checksum of magic 0 %02x, Kafka's is 1a", got)
	}
	for _, magic := range []int8{1, 2} {
		_, err := decompressor(t, 0).Decompress(CodecLZ4, magic, lz4Frame(t, plainRecords, true))
		if !errors.Is(err, ErrCorruptRecord) || !strings.Contains(err.Error(), "header checksum") {
			t.Errorf("magic 0's checksum under magic %d: %v", magic, err)
		}
	}
}

func TestDecompress_DamageIsAnErrorAndTheNextBatchReads(t *testing.T) {
	good := map[int8][]byte{
		CodecGzip: gzipped(t, plainRecords), CodecSnappy: xerialed(plainRecords, binary.BigEndian),
		CodecLZ4: lz4Frame(t, plainRecords, false), CodecZstd: zstded(t, plainRecords, zstd.WithEncoderCRC(true)),
	}
	for codec, src := range good {
		d := decompressor(t, 0)
		for name, bad := range map[string][]byte{
			"garbage": []byte("this is not what it should be"), "cut": src[:len(src)-9], "empty": {}, "half": src[:len(src)/2],
		} {
			if codec == CodecZstd && name == "empty" {
				continue // no frame is no bytes
			}
			if _, err := d.Decompress(codec, 2, bad); !errors.Is(err, ErrCorruptRecord) || !strings.Contains(err.Error(), CodecName(codec)) {
				t.Errorf("%s, %s: %v", CodecName(codec), name, err)
			}
		}
		if got, err := d.Decompress(codec, 2, src); err != nil || !bytes.Equal(got, plainRecords) {
			t.Errorf("%s after damage: %v", CodecName(codec), err)
		}
	}
	for _, codec := range []int8{5, 7} {
		if _, err := decompressor(t, 0).Decompress(codec, 2, plainRecords); !errors.Is(err, ErrUnknownCodec) {
			t.Errorf("codec %d: %v", codec, err)
		}
	}
}

func TestDecompress_NeverMoreThanTheLimit(t *testing.T) {
	const limit = 1 << 20
	bomb := make([]byte, 8*limit)
	for name, c := range map[string]struct {
		codec int8
		src   []byte
	}{
		"gzip":              {CodecGzip, gzipped(t, bomb)},
		"snappy":            {CodecSnappy, snappy.Encode(nil, bomb)},
		"snappy, xerial":    {CodecSnappy, xerialed(bomb, binary.BigEndian)},
		"lz4":               {CodecLZ4, lz4Frame(t, bomb, false)},
		"zstd":              {CodecZstd, zstded(t, bomb)},
		"snappy, 2^31-1":    {CodecSnappy, []byte{0xff, 0xff, 0xff, 0xff, 0x07, 0}},
		"exactly, one over": {CodecGzip, gzipped(t, bomb[:limit+1])},
	} {
		d := decompressor(t, limit)
		if _, err := d.Decompress(c.codec, 2, c.src); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
		if cap(d.out) > 2*limit+64<<10 {
			t.Errorf("%s: %d bytes were allocated for a limit of %d", name, cap(d.out), limit)
		}
	}
	for codec, src := range map[int8][]byte{
		CodecGzip: gzipped(t, bomb[:limit]), CodecSnappy: xerialed(bomb[:limit], binary.BigEndian),
		CodecLZ4: lz4Frame(t, bomb[:limit], false), CodecZstd: zstded(t, bomb[:limit]),
	} {
		if got, err := decompressor(t, limit).Decompress(codec, 2, src); err != nil || len(got) != limit {
			t.Errorf("%s of exactly the limit: %d bytes, %v", CodecName(codec), len(got), err)
		}
	}
}

func FuzzDecompress(f *testing.F) {
	plain := plainRecords[:200]
	f.Add(CodecGzip, int8(2), gzipped(f, plain))
	f.Add(CodecSnappy, int8(2), xerialed(plain, binary.BigEndian))
	f.Add(CodecSnappy, int8(1), snappy.Encode(nil, plain))
	f.Add(CodecLZ4, int8(2), lz4Frame(f, plain, false))
	f.Add(CodecLZ4, int8(0), lz4Frame(f, plain, true))
	f.Add(CodecZstd, int8(2), zstded(f, plain))
	f.Fuzz(func(t *testing.T, codec, magic int8, src []byte) {
		const limit = 1 << 16
		d := NewDecompressor(limit)
		defer d.Close()
		out, err := d.Decompress(codec, magic, src)
		if codec != CodecNone && (len(out) > limit || cap(d.out) > 8<<20) {
			t.Errorf("%d bytes, %d allocated, of %d", len(out), cap(d.out), len(src))
		}
		if err == nil {
			again, err := d.Decompress(codec, magic, src)
			if err != nil || len(again) != len(out) {
				t.Errorf("read twice: %d and %d bytes, %v", len(out), len(again), err)
			}
		}
	})
}
