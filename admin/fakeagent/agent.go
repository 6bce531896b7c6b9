package fakeagent

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"

	"segmirror/fetchwire"
)

// TB is what Start needs of *testing.T.
type TB interface {
	Helper()
	Cleanup(func())
	Fatal(args ...any)
	Errorf(format string, args ...any)
}

// Agent is a scripted peer. Any goroutine.
type Agent struct {
	tb       TB
	nodeID   int32
	listener net.Listener
	serving  sync.WaitGroup

	mu       sync.Mutex // guards what follows
	handlers map[int16]handler
	asked    []fetchwire.Message
	conns    map[net.Conn]bool
	closed   bool
}

type handler struct {
	request func() fetchwire.Message
	answer  func(fetchwire.Message) fetchwire.Response
}

// Start starts an agent of that node id; it stops at the test's end.
func Start(tb TB, nodeID int32) *Agent {
	tb.Helper()
	a := start(tb, nodeID)
	On(a, func(req *fetchwire.FindCoordinatorRequest) fetchwire.Response {
		host, port := a.hostPort()
		resp := &fetchwire.FindCoordinatorResponse{NodeID: nodeID, Host: host, Port: port}
		for _, key := range req.CoordinatorKeys {
			resp.Coordinators = append(resp.Coordinators, fetchwire.Coordinator{
				Key: key, NodeID: nodeID, Host: host, Port: port,
			})
		}
		return resp
	})
	// An agent is known by the first of these.
	On(a, func(*fetchwire.ListMirrorsRequest) fetchwire.Response { return &fetchwire.ListMirrorsResponse{} })
	On(a, func(*fetchwire.CreateMirrorRequest) fetchwire.Response { return &fetchwire.CreateMirrorResponse{} })
	return a
}

// StartBroker starts a peer that has none of Cluster Mirroring's calls.
func StartBroker(tb TB, nodeID int32) *Agent {
	tb.Helper()
	return start(tb, nodeID)
}

func start(tb TB, nodeID int32) *Agent {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	a := &Agent{
		tb: tb, nodeID: nodeID, listener: l, handlers: map[int16]handler{}, conns: map[net.Conn]bool{},
	}
	On(a, func(*fetchwire.DescribeClusterRequest) fetchwire.Response {
		host, port := a.hostPort()
		return &fetchwire.DescribeClusterResponse{
			EndpointType: fetchwire.EndpointBrokers, ClusterID: "fake", ControllerID: nodeID,
			Brokers:              []fetchwire.DescribeClusterBroker{{BrokerID: nodeID, Host: host, Port: port}},
			ClusterAuthorizedOps: fetchwire.NoAuthorizedOperations,
		}
	})
	a.serving.Go(a.accept)
	tb.Cleanup(a.Stop)
	return a
}

// requestOf is a request whose pointer is a Message.
type requestOf[T any] interface {
	*T
	fetchwire.Message
}

// On makes the agent answer requests of type T with what answer returns; nil closes the connection. The last On of a
// type counts.
func On[T any, P requestOf[T]](a *Agent, answer func(P) fetchwire.Response) {
	key := P(new(T)).Key()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.handlers[key] = handler{
		request: func() fetchwire.Message { return P(new(T)) },
		answer:  func(m fetchwire.Message) fetchwire.Response { return answer(m.(P)) },
	}
}

// Asked returns the requests of type T seen so far, in order.
func Asked[T any, P requestOf[T]](a *Agent) []P {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []P
	for _, m := range a.asked {
		if req, ok := m.(P); ok {
			out = append(out, req)
		}
	}
	return out
}

// Addr returns the agent's address.
func (a *Agent) Addr() string { return a.listener.Addr().String() }

func (a *Agent) hostPort() (string, int32) {
	host, port, err := net.SplitHostPort(a.Addr())
	n, convErr := strconv.Atoi(port)
	if err != nil || convErr != nil {
		panic("BUG: a listener without a port")
	}
	return host, int32(n)
}

// Disconnect closes all connections.
func (a *Agent) Disconnect() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for conn := range a.conns {
		_ = conn.Close() // its goroutine sees it
	}
}

// Stop ends the agent. Any number of times.
func (a *Agent) Stop() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	_ = a.listener.Close() // a second time it is closed already
	a.Disconnect()
	a.serving.Wait()
}

func (a *Agent) accept() {
	for {
		conn, err := a.listener.Accept()
		if err != nil {
			return // Stop
		}
		a.mu.Lock()
		if a.closed {
			_ = conn.Close() // nothing was said on it
		}
		a.conns[conn] = true
		a.mu.Unlock()
		a.serving.Go(func() { a.talk(conn) })
	}
}

// maxRequest bounds a request in bytes.
const maxRequest = 1 << 20

func (a *Agent) talk(conn net.Conn) {
	defer func() {
		a.mu.Lock()
		delete(a.conns, conn)
		a.mu.Unlock()
		_ = conn.Close() // nothing is left to say
	}()
	var in, out []byte
	for {
		var err error
		if in, err = fetchwire.ReadRequestFrame(conn, in, maxRequest); err != nil {
			return
		}
		head, body, err := fetchwire.DecodeRequestHeader(in)
		if err != nil {
			a.tb.Errorf("request header: %v", err)
			return
		}
		if out, err = a.answer(out[:0], head, body); err != nil {
			a.tb.Errorf("%s v%d: %v", fetchwire.APIName(head.APIKey), head.APIVersion, err)
			return
		}
		if len(out) == 0 {
			return
		}
		if _, err := conn.Write(out); err != nil {
			return // the client is gone
		}
	}
}

// answer appends the response's frame, nothing for a connection to be closed.
func (a *Agent) answer(dst []byte, head fetchwire.RequestHeader, body []byte) ([]byte, error) {
	if head.APIKey == fetchwire.KeyApiVersions {
		return fetchwire.AnswerApiVersions(dst, head, a.offered()), nil
	}
	a.mu.Lock()
	h, ok := a.handlers[head.APIKey]
	a.mu.Unlock()
	if !ok {
		return dst, fmt.Errorf("%w: not offered", fetchwire.ErrUnsupportedVersion)
	}
	req := h.request()
	if err := req.DecodeFrom(body, head.APIVersion); err != nil {
		return dst, err
	}
	a.mu.Lock()
	a.asked = append(a.asked, req)
	a.mu.Unlock()
	resp := h.answer(req)
	if resp == nil {
		return dst, nil
	}
	return fetchwire.AppendResponse(dst, head, resp), nil
}

func (a *Agent) offered() []fetchwire.APIVersion {
	a.mu.Lock()
	defer a.mu.Unlock()
	var offered []fetchwire.APIVersion
	for key := range a.handlers {
		api, _ := fetchwire.LookupAPI(key)
		offered = append(offered, fetchwire.APIVersion{APIKey: key, MinVersion: api.Min, MaxVersion: api.Max})
	}
	slices.SortFunc(offered, func(x, y fetchwire.APIVersion) int { return int(x.APIKey) - int(y.APIKey) })
	return offered
}
