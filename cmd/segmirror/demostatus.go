package main

import (
	"fmt"

	"segmirror/replicator"
)

// mirroredRecords sums the offsets that the agent holds.
func mirroredRecords(status replicator.Status) int64 {
	var sum int64
	eachPartition(status, func(p replicator.PartitionStatus) { sum += max(0, p.EndOffset-p.LogStart) })
	return sum
}

// mirroredBytes sums the bytes that the agent appended.
func mirroredBytes(status replicator.Status) int64 {
	var sum int64
	eachPartition(status, func(p replicator.PartitionStatus) { sum += p.Bytes })
	return sum
}

// firstBehind describes a partition whose mirror does not reach the source's end, "" if there is none.
func firstBehind(status replicator.Status, ends []demoEnds) string {
	held := make(map[string]int64)
	eachPartition(status, func(p replicator.PartitionStatus) {
		if p.State == replicator.StateMirroring {
			held[fmt.Sprintf("%s-%d", p.Topic, p.Partition)] = p.EndOffset
		}
	})
	for _, want := range ends {
		if got, found := held[want.String()]; !found || got < want.end {
			return fmt.Sprintf("%s is mirrored to offset %d of %d", want, got, want.end)
		}
	}
	return ""
}

// failedPartition returns the cause of a FAILED partition, nil if there is none.
func failedPartition(status replicator.Status) error {
	var err error
	eachPartition(status, func(p replicator.PartitionStatus) {
		if p.State == replicator.StateFailed && err == nil {
			err = fmt.Errorf("%s-%d is FAILED: %s", p.Topic, p.Partition, p.CauseText)
		}
	})
	return err
}

func eachPartition(status replicator.Status, visit func(replicator.PartitionStatus)) {
	for _, mirror := range status.Mirrors {
		for _, p := range mirror.Partitions {
			visit(p)
		}
	}
}
