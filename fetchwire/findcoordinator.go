package fetchwire

// Kinds of coordinator.
const (
	CoordinatorGroup       int8 = 0
	CoordinatorTransaction int8 = 1
	CoordinatorShare       int8 = 2
	CoordinatorMirror      int8 = 3 // KIP-1279; the key is a mirror's name
)

// FindCoordinatorRequest asks which broker looks after a group, a transactional id or a mirror.
//
// FindCoordinatorRequest.json, versions 0-6.
type FindCoordinatorRequest struct {
	CoordinatorKey  string   // v0-v3
	CoordinatorType int8     // v1+; one of the constants
	CoordinatorKeys []string // v4+
}

// FindCoordinatorResponse names the brokers.
//
// FindCoordinatorResponse.json, versions 0-6.
type FindCoordinatorResponse struct {
	ThrottleMs   int32   // v1+
	ErrorCode    int16   // v0-v3, as all but the last field
	ErrorMessage *string // v1-v3
	NodeID       int32
	Host         string
	Port         int32
	Coordinators []Coordinator // v4+
}

// Coordinator is the answer for one key.
type Coordinator struct {
	Key          string
	NodeID       int32 // -1 = none
	Host         string
	Port         int32
	ErrorCode    int16
	ErrorMessage *string
}

// Key returns the API key.
func (*FindCoordinatorRequest) Key() int16 { return KeyFindCoordinator }

// AppendTo appends the request's body as version.
func (m *FindCoordinatorRequest) AppendTo(dst []byte, version int16) []byte {
	compact := flexible(KeyFindCoordinator, version)
	if version <= 3 {
		dst = appendString(dst, m.CoordinatorKey, compact)
	}
	if version >= 1 {
		dst = appendInt8(dst, m.CoordinatorType)
	}
	if version >= 4 {
		dst = appendStrings(dst, m.CoordinatorKeys, compact)
	}
	return appendNoTags(dst, compact)
}

// DecodeFrom decodes a request's body. Errors: *DecodeError.
func (m *FindCoordinatorRequest) DecodeFrom(src []byte, version int16) error {
	*m = FindCoordinatorRequest{}
	r := newReader(src, KeyFindCoordinator, version)
	if version <= 3 {
		m.CoordinatorKey = r.str("key")
	}
	if version >= 1 {
		m.CoordinatorType = r.int8("key_type")
	}
	if version >= 4 {
		m.CoordinatorKeys = r.strs("coordinator_keys")
	}
	r.skipTags()
	return r.done()
}

// Key returns the API key.
func (*FindCoordinatorResponse) Key() int16 { return KeyFindCoordinator }

// AppendTo appends the response's body as version.
func (m *FindCoordinatorResponse) AppendTo(dst []byte, version int16) []byte {
	compact := flexible(KeyFindCoordinator, version)
	if version >= 1 {
		dst = appendInt32(dst, m.ThrottleMs)
	}
	if version <= 3 {
		dst = appendInt16(dst, m.ErrorCode)
		if version >= 1 {
			dst = appendNullableString(dst, m.ErrorMessage, compact)
		}
		dst = appendInt32(dst, m.NodeID)
		dst = appendString(dst, m.Host, compact)
		dst = appendInt32(dst, m.Port)
		return appendNoTags(dst, compact)
	}
	dst = appendArrayLen(dst, len(m.Coordinators), compact)
	for i := range m.Coordinators {
		c := &m.Coordinators[i]
		dst = appendString(dst, c.Key, compact)
		dst = appendInt32(dst, c.NodeID)
		dst = appendString(dst, c.Host, compact)
		dst = appendInt32(dst, c.Port)
		dst = appendInt16(dst, c.ErrorCode)
		dst = appendNullableString(dst, c.ErrorMessage, compact)
		dst = appendNoTags(dst, compact)
	}
	return appendNoTags(dst, compact)
}

// DecodeFrom decodes a response's body. Errors: *DecodeError.
func (m *FindCoordinatorResponse) DecodeFrom(src []byte, version int16) error {
	*m = FindCoordinatorResponse{}
	r := newReader(src, KeyFindCoordinator, version)
	if version >= 1 {
		m.ThrottleMs = r.int32("throttle_time_ms")
	}
	if version <= 3 {
		m.ErrorCode = r.int16("error_code")
		if version >= 1 {
			m.ErrorMessage = r.nullableStr("error_message")
		}
		m.NodeID = r.int32("node_id")
		m.Host = r.str("host")
		m.Port = r.int32("port")
		r.skipTags()
		return r.done()
	}
	m.Coordinators = make([]Coordinator, r.array(14, "coordinators"))
	for i := range m.Coordinators {
		c := &m.Coordinators[i]
		c.Key = r.str("key")
		c.NodeID = r.int32("node_id")
		c.Host = r.str("host")
		c.Port = r.int32("port")
		c.ErrorCode = r.int16("error_code")
		c.ErrorMessage = r.nullableStr("error_message")
		r.skipTags()
	}
	r.skipTags()
	return r.done()
}
