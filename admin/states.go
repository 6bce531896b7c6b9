package admin

import (
	"context"
	"slices"

	"segmirror/fetchwire"
)

// PartitionState is the stored state of a partition.
type PartitionState struct {
	Topic           string
	Partition       int32
	State           int8  // as stored: 0 PREPARING, 1 MIRRORING, 2 PAUSING, 3 PAUSED, 4 STOPPING, 5 STOPPED, 6 FAILED
	LastMirrorEpoch int32 // -1 = none
	LastMirroredEnd int64 // exclusive; -1 = none
	Err             error // of an answer: why nothing is said of it
}

// PartitionResult is what became of one partition.
type PartitionResult struct {
	Topic     string
	Partition int32
	Err       error // nil = done
}

// LeaderEpochBump asks that a partition's leader epoch be at least MinLeaderEpoch.
type LeaderEpochBump struct {
	TopicID        [16]byte
	Partition      int32
	MinLeaderEpoch int32
}

// ReadMirrorStates reads the stored states of partitions: topics holds their numbers by topic. Kafka: ReadMirrorStates.
func (c *Client) ReadMirrorStates(ctx context.Context, mirror string, topics map[string][]int32, opts StatesOptions,
) ([]PartitionState, error) {
	ctx, p, leave, err := c.begin(ctx, opts.Timeout, c.find)
	if err != nil {
		return nil, err
	}
	defer leave()
	req := &fetchwire.ReadMirrorStatesRequest{MirrorName: mirror}
	for _, name := range sortedKeys(topics) {
		req.Topics = append(req.Topics, fetchwire.ReadMirrorStatesTopic{Name: name, Partitions: topics[name]})
	}
	answers := make([]*fetchwire.ReadMirrorStatesResponse, len(p.nodes))
	errs := p.broadcast(func(i int, n Node) error {
		answers[i] = &fetchwire.ReadMirrorStatesResponse{}
		return c.change(ctx, n, req, answers[i], &answers[i].MirrorResult)
	})
	if err := p.fold(errs); err != nil {
		return nil, err
	}
	var states []PartitionState
	for i, resp := range answers {
		if errs[i] != nil {
			continue
		}
		for _, t := range resp.Topics {
			for _, s := range t.Partitions {
				states = mergeState(states, PartitionState{
					Topic: t.Name, Partition: s.PartitionIndex, State: s.State, LastMirrorEpoch: s.LastMirrorEpoch,
					LastMirroredEnd: s.LastMirroredEnd, Err: fetchwire.CodeError(s.ErrorCode),
				})
			}
		}
	}
	return states, nil
}

// mergeState adds what an agent says of a partition; a state stands over an error.
func mergeState(states []PartitionState, s PartitionState) []PartitionState {
	i := slices.IndexFunc(states, func(o PartitionState) bool {
		return o.Topic == s.Topic && o.Partition == s.Partition
	})
	switch {
	case i < 0:
		return append(states, s)
	case states[i].Err != nil && (s.Err == nil || absent(states[i].Err)):
		states[i] = s
	}
	return states
}

// WriteMirrorStates stores states of partitions; stopped names topics whose stop was asked for. For agents among
// themselves. Kafka: WriteMirrorStates.
func (c *Client) WriteMirrorStates(ctx context.Context, mirror string, states []PartitionState, stopped []string,
	opts StatesOptions,
) ([]PartitionResult, error) {
	ctx, p, leave, err := c.begin(ctx, opts.Timeout, c.holders(mirror))
	if err != nil {
		return nil, err
	}
	defer leave()
	req := &fetchwire.WriteMirrorStatesRequest{MirrorName: mirror, StoppedTopics: stopped}
	for _, s := range states {
		i := slices.IndexFunc(req.Topics, func(t fetchwire.MirrorStatesTopic) bool { return t.Name == s.Topic })
		if i < 0 {
			i = len(req.Topics)
			req.Topics = append(req.Topics, fetchwire.MirrorStatesTopic{Name: s.Topic})
		}
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, fetchwire.MirrorPartitionState{
			PartitionIndex: s.Partition, State: s.State, LastMirrorEpoch: s.LastMirrorEpoch,
			LastMirroredEnd: s.LastMirroredEnd,
		})
	}
	var results []PartitionResult
	for _, n := range p.nodes {
		resp := &fetchwire.WriteMirrorStatesResponse{}
		if err := c.change(ctx, n, req, resp, &resp.MirrorResult); err != nil {
			return nil, err
		}
		results = mergeResults(results, resp.Topics)
	}
	return results, nil
}

// BumpLeaderEpochs raises leader epochs: each partition's becomes at least what is asked. Kafka: BumpLeaderEpochs.
func (c *Client) BumpLeaderEpochs(ctx context.Context, bumps []LeaderEpochBump, opts StatesOptions,
) ([]PartitionResult, error) {
	ctx, p, leave, err := c.begin(ctx, opts.Timeout, c.find)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := p.all(); err != nil {
		return nil, err
	}
	req := &fetchwire.BumpLeaderEpochsRequest{}
	for _, b := range bumps {
		i := slices.IndexFunc(req.Topics, func(t fetchwire.BumpLeaderEpochsTopic) bool { return t.TopicID == b.TopicID })
		if i < 0 {
			i = len(req.Topics)
			req.Topics = append(req.Topics, fetchwire.BumpLeaderEpochsTopic{TopicID: b.TopicID})
		}
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, fetchwire.BumpLeaderEpoch{
			PartitionIndex: b.Partition, MinLeaderEpoch: b.MinLeaderEpoch,
		})
	}
	var results []PartitionResult
	for _, n := range p.nodes {
		resp := &fetchwire.BumpLeaderEpochsResponse{}
		if _, err := c.ask(ctx, n.addr, req, resp); err != nil {
			return nil, err
		}
		if err := fetchwire.CodeError(resp.ErrorCode); err != nil {
			return nil, &AgentError{Addr: n.addr, Err: err}
		}
		results = mergeResults(results, resp.Topics)
	}
	return results, nil
}

// mergeResults adds what an agent answered; done stands over absent, another error over both.
func mergeResults(results []PartitionResult, topics []fetchwire.MirrorPartitionsResult) []PartitionResult {
	for _, t := range topics {
		for _, p := range t.Partitions {
			r := PartitionResult{Topic: t.Name, Partition: p.PartitionIndex, Err: fetchwire.CodeError(p.ErrorCode)}
			i := slices.IndexFunc(results, func(o PartitionResult) bool {
				return o.Topic == r.Topic && o.Partition == r.Partition
			})
			switch {
			case i < 0:
				results = append(results, r)
			case results[i].Err == nil && r.Err != nil && !absent(r.Err),
				results[i].Err != nil && absent(results[i].Err):
				results[i].Err = r.Err
			}
		}
	}
	return results
}
