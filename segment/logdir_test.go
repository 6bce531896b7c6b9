package segment

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var dirID = Identity{ClusterID: "5L6g3nShT-eMCtK--X86sw", NodeID: 1}

func openDir(t testing.TB, path string) *LogDir {
	t.Helper()
	d, err := OpenLogDir(path, dirID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("closing the log directory: %v", err)
		}
	})
	return d
}

// openIn opens a log and has it checked when the test ends, before its directory closes.
func openIn(t testing.TB, d *LogDir, tp TopicPartition, cfg Config) (*Log, RecoveryReport) {
	t.Helper()
	l, report, err := d.OpenLog(tp, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if l.closed || l.Failed() != nil {
			return
		}
		if err := l.Check(); err != nil {
			t.Errorf("log at the end of the test: %v", err)
		}
	})
	return l, report
}

// gone reports whether a file of d is absent.
func gone(t testing.TB, path string) bool {
	t.Helper()
	_, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err != nil
}

// appendAll appends batches and fails the test unless all of them are in the log.
func appendAll(t testing.TB, l *Log, batches ...[]byte) AppendInfo {
	t.Helper()
	info, err := l.AppendAsFollower(slices.Concat(batches...), -1)
	if err != nil || info.Batches != len(batches) {
		t.Fatalf("appended %d of %d batches: %v", info.Batches, len(batches), err)
	}
	return info
}

// kvBatch is a batch of records at first..last with keys k<offset> and 40 bytes of value.
func kvBatch(first, last int64) []byte { return kvBatchOf(first, last, BatchHeader{ProducerID: -1}) }

// kvBatchOf is the same with the producer, epochs and attributes of h.
func kvBatchOf(first, last int64, h BatchHeader) []byte {
	h.BaseOffset, h.LastOffsetDelta, h.RecordsCount = first, int32(last-first), int32(last-first+1)
	if h.BaseTimestampMs == 0 {
		h.BaseTimestampMs = 1700000000000 + first
		h.MaxTimestampMs = h.BaseTimestampMs
	}
	if h.ProducerID < 0 {
		h.ProducerEpoch, h.BaseSequence = -1, -1
	}
	var records []byte
	for offset := first; offset <= last; offset++ {
		records = AppendRecord(records, first, h.BaseTimestampMs, &Record{
			Offset: offset, TimestampMs: h.BaseTimestampMs,
			Key:   []byte("k" + string(rune('0'+offset%10))),
			Value: []byte(strings.Repeat("v", 40)),
		})
	}
	return AppendBatch(nil, &h, records)
}

func TestLogDir_SecondOpenerIsLockedOut(t *testing.T) {
	dir := t.TempDir()
	d := openDir(t, dir)
	_, err := OpenLogDir(dir, dirID)
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), filepath.Join(dir, ".lock")) {
		t.Errorf("second opener got %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if !gone(t, filepath.Join(dir, ".lock")) {
		t.Error("the lock file outlives an orderly close")
	}
	openDir(t, dir)
}

func TestLogDir_AnotherClusterOrNodeIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := openDir(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	for _, id := range []Identity{{ClusterID: "other", NodeID: 1}, {ClusterID: dirID.ClusterID, NodeID: 2}} {
		if _, err := OpenLogDir(dir, id); !errors.Is(err, ErrForeignLogDir) {
			t.Errorf("%+v: %v", id, err)
		}
	}
	openDir(t, dir) // the refusals left no lock behind
}

func TestLogDir_OrderlyStopIsSeenOnceAndCrashIsNot(t *testing.T) {
	dir, tp := t.TempDir(), TopicPartition{Topic: "t", Partition: 0}
	d := openDir(t, dir)
	if d.Clean() {
		t.Error("a new directory claims an orderly stop")
	}
	l, _ := openIn(t, d, tp, DefaultConfig())
	appendAll(t, l, kvBatch(0, 2), kvBatch(3, 4))
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	mark, err := os.ReadFile(filepath.Join(dir, cleanShutdownName))
	if err != nil || string(mark) != `{"version":0,"brokerEpoch":-1}` {
		t.Errorf("mark of the orderly stop is %q, %v", mark, err)
	}
	points, err := ReadOffsetCheckpoint(filepath.Join(dir, recoveryPointsName))
	if err != nil || points[tp] != 5 {
		t.Errorf("recovery points %v, %v", points, err)
	}

	d = openDir(t, dir)
	if !d.Clean() || !gone(t, filepath.Join(dir, cleanShutdownName)) {
		t.Errorf("clean %t, mark still there: %t", d.Clean(), !gone(t, filepath.Join(dir, cleanShutdownName)))
	}
	if _, report := openIn(t, d, tp, DefaultConfig()); !report.Clean || report.SegmentsScanned != 0 {
		t.Errorf("report after an orderly stop: %+v", report)
	}
}

func TestLogDir_NoOrderlyMarkForPartitionsNeverRecovered(t *testing.T) {
	dir := t.TempDir()
	a, b := TopicPartition{Topic: "a", Partition: 0}, TopicPartition{Topic: "b", Partition: 0}
	d := openDir(t, dir)
	openIn(t, d, a, DefaultConfig())
	openIn(t, d, b, DefaultConfig())
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, cleanShutdownName)); err != nil { // as after a crash
		t.Fatal(err)
	}
	d = openDir(t, dir)
	openIn(t, d, a, DefaultConfig())
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if !gone(t, filepath.Join(dir, cleanShutdownName)) {
		t.Error("b was not opened since the crash, and the directory is marked as stopped in order")
	}
}

func TestLogDir_LogIsOpenOnceAndCanBeOpenedAgain(t *testing.T) {
	d, tp := openDir(t, t.TempDir()), TopicPartition{Topic: "t", Partition: 3}
	l, _ := openIn(t, d, tp, DefaultConfig())
	if _, _, err := d.OpenLog(tp, DefaultConfig()); !errors.Is(err, ErrLogOpen) {
		t.Errorf("opened twice: %v", err)
	}
	appendAll(t, l, kvBatch(0, 2))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again, report := openIn(t, d, tp, DefaultConfig())
	if !report.Clean || again.LogEndOffset() != 3 {
		t.Errorf("opened again: %+v, end %d", report, again.LogEndOffset())
	}
	again.poison(os.ErrInvalid)
	if err := again.Close(); !errors.Is(err, ErrLogFailed) {
		t.Errorf("closing a failed log: %v", err)
	}
	recovered, report := openIn(t, d, tp, DefaultConfig())
	if report.Clean || report.SegmentsScanned != 1 || recovered.LogEndOffset() != 3 {
		t.Errorf("after a failure: %+v, end %d", report, recovered.LogEndOffset())
	}
}

func TestLogDir_CheckpointKeepsEntriesOfOthers(t *testing.T) {
	dir := t.TempDir()
	other, tp := TopicPartition{Topic: "other", Partition: 7}, TopicPartition{Topic: "t", Partition: 0}
	for _, name := range []string{recoveryPointsName, logStartsName, highWatermarksName} {
		if err := WriteOffsetCheckpoint(filepath.Join(dir, name), map[TopicPartition]int64{other: 42}); err != nil {
			t.Fatal(err)
		}
	}
	d := openDir(t, dir)
	l, _ := openIn(t, d, tp, DefaultConfig())
	appendAll(t, l, kvBatch(0, 2))
	l.UpdateHighWatermark(3)
	if _, err := l.AdvanceLogStart(2); err != nil {
		t.Fatal(err)
	}
	if err := d.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{recoveryPointsName: l.RecoveryPoint(), logStartsName: 2, highWatermarksName: 3} {
		offsets, err := ReadOffsetCheckpoint(filepath.Join(dir, name))
		if err != nil || offsets[other] != 42 || offsets[tp] != want {
			t.Errorf("%s holds %v, %v; want %d", name, offsets, err, want)
		}
	}
	if err := d.Forget(other); err != nil {
		t.Fatal(err)
	}
	if offsets, err := ReadOffsetCheckpoint(filepath.Join(dir, logStartsName)); err != nil || len(offsets) != 1 {
		t.Errorf("after Forget: %v, %v", offsets, err)
	}
}

func TestLogDir_DamagedCheckpointIsAWarningAndMeansAScan(t *testing.T) {
	dir, tp := t.TempDir(), TopicPartition{Topic: "t", Partition: 0}
	d := openDir(t, dir)
	l, _ := openIn(t, d, tp, DefaultConfig())
	appendAll(t, l, kvBatch(0, 2))
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, cleanShutdownName)); err != nil {
		t.Fatal(err)
	}
	for _, damage := range []string{"0\n1\naa\n", strings.Repeat("\x00", 20), "0\n3\nt 0 3\n", "0\n1\nt 0 99999\n"} {
		if err := os.WriteFile(filepath.Join(dir, recoveryPointsName), []byte(damage), 0o644); err != nil {
			t.Fatal(err)
		}
		d := openDir(t, dir)
		ahead := strings.Contains(damage, "99999")
		if warnings := d.Warnings(); !ahead && (len(warnings) != 1 || !errors.Is(warnings[0], ErrCorruptCheckpoint)) {
			t.Errorf("%q: warnings %v", damage, warnings)
		}
		l, _ := openIn(t, d, tp, DefaultConfig())
		if l.LogEndOffset() != 3 || l.RecoveryPoint() > 3 {
			t.Errorf("%q: log end %d, recovery point %d", damage, l.LogEndOffset(), l.RecoveryPoint())
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, cleanShutdownName)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLogDir_PartitionsNamesWhatIsForeign(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"lost+found", "noDash", "topic-x", "-0", "topic-2147483648", "x-delete", "-crypto-0", "t--1", "topic-007", "delete-0",
		"t-0.0123456789abcdef0123456789abcdef-stray", remoteIndexCacheName,
	} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere := t.TempDir()
	for name, target := range map[string]string{"linked-0": elsewhere, "dangling-0": "nowhere", "loop-0": "loop-0"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	d := openDir(t, dir)
	partitions, foreign := d.Partitions()
	want := []TopicPartition{{"-crypto", 0}, {"delete", 0}, {"linked", 0}, {"t-", 1}}
	if !slices.Equal(partitions, want) {
		t.Errorf("partitions %v, want %v", partitions, want)
	}
	fatal := 0
	for _, err := range foreign {
		if errors.Is(err, ErrNotPartition) {
			fatal++
		}
	}
	if fatal != 6 || len(foreign) != 10 {
		t.Errorf("%d names a broker would not start over, %d notes: %v", fatal, len(foreign), foreign)
	}
	l, _ := openIn(t, d, TopicPartition{"linked", 0}, DefaultConfig())
	appendAll(t, l, kvBatch(0, 2))
	if gone(t, filepath.Join(elsewhere, segmentFileName(0, logSuffix))) {
		t.Error("the linked directory's log is not where the link leads")
	}
}
