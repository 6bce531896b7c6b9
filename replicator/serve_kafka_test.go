package replicator

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"segmirror/bench/kafka"
	"segmirror/fetchwire"
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
	// A leader epoch that no batch on disk has: a consumer must not take it for lost data.
	_, id := toldLeaderEpoch(t, a, "orders", 1)
	bumped := call(t, caller(t, a), &fetchwire.BumpLeaderEpochsRequest{Topics: []fetchwire.BumpLeaderEpochsTopic{
		{TopicID: id, Partitions: []fetchwire.BumpLeaderEpoch{{PartitionIndex: 1, MinLeaderEpoch: 77}}},
	}}, &fetchwire.BumpLeaderEpochsResponse{})
	if epoch, _ := toldLeaderEpoch(t, a, "orders", 1); epoch != 77 {
		t.Fatalf("leader epoch %d after %+v", epoch, bumped)
	}
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

// TestMetadataLog_IsWhatKafkasToolReads has Kafka's kafka-dump-log decode a metadata log. Of a partition change it knows
// version 2 at most: it skips ours.
func TestMetadataLog_IsWhatKafkasToolReads(t *testing.T) {
	kafka.Require(t)
	dist, err := kafka.Install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir()
	dir, log := openMetadata(t, path)
	if err := log.append(
		configSet(resourceMirror, "eu", "bootstrap.servers", "source:9092"),
		MetadataRecord{PartitionChange: &PartitionChangeRecord{PartitionID: 1, TopicID: goldenID, MinLeaderEpoch: 77}},
		configDeleted(resourceTopic, "orders", keyMirrorName),
		MetadataRecord{ACL: &ACLRecord{goldenID, 3, "g", 3, "User:alice", "*", 8, 3}},
	); err != nil {
		t.Fatal(err)
	}
	log.close()
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(path, "__cluster_metadata-0", "*.log"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	out, err := dist.Tool(t.Context(), kafka.DumpLogSegments, "--cluster-metadata-decoder", "--files", files[0])
	if err != nil {
		t.Fatal(err)
	}
	text := string(out.Stdout)
	for _, want := range []string{
		`"type":"CONFIG_RECORD","version":0,"data":{"resourceType":64,"resourceName":"eu","name":"bootstrap.servers",` +
			`"value":"source:9092"}`,
		`"resourceName":"orders","name":"mirror.name","value":null`,
		`"type":"ACCESS_CONTROL_ENTRY_RECORD"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not print %s", want)
		}
	}
	if !strings.Contains(text, "Error at 1, skipping.") || t.Failed() {
		t.Errorf("it prints\n%s\n%s", text, out.Stderr)
	}
}
