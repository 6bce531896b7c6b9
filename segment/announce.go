package segment

import (
	"errors"
	"fmt"
	"slices"
)

// ErrEpochFalls is an announced source epoch below one that the log already has records of.
var ErrEpochFalls = errors.New("announced source epoch is below the newest one")

// AnnounceEpochs says where the source's epochs come from: announced ones are told by AnnounceEpoch before the batches
// that carry whatever their server stamped on them; else they are the batches' own. Durable. The log must be bound.
// Owner only.
func (l *Log) AnnounceEpochs(on bool) error {
	if err := l.usable(); err != nil {
		return err
	}
	h := l.epochs.source.history.Load()
	if h.source == nil {
		return l.wrap(fmt.Errorf("%w: bound to none", ErrSourceMismatch))
	}
	if h.announced == on {
		return nil
	}
	changed := h.with(h.entries)
	changed.announced = on
	defer l.epochs.refresh()
	return l.wrap(l.epochs.source.store(changed))
}

// EpochsAnnounced is whether the source's epochs are told beside the batches. Any goroutine.
func (l *Log) EpochsAnnounced() bool { return l.epochs.source.history.Load().announced }

// AnnounceEpoch says that the batches from the log end on are of the source's epoch, and is durable before it returns:
// once they are appended, that is known nowhere else. An epoch announced before that got no batch is forgotten.
//
// ErrEpochFalls refuses an epoch below that of a batch in the log. Owner only.
func (l *Log) AnnounceEpoch(epoch int32) error {
	if err := l.usable(); err != nil {
		return err
	}
	end, source := l.logEnd.Load(), l.epochs.source
	h := source.history.Load()
	if !h.announced {
		return l.wrap(fmt.Errorf("%w: its epochs are those of the batches", ErrSourceMismatch))
	}
	keep := len(below(h.entries, end))
	if keep > 0 && epoch < h.entries[keep-1].Epoch {
		return l.wrap(fmt.Errorf("%w: %d after %d", ErrEpochFalls, epoch, h.entries[keep-1].Epoch))
	}
	if epoch < 0 {
		return l.wrap(fmt.Errorf("epoch %d from offset %d: %w", epoch, end, ErrEpochNegative))
	}
	entries, changed := assignEpoch(slices.Clone(h.entries[:keep]), epoch, end)
	if !changed && keep == len(h.entries) {
		return nil
	}
	defer l.epochs.refresh()
	return l.wrap(source.store(h.with(entries)))
}

// SourceEpochs is the history to answer those who copy from this log by: the source's, or its own where it is nobody's
// copy. The slice is not to be changed. Any goroutine.
func (l *Log) SourceEpochs() []EpochEntry {
	if h := l.epochs.source.history.Load(); h.source != nil {
		return h.entries
	}
	return l.epochs.local.history.Load().entries
}

// BatchesCarrySourceEpochs is whether the epochs in the batches are the source's, so that one who reads the batches
// alone has the history. Any goroutine.
func (l *Log) BatchesCarrySourceEpochs() bool {
	end := l.logEnd.Load()
	return slices.Equal(below(l.SourceEpochs(), end), below(l.epochs.local.history.Load().entries, end))
}

// below is the epochs that began before end: those of records.
func below(entries []EpochEntry, end int64) []EpochEntry {
	n := len(entries)
	for n > 0 && entries[n-1].StartOffset >= end {
		n--
	}
	return entries[:n]
}
