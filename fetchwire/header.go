package fetchwire

import "encoding/binary"

// RequestHeader stands before every request. RequestHeader.json, versions 1 and 2.
type RequestHeader struct {
	APIKey        int16
	APIVersion    int16
	CorrelationID int32
	ClientID      *string
}

// AppendTo appends the header; the API's version decides its form.
func (h *RequestHeader) AppendTo(dst []byte) []byte {
	dst = appendInt16(dst, h.APIKey)
	dst = appendInt16(dst, h.APIVersion)
	dst = appendInt32(dst, h.CorrelationID)
	dst = appendNullableString(dst, h.ClientID, false)
	return appendNoTags(dst, flexible(h.APIKey, h.APIVersion))
}

// DecodeRequestHeader splits a request frame (without its size field) into header and body.
//
// The body is a part of frame. Of an API this package does not speak, key, version and correlation id are right and
// the body may begin with the header's tagged fields. Errors: *DecodeError. Any goroutine.
func DecodeRequestHeader(frame []byte) (h RequestHeader, body []byte, err error) {
	r := reader{src: frame}
	h.APIKey = r.int16("request_api_key")
	h.APIVersion = r.int16("request_api_version")
	r.api, r.version = h.APIKey, h.APIVersion
	h.CorrelationID = r.int32("correlation_id")
	h.ClientID = r.nullableStr("client_id")
	if flexible(h.APIKey, h.APIVersion) {
		r.compact = true
		r.skipTags()
	}
	if r.err != nil {
		return h, nil, r.err
	}
	return h, frame[r.pos:], nil
}

// appendResponseHeader appends the header of a response. ApiVersions keeps the old form at every version, so that a
// client can read it before it knows what the broker speaks. ResponseHeader.json, versions 0 and 1.
func appendResponseHeader(dst []byte, api, version int16, correlationID int32) []byte {
	dst = appendInt32(dst, correlationID)
	return appendNoTags(dst, responseHasTags(api, version))
}

func responseHasTags(api, version int16) bool { return api != KeyApiVersions && flexible(api, version) }

// decodeResponseHeader splits a response frame (without its size field).
func decodeResponseHeader(frame []byte, api, version int16) (correlationID int32, body []byte, err error) {
	r := reader{src: frame, api: api, version: version}
	correlationID = r.int32("correlation_id")
	if responseHasTags(api, version) {
		r.compact = true
		r.skipTags()
	}
	if r.err != nil {
		return 0, nil, r.err
	}
	return correlationID, frame[r.pos:], nil
}

// finishFrame writes the size of the frame that begins at start with four bytes left free for it.
func finishFrame(dst []byte, start int) []byte {
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst
}
