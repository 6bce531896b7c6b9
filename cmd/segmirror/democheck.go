package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"segmirror/segment"
)

// demoIdentity is whose log directory the demo's agent writes.
var demoIdentity = segment.Identity{ClusterID: "segmirror-demo-target", NodeID: 1}

// checkDirs compares each partition directory's files with one another, then opens the log directory as the agent's
// next start would and looks at the offsets it finds. It returns what is wrong, joined.
func (d *demo) checkDirs(ends []demoEnds) (faults, err error) {
	for _, end := range ends {
		findings, err := segment.CheckDir(filepath.Join(d.dir, end.String()), segment.DefaultConfig())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", end, err)
		}
		for _, finding := range findings {
			faults = errors.Join(faults, fmt.Errorf("%s: %v", end, finding))
		}
	}
	dir, err := segment.OpenLogDir(d.dir, demoIdentity)
	if err != nil {
		return faults, err
	}
	if !dir.Clean() {
		faults = errors.Join(faults, fmt.Errorf("%s was not closed in order", d.dir))
	}
	for _, end := range ends {
		faults = errors.Join(faults, checkReopened(dir, end))
	}
	return faults, dir.Close()
}

// checkReopened opens one log and returns how its offsets differ from the source's.
func checkReopened(dir *segment.LogDir, end demoEnds) error {
	tp := segment.TopicPartition{Topic: end.topic, Partition: end.partition}
	log, report, err := dir.OpenLog(tp, segment.DefaultConfig())
	if err != nil {
		return fmt.Errorf("%s: %w", end, err)
	}
	if !report.Clean || report.SegmentsScanned > 0 || len(report.Cuts) > 0 {
		return fmt.Errorf("%s: opening it again had to repair it: %+v", end, report)
	}
	if log.LogEndOffset() != end.end || log.LastStableOffset() != end.stable {
		return fmt.Errorf("%s: opened again it ends at %d and is stable to %d, the source at %d and %d", end,
			log.LogEndOffset(), log.LastStableOffset(), end.end, end.stable)
	}
	return nil
}
