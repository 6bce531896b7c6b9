package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"segmirror/bench/kafka"
	"segmirror/replicator"
	"segmirror/segment"
)

// createTopic creates a topic that the test's end deletes.
func createTopic(t *testing.T, src *kafka.Cluster, spec kafka.TopicSpec) {
	t.Helper()
	if err := src.CreateTopic(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deleteKinds(t, src, []kind{{live: kafka.LiveTopic{Name: spec.Name}}}) })
}

// write sends n batches of a few records each to a partition.
func write(t *testing.T, src *kafka.Cluster, p tp, n int) {
	t.Helper()
	producer, err := src.NewProducer(kafka.ProducerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	for i := range n {
		records := numbered(fmt.Sprintf("batch-%d", i), 3)
		if err := producer.Send(t.Context(), p.topic, p.partition, records...); err != nil {
			t.Fatal(err)
		}
	}
}

// wantEqual stops the agent and wants the partitions whole on its disk.
func wantEqual(t *testing.T, src *kafka.Cluster, a *agent, parts ...tp) {
	t.Helper()
	a.awaitCaughtUp(src, parts...)
	a.stop()
	for _, p := range parts {
		wantWhole(t, src, p, compareLogs(t, p, p.leaderDir(t, src), p.dir(a.dir), a.rebased))
		checkDir(t, p, a.dir, segment.DefaultConfig().IndexIntervalBytes)
	}
}

// TestLife_FollowsKillsRestartsAndNewPartitions mirrors a topic while one of the source's brokers is killed and comes
// back, the other restarts, and partitions are added.
func TestLife_FollowsKillsRestartsAndNewPartitions(t *testing.T) {
	src := source(t)
	const topic = "life-brokers"
	createTopic(t, src, kafka.TopicSpec{Name: topic, Assignment: [][]int32{{2, 1}, {1, 2}}})
	live := src.StartLive(t.Context(), kafka.LiveTopic{Name: topic, Partitions: 2, Codecs: []string{"none", "lz4"}})
	defer live.Stop()
	a := startAgent(t, agentProps(src, t.TempDir(), "preserve", topic))
	awaitBatches(t, live, 20)
	if err := src.Broker(2).Kill(); err != nil {
		t.Fatal(err)
	}
	awaitBatches(t, live, 50) // the other broker leads both partitions now
	if err := src.Broker(2).Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := src.AddPartitions(t.Context(), topic, 4); err != nil {
		t.Fatal(err)
	}
	more := src.StartLive(t.Context(), kafka.LiveTopic{Name: topic, Partitions: 4})
	awaitBatches(t, more, 20)
	more.Stop()
	live.Stop()
	wantEqual(t, src, a, tp{topic, 0}, tp{topic, 1}, tp{topic, 2}, tp{topic, 3})
}

// TestLife_HungBrokerIsLeft stops the leader's process where it stands. Its connections stay open and silent; the
// cluster gives the partition to the other broker, and the mirror has to follow within its time-outs.
func TestLife_HungBrokerIsLeft(t *testing.T) {
	src := source(t)
	p := tp{"life-hung", 0}
	createTopic(t, src, kafka.TopicSpec{Name: p.topic, Assignment: [][]int32{{2, 1}}})
	write(t, src, p, 10)
	props := agentProps(src, t.TempDir(), "preserve", p.topic)
	props["mirror.m.socket.timeout.ms"], props["mirror.m.request.timeout.ms"] = "3000", "3000"
	a := startAgent(t, props)
	a.awaitCaughtUp(src, p)
	hung := src.Broker(2)
	if err := hung.Pause(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := hung.Continue(); err != nil {
			t.Error(err)
		}
		// The broker is fenced until its next heartbeat; the tests after this one want both.
		inSync := func(s kafka.PartitionState) bool { return len(s.ISR) == 2 }
		if _, err := src.AwaitPartition(t.Context(), p.topic, p.partition, "in sync", inSync); err != nil {
			t.Error(err)
		}
	}()
	eventually(t, patience, "the other broker to lead", func() (bool, string) {
		s, err := src.Topic(t.Context(), 1, p.topic)
		return err == nil && s.Partitions[0].Leader == 1, fmt.Sprintf("%+v, %v", s, err)
	})
	client, err := kgo.NewClient(kgo.SeedBrokers(src.Broker(1).Addr()), kgo.DefaultProduceTopic(p.topic))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(t.Context(), numbered("after", 5)...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	moved := time.Now()
	eventually(t, patience, "the records of the new leader", func() (bool, string) {
		s, _ := a.partition(p.topic, p.partition)
		return s.EndOffset == 35, fmt.Sprintf("%v at %d, fetched from %d: %s", s.State, s.EndOffset, s.Leader, s.CauseText)
	})
	t.Logf("followed the new leader %v after the records were there", time.Since(moved))
}

// TestLife_NewTopicsThatMatchAreMirrored creates a topic under a running agent.
func TestLife_NewTopicsThatMatchAreMirrored(t *testing.T) {
	src := source(t)
	a := startAgent(t, agentProps(src, t.TempDir(), "preserve", "life-new-.*"))
	p := tp{"life-new-topic", 0}
	for _, topic := range []string{p.topic, "life-unlike"} {
		createTopic(t, src, kafka.TopicSpec{Name: topic, Assignment: [][]int32{{1, 2}}})
		write(t, src, tp{topic, 0}, 5)
	}
	a.awaitCaughtUp(src, p)
	if _, held := a.partition("life-unlike", 0); held {
		t.Error("a topic that no pattern includes is mirrored")
	}
	wantEqual(t, src, a, p)
}

// overtake lets a mirror copy some records, stops it, and moves the source's log start past the mirror's end. It
// returns the mirror's end and the source's log start.
func overtake(t *testing.T, src *kafka.Cluster, props map[string]string, p tp) (end, start int64) {
	t.Helper()
	createTopic(t, src, kafka.TopicSpec{Name: p.topic, Assignment: [][]int32{{1, 2}}})
	write(t, src, p, 20)
	a := startAgent(t, props)
	a.awaitCaughtUp(src, p)
	status, _ := a.partition(p.topic, p.partition)
	a.stop()
	write(t, src, p, 20)
	start = status.EndOffset + 31 // inside a batch
	if err := src.DeleteRecords(t.Context(), p.topic, p.partition, start); err != nil {
		t.Fatal(err)
	}
	return status.EndOffset, start
}

// TestLife_OvertakenMirrorResumesAndRemembersWhatWasLost restarts a mirror behind the source's log start.
func TestLife_OvertakenMirrorResumesAndRemembersWhatWasLost(t *testing.T) {
	src := source(t)
	p := tp{"life-overtaken", 0}
	props := agentProps(src, t.TempDir(), "preserve", p.topic)
	end, start := overtake(t, src, props, p)
	a := startAgent(t, props)
	a.awaitCaughtUp(src, p)
	checkLost(t, a, p, end, start)
	metric := fmt.Sprintf(`lost_records_total{mirror="m",partition="0",topic=%q} %d`, p.topic, start-end)
	if metrics := scrape(t, a); !strings.Contains(metrics, metric) {
		t.Errorf("no metric %s in\n%s", metric, metrics)
	}
	if event := fmt.Sprintf("lost_from=%d lost_to=%d", end, start); !strings.Contains(a.log.tail(1<<20), event) {
		t.Errorf("no event %s in the log", event)
	}
	a.stop()
	again := startAgent(t, props)
	again.awaitCaughtUp(src, p)
	checkLost(t, again, p, end, start)
	write(t, src, p, 5)
	wantEqual(t, src, again, p)
}

// checkLost wants the lost range in the agent's status.
func checkLost(t *testing.T, a *agent, p tp, from, to int64) {
	t.Helper()
	s, _ := a.partition(p.topic, p.partition)
	if len(s.Lost) != 1 || s.Lost[0].From != from || s.Lost[0].To != to || s.LostRecords != to-from {
		t.Errorf("%v: lost %+v (%d records), want [%d, %d)", p, s.Lost, s.LostRecords, from, to)
	}
	if s.LogStart != to {
		t.Errorf("%v: log start %d, want the source's %d", p, s.LogStart, to)
	}
}

// scrape reads the agent's metrics.
func scrape(t *testing.T, a *agent) string {
	t.Helper()
	resp, err := http.Get("http://" + a.MetricsAddr() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestLife_OvertakenMirrorFailsUnderGapPolicyFail keeps what the mirror has and says what is missing.
func TestLife_OvertakenMirrorFailsUnderGapPolicyFail(t *testing.T) {
	src := source(t)
	p := tp{"life-gap-fail", 0}
	props := agentProps(src, t.TempDir(), "preserve", p.topic)
	props["mirror.m.gap.policy"] = "fail"
	end, start := overtake(t, src, props, p)
	a := startAgent(t, props)
	s := a.awaitState(p.topic, p.partition, replicator.StateFailed)
	if s.Cause != replicator.CauseOvertaken || s.EndOffset != end {
		t.Errorf("cause %v at %d, want overtaken at %d: %s", s.Cause, s.EndOffset, end, s.CauseText)
	}
	for _, fact := range []int64{end, start - 1} { // first and last offset that are missing
		if !strings.Contains(s.CauseText, fmt.Sprint(fact)) {
			t.Errorf("the cause does not name offset %d: %s", fact, s.CauseText)
		}
	}
}

// TestLife_LogStartFollowsRetention lets the source's retention delete segments under a running mirror.
func TestLife_LogStartFollowsRetention(t *testing.T) {
	src := source(t)
	p := tp{"life-retention", 0}
	createTopic(t, src, kafka.TopicSpec{Name: p.topic, Assignment: [][]int32{{2, 1}}, Configs: map[string]string{
		"internal.segment.bytes": "2000", "file.delete.delay.ms": "500",
	}})
	write(t, src, p, 60)
	a := startAgent(t, agentProps(src, t.TempDir(), "preserve", p.topic))
	a.awaitCaughtUp(src, p)
	if err := src.AlterTopic(t.Context(), p.topic, map[string]string{"retention.bytes": "4000"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "the mirror's log start to follow", func() (bool, string) {
		start, _, err := src.Offsets(t.Context(), p.topic, p.partition, false)
		if err != nil {
			return false, err.Error()
		}
		s, _ := a.partition(p.topic, p.partition)
		return start > 0 && s.LogStart == start, fmt.Sprintf("source %d, mirror %d", start, s.LogStart)
	})
	write(t, src, p, 3)
	wantEqual(t, src, a, p)
}

// TestLife_DeletedTopicFailsAndItsSuccessorOverwritesNothing deletes a mirrored topic and creates it again.
func TestLife_DeletedTopicFailsAndItsSuccessorOverwritesNothing(t *testing.T) {
	src := source(t)
	p := tp{"life-again", 0}
	spec := kafka.TopicSpec{Name: p.topic, Assignment: [][]int32{{1, 2}}}
	createTopic(t, src, spec)
	write(t, src, p, 20)
	a := startAgent(t, agentProps(src, t.TempDir(), "preserve", p.topic))
	a.awaitCaughtUp(src, p)
	before, _ := a.partition(p.topic, p.partition)
	if err := src.DeleteTopic(t.Context(), p.topic); err != nil {
		t.Fatal(err)
	}
	s := a.awaitState(p.topic, p.partition, replicator.StateFailed)
	if s.Cause != replicator.CauseTopicGone {
		t.Errorf("cause %v, want topic gone: %s", s.Cause, s.CauseText)
	}
	if err := src.CreateTopic(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	write(t, src, p, 50)
	eventually(t, patience, "the new topic to be noticed", func() (bool, string) {
		s, _ := a.partition(p.topic, p.partition)
		return s.Cause == replicator.CauseCreatedAgain, fmt.Sprintf("%v: %s", s.State, s.CauseText)
	})
	after, _ := a.partition(p.topic, p.partition)
	if after.State != replicator.StateFailed || after.EndOffset != before.EndOffset {
		t.Errorf("%v at %d, want FAILED at %d", after.State, after.EndOffset, before.EndOffset)
	}
	a.stop()
	if records := decode(t, p, p.dir(a.dir)); len(records) != 60 {
		t.Errorf("%d records of the deleted topic are left, want its 60", len(records))
	}
}

// TestLife_TopicWithoutRightsFailsAloneAndHeals takes the right to read one of two topics away and gives it back.
func TestLife_TopicWithoutRightsFailsAloneAndHeals(t *testing.T) {
	src := source(t)
	secret, open := tp{"life-secret", 0}, tp{"life-open", 0}
	for _, p := range []tp{secret, open} {
		createTopic(t, src, kafka.TopicSpec{Name: p.topic, Assignment: [][]int32{{1, 2}}})
		write(t, src, p, 10)
	}
	if err := src.Deny(t.Context(), secret.topic, kadm.OpRead); err != nil {
		t.Fatal(err)
	}
	a := startAgent(t, agentProps(src, t.TempDir(), "preserve", "life-secret,life-open"))
	s := a.awaitState(secret.topic, 0, replicator.StateFailed)
	if s.Cause != replicator.CauseNotAuthorized {
		t.Errorf("cause %v, want not authorized: %s", s.Cause, s.CauseText)
	}
	write(t, src, open, 10)
	a.awaitCaughtUp(src, open)
	if err := src.Grant(t.Context(), secret.topic, kadm.OpRead); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, src, a, secret, open)
}

// uncleanElection takes from partitions what their leader, broker 2, had acknowledged: the other replica, on broker 1,
// is away while the records are written, broker 2 is killed before broker 1 is back, and broker 1 is made leader all
// the same. mirrored is called when the records that will be lost are there; counts says how many others follow them.
// It returns the offset at which the histories part.
func uncleanElection(t *testing.T, src *kafka.Cluster, counts map[tp]int, mirrored func()) int64 {
	t.Helper()
	const common, lost = 10, 10 // batches of three records
	ctx, stays, dies := t.Context(), src.Broker(1), src.Broker(2)
	for p := range counts {
		createTopic(t, src, kafka.TopicSpec{Name: p.topic, Assignment: [][]int32{{dies.ID, stays.ID}}})
		writePlain(t, src, p, common*3)
	}
	if err := stays.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	for p := range counts {
		alone := func(s kafka.PartitionState) bool { return len(s.ISR) == 1 && s.Leader == dies.ID }
		if _, err := src.AwaitPartition(ctx, p.topic, p.partition, "led by broker 2 alone", alone); err != nil {
			t.Fatal(err)
		}
		writePlain(t, src, p, lost*3)
	}
	mirrored()
	if err := errors.Join(dies.Kill(), stays.Start(ctx)); err != nil {
		t.Fatal(err)
	}
	for p, n := range counts {
		leaderless := func(s kafka.PartitionState) bool { return s.Leader < 0 }
		if _, err := src.AwaitPartition(ctx, p.topic, p.partition, "without a leader", leaderless); err != nil {
			t.Fatal(err)
		}
		if _, err := src.ElectUnclean(ctx, p.topic, p.partition); err != nil {
			t.Fatal(err)
		}
		writePlain(t, src, p, n)
	}
	if err := dies.Start(ctx); err != nil {
		t.Fatal(err)
	}
	return 3 * common
}

// writePlain sends n records one by one, by a producer without an id: with the controller away none can be had.
func writePlain(t *testing.T, src *kafka.Cluster, p tp, n int) {
	t.Helper()
	producer, err := src.NewProducer(kafka.ProducerConfig{Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	for i := range n {
		record := kgo.KeyStringRecord(fmt.Sprint(i), time.Now().String())
		if err := producer.Send(t.Context(), p.topic, p.partition, record); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLife_DivergedMirrorFailsWithBothEpochsAndIsCutOnlyWhenAllowed gives the source, by unclean elections, other
// histories, one shorter and one longer than the mirror's. One agent keeps what it has and says where they part; two
// others, of either epoch policy, may cut.
func TestLife_DivergedMirrorFailsWithBothEpochsAndIsCutOnlyWhenAllowed(t *testing.T) {
	src := source(t)
	shorter, longer := tp{"life-other-shorter", 0}, tp{"life-other-longer", 0}
	var keeps *agent
	var cuts []*agent
	parting := uncleanElection(t, src, map[tp]int{shorter: 12, longer: 50}, func() {
		keeps = startAgent(t, agentProps(src, t.TempDir(), "preserve", "life-other-.*"))
		for _, policy := range []string{"preserve", "rebase"} {
			props := agentProps(src, t.TempDir(), policy, "life-other-.*")
			props["mirror.m.unclean.leader.election.enable"] = "true"
			cuts = append(cuts, startAgent(t, props))
		}
		for _, a := range append(cuts, keeps) {
			a.awaitCaughtUp(src, shorter, longer)
		}
	})
	for _, p := range []tp{shorter, longer} {
		s := keeps.awaitState(p.topic, 0, replicator.StateFailed)
		if s.Cause != replicator.CauseDiverged || s.EndOffset != 2*parting {
			t.Errorf("%v: cause %v at %d, want diverged with all that was mirrored (%d)", p, s.Cause, s.EndOffset,
				2*parting)
		}
		leader, err := src.Leader(t.Context(), p.topic, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%v, leader epoch %d: %s", p, leader.LeaderEpoch, s.CauseText)
		for _, fact := range []string{"epoch 0", fmt.Sprintf("epoch %d", leader.LeaderEpoch), fmt.Sprint(parting)} {
			if !strings.Contains(s.CauseText, fact) {
				t.Errorf("%v: the cause does not name %s: %s", p, fact, s.CauseText)
			}
		}
	}
	for _, a := range cuts {
		wantEqual(t, src, a, shorter, longer)
		if text := a.log.tail(1 << 20); !strings.Contains(text, "level=WARN") || !strings.Contains(text, "truncat") {
			t.Errorf("the log does not warn of a truncation:\n%s", text)
		}
	}
}
