package e2e

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"segmirror/bench/kafka"
	"segmirror/psm"
)

// producerState is what a broker tells of one producer of a partition.
type producerState struct {
	epoch            int16
	lastSequence     int32
	timestampMs      int64
	coordinatorEpoch int32
	txnStart         int64
}

// sourceProducers asks the partition's leader for its producers.
func sourceProducers(t *testing.T, src *kafka.Cluster, p tp) map[int64]producerState {
	t.Helper()
	var set kadm.TopicsSet
	set.Add(p.topic, p.partition)
	described, err := src.Admin().DescribeProducers(t.Context(), set)
	if err != nil {
		t.Fatal(err)
	}
	producers := map[int64]producerState{}
	for _, d := range described.SortedProducers() {
		producers[d.ProducerID] = producerState{
			d.ProducerEpoch, d.LastSequence, d.LastTimestamp, d.CoordinatorEpoch, d.CurrentTxnStartOffset,
		}
	}
	return producers
}

// newestSnapshot reads the newest producer snapshot of a directory; none at all is an empty one at offset 0.
func newestSnapshot(t *testing.T, dir string) (offset int64, entries []psm.Entry) {
	t.Helper()
	offsets, err := psm.ListSnapshots(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(offsets) == 0 {
		return 0, nil
	}
	for _, o := range offsets {
		offset = max(offset, o)
	}
	entries, err = psm.ReadSnapshot(dir, offset)
	if err != nil {
		t.Fatal(err)
	}
	return offset, entries
}

// checkProducers wants the snapshot at the mirror's end to hold the producers that the source's leader knows.
func checkProducers(t *testing.T, src *kafka.Cluster, parts []tp, logDir string) {
	t.Helper()
	count := 0
	for _, p := range parts {
		offset, entries := newestSnapshot(t, p.dir(logDir))
		_, end, err := src.Offsets(t.Context(), p.topic, p.partition, false)
		if err != nil {
			t.Fatal(err)
		}
		if offset != end {
			t.Errorf("%v: newest snapshot at %d, the log ends at %d", p, offset, end)
		}
		got := map[int64]producerState{}
		for _, e := range entries {
			got[e.ProducerID] = producerState{
				e.ProducerEpoch, e.LastSequence, e.TimestampMs, e.CoordinatorEpoch, e.CurrentTxnFirstOffset,
			}
		}
		if want := sourceProducers(t, src, p); !maps.Equal(got, want) {
			t.Errorf("%v: the snapshot holds %v\nthe source's leader has %v", p, got, want)
		}
		count += len(got)
	}
	t.Logf("%d producers", count)
}

// sortProducers orders a snapshot's entries, which Kafka keeps in hash order.
func sortProducers(entries []psm.Entry) {
	slices.SortFunc(entries, func(a, b psm.Entry) int { return cmp.Compare(a.ProducerID, b.ProducerID) })
}
