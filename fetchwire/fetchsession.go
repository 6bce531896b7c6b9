package fetchwire

// FetchParams are the parts of a fetch request that do not belong to a partition.
type FetchParams struct {
	MaxWaitMs      int32
	MinBytes       int32
	MaxBytes       int32
	IsolationLevel int8 // 0 = read uncommitted
	Rack           string
}

// SessionPartition is one partition a fetcher wants to read.
type SessionPartition struct {
	Topic   string
	TopicID [16]byte // zero = not known: the whole request then goes by names (v12)
	Slot    int      // the caller's own number, given back in PartitionHead
	FetchPartition
}

// FetchSession keeps what a broker already knows of our partitions, so that a request names only what changed.
//
// Owner only (the goroutine that owns the Conn). A new Conn needs a new session or Reset. Kafka: FetchSessionHandler, KIP-227.
type FetchSession struct {
	maxVersion int16
	req        FetchRequest
}

// NewFetchSession returns a session that uses at most version maxVersion, normally Conn.Version(KeyFetch).
func NewFetchSession(maxVersion int16) *FetchSession { return &FetchSession{maxVersion: maxVersion} }

// Next returns the request for the partitions wanted now: all of them when no session stands, else those that are
// new or changed, and the forgotten ones. Partitions of a topic need not be neighbours.
//
// The request is valid until the next call of Next and is reused by it; wanted stays the caller's.
// The order of wanted is the order in which a broker fills the response only for a full request; inside a session
// the broker itself rotates. No allocation once every partition was seen.
func (s *FetchSession) Next(params FetchParams, wanted []SessionPartition) *FetchRequest {
	return &s.req
}

// HandleResponse moves the session on after a response whose head was decoded.
//
// errorCode is the response's top-level code. It returns nil, or the code as KafkaError after the session was
// reset (the next request is then a full one).
func (s *FetchSession) HandleResponse(sessionID int32, errorCode int16) error { return nil }

// Reset forgets the session, after a network error or on a new connection: the next request is a full one.
func (s *FetchSession) Reset() {}

// CloseRequest returns the request that ends the session on the broker, or nil if there is none.
func (s *FetchSession) CloseRequest() *FetchRequest { return nil }
