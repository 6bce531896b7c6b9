package admin

import (
	"errors"
	"strings"
	"testing"

	"segmirror/admin/fakeagent"
	"segmirror/fetchwire"
)

// withConfigs makes a peer accept changes of resources of one name and describe them, and refuse all others.
func withConfigs(a *fakeagent.Agent, kind int8, name string) {
	unknown := "not here"
	fakeagent.On(a, func(req *fetchwire.IncrementalAlterConfigsRequest) fetchwire.Response {
		resp := &fetchwire.IncrementalAlterConfigsResponse{}
		for _, r := range req.Resources {
			out := fetchwire.AlterConfigsResult{ResourceType: r.ResourceType, ResourceName: r.ResourceName}
			if r.ResourceType != kind || r.ResourceName != name {
				out.ErrorCode, out.ErrorMessage = fetchwire.CodeUnknownMirror, &unknown
			}
			resp.Resources = append(resp.Resources, out)
		}
		return resp
	})
	fakeagent.On(a, func(req *fetchwire.DescribeConfigsRequest) fetchwire.Response {
		resp := &fetchwire.DescribeConfigsResponse{}
		for _, r := range req.Resources {
			out := fetchwire.DescribeConfigsResult{ResourceType: r.ResourceType, ResourceName: r.ResourceName}
			if r.ResourceType != kind || r.ResourceName != name {
				out.ErrorCode, out.ErrorMessage = fetchwire.CodeUnknownMirror, &unknown
			} else {
				value, about := "5", "what it does"
				out.Configs = []fetchwire.DescribedConfig{{
					Name: "k", Value: &value, Source: fetchwire.ConfigSourceTopic, IsSensitive: true, ReadOnly: true,
					ConfigType: fetchwire.ConfigTypeLong, Documentation: &about,
					ConfigSynonyms: []fetchwire.ConfigSynonym{{Name: "k", Value: &value, Source: 5}},
				}}
			}
			resp.Resources = append(resp.Resources, out)
		}
		return resp
	})
}

func TestConfigs_OfAMirrorAreThoseOfTheAgentsThatKnowIt(t *testing.T) {
	one, two := fakeagent.Start(t, 1), fakeagent.Start(t, 2)
	withConfigs(one, fetchwire.ResourceMirror, "other")
	withConfigs(two, fetchwire.ResourceMirror, "dr")
	c := newClient(t, Config{Agents: []string{one.Addr(), two.Addr()}})
	dr := ConfigResource{fetchwire.ResourceMirror, "dr"}
	change := ConfigChange{dr, []ConfigOp{
		{fetchwire.ConfigSet, "k", "5"},
		{fetchwire.ConfigDelete, "l", "ignored"},
	}}
	results, err := c.IncrementalAlterConfigs(t.Context(), []ConfigChange{change}, AlterConfigsOptions{ValidateOnly: true})
	if err != nil || results[0].Err != nil || results[0].Resource != dr {
		t.Fatalf("results %+v, %v", results, err)
	}
	sent := fakeagent.Asked[fetchwire.IncrementalAlterConfigsRequest](two)[0]
	if configs := sent.Resources[0].Configs; !sent.ValidateOnly || *configs[0].Value != "5" || configs[1].Value != nil {
		t.Errorf("sent %+v", sent)
	}
	described, err := c.DescribeConfigs(t.Context(), []ConfigResource{dr, {fetchwire.ResourceMirror, "nope"}},
		DescribeConfigsOptions{IncludeSynonyms: true, IncludeDocumentation: true})
	if err != nil {
		t.Fatal(err)
	}
	e := described[0].Entries[0]
	if described[0].Err != nil || e.Key != "k" || *e.Value != "5" || !e.Sensitive || !e.ReadOnly ||
		e.Documentation != "what it does" || e.Synonyms[0].Source != 5 || e.Type != fetchwire.ConfigTypeLong {
		t.Errorf("described %+v", described[0])
	}
	var refusal fetchwire.KafkaError
	if !errors.As(described[1].Err, &refusal) || refusal.Code != fetchwire.CodeUnknownMirror {
		t.Errorf("nope: %v", described[1].Err)
	}
}

func TestConfigs_OfANodeAreAskedOfThatNode(t *testing.T) {
	one, two := fakeagent.Start(t, 1), fakeagent.Start(t, 2)
	withConfigs(one, fetchwire.ResourceBroker, "1")
	withConfigs(two, fetchwire.ResourceBroker, "2")
	c := newClient(t, Config{Agents: []string{one.Addr(), two.Addr()}})
	set := []ConfigOp{{fetchwire.ConfigSet, "k", "5"}}
	results, err := c.IncrementalAlterConfigs(t.Context(), []ConfigChange{
		{ConfigResource{fetchwire.ResourceBroker, "2"}, set},
		{ConfigResource{fetchwire.ResourceBroker, "1"}, set},
	}, AlterConfigsOptions{})
	if err != nil || results[0].Err != nil || results[1].Err != nil {
		t.Errorf("results %+v, %v", results, err)
	}
	_, err = c.DescribeConfigs(t.Context(), []ConfigResource{{fetchwire.ResourceBroker, "9"}}, DescribeConfigsOptions{})
	if !errors.Is(err, ErrUnknownNode) || !strings.Contains(err.Error(), "id 9") || !strings.Contains(err.Error(), "[1 2]") {
		t.Errorf("node 9: %v", err)
	}
}

func TestConfigs_OfTopicsWorkWithAStockBroker(t *testing.T) {
	broker := fakeagent.StartBroker(t, 1)
	withConfigs(broker, fetchwire.ResourceTopic, "orders")
	c := newClient(t, Config{BootstrapServers: []string{broker.Addr()}})
	orders := ConfigResource{fetchwire.ResourceTopic, "orders"}
	results, err := c.IncrementalAlterConfigs(t.Context(), []ConfigChange{{Resource: orders}}, AlterConfigsOptions{})
	if err != nil || results[0].Err != nil {
		t.Errorf("results %+v, %v", results, err)
	}
	described, err := c.DescribeConfigs(t.Context(), []ConfigResource{orders}, DescribeConfigsOptions{})
	if err != nil || len(described[0].Entries) != 1 {
		t.Errorf("described %+v, %v", described, err)
	}
}

func TestStates_AreReadWrittenAndBumped(t *testing.T) {
	one, two := fakeagent.Start(t, 1), fakeagent.Start(t, 2)
	read := func(a *fakeagent.Agent, states ...fetchwire.MirrorPartitionState) {
		fakeagent.On(a, func(*fetchwire.ReadMirrorStatesRequest) fetchwire.Response {
			return &fetchwire.ReadMirrorStatesResponse{Topics: []fetchwire.MirrorStatesTopic{{Name: "t", Partitions: states}}}
		})
		results := []fetchwire.MirrorPartitionsResult{{Name: "t"}}
		for _, s := range states {
			results[0].Partitions = append(results[0].Partitions, fetchwire.MirrorPartitionResult{
				PartitionIndex: s.PartitionIndex, ErrorCode: s.ErrorCode,
			})
		}
		fakeagent.On(a, func(*fetchwire.WriteMirrorStatesRequest) fetchwire.Response {
			return &fetchwire.WriteMirrorStatesResponse{Topics: results}
		})
		fakeagent.On(a, func(*fetchwire.BumpLeaderEpochsRequest) fetchwire.Response {
			return &fetchwire.BumpLeaderEpochsResponse{Topics: results}
		})
	}
	const notMine = fetchwire.CodeUnknownTopicOrPartition
	read(one, fetchwire.MirrorPartitionState{PartitionIndex: 0, State: 5, LastMirrorEpoch: 7, LastMirroredEnd: 30},
		fetchwire.MirrorPartitionState{PartitionIndex: 1, ErrorCode: notMine, LastMirroredEnd: -1})
	read(two, fetchwire.MirrorPartitionState{PartitionIndex: 0, ErrorCode: notMine, LastMirroredEnd: -1},
		fetchwire.MirrorPartitionState{PartitionIndex: 1, State: 1, LastMirrorEpoch: -1, LastMirroredEnd: -1})
	c := newClient(t, Config{Agents: []string{one.Addr(), two.Addr()}})
	states, err := c.ReadMirrorStates(t.Context(), "dr", map[string][]int32{"t": {0, 1}}, StatesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []PartitionState{
		{Topic: "t", State: 5, LastMirrorEpoch: 7, LastMirroredEnd: 30},
		{Topic: "t", Partition: 1, State: 1, LastMirrorEpoch: -1, LastMirroredEnd: -1},
	}
	if len(states) != 2 || states[0] != want[0] || states[1] != want[1] {
		t.Errorf("states %+v, want %+v", states, want)
	}
	written, err := c.WriteMirrorStates(t.Context(), "dr", states, []string{"t"}, StatesOptions{})
	if err != nil || len(written) != 2 || written[0].Err != nil || written[1].Err != nil {
		t.Errorf("written %+v, %v", written, err)
	}
	sent := fakeagent.Asked[fetchwire.WriteMirrorStatesRequest](two)[0]
	if len(sent.Topics) != 1 || sent.Topics[0].Partitions[0].LastMirroredEnd != 30 || sent.StoppedTopics[0] != "t" {
		t.Errorf("sent %+v", sent)
	}
	bumped, err := c.BumpLeaderEpochs(t.Context(), []LeaderEpochBump{{[16]byte{1}, 0, 5}, {[16]byte{1}, 1, 6}}, StatesOptions{})
	if err != nil || len(bumped) != 2 || bumped[0].Err != nil || bumped[1].Err != nil {
		t.Errorf("bumped %+v, %v", bumped, err)
	}
	if sent := fakeagent.Asked[fetchwire.BumpLeaderEpochsRequest](one)[0].Topics; len(sent) != 1 ||
		sent[0].Partitions[1] != (fetchwire.BumpLeaderEpoch{PartitionIndex: 1, MinLeaderEpoch: 6}) {
		t.Errorf("sent %+v", sent)
	}
}
