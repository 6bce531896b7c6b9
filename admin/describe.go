package admin

import (
	"cmp"
	"context"
	"slices"

	"segmirror/fetchwire"
)

// Descriptions is the answer of DescribeMirrors.
type Descriptions struct {
	Mirrors     []MirrorDescription // by name
	Unreachable []*AgentError       // agents whose partitions are missing
}

// MirrorDescription is one mirror: what the agents that answered hold of it. Kafka: MirrorDescription.
type MirrorDescription struct {
	Name                 string
	Err                  error              // nil, or why nothing is said of it; UNKNOWN_MIRROR for a name nobody knows
	AuthorizedOperations int32              // fetchwire.NoAuthorizedOperations = not asked for
	Topics               []TopicDescription // by name
}

// TopicDescription is one topic of a mirror.
type TopicDescription struct {
	Name        string
	SourceChain []string               // ids of the clusters its records come through, the agent's own source first
	Partitions  []PartitionDescription // by number
}

// PartitionDescription is one partition. Offsets and lag are -1 as long as they are not known, and of stopped and
// paused partitions.
type PartitionDescription struct {
	Partition         int32
	SourceOffset      int64 // the source leader's high watermark
	DestinationOffset int64 // the copy's end
	Lag               int64 // records
	State             string
	LastMirrorEpoch   int32  // -1 = none
	LastMirroredEnd   int64  // exclusive; -1 = none
	Cause             string // why it is FAILED and what resolves it; else ""
	Attempts          int32  // tries since it failed
	Agent             string // address of the agent that holds it
}

// DescribeMirrors describes mirrors, all if names is empty. The error says that no agent answered; one of a single
// mirror is in its description.
//
// Kafka: Admin.describeMirrors.
func (c *Client) DescribeMirrors(ctx context.Context, names []string, opts DescribeMirrorsOptions,
) (*Descriptions, error) {
	ctx, p, leave, err := c.begin(ctx, opts.Timeout, c.find)
	if err != nil {
		return nil, err
	}
	defer leave()
	return c.describe(ctx, p, &fetchwire.DescribeMirrorsRequest{
		MirrorNames: names, IncludeAuthorizedOps: opts.IncludeAuthorizedOperations,
	})
}

// describe asks every peer and merges.
func (c *Client) describe(ctx context.Context, p *peers, req *fetchwire.DescribeMirrorsRequest) (*Descriptions, error) {
	answers := make([]*fetchwire.DescribeMirrorsResponse, len(p.nodes))
	errs := p.broadcast(func(i int, n Node) error {
		resp := &fetchwire.DescribeMirrorsResponse{}
		answers[i] = resp
		return c.change(ctx, n, req, resp, &resp.MirrorResult)
	})
	if err := p.fold(errs); err != nil {
		return nil, err
	}
	merged := &Descriptions{Unreachable: p.unreachable}
	for i, resp := range answers {
		if errs[i] != nil {
			continue
		}
		for j := range resp.Mirrors {
			merged.add(&resp.Mirrors[j], p.nodes[i].addr)
		}
	}
	merged.sort()
	return merged, nil
}

// add merges what one agent says of one mirror.
func (d *Descriptions) add(in *fetchwire.DescribedMirror, agent string) {
	i := slices.IndexFunc(d.Mirrors, func(m MirrorDescription) bool { return m.Name == in.MirrorName })
	if i < 0 {
		i = len(d.Mirrors)
		d.Mirrors = append(d.Mirrors, MirrorDescription{
			Name: in.MirrorName, AuthorizedOperations: in.AuthorizedOps, Err: fetchwire.CodeError(in.ErrorCode),
		})
	}
	m := &d.Mirrors[i]
	if err := fetchwire.CodeError(in.ErrorCode); err == nil || m.Err != nil && !absent(err) {
		m.Err = err
	}
	for j := range in.Topics {
		t := m.topic(in.Topics[j].TopicName)
		if len(t.SourceChain) == 0 {
			t.SourceChain = in.Topics[j].SourceChain
		}
		t.add(in.Topics[j].Partitions, agent)
	}
}

// topic returns the topic of that name, made if it is not there.
func (m *MirrorDescription) topic(name string) *TopicDescription {
	i := slices.IndexFunc(m.Topics, func(t TopicDescription) bool { return t.Name == name })
	if i < 0 {
		i = len(m.Topics)
		m.Topics = append(m.Topics, TopicDescription{Name: name})
	}
	return &m.Topics[i]
}

// add takes partitions in. Of one that two agents hold (a second copy, or one that was handed over) the longer copy
// stands.
func (t *TopicDescription) add(partitions []fetchwire.DescribedMirrorPartition, agent string) {
	for i := range partitions {
		p := describedPartition(&partitions[i], agent)
		j := slices.IndexFunc(t.Partitions, func(o PartitionDescription) bool { return o.Partition == p.Partition })
		switch {
		case j < 0:
			t.Partitions = append(t.Partitions, p)
		case p.DestinationOffset > t.Partitions[j].DestinationOffset:
			t.Partitions[j] = p
		}
	}
}

func describedPartition(in *fetchwire.DescribedMirrorPartition, agent string) PartitionDescription {
	p := PartitionDescription{
		Partition: in.PartitionIndex, SourceOffset: in.SourceOffset, DestinationOffset: in.DestinationOffset,
		Lag: in.Lag, State: in.State, LastMirrorEpoch: in.LastMirrorEpoch, LastMirroredEnd: in.LastMirroredEnd,
		Attempts: in.Attempts, Agent: agent,
	}
	if in.Cause != nil {
		p.Cause = *in.Cause
	}
	return p
}

// sort puts mirrors and topics in order of name, partitions in order of number.
func (d *Descriptions) sort() {
	slices.SortFunc(d.Mirrors, func(a, b MirrorDescription) int { return cmp.Compare(a.Name, b.Name) })
	for i := range d.Mirrors {
		topics := d.Mirrors[i].Topics
		slices.SortFunc(topics, func(a, b TopicDescription) int { return cmp.Compare(a.Name, b.Name) })
		for j := range topics {
			slices.SortFunc(topics[j].Partitions, func(a, b PartitionDescription) int {
				return cmp.Compare(a.Partition, b.Partition)
			})
		}
	}
}

// Ready returns why a mirror is not ready to fail over, one line a partition, nil if it is: every partition is
// MIRRORING with lag 0, or STOPPED. A mirror without partitions is not ready.
func (m *MirrorDescription) Ready() []string {
	var why []string
	partitions := 0
	for _, t := range m.Topics {
		for _, p := range t.Partitions {
			partitions++
			if reason := p.notReady(); reason != "" {
				why = append(why, p.name(t.Name)+" "+reason)
			}
		}
	}
	if partitions == 0 {
		why = append(why, "it has no partitions")
	}
	return why
}
