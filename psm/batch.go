package psm

import "math"

// MarkerType is the kind of the control record of a control batch.
type MarkerType int8

// The kinds of control records that producer state knows.
const (
	MarkerNone     MarkerType = iota // no record: a data batch, or a control batch emptied by compaction
	MarkerAbort                      // ABORT, control type 0
	MarkerCommit                     // COMMIT, control type 1
	MarkerPidReset                   // MIRROR_PID_RESET, control type 7
	MarkerUnknown                    // any other control type
)

// Marker is what the control record of a control batch says.
type Marker struct {
	Type             MarkerType
	CoordinatorEpoch int32 // of COMMIT and ABORT
}

// Batch is what producer state has to know of one record batch. The names are those of its header.
type Batch struct {
	BaseOffset      int64
	LastOffset      int64
	LastOffsetDelta int32 // LastOffset - BaseOffset
	RecordsCount    int32
	ProducerID      int64 // -1: none
	ProducerEpoch   int16
	BaseSequence    int32 // -1: none
	MaxTimestampMs  int64
	Transactional   bool
	Control         bool
	Marker          Marker // of a control batch
}

// lastSequence returns the sequence of the batch's last record, which wraps from 2^31-1 to 0, or -1.
func (b *Batch) lastSequence() int32 {
	if b.BaseSequence < 0 {
		return -1
	}
	if b.BaseSequence > math.MaxInt32-b.LastOffsetDelta {
		return b.LastOffsetDelta - (math.MaxInt32 - b.BaseSequence) - 1
	}
	return b.BaseSequence + b.LastOffsetDelta
}
