package fetchwire

// What an IncrementalAlterConfigsRequest does with a key. Kafka: AlterConfigOp.OpType.
const (
	ConfigSet      int8 = 0
	ConfigDelete   int8 = 1
	ConfigAppend   int8 = 2 // adds to a list
	ConfigSubtract int8 = 3 // takes from a list
)

// IncrementalAlterConfigsRequest changes configurations, key by key.
//
// IncrementalAlterConfigsRequest.json, versions 0-1.
type IncrementalAlterConfigsRequest struct {
	Resources    []AlterConfigsResource
	ValidateOnly bool
}

// AlterConfigsResource is one resource of the request.
type AlterConfigsResource struct {
	ResourceType int8
	ResourceName string
	Configs      []AlterConfig
}

// AlterConfig is one change.
type AlterConfig struct {
	Name  string
	Op    int8
	Value *string
}

// IncrementalAlterConfigsResponse tells of each resource whether it was changed.
//
// IncrementalAlterConfigsResponse.json, versions 0-1.
type IncrementalAlterConfigsResponse struct {
	ThrottleMs int32
	Resources  []AlterConfigsResult
}

// AlterConfigsResult is the answer for one resource.
type AlterConfigsResult struct {
	ErrorCode    int16
	ErrorMessage *string
	ResourceType int8
	ResourceName string
}

// Key returns the API key.
func (*IncrementalAlterConfigsRequest) Key() int16 { return KeyIncrementalAlterConfigs }

// AppendTo appends the request's body as version.
func (m *IncrementalAlterConfigsRequest) AppendTo(dst []byte, version int16) []byte {
	compact := flexible(KeyIncrementalAlterConfigs, version)
	dst = appendEach(dst, m.Resources, compact, func(dst []byte, s *AlterConfigsResource) []byte {
		dst = appendInt8(dst, s.ResourceType)
		dst = appendString(dst, s.ResourceName, compact)
		return appendEach(dst, s.Configs, compact, func(dst []byte, c *AlterConfig) []byte {
			dst = appendString(dst, c.Name, compact)
			dst = appendInt8(dst, c.Op)
			return appendNullableString(dst, c.Value, compact)
		})
	})
	dst = appendBool(dst, m.ValidateOnly)
	return appendNoTags(dst, compact)
}

// DecodeFrom decodes a request's body. Errors: *DecodeError.
func (m *IncrementalAlterConfigsRequest) DecodeFrom(src []byte, version int16) error {
	*m = IncrementalAlterConfigsRequest{}
	r := newReader(src, KeyIncrementalAlterConfigs, version)
	m.Resources = readEach(r, 3, "resources", func(s *AlterConfigsResource) {
		s.ResourceType = r.int8("resource_type")
		s.ResourceName = r.str("resource_name")
		s.Configs = readEach(r, 3, "configs", func(c *AlterConfig) {
			c.Name = r.str("name")
			c.Op = r.int8("config_operation")
			c.Value = r.nullableStr("value")
		})
	})
	m.ValidateOnly = r.bool("validate_only")
	r.skipTags()
	return r.done()
}

// Key returns the API key.
func (*IncrementalAlterConfigsResponse) Key() int16 { return KeyIncrementalAlterConfigs }

// AppendTo appends the response's body as version.
func (m *IncrementalAlterConfigsResponse) AppendTo(dst []byte, version int16) []byte {
	compact := flexible(KeyIncrementalAlterConfigs, version)
	dst = appendInt32(dst, m.ThrottleMs)
	dst = appendEach(dst, m.Resources, compact, func(dst []byte, s *AlterConfigsResult) []byte {
		dst = appendInt16(dst, s.ErrorCode)
		dst = appendNullableString(dst, s.ErrorMessage, compact)
		dst = appendInt8(dst, s.ResourceType)
		return appendString(dst, s.ResourceName, compact)
	})
	return appendNoTags(dst, compact)
}

// DecodeFrom decodes a response's body. Errors: *DecodeError.
func (m *IncrementalAlterConfigsResponse) DecodeFrom(src []byte, version int16) error {
	*m = IncrementalAlterConfigsResponse{}
	r := newReader(src, KeyIncrementalAlterConfigs, version)
	m.ThrottleMs = r.int32("throttle_time_ms")
	m.Resources = readEach(r, 5, "responses", func(s *AlterConfigsResult) {
		s.ErrorCode = r.int16("error_code")
		s.ErrorMessage = r.nullableStr("error_message")
		s.ResourceType = r.int8("resource_type")
		s.ResourceName = r.str("resource_name")
	})
	r.skipTags()
	return r.done()
}
