package e2e

import (
	"errors"
	"strings"
	"testing"

	"segmirror/admin"
	"segmirror/bench/kafka"
	"segmirror/fetchwire"
	"segmirror/replicator"
)

// controlled starts an agent without declared mirrors, and a client of its control plane.
func controlled(t *testing.T, src *kafka.Cluster) (*agent, *admin.Client) {
	t.Helper()
	props := agentProps(src, t.TempDir(), "preserve", "")
	for key := range props {
		if strings.HasPrefix(key, "mirror.m.") {
			delete(props, key)
		}
	}
	props["mirrors"], props["listeners"] = "", "127.0.0.1:0"
	props["mirror.fetch.wait.max.ms"], props["mirror.fetch.backoff.ms"] = "200", "100"
	a := startAgent(t, props)
	client, err := admin.New(admin.Config{BootstrapServers: a.ListenerAddrs()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return a, client
}

// wentWell wants the results of just these topics, without errors.
func wentWell(t *testing.T, results []admin.TopicResult, err error, topics ...string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if r.Err != nil || i >= len(topics) || r.Topic != topics[i] {
			t.Fatalf("%+v, want %q", results, topics)
		}
	}
	if len(results) != len(topics) {
		t.Fatalf("%+v, want %q", results, topics)
	}
}

// TestControl_TopicsAreStartedFoundPausedStoppedAndHealed runs a mirror that was created by request through its life.
func TestControl_TopicsAreStartedFoundPausedStoppedAndHealed(t *testing.T) {
	src := source(t)
	us, eu, internal := tp{"ctl-orders-us", 0}, tp{"ctl-orders-eu", 0}, tp{"ctl-orders-internal", 0}
	jp, alone := tp{"ctl-orders-jp", 0}, tp{"ctl-alone", 0}
	// Of the whole test, not of a part of it: what is created is deleted with its test.
	create := func(p tp, replicas ...int32) {
		createTopic(t, src, kafka.TopicSpec{Name: p.topic, Assignment: [][]int32{replicas}})
	}
	for _, p := range []tp{us, eu, internal} {
		create(p, 1, 2)
		write(t, src, p, 10)
	}
	a, client := controlled(t, src)
	err := client.CreateMirror(t.Context(), mirrorName, map[string]string{"bootstrap.servers": src.Broker(1).Addr()},
		admin.CreateMirrorOptions{})
	if err != nil {
		t.Fatal(err)
	}
	started, err := client.StartMirrorTopics(t.Context(), mirrorName, nil, admin.StartMirrorTopicsOptions{
		IncludePatterns: []string{"ctl-orders-.*"}, ExcludePatterns: []string{internal.topic},
	})
	wentWell(t, started, err, eu.topic, us.topic)
	a.awaitCaughtUp(src, us, eu)

	t.Run("a stopped topic is not found again, a new one is", func(t *testing.T) {
		stopped, err := client.StopMirrorTopics(t.Context(), mirrorName, []string{eu.topic}, admin.StopMirrorTopicsOptions{})
		wentWell(t, stopped, err, eu.topic)
		end := a.awaitState(eu.topic, 0, replicator.StateStopped).EndOffset
		write(t, src, eu, 10)
		create(jp, 1, 2)
		write(t, src, jp, 10)
		a.awaitCaughtUp(src, jp)
		if s, _ := a.partition(eu.topic, 0); s.EndOffset != end || s.State != replicator.StateStopped {
			t.Errorf("the stopped topic is %s at %d, was stopped at %d", s.State, s.EndOffset, end)
		}
		if _, held := a.partition(internal.topic, 0); held {
			t.Error("an excluded topic is held")
		}
	})
	t.Run("a paused topic rests and goes on without a gap", func(t *testing.T) {
		paused, err := client.PauseMirrorTopics(t.Context(), mirrorName, []string{us.topic}, admin.PauseMirrorTopicsOptions{})
		wentWell(t, paused, err, us.topic)
		end := a.awaitState(us.topic, 0, replicator.StatePaused).EndOffset
		write(t, src, us, 50)
		if s, _ := a.partition(us.topic, 0); s.EndOffset != end {
			t.Errorf("a paused partition grew from %d to %d", end, s.EndOffset)
		}
		resumed, err := client.ResumeMirrorTopics(t.Context(), mirrorName, []string{us.topic}, admin.ResumeMirrorTopicsOptions{})
		wentWell(t, resumed, err, us.topic)
		a.awaitCaughtUp(src, us)
	})
	t.Run("a source that is away fails a topic and heals it", func(t *testing.T) {
		create(alone, 2)
		write(t, src, alone, 20)
		started, err := client.StartMirrorTopics(t.Context(), mirrorName, []string{alone.topic}, admin.StartMirrorTopicsOptions{})
		wentWell(t, started, err, alone.topic)
		a.awaitCaughtUp(src, alone)
		if err := src.Broker(2).Kill(); err != nil {
			t.Fatal(err)
		}
		a.awaitState(alone.topic, 0, replicator.StateFailed)
		if err := src.Broker(2).Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		write(t, src, alone, 20)
		a.awaitCaughtUp(src, alone)
	})
	t.Run("an unknown key is refused, other addresses are connected to", func(t *testing.T) {
		alter := func(key, value string) error {
			results, err := client.IncrementalAlterConfigs(t.Context(), []admin.ConfigChange{{
				Resource: admin.ConfigResource{Type: fetchwire.ResourceMirror, Name: mirrorName},
				Ops:      []admin.ConfigOp{{Op: fetchwire.ConfigSet, Key: key, Value: value}},
			}}, admin.AlterConfigsOptions{})
			if err != nil || len(results) != 1 {
				t.Fatalf("%+v, %v", results, err)
			}
			return results[0].Err
		}
		var code fetchwire.KafkaError
		if err := alter("no.such.key", "1"); !errors.As(err, &code) || code.Code != fetchwire.CodeInvalidConfig {
			t.Errorf("an unknown key: %v", err)
		}
		if err := alter("bootstrap.servers", src.Broker(2).Addr()); err != nil {
			t.Fatal(err)
		}
		write(t, src, us, 50)
		a.awaitCaughtUp(src, us)
		if s := a.Status().Mirrors[0]; s.RefreshError != "" {
			t.Errorf("the source does not answer: %s", s.RefreshError)
		}
	})
	wantEqual(t, src, a, us, jp, alone)
}
