package compare

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
)

// Source yields one partition's batches in offset order. Dir and Topic are sources.
type Source interface {
	// Next returns the next batch, valid until the next call, or io.EOF after the last.
	Next() (Batch, error)
}

// Options say what counts as a difference.
type Options struct {
	// IgnoreEpoch leaves out the four bytes of a batch's leader epoch, which lie outside its CRC and which a mirror
	// with the policy rebase stamps itself.
	IgnoreEpoch bool
	// Each is called with every batch that was found equal, A's copy, if it is not nil.
	Each func(Batch)
}

// Difference is the first place where two logs disagree.
type Difference struct {
	Offset int64  // base offset of the batch concerned, the lower of the two if they differ in that
	Field  string // the header field, or where in the records
	A, B   string // both values in hexadecimal
}

// String describes the difference on one line.
func (d Difference) String() string {
	return fmt.Sprintf("offset %d: %s is %s in A and %s in B", d.Offset, d.Field, d.A, d.B)
}

// Range is the offsets [From, To) that one side holds and the other does not. From == To is the empty range.
type Range struct{ From, To int64 }

// Empty tells whether the range holds no offset.
func (r Range) Empty() bool { return r.From >= r.To }

// Result is what Compare found.
type Result struct {
	From, To  int64  // the common range of offsets that was compared; To is exclusive
	Batches   int64  // equal batches in it
	Records   int64  // as their headers count them
	Bytes     int64  // of those batches
	Digest    uint64 // xxhash64 of those batches' bytes, the epochs left out if they were ignored
	Epochs    int64  // batches whose leader epochs differ, counted where they are ignored
	Different *Difference

	HeadOnlyA, HeadOnlyB Range // what one side holds before the other's first batch: usually retention
	TailOnlyA, TailOnlyB Range // what one side holds behind the other's last batch: usually lag
}

// Equal tells whether every compared batch was equal.
func (r Result) Equal() bool { return r.Different == nil }

// Complete tells whether the logs are equal and neither holds anything that the other does not.
func (r Result) Complete() bool {
	return r.Equal() && r.HeadOnlyA.Empty() && r.HeadOnlyB.Empty() && r.TailOnlyA.Empty() && r.TailOnlyB.Empty()
}

// Compare walks a and b side by side and stops at the first difference.
//
// What one holds before the other begins, or behind its end, is reported apart and is no difference. Memory is bounded
// by the largest batch. An error is the failure of a source, wrapped with the side it came from.
func Compare(a, b Source, opts Options) (Result, error) {
	c := comparison{a: side{name: "A", source: a}, b: side{name: "B", source: b}, opts: opts, digest: xxhash.New()}
	if err := c.run(); err != nil {
		return c.result, err
	}
	c.result.Digest = c.digest.Sum64()
	return c.result, nil
}

// side is one of the two logs: its current batch, nil at the end.
type side struct {
	name   string
	source Source
	batch  Batch
	end    int64 // after the newest batch
}

func (s *side) next() error {
	batch, err := s.source.Next()
	if errors.Is(err, io.EOF) {
		s.batch = nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	if batch.BaseOffset() < s.end {
		return fmt.Errorf("%s: %w: base offset %d after a batch that ends at %d",
			s.name, ErrBadBatch, batch.BaseOffset(), s.end)
	}
	s.batch, s.end = batch, batch.LastOffset()+1
	return nil
}

type comparison struct {
	a, b   side
	opts   Options
	digest *xxhash.Digest
	result Result
}

func (c *comparison) run() error {
	if err := errors.Join(c.a.next(), c.b.next()); err != nil {
		return err
	}
	if err := c.skipHead(); err != nil {
		return err
	}
	if c.a.batch != nil && c.b.batch != nil {
		c.result.From = max(c.a.batch.BaseOffset(), c.b.batch.BaseOffset())
		c.result.To = c.result.From
	}
	for c.a.batch != nil && c.b.batch != nil {
		if c.step(); c.result.Different != nil {
			return nil
		}
		if err := errors.Join(c.a.next(), c.b.next()); err != nil {
			return err
		}
	}
	return errors.Join(drain(&c.a, &c.result.TailOnlyA), drain(&c.b, &c.result.TailOnlyB))
}

// skipHead moves the side that begins earlier to the other's first offset.
func (c *comparison) skipHead() error {
	if c.a.batch == nil || c.b.batch == nil {
		return nil
	}
	startA, startB := c.a.batch.BaseOffset(), c.b.batch.BaseOffset()
	early, start, head := &c.a, startB, &c.result.HeadOnlyA
	if startB < startA {
		early, start, head = &c.b, startA, &c.result.HeadOnlyB
	}
	if startA != startB {
		head.From = min(startA, startB)
	}
	for early.batch != nil && early.batch.LastOffset() < start {
		head.To = early.end
		if err := early.next(); err != nil {
			return err
		}
	}
	return nil
}

// step compares the current batches.
func (c *comparison) step() {
	a, b := c.a.batch, c.b.batch
	offset := min(a.BaseOffset(), b.BaseOffset())
	// Batches of different lengths differ in a header field, so firstDifference reads no further than both reach.
	same := len(a) == len(b) && bytes.Equal(a[:posEpoch], b[:posEpoch]) && bytes.Equal(a[posMagic:], b[posMagic:])
	if epochs := a.LeaderEpoch() != b.LeaderEpoch(); epochs && c.opts.IgnoreEpoch {
		c.result.Epochs++
	} else if epochs {
		same = false
	}
	if !same {
		field, valueA, valueB := firstDifference(a, b, c.opts.IgnoreEpoch)
		c.result.Different = &Difference{Offset: offset, Field: field, A: valueA, B: valueB}
		return
	}
	// A hash's Write never fails.
	_, _ = c.digest.Write(a[:posEpoch])
	if !c.opts.IgnoreEpoch {
		_, _ = c.digest.Write(a[posEpoch:posMagic])
	}
	_, _ = c.digest.Write(a[posMagic:])
	c.result.To = a.LastOffset() + 1
	c.result.Batches++
	c.result.Records += int64(a.RecordsCount())
	c.result.Bytes += int64(len(a))
	if c.opts.Each != nil {
		c.opts.Each(a)
	}
}

// drain reads what is left of a side and notes its range.
func drain(s *side, tail *Range) error {
	if s.batch == nil {
		return nil
	}
	tail.From = s.batch.BaseOffset()
	for s.batch != nil {
		tail.To = s.end
		if err := s.next(); err != nil {
			return err
		}
	}
	return nil
}
