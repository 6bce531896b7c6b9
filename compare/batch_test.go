package compare

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"
)

// batch builds an intact batch of n records whose records are the given bytes.
func batch(base int64, n, epoch int32, records string) Batch {
	b := make(Batch, headerSize, headerSize+len(records))
	b = append(b, records...)
	binary.BigEndian.PutUint64(b, uint64(base))
	binary.BigEndian.PutUint32(b[posLength:], uint32(len(b)-overhead))
	binary.BigEndian.PutUint32(b[posEpoch:], uint32(epoch))
	b[posMagic] = 2
	binary.BigEndian.PutUint32(b[posLastOffsetDelta:], uint32(n-1))
	binary.BigEndian.PutUint32(b[posRecordsCount:], uint32(n))
	return seal(b)
}

// seal sets the CRC.
func seal(b Batch) Batch {
	binary.BigEndian.PutUint32(b[posCRC:], crc32.Checksum(b[posAttributes:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// writeDir makes a partition directory: each segment is its batches, named by the first one's base offset.
func writeDir(t *testing.T, segments ...[]Batch) string {
	t.Helper()
	dir := t.TempDir()
	for _, batches := range segments {
		var body []byte
		for _, b := range batches {
			body = append(body, b...)
		}
		writeSegment(t, dir, batches[0].BaseOffset(), body)
	}
	return dir
}

func writeSegment(t *testing.T, dir string, base int64, body []byte) {
	t.Helper()
	name := filepath.Join(dir, segmentName(base))
	if err := os.WriteFile(name, body, 0o600); err != nil {
		t.Fatal(err)
	}
}

func segmentName(base int64) string {
	digits := []byte("00000000000000000000.log")
	for i := 19; base > 0; i-- {
		digits[i] = byte('0' + base%10)
		base /= 10
	}
	return string(digits)
}
