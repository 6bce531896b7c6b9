package fetchwire

// InitProducerIdRequest asks for a producer id.
//
// InitProducerIdRequest.json, versions 0-5.
type InitProducerIdRequest struct {
	TransactionalID      *string // nil = idempotent only
	TransactionTimeoutMs int32
	ProducerID           int64 // v3+; -1 = none yet
	ProducerEpoch        int16 // v3+; -1 = none yet
}

// InitProducerIdResponse gives one.
//
// InitProducerIdResponse.json, versions 0-5.
type InitProducerIdResponse struct {
	ThrottleMs    int32
	ErrorCode     int16
	ProducerID    int64 // -1 on an error
	ProducerEpoch int16
}

// Key returns the API key.
func (*InitProducerIdRequest) Key() int16 { return KeyInitProducerId }

// AppendTo appends the request's body as version.
func (m *InitProducerIdRequest) AppendTo(dst []byte, version int16) []byte {
	compact := flexible(KeyInitProducerId, version)
	dst = appendNullableString(dst, m.TransactionalID, compact)
	dst = appendInt32(dst, m.TransactionTimeoutMs)
	if version >= 3 {
		dst = appendInt64(dst, m.ProducerID)
		dst = appendInt16(dst, m.ProducerEpoch)
	}
	return appendNoTags(dst, compact)
}

// DecodeFrom decodes a request's body. Errors: *DecodeError.
func (m *InitProducerIdRequest) DecodeFrom(src []byte, version int16) error {
	*m = InitProducerIdRequest{ProducerID: -1, ProducerEpoch: -1}
	r := newReader(src, KeyInitProducerId, version)
	m.TransactionalID = r.nullableStr("transactional_id")
	m.TransactionTimeoutMs = r.int32("transaction_timeout_ms")
	if version >= 3 {
		m.ProducerID = r.int64("producer_id")
		m.ProducerEpoch = r.int16("producer_epoch")
	}
	r.skipTags()
	return r.done()
}

// Key returns the API key.
func (*InitProducerIdResponse) Key() int16 { return KeyInitProducerId }

// AppendTo appends the response's body as version.
func (m *InitProducerIdResponse) AppendTo(dst []byte, version int16) []byte {
	dst = appendInt32(dst, m.ThrottleMs)
	dst = appendInt16(dst, m.ErrorCode)
	dst = appendInt64(dst, m.ProducerID)
	dst = appendInt16(dst, m.ProducerEpoch)
	return appendNoTags(dst, flexible(KeyInitProducerId, version))
}

// DecodeFrom decodes a response's body. Errors: *DecodeError.
func (m *InitProducerIdResponse) DecodeFrom(src []byte, version int16) error {
	r := newReader(src, KeyInitProducerId, version)
	*m = InitProducerIdResponse{
		ThrottleMs: r.int32("throttle_time_ms"), ErrorCode: r.int16("error_code"),
		ProducerID: r.int64("producer_id"), ProducerEpoch: r.int16("producer_epoch"),
	}
	r.skipTags()
	return r.done()
}
