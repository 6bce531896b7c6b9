package e2e

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"segmirror/bench/kafka"
)

// configCommand is the class behind kafka-configs.sh.
const configCommand = "kafka.admin.ConfigCommand"

// printed is what a command printed and how it ended.
type printed struct {
	stdout, stderr string
	code           int
}

// TestConfigs_SayOfAStockBrokerWhatKafkaConfigsSays compares segmirror configs with Kafka's own tool, run side by side.
func TestConfigs_SayOfAStockBrokerWhatKafkaConfigsSays(t *testing.T) {
	src := source(t)
	bin, err := buildAgent()
	if err != nil {
		t.Fatal(err)
	}
	const topic = "configs-said"
	if err := src.CreateTopic(t.Context(), kafka.TopicSpec{Name: topic}); err != nil {
		t.Fatal(err)
	}
	at := []string{"--bootstrap-server", src.Bootstrap()}
	ours := func(args ...string) printed {
		return runOurs(t, bin, append([]string{"configs"}, append(at, args...)...))
	}
	theirs := func(args ...string) printed {
		out, err := src.Dist().Tool(t.Context(), configCommand, append(at, args...)...)
		if err != nil {
			t.Error(err)
		}
		return printed{string(out.Stdout), string(out.Stderr), out.ExitCode}
	}
	set := []string{
		"--alter", "--entity-type", "topics", "--entity-name", topic,
		"--add-config", "follower.replication.throttled.replicas=[0:1,1:2],retention.ms=3600000",
	}
	if got := ours(set...); got.stdout != "Completed updating config for topic "+topic+".\n" || got.code != 0 {
		t.Fatalf("alter: %+v", got)
	}
	say := func(args ...string) []string { return args }
	cases := [][]string{
		say("--describe", "--topic", topic),
		say("--describe", "--entity-type", "topics", "--entity-name", topic, "--all"),
		say("--describe", "--entity-type", "brokers"),
		say("--describe", "--topic", "configs-nowhere"),
		say("--alter", "--topic", topic, "--add-config", "retention.ms=soon"),
		say("--alter", "--topic", topic, "--add-config", "a=b=c"),
	}
	var comparing sync.WaitGroup
	two := make(chan struct{}, 2) // each run of theirs is a JVM
	for _, args := range cases {
		comparing.Go(func() {
			two <- struct{}{}
			defer func() { <-two }()
			compareConfigs(t, args, ours(args...), theirs(args...))
		})
	}
	comparing.Wait()
	if got := ours("--alter", "--topic", topic, "--delete-config", "retention.ms"); got.code != 0 {
		t.Errorf("delete: %+v", got)
	}
	if got := ours("--describe", "--topic", topic); strings.Contains(got.stdout, "retention.ms") {
		t.Errorf("after the delete: %+v", got)
	}
}

// compareConfigs wants the same output and exit code, and in an error what Kafka's tool says is wrong.
func compareConfigs(t *testing.T, args []string, ours, theirs printed) {
	if ours.code != theirs.code || ours.stdout != theirs.stdout {
		t.Errorf("%v:\nours exits %d:\n%s%s\ntheirs exits %d:\n%s%s", args, ours.code, ours.stdout, ours.stderr,
			theirs.code, theirs.stdout, theirs.stderr)
	}
	if theirs.code != 0 && !strings.Contains(ours.stderr, kafkaReason(theirs.stderr)) {
		t.Errorf("%v: ours says %q, theirs %q", args, ours.stderr, kafkaReason(theirs.stderr))
	}
}

// kafkaReason is what a failure of Kafka's tool is about: the first line, or the exception that caused the stack trace.
func kafkaReason(stderr string) string {
	reason, _, _ := strings.Cut(stderr, "\n")
	for line := range strings.SplitSeq(stderr, "\n") {
		if cause, ok := strings.CutPrefix(line, "Caused by: "); ok {
			_, reason, _ = strings.Cut(cause, ": ")
		}
	}
	return strings.TrimPrefix(reason, "requirement failed: ")
}

func runOurs(t *testing.T, bin string, args []string) printed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), bin, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Error(err)
	}
	return printed{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}
