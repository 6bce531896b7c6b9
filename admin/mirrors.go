package admin

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"segmirror/fetchwire"
)

// CreateMirror makes a mirror with its configuration: bootstrap.servers of the source, how to log in there, and any
// mirror-level key.
//
// Errors: INVALID_MIRROR_NAME, INVALID_REQUEST (the name is taken, or a key is missing), INVALID_CONFIG, with the
// agent's words. Kafka: Admin.createMirror.
func (c *Client) CreateMirror(ctx context.Context, mirror string, configs map[string]string, opts CreateMirrorOptions,
) error {
	req := &fetchwire.CreateMirrorRequest{MirrorName: mirror}
	for _, key := range slices.Sorted(maps.Keys(configs)) {
		value := configs[key]
		req.Config = append(req.Config, fetchwire.MirrorConfig{Name: key, Value: &value})
	}
	ctx, p, leave, err := c.begin(ctx, opts.Timeout, c.holders(mirror))
	if err != nil {
		return err
	}
	defer leave()
	for _, n := range p.nodes {
		resp := &fetchwire.CreateMirrorResponse{}
		if err := c.change(ctx, n, req, resp, &resp.MirrorResult); err != nil {
			return err
		}
	}
	return nil
}

// DeleteMirror deletes a mirror that has no topics, or stopped ones only. Failing back is not possible afterwards.
//
// Errors: UNKNOWN_MIRROR, MIRROR_NOT_EMPTY. Kafka: Admin.deleteMirror.
func (c *Client) DeleteMirror(ctx context.Context, mirror string, opts DeleteMirrorOptions) error {
	ctx, p, leave, err := c.begin(ctx, opts.Timeout, c.holders(mirror))
	if err != nil {
		return err
	}
	defer leave()
	done := false
	var missing error
	for _, n := range p.nodes {
		resp := &fetchwire.DeleteMirrorResponse{}
		err := c.change(ctx, n, &fetchwire.DeleteMirrorRequest{MirrorName: mirror}, resp, &resp.MirrorResult)
		switch {
		case err == nil:
			done = true
		case !absent(err):
			return err
		case missing == nil:
			missing = err
		}
	}
	if done {
		return nil
	}
	return missing
}

// change sends a request and turns the answer's code into an error. result is resp's.
func (c *Client) change(ctx context.Context, n Node, req, resp fetchwire.Message, result *fetchwire.MirrorResult,
) error {
	if _, err := c.ask(ctx, n.addr, req, resp); err != nil {
		return err
	}
	if err := result.Err(); err != nil {
		return &AgentError{Addr: n.addr, Err: err}
	}
	return nil
}

// Mirrors is the answer of ListMirrors.
type Mirrors struct {
	Mirrors     []MirrorListing // by name
	Unreachable []*AgentError   // agents whose mirrors are missing
}

// MirrorListing is one mirror. Kafka: MirrorListing.
type MirrorListing struct {
	Name            string
	SourceBootstrap string
	SourceClusterID string // "" = not known
	TopicCount      int
}

// ListMirrors lists the mirrors of all agents asked. The error says that none of them answered.
//
// Kafka: Admin.listMirrors.
func (c *Client) ListMirrors(ctx context.Context, opts ListMirrorsOptions) (*Mirrors, error) {
	ctx, p, leave, err := c.begin(ctx, opts.Timeout, c.find)
	if err != nil {
		return nil, err
	}
	defer leave()
	answers := make([]*fetchwire.ListMirrorsResponse, len(p.nodes))
	errs := p.broadcast(func(i int, n Node) error {
		resp := &fetchwire.ListMirrorsResponse{}
		answers[i] = resp
		return c.change(ctx, n, &fetchwire.ListMirrorsRequest{}, resp, &resp.MirrorResult)
	})
	if err := p.fold(errs); err != nil {
		return nil, err
	}
	list := &Mirrors{Unreachable: p.unreachable}
	byName := map[string]MirrorListing{}
	for i, resp := range answers {
		if errs[i] != nil {
			continue
		}
		for _, m := range resp.Mirrors {
			have := byName[m.MirrorName]
			byName[m.MirrorName] = MirrorListing{
				Name:            m.MirrorName,
				SourceBootstrap: cmp.Or(have.SourceBootstrap, m.SourceBootstrap),
				SourceClusterID: cmp.Or(have.SourceClusterID, m.SourceClusterID),
				TopicCount:      max(have.TopicCount, int(m.TopicCount)),
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		list.Mirrors = append(list.Mirrors, byName[name])
	}
	if len(p.nodes) > 1 {
		c.countTopics(ctx, p, list)
	}
	return list, nil
}

// countTopics corrects the counts of mirrors whose topics are spread over agents.
func (c *Client) countTopics(ctx context.Context, p *peers, list *Mirrors) {
	described, err := c.describe(ctx, p, &fetchwire.DescribeMirrorsRequest{})
	if err != nil {
		return // the counts of the fullest agents stand
	}
	for i := range list.Mirrors {
		for _, m := range described.Mirrors {
			if m.Name == list.Mirrors[i].Name {
				list.Mirrors[i].TopicCount = max(list.Mirrors[i].TopicCount, len(m.Topics))
			}
		}
	}
}

// fold moves the errors of a broadcast to the unreachable, and returns the first if nobody answered, or if a peer is
// no agent.
func (p *peers) fold(errs []error) error {
	answered := 0
	var first error
	for i, err := range errs {
		if err == nil {
			answered++
			continue
		}
		if first == nil {
			first = err
		}
		p.unreachable = append(p.unreachable, agentError(p.nodes[i].addr, err))
	}
	if answered == 0 {
		return first
	}
	return nil
}
