package segment

import (
	"errors"
	"fmt"
	"math"

	"segmirror/psm"
)

// rebuild is the scan of one segment in recovery.
type rebuild struct {
	ld       *loader
	s        *Segment
	x        *indexSet
	f        file
	nextBase int64
	pos      int64
	zeros    bool  // nothing but zeros behind pos
	why      error // why the scan ended before the file, nil when it did not
	meta     batchMeta
}

// scan takes batch after batch until one does not hold.
func (r *rebuild) scan(b []byte) error {
	for r.pos < int64(len(b)) {
		size, err := frame(b[r.pos:])
		if errors.Is(err, errPartial) {
			err = fmt.Errorf("%w: %d bytes, %d to the end of the file", errPartial, size, int64(len(b))-r.pos)
		}
		if err == nil {
			err = r.take(Batch(b[r.pos : r.pos+size]))
		}
		if err != nil {
			r.why = err
			r.zeros = allZero(b[r.pos:])
			return r.fatal(err)
		}
		r.pos += size
	}
	return nil
}

// fatal passes on what is no fault of the batch.
func (r *rebuild) fatal(err error) error {
	if isDamage(err) || errors.Is(err, psm.ErrInvalidTxnState) || errors.Is(err, psm.ErrUnknownControlType) {
		return nil
	}
	return err
}

// take applies one batch, by the rules of append.
func (r *rebuild) take(b Batch) error {
	l, m := r.ld.l, &r.meta
	check := b.validate
	if r.nextBase <= r.ld.p.recoveryPoint { // durable, and trusted: here only for its end and its indexes
		check = b.validateHeader
	}
	if err := check(); err != nil {
		return err
	}
	if err := m.read(b, r.pos); err != nil {
		return err
	}
	if m.BaseOffset < r.ld.next {
		return fmt.Errorf("%w: offsets %d to %d, expected %d", ErrOffsetsOutOfOrder, m.BaseOffset, m.LastOffset, r.ld.next)
	}
	if m.LastOffset >= r.nextBase {
		return fmt.Errorf("%w: offsets %d to %d run into segment %d",
			ErrOffsetsOutOfOrder, m.BaseOffset, m.LastOffset, r.nextBase)
	}
	if m.LastOffset-r.s.base > math.MaxInt32 {
		return fmt.Errorf("%w: offset %d does not fit a segment that starts at %d", ErrCorruptBatch, m.LastOffset, r.s.base)
	}
	if err := l.psm.Prepare(&m.Batch); err != nil {
		return err
	}
	if err := l.settleTxns(r.x); err != nil {
		return err
	}
	l.psm.Commit()
	if m.magic >= 2 {
		stamp, err := l.epochs.retake(m.epoch, m.BaseOffset, m.LastOffset)
		if err != nil {
			return err
		}
		if stamp != m.epoch {
			if err := r.stamp(stamp); err != nil {
				return err
			}
		}
	}
	if err := r.s.note(r.x, m, l.cfg.IndexIntervalBytes); err != nil {
		return err
	}
	r.ld.next = m.LastOffset + 1
	return nil
}

// stamp writes the rebased epoch of a batch that landed without it.
func (r *rebuild) stamp(epoch int32) error {
	b := []byte{byte(epoch >> 24), byte(epoch >> 16), byte(epoch >> 8), byte(epoch)}
	_, err := r.f.WriteAt(b, r.pos+leaderEpochPos)
	return err
}

// allZero says that b holds nothing.
func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
