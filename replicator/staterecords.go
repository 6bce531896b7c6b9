package replicator

import (
	"encoding/binary"
	"fmt"

	"segmirror/segment"
)

const batchHeaderSize = 61

// eachRecord walks the records of an uncompressed v2 batch. key and value die with use; a nil value is a null one.
func eachRecord(batch segment.Batch, use func(key, value []byte) error) error {
	if batch.Codec() != 0 {
		return fmt.Errorf("%w: batch at offset %d is compressed", ErrStateRecord, batch.BaseOffset())
	}
	r := varintReader{b: batch[batchHeaderSize:]}
	for range batch.RecordsCount() {
		body := varintReader{b: r.bytes(r.varint())}
		body.bytes(1) // attributes
		body.varint() // timestamp delta
		body.varint() // offset delta
		key := body.bytes(body.varint())
		value := body.bytes(body.varint())
		if r.bad || body.bad {
			return fmt.Errorf("%w: batch at offset %d has a record that does not fit", ErrStateRecord, batch.BaseOffset())
		}
		if err := use(key, value); err != nil {
			return err
		}
	}
	return nil
}

// varintReader reads Kafka's zigzag varints and what they count.
type varintReader struct {
	b   []byte
	bad bool
}

func (r *varintReader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// bytes takes n bytes; -1 is null.
func (r *varintReader) bytes(n int64) []byte {
	if r.bad || n < -1 || n > int64(len(r.b)) {
		r.bad = true
		return nil
	}
	if n == -1 {
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	if out == nil {
		out = []byte{}
	}
	return out
}
