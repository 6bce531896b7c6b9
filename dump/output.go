package dump

import (
	"context"
	"io"
)

// output gathers what goes to stdout and writes it in large pieces. buf may be appended to directly.
type output struct {
	w    io.Writer
	ctx  context.Context // ends the run, between two pieces
	buf  []byte
	text Charset
	err  error
}

const outputSize = 256 << 10

// spill writes what was gathered if it is much.
func (o *output) spill() {
	if len(o.buf) >= outputSize {
		o.flush()
	}
}

// flush writes what was gathered. After an error nothing is written any more.
func (o *output) flush() {
	if o.err == nil {
		o.err = o.ctx.Err()
	}
	if o.err == nil && len(o.buf) > 0 {
		_, o.err = o.w.Write(o.buf)
	}
	o.buf = o.buf[:0]
}

func (o *output) line(text string) {
	o.buf = append(o.buf, text...)
	o.buf = append(o.buf, '\n')
	o.spill()
}
