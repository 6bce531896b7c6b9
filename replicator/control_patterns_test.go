package replicator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"segmirror/fetchwire"
	"segmirror/segment"
)

// syncs waits until the source was asked n more times.
func (c *controlled) syncs(n int) {
	c.t.Helper()
	m := c.mirror("m")
	for range n {
		at := m.status(time.Now()).Refreshed
		await(c.t, patience, "the source is asked again", func() bool { return m.status(time.Now()).Refreshed.After(at) })
	}
}

// patternsAre checks a mirror's patterns as its configuration has them.
func (c *controlled) patternsAre(mirror, include, exclude string) {
	c.t.Helper()
	cfg, err := c.mirrorConfig(mirror)
	if err != nil {
		c.t.Fatal(err)
	}
	if got := fmt.Sprintf("%s | %s", strings.Join(cfg.TopicsInclude, " "), strings.Join(cfg.TopicsExclude, " ")); got !=
		include+" | "+exclude {
		c.t.Errorf("patterns %q, want %q", got, include+" | "+exclude)
	}
}

func TestPatterns_FilterWhatIsFoundAndGoOnFinding(t *testing.T) {
	s := filled(t, "orders-us", "orders-eu", "orders-internal", "payments", "__offsets")
	c := control(t, t.TempDir(), nil)
	c.create("m", s, fetchwire.CodeNone)
	c.include("m", "orders-.*", "orders-internal", "orders-eu", "orders-us")
	c.patternsAre("m", "orders-.*", "__.* orders-internal")
	c.awaitEnd(t, "orders-eu", 0, 10)
	c.stopTopics("m", "orders-eu", "", "orders-eu")
	c.awaitState("orders-eu", 0, StateStopped)
	s.produce("orders-eu", 5)
	c.syncs(4)
	if p := c.partition("orders-eu", 0); p.State != StateStopped || p.EndOffset != 10 {
		t.Errorf("a stopped topic that the patterns match is %s at %d", p.State, p.EndOffset)
	}
	jp := s.addTopic("orders-jp", 2)
	s.update(func() { jp.partitions[1].append(dataBatch(0, 3)) })
	c.awaitEnd(t, "orders-jp", 1, 3)
	c.include("m", "payments", "", "payments")
	c.patternsAre("m", "orders-.* payments", "__.* orders-internal")
	c.awaitEnd(t, "payments", 0, 10)
	c.include("m", "payments orders-.*", "") // nothing is added twice
	c.patternsAre("m", "orders-.* payments", "__.* orders-internal")
	c.include("m", ".*", "")
	c.syncs(2)
	for _, topic := range []string{"orders-internal", "__offsets"} {
		if p := c.partition(topic, 0); p.Topic != "" {
			t.Errorf("%s is mirrored: %s", topic, p.State)
		}
	}
	c.testAgent.stop()
	d := control(t, c.dir, nil)
	d.patternsAre("m", "orders-.* payments .*", "__.* orders-internal")
	d.awaitEnd(t, "orders-us", 0, 10)
	if p := d.partition("orders-eu", 0); p.State != StateStopped {
		t.Errorf("after a restart the stopped topic is %s", p.State)
	}
}

func TestPatterns_OfALaterStartJoinAndMove(t *testing.T) {
	s := filled(t, "orders-us", "orders-eu", "events-a", "events-b")
	c := control(t, t.TempDir(), nil)
	c.create("m", s, fetchwire.CodeNone)
	c.include("m", "orders-.*", "", "orders-eu", "orders-us")
	c.include("m", "events-.*", "", "events-a", "events-b")
	for _, topic := range []string{"orders-us", "orders-eu", "events-a", "events-b"} {
		c.awaitEnd(t, topic, 0, 10)
	}
	c.include("m", "", "orders-eu")
	c.patternsAre("m", "orders-.* events-.*", "__.* orders-eu")
	c.awaitState("orders-eu", 0, StateStopped)
	s.produce("orders-eu", 5)
	s.produce("orders-us", 5)
	c.awaitEnd(t, "orders-us", 0, 15)
	if p := c.partition("orders-eu", 0); p.EndOffset != 10 {
		t.Errorf("an excluded topic ends at %d", p.EndOffset)
	}
	c.start("m", "orders-eu", "orders-eu INVALID_REQUEST")
	c.include("m", "orders-eu", "") // moves over; what was stopped stays so until it is started
	c.patternsAre("m", "orders-.* events-.* orders-eu", "__.*")
	c.syncs(2)
	if p := c.partition("orders-eu", 0); p.State != StateStopped {
		t.Errorf("a pattern started a stopped topic: %s", p.State)
	}
	c.start("m", "orders-eu", "orders-eu")
	c.awaitEnd(t, "orders-eu", 0, 15)
	c.include("m", "", "events-.*")
	c.patternsAre("m", "orders-.* orders-eu", "__.* events-.*")
	c.awaitState("events-a", 0, StateStopped)
	c.awaitState("events-b", 0, StateStopped)
	c.include("m", "__.*", "")
	c.patternsAre("m", "orders-.* orders-eu __.*", "events-.*")
}

func TestPatterns_StopTakesThemBack(t *testing.T) {
	s := filled(t, "orders-us", "orders-eu", "events-a")
	c := control(t, t.TempDir(), nil)
	c.create("m", s, fetchwire.CodeNone)
	c.include("m", "orders-.* events-.*", "", "events-a", "orders-eu", "orders-us")
	c.awaitEnd(t, "events-a", 0, 10)
	c.stopTopics("m", "", "events-.*", "events-a") // literally in include: taken out
	c.patternsAre("m", "orders-.*", "__.*")
	c.awaitState("events-a", 0, StateStopped)
	c.stopTopics("m", "", "orders-e.", "orders-eu") // not in include: excluded
	c.patternsAre("m", "orders-.*", "__.* orders-e.")
	c.awaitState("orders-eu", 0, StateStopped)
	c.awaitEnd(t, "orders-us", 0, 10)
	resp := &fetchwire.StopMirrorTopicsResponse{}
	for _, bad := range []string{"", " x", "a,b", "["} {
		c.call(&fetchwire.StopMirrorTopicsRequest{MirrorName: "m", Patterns: []string{bad}}, resp)
		c.answered(bad, resp.ErrorCode, resp.ErrorMessage, fetchwire.CodeInvalidRequest)
	}
}

func TestPatterns_OfADeclaredMirrorAreAnOverlay(t *testing.T) {
	s := filled(t, "orders-us", "orders-eu", "payments", "other")
	dir := t.TempDir()
	props := map[string]string{
		"mirrors": "m", "mirror.m.bootstrap.servers": s.addr(), "mirror.m.topics.include": "orders-.*",
	}
	c := control(t, dir, props)
	c.awaitEnd(t, "orders-us", 0, 10)
	c.awaitEnd(t, "orders-eu", 0, 10)
	c.start("m", "payments", "payments") // by name: it survives although no declared pattern names it
	c.include("m", "", "orders-eu")
	c.awaitState("orders-eu", 0, StateStopped)
	c.awaitEnd(t, "payments", 0, 10)
	c.delete("m", fetchwire.CodeInvalidRequest)
	c.testAgent.stop()
	d := control(t, dir, props)
	d.patternsAre("m", "orders-.* payments", "__.* orders-eu")
	d.awaitEnd(t, "payments", 0, 10)
	if p := d.partition("orders-eu", 0); p.State != StateStopped {
		t.Errorf("after a restart the excluded topic is %s", p.State)
	}
	d.testAgent.stop()
	props["mirror.m.topics.include"] = "other"
	e := control(t, dir, props) // the declaration changes below the overlay, which stays
	e.patternsAre("m", "other payments", "__.* orders-eu")
	e.awaitEnd(t, "other", 0, 10)
	if p := e.partition("orders-us", 0); p.Topic != "" {
		t.Errorf("what no pattern names any more is %s", p.State)
	}
	if p := e.partition("orders-eu", 0); p.State != StateStopped {
		t.Errorf("what was stopped is %s", p.State)
	}
}

func TestMirrors_OneBothDeclaredAndCreatedStopsTheStart(t *testing.T) {
	s := filled(t, "a")
	dir := t.TempDir()
	c := control(t, dir, nil)
	c.create("m", s, fetchwire.CodeNone)
	c.testAgent.stop()
	props := controlProps(dir)
	props["mirrors"], props["mirror.m.bootstrap.servers"] = "m", s.addr()
	cfg, err := ParseConfig(props, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = New(cfg, nil); err == nil || !strings.Contains(err.Error(), "--delete --mirror m") {
		t.Errorf("started: %v", err)
	}
	control(t, dir, nil).delete("m", fetchwire.CodeNone)
}

func TestStart_ADirectoryThatIsThereIsTakenUpIfItIsOfTheTopic(t *testing.T) {
	s := filled(t, "same", "other")
	dir := t.TempDir()
	c := control(t, dir, nil)
	c.create("m", s, fetchwire.CodeNone)
	c.start("m", "same other", "same", "other")
	c.awaitEnd(t, "same", 0, 10)
	c.awaitEnd(t, "other", 0, 10)
	c.stopTopics("m", "same other", "", "same", "other")
	c.awaitState("same", 0, StateStopped)
	c.awaitState("other", 0, StateStopped)
	c.delete("m", fetchwire.CodeNone)
	s.update(func() { s.topics["other"].id = [16]byte{0xff} })
	s.produce("same", 5)
	c.create("n", s, fetchwire.CodeNone)
	c.start("n", "same other", "same", "other INCONSISTENT_TOPIC_ID")
	c.awaitEnd(t, "same", 0, 15)
	c.mustEqual(t, s, s.topics["same"], 0)
}

func TestSource_CreatedAgainAndGoneFailWithTheCommandThatHelps(t *testing.T) {
	s := filled(t, "again", "gone")
	c := control(t, t.TempDir(), nil)
	c.create("m", s, fetchwire.CodeNone)
	c.start("m", "again gone", "again", "gone")
	c.awaitEnd(t, "again", 0, 10)
	c.awaitEnd(t, "gone", 0, 10)
	s.update(func() {
		delete(s.topics, "gone")
		p := &testPartition{epochs: []segment.EpochEntry{{}}}
		p.append(dataBatch(0, 100))
		s.topics["again"] = &testTopic{name: "again", id: [16]byte{9}, partitions: []*testPartition{p}}
	})
	c.awaitFailed(t, "again", 0, CauseCreatedAgain, 10)
	c.awaitFailed(t, "gone", 0, CauseTopicGone, 10)
	got := c.described("m")
	for _, topic := range []string{"again", "gone"} {
		if words := got[topic][0].Cause; words == nil || !strings.Contains(*words, "--stop --mirror m --topics "+topic) {
			t.Errorf("%s: %+v", topic, got[topic][0])
		}
	}
	c.start("m", "again gone", "again INCONSISTENT_TOPIC_ID", "gone UNKNOWN_TOPIC_OR_PARTITION")
	c.stopTopics("m", "gone again", "", "gone", "again")
	c.awaitState("gone", 0, StateStopped)
	c.awaitState("again", 0, StateStopped)
	c.delete("m", fetchwire.CodeNone)
}

func TestPartitions_AddedAtTheSourceAreMirrored(t *testing.T) {
	s := filled(t, "a")
	c := control(t, t.TempDir(), nil)
	c.create("m", s, fetchwire.CodeNone)
	c.start("m", "a", "a")
	c.awaitEnd(t, "a", 0, 10)
	grow := func() {
		s.update(func() {
			p := &testPartition{epochs: []segment.EpochEntry{{}}}
			p.append(dataBatch(0, 7))
			s.topics["a"].partitions = append(s.topics["a"].partitions, p)
		})
	}
	grow()
	c.awaitEnd(t, "a", 1, 7)
	c.pause("m", "a", "a")
	c.awaitState("a", 1, StatePaused)
	grow()
	c.syncs(2)
	if p := c.partition("a", 2); p.Topic != "" {
		t.Errorf("a paused topic grew: %s", p.State)
	}
	c.resume("m", "a", "a")
	c.awaitEnd(t, "a", 2, 7)
}

func TestConfiguration_AChangeReconnectsAndTheStateStays(t *testing.T) {
	s := filled(t, "a")
	c := control(t, t.TempDir(), nil)
	c.create("m", s, fetchwire.CodeNone)
	c.start("m", "a", "a")
	c.awaitEnd(t, "a", 0, 10)
	before := c.mirror("m").status(time.Now()).Fetchers
	s.produce("a", 5)
	value := "7654321"
	if err := c.metadata.append(configRecord(resource{kind: resourceMirror, name: "m"}, "mirror.fetch.max.bytes", &value)); err != nil {
		t.Fatal(err)
	}
	p := s.topics["a"].partitions[0]
	await(t, patience, "the new configuration is used", func() bool {
		if state := c.partition("a", 0).State; state != StateMirroring {
			t.Fatalf("the partition became %s", state)
		}
		asked := s.fetches(p)
		return asked[len(asked)-1].MaxBytes == 7654321
	})
	s.produce("a", 5)
	c.awaitEnd(t, "a", 0, 20)
	if n := len(before); n != 1 {
		t.Errorf("%d fetchers before", n)
	}
	c.mustEqual(t, s, s.topics["a"], 0)
}

func TestConfiguration_PatternsDoNotReconnect(t *testing.T) {
	s := filled(t, "a", "b")
	c := control(t, t.TempDir(), nil)
	c.create("m", s, fetchwire.CodeNone)
	c.start("m", "a", "a")
	c.awaitEnd(t, "a", 0, 10)
	s.mu.Lock()
	s.accepted = 0
	s.mu.Unlock()
	value := "b"
	if err := c.metadata.append(configRecord(resource{kind: resourceMirror, name: "m"}, keyInclude, &value)); err != nil {
		t.Fatal(err)
	}
	c.awaitEnd(t, "b", 0, 10)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.accepted > 0 {
		t.Errorf("%d new connections", s.accepted)
	}
}
