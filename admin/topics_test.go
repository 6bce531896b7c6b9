package admin

import (
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"segmirror/admin/fakeagent"
	"segmirror/fetchwire"
)

func splitAddr(t *testing.T, addr string) (string, int32) {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return host, int32(n)
}

func topicResult(name string, code int16, words string) fetchwire.MirrorTopicResult {
	r := fetchwire.MirrorTopicResult{Name: name, ErrorCode: code}
	if words != "" {
		r.ErrorMessage = &words
	}
	return r
}

func TestStart_EveryTopicHasItsOwnResultAndPatternsAddTheirs(t *testing.T) {
	a := fakeagent.Start(t, 1)
	fakeagent.On(a, func(*fetchwire.StartMirrorTopicsRequest) fetchwire.Response {
		resp := &fetchwire.StartMirrorTopicsResponse{}
		resp.ErrorCode = fetchwire.CodeTopicAlreadyInMirror // as the first topic's, in some servers
		resp.Topics = []fetchwire.MirrorTopicResult{
			topicResult("found", 0, ""),
			topicResult("bad", fetchwire.CodeTopicAlreadyInMirror, "mirror eu holds it"),
			topicResult("good", 0, ""),
		}
		return resp
	})
	c := newClient(t, Config{BootstrapServers: []string{a.Addr()}})
	got, err := c.StartMirrorTopics(t.Context(), "dr", []string{"good", "bad", "lost"}, StartMirrorTopicsOptions{
		IncludePatterns: []string{"f.*"}, ExcludePatterns: []string{"x.*"},
		TopicMetadata: map[string]TopicMetadata{"good": {TopicID: [16]byte{9}, NumPartitions: 4}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range got {
		names = append(names, r.Topic)
	}
	if !slices.Equal(names, []string{"good", "bad", "lost", "found"}) {
		t.Fatalf("results of %v", names)
	}
	var refusal fetchwire.KafkaError
	if got[0].Err != nil || got[3].Err != nil || !errors.Is(got[2].Err, ErrNoAnswer) ||
		!errors.As(got[1].Err, &refusal) || refusal.Message != "mirror eu holds it" {
		t.Errorf("results %+v", got)
	}
	asked := fakeagent.Asked[fetchwire.StartMirrorTopicsRequest](a)[0]
	want := fetchwire.StartMirrorTopic{TopicID: [16]byte{9}, TopicName: "good", NumPartitions: 4}
	if asked.Topics[0] != want || asked.IncludePatterns[0] != "f.*" || asked.ExcludePatterns[0] != "x.*" {
		t.Errorf("asked %+v", asked)
	}
}

func TestTopicCalls_ARefusalOfTheWholeIsAnError(t *testing.T) {
	a := fakeagent.Start(t, 1)
	words := `there is no mirror "dr"`
	whole := fetchwire.MirrorTopicsResult{
		MirrorResult: fetchwire.MirrorResult{ErrorCode: fetchwire.CodeUnknownMirror, ErrorMessage: &words},
	}
	fakeagent.On(a, func(*fetchwire.StopMirrorTopicsRequest) fetchwire.Response {
		return &fetchwire.StopMirrorTopicsResponse{MirrorTopicsResult: whole}
	})
	fakeagent.On(a, func(*fetchwire.PauseMirrorTopicsRequest) fetchwire.Response {
		return &fetchwire.PauseMirrorTopicsResponse{MirrorTopicsResult: whole}
	})
	fakeagent.On(a, func(*fetchwire.ResumeMirrorTopicsRequest) fetchwire.Response {
		return &fetchwire.ResumeMirrorTopicsResponse{MirrorTopicsResult: whole}
	})
	c := newClient(t, Config{BootstrapServers: []string{a.Addr()}})
	topics := []string{"orders"}
	_, stop := c.StopMirrorTopics(t.Context(), "dr", topics, StopMirrorTopicsOptions{Patterns: []string{"o.*"}})
	_, pause := c.PauseMirrorTopics(t.Context(), "dr", topics, PauseMirrorTopicsOptions{})
	_, resume := c.ResumeMirrorTopics(t.Context(), "dr", topics, ResumeMirrorTopicsOptions{})
	for call, err := range map[string]error{"stop": stop, "pause": pause, "resume": resume} {
		var refusal fetchwire.KafkaError
		if !errors.As(err, &refusal) || refusal.Code != fetchwire.CodeUnknownMirror || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want UNKNOWN_MIRROR and the agent's words", call, err)
		}
	}
	if got := fakeagent.Asked[fetchwire.StopMirrorTopicsRequest](a)[0].Patterns; !slices.Equal(got, []string{"o.*"}) {
		t.Errorf("patterns sent: %v", got)
	}
}

func TestStop_OfSeveralAgentsIsDoneWhenThoseThatHoldTheTopicsDidIt(t *testing.T) {
	one, two, three := fakeagent.Start(t, 1), fakeagent.Start(t, 2), fakeagent.Start(t, 3)
	answer := func(a *fakeagent.Agent, whole int16, results ...fetchwire.MirrorTopicResult) {
		fakeagent.On(a, func(*fetchwire.StopMirrorTopicsRequest) fetchwire.Response {
			resp := &fetchwire.StopMirrorTopicsResponse{}
			resp.ErrorCode, resp.Topics = whole, results
			return resp
		})
	}
	answer(one, 0, topicResult("a", 0, ""), topicResult("b", fetchwire.CodeTopicNotInMirror, ""),
		topicResult("c", fetchwire.CodeTopicNotInMirror, ""), topicResult("d", 0, ""))
	answer(two, 0, topicResult("a", fetchwire.CodeTopicNotInMirror, ""), topicResult("b", 0, ""),
		topicResult("c", fetchwire.CodeUnknownTopicOrPartition, ""), topicResult("d", fetchwire.CodeInvalidRequest, "no"))
	answer(three, fetchwire.CodeUnknownMirror)
	c := newClient(t, Config{Agents: []string{one.Addr(), two.Addr(), three.Addr()}})
	got, err := c.StopMirrorTopics(t.Context(), "dr", []string{"a", "b", "c", "d"}, StopMirrorTopicsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Err != nil || got[1].Err != nil {
		t.Errorf("a and b are held by one agent each: %v, %v", got[0].Err, got[1].Err)
	}
	var agent *AgentError
	if got[2].Err == nil || !errors.As(got[3].Err, &agent) || agent.Addr != two.Addr() {
		t.Errorf("c is nobody's and d was refused by %s: %v, %v", two.Addr(), got[2].Err, got[3].Err)
	}
}

func TestDelete_OfSeveralAgentsIsRefusedOnlyWhenNobodyHasTheMirror(t *testing.T) {
	one, two := fakeagent.Start(t, 1), fakeagent.Start(t, 2)
	code := func(a *fakeagent.Agent, code int16) {
		fakeagent.On(a, func(*fetchwire.DeleteMirrorRequest) fetchwire.Response {
			resp := &fetchwire.DeleteMirrorResponse{}
			resp.ErrorCode = code
			return resp
		})
	}
	c := newClient(t, Config{Agents: []string{one.Addr(), two.Addr()}})
	for _, tc := range []struct{ one, two, want int16 }{
		{fetchwire.CodeUnknownMirror, 0, 0},
		{0, fetchwire.CodeUnknownMirror, 0},
		{fetchwire.CodeUnknownMirror, fetchwire.CodeUnknownMirror, fetchwire.CodeUnknownMirror},
		{fetchwire.CodeUnknownMirror, fetchwire.CodeMirrorNotEmpty, fetchwire.CodeMirrorNotEmpty},
	} {
		code(one, tc.one)
		code(two, tc.two)
		err := c.DeleteMirror(t.Context(), "dr", DeleteMirrorOptions{})
		var refusal fetchwire.KafkaError
		errors.As(err, &refusal)
		if (err == nil) != (tc.want == 0) || refusal.Code != tc.want {
			t.Errorf("answers %d and %d: %v, want code %d", tc.one, tc.two, err, tc.want)
		}
	}
}

func TestReady_SaysWhyNot(t *testing.T) {
	with := func(state string, lag int64) PartitionDescription {
		return PartitionDescription{Partition: 1, State: state, Lag: lag, Cause: "disk_full: no room"}
	}
	for _, tc := range []struct {
		p    PartitionDescription
		want string
	}{
		{with(StateMirroring, 0), ""},
		{with(StateStopped, -1), ""},
		{with(StateMirroring, 4), "t-1 lags by 4 record(s)"},
		{with(StateMirroring, -1), "t-1 is MIRRORING and its lag is not known yet"},
		{with(StateFailed, -1), "t-1 is FAILED: disk_full: no room"},
		{with(StatePaused, -1), "t-1 is PAUSED: how far the source is ahead is not known; resume it"},
		{with(StatePreparing, -1), "t-1 is PREPARING"},
	} {
		m := MirrorDescription{Topics: []TopicDescription{{Name: "t", Partitions: []PartitionDescription{tc.p}}}}
		if got := strings.Join(m.Ready(), "\n"); got != tc.want {
			t.Errorf("%s with lag %d: %q, want %q", tc.p.State, tc.p.Lag, got, tc.want)
		}
	}
	if got := (&MirrorDescription{}).Ready(); len(got) != 1 {
		t.Errorf("an empty mirror: %v", got)
	}
}

func TestSelection_TellsNamesFromPatterns(t *testing.T) {
	s, err := ParseSelection(" orders.eu , a|b,orders-.*,,orders.eu, x+ ")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Names, []string{"orders.eu"}) || !slices.Equal(s.Patterns, []string{"a|b", "orders-.*", "x+"}) {
		t.Errorf("names %q, patterns %q", s.Names, s.Patterns)
	}
	for name, want := range map[string]bool{
		"orders.eu": true, "ordersXeu": false, "a": true, "b": true, "ab": false, "orders-": true, "xx": true, "x ": false,
	} {
		if s.Matches(name) != want {
			t.Errorf("matches %q: %v", name, !want)
		}
	}
	for list, says := range map[string]string{
		"a(": "missing closing )", "a{1,2}": "a comma separates", "(?=a)b": "invalid or unsupported Perl syntax",
	} {
		if _, err := ParseSelection(list); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", list, err, says)
		}
	}
}

func FuzzParseSelection(f *testing.F) {
	for _, list := range []string{"a,b", "orders-.*", "(", "a{1,2}", ".", "..,é", strings.Repeat("x", 300), "[[:alpha:]]"} {
		f.Add(list, "topic")
	}
	f.Fuzz(func(t *testing.T, list, topic string) {
		s, err := ParseSelection(list)
		if err != nil {
			if !errors.Is(err, ErrConfig) || !s.Empty() {
				t.Fatalf("%q: %v, %+v", list, err, s)
			}
			return
		}
		for _, name := range s.Names {
			if !s.Matches(name) {
				t.Fatalf("%q names %q and does not match it", list, name)
			}
		}
		if s.Empty() && s.Matches(topic) {
			t.Fatalf("%q selects nothing and matches %q", list, topic)
		}
	})
}
