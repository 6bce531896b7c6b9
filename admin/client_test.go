package admin

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"segmirror/admin/fakeagent"
	"segmirror/fetchwire"
)

func newClient(t *testing.T, cfg Config) *Client {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// holding makes an agent describe one topic of mirror dr with the partitions given.
func holding(a *fakeagent.Agent, topic string, partitions ...fetchwire.DescribedMirrorPartition) {
	fakeagent.On(a, func(req *fetchwire.DescribeMirrorsRequest) fetchwire.Response {
		resp := &fetchwire.DescribeMirrorsResponse{}
		names := req.MirrorNames
		if len(names) == 0 {
			names = []string{"dr"}
		}
		for _, name := range names {
			m := fetchwire.DescribedMirror{MirrorName: name, AuthorizedOps: fetchwire.NoAuthorizedOperations}
			if name == "dr" {
				m.Topics = []fetchwire.DescribedMirrorTopic{{TopicName: topic, Partitions: partitions}}
			} else {
				m.ErrorCode = fetchwire.CodeUnknownMirror
			}
			resp.Mirrors = append(resp.Mirrors, m)
		}
		return resp
	})
}

func mirroring(index int32, source, destination int64) fetchwire.DescribedMirrorPartition {
	p := fetchwire.NewDescribedMirrorPartition(index, StateMirroring)
	p.SourceOffset, p.DestinationOffset, p.Lag = source, destination, source-destination
	return p
}

func TestDescribe_MergesAgentsAndNamesTheOneThatIsDown(t *testing.T) {
	one, two, down := fakeagent.Start(t, 1), fakeagent.Start(t, 2), fakeagent.Start(t, 3)
	holding(one, "orders", mirroring(0, 10, 10), mirroring(2, 5, 1))
	holding(two, "orders", mirroring(1, 7, 7), mirroring(2, 5, 3))
	down.Stop()
	c := newClient(t, Config{Agents: []string{one.Addr(), two.Addr(), down.Addr()}})
	got, err := c.DescribeMirrors(t.Context(), nil, DescribeMirrorsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Unreachable) != 1 || got.Unreachable[0].Addr != down.Addr() {
		t.Errorf("unreachable: %v, want %s", got.Unreachable, down.Addr())
	}
	if len(got.Mirrors) != 1 || len(got.Mirrors[0].Topics) != 1 {
		t.Fatalf("mirrors %+v, want dr with one topic", got.Mirrors)
	}
	partitions := got.Mirrors[0].Topics[0].Partitions
	var seen []int64
	for _, p := range partitions {
		seen = append(seen, int64(p.Partition), p.DestinationOffset)
	}
	if !slices.Equal(seen, []int64{0, 10, 1, 7, 2, 3}) {
		t.Errorf("partitions and ends %v: want 0 to 2 in order, of 2 the longer copy", seen)
	}
	if partitions[1].Agent != two.Addr() {
		t.Errorf("partition 1 is said to be of %s, want %s", partitions[1].Agent, two.Addr())
	}
}

func TestDescribe_AnUnknownNameIsAnErrorOfThatMirrorOnly(t *testing.T) {
	a := fakeagent.Start(t, 1)
	holding(a, "orders", mirroring(0, 1, 1))
	c := newClient(t, Config{BootstrapServers: []string{a.Addr()}})
	got, err := c.DescribeMirrors(t.Context(), []string{"dr", "nope"}, DescribeMirrorsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Mirrors) != 2 || got.Mirrors[0].Err != nil || got.Mirrors[1].Name != "nope" {
		t.Fatalf("got %+v, want dr and an error for nope", got.Mirrors)
	}
	var refusal fetchwire.KafkaError
	if !errors.As(got.Mirrors[1].Err, &refusal) || refusal.Code != fetchwire.CodeUnknownMirror {
		t.Errorf("error %v, want UNKNOWN_MIRROR", got.Mirrors[1].Err)
	}
}

func TestList_CountsTopicsThatAreSpreadOverAgents(t *testing.T) {
	agents := make([]string, 2)
	for i, topic := range []string{"orders", "payments"} {
		a := fakeagent.Start(t, int32(i))
		holding(a, topic, mirroring(0, 1, 1))
		fakeagent.On(a, func(*fetchwire.ListMirrorsRequest) fetchwire.Response {
			return &fetchwire.ListMirrorsResponse{Mirrors: []fetchwire.ListedMirror{{
				MirrorName: "dr", SourceBootstrap: "s:1", TopicCount: 1,
			}}}
		})
		agents[i] = a.Addr()
	}
	c := newClient(t, Config{Agents: agents})
	got, err := c.ListMirrors(t.Context(), ListMirrorsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := MirrorListing{Name: "dr", SourceBootstrap: "s:1", TopicCount: 2}
	if len(got.Mirrors) != 1 || got.Mirrors[0] != want {
		t.Errorf("got %+v, want %+v", got.Mirrors, want)
	}
}

func TestClient_AStockBrokerIsNamedAndAskedNothingItMayMisunderstand(t *testing.T) {
	broker := fakeagent.StartBroker(t, 1)
	c := newClient(t, Config{BootstrapServers: []string{broker.Addr()}})
	ctx := t.Context()
	_, list := c.ListMirrors(ctx, ListMirrorsOptions{})
	_, describe := c.DescribeMirrors(ctx, nil, DescribeMirrorsOptions{})
	create := c.CreateMirror(ctx, "dr", nil, CreateMirrorOptions{})
	_, stop := c.StopMirrorTopics(ctx, "dr", []string{"orders"}, StopMirrorTopicsOptions{})
	_, configs := c.DescribeConfigs(ctx, []ConfigResource{{fetchwire.ResourceMirror, "dr"}}, DescribeConfigsOptions{})
	_, bump := c.BumpLeaderEpochs(ctx, []LeaderEpochBump{{}}, StatesOptions{})
	for call, err := range map[string]error{
		"list": list, "describe": describe, "create": create, "stop": stop, "configs": configs, "bump": bump,
	} {
		var broken *NotAgentError
		if !errors.Is(err, ErrNotAgent) || !errors.As(err, &broken) ||
			!strings.Contains(err.Error(), broker.Addr()+" is a Kafka broker, not a mirror agent") {
			t.Errorf("%s: %v, want that %s is a Kafka broker", call, err, broker.Addr())
		}
	}
	if n := len(fakeagent.Asked[fetchwire.DescribeClusterRequest](broker)); n == 0 {
		t.Error("the broker was asked nothing at all")
	}
}

func TestClient_UsesTheFirstBootstrapServerThatAnswers(t *testing.T) {
	down, up := fakeagent.Start(t, 1), fakeagent.Start(t, 2)
	holding(up, "orders", mirroring(0, 1, 1))
	down.Stop()
	c := newClient(t, Config{BootstrapServers: []string{down.Addr(), up.Addr()}})
	got, err := c.DescribeMirrors(t.Context(), nil, DescribeMirrorsOptions{})
	if err != nil || len(got.Unreachable) != 0 || len(got.Mirrors) != 1 {
		t.Errorf("got %+v, %v; want dr from the second address, and no complaint", got, err)
	}
	up.Stop()
	_, err = c.DescribeMirrors(t.Context(), nil, DescribeMirrorsOptions{})
	if err == nil || !strings.Contains(err.Error(), down.Addr()) || !strings.Contains(err.Error(), up.Addr()) {
		t.Errorf("error %v, want both addresses", err)
	}
}

func TestClient_AChangeGoesToTheAgentThatHoldsTheMirror(t *testing.T) {
	first, holder := fakeagent.Start(t, 1), fakeagent.Start(t, 2)
	fakeagent.On(first, func(req *fetchwire.FindCoordinatorRequest) fetchwire.Response {
		host, port := splitAddr(t, holder.Addr())
		return &fetchwire.FindCoordinatorResponse{Coordinators: []fetchwire.Coordinator{{
			Key: req.CoordinatorKeys[0], NodeID: 2, Host: host, Port: port,
		}}}
	})
	c := newClient(t, Config{BootstrapServers: []string{first.Addr()}})
	if err := c.CreateMirror(t.Context(), "dr", map[string]string{"a": "1"}, CreateMirrorOptions{}); err != nil {
		t.Fatal(err)
	}
	created := fakeagent.Asked[fetchwire.CreateMirrorRequest](holder)
	if len(created) != 1 || created[0].MirrorName != "dr" || *created[0].Config[0].Value != "1" {
		t.Errorf("the holder was asked %+v", created)
	}
	if n := len(fakeagent.Asked[fetchwire.CreateMirrorRequest](first)); n != 0 {
		t.Errorf("the first agent was asked %d times", n)
	}
	asked := fakeagent.Asked[fetchwire.FindCoordinatorRequest](first)
	if len(asked) != 1 || asked[0].CoordinatorType != fetchwire.CoordinatorMirror || asked[0].CoordinatorKeys[0] != "dr" {
		t.Errorf("coordinator asked for with %+v, want key type 3 and dr", asked)
	}
}

func TestClient_AChangeGoesToNobodyWhenAnAgentIsDown(t *testing.T) {
	up, down := fakeagent.Start(t, 1), fakeagent.Start(t, 2)
	down.Stop()
	c := newClient(t, Config{Agents: []string{up.Addr(), down.Addr()}})
	err := c.CreateMirror(t.Context(), "dr", nil, CreateMirrorOptions{})
	var agent *AgentError
	if !errors.As(err, &agent) || agent.Addr != down.Addr() {
		t.Errorf("error %v, want that of %s", err, down.Addr())
	}
	if n := len(fakeagent.Asked[fetchwire.CreateMirrorRequest](up)); n != 0 {
		t.Errorf("the other agent was asked %d times", n)
	}
}

func TestClient_AsksAgainOnANewConnectionButChangesNothingTwice(t *testing.T) {
	a := fakeagent.Start(t, 1)
	holding(a, "orders", mirroring(0, 1, 1))
	c := newClient(t, Config{BootstrapServers: []string{a.Addr()}})
	for range 3 {
		if _, err := c.DescribeMirrors(t.Context(), nil, DescribeMirrorsOptions{}); err != nil {
			t.Fatal(err)
		}
		a.Disconnect()
	}
	fakeagent.On(a, func(*fetchwire.DeleteMirrorRequest) fetchwire.Response { return nil })
	if err := c.DeleteMirror(t.Context(), "dr", DeleteMirrorOptions{}); err == nil {
		t.Error("a change whose answer was lost is said to be done")
	}
	if n := len(fakeagent.Asked[fetchwire.DeleteMirrorRequest](a)); n != 1 {
		t.Errorf("a change was sent %d times", n)
	}
}

func TestClient_ACallEndsWithItsTimeLimitAndWithItsContext(t *testing.T) {
	a := fakeagent.Start(t, 1)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	fakeagent.On(a, func(*fetchwire.ListMirrorsRequest) fetchwire.Response {
		<-release
		return nil
	})
	c := newClient(t, Config{BootstrapServers: []string{a.Addr()}})
	_, err := c.ListMirrors(t.Context(), ListMirrorsOptions{Timeout: 50 * time.Millisecond})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), a.Addr()) {
		t.Errorf("error %v, want a time limit and the agent's address", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.ListMirrors(ctx, ListMirrorsOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that it was cancelled", err)
	}
}

func TestClient_RefusesAfterCloseAndWithoutAddresses(t *testing.T) {
	c, err := New(Config{BootstrapServers: []string{"127.0.0.1:9"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ListMirrors(t.Context(), ListMirrorsOptions{}); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	for _, cfg := range []Config{{}, {BootstrapServers: []string{"nowhere"}}, {Agents: []string{"a:x"}}} {
		if _, err := New(cfg); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v, want ErrConfig", cfg, err)
		}
	}
}
