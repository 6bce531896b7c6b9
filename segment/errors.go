package segment

import (
	"errors"
	"fmt"
)

// What a Log's methods answer; compared with errors.Is.
var (
	// ErrCorruptBatch is a batch whose length, magic, header fields or CRC cannot be right.
	ErrCorruptBatch = errors.New("corrupt batch")
	// ErrOffsetsOutOfOrder is a batch that begins at or below the last offset before it.
	ErrOffsetsOutOfOrder = errors.New("offsets out of order")
	// ErrMalformedMarker is a control batch of a producer whose transaction marker cannot be read.
	ErrMalformedMarker = errors.New("malformed transaction marker")
	// ErrOffsetOutOfRange is an offset outside [log start, log end].
	ErrOffsetOutOfRange = errors.New("offset out of range")
	// ErrNoSpace means that room for an append could not be reserved; the log is unchanged and stays good.
	ErrNoSpace = errors.New("no space left to reserve")
	// ErrLogFailed marks a log whose write, sync or map failed: close it and open it again, which recovers.
	ErrLogFailed = errors.New("log failed, reopen it")
	// ErrRead wraps an error of the reader given to AppendFrom.
	ErrRead = errors.New("reading records")
	// ErrLogClosed is a use after Close.
	ErrLogClosed = errors.New("log is closed")
	// ErrMapFault is a fault while touching a mapped file: cut by someone else, or unreadable.
	ErrMapFault = errors.New("fault in a mapped file")
	// ErrSourceMismatch means that a log is bound to another source than the one named.
	ErrSourceMismatch = errors.New("log belongs to another source")
	// ErrNotTail is a Commit of more bytes than Tail lent.
	ErrNotTail = errors.New("more bytes than the lent tail holds")
)

// CorruptError says which bytes were refused, and why.
//
// Pos is the byte position in File at which the refused batch begins (for an append: where it would have begun),
// Offset the log offset it was expected at or above. Err is one of this package's or psm's sentinels, with details.
type CorruptError struct {
	TopicPartition TopicPartition
	File           string
	Pos            int64
	Offset         int64
	Err            error
}

// Error names topic-partition, offset, file and position.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s: batch at offset %d (%s, pos %d): %v", e.TopicPartition, e.Offset, e.File, e.Pos, e.Err)
}

// Unwrap gives the cause.
func (e *CorruptError) Unwrap() error { return e.Err }
