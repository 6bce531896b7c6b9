package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/pierrec/lz4/v4"
)

// An LZ4 frame as Kafka reads it, little-endian. Kafka: Lz4BlockInputStream.
//
//	magic            uint32  04 22 4d 18
//	FLG              uint8   version 6-7 (1), independent blocks 5, block checksums 4, content size 3,
//	                         content checksum 2, reserved 0-1
//	BD               uint8   block size 4-6 (4..7), reserved 0-3 and 7
//	content size     uint64  where FLG says so; not looked at
//	HC               uint8   (xxh32 of FLG..HC) >> 8; magic 0 took the frame's magic in and is not checked
//	blocks           uint32 size (top bit: stored as it is), data, xxh32 of the data where FLG says so
//	end mark         uint32  0; what follows it is not looked at
const (
	lz4Magic          = 0x184d2204
	lz4VersionPos     = 6
	lz4Independent    = 1 << 5
	lz4BlockChecksum  = 1 << 4
	lz4ContentSize    = 1 << 3
	lz4ReservedFLG    = 1
	lz4ReservedBD     = 0x8f
	lz4MinBlockCode   = 4
	lz4StoredBlock    = 1 << 31
	lz4DescriptorPos  = 4
	lz4MinDescriptor  = 2
	lz4ContentSizeLen = 8
)

var errLZ4Short = errors.New("frame ends early")

// unlz4 reads one frame.
func (d *Decompressor) unlz4(src []byte, magic int8) error {
	if len(src) < lz4DescriptorPos+lz4MinDescriptor+1 {
		return errLZ4Short
	}
	if m := binary.LittleEndian.Uint32(src); m != lz4Magic {
		return fmt.Errorf("frame magic %08x", m)
	}
	flg, bd := src[lz4DescriptorPos], src[lz4DescriptorPos+1]
	blockCode := bd >> 4 & 7
	switch {
	case flg>>lz4VersionPos != 1:
		return fmt.Errorf("frame version %d", flg>>lz4VersionPos)
	case flg&lz4Independent == 0:
		return errors.New("blocks that depend on each other, which Kafka does not read")
	case flg&lz4ReservedFLG != 0 || bd&lz4ReservedBD != 0:
		return fmt.Errorf("reserved bits in FLG %02x or BD %02x", flg, bd)
	case blockCode < lz4MinBlockCode:
		return fmt.Errorf("block size code %d", blockCode)
	}
	end := lz4DescriptorPos + lz4MinDescriptor
	if flg&lz4ContentSize != 0 {
		end += lz4ContentSizeLen
	}
	if len(src) <= end {
		return errLZ4Short
	}
	if magic > 0 && !LZ4HeaderSumFits(src[lz4DescriptorPos:end], src[end]) {
		return fmt.Errorf("header checksum %02x, computed %02x", src[end], byte(xxh32(src[lz4DescriptorPos:end])>>8))
	}
	return d.lz4Blocks(src[end+1:], flg, 1<<(2*int(blockCode)+8))
}

// LZ4HeaderSumFits says whether sum is the checksum byte of a frame's descriptor, the bytes from FLG up to it.
func LZ4HeaderSumFits(descriptor []byte, sum byte) bool { return byte(xxh32(descriptor)>>8) == sum }

func (d *Decompressor) lz4Blocks(src []byte, flg byte, maxBlock int) error {
	for {
		if len(src) < 4 {
			return errLZ4Short
		}
		word := binary.LittleEndian.Uint32(src)
		if src = src[4:]; word == 0 {
			return nil
		}
		size := int(word &^ lz4StoredBlock)
		if size > maxBlock || size > len(src) {
			return fmt.Errorf("block of %d bytes where %d are left and %d allowed", size, len(src), maxBlock)
		}
		block := src[:size]
		src = src[size:]
		if flg&lz4BlockChecksum != 0 {
			if len(src) < 4 {
				return errLZ4Short
			}
			if stored, sum := binary.LittleEndian.Uint32(src), xxh32(block); stored != sum {
				return fmt.Errorf("block checksum %08x, computed %08x", stored, sum)
			}
			src = src[4:]
		}
		if err := d.lz4Block(block, word&lz4StoredBlock != 0, maxBlock); err != nil {
			return err
		}
	}
}

func (d *Decompressor) lz4Block(block []byte, stored bool, maxBlock int) error {
	start := len(d.out)
	if stored {
		d.out = append(d.out, block...)
	} else {
		d.grow(maxBlock)
		n, err := lz4.UncompressBlock(block, d.out[start:])
		if err != nil {
			d.out = d.out[:start]
			return err
		}
		d.out = d.out[:start+n]
	}
	if len(d.out) > d.limit {
		return ErrTooLarge
	}
	return nil
}

const (
	xxhPrime1 = 2654435761
	xxhPrime2 = 2246822519
	xxhPrime3 = 3266489917
	xxhPrime4 = 668265263
	xxhPrime5 = 374761393
)

// xxh32 is XXH32 with seed 0, the checksum of LZ4 frames.
func xxh32(b []byte) uint32 {
	n := uint32(len(b))
	var h uint32
	if len(b) < 16 {
		h = xxhPrime5
	} else {
		prime1 := uint32(xxhPrime1) // a variable: the sums below wrap
		lanes := [4]uint32{prime1 + xxhPrime2, xxhPrime2, 0, -prime1}
		for ; len(b) >= 16; b = b[16:] {
			for i := range lanes {
				lanes[i] += binary.LittleEndian.Uint32(b[4*i:]) * xxhPrime2
				lanes[i] = bits.RotateLeft32(lanes[i], 13) * xxhPrime1
			}
		}
		h = bits.RotateLeft32(lanes[0], 1) + bits.RotateLeft32(lanes[1], 7) +
			bits.RotateLeft32(lanes[2], 12) + bits.RotateLeft32(lanes[3], 18)
	}
	h += n
	for ; len(b) >= 4; b = b[4:] {
		h += binary.LittleEndian.Uint32(b) * xxhPrime3
		h = bits.RotateLeft32(h, 17) * xxhPrime4
	}
	for _, c := range b {
		h += uint32(c) * xxhPrime5
		h = bits.RotateLeft32(h, 11) * xxhPrime1
	}
	h ^= h >> 15
	h *= xxhPrime2
	h ^= h >> 13
	h *= xxhPrime3
	return h ^ h>>16
}
