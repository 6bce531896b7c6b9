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
