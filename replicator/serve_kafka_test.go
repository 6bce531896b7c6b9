package replicator

import (
	"fmt"
	"strings"
	"testing"

	"segmirror/bench/kafka"
)

// TestServing_KafkasConsoleConsumerReadsAPartition runs Kafka's own client against an agent.
func TestServing_KafkasConsoleConsumerReadsAPartition(t *testing.T) {
	kafka.Require(t)
	dist, err := kafka.Install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := newFakeKafka(t)
	s.createTopic(t, "orders", 2)
	s.produce(t, "orders", 1, 40)
	a := serving(t, s)
	caughtUp(t, a, "orders", 2)
	for _, isolation := range []string{"read_uncommitted", "read_committed"} {
		out, err := dist.Tool(t.Context(), kafka.ConsoleConsumer, "--bootstrap-server", a.ListenerAddrs()[0],
			"--topic", "orders", "--partition", "1", "--offset", "earliest", "--max-messages", "40",
			"--timeout-ms", fmt.Sprint(patience.Milliseconds()), "--isolation-level", isolation,
			"--formatter-property", "print.offset=true", "--formatter-property", "print.value=false")
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Count(string(out.Stdout), "Offset:")
		if out.ExitCode != 0 || lines != 40 || !strings.Contains(string(out.Stdout), "Offset:39") {
			t.Errorf("%s: exit %d, %d records\n%s\n%s", isolation, out.ExitCode, lines, out.Stdout, out.Stderr)
		}
	}
}
