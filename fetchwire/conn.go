package fetchwire

import (
	"context"
	"crypto/tls"
	"fmt"
	"math"
	"net"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/sasl"
)

// DialConfig says how to reach a broker.
type DialConfig struct {
	Addr               string         // host:port
	ClientID           string         // client.id
	TLS                *tls.Config    // nil = plaintext; ServerName defaults to the host
	SASL               sasl.Mechanism // nil = none
	DialTimeout        time.Duration  // connect, TLS, ApiVersions and SASL together; 0 = 30 s
	RequestTimeout     time.Duration  // request.timeout.ms: silence tolerated in a request or response; 0 = 30 s
	MaxFrameBytes      int32          // of responses read whole; 0 = DefaultMaxFrameBytes
	ReceiveBufferBytes int            // replica.socket.receive.buffer.bytes; 0 = the system's
}

const defaultTimeout = 30 * time.Second

func (c DialConfig) withDefaults() DialConfig {
	if c.DialTimeout <= 0 {
		c.DialTimeout = defaultTimeout
	}
	if c.RequestTimeout <= 0 {
		c.RequestTimeout = defaultTimeout
	}
	if c.MaxFrameBytes <= 0 {
		c.MaxFrameBytes = DefaultMaxFrameBytes
	}
	return c
}

// Conn is a connection to one broker. One request is in flight at a time. Owner only, but for Close.
type Conn struct {
	cfg      DialConfig
	clientID *string
	sock     *socket
	versions [len(apiTable)]versionRange // in the table's order
	agent    bool                        // the peer speaks Cluster Mirroring

	frame         frameReader // of responses read whole; shares the window with stream
	stream        FetchStream
	out, in       []byte // reused
	correlationID int32
	reading       bool      // a fetch response is on the way
	reauthAt      time.Time // zero = never
	broken        error     // the first failure

	closed atomic.Bool
}

// versionRange is what a broker offers of one API.
type versionRange struct {
	lowest, highest int16
	offered         bool
}

// A Message is a request or a response of this package: an API key, and a body in several versions.
type Message interface {
	Key() int16
	AppendTo(dst []byte, version int16) []byte
	DecodeFrom(src []byte, version int16) error
}

// newConn wraps a connection on which nothing was sent.
func newConn(nc net.Conn, cfg DialConfig) *Conn {
	cfg = cfg.withDefaults()
	c := &Conn{cfg: cfg, clientID: &cfg.ClientID, sock: &socket{net: nc, silence: cfg.RequestTimeout}}
	window := make([]byte, headBufferBytes)
	c.frame = frameReader{src: c.sock, buf: window}
	c.stream.frame = frameReader{src: c.sock, buf: window}
	c.stream.ended = c.streamEnded
	return c
}

// Addr returns DialConfig.Addr.
func (c *Conn) Addr() string { return c.cfg.Addr }

// Versions returns the broker's range for an API; ok is false when it does not offer it, or this package does not
// speak it.
func (c *Conn) Versions(apiKey int16) (minVersion, maxVersion int16, ok bool) {
	i := apiIndex(apiKey)
	if i < 0 {
		return 0, 0, false
	}
	v := c.versions[i]
	return v.lowest, v.highest, v.offered
}

// Agent reports whether the peer is a mirror agent: it offers Cluster Mirroring's private APIs.
func (c *Conn) Agent() bool { return c.agent }

// Version returns the version this connection uses for an API, the newest both sides know, or ErrUnsupportedVersion.
// Versions that Kafka does not have yet are used with an agent only, whatever a broker may offer under their number.
func (c *Conn) Version(apiKey int16) (int16, error) {
	api, _ := LookupAPI(apiKey)
	lowest, highest, ok := c.Versions(apiKey)
	if !ok {
		return 0, fmt.Errorf("%w: %s does not offer %s", ErrUnsupportedVersion, c.cfg.Addr, APIName(apiKey))
	}
	version := min(api.Max, highest)
	if !c.agent {
		version = min(version, api.KafkaMax)
	}
	if version < max(api.Min, lowest) {
		return 0, fmt.Errorf("%w: %s of %s is %d to %d, ours %d to %d",
			ErrUnsupportedVersion, api.Name, c.cfg.Addr, lowest, highest, api.Min, api.Max)
	}
	return version, nil
}

// Metadata asks for brokers, topics and leaders. A non-zero top-level code (v13+) is returned as KafkaError.
func (c *Conn) Metadata(ctx context.Context, req *MetadataRequest) (*MetadataResponse, error) {
	resp := &MetadataResponse{}
	if err := c.call(ctx, req, resp); err != nil {
		return nil, err
	}
	return resp, CodeError(resp.ErrorCode)
}

// DescribeCluster asks for the cluster id and its brokers. A non-zero code is returned as KafkaError.
func (c *Conn) DescribeCluster(ctx context.Context, req *DescribeClusterRequest) (*DescribeClusterResponse, error) {
	resp := &DescribeClusterResponse{}
	if err := c.call(ctx, req, resp); err != nil {
		return nil, err
	}
	if resp.ErrorCode != CodeNone {
		return resp, KafkaError{Code: resp.ErrorCode, Message: deref(resp.ErrorMessage)}
	}
	return resp, nil
}

// ListOffsets asks for offsets by timestamp. Codes are per partition. ErrReplicaID unless the request is a consumer's.
func (c *Conn) ListOffsets(ctx context.Context, req *ListOffsetsRequest) (*ListOffsetsResponse, error) {
	if req.ReplicaID >= 0 {
		return nil, ErrReplicaID
	}
	resp := &ListOffsetsResponse{}
	if err := c.call(ctx, req, resp); err != nil {
		return nil, err
	}
	return resp, nil
}

// OffsetForLeaderEpoch asks where leader epochs end. Codes are per partition. ErrReplicaID unless the request is a
// consumer's.
func (c *Conn) OffsetForLeaderEpoch(ctx context.Context, req *OffsetForLeaderEpochRequest,
) (*OffsetForLeaderEpochResponse, error) {
	if req.ReplicaID >= 0 {
		return nil, ErrReplicaID
	}
	resp := &OffsetForLeaderEpochResponse{}
	if err := c.call(ctx, req, resp); err != nil {
		return nil, err
	}
	return resp, nil
}

// Fetch sends a fetch request and returns when the response's head is there.
//
// The stream must be read until Next returns false before the Conn is used again (ErrBusy); ctx stays in force until
// then. ErrReplicaID unless the request is a consumer's. The response may be larger than was asked for: a broker
// sends a first batch whole.
func (c *Conn) Fetch(ctx context.Context, req *FetchRequest) (*FetchStream, error) {
	if req.ReplicaID >= 0 {
		return nil, ErrReplicaID
	}
	version, err := c.Version(KeyFetch)
	if err != nil {
		return nil, err
	}
	return c.fetchAs(ctx, req, fetchVersion(req, version))
}

// fetchAs is Fetch in a given version.
func (c *Conn) fetchAs(ctx context.Context, req *FetchRequest, version int16) (*FetchStream, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	if err := c.maybeReauthenticate(ctx); err != nil {
		return nil, c.leave(err)
	}
	if err := c.send(req, version); err != nil {
		return nil, c.leave(err)
	}
	c.sock.silence = c.cfg.RequestTimeout + time.Duration(max(req.MaxWaitMs, 0))*time.Millisecond
	err := c.stream.frame.begin(math.MaxInt32)
	c.sock.silence = c.cfg.RequestTimeout
	if err != nil {
		return nil, c.leave(err)
	}
	c.reading = true
	if err := c.stream.start(req, version, c.correlationID); err != nil {
		return nil, err // the stream has told streamEnded
	}
	return &c.stream, nil
}

// fetchVersion lowers the negotiated version to what the request can say.
func fetchVersion(req *FetchRequest, version int16) int16 {
	if req.Version > 0 {
		version = min(version, req.Version)
	}
	if version < 13 {
		return version
	}
	for i := range req.Topics {
		if req.Topics[i].TopicID == ([16]byte{}) {
			return 12
		}
	}
	return version
}

// Close closes the connection; a call under way fails. Any goroutine, any number of times.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	return c.sock.close()
}

// Call sends any request of this package but Fetch and decodes the answer into resp, the response of the same API.
// Error codes inside resp are the caller's to look at.
func (c *Conn) Call(ctx context.Context, req, resp Message) error {
	if req.Key() != resp.Key() || req.Key() == KeyFetch {
		panic("BUG: Call with " + APIName(req.Key()) + " and " + APIName(resp.Key()))
	}
	return c.call(ctx, req, resp)
}

// call sends req in the negotiated version and decodes the answer into resp.
func (c *Conn) call(ctx context.Context, req, resp Message) error {
	version, err := c.Version(req.Key())
	if err != nil {
		return err
	}
	if err := c.enter(ctx); err != nil {
		return err
	}
	err = c.maybeReauthenticate(ctx)
	if err == nil {
		err = c.exchange(req, resp, version)
	}
	return c.leave(err)
}

// exchange is one request and its response, between enter and leave.
func (c *Conn) exchange(req, resp Message, version int16) error {
	if err := c.send(req, version); err != nil {
		return err
	}
	body, err := c.receive(req.Key(), version, c.cfg.MaxFrameBytes)
	if err != nil {
		return err
	}
	return resp.DecodeFrom(body, version)
}

// send writes a request's frame with one write.
func (c *Conn) send(req Message, version int16) error {
	c.correlationID++
	h := RequestHeader{
		APIKey: req.Key(), APIVersion: version, CorrelationID: c.correlationID, ClientID: c.clientID,
	}
	c.out = h.AppendTo(append(c.out[:0], 0, 0, 0, 0))
	c.out = finishFrame(req.AppendTo(c.out, version), 0)
	_, err := c.sock.Write(c.out)
	return err
}

// receive reads a response whole and returns its body, valid until the next call.
func (c *Conn) receive(key, version int16, limit int32) ([]byte, error) {
	if err := c.frame.begin(limit); err != nil {
		return nil, err
	}
	if cap(c.in) > keepFrameBytes {
		c.in = nil
	}
	var err error
	if c.in, err = c.frame.readAll(c.in); err != nil {
		return nil, err
	}
	correlationID, body, err := decodeResponseHeader(c.in, key, version)
	if err != nil {
		return nil, err
	}
	if correlationID != c.correlationID {
		return nil, fmt.Errorf("%w: correlation id %d, want %d", ErrCorrelation, correlationID, c.correlationID)
	}
	return body, nil
}

// enter refuses a connection that cannot take a request, and puts ctx in force.
func (c *Conn) enter(ctx context.Context) error {
	if c.broken != nil {
		return fmt.Errorf("%w: %w", ErrConnBroken, c.broken)
	}
	if c.reading {
		return ErrBusy
	}
	if c.closed.Load() {
		return fmt.Errorf("%w: %w", ErrConnBroken, net.ErrClosed)
	}
	return c.sock.enter(ctx)
}

// leave ends a call. After an error nobody knows what the next bytes are: the connection is closed.
func (c *Conn) leave(err error) error {
	c.sock.leave()
	if err != nil && c.broken == nil {
		c.broken = err
		_ = c.Close() // err is the cause worth telling
	}
	return err
}

func (c *Conn) streamEnded(err error) {
	c.reading = false
	_ = c.leave(err) // the stream keeps err
}
