package index

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
)

// An offset index entry, big-endian. Kafka: OffsetIndex. Checked against Kafka's bytes by
// TestOffsetIndex_KafkaWorkedExample.
//
//	pos size field
//	  0    4 relativeOffset  int32   last offset of the batch, minus the segment's base offset
//	  4    4 position        int32   byte position at which that batch starts in the .log file
const (
	offsetEntryOffsetPos = 0
	offsetEntryPosPos    = 4
	offsetEntrySize      = 8
)

// OffsetPosition is one entry: the batch that starts at byte Pos of the .log file ends with Offset.
type OffsetPosition struct{ Offset, Pos int64 }

// OffsetIndex is the .index file of one segment.
type OffsetIndex struct {
	table
	baseOffset int64

	// owner
	maxEntries int
	last       OffsetPosition
	entries    int
}

// OpenOffset opens the index at path, or makes an empty one, for the segment that starts at baseOffset.
//
// maxBytes is segment.index.bytes and decides only when the index counts as full. ErrCorruptIndex is
// returned for a length that is no multiple of 8, an entry below baseOffset, and a zero tail; CreateOffset
// then starts anew. The order of all entries is not looked at: see Check. No descriptor is kept.
// Kafka: OffsetIndex constructor and sanityCheck.
func OpenOffset(path string, baseOffset int64, maxBytes int32) (*OffsetIndex, error) {
	x := &OffsetIndex{baseOffset: baseOffset, maxEntries: int(maxBytes) / offsetEntrySize}
	size, err := x.openTable(path, offsetEntrySize, os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if size%offsetEntrySize != 0 {
		return nil, fmt.Errorf("%s: %d bytes, no multiple of %d: %w", path, size, offsetEntrySize, ErrCorruptIndex)
	}
	x.entries = x.written
	if x.entries == 0 {
		return x, nil
	}
	if x.last, err = x.At(x.entries - 1); err != nil {
		return nil, err
	}
	// The first batch of a segment never has an entry, so position 0 can only be a preallocated tail.
	if x.last.Pos <= 0 || x.last.Offset < baseOffset {
		return nil, fmt.Errorf("%s: last of %d entries is offset %d at position %d: %w",
			path, x.entries, x.last.Offset, x.last.Pos, ErrCorruptIndex)
	}
	return x, nil
}

// CreateOffset makes an empty index at path, whatever was there. Arguments are those of OpenOffset.
func CreateOffset(path string, baseOffset int64, maxBytes int32) (*OffsetIndex, error) {
	x := &OffsetIndex{baseOffset: baseOffset, maxEntries: int(maxBytes) / offsetEntrySize}
	if _, err := x.openTable(path, offsetEntrySize, os.O_CREATE|os.O_TRUNC); err != nil {
		return nil, err
	}
	return x, nil
}

// Append adds the entry of the batch that starts at byte pos and ends with offset. It is not in the file
// before Write.
//
// ErrFull, ErrOffsetOverflow and ErrOffsetsOutOfOrder change nothing. Owner only. Allocates nothing once
// the buffer has grown. Kafka: OffsetIndex.append.
func (x *OffsetIndex) Append(offset, pos int64) error {
	relative := offset - x.baseOffset
	switch {
	case x.IsFull():
		return fmt.Errorf("%s: %d entries: %w", x.path, x.entries, ErrFull)
	case relative < 0 || relative > math.MaxInt32 || offset < x.baseOffset || pos < 0 || pos > math.MaxInt32:
		return fmt.Errorf("%s: offset %d at position %d, base offset %d: %w",
			x.path, offset, pos, x.baseOffset, ErrOffsetOverflow)
	case x.entries > 0 && (offset <= x.last.Offset || pos <= x.last.Pos):
		return fmt.Errorf("%s: offset %d at position %d after offset %d at position %d: %w",
			x.path, offset, pos, x.last.Offset, x.last.Pos, ErrOffsetsOutOfOrder)
	}
	var entry [offsetEntrySize]byte
	binary.BigEndian.PutUint32(entry[offsetEntryOffsetPos:], uint32(relative))
	binary.BigEndian.PutUint32(entry[offsetEntryPosPos:], uint32(pos))
	if err := x.append(entry[:]); err != nil {
		return err
	}
	x.last = OffsetPosition{Offset: offset, Pos: pos}
	x.entries++
	return nil
}

// Lookup returns the entry with the largest offset that is at most offset, or the segment's start (its base
// offset at position 0) where there is none. Any goroutine. Kafka: OffsetIndex.lookup.
func (x *OffsetIndex) Lookup(offset int64) (OffsetPosition, error) {
	start := OffsetPosition{Offset: x.baseOffset}
	if offset < x.baseOffset {
		return start, nil
	}
	var entry [offsetEntrySize]byte
	i, err := x.floor(entry[:], offset-x.baseOffset, offsetKey)
	if err != nil || i < 0 {
		return start, err
	}
	return x.decode(entry[:]), nil
}

// LookupPos returns the first entry whose position is at least pos, and false where there is none: the
// upper bound of what a read of the bytes before pos can hold. Any goroutine.
// Kafka: OffsetIndex.fetchUpperBoundOffset.
func (x *OffsetIndex) LookupPos(pos int64) (OffsetPosition, bool, error) {
	var entry [offsetEntrySize]byte
	i, err := x.floor(entry[:], pos-1, posKey)
	if err != nil || i+1 >= x.count() {
		return OffsetPosition{}, false, err
	}
	found, err := x.At(i + 1)
	return found, err == nil, err
}

func offsetKey(entry []byte) int64 { return int64(int32(binary.BigEndian.Uint32(entry))) }

func posKey(entry []byte) int64 {
	return int64(int32(binary.BigEndian.Uint32(entry[offsetEntryPosPos:])))
}

func (x *OffsetIndex) decode(entry []byte) OffsetPosition {
	return OffsetPosition{Offset: x.baseOffset + offsetKey(entry), Pos: posKey(entry)}
}

// Last returns the newest entry, and false where there is none. Owner only.
func (x *OffsetIndex) Last() (OffsetPosition, bool) { return x.last, x.entries > 0 }

// Entries returns the number of entries. Any goroutine.
func (x *OffsetIndex) Entries() int { return x.count() }

// At returns entry i, counted from 0. Any goroutine.
func (x *OffsetIndex) At(i int) (OffsetPosition, error) {
	var entry [offsetEntrySize]byte
	if err := x.at(entry[:], i); err != nil {
		return OffsetPosition{}, err
	}
	return x.decode(entry[:]), nil
}

// IsFull says that the segment must be rolled before the next append. Owner only. Kafka: AbstractIndex.isFull.
func (x *OffsetIndex) IsFull() bool { return x.entries >= x.maxEntries }

// SetMaxBytes changes the limit that IsFull goes by. Owner only.
func (x *OffsetIndex) SetMaxBytes(maxBytes int32) { x.maxEntries = int(maxBytes) / offsetEntrySize }

// Path returns the file's path. Any goroutine.
func (x *OffsetIndex) Path() string { return x.path }

// TruncateTo drops every entry whose offset is at least offset. Owner only, no reader about.
// Kafka: OffsetIndex.truncateTo.
func (x *OffsetIndex) TruncateTo(offset int64) error {
	keep := 0
	if offset > x.baseOffset {
		var entry [offsetEntrySize]byte
		i, err := x.floor(entry[:], offset-x.baseOffset-1, offsetKey)
		if err != nil {
			return err
		}
		keep = i + 1
	}
	return x.cut(keep)
}

// Reset drops every entry. Owner only, no reader about. Kafka: OffsetIndex.reset.
func (x *OffsetIndex) Reset() error { return x.cut(0) }

func (x *OffsetIndex) cut(keep int) error {
	if err := x.cutTo(keep); err != nil {
		return err
	}
	x.entries = keep
	if keep == 0 {
		x.last = OffsetPosition{}
		return nil
	}
	last, err := x.At(keep - 1)
	x.last = last
	return err
}

// Write puts the entries appended since the last Write into the file. Owner only.
func (x *OffsetIndex) Write() error { return x.write(0) }

// Sync makes what was written durable. Any one goroutine beside the owner. Kafka: AbstractIndex.flush.
func (x *OffsetIndex) Sync() error { return x.sync() }

// Park writes what is buffered and closes the descriptor; the next use opens the file again. Owner only.
func (x *OffsetIndex) Park() error { return x.park(0) }

// Close writes what is buffered and ends the use of the index. It does not sync. Owner only.
func (x *OffsetIndex) Close() error { return x.close(0) }

// Check reads every entry and returns ErrCorruptIndex, with the entry's number, for one that does not rise
// above the entry before it. Any goroutine.
func (x *OffsetIndex) Check() error {
	previous := OffsetPosition{Offset: x.baseOffset - 1, Pos: 0}
	return x.each(0, func(i int, entry []byte) (bool, error) {
		e := x.decode(entry)
		if e.Offset <= previous.Offset || e.Pos <= previous.Pos {
			return false, fmt.Errorf("%s: entry %d is offset %d at position %d, after offset %d at position %d: %w",
				x.path, i, e.Offset, e.Pos, previous.Offset, previous.Pos, ErrCorruptIndex)
		}
		previous = e
		return true, nil
	})
}

// AppendOffsetEntry appends the 8 bytes of e, in a segment that starts at baseOffset, to dst.
func AppendOffsetEntry(dst []byte, baseOffset int64, e OffsetPosition) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(e.Offset-baseOffset))
	return binary.BigEndian.AppendUint32(dst, uint32(e.Pos))
}

// DecodeOffsetEntry reads the entry at the start of b, which holds at least 8 bytes, as it stands: an offset
// below baseOffset or a position below 0 is the reader's to judge.
func DecodeOffsetEntry(b []byte, baseOffset int64) OffsetPosition {
	return OffsetPosition{Offset: baseOffset + offsetKey(b), Pos: posKey(b)}
}
