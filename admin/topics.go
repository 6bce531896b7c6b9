package admin

import (
	"context"
	"slices"
	"time"

	"segmirror/fetchwire"
)

// TopicResult is what became of one topic.
type TopicResult struct {
	Topic string
	Err   error // nil = done; a fetchwire.KafkaError is in the chain of a refusal
}

// StartMirrorTopics starts topics of the source, and patterns that go on finding new ones. The results name the topics
// asked for and those the patterns have found.
//
// Errors of a topic: TOPIC_ALREADY_IN_MIRROR, UNKNOWN_TOPIC_OR_PARTITION, INVALID_REQUEST. Of the call: UNKNOWN_MIRROR,
// INVALID_REQUEST. Kafka: Admin.startMirrorTopics.
func (c *Client) StartMirrorTopics(ctx context.Context, mirror string, topics []string, opts StartMirrorTopicsOptions,
) ([]TopicResult, error) {
	req := &fetchwire.StartMirrorTopicsRequest{
		MirrorName: mirror, IncludePatterns: opts.IncludePatterns, ExcludePatterns: opts.ExcludePatterns,
	}
	for _, name := range topics {
		meta := opts.TopicMetadata[name]
		req.Topics = append(req.Topics, fetchwire.StartMirrorTopic{
			TopicID: meta.TopicID, TopicName: name, NumPartitions: meta.NumPartitions,
		})
	}
	return c.alterTopics(ctx, opts.Timeout, mirror, topics, func() topicsCall {
		resp := &fetchwire.StartMirrorTopicsResponse{}
		return topicsCall{req, resp, &resp.MirrorTopicsResult}
	})
}

// StopMirrorTopics stops topics, which may then be written, and patterns.
//
// Errors of a topic: UNKNOWN_TOPIC_OR_PARTITION, TOPIC_NOT_IN_MIRROR. Of the call: UNKNOWN_MIRROR. An acknowledged stop
// goes on by itself: DescribeMirrors shows STOPPING, then STOPPED. Kafka: Admin.stopMirrorTopics.
func (c *Client) StopMirrorTopics(ctx context.Context, mirror string, topics []string, opts StopMirrorTopicsOptions,
) ([]TopicResult, error) {
	req := &fetchwire.StopMirrorTopicsRequest{MirrorName: mirror, Topics: byName(topics), Patterns: opts.Patterns}
	return c.alterTopics(ctx, opts.Timeout, mirror, topics, func() topicsCall {
		resp := &fetchwire.StopMirrorTopicsResponse{}
		return topicsCall{req, resp, &resp.MirrorTopicsResult}
	})
}

// PauseMirrorTopics pauses topics: they stay read-only and fetch nothing. Pausing a paused topic is done already.
//
// Errors of a topic: MIRROR_TOPIC_BEING_STOPPED, TOPIC_NOT_IN_MIRROR. Kafka: Admin.pauseMirrorTopics.
func (c *Client) PauseMirrorTopics(ctx context.Context, mirror string, topics []string, opts PauseMirrorTopicsOptions,
) ([]TopicResult, error) {
	req := &fetchwire.PauseMirrorTopicsRequest{MirrorName: mirror, Topics: byName(topics)}
	return c.alterTopics(ctx, opts.Timeout, mirror, topics, func() topicsCall {
		resp := &fetchwire.PauseMirrorTopicsResponse{}
		return topicsCall{req, resp, &resp.MirrorTopicsResult}
	})
}

// ResumeMirrorTopics goes on with paused topics where they are.
//
// Errors of a topic: MIRROR_TOPIC_NOT_PAUSED, TOPIC_NOT_IN_MIRROR. Kafka: Admin.resumeMirrorTopics.
func (c *Client) ResumeMirrorTopics(ctx context.Context, mirror string, topics []string, opts ResumeMirrorTopicsOptions,
) ([]TopicResult, error) {
	req := &fetchwire.ResumeMirrorTopicsRequest{MirrorName: mirror, Topics: byName(topics)}
	return c.alterTopics(ctx, opts.Timeout, mirror, topics, func() topicsCall {
		resp := &fetchwire.ResumeMirrorTopicsResponse{}
		return topicsCall{req, resp, &resp.MirrorTopicsResult}
	})
}

func byName(topics []string) []fetchwire.MirrorTopic {
	out := make([]fetchwire.MirrorTopic, len(topics))
	for i, name := range topics {
		out[i].TopicName = name
	}
	return out
}

// topicsCall is a request about topics and the response to it, with the part that all such responses share.
type topicsCall struct {
	req, resp fetchwire.Message
	result    *fetchwire.MirrorTopicsResult
}

// alterTopics sends what message makes to whoever holds the mirror, and merges the answers by topic: in the order
// asked, then in that of the answers.
func (c *Client) alterTopics(ctx context.Context, timeout time.Duration, mirror string, topics []string,
	message func() topicsCall,
) ([]TopicResult, error) {
	ctx, p, leave, err := c.begin(ctx, timeout, c.holders(mirror))
	if err != nil {
		return nil, err
	}
	defer leave()
	merge := topicMerge{several: len(p.nodes) > 1}
	var whole error
	answered := false
	for _, n := range p.nodes {
		call := message()
		if _, err := c.ask(ctx, n.addr, call.req, call.resp); err != nil {
			return nil, err
		}
		if err := wholeError(call.result); err != nil {
			whole = worse(whole, &AgentError{Addr: n.addr, Err: err})
			continue
		}
		answered = true
		for i := range call.result.Topics {
			merge.add(&call.result.Topics[i], n.addr)
		}
	}
	if whole != nil && (!answered || !absent(whole)) {
		return nil, whole
	}
	return merge.results(topics), nil
}

// wholeError is the top-level error, if it is not that of a topic.
func wholeError(result *fetchwire.MirrorTopicsResult) error {
	err := result.Err()
	if err == nil {
		return nil
	}
	ofTopic := func(t fetchwire.MirrorTopicResult) bool { return t.ErrorCode != fetchwire.CodeNone }
	if slices.ContainsFunc(result.Topics, ofTopic) {
		return nil
	}
	return err
}

// topicMerge merges what agents answered about topics.
type topicMerge struct {
	several bool // name the agent in errors
	order   []string
	errs    map[string]error
	done    map[string]bool
}

func (m *topicMerge) add(r *fetchwire.MirrorTopicResult, addr string) {
	if m.errs == nil {
		m.errs, m.done = map[string]error{}, map[string]bool{}
	}
	if _, seen := m.errs[r.Name]; !seen {
		m.order = append(m.order, r.Name)
		m.errs[r.Name] = nil
	}
	if r.ErrorCode == fetchwire.CodeNone {
		m.done[r.Name] = true
		return
	}
	err := kafkaError(r.ErrorCode, r.ErrorMessage)
	if m.several {
		err = &AgentError{Addr: addr, Err: err}
	}
	m.errs[r.Name] = worse(m.errs[r.Name], err)
}

// results returns a result for each topic asked for, then for those that came with a pattern.
func (m *topicMerge) results(asked []string) []TopicResult {
	var results []TopicResult
	for _, name := range asked {
		if _, answered := m.errs[name]; !answered {
			results = append(results, TopicResult{Topic: name, Err: ErrNoAnswer})
			continue
		}
		results = append(results, m.result(name))
	}
	for _, name := range m.order {
		if !slices.Contains(asked, name) {
			results = append(results, m.result(name))
		}
	}
	return results
}

func (m *topicMerge) result(name string) TopicResult {
	err := m.errs[name]
	if m.done[name] && err != nil && absent(err) {
		err = nil // another agent's topic
	}
	return TopicResult{Topic: name, Err: err}
}
