package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

// A transaction index entry, big-endian. Kafka: AbortedTxn. Checked against Kafka's bytes by
// TestTransactionIndex_KafkaWorkedExample.
//
//	pos size field
//	  0    2 version           int16   0
//	  2    8 producerId        int64
//	 10    8 firstOffset       int64   first offset of the transaction in this partition
//	 18    8 lastOffset        int64   offset of its ABORT marker
//	 26    8 lastStableOffset  int64   first offset of the earliest other open transaction, else lastOffset+1
const (
	txnEntryVersionPos          = 0
	txnEntryProducerIDPos       = 2
	txnEntryFirstOffsetPos      = 10
	txnEntryLastOffsetPos       = 18
	txnEntryLastStableOffsetPos = 26
	txnEntrySize                = 34

	txnVersion = 0
)

// AbortedTxn is one aborted transaction: the offset of its first record in the partition, of its ABORT
// marker, and the log's last stable offset once the marker was applied.
type AbortedTxn struct {
	ProducerID       int64
	FirstOffset      int64
	LastOffset       int64
	LastStableOffset int64
}

// TransactionIndex is the .txnindex file of one segment. The file is absent until the first entry.
type TransactionIndex struct {
	table
	startOffset int64

	// owner
	lastOffset int64
	entries    int
}

// OpenTransaction opens the index at path of the segment that starts at startOffset. No file is made.
//
// A fragment behind the last whole entry is cut off, so that the next entry does not land behind it.
// ErrUnknownVersion and ErrCorruptIndex (an entry below startOffset, or not above the one before it, or one
// that ends before it begins) refuse the file; CreateTransaction starts anew. No descriptor is kept.
// Kafka: TransactionIndex constructor and sanityCheck.
func OpenTransaction(path string, startOffset int64) (*TransactionIndex, error) {
	x := &TransactionIndex{startOffset: startOffset, lastOffset: -1}
	x.path, x.entrySize = path, txnEntrySize
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return x, nil
	}
	size, err := x.openTable(path, txnEntrySize, 0)
	if err != nil {
		return nil, err
	}
	if err := x.Check(); err != nil {
		return nil, err
	}
	if x.entries = x.written; x.entries > 0 {
		last, err := x.At(x.entries - 1)
		if err != nil {
			return nil, err
		}
		x.lastOffset = last.LastOffset
	}
	if size%txnEntrySize != 0 {
		err := os.Truncate(path, size-size%txnEntrySize)
		x.content.changed()
		return x, err
	}
	return x, nil
}

// CreateTransaction returns the empty index at path, removing the file where there is one.
func CreateTransaction(path string, startOffset int64) (*TransactionIndex, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return OpenTransaction(path, startOffset)
}

// Append adds t. It is not in the file before Write. ErrOffsetsOutOfOrder (a lastOffset not above the last
// entry's, below the segment's start, or below the transaction's own first offset) changes nothing. Owner
// only. Kafka: TransactionIndex.append.
func (x *TransactionIndex) Append(t AbortedTxn) error {
	if t.LastOffset <= x.lastOffset || t.LastOffset < x.startOffset || t.FirstOffset >= t.LastOffset {
		return fmt.Errorf("%s: aborted transaction %d..%d of producer %d after marker %d: %w",
			x.path, t.FirstOffset, t.LastOffset, t.ProducerID, x.lastOffset, ErrOffsetsOutOfOrder)
	}
	var entry [txnEntrySize]byte
	if err := x.append(AppendAbortedTxn(entry[:0], t)); err != nil {
		return err
	}
	x.lastOffset = t.LastOffset
	x.entries++
	return nil
}

// Collect returns, in file order, the transactions that a read of [fetchOffset, upperBound) has to know:
// those whose marker is at or after fetchOffset and whose first record is below upperBound. complete says
// that no later segment can hold more of them. Any goroutine. Kafka: TransactionIndex.collectAbortedTxns.
func (x *TransactionIndex) Collect(fetchOffset, upperBound int64) (found []AbortedTxn, complete bool, err error) {
	err = x.each(0, func(_ int, entry []byte) (bool, error) {
		t := decodeAbortedTxn(entry)
		if t.LastOffset >= fetchOffset && t.FirstOffset < upperBound {
			found = append(found, t)
		}
		complete = t.LastStableOffset >= upperBound
		return !complete, nil
	})
	return found, complete, err
}

// All returns every entry. Any goroutine.
func (x *TransactionIndex) All() ([]AbortedTxn, error) {
	var all []AbortedTxn
	err := x.each(0, func(_ int, entry []byte) (bool, error) {
		all = append(all, decodeAbortedTxn(entry))
		return true, nil
	})
	return all, err
}

// Entries returns the number of entries. Any goroutine.
func (x *TransactionIndex) Entries() int { return x.count() }

// At returns entry i, counted from 0. Any goroutine.
func (x *TransactionIndex) At(i int) (AbortedTxn, error) {
	var entry [txnEntrySize]byte
	if err := x.at(entry[:], i); err != nil {
		return AbortedTxn{}, err
	}
	return decodeAbortedTxn(entry[:]), nil
}

// Path returns the file's path. Any goroutine.
func (x *TransactionIndex) Path() string { return x.path }

// TruncateTo drops every entry from the first on whose marker is at or after offset. Owner only, no reader
// about. Kafka: TransactionIndex.truncateTo.
func (x *TransactionIndex) TruncateTo(offset int64) error {
	var entry [txnEntrySize]byte
	if offset <= x.startOffset {
		return x.cut(0)
	}
	i, err := x.floor(entry[:], offset-1, txnKey)
	if err != nil {
		return err
	}
	return x.cut(i + 1)
}

func txnKey(entry []byte) int64 {
	return int64(binary.BigEndian.Uint64(entry[txnEntryLastOffsetPos:]))
}

// Reset drops every entry. Owner only, no reader about. Kafka: TransactionIndex.reset.
func (x *TransactionIndex) Reset() error { return x.cut(0) }

func (x *TransactionIndex) cut(keep int) error {
	if err := x.cutTo(keep); err != nil {
		return err
	}
	x.entries, x.lastOffset = keep, -1
	if keep == 0 {
		return nil
	}
	last, err := x.At(keep - 1)
	x.lastOffset = last.LastOffset
	return err
}

// Write puts the entries appended since the last Write into the file, making it where it is absent. Owner
// only.
func (x *TransactionIndex) Write() error {
	if !x.isNew() {
		return x.write(0)
	}
	err := x.write(os.O_CREATE)
	x.name.changed()
	return err
}

// isNew says that no entry was ever written, so that the file may be absent. A file that had entries and is
// gone is not made again: somebody removed it under us.
func (x *TransactionIndex) isNew() bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.written == 0 && len(x.buf) > 0
}

// Sync makes what was written durable. Any one goroutine beside the owner. Kafka: TransactionIndex.flush.
func (x *TransactionIndex) Sync() error { return x.sync() }

// Park writes what is buffered and closes the descriptor; the next use opens the file again. Owner only.
func (x *TransactionIndex) Park() error { return errors.Join(x.Write(), x.park(0)) }

// Close writes what is buffered and ends the use of the index. It does not sync. Owner only.
func (x *TransactionIndex) Close() error { return errors.Join(x.Write(), x.close(0)) }

// Check reads every entry and returns ErrUnknownVersion or ErrCorruptIndex, with the entry's number, for the
// first that cannot be. Any goroutine.
func (x *TransactionIndex) Check() error {
	previous := x.startOffset - 1
	return x.each(0, func(i int, entry []byte) (bool, error) {
		t, err := DecodeAbortedTxn(entry)
		if err == nil && (t.LastOffset <= previous || t.FirstOffset < 0 || t.FirstOffset >= t.LastOffset) {
			err = fmt.Errorf("transaction %d..%d after marker %d: %w", t.FirstOffset, t.LastOffset, previous, ErrCorruptIndex)
		}
		if err != nil {
			return false, fmt.Errorf("%s: entry %d: %w", x.path, i, err)
		}
		previous = t.LastOffset
		return true, nil
	})
}

// AppendAbortedTxn appends the 34 bytes of t to dst.
func AppendAbortedTxn(dst []byte, t AbortedTxn) []byte {
	dst = binary.BigEndian.AppendUint16(dst, txnVersion)
	dst = binary.BigEndian.AppendUint64(dst, uint64(t.ProducerID))
	dst = binary.BigEndian.AppendUint64(dst, uint64(t.FirstOffset))
	dst = binary.BigEndian.AppendUint64(dst, uint64(t.LastOffset))
	return binary.BigEndian.AppendUint64(dst, uint64(t.LastStableOffset))
}

// DecodeAbortedTxn reads the entry at the start of b. Fewer than 34 bytes are ErrCorruptIndex, a version
// other than 0 is ErrUnknownVersion.
func DecodeAbortedTxn(b []byte) (AbortedTxn, error) {
	if len(b) < txnEntrySize {
		return AbortedTxn{}, fmt.Errorf("%d bytes of %d: %w", len(b), txnEntrySize, ErrCorruptIndex)
	}
	if version := binary.BigEndian.Uint16(b[txnEntryVersionPos:]); version != txnVersion {
		return AbortedTxn{}, fmt.Errorf("version %d: %w", int16(version), ErrUnknownVersion)
	}
	return decodeAbortedTxn(b), nil
}

func decodeAbortedTxn(b []byte) AbortedTxn {
	return AbortedTxn{
		ProducerID:       int64(binary.BigEndian.Uint64(b[txnEntryProducerIDPos:])),
		FirstOffset:      int64(binary.BigEndian.Uint64(b[txnEntryFirstOffsetPos:])),
		LastOffset:       int64(binary.BigEndian.Uint64(b[txnEntryLastOffsetPos:])),
		LastStableOffset: int64(binary.BigEndian.Uint64(b[txnEntryLastStableOffsetPos:])),
	}
}
