package replicator

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"segmirror/fetchwire"
)

// controlled is an agent without declared mirrors, and a connection to its control plane.
type controlled struct {
	*testAgent
	t    *testing.T
	conn *fetchwire.Conn
}

// controlProps is the configuration of an agent with short intervals, a listener and no declared mirror.
func controlProps(dir string) map[string]string {
	return map[string]string{
		"node.id": "1", "cluster.id": "destination-cluster-id", "log.dirs": dir, "listeners": "127.0.0.1:0",
		"mirror.fetch.wait.max.ms":               "100",
		"mirror.fetch.backoff.ms":                "10",
		"mirror.metadata.refresh.interval.ms":    "50",
		"mirror.failed.retry.initial.backoff.ms": "5",
		"mirror.failed.retry.max.backoff.ms":     "20",
		"min.free.bytes":                         "0",
	}
}

func control(t *testing.T, dir string, props map[string]string) *controlled {
	t.Helper()
	all := controlProps(dir)
	maps.Copy(all, props)
	c := &controlled{testAgent: runTestAgent(t, dir, all), t: t}
	var err error
	if c.conn, err = fetchwire.Dial(t.Context(), fetchwire.DialConfig{
		Addr: c.ListenerAddrs()[0], ClientID: "test",
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.conn.Close() })
	return c
}

func (c *controlled) call(req, resp fetchwire.Message) {
	c.t.Helper()
	if err := c.conn.Call(c.t.Context(), req, resp); err != nil {
		c.t.Fatal(err)
	}
}

// answered checks a code that was answered, with words where it is not NONE, and returns the words.
func (c *controlled) answered(what string, got int16, words *string, want int16) string {
	c.t.Helper()
	text := ""
	if words != nil {
		text = *words
	}
	if got != want || want != fetchwire.CodeNone && text == "" {
		c.t.Errorf("%s: %s %q, want %s", what, fetchwire.ErrorName(got), text, fetchwire.ErrorName(want))
	}
	return text
}

// create makes a mirror of s; props are pairs of key and value.
func (c *controlled) create(mirror string, s *testSource, want int16, props ...string) string {
	c.t.Helper()
	req := &fetchwire.CreateMirrorRequest{MirrorName: mirror}
	if s != nil {
		props = append(props, "bootstrap.servers", s.addr())
	}
	for i := 0; i < len(props); i += 2 {
		req.Config = append(req.Config, fetchwire.MirrorConfig{Name: props[i], Value: &props[i+1]})
	}
	resp := &fetchwire.CreateMirrorResponse{}
	c.call(req, resp)
	return c.answered("create "+mirror, resp.ErrorCode, resp.ErrorMessage, want)
}

func (c *controlled) delete(mirror string, want int16) string {
	c.t.Helper()
	resp := &fetchwire.DeleteMirrorResponse{}
	c.call(&fetchwire.DeleteMirrorRequest{MirrorName: mirror}, resp)
	return c.answered("delete "+mirror, resp.ErrorCode, resp.ErrorMessage, want)
}

// topicsAnswer checks the answer for each topic: "name" for one that went well, "name CODE" for one that did not.
func (c *controlled) topicsAnswer(what string, r *fetchwire.MirrorTopicsResult, want []string) {
	c.t.Helper()
	var got []string
	for i := range r.Topics {
		t := &r.Topics[i]
		line := t.Name
		if t.ErrorCode != fetchwire.CodeNone {
			line += " " + fetchwire.ErrorName(t.ErrorCode)
			if t.ErrorMessage == nil || *t.ErrorMessage == "" {
				c.t.Errorf("%s: %s without words", what, line)
			}
		}
		got = append(got, line)
	}
	if !slices.Equal(got, want) {
		words := ""
		if r.ErrorMessage != nil {
			words = *r.ErrorMessage
		}
		c.t.Errorf("%s: %q, want %q (%s %s)", what, got, want, fetchwire.ErrorName(r.ErrorCode), words)
	}
	if len(r.Topics) > 0 && r.ErrorCode != r.Topics[0].ErrorCode {
		c.t.Errorf("%s: the whole has code %d, its first topic %d", what, r.ErrorCode, r.Topics[0].ErrorCode)
	}
}

func mirrorTopics(names string) (topics []fetchwire.MirrorTopic) {
	for _, name := range strings.Fields(names) {
		topics = append(topics, fetchwire.MirrorTopic{TopicName: name})
	}
	return topics
}

// start starts topics by name; want is one line a topic, as topicsAnswer has it.
func (c *controlled) start(mirror, names string, want ...string) {
	c.t.Helper()
	req := &fetchwire.StartMirrorTopicsRequest{MirrorName: mirror}
	for _, t := range mirrorTopics(names) {
		req.Topics = append(req.Topics, fetchwire.StartMirrorTopic{TopicName: t.TopicName})
	}
	resp := &fetchwire.StartMirrorTopicsResponse{}
	c.call(req, resp)
	c.topicsAnswer("start "+names, &resp.MirrorTopicsResult, want)
}

// include starts patterns.
func (c *controlled) include(mirror, include, exclude string, want ...string) {
	c.t.Helper()
	resp := &fetchwire.StartMirrorTopicsResponse{}
	c.call(&fetchwire.StartMirrorTopicsRequest{
		MirrorName: mirror, IncludePatterns: strings.Fields(include), ExcludePatterns: strings.Fields(exclude),
	}, resp)
	c.topicsAnswer("include "+include+" exclude "+exclude, &resp.MirrorTopicsResult, want)
}

func (c *controlled) stopTopics(mirror, names, patterns string, want ...string) {
	c.t.Helper()
	resp := &fetchwire.StopMirrorTopicsResponse{}
	c.call(&fetchwire.StopMirrorTopicsRequest{
		MirrorName: mirror, Topics: mirrorTopics(names), Patterns: strings.Fields(patterns),
	}, resp)
	c.topicsAnswer("stop "+names+" "+patterns, &resp.MirrorTopicsResult, want)
}

func (c *controlled) pause(mirror, names string, want ...string) {
	c.t.Helper()
	resp := &fetchwire.PauseMirrorTopicsResponse{}
	c.call(&fetchwire.PauseMirrorTopicsRequest{MirrorName: mirror, Topics: mirrorTopics(names)}, resp)
	c.topicsAnswer("pause "+names, &resp.MirrorTopicsResult, want)
}

func (c *controlled) resume(mirror, names string, want ...string) {
	c.t.Helper()
	resp := &fetchwire.ResumeMirrorTopicsResponse{}
	c.call(&fetchwire.ResumeMirrorTopicsRequest{MirrorName: mirror, Topics: mirrorTopics(names)}, resp)
	c.topicsAnswer("resume "+names, &resp.MirrorTopicsResult, want)
}

// described returns what DescribeMirrors says of a mirror, by topic.
func (c *controlled) described(mirror string) map[string][]fetchwire.DescribedMirrorPartition {
	c.t.Helper()
	resp := &fetchwire.DescribeMirrorsResponse{}
	c.call(&fetchwire.DescribeMirrorsRequest{MirrorNames: []string{mirror}}, resp)
	if len(resp.Mirrors) != 1 || resp.Mirrors[0].ErrorCode != fetchwire.CodeNone {
		c.t.Fatalf("describe %s: %+v", mirror, resp)
	}
	out := map[string][]fetchwire.DescribedMirrorPartition{}
	for _, t := range resp.Mirrors[0].Topics {
		out[t.TopicName] = t.Partitions
	}
	return out
}

func (c *controlled) list() []fetchwire.ListedMirror {
	c.t.Helper()
	resp := &fetchwire.ListMirrorsResponse{}
	c.call(&fetchwire.ListMirrorsRequest{}, resp)
	return resp.Mirrors
}

func (c *controlled) awaitState(topic string, index int, state State) {
	c.t.Helper()
	await(c.t, patience, fmt.Sprintf("%s-%d %s", topic, index, state), func() bool {
		return c.partition(topic, index).State == state
	})
}

// filled is a source with topics of one partition, ten records in each.
func filled(t *testing.T, topics ...string) *testSource {
	t.Helper()
	s := newTestSource(t)
	for _, name := range topics {
		topic := s.addTopic(name, 1)
		s.update(func() { topic.partitions[0].append(dataBatch(0, 10)) })
	}
	return s
}

// produce puts n more records into partition 0 of a topic.
func (s *testSource) produce(topic string, n int) {
	s.update(func() {
		p := s.topics[topic].partitions[0]
		p.append(dataBatch(p.end, n))
	})
}
