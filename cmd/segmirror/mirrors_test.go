package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"segmirror/admin"
	"segmirror/admin/fakeagent"
	"segmirror/fetchwire"
)

// failure wants a run to exit with code 1 and one line on stderr that says what is given.
func failure(t *testing.T, args []string, says ...string) (stdout string) {
	t.Helper()
	code, stdout, stderr := runCommand(t.Context(), args...)
	lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
	if last := lines[len(lines)-1]; code != exitFinding || !strings.HasPrefix(last, "segmirror: ") {
		t.Errorf("%v: exit %d, stderr %q; want 1 and a line that says why", args, code, stderr)
	}
	for _, want := range says {
		if !strings.Contains(stderr, want) {
			t.Errorf("%v: stderr %q does not say %q", args, stderr, want)
		}
	}
	return stdout
}

// success wants exit code 0, nothing on stderr, and returns what was printed.
func success(t *testing.T, args ...string) string {
	t.Helper()
	code, stdout, stderr := runCommand(t.Context(), args...)
	if code != exitDone || stderr != "" {
		t.Errorf("%v: exit %d, stderr %q", args, code, stderr)
	}
	return stdout
}

// mirrorFile writes a mirror's properties.
func mirrorFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mirror.properties")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// answerTopics makes an agent accept every topic named, refuse those that begin with "bad", and find the topics given
// by patterns.
func answerTopics(a *fakeagent.Agent, found ...string) {
	words := "it may not"
	result := func(names []string) fetchwire.MirrorTopicsResult {
		var out fetchwire.MirrorTopicsResult
		for _, name := range names {
			r := fetchwire.MirrorTopicResult{Name: name}
			if strings.HasPrefix(name, "bad") {
				r.ErrorCode, r.ErrorMessage = fetchwire.CodeTopicNotInMirror, &words
			}
			out.Topics = append(out.Topics, r)
		}
		return out
	}
	names := func(topics []fetchwire.MirrorTopic) (out []string) {
		for _, t := range topics {
			out = append(out, t.TopicName)
		}
		return out
	}
	fakeagent.On(a, func(req *fetchwire.StartMirrorTopicsRequest) fetchwire.Response {
		var named []string
		for _, t := range req.Topics {
			named = append(named, t.TopicName)
		}
		if len(req.IncludePatterns) > 0 {
			named = append(named, found...)
		}
		return &fetchwire.StartMirrorTopicsResponse{MirrorTopicsResult: result(named)}
	})
	fakeagent.On(a, func(req *fetchwire.StopMirrorTopicsRequest) fetchwire.Response {
		return &fetchwire.StopMirrorTopicsResponse{MirrorTopicsResult: result(names(req.Topics))}
	})
	fakeagent.On(a, func(req *fetchwire.PauseMirrorTopicsRequest) fetchwire.Response {
		return &fetchwire.PauseMirrorTopicsResponse{MirrorTopicsResult: result(names(req.Topics))}
	})
	fakeagent.On(a, func(req *fetchwire.ResumeMirrorTopicsRequest) fetchwire.Response {
		return &fetchwire.ResumeMirrorTopicsResponse{MirrorTopicsResult: result(names(req.Topics))}
	})
}

// describes makes an agent describe one mirror, "my-mirror", whose topics have one partition each in a state.
func describes(a *fakeagent.Agent, states map[string]string) {
	fakeagent.On(a, func(req *fetchwire.DescribeMirrorsRequest) fetchwire.Response {
		names := req.MirrorNames
		if len(names) == 0 {
			names = []string{"my-mirror"}
		}
		resp := &fetchwire.DescribeMirrorsResponse{}
		for _, name := range names {
			m := fetchwire.DescribedMirror{MirrorName: name}
			if name != "my-mirror" {
				m.ErrorCode = fetchwire.CodeUnknownMirror
			} else {
				for topic, state := range states {
					p := fetchwire.NewDescribedMirrorPartition(0, state)
					if state == admin.StateMirroring {
						p.SourceOffset, p.DestinationOffset, p.Lag = 69, 66, 3
					}
					m.Topics = append(m.Topics, fetchwire.DescribedMirrorTopic{
						TopicName: topic, Partitions: []fetchwire.DescribedMirrorPartition{p},
					})
				}
			}
			resp.Mirrors = append(resp.Mirrors, m)
		}
		return resp
	})
}

func TestMirrors_EachActionPrintsItsLine(t *testing.T) {
	a := fakeagent.Start(t, 1)
	answerTopics(a, "orders-us", "orders-eu")
	fakeagent.On(a, func(*fetchwire.DeleteMirrorRequest) fetchwire.Response { return &fetchwire.DeleteMirrorResponse{} })
	config := mirrorFile(t, "bootstrap.servers=localhost:9092\nmirror.topics.exclude = x.*\n")
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--create", "--mirror-config", config}, "Created mirror my-mirror\n"},
		{
			[]string{"--start", "--topics", "orders-.*", "--exclude", "orders-internal"},
			"Started 2 mirror topic(s) in mirror my-mirror: [orders-us, orders-eu]\n",
		},
		{[]string{"--start", "--topic=a,b"}, "Started 2 mirror topic(s) in mirror my-mirror: [a, b]\n"},
		{[]string{"--stop", "--topics", "orders-us"}, "Stopped mirroring for 1 topic(s) in mirror my-mirror: [orders-us]\n"},
		{[]string{"--pause", "--topic", "my-topic"}, "Paused mirroring for 1 topic(s) in mirror my-mirror: [my-topic]\n"},
		{[]string{"--resume", "--topic", "my-topic"}, "Resumed mirroring for 1 topic(s) in mirror my-mirror: [my-topic]\n"},
		{[]string{"--delete"}, "Deleted mirror my-mirror\n"},
	} {
		args := append([]string{"mirrors", "--bootstrap-server", a.Addr(), "--mirror", "my-mirror"}, tc.args...)
		if got := success(t, args...); got != tc.want {
			t.Errorf("%v prints %q, want %q", tc.args, got, tc.want)
		}
	}
	created := fakeagent.Asked[fetchwire.CreateMirrorRequest](a)[0]
	if got := created.Config; len(got) != 2 || got[1].Name != "mirror.topics.exclude" || *got[1].Value != "x.*" {
		t.Errorf("configuration sent: %+v", got)
	}
	started := fakeagent.Asked[fetchwire.StartMirrorTopicsRequest](a)[0]
	if len(started.Topics) != 0 || !slices.Equal(started.IncludePatterns, []string{"orders-.*"}) ||
		!slices.Equal(started.ExcludePatterns, []string{"orders-internal"}) {
		t.Errorf("start asked for %+v", started)
	}
}

func TestMirrors_AStartThatFindsNothingYetSavesItsPatterns(t *testing.T) {
	a := fakeagent.Start(t, 1)
	answerTopics(a)
	got := success(t, "mirrors", "--bootstrap-server", a.Addr(), "--start", "--mirror", "m", "--topics", "later-.*")
	if want := "No matching topics found yet. Patterns saved to mirror m for auto-discovery.\n"; got != want {
		t.Errorf("prints %q, want %q", got, want)
	}
}

func TestMirrors_OfTwoTopicsTheGoodOneIsReportedAndTheBadOneFails(t *testing.T) {
	a := fakeagent.Start(t, 1)
	answerTopics(a)
	for action, want := range map[string]string{
		"start": "Started 1 mirror topic(s) in mirror m: [good]\n", "stop": "Stopped mirroring for 1 topic(s) in mirror m: [good]\n",
		"pause":  "Paused mirroring for 1 topic(s) in mirror m: [good]\n",
		"resume": "Resumed mirroring for 1 topic(s) in mirror m: [good]\n",
	} {
		got := failure(t, []string{
			"mirrors", "--bootstrap-server", a.Addr(), "--" + action, "--mirror", "m", "--topics", "bad1,good,bad2",
		}, "topic bad1 of mirror m: TOPIC_NOT_IN_MIRROR (1138): it may not; topic bad2 of mirror m: ")
		if got != want {
			t.Errorf("%s prints %q, want %q", action, got, want)
		}
	}
}

func TestMirrors_PatternsOfStopPauseAndResumeApplyToTheMirrorsOwnTopics(t *testing.T) {
	a := fakeagent.Start(t, 1)
	answerTopics(a)
	describes(a, map[string]string{
		"orders-live": admin.StateMirroring, "orders-still": admin.StatePaused, "orders-done": admin.StateStopped,
		"payments": admin.StateMirroring,
	})
	at := []string{"mirrors", "--bootstrap-server", a.Addr(), "--mirror", "my-mirror"}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{
			[]string{"--stop", "--topics", "orders-.*"},
			"Stopped mirroring for 2 topic(s) in mirror my-mirror: [orders-live, orders-still]\n",
		},
		{[]string{"--pause", "--topics", ".*s.*"}, "Paused mirroring for 2 topic(s) in mirror my-mirror: [orders-live, payments]\n"},
		{[]string{"--resume", "--topics", "x,o.*"}, "Resumed mirroring for 2 topic(s) in mirror my-mirror: [x, orders-still]\n"},
		{
			[]string{"--stop", "--topics", "none-.*"},
			"No matching topics found in mirror my-mirror. What the patterns match will not be started.\n",
		},
	} {
		if got := success(t, slices.Concat(at, tc.args)...); got != tc.want {
			t.Errorf("%v prints %q, want %q", tc.args, got, tc.want)
		}
	}
	for i, want := range []string{"orders-.*", "none-.*"} {
		if got := fakeagent.Asked[fetchwire.StopMirrorTopicsRequest](a)[i].Patterns; !slices.Equal(got, []string{want}) {
			t.Errorf("stop was sent the patterns %q, want %q", got, want)
		}
	}
	describes(a, map[string]string{"bad-by-now": admin.StateMirroring, "orders-live": admin.StateMirroring})
	got := success(t, slices.Concat(at, []string{"--stop", "--topics", ".*"})...)
	if want := "Stopped mirroring for 1 topic(s) in mirror my-mirror: [orders-live]\n"; got != want {
		t.Errorf("with a topic that was stopped meanwhile: %q, want %q", got, want)
	}
	failure(t, slices.Concat(at, []string{"--pause", "--topics", "none-.*"}), "No matching topics found in mirror my-mirror")
	failure(t, []string{"mirrors", "--bootstrap-server", a.Addr(), "--resume", "--mirror", "nope", "--topics", ".*"},
		"Mirror 'nope' not found or has no configuration")
}

func TestMirrors_ListAndDescribePrintTheirColumns(t *testing.T) {
	a := fakeagent.Start(t, 1)
	fakeagent.On(a, func(*fetchwire.ListMirrorsRequest) fetchwire.Response {
		return &fetchwire.ListMirrorsResponse{Mirrors: []fetchwire.ListedMirror{
			{MirrorName: "new-mirror", SourceBootstrap: "localhost:9091", TopicCount: 1},
			{
				MirrorName: "my-mirror", SourceBootstrap: "localhost:9091,localhost:9092",
				SourceClusterID: "lBq12jYZRp-9wF3M9MPopg", TopicCount: 2,
			},
		}}
	})
	describes(a, map[string]string{"foo": admin.StateMirroring, "bar": admin.StateStopped})
	got := success(t, "mirrors", "--bootstrap-server", a.Addr(), "--list")
	want := "" +
		"MIRROR                         TOPICS     CLUSTER-ID                 BOOTSTRAP-SERVER\n" +
		"my-mirror                      2          lBq12jYZRp-9wF3M9MPopg     localhost:9091,localhost:9092\n" +
		"new-mirror                     1          -                          localhost:9091\n"
	if got != want {
		t.Errorf("--list prints\n%swant\n%s", got, want)
	}
	got = success(t, "mirrors", "--bootstrap-server", a.Addr(), "--describe")
	row := "%-31s%-41s%-11s%-16s%-19s%-9s%-12s\n"
	want = fmt.Sprintf(row, "MIRROR", "TOPIC", "PARTITION", "SOURCE-OFFSET", "DESTINATION-OFFSET", "LAG", "STATE") +
		fmt.Sprintf(row, "my-mirror", "bar", "0", "-", "-", "-", "STOPPED") +
		fmt.Sprintf(row, "my-mirror", "foo", "0", "69", "66", "3", "MIRRORING")
	if got != want {
		t.Errorf("--describe prints\n%swant\n%s", got, want)
	}
	got = success(t, "mirrors", "--bootstrap-server", a.Addr(), "--describe", "--mirror", "my-mirror", "--topics", "f.*", "--json")
	var parsed []map[string]any
	if err := json.Unmarshal([]byte(got), &parsed); err != nil || len(parsed) != 1 {
		t.Fatalf("--json prints %q: %v", got, err)
	}
	for key, want := range map[string]any{
		"mirror": "my-mirror", "topic": "foo", "partition": 0.0, "sourceOffset": 69.0, "destinationOffset": 66.0, "lag": 3.0,
		"state": "MIRRORING", "lastMirrorEpoch": -1.0, "lastMirroredEnd": -1.0, "attempts": 0.0, "cause": "", "agent": a.Addr(),
	} {
		if parsed[0][key] != want {
			t.Errorf("--json has %q: %v, want %v", key, parsed[0][key], want)
		}
	}
}

func TestMirrors_NothingThereIsSaidInALine(t *testing.T) {
	a := fakeagent.Start(t, 1)
	fakeagent.On(a, func(*fetchwire.ListMirrorsRequest) fetchwire.Response { return &fetchwire.ListMirrorsResponse{} })
	describes(a, nil)
	at := []string{"mirrors", "--bootstrap-server", a.Addr()}
	for want, args := range map[string][]string{
		"No mirrors found\n":           {"--list"},
		"No mirror partitions found\n": {"--describe"},
		"[]\n":                         {"--describe", "--json"},
	} {
		if got := success(t, slices.Concat(at, args)...); got != want {
			t.Errorf("%v prints %q, want %q", args, got, want)
		}
	}
	failure(t, slices.Concat(at, []string{"--describe", "--mirror", "gone"}), "Mirror 'gone' not found or has no configuration")
	failure(t, slices.Concat(at, []string{"--describe", "--check"}), "mirror my-mirror is not ready to fail over: it has no partitions")
}

func TestMirrors_DescribeSaysWhyAPartitionFailed(t *testing.T) {
	a := fakeagent.Start(t, 1)
	cause := "created_again: another topic\nhas the name"
	fakeagent.On(a, func(*fetchwire.DescribeMirrorsRequest) fetchwire.Response {
		p := fetchwire.NewDescribedMirrorPartition(2, admin.StateFailed)
		p.Cause, p.Attempts = &cause, 3
		return &fetchwire.DescribeMirrorsResponse{Mirrors: []fetchwire.DescribedMirror{{
			MirrorName: "m", Topics: []fetchwire.DescribedMirrorTopic{{
				TopicName: "t", Partitions: []fetchwire.DescribedMirrorPartition{p},
			}},
		}}}
	})
	code, stdout, stderr := runCommand(t.Context(), "mirrors", "--bootstrap-server", a.Addr(), "--describe")
	want := "segmirror: mirror m: t-2 is FAILED after 3 attempt(s): created_again: another topic; has the name\n"
	if code != exitDone || stderr != want || !strings.Contains(stdout, "FAILED") {
		t.Errorf("exit %d, stdout %q, stderr %q, want %q", code, stdout, stderr, want)
	}
	failure(t, []string{"mirrors", "--bootstrap-server", a.Addr(), "--describe", "--check"},
		"mirror m is not ready to fail over: t-2 is FAILED: created_again")
}

func TestMirrors_OneAgentDownLeavesItsPartitionsOutWithAWarning(t *testing.T) {
	up, down := fakeagent.Start(t, 1), fakeagent.Start(t, 2)
	describes(up, map[string]string{"foo": admin.StateMirroring})
	answerTopics(up)
	down.Stop()
	agents := up.Addr() + "," + down.Addr()
	code, stdout, stderr := runCommand(t.Context(), "mirrors", "--agents", agents, "--describe")
	if code != exitDone || !strings.Contains(stdout, "foo") || strings.Count(stderr, "\n") != 1 ||
		!strings.Contains(stderr, "warning: "+down.Addr()+" does not answer") {
		t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	failure(t, []string{"mirrors", "--agents", agents, "--describe", "--check"}, down.Addr()+" does not answer")
	failure(t, []string{"mirrors", "--agents", agents, "--stop", "--mirror", "my-mirror", "--topics", "foo"}, down.Addr())
	if n := len(fakeagent.Asked[fetchwire.StopMirrorTopicsRequest](up)); n != 0 {
		t.Errorf("%d stops were sent to a part of the agents", n)
	}
}

func TestMirrors_StopWhenCaughtUpWaitsForLagZero(t *testing.T) {
	a := fakeagent.Start(t, 1)
	answerTopics(a)
	var looks atomic.Int32
	fakeagent.On(a, func(*fetchwire.DescribeMirrorsRequest) fetchwire.Response {
		p := fetchwire.NewDescribedMirrorPartition(0, admin.StatePreparing)
		asked := looks.Add(1)
		if asked > 1 {
			p.State, p.SourceOffset, p.DestinationOffset, p.Lag = admin.StateMirroring, 5000, 3000, 2000
		}
		if asked > 2 {
			p.DestinationOffset, p.Lag = 5000, 0
		}
		if n := len(fakeagent.Asked[fetchwire.StopMirrorTopicsRequest](a)); n != 0 {
			t.Errorf("stopped after %d looks", asked)
		}
		return &fetchwire.DescribeMirrorsResponse{Mirrors: []fetchwire.DescribedMirror{{
			MirrorName: "m", Topics: []fetchwire.DescribedMirrorTopic{{
				TopicName: "t", Partitions: []fetchwire.DescribedMirrorPartition{p},
			}},
		}}}
	})
	code, stdout, stderr := runCommand(t.Context(), "mirrors", "--bootstrap-server", a.Addr(), "--stop", "--mirror", "m",
		"--topics", "t", "--when-caught-up")
	if code != exitDone || stdout != "Stopped mirroring for 1 topic(s) in mirror m: [t]\n" || looks.Load() != 3 {
		t.Errorf("exit %d, stdout %q, stderr %q after %d looks", code, stdout, stderr, looks.Load())
	}
	if want := "waiting for mirror m to catch up: 0 record(s) behind, 1 partition(s) not known yet\n"; stderr != want {
		t.Errorf("stderr %q, want %q", stderr, want)
	}
}

func TestMirrors_StopWhenCaughtUpStopsNothingThatCannotCatchUp(t *testing.T) {
	a := fakeagent.Start(t, 1)
	answerTopics(a)
	describes(a, map[string]string{"still": admin.StatePaused, "behind": admin.StateMirroring})
	at := []string{"mirrors", "--bootstrap-server", a.Addr(), "--stop", "--mirror", "my-mirror", "--when-caught-up", "--topics"}
	failure(t, slices.Concat(at, []string{"still"}), "nothing was stopped: still-0 is PAUSED and does not catch up")
	failure(t, slices.Concat(at, []string{"gone"}), "nothing was stopped: mirror my-mirror has no topic gone")
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs bytes.Buffer
	describesThen(a, cancel)
	code := run(ctx, append([]string{"segmirror"}, append(at, "behind")...), &out, &errs)
	if code != exitFinding || !strings.Contains(errs.String(), "interrupted while waiting for mirror my-mirror to catch up") {
		t.Errorf("interrupted: exit %d, stderr %q", code, errs.String())
	}
	if n := len(fakeagent.Asked[fetchwire.StopMirrorTopicsRequest](a)); n != 0 {
		t.Errorf("%d topics were stopped", n)
	}
}

// describesThen makes an agent describe a lagging partition, and calls then at the second look.
func describesThen(a *fakeagent.Agent, then func()) {
	var looks atomic.Int32
	fakeagent.On(a, func(*fetchwire.DescribeMirrorsRequest) fetchwire.Response {
		if looks.Add(1) == 2 {
			defer then()
		}
		p := fetchwire.NewDescribedMirrorPartition(0, admin.StateMirroring)
		p.Lag = 3
		return &fetchwire.DescribeMirrorsResponse{Mirrors: []fetchwire.DescribedMirror{{
			MirrorName: "my-mirror", Topics: []fetchwire.DescribedMirrorTopic{{
				TopicName: "behind", Partitions: []fetchwire.DescribedMirrorPartition{p},
			}},
		}}}
	})
}

func TestMirrors_ReadyToFailOverIsExit0(t *testing.T) {
	a := fakeagent.Start(t, 1)
	describes(a, map[string]string{"a": admin.StateStopped})
	at := []string{"mirrors", "--bootstrap-server", a.Addr(), "--describe", "--check", "--mirror", "my-mirror"}
	if got := success(t, at...); got != "Mirror my-mirror is ready to fail over\n" {
		t.Errorf("prints %q", got)
	}
	var checked []checkedMirror
	if err := json.Unmarshal([]byte(success(t, append(at, "--json")...)), &checked); err != nil || !checked[0].Ready {
		t.Errorf("--json: %+v, %v", checked, err)
	}
	describes(a, map[string]string{"a": admin.StateMirroring})
	got := failure(t, append(at, "--json"), "a-0 lags by 3 record(s)")
	if err := json.Unmarshal([]byte(got), &checked); err != nil || checked[0].Ready || len(checked[0].Reasons) != 1 {
		t.Errorf("--json of a mirror that lags: %q, %v", got, err)
	}
}
