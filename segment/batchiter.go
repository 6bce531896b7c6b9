package segment

import "errors"

// errPartial says that the bytes end before the batch does.
var errPartial = errors.New("batch is cut off")

// BatchIterator walks the whole batches in a []byte, in place. Framing is checked; CRCs on request.
//
//	it := segment.NewBatchIterator(b)
//	for it.Next() { use it.Batch() }
//	if err := it.Err(); err != nil { ... }  // it.Pos() is where the bad batch begins
//
// Kafka: ByteBufferLogInputStream.
type BatchIterator struct {
	buf   []byte
	pos   int
	batch Batch
	err   error
}

// NewBatchIterator starts at the beginning of buf, which it borrows.
func NewBatchIterator(buf []byte) BatchIterator { return BatchIterator{buf: buf} }

// Next steps to the next whole batch; false at the end, at a partial last batch, or on an error.
func (it *BatchIterator) Next() bool {
	it.pos += len(it.batch)
	it.batch = nil
	if it.err != nil {
		return false
	}
	size, err := frame(it.buf[it.pos:])
	if err != nil {
		if !errors.Is(err, errPartial) {
			it.err = err
		}
		return false
	}
	it.batch = Batch(it.buf[it.pos : it.pos+int(size) : it.pos+int(size)])
	return true
}

// Batch is the current batch, valid as long as the buffer is.
func (it *BatchIterator) Batch() Batch { return it.batch }

// Pos is the byte position of the current batch; after the end, of the first byte not walked.
func (it *BatchIterator) Pos() int { return it.pos }

// Err is ErrCorruptBatch with its reason when the bytes at Pos are no batch; a partial last batch is no error.
func (it *BatchIterator) Err() error { return it.err }

// Validate checks the current batch's header fields and CRC: ErrCorruptBatch with the reason.
// Kafka: DefaultRecordBatch.ensureValid.
func (b Batch) Validate() error { return b.validate() }
