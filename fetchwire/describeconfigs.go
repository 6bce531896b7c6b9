package fetchwire

// Kinds of resource that have a configuration. Kafka: ConfigResource.Type.
const (
	ResourceTopic        int8 = 2
	ResourceBroker       int8 = 4
	ResourceBrokerLogger int8 = 8
	ResourceMirror       int8 = 64 // KIP-1279
)

// Where a configuration's value comes from. Kafka: DescribeConfigsResponse.ConfigSource.
const (
	ConfigSourceTopic          int8 = 1 // set for this topic (or, of a mirror, for this mirror)
	ConfigSourceDynamicBroker  int8 = 2
	ConfigSourceDynamicDefault int8 = 3
	ConfigSourceStaticBroker   int8 = 4 // the properties file
	ConfigSourceDefault        int8 = 5
	ConfigSourceMirror         int8 = 64
)

// Types of a configuration's value. Kafka: DescribeConfigsResponse.ConfigType.
const (
	ConfigTypeUnknown  int8 = 0
	ConfigTypeBoolean  int8 = 1
	ConfigTypeString   int8 = 2
	ConfigTypeInt      int8 = 3
	ConfigTypeShort    int8 = 4
	ConfigTypeLong     int8 = 5
	ConfigTypeDouble   int8 = 6
	ConfigTypeList     int8 = 7
	ConfigTypeClass    int8 = 8
	ConfigTypePassword int8 = 9
)

// DescribeConfigsRequest asks for the configuration of resources.
//
// DescribeConfigsRequest.json, versions 1-4.
type DescribeConfigsRequest struct {
	Resources            []DescribeConfigsResource
	IncludeSynonyms      bool
	IncludeDocumentation bool // v3+
}

// DescribeConfigsResource is one resource of the request.
type DescribeConfigsResource struct {
	ResourceType int8
	ResourceName string
	ConfigNames  []string // nil = all
}

// DescribeConfigsResponse gives the configurations.
//
// DescribeConfigsResponse.json, versions 1-4.
type DescribeConfigsResponse struct {
	ThrottleMs int32
	Resources  []DescribeConfigsResult
}

// DescribeConfigsResult is the answer for one resource.
type DescribeConfigsResult struct {
	ErrorCode    int16
	ErrorMessage *string
	ResourceType int8
	ResourceName string
	Configs      []DescribedConfig
}

// DescribedConfig is one configuration of a resource.
type DescribedConfig struct {
	Name           string
	Value          *string // nil = null, or sensitive
	ReadOnly       bool
	Source         int8
	IsSensitive    bool
	ConfigSynonyms []ConfigSynonym
	ConfigType     int8    // v3+
	Documentation  *string // v3+
}

// ConfigSynonym is one place a configuration's value could come from, the strongest first.
type ConfigSynonym struct {
	Name   string
	Value  *string
	Source int8
}

// Key returns the API key.
func (*DescribeConfigsRequest) Key() int16 { return KeyDescribeConfigs }

// AppendTo appends the request's body as version.
func (m *DescribeConfigsRequest) AppendTo(dst []byte, version int16) []byte {
	compact := flexible(KeyDescribeConfigs, version)
	dst = appendEach(dst, m.Resources, compact, func(dst []byte, s *DescribeConfigsResource) []byte {
		dst = appendInt8(dst, s.ResourceType)
		dst = appendString(dst, s.ResourceName, compact)
		if s.ConfigNames == nil {
			return appendArrayLen(dst, -1, compact)
		}
		return appendStrings(dst, s.ConfigNames, compact)
	})
	dst = appendBool(dst, m.IncludeSynonyms)
	if version >= 3 {
		dst = appendBool(dst, m.IncludeDocumentation)
	}
	return appendNoTags(dst, compact)
}

// DecodeFrom decodes a request's body. Errors: *DecodeError.
func (m *DescribeConfigsRequest) DecodeFrom(src []byte, version int16) error {
	*m = DescribeConfigsRequest{}
	r := newReader(src, KeyDescribeConfigs, version)
	m.Resources = readEach(r, 3, "resources", func(s *DescribeConfigsResource) {
		s.ResourceType = r.int8("resource_type")
		s.ResourceName = r.str("resource_name")
		if n := r.arrayLen(1, "configuration_keys"); n >= 0 {
			s.ConfigNames = make([]string, n)
		}
		for j := range s.ConfigNames {
			s.ConfigNames[j] = r.str("configuration_keys")
		}
	})
	m.IncludeSynonyms = r.bool("include_synonyms")
	if version >= 3 {
		m.IncludeDocumentation = r.bool("include_documentation")
	}
	r.skipTags()
	return r.done()
}

// Key returns the API key.
func (*DescribeConfigsResponse) Key() int16 { return KeyDescribeConfigs }

// AppendTo appends the response's body as version.
func (m *DescribeConfigsResponse) AppendTo(dst []byte, version int16) []byte {
	compact := flexible(KeyDescribeConfigs, version)
	dst = appendInt32(dst, m.ThrottleMs)
	dst = appendEach(dst, m.Resources, compact, func(dst []byte, s *DescribeConfigsResult) []byte {
		dst = appendInt16(dst, s.ErrorCode)
		dst = appendNullableString(dst, s.ErrorMessage, compact)
		dst = appendInt8(dst, s.ResourceType)
		dst = appendString(dst, s.ResourceName, compact)
		return appendEach(dst, s.Configs, compact, func(dst []byte, c *DescribedConfig) []byte {
			return c.appendTo(dst, version, compact)
		})
	})
	return appendNoTags(dst, compact)
}

// appendTo appends a key but for its tags.
func (c *DescribedConfig) appendTo(dst []byte, version int16, compact bool) []byte {
	dst = appendString(dst, c.Name, compact)
	dst = appendNullableString(dst, c.Value, compact)
	dst = appendBool(dst, c.ReadOnly)
	dst = appendInt8(dst, c.Source)
	dst = appendBool(dst, c.IsSensitive)
	dst = appendEach(dst, c.ConfigSynonyms, compact, func(dst []byte, s *ConfigSynonym) []byte {
		dst = appendString(dst, s.Name, compact)
		dst = appendNullableString(dst, s.Value, compact)
		return appendInt8(dst, s.Source)
	})
	if version >= 3 {
		dst = appendInt8(dst, c.ConfigType)
		dst = appendNullableString(dst, c.Documentation, compact)
	}
	return dst
}

// DecodeFrom decodes a response's body. Errors: *DecodeError.
func (m *DescribeConfigsResponse) DecodeFrom(src []byte, version int16) error {
	*m = DescribeConfigsResponse{}
	r := newReader(src, KeyDescribeConfigs, version)
	m.ThrottleMs = r.int32("throttle_time_ms")
	m.Resources = readEach(r, 6, "results", func(s *DescribeConfigsResult) {
		s.ErrorCode = r.int16("error_code")
		s.ErrorMessage = r.nullableStr("error_message")
		s.ResourceType = r.int8("resource_type")
		s.ResourceName = r.str("resource_name")
		s.Configs = readEach(r, 6, "configs", func(c *DescribedConfig) { c.decode(r) })
	})
	r.skipTags()
	return r.done()
}

// decode reads a key but for its tags.
func (c *DescribedConfig) decode(r *reader) {
	c.Name = r.str("name")
	c.Value = r.nullableStr("value")
	c.ReadOnly = r.bool("read_only")
	c.Source = r.int8("config_source")
	c.IsSensitive = r.bool("is_sensitive")
	c.ConfigSynonyms = readEach(r, 3, "synonyms", func(s *ConfigSynonym) {
		s.Name = r.str("name")
		s.Value = r.nullableStr("value")
		s.Source = r.int8("source")
	})
	if r.version >= 3 {
		c.ConfigType = r.int8("config_type")
		c.Documentation = r.nullableStr("documentation")
	}
}
