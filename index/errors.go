package index

import "errors"

var (
	// ErrCorruptIndex says that a file's bytes cannot be an index of its segment: rebuild it from the log.
	ErrCorruptIndex = errors.New("corrupt index")
	// ErrOffsetOverflow says that an offset or a position does not fit the 31 bits an entry has for it: the
	// segment must be rolled before the append.
	ErrOffsetOverflow = errors.New("offset does not fit the index")
	// ErrOffsetsOutOfOrder says that an entry does not rise above the last one.
	ErrOffsetsOutOfOrder = errors.New("index entries out of order")
	// ErrFull says that an index has all the entries its size limit allows: the segment must be rolled.
	ErrFull = errors.New("index full")
	// ErrUnknownVersion says that a transaction index entry has a version this package does not know. It
	// is neither read nor appended to.
	ErrUnknownVersion = errors.New("unknown transaction index version")
	// ErrClosed says that the index was closed.
	ErrClosed = errors.New("index closed")
)
