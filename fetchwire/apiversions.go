package fetchwire

// ApiVersionsRequest asks which APIs a broker offers; it is the first request on a connection.
//
// ApiVersionsRequest.json, versions 0-4.
type ApiVersionsRequest struct {
	ClientSoftwareName    string // v3+; letters, digits, dots and dashes
	ClientSoftwareVersion string // v3+
}

// ApiVersionsResponse lists the APIs a broker offers.
//
// ApiVersionsResponse.json, versions 0-4.
type ApiVersionsResponse struct {
	ErrorCode              int16
	APIKeys                []APIVersion
	ThrottleMs             int32              // v1+
	SupportedFeatures      []SupportedFeature // v3+, tag
	FinalizedFeaturesEpoch int64              // v3+, tag; -1 = unknown
	FinalizedFeatures      []FinalizedFeature // v3+, tag
	ZkMigrationReady       bool               // v3+, tag
}

// APIVersion is the range of versions offered of one API, both inclusive.
type APIVersion struct {
	APIKey     int16
	MinVersion int16
	MaxVersion int16
}

// SupportedFeature is a feature and the levels a broker could run it at.
type SupportedFeature struct {
	Name       string
	MinVersion int16
	MaxVersion int16
}

// FinalizedFeature is a feature and the levels the cluster runs it at.
type FinalizedFeature struct {
	Name            string
	MaxVersionLevel int16
	MinVersionLevel int16
}

// Key returns the API key.
func (*ApiVersionsRequest) Key() int16 { return KeyApiVersions }

// AppendTo appends the request's body as version.
func (m *ApiVersionsRequest) AppendTo(dst []byte, version int16) []byte {
	if version >= 3 {
		dst = appendString(dst, m.ClientSoftwareName, true)
		dst = appendString(dst, m.ClientSoftwareVersion, true)
		dst = appendNoTags(dst, true)
	}
	return dst
}

// DecodeFrom decodes a request's body. Errors: *DecodeError.
func (m *ApiVersionsRequest) DecodeFrom(src []byte, version int16) error {
	*m = ApiVersionsRequest{}
	r := newReader(src, KeyApiVersions, version)
	if version >= 3 {
		m.ClientSoftwareName = r.str("client_software_name")
		m.ClientSoftwareVersion = r.str("client_software_version")
		r.skipTags()
	}
	return r.done()
}

// Key returns the API key.
func (*ApiVersionsResponse) Key() int16 { return KeyApiVersions }

// AppendTo appends the response's body as version. An answer to a version the server does not know has to be written
// as version 0.
func (m *ApiVersionsResponse) AppendTo(dst []byte, version int16) []byte {
	compact := flexible(KeyApiVersions, version)
	dst = appendInt16(dst, m.ErrorCode)
	dst = appendArrayLen(dst, len(m.APIKeys), compact)
	for _, k := range m.APIKeys {
		dst = appendInt16(dst, k.APIKey)
		dst = appendInt16(dst, k.MinVersion)
		dst = appendInt16(dst, k.MaxVersion)
		dst = appendNoTags(dst, compact)
	}
	if version >= 1 {
		dst = appendInt32(dst, m.ThrottleMs)
	}
	if !compact {
		return dst
	}
	return m.appendTags(dst)
}

func (m *ApiVersionsResponse) appendTags(dst []byte) []byte {
	n := uint32(0)
	var tags []byte
	if len(m.SupportedFeatures) > 0 {
		body := appendArrayLen(nil, len(m.SupportedFeatures), true)
		for _, f := range m.SupportedFeatures {
			body = appendString(body, f.Name, true)
			body = appendInt16(body, f.MinVersion)
			body = appendInt16(body, f.MaxVersion)
			body = appendNoTags(body, true)
		}
		tags, n = appendTag(tags, 0, body), n+1
	}
	if m.FinalizedFeaturesEpoch != -1 {
		tags, n = appendTag(tags, 1, appendInt64(nil, m.FinalizedFeaturesEpoch)), n+1
	}
	if len(m.FinalizedFeatures) > 0 {
		body := appendArrayLen(nil, len(m.FinalizedFeatures), true)
		for _, f := range m.FinalizedFeatures {
			body = appendString(body, f.Name, true)
			body = appendInt16(body, f.MaxVersionLevel)
			body = appendInt16(body, f.MinVersionLevel)
			body = appendNoTags(body, true)
		}
		tags, n = appendTag(tags, 2, body), n+1
	}
	if m.ZkMigrationReady {
		tags, n = appendTag(tags, 3, appendBool(nil, true)), n+1
	}
	return append(appendUvarint(dst, n), tags...)
}

// DecodeFrom decodes a response's body. Errors: *DecodeError.
func (m *ApiVersionsResponse) DecodeFrom(src []byte, version int16) error {
	*m = ApiVersionsResponse{FinalizedFeaturesEpoch: -1}
	r := newReader(src, KeyApiVersions, version)
	m.ErrorCode = r.int16("error_code")
	m.APIKeys = make([]APIVersion, r.array(6, "api_keys"))
	for i := range m.APIKeys {
		k := &m.APIKeys[i]
		k.APIKey = r.int16("api_key")
		k.MinVersion = r.int16("min_version")
		k.MaxVersion = r.int16("max_version")
		r.skipTags()
	}
	if version >= 1 {
		m.ThrottleMs = r.int32("throttle_time_ms")
	}
	for n := r.tagCount("tagged fields"); n > 0 && r.err == nil; n-- {
		tag, whole := r.openTag()
		switch tag {
		case 0:
			m.decodeSupported(r)
		case 1:
			m.FinalizedFeaturesEpoch = r.int64("finalized_features_epoch")
		case 2:
			m.decodeFinalized(r)
		case 3:
			m.ZkMigrationReady = r.bool("zk_migration_ready")
		default:
			r.skipTag()
		}
		r.closeTag(whole)
	}
	return r.done()
}

func (m *ApiVersionsResponse) decodeSupported(r *reader) {
	m.SupportedFeatures = make([]SupportedFeature, r.array(6, "supported_features"))
	for i := range m.SupportedFeatures {
		f := &m.SupportedFeatures[i]
		f.Name = r.str("name")
		f.MinVersion = r.int16("min_version")
		f.MaxVersion = r.int16("max_version")
		r.skipTags()
	}
}

func (m *ApiVersionsResponse) decodeFinalized(r *reader) {
	m.FinalizedFeatures = make([]FinalizedFeature, r.array(6, "finalized_features"))
	for i := range m.FinalizedFeatures {
		f := &m.FinalizedFeatures[i]
		f.Name = r.str("name")
		f.MaxVersionLevel = r.int16("max_version_level")
		f.MinVersionLevel = r.int16("min_version_level")
		r.skipTags()
	}
}
