package compare

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestTopic_ReadsTheSpanThatWasAskedForAndEqualsItself(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.SeedTopics(2, "events"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	const batches, perBatch = 30, 10
	for i := range batches {
		var records []*kgo.Record
		for j := range perBatch {
			value := strings.Repeat(fmt.Sprintf("value %d.%d ", i, j), 50)
			records = append(records, &kgo.Record{Topic: "events", Partition: 1, Value: []byte(value)})
		}
		if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	open := func(from, to int64) *Topic {
		source, err := OpenTopic(t.Context(), client, "events", 1, Range{from, to})
		if err != nil {
			t.Fatal(err)
		}
		return source
	}
	got, err := Compare(open(0, End), open(0, batches*perBatch), Options{})
	if err != nil || !got.Complete() || got.Records != batches*perBatch || got.To != batches*perBatch {
		t.Fatalf("%+v, %v: want all %d records equal", got, err, batches*perBatch)
	}
	part, err := Compare(open(0, End), open(100, 205), Options{})
	if err != nil || !part.Equal() || part.From > 100 || part.To < 205 || part.To > 215 {
		t.Fatalf("%+v, %v: want the batches that hold 100..204", part, err)
	}
	if _, err := OpenTopic(t.Context(), client, "events", 7, Range{0, End}); err == nil ||
		!strings.Contains(err.Error(), "events-7") {
		t.Errorf("a partition that does not exist: %v, want an error that names it", err)
	}
}
