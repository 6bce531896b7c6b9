package replicator

import (
	"strings"
	"testing"

	"segmirror/fetchwire"
)

func TestCreate_RefusesNamesAndConfigurationsInWords(t *testing.T) {
	s := filled(t, "t")
	c := control(t, t.TempDir(), map[string]string{
		"mirrors": "declared", "mirror.declared.bootstrap.servers": s.addr(),
	})
	for _, name := range []string{
		"", ".", "..", "a b", "a/b", "ä", strings.Repeat("x", 250), "m.stopped", "m.paused",
	} {
		c.create(name, s, fetchwire.CodeInvalidMirrorName)
	}
	c.create("m", nil, fetchwire.CodeInvalidRequest)
	c.create("m", nil, fetchwire.CodeInvalidRequest, "mirror.topics.include", "x")
	if words := c.create("m", s, fetchwire.CodeInvalidConfig, "no.such.key", "1"); !strings.Contains(words, "no.such.key") {
		t.Errorf("the unknown key is not named: %s", words)
	}
	c.create("m", s, fetchwire.CodeInvalidConfig, "mirror.topics.include", "[")
	c.create("m", s, fetchwire.CodeInvalidConfig, "mirror.gap.policy", "perhaps")
	c.create("m", s, fetchwire.CodeInvalidConfig, "mirror.topics.include.added", "x")
	c.create("m", nil, fetchwire.CodeBrokerNotAvailable, "bootstrap.servers", "127.0.0.1:1",
		"socket.connection.setup.timeout.ms", "2000")
	c.create("declared", s, fetchwire.CodeDuplicateResource)
	if got := c.list(); len(got) != 1 {
		t.Fatalf("what was refused is listed: %+v", got)
	}
	c.create(strings.Repeat("x", 249), s, fetchwire.CodeNone)
	c.create("m", s, fetchwire.CodeNone, "mirror.topics.include", "x-.*")
	c.create("m", s, fetchwire.CodeDuplicateResource)
	l := c.list()
	if len(l) != 3 || l[1].MirrorName != "m" || l[1].SourceClusterID != s.clusterID || l[1].SourceBootstrap != s.addr() ||
		l[1].TopicCount != 0 {
		t.Errorf("listed: %+v", l)
	}
}

func TestStart_ATopicNeedsNothingButItsName(t *testing.T) {
	s := filled(t, "a", "b", "c", "__x")
	c := control(t, t.TempDir(), nil)
	c.create("m", s, fetchwire.CodeNone)
	c.start("m", "a absent b", "a", "absent UNKNOWN_TOPIC_OR_PARTITION", "b")
	c.awaitEnd(t, "a", 0, 10)
	c.awaitEnd(t, "b", 0, 10)
	c.start("m", "a", "a TOPIC_ALREADY_IN_MIRROR")
	c.start("m", "__x no/name", "__x INVALID_REQUEST", "no/name INVALID_TOPIC_EXCEPTION")
	if p := c.partition("c", 0); p.Topic != "" {
		t.Errorf("c was not started and is %s", p.State)
	}
	c.create("other", s, fetchwire.CodeNone)
	c.start("other", "a c", "a TOPIC_ALREADY_IN_MIRROR", "c")
	c.awaitEnd(t, "c", 0, 10)
	c.pause("m", "a", "a")
	c.awaitState("a", 0, StatePaused)
	c.start("m", "a", "a MIRROR_TOPIC_ALREADY_PAUSED")
	c.start("m", "a a", "a MIRROR_TOPIC_ALREADY_PAUSED")
	resp := &fetchwire.StartMirrorTopicsResponse{}
	c.call(&fetchwire.StartMirrorTopicsRequest{
		MirrorName: "none", Topics: []fetchwire.StartMirrorTopic{{TopicName: "a"}},
	}, resp)
	c.answered("start of no mirror", resp.ErrorCode, resp.ErrorMessage, fetchwire.CodeUnknownMirror)
	c.call(&fetchwire.StartMirrorTopicsRequest{MirrorName: "m"}, resp)
	c.answered("start of nothing", resp.ErrorCode, resp.ErrorMessage, fetchwire.CodeInvalidRequest)
	c.call(&fetchwire.StartMirrorTopicsRequest{
		MirrorName: "m", Topics: []fetchwire.StartMirrorTopic{{TopicName: "b", TopicID: [16]byte{1}}},
	}, resp)
	c.answered("start of another id", resp.ErrorCode, resp.ErrorMessage, fetchwire.CodeInconsistentTopicID)
}

func TestStop_EachRefusalHasItsCode(t *testing.T) {
	s := filled(t, "a", "b", "c")
	c := control(t, t.TempDir(), nil)
	c.create("m", s, fetchwire.CodeNone)
	c.create("other", s, fetchwire.CodeNone)
	c.start("m", "a b", "a", "b")
	c.start("other", "c", "c")
	c.awaitEnd(t, "a", 0, 10)
	c.stopTopics("m", "a c absent", "", "a", "c TOPIC_NOT_IN_MIRROR", "absent UNKNOWN_TOPIC_OR_PARTITION")
	c.awaitState("a", 0, StateStopped)
	c.stopTopics("m", "a", "", "a TOPIC_NOT_IN_MIRROR")
	c.awaitEnd(t, "b", 0, 10)
	c.pause("m", "b", "b")
	c.awaitState("b", 0, StatePaused)
	c.stopTopics("m", "b", "", "b")
	c.awaitState("b", 0, StateStopped)
	s.produce("a", 5)
	c.start("m", "a", "a") // goes on from its end
	c.awaitEnd(t, "a", 0, 15)
	c.mustEqual(t, s, s.topics["a"], 0)
}
