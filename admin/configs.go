package admin

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"segmirror/fetchwire"
)

// ConfigResource is something that has a configuration. Kafka: ConfigResource.
type ConfigResource struct {
	Type int8   // fetchwire.ResourceTopic, ResourceBroker or ResourceMirror
	Name string // a topic, a node's id ("" = the default of all), a mirror
}

// ConfigOp is one change of a configuration. Kafka: AlterConfigOp.
type ConfigOp struct {
	Op    int8 // fetchwire.ConfigSet, ConfigDelete, ConfigAppend or ConfigSubtract
	Key   string
	Value string // not used by ConfigDelete
}

// ConfigChange is what to change of one resource: all of it, or nothing.
type ConfigChange struct {
	Resource ConfigResource
	Ops      []ConfigOp
}

// ConfigResult is what became of one change.
type ConfigResult struct {
	Resource ConfigResource
	Err      error // nil = done
}

// ConfigDescription is the configuration of one resource. Kafka: Config.
type ConfigDescription struct {
	Resource ConfigResource
	Err      error // nil, or why it is not described
	Entries  []ConfigEntry
}

// ConfigEntry is one key of it, in the order of the answer. Kafka: ConfigEntry.
type ConfigEntry struct {
	Key           string
	Value         *string // nil = null, or sensitive
	Source        int8    // fetchwire.ConfigSourceTopic and following
	Type          int8    // fetchwire.ConfigTypeUnknown and following
	ReadOnly      bool
	Sensitive     bool
	Synonyms      []ConfigSynonym // the strongest first
	Documentation string
}

// ConfigSynonym is one place a value could come from. Kafka: ConfigEntry.ConfigSynonym.
type ConfigSynonym struct {
	Key    string
	Value  *string
	Source int8
}

// IncrementalAlterConfigs changes configurations. A mirror's and a topic's go to every agent, a node's to that node. A
// stock broker takes those of topics and brokers, too.
//
// The error says that a peer could not be asked; refusals (INVALID_CONFIG, UNKNOWN_MIRROR, POLICY_VIOLATION) are in the
// results. Kafka: Admin.incrementalAlterConfigs.
func (c *Client) IncrementalAlterConfigs(ctx context.Context, changes []ConfigChange, opts AlterConfigsOptions,
) ([]ConfigResult, error) {
	ctx, p, leave, err := c.begin(ctx, opts.Timeout, c.find)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := p.all(); err != nil {
		return nil, err
	}
	results := make([]ConfigResult, len(changes))
	for i, change := range changes {
		results[i].Resource = change.Resource
		nodes, err := p.keepers(change.Resource)
		if err != nil {
			return nil, err
		}
		if results[i].Err, err = c.alter(ctx, nodes, change, opts.ValidateOnly); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// alter sends one change to nodes; refusal is what they have against it.
func (c *Client) alter(ctx context.Context, nodes []Node, change ConfigChange, validate bool) (refusal, err error) {
	res := fetchwire.AlterConfigsResource{ResourceType: change.Resource.Type, ResourceName: change.Resource.Name}
	for _, op := range change.Ops {
		entry := fetchwire.AlterConfig{Name: op.Key, Op: op.Op, Value: &op.Value}
		if op.Op == fetchwire.ConfigDelete {
			entry.Value = nil
		}
		res.Configs = append(res.Configs, entry)
	}
	done := false
	for _, n := range nodes {
		resp := &fetchwire.IncrementalAlterConfigsResponse{}
		req := &fetchwire.IncrementalAlterConfigsRequest{
			Resources: []fetchwire.AlterConfigsResource{res}, ValidateOnly: validate,
		}
		if _, err := c.ask(ctx, n.addr, req, resp); err != nil {
			return nil, err
		}
		if len(resp.Resources) != 1 {
			return nil, &AgentError{Addr: n.addr, Err: ErrNoAnswer}
		}
		if got := &resp.Resources[0]; got.ErrorCode != fetchwire.CodeNone {
			refusal = worse(refusal, &AgentError{Addr: n.addr, Err: kafkaError(got.ErrorCode, got.ErrorMessage)})
			continue
		}
		done = true
	}
	if done && refusal != nil && absent(refusal) {
		return nil, nil // it is another agent's
	}
	return refusal, nil
}

// keepers returns the nodes that keep a resource's configuration.
func (p *peers) keepers(r ConfigResource) ([]Node, error) {
	agents := p.nodes[0].Agent
	switch {
	case r.Type == fetchwire.ResourceMirror && !agents:
		return nil, &NotAgentError{Addr: p.nodes[0].addr, API: "the configuration of mirrors"}
	case r.Type == fetchwire.ResourceBroker && r.Name != "":
		return p.node(r.Name)
	case !agents:
		return p.nodes[:1], nil // it passes the request on
	}
	return p.nodes, nil
}

// node returns the node of an id.
func (p *peers) node(id string) ([]Node, error) {
	i := slices.IndexFunc(p.nodes, func(n Node) bool { return strconv.Itoa(int(n.ID)) == id })
	if i >= 0 {
		return p.nodes[i : i+1], nil
	}
	ids := make([]int32, len(p.nodes))
	for i, n := range p.nodes {
		ids[i] = n.ID
	}
	return nil, fmt.Errorf("%w: no node has the id %s; those reached have %d", ErrUnknownNode, id, ids)
}

// DescribeConfigs describes configurations, one description for each resource, in order. The error says that no peer
// could be asked, or, ErrUnknownNode, that there is no node of a given id.
//
// Kafka: Admin.describeConfigs.
func (c *Client) DescribeConfigs(ctx context.Context, resources []ConfigResource, opts DescribeConfigsOptions,
) ([]ConfigDescription, error) {
	ctx, p, leave, err := c.begin(ctx, opts.Timeout, c.find)
	if err != nil {
		return nil, err
	}
	defer leave()
	out := make([]ConfigDescription, len(resources))
	for i, r := range resources {
		nodes, err := p.keepers(r)
		if err != nil {
			return nil, err
		}
		if out[i], err = c.describeConfig(ctx, nodes, r, opts); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// describeConfig asks nodes until one knows the resource.
func (c *Client) describeConfig(ctx context.Context, nodes []Node, r ConfigResource, opts DescribeConfigsOptions,
) (ConfigDescription, error) {
	out := ConfigDescription{Resource: r}
	for _, n := range nodes {
		req := &fetchwire.DescribeConfigsRequest{
			Resources:       []fetchwire.DescribeConfigsResource{{ResourceType: r.Type, ResourceName: r.Name}},
			IncludeSynonyms: opts.IncludeSynonyms, IncludeDocumentation: opts.IncludeDocumentation,
		}
		resp := &fetchwire.DescribeConfigsResponse{}
		if _, err := c.ask(ctx, n.addr, req, resp); err != nil {
			return out, err
		}
		if len(resp.Resources) != 1 {
			return out, &AgentError{Addr: n.addr, Err: ErrNoAnswer}
		}
		got := &resp.Resources[0]
		if got.ErrorCode != fetchwire.CodeNone {
			out.Err = worse(out.Err, &AgentError{Addr: n.addr, Err: kafkaError(got.ErrorCode, got.ErrorMessage)})
			continue
		}
		out.Err = nil
		for j := range got.Configs {
			out.Entries = append(out.Entries, configEntry(&got.Configs[j]))
		}
		return out, nil
	}
	return out, nil
}

func configEntry(in *fetchwire.DescribedConfig) ConfigEntry {
	e := ConfigEntry{
		Key: in.Name, Value: in.Value, Source: in.Source, Type: in.ConfigType, ReadOnly: in.ReadOnly,
		Sensitive: in.IsSensitive,
	}
	if in.Documentation != nil {
		e.Documentation = *in.Documentation
	}
	for _, s := range in.ConfigSynonyms {
		e.Synonyms = append(e.Synonyms, ConfigSynonym{Key: s.Name, Value: s.Value, Source: s.Source})
	}
	return e
}
