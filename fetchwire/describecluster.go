package fetchwire

// EndpointBrokers is the endpoint type of a cluster's brokers.
const EndpointBrokers int8 = 1

// DescribeClusterRequest asks for the cluster's id and brokers.
//
// DescribeClusterRequest.json, versions 0-2.
type DescribeClusterRequest struct {
	IncludeClusterAuthorizedOps bool
	EndpointType                int8 // v1+; EndpointBrokers
	IncludeFencedBrokers        bool // v2+
}

// DescribeClusterResponse describes the cluster.
//
// DescribeClusterResponse.json, versions 0-2.
type DescribeClusterResponse struct {
	ThrottleMs           int32
	ErrorCode            int16
	ErrorMessage         *string
	EndpointType         int8 // v1+
	ClusterID            string
	ControllerID         int32 // -1 = unknown
	Brokers              []DescribeClusterBroker
	ClusterAuthorizedOps int32
}

// DescribeClusterBroker is one broker.
type DescribeClusterBroker struct {
	BrokerID int32
	Host     string
	Port     int32
	Rack     *string
	IsFenced bool // v2+
}

// Key returns the API key.
func (*DescribeClusterRequest) Key() int16 { return KeyDescribeCluster }

// AppendTo appends the request's body as version.
func (m *DescribeClusterRequest) AppendTo(dst []byte, version int16) []byte {
	dst = appendBool(dst, m.IncludeClusterAuthorizedOps)
	if version >= 1 {
		dst = appendInt8(dst, m.EndpointType)
	}
	if version >= 2 {
		dst = appendBool(dst, m.IncludeFencedBrokers)
	}
	return appendNoTags(dst, true)
}

// DecodeFrom decodes a request's body. Errors: *DecodeError.
func (m *DescribeClusterRequest) DecodeFrom(src []byte, version int16) error {
	*m = DescribeClusterRequest{EndpointType: EndpointBrokers}
	r := newReader(src, KeyDescribeCluster, version)
	m.IncludeClusterAuthorizedOps = r.bool("include_cluster_authorized_operations")
	if version >= 1 {
		m.EndpointType = r.int8("endpoint_type")
	}
	if version >= 2 {
		m.IncludeFencedBrokers = r.bool("include_fenced_brokers")
	}
	r.skipTags()
	return r.done()
}

// Key returns the API key.
func (*DescribeClusterResponse) Key() int16 { return KeyDescribeCluster }

// AppendTo appends the response's body as version.
func (m *DescribeClusterResponse) AppendTo(dst []byte, version int16) []byte {
	dst = appendInt32(dst, m.ThrottleMs)
	dst = appendInt16(dst, m.ErrorCode)
	dst = appendNullableString(dst, m.ErrorMessage, true)
	if version >= 1 {
		dst = appendInt8(dst, m.EndpointType)
	}
	dst = appendString(dst, m.ClusterID, true)
	dst = appendInt32(dst, m.ControllerID)
	dst = appendArrayLen(dst, len(m.Brokers), true)
	for i := range m.Brokers {
		b := &m.Brokers[i]
		dst = appendInt32(dst, b.BrokerID)
		dst = appendString(dst, b.Host, true)
		dst = appendInt32(dst, b.Port)
		dst = appendNullableString(dst, b.Rack, true)
		if version >= 2 {
			dst = appendBool(dst, b.IsFenced)
		}
		dst = appendNoTags(dst, true)
	}
	dst = appendInt32(dst, m.ClusterAuthorizedOps)
	return appendNoTags(dst, true)
}

// DecodeFrom decodes a response's body. Errors: *DecodeError.
func (m *DescribeClusterResponse) DecodeFrom(src []byte, version int16) error {
	*m = DescribeClusterResponse{EndpointType: EndpointBrokers}
	r := newReader(src, KeyDescribeCluster, version)
	m.ThrottleMs = r.int32("throttle_time_ms")
	m.ErrorCode = r.int16("error_code")
	m.ErrorMessage = r.nullableStr("error_message")
	if version >= 1 {
		m.EndpointType = r.int8("endpoint_type")
	}
	m.ClusterID = r.str("cluster_id")
	m.ControllerID = r.int32("controller_id")
	m.Brokers = make([]DescribeClusterBroker, r.array(11, "brokers"))
	for i := range m.Brokers {
		b := &m.Brokers[i]
		b.BrokerID = r.int32("broker_id")
		b.Host = r.str("host")
		b.Port = r.int32("port")
		b.Rack = r.nullableStr("rack")
		if version >= 2 {
			b.IsFenced = r.bool("is_fenced")
		}
		r.skipTags()
	}
	m.ClusterAuthorizedOps = r.int32("cluster_authorized_operations")
	r.skipTags()
	return r.done()
}
