package replicator

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"segmirror/fetchwire"
	"segmirror/segment"
)

// patience is how long a test waits for what must come. It is only ever spent by a failing test.
const patience = 2 * time.Minute

// longPollMs is how long a fetch may be held that must not be held to its end: longer than a test is patient.
const longPollMs = int32(2 * patience / time.Millisecond)

// stayFailed keeps a partition FAILED for the rest of a test.
func stayFailed(more ...string) map[string]string {
	props := map[string]string{
		"mirror.failed.retry.initial.backoff.ms": "600000", "mirror.failed.retry.max.backoff.ms": "600000",
	}
	for i := 0; i < len(more); i += 2 {
		props[more[i]] = more[i+1]
	}
	return props
}

// partition is the status of one partition, its zero value while the agent does not know it.
func (a *testAgent) partition(topic string, index int) PartitionStatus {
	for _, m := range a.Status().Mirrors {
		for _, p := range m.Partitions {
			if p.Topic == topic && p.Partition == int32(index) {
				return p
			}
		}
	}
	return PartitionStatus{State: StateUnknown}
}

// awaitEnd waits until a partition is mirrored up to end, and the answer that brought it there is counted.
func (a *testAgent) awaitEnd(t *testing.T, topic string, index int, end int64) {
	t.Helper()
	var last PartitionStatus
	defer func() {
		if t.Failed() {
			t.Logf("%s-%d: %+v", topic, index, last)
		}
	}()
	await(t, patience, fmt.Sprintf("%s-%d mirrored up to %d", topic, index, end), func() bool {
		last = a.partition(topic, index)
		return last.State == StateMirroring && last.EndOffset == end && last.SourceOffset >= end && last.HighWatermark == end
	})
}

// awaitFailed waits until a partition is FAILED and checks why, and where its log ends.
func (a *testAgent) awaitFailed(t *testing.T, topic string, index int, cause Cause, end int64) PartitionStatus {
	t.Helper()
	var last PartitionStatus
	defer func() {
		if t.Failed() {
			t.Logf("%s-%d: %+v", topic, index, last)
		}
	}()
	await(t, patience, fmt.Sprintf("%s-%d FAILED", topic, index), func() bool {
		last = a.partition(topic, index)
		return last.State == StateFailed
	})
	if last.Cause != cause || last.EndOffset != end || last.CauseText == "" {
		t.Errorf("%s-%d failed with cause %v at %d (%s), want %v at %d",
			topic, index, last.Cause, last.EndOffset, last.CauseText, cause, end)
	}
	return last
}

// tenPartitions is a topic "t" of ten partitions with three batches of five records each.
func tenPartitions(s *testSource) *testTopic {
	topic := s.addTopic("t", 10)
	s.update(func() {
		for _, p := range topic.partitions {
			p.append(dataBatch(0, 5), dataBatch(5, 5), dataBatch(10, 5))
		}
	})
	return topic
}

// onDisk reports whether any file of a partition's directory holds needle.
func onDisk(t *testing.T, dir, topic string, index int, needle []byte) bool {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("%s-%d", topic, index), "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err == nil && bytes.Contains(b, needle) {
			return true
		}
	}
	return false
}

func TestHostile_DamageOnceHealsByFetchingAgain(t *testing.T) {
	s := newTestSource(t)
	topic := tenPartitions(s)
	damaged := withByte(dataBatch(5, 5), 100, 0)
	times := 0
	s.update(func() {
		topic.partitions[3].alter = func(asked fetchwire.FetchPartition, answer *fetchwire.FetchPartitionResponse) {
			if i := bytes.Index(answer.Records, dataBatch(5, 5)); i >= 0 && times == 0 {
				times++
				answer.Records = slices.Clone(answer.Records)
				copy(answer.Records[i:], damaged)
			}
		}
	})
	a := startAgent(t, s, t.TempDir(), stayFailed())
	for i := range topic.partitions {
		a.awaitEnd(t, "t", i, 15)
	}
	a.stop()
	for i, p := range topic.partitions {
		if !bytes.Equal(diskBytes(t, a.dir, "t", i), s.bytes(p)) {
			t.Errorf("partition %d is not what the source holds", i)
		}
	}
	if times != 1 || onDisk(t, a.dir, "t", 3, damaged) {
		t.Errorf("damaged %d times; the damaged batch is on disk: %t", times, onDisk(t, a.dir, "t", 3, damaged))
	}
}

func TestHostile_DamageThatStaysFailsItsPartitionOnly(t *testing.T) {
	s := newTestSource(t)
	topic := tenPartitions(s)
	good := dataBatch(5, 5)
	damaged := withByte(good, 100, good[100]^0x10)
	s.update(func() {
		topic.partitions[3].alter = func(_ fetchwire.FetchPartition, answer *fetchwire.FetchPartitionResponse) {
			if i := bytes.Index(answer.Records, good); i >= 0 {
				answer.Records = slices.Clone(answer.Records)
				copy(answer.Records[i:], damaged)
			}
		}
	})
	dir := t.TempDir()
	a := startAgent(t, s, dir, stayFailed())
	status := a.awaitFailed(t, "t", 3, CauseCorruptBatch, 5)
	stored := binary.BigEndian.Uint32(good[17:])
	computed := segment.Batch(damaged).ComputeCRC()
	for _, fact := range []string{"offset 5", fmt.Sprintf("%08x", stored), fmt.Sprintf("%08x", computed)} {
		if !strings.Contains(status.CauseText, fact) {
			t.Errorf("the cause %q does not name %q", status.CauseText, fact)
		}
	}
	for i := range topic.partitions {
		if i != 3 {
			a.awaitEnd(t, "t", i, 15)
		}
	}
	if onDisk(t, dir, "t", 3, damaged[61:]) {
		t.Error("the damaged batch is on disk while the agent runs")
	}
	a.stop()
	if got := diskBytes(t, dir, "t", 3); !bytes.Equal(got, dataBatch(0, 5)) {
		t.Errorf("partition 3 holds %d bytes, its first batch has %d", len(got), len(dataBatch(0, 5)))
	}

	s.update(func() { topic.partitions[3].alter = nil })
	again := startAgent(t, s, dir, stayFailed())
	again.awaitEnd(t, "t", 3, 15)
	again.stop()
	if !bytes.Equal(diskBytes(t, dir, "t", 3), s.bytes(topic.partitions[3])) {
		t.Error("after the source was healed, partition 3 is not what it holds")
	}
}

// TestHostile_BatchesThatCannotBeAreRefused lets partition 1 hold one bad batch behind a good one. The good ones, of
// partition 0, too, are mirrored; nothing of the bad one ever is.
func TestHostile_BatchesThatCannotBeAreRefused(t *testing.T) {
	next := dataBatch(5, 5)
	for name, tc := range map[string]struct {
		batch []byte
		cause Cause
	}{
		"magic 3":              {withByte(next, 16, 3), CauseCorruptBatch},
		"wrong CRC":            {withByte(next, 17, next[17]^1), CauseCorruptBatch},
		"negative length":      {withByte(next, 8, 0xff), CauseCorruptBatch},
		"length below a head":  {withByte(next, 11, 20), CauseCorruptBatch},
		"negative last delta":  {reseal(withByte(next, 23, 0xff)), CauseCorruptBatch},
		"begins in the last":   {dataBatch(4, 6), CauseOutOfOrder},
		"repeats the last":     {dataBatch(0, 5), CauseOutOfOrder},
		"negative base offset": {withByte(next, 0, 0x80), CauseCorruptBatch},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestSource(t)
			topic := s.addTopic("t", 2)
			s.update(func() {
				topic.partitions[0].append(dataBatch(0, 5), dataBatch(5, 5))
				topic.partitions[1].append(dataBatch(0, 5))
				topic.partitions[1].end = 10
				topic.partitions[1].alter = func(_ fetchwire.FetchPartition, answer *fetchwire.FetchPartitionResponse) {
					answer.Records = append(slices.Clone(answer.Records), tc.batch...)
				}
			})
			a := startAgent(t, s, t.TempDir(), stayFailed())
			a.awaitFailed(t, "t", 1, tc.cause, 5)
			a.awaitEnd(t, "t", 0, 10)
			a.stop()
			if !bytes.Equal(diskBytes(t, a.dir, "t", 1), dataBatch(0, 5)) {
				t.Error("partition 1 does not hold exactly its good batch")
			}
			if !bytes.Equal(diskBytes(t, a.dir, "t", 0), s.bytes(topic.partitions[0])) {
				t.Error("partition 0 is not what the source holds")
			}
		})
	}
}

func TestHostile_TransactionMarkers(t *testing.T) {
	key := func(version, kind byte, more ...byte) []byte { return append([]byte{0, version, 0, kind}, more...) }
	value := []byte{0, 0, 0, 0, 0, 3}
	for name, tc := range map[string]struct {
		marker  []byte
		refused bool
	}{
		"short key":           {markerBatch(2, 7, []byte{0, 0}, value), true},
		"short value":         {markerBatch(2, 7, key(0, 0), []byte{0, 0}), true},
		"no value":            {markerBatch(2, 7, key(0, 1), nil), true},
		"unknown type":        {markerBatch(2, 7, key(0, 7), value), true},
		"version 1 with more": {markerBatch(2, 7, key(1, 0, 9, 9), append([]byte{0, 1, 0, 0, 0, 3}, 1, 2, 3)), false},
		"commit":              {markerBatch(2, 7, key(0, 1), value), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestSource(t)
			topic := s.addTopic("t", 2)
			s.update(func() {
				topic.partitions[0].append(dataBatch(0, 5))
				topic.partitions[1].append(txnBatch(0, 2, 7), tc.marker, dataBatch(3, 2))
			})
			a := startAgent(t, s, t.TempDir(), stayFailed())
			a.awaitEnd(t, "t", 0, 5)
			want := s.bytes(topic.partitions[1])
			if tc.refused {
				status := a.awaitFailed(t, "t", 1, CauseCorruptBatch, 2)
				if !strings.Contains(status.CauseText, "offset 2") {
					t.Errorf("the cause %q does not name the marker's offset", status.CauseText)
				}
				want = txnBatch(0, 2, 7)
				if onDisk(t, a.dir, "t", 1, tc.marker) {
					t.Error("the marker is on disk")
				}
			} else {
				a.awaitEnd(t, "t", 1, 5)
			}
			a.stop()
			if !bytes.Equal(diskBytes(t, a.dir, "t", 1), want) {
				t.Error("partition 1 does not hold exactly what it should")
			}
		})
	}
}
