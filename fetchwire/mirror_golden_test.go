package fetchwire

import (
	"bytes"
	"encoding/hex"
	"os"
	"reflect"
	"strings"
	"testing"
)

// kafkaMessages reads the examples that Kafka's protocol types wrote, by name.
func kafkaMessages(t *testing.T) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile("../testdata/protocol/messages.txt")
	if err != nil {
		t.Fatal(err)
	}
	messages := map[string][]byte{}
	for line := range strings.Lines(string(text)) {
		name, digits, _ := strings.Cut(strings.TrimSpace(line), " ")
		if messages[name], err = hex.DecodeString(digits); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return messages
}

const goldenEnd = 0x1122334455667788

var goldenID = [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}

func ptr(s string) *string { return &s }

func TestMirrorMessages_AreWhatKafkaWrites(t *testing.T) {
	topics := []MirrorTopic{{TopicID: goldenID, TopicName: "orders-us"}, {TopicName: "orders-eu"}}
	topicsResult := MirrorTopicsResult{
		MirrorResult: MirrorResult{ThrottleMs: 7, ErrorCode: CodeTopicAlreadyInMirror, ErrorMessage: ptr("taken")},
		MirrorName:   "my-mirror",
		Topics: []MirrorTopicResult{
			{Name: "orders-us"},
			{Name: "orders-eu", ErrorCode: CodeTopicAlreadyInMirror, ErrorMessage: ptr("by other")},
		},
	}
	throttled := MirrorResult{ThrottleMs: 7}
	answers := []MirrorPartitionsResult{{
		Name: "my-topic", Partitions: []MirrorPartitionResult{{0, 0}, {9, CodeFencedLeaderEpoch}},
	}}
	failed := NewDescribedMirrorPartition(1, "FAILED")
	failed.LastMirrorEpoch, failed.LastMirroredEnd = 4, goldenEnd
	failed.Cause, failed.Attempts = ptr("topic was created again"), 20
	running := DescribedMirrorPartition{
		SourceOffset: goldenEnd, DestinationOffset: goldenEnd - 5, Lag: 5, State: "MIRRORING", LastMirrorEpoch: -1,
		LastMirroredEnd: -1,
	}
	for name, m := range map[string]Message{
		"CreateMirrorRequest": &CreateMirrorRequest{MirrorName: "my-mirror", Config: []MirrorConfig{
			{"bootstrap.servers", ptr("source:9092")}, {"sasl.jaas.config", nil},
		}},
		"CreateMirrorResponse": &CreateMirrorResponse{
			MirrorResult{ThrottleMs: 7, ErrorCode: CodeInvalidMirrorName, ErrorMessage: ptr("no such name")},
		},
		"StartMirrorTopicsRequest": &StartMirrorTopicsRequest{
			MirrorName: "my-mirror",
			Topics: []StartMirrorTopic{
				{TopicID: goldenID, TopicName: "orders-us", NumPartitions: 3}, {TopicName: "orders-eu", NumPartitions: 70000},
			},
			IncludePatterns: []string{"orders-.*", "payments"}, ExcludePatterns: []string{"__.*"},
		},
		"StopMirrorTopicsRequest": &StopMirrorTopicsRequest{
			MirrorName: "my-mirror", Topics: topics, Patterns: []string{"orders-.*"},
		},
		"PauseMirrorTopicsRequest":   &PauseMirrorTopicsRequest{MirrorName: "my-mirror", Topics: topics},
		"ResumeMirrorTopicsRequest":  &ResumeMirrorTopicsRequest{MirrorName: "my-mirror", Topics: topics},
		"StartMirrorTopicsResponse":  &StartMirrorTopicsResponse{topicsResult},
		"StopMirrorTopicsResponse":   &StopMirrorTopicsResponse{topicsResult},
		"PauseMirrorTopicsResponse":  &PauseMirrorTopicsResponse{topicsResult},
		"ResumeMirrorTopicsResponse": &ResumeMirrorTopicsResponse{topicsResult},
		"DeleteMirrorRequest":        &DeleteMirrorRequest{MirrorName: "my-mirror"},
		"DeleteMirrorResponse":       &DeleteMirrorResponse{},
		"ListMirrorsRequest":         &ListMirrorsRequest{},
		"ListMirrorsResponse": &ListMirrorsResponse{MirrorResult: throttled, Mirrors: []ListedMirror{
			{"a", "h1:9092,h2:9092", "kVsgz1UjR1eLWGrDHVzCPg", 200}, {"b", "h:1", "", 0},
		}},
		"DescribeMirrorsRequest": &DescribeMirrorsRequest{
			MirrorNames: []string{"my-mirror", "b"}, IncludeAuthorizedOps: true,
		},
		"DescribeMirrorsRequest/all": &DescribeMirrorsRequest{},
		"DescribeMirrorsResponse": &DescribeMirrorsResponse{MirrorResult: throttled, Mirrors: []DescribedMirror{
			{MirrorName: "my-mirror", AuthorizedOps: NoAuthorizedOperations, Topics: []DescribedMirrorTopic{
				{TopicName: "my-topic", Partitions: []DescribedMirrorPartition{running, failed}},
			}},
			{ErrorCode: CodeUnknownMirror, MirrorName: "b", AuthorizedOps: 8, Topics: []DescribedMirrorTopic{}},
		}},
		"ReadMirrorStatesRequest": &ReadMirrorStatesRequest{
			MirrorName: "my-mirror", Topics: []ReadMirrorStatesTopic{{"my-topic", []int32{0, 9}}},
		},
		"ReadMirrorStatesResponse": &ReadMirrorStatesResponse{MirrorResult: throttled, Topics: []MirrorStatesTopic{
			{"my-topic", []MirrorPartitionState{{0, 4, 5, 0, goldenEnd}, {9, -1, 16, CodeUnknownTopicOrPartition, -1}}},
		}},
		"WriteMirrorStatesRequest": &WriteMirrorStatesRequest{
			MirrorName: "my-mirror", StoppedTopics: []string{"my-topic"}, Topics: []MirrorStatesTopic{
				{"my-topic", []MirrorPartitionState{{0, 4, 5, 0, goldenEnd}, {9, -1, 1, 0, -1}}},
			},
		},
		"WriteMirrorStatesResponse": &WriteMirrorStatesResponse{MirrorResult: throttled, Topics: answers},
		"BumpLeaderEpochsRequest": &BumpLeaderEpochsRequest{
			Topics: []BumpLeaderEpochsTopic{{goldenID, []BumpLeaderEpoch{{0, 50}, {9, -1}}}},
		},
		"BumpLeaderEpochsResponse": &BumpLeaderEpochsResponse{ThrottleMs: 7, Topics: answers},
	} {
		checkGolden(t, name, m, 0)
	}
}

func TestFetch19_IsWhatKafkaWrites(t *testing.T) {
	part := NewFetchPartitionResponse(3)
	part.HighWatermark, part.LastStableOffset, part.LogStartOffset = goldenEnd+10, goldenEnd+10, 5
	part.AbortedTxns, part.Records = []FetchAbortedTxn{}, []byte("records")
	part.DivergingEpoch, part.MirrorLeaderEpoch = EpochEndOffset{Epoch: 4, EndOffset: goldenEnd}, 44
	checkGolden(t, "FetchResponse/19", &FetchResponse{ThrottleMs: 7, SessionID: 77, Topics: []FetchTopicResponse{
		{TopicID: goldenID, Partitions: []FetchPartitionResponse{part}},
	}}, 19)
	checkGolden(t, "FetchRequest/19", &FetchRequest{
		Version: 19, ReplicaID: ConsumerReplicaID, ReplicaEpoch: -1, MaxWaitMs: 500, MinBytes: 1, MaxBytes: 10 << 20,
		SessionID: 77, SessionEpoch: 2, Forgotten: []ForgottenTopic{}, Topics: []FetchTopic{{
			TopicID: goldenID, Partitions: []FetchPartition{{
				Partition: 3, CurrentLeaderEpoch: -1, FetchOffset: goldenEnd, LastFetchedEpoch: -1, LogStartOffset: -1,
				MaxBytes: 1 << 20, HighWatermark: goldenEnd + 9, MirrorLeaderEpoch: 44,
			}},
		}},
	}, 19)
}

// checkGolden demands that m encodes to the example of that name, that the example decodes to m, and that no shorter
// or longer message does.
func checkGolden(t *testing.T, name string, m Message, version int16) {
	t.Helper()
	want, ok := kafkaMessages(t)[name]
	if !ok {
		t.Errorf("no example of %s", name)
		return
	}
	if got := m.AppendTo(nil, version); !bytes.Equal(got, want) {
		t.Errorf("%s is\n%x, Kafka writes\n%x", name, got, want)
	}
	decode := func(b []byte) (Message, error) {
		got := reflect.New(reflect.TypeOf(m).Elem()).Interface().(Message)
		return got, got.DecodeFrom(b, version)
	}
	if got, err := decode(want); err != nil || !reflect.DeepEqual(got, m) {
		t.Errorf("%s: Kafka's bytes are %+v, %v; want %+v", name, got, err, m)
	}
	for n := range want {
		if _, err := decode(want[:n:n]); err == nil {
			t.Errorf("%s: %d of %d bytes are accepted", name, n, len(want))
		}
	}
	if _, err := decode(append(want, 0)); err == nil {
		t.Errorf("%s: a byte behind the end is accepted", name)
	}
}

func TestMirrorMessages_HaveAnExampleEach(t *testing.T) {
	messages := kafkaMessages(t)
	for _, c := range codecs() {
		api, _ := LookupAPI(c.ours().Key())
		if api.KafkaMax != agentsOnly {
			continue
		}
		if messages[c.name] == nil {
			t.Errorf("Kafka wrote no %s", c.name)
		}
	}
}

func TestDescribeMirrorsRequest_NullMeansAll(t *testing.T) {
	var m DescribeMirrorsRequest
	if err := m.DecodeFrom([]byte{0, 1, 0}, 0); err != nil || m.MirrorNames != nil || !m.IncludeAuthorizedOps {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestDescribeMirrors_SourceChainIsATagOfItsOwn(t *testing.T) {
	topic := DescribedMirrorTopic{
		TopicName: "t", Partitions: []DescribedMirrorPartition{NewDescribedMirrorPartition(0, "MIRRORING")},
		SourceChain: []string{"cluster-b", "cluster-a"},
	}
	m := &DescribeMirrorsResponse{Mirrors: []DescribedMirror{
		{MirrorName: "m", Topics: []DescribedMirrorTopic{topic}, Replica: true},
	}}
	b := m.AppendTo(nil, 0)
	tag := "\x01\x00\x15\x03\x0acluster-b\x0acluster-a" // one tag, number 0, 21 bytes: two strings
	if !bytes.Contains(b, []byte(tag)) {
		t.Errorf("%q does not hold %q", b, tag)
	}
	var got DescribeMirrorsResponse
	if err := got.DecodeFrom(b, 0); err != nil || !reflect.DeepEqual(got.Mirrors, m.Mirrors) {
		t.Errorf("%+v, %v", got, err)
	}
	for n := range b {
		if err := got.DecodeFrom(b[:n], 0); err == nil {
			t.Errorf("the first %d of %d bytes are taken for a whole answer", n, len(b))
		}
	}
}
