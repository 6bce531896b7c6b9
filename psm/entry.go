package psm

import "math"

// None is the value of an offset or sequence that is not there.
const None = -1

// Entry is the state of one producer, as a snapshot holds it. Kafka: ProducerStateEntry.
type Entry struct {
	ProducerID            int64
	ProducerEpoch         int16 // -1 where only an emptied control batch was seen
	LastSequence          int32 // of its newest batch; -1: none
	LastOffset            int64 // of its newest batch; -1: no batch of this epoch is known
	OffsetDelta           int32 // last minus base offset of that batch
	TimestampMs           int64 // of its newest batch or marker
	CoordinatorEpoch      int32 // of its newest marker; -1: none
	CurrentTxnFirstOffset int64 // -1: no transaction open
}

// FirstSequence returns the sequence of the first record of the newest batch, or -1. Kafka:
// BatchMetadata.firstSeq.
func (e *Entry) FirstSequence() int32 {
	if e.LastSequence < 0 {
		return None
	}
	if e.LastSequence < e.OffsetDelta {
		return math.MaxInt32 - (e.OffsetDelta - e.LastSequence) + 1
	}
	return e.LastSequence - e.OffsetDelta
}

// setEpoch makes epoch the producer's; batches of another epoch are forgotten.
func (e *Entry) setEpoch(epoch int16) {
	if e.ProducerEpoch == epoch {
		return
	}
	e.ProducerEpoch = epoch
	e.LastSequence, e.LastOffset, e.OffsetDelta = None, None, 0
}

// newEntry returns the state of a producer of which nothing is known yet.
func newEntry(producerID int64) Entry {
	return Entry{
		ProducerID: producerID, ProducerEpoch: None, LastSequence: None, LastOffset: None, TimestampMs: None,
		CoordinatorEpoch: None, CurrentTxnFirstOffset: None,
	}
}

// OpenTxn is a transaction without a marker yet.
type OpenTxn struct {
	ProducerID       int64
	ProducerEpoch    int16
	CoordinatorEpoch int32 // last seen for the producer, -1: none
	FirstOffset      int64
	TimestampMs      int64 // of the producer's newest batch
}

// CompletedTxn is a transaction whose marker was applied.
type CompletedTxn struct {
	ProducerID  int64
	FirstOffset int64
	LastOffset  int64 // of the marker
	// LastStableOffset is the first offset of the earliest other transaction open at that moment, else
	// LastOffset+1.
	LastStableOffset int64
	Aborted          bool
}
