package dump

import (
	"fmt"
	"math"
	"os"

	"segmirror/segment"
)

// What Kafka's reader of a log needs of the bytes. Kafka: Records, LegacyRecord, DefaultRecordBatch.
const (
	logOverhead     = 12 // offset and size, which the size does not count
	headerUpToMagic = 17
	batchOverhead   = 61
	minRecordSize   = 14
	legacyHeaderV0  = 6
	legacyHeaderV1  = 14
	sizePos         = 8
	magicPos        = 16
	attributesPos   = 21
	classEOF        = "java.io.EOFException"
)

// logFile is a .log file as Kafka opens it: a file's name as it is shown, and its bytes.
type logFile struct {
	name string
	window
}

// openLog opens a log. Kafka: FileRecords.open.
func openLog(name string) (*logFile, *Exception) {
	f, err := os.Open(name)
	if err != nil {
		return nil, throwOpen(name, err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, throwOpen(name, err)
	}
	if info.Size() > math.MaxInt32 {
		f.Close()
		return nil, throwf(classKafka, "The size of segment %s (%d) is larger than the maximum allowed segment size of %d",
			name, info.Size(), math.MaxInt32)
	}
	l := &logFile{name: name}
	l.f, l.size = f, info.Size()
	return l, nil
}

func (l *logFile) close() { l.f.Close() }

// slice is a range of a log's bytes. Kafka: a FileRecords that is a slice.
type slice struct {
	log        *logFile
	start, end int64
}

// slice returns up to size bytes from position on. Kafka: FileRecords.slice.
func (l *logFile) slice(position, size int32) (slice, *Exception) {
	all := fmt.Sprintf("FileRecords(size=%d, file=%s, start=0, end=%d)", l.size, l.name, math.MaxInt32)
	switch {
	case position < 0:
		return slice{}, throwf(classIllegalArgument, "Invalid position: %d in read from %s", position, all)
	case int64(position) > l.size:
		return slice{}, throwf(classIllegalArgument, "Slice from position %d exceeds end position of %s", position, all)
	case size < 0:
		return slice{}, throwf(classIllegalArgument, "Invalid size: %d in read from %s", size, all)
	}
	return slice{log: l, start: int64(position), end: min(int64(position)+int64(size), l.size)}, nil
}

func (s slice) String() string {
	return fmt.Sprintf("FileRecords(size=%d, file=%s, start=%d, end=%d)", s.end-s.start, s.log.name, s.start, s.end)
}

// batch is a batch of a slice of which only the prefix was read. Kafka: FileLogInputStream.FileChannelRecordBatch.
type batch struct {
	in     slice
	pos    int64
	offset int64
	size   int32 // as stored
	magic  int8
}

// total is the number of bytes of the batch.
func (b *batch) total() int64 { return int64(b.size) + logOverhead }

// next reads the prefix of the batch at pos; false at the slice's end, where a batch that is not whole counts as
// none. Kafka: FileLogInputStream.nextBatch.
func (s slice) next(pos int64) (batch, bool, *Exception) {
	if pos >= s.end-headerUpToMagic {
		return batch{}, false, nil
	}
	prefix, thrown := s.read(pos, headerUpToMagic, "log header")
	if thrown != nil {
		return batch{}, false, thrown
	}
	b := batch{in: s, pos: pos, offset: int64be(prefix), size: int32be(prefix[sizePos:]), magic: int8(prefix[magicPos])}
	if b.size < minRecordSize {
		return b, false, throwf(classCorruptRecord,
			"Found record size %d smaller than minimum record overhead (%d) in file %s.", b.size, minRecordSize, s.log.name)
	}
	if pos > s.end-b.total() {
		return b, false, nil
	}
	return b, true, nil
}

// read returns exactly n bytes at pos of the file, which may lie behind the slice.
func (s slice) read(pos, n int64, what string) ([]byte, *Exception) {
	b, err := s.log.at(pos, n)
	if err == nil && int64(len(b)) == n {
		return b, nil
	}
	if err == nil {
		err = fmt.Errorf("%s of %d bytes at position %d where the file has %d: it changed while it was read",
			what, n, pos, len(b))
	}
	if what == "log header" {
		return nil, throwf(classKafka, "%s: %s", classEOF, err)
	}
	return nil, throwf(classKafka, "Failed to load record batch at position %d from %s", pos, s)
}

// header returns the batch's header. A batch may be shorter than it, and may have an unknown format.
func (b *batch) header() (segment.Batch, *Exception) {
	n := int64(batchOverhead)
	switch {
	case b.magic >= 2:
	case b.magic == 1:
		n = logOverhead + legacyHeaderV1
	case b.magic == 0:
		n = logOverhead + legacyHeaderV0
	default:
		return nil, throwf(classIllegalArgument, "Invalid magic used in LegacyRecord: %d", b.magic)
	}
	header, thrown := b.in.read(b.pos, n, "record batch header")
	return segment.Batch(header), thrown
}

// full returns all of the batch.
func (b *batch) full() (segment.Batch, *Exception) {
	all, thrown := b.in.read(b.pos, b.total(), "full record batch")
	return segment.Batch(all), thrown
}

// lastOffset is the last offset the batch stands for.
func (b *batch) lastOffset() (int64, *Exception) {
	if b.magic < 2 {
		return b.offset, nil
	}
	header, thrown := b.header()
	if thrown != nil {
		return 0, thrown
	}
	return header.LastOffset(), nil
}

// valid says whether the sum in the batch is that of its bytes.
func valid(full segment.Batch) bool {
	if full.Magic() >= 2 && len(full) < batchOverhead {
		return false
	}
	return full.CRC() == full.ComputeCRC()
}
