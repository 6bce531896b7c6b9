package fetchwire

// SaslHandshakeRequest picks a SASL mechanism.
//
// SaslHandshakeRequest.json, version 1 (0 is followed by tokens without frames and is not spoken here).
type SaslHandshakeRequest struct{ Mechanism string }

// SaslHandshakeResponse accepts the mechanism or lists those on offer.
//
// SaslHandshakeResponse.json, version 1.
type SaslHandshakeResponse struct {
	ErrorCode  int16
	Mechanisms []string
}

// SaslAuthenticateRequest carries a client's token.
//
// SaslAuthenticateRequest.json, versions 0-2.
type SaslAuthenticateRequest struct{ AuthBytes []byte }

// SaslAuthenticateResponse carries the server's token.
//
// SaslAuthenticateResponse.json, versions 0-2.
type SaslAuthenticateResponse struct {
	ErrorCode         int16
	ErrorMessage      *string
	AuthBytes         []byte
	SessionLifetimeMs int64 // v1+; 0 = no end
}

// Key returns the API key.
func (*SaslHandshakeRequest) Key() int16 { return KeySaslHandshake }

// AppendTo appends the request's body as version.
func (m *SaslHandshakeRequest) AppendTo(dst []byte, _ int16) []byte {
	return appendString(dst, m.Mechanism, false)
}

// DecodeFrom decodes a request's body. Errors: *DecodeError.
func (m *SaslHandshakeRequest) DecodeFrom(src []byte, version int16) error {
	r := newReader(src, KeySaslHandshake, version)
	m.Mechanism = r.str("mechanism")
	return r.done()
}

// Key returns the API key.
func (*SaslHandshakeResponse) Key() int16 { return KeySaslHandshake }

// AppendTo appends the response's body as version.
func (m *SaslHandshakeResponse) AppendTo(dst []byte, _ int16) []byte {
	dst = appendInt16(dst, m.ErrorCode)
	dst = appendArrayLen(dst, len(m.Mechanisms), false)
	for _, s := range m.Mechanisms {
		dst = appendString(dst, s, false)
	}
	return dst
}

// DecodeFrom decodes a response's body. Errors: *DecodeError.
func (m *SaslHandshakeResponse) DecodeFrom(src []byte, version int16) error {
	*m = SaslHandshakeResponse{}
	r := newReader(src, KeySaslHandshake, version)
	m.ErrorCode = r.int16("error_code")
	m.Mechanisms = make([]string, r.array(2, "mechanisms"))
	for i := range m.Mechanisms {
		m.Mechanisms[i] = r.str("mechanism")
	}
	return r.done()
}

// Key returns the API key.
func (*SaslAuthenticateRequest) Key() int16 { return KeySaslAuthenticate }

// AppendTo appends the request's body as version.
func (m *SaslAuthenticateRequest) AppendTo(dst []byte, version int16) []byte {
	compact := flexible(KeySaslAuthenticate, version)
	return appendNoTags(appendBytes(dst, m.AuthBytes, compact, false), compact)
}

// DecodeFrom decodes a request's body; AuthBytes belongs to src. Errors: *DecodeError.
func (m *SaslAuthenticateRequest) DecodeFrom(src []byte, version int16) error {
	r := newReader(src, KeySaslAuthenticate, version)
	m.AuthBytes = r.bytes("auth_bytes")
	r.skipTags()
	return r.done()
}

// Key returns the API key.
func (*SaslAuthenticateResponse) Key() int16 { return KeySaslAuthenticate }

// AppendTo appends the response's body as version.
func (m *SaslAuthenticateResponse) AppendTo(dst []byte, version int16) []byte {
	compact := flexible(KeySaslAuthenticate, version)
	dst = appendInt16(dst, m.ErrorCode)
	dst = appendNullableString(dst, m.ErrorMessage, compact)
	dst = appendBytes(dst, m.AuthBytes, compact, false)
	if version >= 1 {
		dst = appendInt64(dst, m.SessionLifetimeMs)
	}
	return appendNoTags(dst, compact)
}

// DecodeFrom decodes a response's body; AuthBytes belongs to src. Errors: *DecodeError.
func (m *SaslAuthenticateResponse) DecodeFrom(src []byte, version int16) error {
	*m = SaslAuthenticateResponse{}
	r := newReader(src, KeySaslAuthenticate, version)
	m.ErrorCode = r.int16("error_code")
	m.ErrorMessage = r.nullableStr("error_message")
	m.AuthBytes = r.bytes("auth_bytes")
	if version >= 1 {
		m.SessionLifetimeMs = r.int64("session_lifetime_ms")
	}
	r.skipTags()
	return r.done()
}
