package admin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sasl"

	"segmirror/fetchwire"
)

// Config says how agents are reached. Kafka: AdminClientConfig.
type Config struct {
	BootstrapServers []string       // bootstrap.servers: host:port each; the first that answers is used
	Agents           []string       // host:port each; all are asked, beside the bootstrap server
	ClientID         string         // client.id; "" = segmirror-admin
	TLS              *tls.Config    // nil = plaintext; without a ServerName each address's host is expected
	SASL             sasl.Mechanism // nil = none
	ConnectTimeout   time.Duration  // socket.connection.setup.timeout.ms: until an agent can be asked; 0 = 10 s
	RequestTimeout   time.Duration  // request.timeout.ms: silence tolerated in one request; 0 = 30 s
	CallTimeout      time.Duration  // default.api.timeout.ms: of a whole call, if its options say nothing; 0 = 60 s
}

const (
	defaultConnectTimeout = 10 * time.Second
	defaultRequestTimeout = 30 * time.Second
	defaultCallTimeout    = time.Minute
	defaultClientID       = "segmirror-admin"
)

// Client asks agents. Any goroutine; calls run one after another.
//
// Kafka: Admin.
type Client struct {
	cfg  Config
	busy chan struct{} // holds a token while a call runs

	mu     sync.Mutex // guards what follows and every link's conn: a call asks several agents at once
	links  map[string]*link
	closed bool
}

// link is the connection to one address.
type link struct {
	serial sync.Mutex // held while a request is on the way
	conn   *fetchwire.Conn
}

// New returns a client; nothing is connected before the first call. ErrConfig for an address that is not host:port, or
// when there is none.
func New(cfg Config) (*Client, error) {
	if len(cfg.BootstrapServers)+len(cfg.Agents) == 0 {
		return nil, fmt.Errorf("%w: no bootstrap server and no agent is given", ErrConfig)
	}
	for _, addr := range slices.Concat(cfg.BootstrapServers, cfg.Agents) {
		if err := checkAddr(addr); err != nil {
			return nil, err
		}
	}
	if cfg.ClientID == "" {
		cfg.ClientID = defaultClientID
	}
	if cfg.ConnectTimeout <= 0 {
		cfg.ConnectTimeout = defaultConnectTimeout
	}
	if cfg.RequestTimeout <= 0 {
		cfg.RequestTimeout = defaultRequestTimeout
	}
	if cfg.CallTimeout <= 0 {
		cfg.CallTimeout = defaultCallTimeout
	}
	return &Client{cfg: cfg, busy: make(chan struct{}, 1), links: map[string]*link{}}, nil
}

func checkAddr(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%w: invalid url in bootstrap.servers: %q is not host:port", ErrConfig, addr)
	}
	return nil
}

// Close ends the client's connections; a call under way fails. Any number of times.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	var errs []error
	for _, l := range c.links {
		if l.conn != nil {
			errs = append(errs, l.conn.Close())
			l.conn = nil
		}
	}
	return errors.Join(errs...)
}

// enter begins a call: the returned context has the call's time limit, and leave must be called at its end.
func (c *Client) enter(ctx context.Context, timeout time.Duration) (limited context.Context, leave func(), err error) {
	if timeout <= 0 {
		timeout = c.cfg.CallTimeout
	}
	limited, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not done within %v: %w", timeout,
		context.DeadlineExceeded))
	select {
	case c.busy <- struct{}{}:
		return limited, func() { <-c.busy; cancel() }, nil
	case <-limited.Done():
		defer cancel()
		return nil, nil, context.Cause(limited)
	}
}

// link returns the link to addr, held.
func (c *Client) link(addr string) *link {
	c.mu.Lock()
	l := c.links[addr]
	if l == nil {
		l = &link{}
		c.links[addr] = l
	}
	c.mu.Unlock()
	l.serial.Lock()
	return l
}

// connect returns a held link's connection, made if there is none; reused tells which.
func (c *Client) connect(ctx context.Context, addr string, l *link) (conn *fetchwire.Conn, reused bool, err error) {
	c.mu.Lock()
	conn, closed := l.conn, c.closed
	c.mu.Unlock()
	if closed {
		return nil, false, ErrClosed
	}
	if conn != nil {
		return conn, true, nil
	}
	cfg := fetchwire.DialConfig{
		Addr: addr, ClientID: c.cfg.ClientID, TLS: c.cfg.TLS, SASL: c.cfg.SASL,
		DialTimeout: c.cfg.ConnectTimeout, RequestTimeout: c.cfg.RequestTimeout,
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, false, err
	}
	if host == "" {
		// As Kafka does: no host is this one.
		cfg.Addr = net.JoinHostPort("localhost", port)
	}
	if conn, err = fetchwire.Dial(ctx, cfg); err != nil {
		return nil, false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, false, errors.Join(ErrClosed, conn.Close())
	}
	l.conn = conn
	return conn, false, nil
}

// drop forgets a held link's connection, which failed.
func (c *Client) drop(l *link, conn *fetchwire.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.conn == conn {
		l.conn = nil
	}
	_ = conn.Close() // it failed, and that error is told
}

// ask sends one request to one agent. A connection that was idle may have ended meanwhile: a question is asked again
// on a new one, a change is not, because nobody knows whether the first one was made.
//
// It returns whether the peer is an agent. Errors: *AgentError, *NotAgentError.
func (c *Client) ask(ctx context.Context, addr string, req, resp fetchwire.Message) (agent bool, err error) {
	l := c.link(addr)
	defer l.serial.Unlock()
	for {
		conn, reused, err := c.connect(ctx, addr, l)
		if err != nil {
			return false, &AgentError{Addr: addr, Err: causeOr(ctx, err)}
		}
		if err := offers(conn, req.Key()); err != nil {
			return conn.Agent(), err
		}
		if err = conn.Call(ctx, req, resp); err == nil {
			return conn.Agent(), nil
		}
		c.drop(l, conn)
		if !reused || changes(req.Key()) || ctx.Err() != nil {
			return false, &AgentError{Addr: addr, Err: causeOr(ctx, err)}
		}
	}
}

// causeOr returns ctx's cause if ctx ended, else err.
func causeOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// offers tells whether the peer knows the call.
func offers(conn *fetchwire.Conn, key int16) error {
	if _, err := conn.Version(key); err == nil {
		return nil
	} else if api, _ := fetchwire.LookupAPI(key); api.KafkaMax >= 0 {
		return err
	}
	return &NotAgentError{Addr: conn.Addr(), API: fetchwire.APIName(key), Agent: conn.Agent()}
}

// changes tells whether a request changes something.
func changes(key int16) bool {
	switch key {
	case fetchwire.KeyMetadata, fetchwire.KeyDescribeCluster, fetchwire.KeyFindCoordinator,
		fetchwire.KeyDescribeConfigs, fetchwire.KeyListMirrors, fetchwire.KeyDescribeMirrors,
		fetchwire.KeyReadMirrorStates:
		return false
	}
	return true
}
