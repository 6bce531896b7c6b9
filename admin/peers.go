package admin

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"segmirror/fetchwire"
)

// Node is an agent, or a broker of a Kafka cluster.
type Node struct {
	ID        int32
	Host      string
	Port      int32
	ClusterID string
	Agent     bool // it is a mirror agent

	addr string // where it is reached
}

// Addr returns the address at which the node was reached, or is said to be.
func (n Node) Addr() string { return n.addr }

// peers are those a call goes to.
type peers struct {
	nodes       []Node // in the order given
	unreachable []*AgentError
}

// all returns an error when a peer could not be reached: for calls that change something.
func (p *peers) all() error {
	if len(p.unreachable) > 0 {
		return p.unreachable[0]
	}
	return nil
}

// begin begins a call, as enter does, and finds who it goes to. Without an error leave must be called at its end.
func (c *Client) begin(ctx context.Context, timeout time.Duration, find func(context.Context) (*peers, error),
) (limited context.Context, found *peers, leave func(), err error) {
	limited, leave, err = c.enter(ctx, timeout)
	if err != nil {
		return nil, nil, nil, err
	}
	if found, err = find(limited); err != nil {
		leave()
		return nil, nil, nil, err
	}
	return limited, found, leave, nil
}

// find returns the addresses of everyone a call may go to: what the bootstrap server says its cluster is, and the
// agents given. The error says that nobody could be reached.
func (c *Client) find(ctx context.Context) (*peers, error) {
	found := &peers{}
	seeds, failed := c.seeds(ctx)
	found.unreachable = failed
	var others []Node
	for _, seed := range seeds {
		others = append(others, seed...)
	}
	for _, n := range others {
		same := func(o Node) bool {
			return o.ID == n.ID && o.ClusterID == n.ClusterID && o.Host == n.Host && o.Port == n.Port
		}
		if !slices.ContainsFunc(found.nodes, same) {
			found.nodes = append(found.nodes, n)
		}
	}
	if len(found.nodes) == 0 {
		errs := make([]error, len(failed))
		for i := range failed {
			errs[i] = failed[i]
		}
		return nil, errors.Join(errs...)
	}
	return found, nil
}

// seeds asks the addresses of the configuration which nodes there are: one of the bootstrap servers, and every agent.
func (c *Client) seeds(ctx context.Context) (nodes [][]Node, failed []*AgentError) {
	groups := make([][]string, 0, 1+len(c.cfg.Agents))
	if len(c.cfg.BootstrapServers) > 0 {
		groups = append(groups, c.cfg.BootstrapServers)
	}
	for _, agent := range c.cfg.Agents {
		groups = append(groups, []string{agent})
	}
	nodes = make([][]Node, len(groups))
	errs := make([][]*AgentError, len(groups))
	var asking sync.WaitGroup
	for i, group := range groups {
		asking.Go(func() {
			for _, addr := range group {
				var err error
				if nodes[i], err = c.cluster(ctx, addr); err == nil {
					errs[i] = nil
					return
				}
				errs[i] = append(errs[i], agentError(addr, err))
			}
		})
	}
	asking.Wait()
	return nodes, slices.Concat(errs...)
}

func agentError(addr string, err error) *AgentError {
	var e *AgentError
	if errors.As(err, &e) {
		return e
	}
	return &AgentError{Addr: addr, Err: err}
}

// cluster returns the nodes that the peer at addr says there are. A peer that names one node only is that node; of a
// cluster of several the nodes are reached where they say.
func (c *Client) cluster(ctx context.Context, addr string) ([]Node, error) {
	resp := &fetchwire.DescribeClusterResponse{}
	req := &fetchwire.DescribeClusterRequest{EndpointType: fetchwire.EndpointBrokers}
	agent, err := c.ask(ctx, addr, req, resp)
	if err != nil {
		return nil, err
	}
	if resp.ErrorCode != fetchwire.CodeNone {
		return nil, &AgentError{Addr: addr, Err: kafkaError(resp.ErrorCode, resp.ErrorMessage)}
	}
	nodes := make([]Node, 0, len(resp.Brokers))
	for _, b := range resp.Brokers {
		n := Node{ID: b.BrokerID, Host: b.Host, Port: b.Port, ClusterID: resp.ClusterID, Agent: agent}
		n.addr = net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
		if len(resp.Brokers) == 1 {
			n.addr = addr
		}
		nodes = append(nodes, n)
	}
	if len(nodes) == 0 {
		return nil, &AgentError{Addr: addr, Err: ErrNoAnswer}
	}
	slices.SortFunc(nodes, func(a, b Node) int { return cmp.Compare(a.ID, b.ID) })
	return nodes, nil
}

// broadcast runs one question of every peer at the same time and returns the errors in the peers' order.
func (p *peers) broadcast(run func(i int, n Node) error) []error {
	errs := make([]error, len(p.nodes))
	var asking sync.WaitGroup
	for i, n := range p.nodes {
		asking.Go(func() { errs[i] = run(i, n) })
	}
	asking.Wait()
	return errs
}

// Nodes returns the agents, or the brokers of a Kafka cluster, that the client reaches, in the order of their ids for
// each address given. Those that do not answer are missing.
//
// Kafka: Admin.describeCluster.
func (c *Client) Nodes(ctx context.Context) ([]Node, error) {
	_, p, leave, err := c.begin(ctx, 0, c.find)
	if err != nil {
		return nil, err
	}
	defer leave()
	return p.nodes, nil
}

// Topics returns the names of all topics that the peers serve, sorted. Kafka: Admin.listTopics.
func (c *Client) Topics(ctx context.Context) ([]string, error) {
	ctx, p, leave, err := c.begin(ctx, 0, c.find)
	if err != nil {
		return nil, err
	}
	defer leave()
	var names []string
	for _, n := range p.nodes {
		resp := &fetchwire.MetadataResponse{}
		if _, err := c.ask(ctx, n.addr, &fetchwire.MetadataRequest{}, resp); err != nil {
			return nil, err
		}
		for i := range resp.Topics {
			if name := resp.Topics[i].Name; name != nil {
				names = append(names, *name)
			}
		}
		if !n.Agent {
			break // every broker of a cluster knows all of its topics
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// FindCoordinator returns the agent that holds a mirror. Kafka: FindCoordinator with key type MIRROR (3).
func (c *Client) FindCoordinator(ctx context.Context, mirror string) (Node, error) {
	ctx, p, leave, err := c.begin(ctx, 0, c.find)
	if err != nil {
		return Node{}, err
	}
	defer leave()
	return c.coordinator(ctx, p, mirror)
}

// coordinator asks the first peer who holds a mirror.
func (c *Client) coordinator(ctx context.Context, p *peers, mirror string) (Node, error) {
	first := p.nodes[0]
	if !first.Agent {
		return Node{}, &NotAgentError{Addr: first.addr, API: "FindCoordinator for mirrors"}
	}
	resp := &fetchwire.FindCoordinatorResponse{}
	req := &fetchwire.FindCoordinatorRequest{
		CoordinatorKey: mirror, CoordinatorType: fetchwire.CoordinatorMirror, CoordinatorKeys: []string{mirror},
	}
	if _, err := c.ask(ctx, first.addr, req, resp); err != nil {
		return Node{}, err
	}
	got := fetchwire.Coordinator{
		NodeID: resp.NodeID, Host: resp.Host, Port: resp.Port,
		ErrorCode: resp.ErrorCode, ErrorMessage: resp.ErrorMessage,
	}
	if len(resp.Coordinators) > 0 {
		got = resp.Coordinators[0]
	}
	if got.ErrorCode != fetchwire.CodeNone {
		return Node{}, &AgentError{Addr: first.addr, Err: kafkaError(got.ErrorCode, got.ErrorMessage)}
	}
	for _, n := range p.nodes {
		if n.ID == got.NodeID {
			return n, nil // it may be reachable where it was found, and not where it says
		}
	}
	return Node{
		ID: got.NodeID, Host: got.Host, Port: got.Port, ClusterID: first.ClusterID, Agent: true,
		addr: net.JoinHostPort(got.Host, strconv.Itoa(int(got.Port))),
	}, nil
}

// holders finds the peers that a change of a mirror goes to: every agent when several are given, else the one that
// holds the mirror.
func (c *Client) holders(mirror string) func(context.Context) (*peers, error) {
	return func(ctx context.Context) (*peers, error) {
		p, err := c.find(ctx)
		if err != nil {
			return nil, err
		}
		if err := p.all(); err != nil {
			return nil, err
		}
		if len(c.cfg.Agents) > 0 {
			return p, nil
		}
		holder, err := c.coordinator(ctx, p, mirror)
		if err != nil {
			return nil, err
		}
		return &peers{nodes: []Node{holder}}, nil
	}
}

// kafkaError is a code and its words as an error.
func kafkaError(code int16, message *string) error {
	e := fetchwire.KafkaError{Code: code}
	if message != nil {
		e.Message = *message
	}
	return e
}
