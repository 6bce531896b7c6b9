package replicator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"segmirror/fetchwire"
)

// Bounds on what clients may make the agent hold.
const (
	maxClients      = 2000     // connections at a time; more are closed at once
	maxRequestBytes = 16 << 20 // of one request
	keepBufferBytes = 1 << 20  // of a connection's buffers between requests
	clientIdle      = 10 * time.Minute
	clientWrite     = time.Minute // a client that takes nothing for so long is let go
)

// server is the agent's listener for Kafka clients: one goroutine a listener and one a connection, which answers its
// requests in order.
type server struct {
	// immutable
	agent     *Agent
	logger    *slog.Logger
	catalog   catalog
	endpoints []endpoint
	handlers  map[int16]handler
	offered   []fetchwire.APIVersion
	limits    clientLimits
	ctx       context.Context // ends long polls
	stop      context.CancelFunc

	work sync.WaitGroup

	// guarded by mu
	mu      sync.Mutex
	clients map[net.Conn]struct{}
	closing bool
}

// clientLimits bound what clients may hold.
type clientLimits struct {
	clients int
	bytes   int32         // of one request
	idle    time.Duration // a client that has not sent a whole request for so long is let go
	write   time.Duration // and one that takes nothing for so long
}

// endpoint is one listener and the address clients are told of it.
type endpoint struct {
	listener net.Listener
	host     string
	port     int32
}

// handler answers the requests of one API. A nil answer and no error: nothing more is written, serve has written what
// there was to write. An error closes the connection.
type handler struct {
	request func() fetchwire.Message
	serve   func(c *client, req fetchwire.Message) (fetchwire.Response, error)
	max     int16 // newest version offered; 0 = the newest of the codec
}

// client is one connection. Its goroutine owns it.
type client struct {
	server   *server
	conn     net.Conn
	endpoint *endpoint
	head     fetchwire.RequestHeader // of the request being answered
	in, out  []byte
	fetch    fetchAnswer
}

// id is the client id of the request, "" for none.
func (c *client) id() string {
	if c.head.ClientID == nil {
		return ""
	}
	return *c.head.ClientID
}

var errServerClosed = errors.New("the agent is closing")

// listen opens the listeners of cfg; nothing is accepted before run.
func listen(a *Agent, cfg ServerConfig) (*server, error) {
	s := &server{agent: a, logger: a.logger, clients: map[net.Conn]struct{}{}}
	s.limits = clientLimits{clients: maxClients, bytes: maxRequestBytes, idle: clientIdle, write: clientWrite}
	s.catalog.logs, s.catalog.metadata = a.logs, a.metadata
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.handlers = s.apis()
	s.offered = offer(s.handlers)
	for i, addr := range cfg.Listeners {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("listeners: %w", err), s.close())
		}
		e := endpoint{listener: l}
		advertised := addr
		if i < len(cfg.AdvertisedListeners) {
			advertised = cfg.AdvertisedListeners[i]
		}
		if e.host, e.port, err = advertise(advertised, l); err != nil {
			return nil, errors.Join(err, l.Close(), s.close())
		}
		s.endpoints = append(s.endpoints, e)
	}
	return s, nil
}

// advertise returns what clients are told: addr, where an empty or unspecified host is this host's name, and port 0
// the port that was given.
func advertise(addr string, l net.Listener) (host string, port int32, err error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, fmt.Errorf("%w: advertised.listeners: %w", ErrConfig, err)
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("%w: advertised.listeners: %w", ErrConfig, err)
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); ok && n == 0 {
		n = uint64(tcp.Port)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		if host, err = hostName(); err != nil {
			return "", 0, err
		}
	}
	return host, int32(n), nil
}

// offer lists what handlers answer, in order of key.
func offer(handlers map[int16]handler) []fetchwire.APIVersion {
	var offered []fetchwire.APIVersion
	for key, h := range handlers {
		api, ok := fetchwire.LookupAPI(key)
		if !ok {
			panic("BUG: a handler for an API without codec")
		}
		newest := api.Max
		if h.max > 0 {
			newest = h.max
		}
		offered = append(offered, fetchwire.APIVersion{APIKey: key, MinVersion: api.Min, MaxVersion: newest})
	}
	slices.SortFunc(offered, func(a, b fetchwire.APIVersion) int { return int(a.APIKey) - int(b.APIKey) })
	return offered
}

// run accepts clients until close.
func (s *server) run() {
	for i := range s.endpoints {
		s.work.Go(func() { s.accept(&s.endpoints[i]) })
	}
}

func (s *server) accept(e *endpoint) {
	for {
		conn, err := e.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			s.logger.Warn("a connection could not be accepted", slog.Any("err", err))
			timer := time.NewTimer(100 * time.Millisecond) // out of descriptors: let some close
			select {
			case <-timer.C:
				continue
			case <-s.ctx.Done():
				timer.Stop()
				return
			}
		}
		if !s.admit(conn) {
			_ = conn.Close() // nothing was said on it
			continue
		}
		s.work.Go(func() {
			defer s.leave(conn)
			s.talk(&client{server: s, conn: conn, endpoint: e})
		})
	}
}

// admit takes a connection into the table; false when the table is full or the server is closing.
func (s *server) admit(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || len(s.clients) >= s.limits.clients {
		if !s.closing {
			s.logger.Warn("too many connections", slog.Int("limit", s.limits.clients), slog.String("client", addrOf(conn)))
		}
		return false
	}
	s.clients[conn] = struct{}{}
	return true
}

func (s *server) leave(conn net.Conn) {
	s.mu.Lock()
	delete(s.clients, conn)
	s.mu.Unlock()
	_ = conn.Close() // closed for good; what was written is written
}

func addrOf(conn net.Conn) string { return conn.RemoteAddr().String() }

// talk answers one connection's requests until it ends.
func (s *server) talk(c *client) {
	for {
		err := c.answer()
		if err == nil {
			continue
		}
		if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) && s.ctx.Err() == nil {
			s.logger.Info("a client's connection is closed", slog.String("client", addrOf(c.conn)),
				slog.String("client_id", c.id()), slog.String("api", fetchwire.APIName(c.head.APIKey)), slog.Any("err", err))
		}
		return
	}
}

// answer reads one request and writes its answer.
func (c *client) answer() error {
	if cap(c.in) > keepBufferBytes {
		c.in = nil
	}
	if cap(c.out) > keepBufferBytes {
		c.out = nil
	}
	if err := c.conn.SetDeadline(time.Now().Add(c.server.limits.idle)); err != nil {
		return err
	}
	var err error
	if c.in, err = fetchwire.ReadRequestFrame(c.conn, c.in, c.server.limits.bytes); err != nil {
		return err
	}
	var body []byte
	if c.head, body, err = fetchwire.DecodeRequestHeader(c.in); err != nil {
		return err
	}
	if c.head.APIKey == fetchwire.KeyApiVersions {
		c.out = fetchwire.AnswerApiVersions(c.out[:0], c.head, c.server.offered)
		return c.write(c.out)
	}
	h, ok := c.server.handlers[c.head.APIKey]
	if !ok || !c.server.speaks(c.head) {
		return fmt.Errorf("%w: %s v%d is not offered", fetchwire.ErrUnsupportedVersion,
			fetchwire.APIName(c.head.APIKey), c.head.APIVersion)
	}
	req := h.request()
	if err := req.DecodeFrom(body, c.head.APIVersion); err != nil {
		return err
	}
	resp, err := h.serve(c, req)
	if err != nil || resp == nil {
		return err
	}
	c.out = fetchwire.AppendResponse(c.out[:0], c.head, resp)
	return c.write(c.out)
}

// speaks reports whether the version of the request was offered.
func (s *server) speaks(h fetchwire.RequestHeader) bool {
	for _, o := range s.offered {
		if o.APIKey == h.APIKey {
			return h.APIVersion >= o.MinVersion && h.APIVersion <= o.MaxVersion
		}
	}
	return false
}

// write writes bytes; a client that takes none for clientWrite is an error.
func (c *client) write(b []byte) error {
	if err := c.conn.SetWriteDeadline(time.Now().Add(c.server.limits.write)); err != nil {
		return err
	}
	_, err := c.conn.Write(b)
	return err
}

// close ends listeners and connections and waits for their goroutines.
func (s *server) close() error {
	s.stop()
	s.mu.Lock()
	s.closing = true
	for conn := range s.clients {
		_ = conn.Close() // its goroutine sees the error
	}
	s.mu.Unlock()
	var errs []error
	for _, e := range s.endpoints {
		errs = append(errs, e.listener.Close())
	}
	s.work.Wait()
	return errors.Join(errs...)
}
