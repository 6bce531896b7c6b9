package psm

import "errors"

var (
	// ErrInvalidTxnState says that a batch outside a transaction comes from a producer that has one open: no
	// broker would load or replicate such a log.
	ErrInvalidTxnState = errors.New("batch outside the producer's open transaction")
	// ErrUnknownControlType says that a control batch with a producer id is neither a COMMIT nor an ABORT
	// marker: stock brokers cannot load a log that holds it.
	ErrUnknownControlType = errors.New("control batch with a producer id is no transaction marker")
	// ErrCorruptSnapshot says that a snapshot's bytes cannot be used; the text says why.
	ErrCorruptSnapshot = errors.New("corrupt producer snapshot")
)
