package index

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
)

// A time index entry, big-endian. Kafka: TimeIndex. Checked against Kafka's bytes by
// TestTimeIndex_KafkaWorkedExample.
//
//	pos size field
//	  0    8 timestamp       int64   ms; the largest in the segment up to that batch
//	  8    4 relativeOffset  int32   last offset of the batch that holds it, minus the segment's base offset
const (
	timeEntryTimestampPos = 0
	timeEntryOffsetPos    = 8
	timeEntrySize         = 12
)

// noTimestamp is what a batch without a timestamp carries, and the last timestamp of an empty index.
const noTimestamp = -1

// TimestampOffset is one entry: the batch that ends with Offset holds TimestampMs, the largest so far.
type TimestampOffset struct{ TimestampMs, Offset int64 }

// TimeIndex is the .timeindex file of one segment.
type TimeIndex struct {
	table
	baseOffset int64

	// owner
	maxEntries int
	last       TimestampOffset
	entries    int
}

// OpenTime opens the index at path, or makes an empty one. Arguments and errors are those of OpenOffset; a
// last timestamp that is not above the first is a zero tail too. Kafka: TimeIndex constructor, sanityCheck.
func OpenTime(path string, baseOffset int64, maxBytes int32) (*TimeIndex, error) {
	x := newTime(baseOffset, maxBytes)
	size, err := x.openTable(path, timeEntrySize, os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if size%timeEntrySize != 0 {
		return nil, fmt.Errorf("%s: %d bytes, no multiple of %d: %w", path, size, timeEntrySize, ErrCorruptIndex)
	}
	x.entries = x.written
	if x.entries == 0 {
		return x, nil
	}
	first, err := x.At(0)
	if err != nil {
		return nil, err
	}
	if x.last, err = x.At(x.entries - 1); err != nil {
		return nil, err
	}
	if first.TimestampMs < 0 || x.last.Offset < baseOffset ||
		x.entries > 1 && (x.last.TimestampMs <= first.TimestampMs || x.last.Offset <= first.Offset) {
		return nil, fmt.Errorf("%s: entries run from %d (offset %d) to %d (offset %d): %w",
			path, first.TimestampMs, first.Offset, x.last.TimestampMs, x.last.Offset, ErrCorruptIndex)
	}
	return x, nil
}

// CreateTime makes an empty index at path, whatever was there. Arguments are those of OpenOffset.
func CreateTime(path string, baseOffset int64, maxBytes int32) (*TimeIndex, error) {
	x := newTime(baseOffset, maxBytes)
	if _, err := x.openTable(path, timeEntrySize, os.O_CREATE|os.O_TRUNC); err != nil {
		return nil, err
	}
	return x, nil
}

func newTime(baseOffset int64, maxBytes int32) *TimeIndex {
	return &TimeIndex{
		baseOffset: baseOffset,
		maxEntries: int(maxBytes) / timeEntrySize,
		last:       TimestampOffset{TimestampMs: noTimestamp, Offset: baseOffset},
	}
}

// MaybeAppend adds an entry where timestampMs is above the last one's, and does nothing where it equals it.
// offset is the last offset of the batch that holds timestampMs. It is not in the file before Write.
//
// One slot stays free for the final entry that a roll or a close adds with skipFull; without it a full
// index is ErrFull. ErrOffsetOverflow and ErrOffsetsOutOfOrder change nothing. Owner only. Allocates nothing
// once the buffer has grown. Kafka: TimeIndex.maybeAppend.
func (x *TimeIndex) MaybeAppend(timestampMs, offset int64, skipFull bool) error {
	relative := offset - x.baseOffset
	switch {
	case !skipFull && x.IsFull() || x.entries >= x.maxEntries && timestampMs > x.last.TimestampMs:
		return fmt.Errorf("%s: %d entries: %w", x.path, x.entries, ErrFull)
	case x.entries > 0 && (offset < x.last.Offset || timestampMs < x.last.TimestampMs):
		return fmt.Errorf("%s: timestamp %d at offset %d after %d at %d: %w",
			x.path, timestampMs, offset, x.last.TimestampMs, x.last.Offset, ErrOffsetsOutOfOrder)
	case timestampMs <= x.last.TimestampMs:
		return nil
	case relative < 0 || relative > math.MaxInt32 || offset < x.baseOffset:
		return fmt.Errorf("%s: offset %d, base offset %d: %w", x.path, offset, x.baseOffset, ErrOffsetOverflow)
	}
	var entry [timeEntrySize]byte
	binary.BigEndian.PutUint64(entry[timeEntryTimestampPos:], uint64(timestampMs))
	binary.BigEndian.PutUint32(entry[timeEntryOffsetPos:], uint32(relative))
	if err := x.append(entry[:]); err != nil {
		return err
	}
	x.last = TimestampOffset{TimestampMs: timestampMs, Offset: offset}
	x.entries++
	return nil
}

// Lookup returns the entry with the largest timestamp that is at most timestampMs, or (-1, base offset) where
// there is none: no batch up to and including the one at that offset holds anything newer. Any goroutine.
// Kafka: TimeIndex.lookup.
func (x *TimeIndex) Lookup(timestampMs int64) (TimestampOffset, error) {
	var entry [timeEntrySize]byte
	i, err := x.floor(entry[:], timestampMs, timeKey)
	if err != nil || i < 0 {
		return TimestampOffset{TimestampMs: noTimestamp, Offset: x.baseOffset}, err
	}
	return x.decode(entry[:]), nil
}

func timeKey(entry []byte) int64 { return int64(binary.BigEndian.Uint64(entry)) }

func timeOffsetKey(entry []byte) int64 {
	return int64(int32(binary.BigEndian.Uint32(entry[timeEntryOffsetPos:])))
}

func (x *TimeIndex) decode(entry []byte) TimestampOffset {
	return TimestampOffset{TimestampMs: timeKey(entry), Offset: x.baseOffset + timeOffsetKey(entry)}
}

// Last returns the newest entry; where there is none it returns (-1, base offset) and false. Owner only.
func (x *TimeIndex) Last() (TimestampOffset, bool) { return x.last, x.entries > 0 }

// Entries returns the number of entries. Any goroutine.
func (x *TimeIndex) Entries() int { return x.count() }

// At returns entry i, counted from 0. Any goroutine.
func (x *TimeIndex) At(i int) (TimestampOffset, error) {
	var entry [timeEntrySize]byte
	if err := x.at(entry[:], i); err != nil {
		return TimestampOffset{}, err
	}
	return x.decode(entry[:]), nil
}

// IsFull says that the segment must be rolled before the next append. Owner only. Kafka: TimeIndex.isFull.
func (x *TimeIndex) IsFull() bool { return x.entries >= x.maxEntries-1 }

// SetMaxBytes changes the limit that IsFull goes by. Owner only.
func (x *TimeIndex) SetMaxBytes(maxBytes int32) { x.maxEntries = int(maxBytes) / timeEntrySize }

// Path returns the file's path. Any goroutine.
func (x *TimeIndex) Path() string { return x.path }

// TruncateTo drops every entry whose offset is at least offset. Owner only, no reader about.
// Kafka: TimeIndex.truncateTo.
func (x *TimeIndex) TruncateTo(offset int64) error {
	keep := 0
	if offset > x.baseOffset {
		var entry [timeEntrySize]byte
		i, err := x.floor(entry[:], offset-x.baseOffset-1, timeOffsetKey)
		if err != nil {
			return err
		}
		keep = i + 1
	}
	return x.cut(keep)
}

// DropLast drops the newest entry, where there is one: reopening a segment for append takes back the final
// entry that its close added, so that the index stays what a rebuild would make. Owner only.
func (x *TimeIndex) DropLast() error {
	if x.entries == 0 {
		return nil
	}
	return x.cut(x.entries - 1)
}

// Reset drops every entry. Owner only, no reader about. Kafka: TimeIndex.reset.
func (x *TimeIndex) Reset() error { return x.cut(0) }

func (x *TimeIndex) cut(keep int) error {
	if err := x.cutTo(keep); err != nil {
		return err
	}
	x.entries = keep
	if keep == 0 {
		x.last = TimestampOffset{TimestampMs: noTimestamp, Offset: x.baseOffset}
		return nil
	}
	last, err := x.At(keep - 1)
	x.last = last
	return err
}

// Write puts the entries appended since the last Write into the file. Owner only.
func (x *TimeIndex) Write() error { return x.write(0) }

// Sync makes what was written durable. Any one goroutine beside the owner. Kafka: AbstractIndex.flush.
func (x *TimeIndex) Sync() error { return x.sync() }

// Park writes what is buffered and closes the descriptor; the next use opens the file again. Owner only.
func (x *TimeIndex) Park() error { return x.park(0) }

// Close writes what is buffered and ends the use of the index. It does not sync. Owner only.
func (x *TimeIndex) Close() error { return x.close(0) }

// Check reads every entry and returns ErrCorruptIndex, with the entry's number, for one that does not rise
// above the entry before it. Any goroutine.
func (x *TimeIndex) Check() error {
	previous := TimestampOffset{TimestampMs: noTimestamp, Offset: x.baseOffset - 1}
	return x.each(0, func(i int, entry []byte) (bool, error) {
		e := x.decode(entry)
		if e.TimestampMs <= previous.TimestampMs || e.Offset <= previous.Offset {
			return false, fmt.Errorf("%s: entry %d is timestamp %d at offset %d, after %d at %d: %w",
				x.path, i, e.TimestampMs, e.Offset, previous.TimestampMs, previous.Offset, ErrCorruptIndex)
		}
		previous = e
		return true, nil
	})
}

// AppendTimeEntry appends the 12 bytes of e, in a segment that starts at baseOffset, to dst.
func AppendTimeEntry(dst []byte, baseOffset int64, e TimestampOffset) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.TimestampMs))
	return binary.BigEndian.AppendUint32(dst, uint32(e.Offset-baseOffset))
}

// DecodeTimeEntry reads the entry at the start of b, which holds at least 12 bytes, as it stands.
func DecodeTimeEntry(b []byte, baseOffset int64) TimestampOffset {
	return TimestampOffset{TimestampMs: timeKey(b), Offset: baseOffset + timeOffsetKey(b)}
}
