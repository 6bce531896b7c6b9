package replicator

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"segmirror/fetchwire"
	"segmirror/segment"
)

// testSource is a source cluster of one broker whose partitions and answers a test scripts. It speaks what a mirror
// asks for: ApiVersions, Metadata, DescribeCluster, ListOffsets, OffsetForLeaderEpoch and Fetch (without sessions).
type testSource struct {
	clusterID string
	listener  net.Listener

	mu       sync.Mutex // guards what follows and every testPartition
	changed  chan struct{}
	gone     chan struct{} // closed at the end of the test
	topics   map[string]*testTopic
	conns    map[net.Conn]bool
	accepted int // connections
	// mangle, if set, may change an answer's frame; a frame it made shorter is sent and the connection closed.
	mangle func(frame []byte, h fetchwire.RequestHeader) []byte
	repeat bool // say every partition of a fetch answer twice
	epochs int  // OffsetForLeaderEpoch requests seen
	// others are brokers that Metadata names beside this one, which is number 1.
	others []fetchwire.MetadataBroker
	hung   bool // answer no fetch
	// limited keeps to the limits of a fetch as a broker does: what is larger than is left passes only first.
	limited bool
	sent    int64 // bytes of records
	agent   bool  // offer what only agents do; alter then has to answer as one
}

// testTopic is a topic of a testSource.
type testTopic struct {
	name       string
	id         [16]byte
	configs    map[string]string
	partitions []*testPartition
	indexes    []int32 // what Metadata calls the partitions, nil = 0 and up
}

// testPartition is what a testSource holds of one partition.
type testPartition struct {
	batches     [][]byte // whole batches, in order
	logStart    int64
	end         int64 // log end, and high watermark
	leaderEpoch int32
	leader      int32                // the broker's number, 0 = 1
	epochs      []segment.EpochEntry // the leader's history, rising

	// alter, if set, may change the answer to a fetch before it is sent.
	alter func(asked fetchwire.FetchPartition, answer *fetchwire.FetchPartitionResponse)
	// asked holds the fetches seen, without those that repeat the one before.
	asked []fetchwire.FetchPartition
}

// newTestSource starts a source without topics on a free loopback port.
func newTestSource(t *testing.T) *testSource {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &testSource{
		clusterID: "test-source-cluster-id", listener: l, changed: make(chan struct{}), gone: make(chan struct{}),
		topics: make(map[string]*testTopic), conns: make(map[net.Conn]bool),
	}
	var serving sync.WaitGroup
	serving.Go(func() { s.accept(&serving) })
	t.Cleanup(func() {
		_ = l.Close()
		close(s.gone)
		s.disconnect()
		serving.Wait()
	})
	return s
}

func (s *testSource) addr() string { return s.listener.Addr().String() }

// addTopic makes a topic whose partitions are empty and led in epoch 0.
func (s *testSource) addTopic(name string, partitions int) *testTopic {
	s.mu.Lock()
	defer s.mu.Unlock()
	topic := &testTopic{name: name}
	topic.id[0], topic.id[15] = 0x5e, byte(len(s.topics)+1)
	for range partitions {
		topic.partitions = append(topic.partitions, &testPartition{epochs: []segment.EpochEntry{{}}})
	}
	s.topics[name] = topic
	return topic
}

// update changes partitions under the source's lock and wakes fetches that wait.
func (s *testSource) update(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.changed)
	s.changed = make(chan struct{})
}

// append puts whole batches at a partition's end, whatever they hold. Call within update.
func (p *testPartition) append(batches ...[]byte) {
	for _, b := range batches {
		p.batches = append(p.batches, b)
		p.end = max(p.end, batchEnd(b))
	}
}

// startEpoch begins a leader epoch at the partition's end. Call within update.
func (p *testPartition) startEpoch(epoch int32) {
	p.leaderEpoch = epoch
	p.epochs = append(p.epochs, segment.EpochEntry{Epoch: epoch, StartOffset: p.end})
}

// bytes is the concatenation of a partition's batches.
func (s *testSource) bytes(p *testPartition) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Concat(p.batches...)
}

// fetches returns the fetches seen of a partition, repeats left out.
func (s *testSource) fetches(p *testPartition) []fetchwire.FetchPartition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(p.asked)
}

// epochQuestions is how many OffsetForLeaderEpoch requests were seen.
func (s *testSource) epochQuestions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epochs
}

// disconnect closes every connection.
func (s *testSource) disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for nc := range s.conns {
		_ = nc.Close()
	}
}

// batchEnd is the offset behind a batch, by its header.
func batchEnd(b []byte) int64 {
	return int64(binary.BigEndian.Uint64(b)) + int64(int32(binary.BigEndian.Uint32(b[23:]))) + 1
}

func (s *testSource) accept(serving *sync.WaitGroup) {
	for {
		nc, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[nc] = true
		s.accepted++
		s.mu.Unlock()
		serving.Go(func() {
			s.serve(nc)
			_ = nc.Close()
			s.mu.Lock()
			delete(s.conns, nc)
			s.mu.Unlock()
		})
	}
}

// serve answers requests until the client goes or asks for what is not offered.
func (s *testSource) serve(nc net.Conn) {
	var in, out []byte
	for {
		var err error
		if in, err = fetchwire.ReadRequestFrame(nc, in, 1<<24); err != nil {
			return
		}
		h, body, err := fetchwire.DecodeRequestHeader(in)
		if err != nil {
			return
		}
		if out = s.answer(out[:0], h, body); len(out) == 0 {
			return
		}
		frame := s.mangled(out, h)
		if _, err := nc.Write(frame); err != nil || len(frame) < len(out) {
			return
		}
	}
}

func (s *testSource) mangled(frame []byte, h fetchwire.RequestHeader) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mangle == nil {
		return frame
	}
	return s.mangle(frame, h)
}

// decodable is a request of fetchwire.
type decodable interface {
	DecodeFrom(src []byte, version int16) error
}

// answer appends the answer's frame to dst, nothing for a request that makes no sense here.
func (s *testSource) answer(dst []byte, h fetchwire.RequestHeader, body []byte) []byte {
	var (
		metadata fetchwire.MetadataRequest
		cluster  fetchwire.DescribeClusterRequest
		offsets  fetchwire.ListOffsetsRequest
		epochs   fetchwire.OffsetForLeaderEpochRequest
		fetch    fetchwire.FetchRequest
	)
	switch h.APIKey {
	case fetchwire.KeyApiVersions:
		return fetchwire.AnswerApiVersions(dst, h, s.offer())
	case keyDescribeConfigs:
		return s.describeConfigs(dst, h, body)
	}
	req := map[int16]decodable{
		fetchwire.KeyMetadata: &metadata, fetchwire.KeyDescribeCluster: &cluster, fetchwire.KeyListOffsets: &offsets,
		fetchwire.KeyOffsetForLeaderEpoch: &epochs, fetchwire.KeyFetch: &fetch,
	}[h.APIKey]
	if req == nil || req.DecodeFrom(body, h.APIVersion) != nil {
		return dst
	}
	if h.APIKey == fetchwire.KeyFetch {
		return fetchwire.AppendResponse(dst, h, s.fetch(&fetch, h.APIVersion))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch h.APIKey {
	case fetchwire.KeyMetadata:
		return fetchwire.AppendResponse(dst, h, s.metadata(&metadata))
	case fetchwire.KeyDescribeCluster:
		return fetchwire.AppendResponse(dst, h, s.describeCluster())
	case fetchwire.KeyListOffsets:
		return fetchwire.AppendResponse(dst, h, s.listOffsets(&offsets))
	default:
		return fetchwire.AppendResponse(dst, h, s.leaderEpochs(&epochs))
	}
}

func (s *testSource) offer() (offer []fetchwire.APIVersion) {
	for _, api := range fetchwire.APIs() {
		if s.agent && (api.Key == fetchwire.KeyListMirrors || api.Key == fetchwire.KeyFetch) {
			api.KafkaMax = api.Max
		}
		if api.KafkaMax < 0 || api.Key == keyDescribeConfigs {
			continue
		}
		api.Max = api.KafkaMax
		offer = append(offer, fetchwire.APIVersion{APIKey: api.Key, MinVersion: api.Min, MaxVersion: api.Max})
	}
	return append(offer, fetchwire.APIVersion{APIKey: keyDescribeConfigs, MinVersion: 1, MaxVersion: 3})
}

// keyDescribeConfigs is asked by an admin client; its old versions have a header without tags.
const keyDescribeConfigs = 32

// describeConfigs answers with what testTopic.configs holds.
func (s *testSource) describeConfigs(dst []byte, h fetchwire.RequestHeader, body []byte) []byte {
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Version = h.APIVersion
	if req.ReadFrom(body) != nil {
		return dst
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
	for _, want := range req.Resources {
		r := kmsg.NewDescribeConfigsResponseResource()
		r.ResourceType, r.ResourceName = want.ResourceType, want.ResourceName
		if topic := s.topics[want.ResourceName]; topic != nil {
			for name, value := range topic.configs {
				config := kmsg.NewDescribeConfigsResponseResourceConfig()
				config.Name, config.Value = name, &value
				r.Configs = append(r.Configs, config)
			}
		}
		resp.Resources = append(resp.Resources, r)
	}
	return fetchwire.AppendResponse(dst, h, kmsgBody{resp})
}

// kmsgBody lets fetchwire frame a response of franz-go's.
type kmsgBody struct{ kmsg.Response }

func (b kmsgBody) AppendTo(dst []byte, _ int16) []byte { return b.Response.AppendTo(dst) }

func (s *testSource) hostPort() (string, int32) {
	host, port, _ := net.SplitHostPort(s.addr()) // a listener's own address
	n, _ := strconv.Atoi(port)
	return host, int32(n)
}

func (s *testSource) describeCluster() *fetchwire.DescribeClusterResponse {
	host, port := s.hostPort()
	return &fetchwire.DescribeClusterResponse{
		EndpointType: fetchwire.EndpointBrokers, ClusterID: s.clusterID, ControllerID: 1,
		Brokers: []fetchwire.DescribeClusterBroker{{BrokerID: 1, Host: host, Port: port}},
	}
}

func (s *testSource) metadata(req *fetchwire.MetadataRequest) *fetchwire.MetadataResponse {
	host, port := s.hostPort()
	resp := &fetchwire.MetadataResponse{
		Brokers:   append([]fetchwire.MetadataBroker{{NodeID: 1, Host: host, Port: port}}, s.others...),
		ClusterID: &s.clusterID, ControllerID: 1,
	}
	add := func(topic *testTopic) {
		name := topic.name
		mt := fetchwire.MetadataTopic{Name: &name, TopicID: topic.id, AuthorizedOps: fetchwire.NoAuthorizedOperations}
		for i, p := range topic.partitions {
			index := int32(i)
			if topic.indexes != nil {
				index = topic.indexes[i]
			}
			mt.Partitions = append(mt.Partitions, fetchwire.MetadataPartition{
				Index: index, LeaderID: max(p.leader, 1), LeaderEpoch: p.leaderEpoch, Replicas: []int32{1}, Isr: []int32{1},
			})
		}
		resp.Topics = append(resp.Topics, mt)
	}
	if req.Topics == nil {
		for _, topic := range s.topics {
			add(topic)
		}
	}
	for _, want := range req.Topics {
		topic := s.find(want.Name, want.TopicID)
		if topic == nil {
			resp.Topics = append(resp.Topics, fetchwire.MetadataTopic{
				ErrorCode: fetchwire.CodeUnknownTopicOrPartition, Name: want.Name, TopicID: want.TopicID,
			})
			continue
		}
		add(topic)
	}
	return resp
}

// find returns a topic by name or, without one, by id; nil if there is none.
func (s *testSource) find(name *string, id [16]byte) *testTopic {
	if name != nil && *name != "" {
		return s.topics[*name]
	}
	for _, topic := range s.topics {
		if topic.id == id {
			return topic
		}
	}
	return nil
}

// partition returns a partition, nil if there is none.
func (t *testTopic) partition(index int32) *testPartition {
	if t == nil || index < 0 || int(index) >= len(t.partitions) {
		return nil
	}
	return t.partitions[index]
}

func (s *testSource) listOffsets(req *fetchwire.ListOffsetsRequest) *fetchwire.ListOffsetsResponse {
	resp := &fetchwire.ListOffsetsResponse{}
	for _, topic := range req.Topics {
		out := fetchwire.ListOffsetsTopicResult{Name: topic.Name}
		for _, want := range topic.Partitions {
			r := fetchwire.ListOffsetsResult{Index: want.Index, Timestamp: -1, Offset: -1, LeaderEpoch: -1}
			p := s.topics[topic.Name].partition(want.Index)
			switch {
			case p == nil:
				r.ErrorCode = fetchwire.CodeUnknownTopicOrPartition
			case want.Timestamp == fetchwire.TimestampEarliest:
				r.Offset, r.LeaderEpoch = p.logStart, p.leaderEpoch
			default:
				r.Offset, r.LeaderEpoch = p.end, p.leaderEpoch
			}
			out.Partitions = append(out.Partitions, r)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

func (s *testSource) leaderEpochs(req *fetchwire.OffsetForLeaderEpochRequest) *fetchwire.OffsetForLeaderEpochResponse {
	s.epochs++
	resp := &fetchwire.OffsetForLeaderEpochResponse{}
	for _, topic := range req.Topics {
		out := fetchwire.OffsetForLeaderTopicResult{Topic: topic.Topic}
		for _, want := range topic.Partitions {
			r := fetchwire.OffsetForLeaderResult{Partition: want.Partition, LeaderEpoch: -1, EndOffset: -1}
			if p := s.topics[topic.Topic].partition(want.Partition); p == nil {
				r.ErrorCode = fetchwire.CodeUnknownTopicOrPartition
			} else {
				r.LeaderEpoch, r.EndOffset = p.endOffsetFor(want.LeaderEpoch)
			}
			out.Partitions = append(out.Partitions, r)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

// endOffsetFor answers as a leader does: the largest epoch at or below the asked one, and where it ends.
func (p *testPartition) endOffsetFor(epoch int32) (int32, int64) {
	if epoch == p.epochs[len(p.epochs)-1].Epoch {
		return epoch, p.end
	}
	for i, e := range p.epochs {
		if e.Epoch <= epoch {
			continue
		}
		if i == 0 {
			return epoch, e.StartOffset
		}
		return p.epochs[i-1].Epoch, e.StartOffset
	}
	return -1, -1
}

// fetch answers at once where there is something to say, else when a partition changes or the wait is over.
func (s *testSource) fetch(req *fetchwire.FetchRequest, version int16) *fetchwire.FetchResponse {
	wait := time.After(time.Duration(req.MaxWaitMs) * time.Millisecond)
	for {
		s.mu.Lock()
		resp, news := s.fetchOnce(req, version)
		changed, hung := s.changed, s.hung
		s.mu.Unlock()
		if !hung && (news || req.MinBytes == 0) {
			return resp
		}
		select {
		case <-changed:
		case <-wait:
			if !hung {
				return resp
			}
			wait = nil
		case <-s.gone:
			return resp
		}
	}
}

func (s *testSource) fetchOnce(req *fetchwire.FetchRequest, version int16) (resp *fetchwire.FetchResponse, news bool) {
	resp = &fetchwire.FetchResponse{}
	left, first := int(req.MaxBytes), true
	for _, topic := range req.Topics {
		out := fetchwire.FetchTopicResponse{Topic: topic.Topic, TopicID: topic.TopicID}
		found := s.find(&topic.Topic, topic.TopicID)
		for _, want := range topic.Partitions {
			answer := fetchwire.NewFetchPartitionResponse(want.Partition)
			switch p := found.partition(want.Partition); {
			case p == nil && version >= 13:
				answer.ErrorCode = fetchwire.CodeUnknownTopicID
			case p == nil:
				answer.ErrorCode = fetchwire.CodeUnknownTopicOrPartition
			default:
				p.fetch(want, &answer)
			}
			room := min(left, int(want.MaxBytes))
			if s.limited && !first && len(answer.Records) > room {
				answer.Records = wholeBatches(answer.Records, room)
			}
			used := len(answer.Records)
			if n := used; n > 0 && batchEnd(answer.Records) < answer.HighWatermark {
				used = max(n, room) // a broker goes on with a part of the next batch
			}
			left, first = max(0, left-used), first && len(answer.Records) == 0
			s.sent += int64(len(answer.Records))
			news = news || len(answer.Records) > 0 || answer.ErrorCode != fetchwire.CodeNone ||
				answer.DivergingEpoch.Epoch != -1 || answer.DivergingEpoch.EndOffset != -1 || answer.MirrorLeaderEpoch >= 0
			out.Partitions = append(out.Partitions, answer)
			if s.repeat {
				out.Partitions = append(out.Partitions, answer)
			}
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp, news
}

// fetch answers for one partition as a leader does, then lets the script alter the answer.
func (p *testPartition) fetch(want fetchwire.FetchPartition, answer *fetchwire.FetchPartitionResponse) {
	if n := len(p.asked); n == 0 || p.asked[n-1] != want {
		p.asked = append(p.asked, want)
	}
	answer.HighWatermark, answer.LastStableOffset, answer.LogStartOffset = p.end, p.end, p.logStart
	epoch, end := int32(-1), int64(-1)
	if want.LastFetchedEpoch >= 0 {
		epoch, end = p.endOffsetFor(want.LastFetchedEpoch)
	}
	switch {
	case want.CurrentLeaderEpoch >= 0 && want.CurrentLeaderEpoch < p.leaderEpoch:
		answer.ErrorCode = fetchwire.CodeFencedLeaderEpoch
	case want.CurrentLeaderEpoch > p.leaderEpoch:
		answer.ErrorCode = fetchwire.CodeUnknownLeaderEpoch
	case want.FetchOffset < p.logStart || want.FetchOffset > p.end && epoch == -1:
		answer.ErrorCode = fetchwire.CodeOffsetOutOfRange
	case want.LastFetchedEpoch >= 0 && epoch == -1:
		answer.ErrorCode = fetchwire.CodeOffsetOutOfRange
	case want.LastFetchedEpoch >= 0 && (epoch < want.LastFetchedEpoch || end < want.FetchOffset):
		answer.DivergingEpoch = fetchwire.EpochEndOffset{Epoch: epoch, EndOffset: end}
	default:
		answer.Records = p.read(want.FetchOffset, int(want.MaxBytes))
	}
	if p.alter != nil {
		p.alter(want, answer)
	}
}

// read returns batches from the one that holds offset on, at most limit bytes but at least one batch.
func (p *testPartition) read(offset int64, limit int) (records []byte) {
	for _, b := range p.batches {
		if batchEnd(b) <= offset {
			continue
		}
		if len(records) > 0 && len(records)+len(b) > limit {
			break
		}
		records = append(records, b...)
	}
	return records
}

// wholeBatches cuts records behind the last batch that ends within limit.
func wholeBatches(records []byte, limit int) []byte {
	n := 0
	for it := segment.NewBatchIterator(records); it.Next() && n+it.Batch().Size() <= limit; {
		n += it.Batch().Size()
	}
	return records[:n]
}

// await polls until ok, for at most limit; what says what was waited for.
func await(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(limit)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// testAgent is an agent that mirrors a testSource, and the directory it mirrors into.
type testAgent struct {
	*Agent
	dir    string
	logged *lockedBuffer
	stop   func()
}

// startAgent starts an agent with one mirror "m" of every topic of s, in dir; props are added to its configuration.
// It is stopped, and its logs checked, at the end of the test at the latest.
func startAgent(t *testing.T, s *testSource, dir string, props map[string]string) *testAgent {
	t.Helper()
	all := map[string]string{
		"node.id": "1", "cluster.id": "destination-cluster-id", "log.dirs": dir,
		"mirrors":                                "m",
		"mirror.m.bootstrap.servers":             s.addr(),
		"mirror.m.mirror.topics.include":         ".*",
		"mirror.m.mirror.fetch.wait.max.ms":      "100",
		"mirror.m.mirror.fetch.backoff.ms":       "10",
		"mirror.metadata.refresh.interval.ms":    "50",
		"mirror.failed.retry.initial.backoff.ms": "5",
		"mirror.failed.retry.max.backoff.ms":     "20",
		"min.free.bytes":                         "0",
	}
	for k, v := range props {
		all[k] = v
	}
	return runTestAgent(t, dir, all)
}

// runTestAgent starts an agent in dir with just this configuration.
func runTestAgent(t *testing.T, dir string, props map[string]string) *testAgent {
	t.Helper()
	cfg, err := ParseConfig(props, nil)
	if err != nil {
		t.Fatal(err)
	}
	logs := &lockedBuffer{}
	agent, err := New(cfg, slog.New(slog.NewTextHandler(io.MultiWriter(testWriter{t}, logs), nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- agent.Run(ctx) }()
	a := &testAgent{Agent: agent, dir: dir, logged: logs}
	a.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the agent's end: %v", err)
		}
		checkLogDir(t, dir, cfg.Log.IndexIntervalBytes)
	})
	t.Cleanup(a.stop)
	return a
}

// testWriter writes an agent's log into a test's.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s", p)
	return len(p), nil
}

var _ io.Writer = testWriter{}
