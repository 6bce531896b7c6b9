package replicator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"segmirror/fetchwire"
	"segmirror/segment"
)

// source asks a source cluster what it is and what it holds, on a connection of its own. It runs on one goroutine
// beside the mirror's, which it sends each answer: a bootstrap server that hangs stops no fetcher.
type source struct {
	cfg      ClientConfig
	clientID string
	logger   *slog.Logger
	asks     *mailbox[sourceAsk]
	answer   func(refresh)
	stop     context.CancelFunc // ends run

	// owner: run
	conn    *fetchwire.Conn
	brokers map[int32]string
	admin   *kadm.Client
	kafka   *kgo.Client
	cache   map[string]topicConfig // newest answer for each topic
}

// sourceAsk asks for a refresh.
type sourceAsk struct {
	seq    int
	known  map[string]bool // wanted whether or not they pass; asked for by name if the list of all does not hold them
	filter topicFilter     // what else is wanted
}

// wants reports whether a topic is to be in the answer.
func (a *sourceAsk) wants(name string) bool { return a.known[name] || a.filter.match(name) }

// refresh is what a source answered.
type refresh struct {
	from      *source
	seq       int // of the ask it answers
	err       error
	clusterID string
	brokers   map[int32]string // id -> host:port
	topics    []sourceTopic    // those that pass the filter, and the known ones
	configs   map[string]topicConfig
	agent     bool                // the source is an agent
	upstreams map[string]upstream // what it says of the topics it mirrors itself
}

// sourceTopic is one topic of the source; code is a Kafka error code.
type sourceTopic struct {
	name       string
	id         segment.TopicID
	code       int16
	partitions []sourcePartition
}

type sourcePartition struct {
	index       int32
	leader      int32 // -1 = none
	leaderEpoch int32 // -1 = not said
}

// topicConfig is what of a source topic's configuration shapes the copy. Zero values mean "not said".
type topicConfig struct {
	err       error // why it could not be read
	shape     logShape
	compacted bool
}

// run answers asks until ctx is done, then closes its connections.
func (s *source) run(ctx context.Context) {
	defer s.disconnect()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.asks.ready:
		}
		asks := s.asks.take(nil)
		if len(asks) == 0 {
			continue
		}
		answer := s.refresh(ctx, asks[len(asks)-1])
		if ctx.Err() != nil {
			return
		}
		s.answer(answer)
		s.describe(ctx, described(answer.topics, func(name string) bool { return s.cache[name].err == nil }))
	}
}

func (s *source) disconnect() {
	if s.conn != nil {
		s.conn.Close() // nothing is lost with it
		s.conn = nil
	}
	if s.kafka != nil {
		s.kafka.Close()
		s.kafka, s.admin = nil, nil
	}
}

func (s *source) refresh(ctx context.Context, ask sourceAsk) refresh {
	out := refresh{from: s, seq: ask.seq}
	if out.err = s.connect(ctx); out.err != nil {
		return out
	}
	if out.err = s.metadata(ctx, &ask, &out); out.err != nil {
		s.disconnect()
		return out
	}
	if out.err = s.askUpstreams(ctx, &out); out.err != nil {
		s.disconnect()
		return out
	}
	s.brokers = out.brokers
	// What is new or could not be read before is asked for now, the rest after the answer: a source that is slow to
	// describe delays no leader's move.
	s.describe(ctx, described(out.topics, func(name string) bool {
		c, known := s.cache[name]
		return !known || c.err != nil
	}))
	out.configs = maps.Clone(s.cache)
	return out
}

// connect keeps the connection it has, or tries the bootstrap servers and then every broker it has heard of.
func (s *source) connect(ctx context.Context) error {
	if s.conn != nil {
		return nil
	}
	addrs := slices.Clone(s.cfg.BootstrapServers)
	for _, addr := range s.brokers {
		if !slices.Contains(addrs, addr) {
			addrs = append(addrs, addr)
		}
	}
	if len(addrs) == 0 {
		return fmt.Errorf("%w: the mirror has no bootstrap.servers", ErrConfig)
	}
	var errs []error
	for _, addr := range addrs {
		dial, err := s.cfg.dialConfig(addr, s.clientID, s.cfg.RequestTimeout)
		if err != nil {
			return err
		}
		conn, err := fetchwire.Dial(ctx, dial)
		if err == nil {
			s.conn = conn
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", addr, err))
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

func (s *source) metadata(ctx context.Context, ask *sourceAsk, out *refresh) error {
	resp, err := s.conn.Metadata(ctx, &fetchwire.MetadataRequest{})
	if err != nil {
		return fmt.Errorf("%s: %w", s.conn.Addr(), err)
	}
	if resp.ErrorCode != fetchwire.CodeNone {
		return fmt.Errorf("%s: metadata: %w", s.conn.Addr(), fetchwire.CodeError(resp.ErrorCode))
	}
	out.brokers = map[int32]string{}
	for _, b := range resp.Brokers {
		out.brokers[b.NodeID] = net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
	}
	if len(out.brokers) == 0 {
		return fmt.Errorf("%s: the source names no broker yet", s.conn.Addr())
	}
	if resp.ClusterID != nil {
		out.clusterID = *resp.ClusterID
	}
	seen := map[string]bool{}
	for i := range resp.Topics {
		t := &resp.Topics[i]
		if t.Name == nil || !ask.wants(*t.Name) {
			continue
		}
		seen[*t.Name] = true
		out.topics = append(out.topics, readTopic(t))
	}
	return s.missing(ctx, ask, seen, out)
}

// missing asks by name for topics the list of all did not hold: it leaves out what we may not describe.
func (s *source) missing(ctx context.Context, ask *sourceAsk, seen map[string]bool, out *refresh) error {
	req := fetchwire.MetadataRequest{Topics: []fetchwire.MetadataRequestTopic{}}
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(ask.known)), ask.filter.include.plainNames()) {
		if !seen[name] && ask.wants(name) {
			seen[name] = true
			req.Topics = append(req.Topics, fetchwire.MetadataRequestTopic{Name: &name})
		}
	}
	if len(req.Topics) == 0 {
		return nil
	}
	resp, err := s.conn.Metadata(ctx, &req)
	if err != nil {
		return fmt.Errorf("%s: %w", s.conn.Addr(), err)
	}
	for i := range resp.Topics {
		if resp.Topics[i].Name != nil && ask.wants(*resp.Topics[i].Name) {
			out.topics = append(out.topics, readTopic(&resp.Topics[i]))
		}
	}
	return nil
}

func readTopic(t *fetchwire.MetadataTopic) sourceTopic {
	out := sourceTopic{name: *t.Name, id: t.TopicID, code: t.ErrorCode}
	for _, p := range t.Partitions {
		if p.Index < 0 {
			continue
		}
		leader := p.LeaderID
		if p.ErrorCode == fetchwire.CodeLeaderNotAvailable {
			leader = -1
		}
		out.partitions = append(out.partitions, sourcePartition{
			index: p.Index, leader: leader, leaderEpoch: p.LeaderEpoch,
		})
	}
	return out
}

// configTimeout bounds one question about configurations.
const configTimeout = 5 * time.Second

// described returns the topics that can be described and that want picks.
func described(topics []sourceTopic, want func(name string) bool) []string {
	var names []string
	for _, t := range topics {
		if t.code == fetchwire.CodeNone && want(t.name) {
			names = append(names, t.name)
		}
	}
	return names
}

// describe reads the topics' configurations into the cache. Where that fails, each topic keeps what is known of it, or
// carries the error, and the caller uses the agent's defaults.
func (s *source) describe(ctx context.Context, names []string) {
	if len(names) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, configTimeout)
	defer cancel()
	if s.cache == nil {
		s.cache = map[string]topicConfig{}
	}
	answer, err := s.describeTopics(ctx, names)
	for _, c := range answer {
		s.cache[c.Name] = readTopicConfig(c)
	}
	if err == nil {
		return
	}
	for _, name := range names {
		if c, known := s.cache[name]; !known || c.err != nil {
			s.cache[name] = topicConfig{err: err}
		}
	}
}

func (s *source) describeTopics(ctx context.Context, names []string) (kadm.ResourceConfigs, error) {
	if s.admin == nil {
		opts, err := s.cfg.kgoOpts(s.clientID)
		if err != nil {
			return nil, err
		}
		if s.kafka, err = kgo.NewClient(opts...); err != nil {
			return nil, err
		}
		s.admin = kadm.NewClient(s.kafka)
	}
	answer, err := s.admin.DescribeTopicConfigs(ctx, names...)
	var auth *kadm.AuthError
	if errors.As(err, &auth) {
		err = auth.Err
	}
	return answer, err
}

func readTopicConfig(c kadm.ResourceConfig) topicConfig {
	if c.Err != nil {
		return topicConfig{err: c.Err}
	}
	var out topicConfig
	for _, kv := range c.Configs {
		if kv.Value == nil {
			continue
		}
		switch n, _ := strconv.ParseInt(*kv.Value, 10, 64); kv.Key { // not a number: 0, not said
		case "segment.bytes":
			out.shape.segmentBytes = saidInt32(n, 61)
		case "segment.ms":
			out.shape.segmentMs = max(n, 0)
		case "index.interval.bytes":
			out.shape.indexIntervalBytes = saidInt32(n, 1)
		case "segment.index.bytes":
			out.shape.indexMaxBytes = saidInt32(n, 24)
		case "cleanup.policy":
			out.compacted = slices.Contains(splitList(*kv.Value), "compact")
		}
	}
	return out
}

// saidInt32 is a value of at least least, 0 for another.
func saidInt32(n int64, least int32) int32 {
	if n < int64(least) {
		return 0
	}
	return int32(min(n, math.MaxInt32))
}

// apply returns cfg with what the source topic says in place of the agent's defaults.
func (t *topicConfig) apply(cfg segment.Config) segment.Config {
	return t.shape.or(shapeOf(&cfg)).apply(cfg)
}

// segmentConfig is the configuration of a partition before its source topic's is known.
func (c *LogConfig) segmentConfig(policy EpochPolicy, cutDir string) segment.Config {
	cfg := segment.DefaultConfig()
	cfg.SegmentBytes = c.SegmentBytes
	cfg.SegmentMs = int64(c.RollAge / time.Millisecond)
	cfg.IndexIntervalBytes = c.IndexIntervalBytes
	cfg.IndexMaxBytes = c.IndexMaxBytes
	cfg.CutDir = cutDir
	if policy == EpochPolicyRebase {
		cfg.Policy = segment.EpochRebase
	}
	return cfg
}
