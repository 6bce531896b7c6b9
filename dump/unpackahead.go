package dump

import "segmirror/segment"

// unpackAhead decompresses the next batch while the one before it is printed. Decompressing takes about as long as
// printing.
//
// Its goroutine works on one batch at a time, which close and take wait for. Two decompressors take turns, because what
// one made is in use until the batch is printed.
type unpackAhead struct {
	pair [2]*segment.Decompressor
	next int // the decompressor that works next

	pending bool
	pos     int64 // of the batch that is decompressed
	src     []byte
	done    chan unpacked
}

func newUnpackAhead(limit int) *unpackAhead {
	return &unpackAhead{
		pair: [2]*segment.Decompressor{segment.NewDecompressor(limit), segment.NewDecompressor(limit)},
		done: make(chan unpacked, 1),
	}
}

// begin starts with the batch at pos, a whole v2 batch, which is copied.
func (u *unpackAhead) begin(pos int64, full segment.Batch) {
	u.wait()
	d := u.pair[u.next]
	u.next = 1 - u.next
	u.pending, u.pos = true, pos
	u.src = append(u.src[:0], full.Records()...)
	codec, magic, src := full.Codec(), full.Magic(), u.src
	go func() { // ends by itself; wait waits for it
		u.done <- unpack(d, codec, magic, src)
	}()
}

// take returns the records of the batch at pos, decompressed ahead or now, valid until the call after the next.
func (u *unpackAhead) take(pos int64, full segment.Batch) unpacked {
	if u.pending && u.pos == pos {
		return u.wait()
	}
	u.wait()
	d := u.pair[u.next]
	u.next = 1 - u.next
	return unpack(d, full.Codec(), full.Magic(), full.Records())
}

// wait ends what was begun.
func (u *unpackAhead) wait() unpacked {
	if !u.pending {
		return unpacked{}
	}
	u.pending = false
	return <-u.done
}

func (u *unpackAhead) close() {
	u.wait()
	for _, d := range u.pair {
		d.Close()
	}
}
