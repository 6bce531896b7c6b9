package segment

import (
	"errors"
	"path/filepath"
)

// loadDigests reads the digests of a bound log; damaged ones are made anew.
func (ld *loader) loadDigests() error {
	l := ld.l
	if !l.epochs.bound() {
		return nil
	}
	d, err := openDigests(filepath.Join(l.dir, digestsFileName))
	if err != nil {
		if !errors.Is(err, ErrCorruptDigests) {
			return err
		}
		ld.note("digests made anew: %v", err)
		ld.digestsLost = true
	}
	if d == nil || d.NextOffset() < ld.list.first().base {
		d = NewDigests(ld.list.first().base)
	}
	l.digests = d
	return nil
}

// openDigests begins the digests of a log that has just been bound.
func (l *Log) openDigests() error {
	if l.digests == nil {
		l.digests = NewDigests(l.list().first().base)
	}
	return l.feedDigests()
}

// feedDigests brings the digests to the log end: cuts what lies beyond, and reads the heads of what is missing.
func (l *Log) feedDigests() error {
	d := l.digests
	if d == nil {
		return nil
	}
	d.TruncateTo(l.next)
	list := l.list()
	if d.NextOffset() < list.first().base { // the range at hand has lost its beginning
		d.Restart(list.first().base)
	}
	for i := max(list.floor(d.NextOffset()), 0); i < len(list) && d.NextOffset() < l.next; i++ {
		err := list[i].eachHead(d.NextOffset(), func(_ *batchMeta, head Batch) error {
			d.Add(head)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// writeDigests replaces the digests file of a bound log.
func (l *Log) writeDigests() error {
	if l.digests == nil {
		return nil
	}
	return replaceFile(filepath.Join(l.dir, digestsFileName), l.digests.AppendTo(nil))
}
