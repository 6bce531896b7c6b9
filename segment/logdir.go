package segment

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
)

// ErrLogOpen says that a partition's log is open already.
var ErrLogOpen = errors.New("log is open already")

// LogDir is one entry of log.dirs, held by this process: the partitions in it, and the files that speak of all of them.
//
// Any goroutine may use it. Files in it are Kafka's: a broker can be started over it after Close.
// Kafka: LogManager, for one directory.
type LogDir struct {
	// immutable
	path     string
	id       Identity
	lock     *os.File
	clean    bool // the last stop was orderly
	warnings []error

	// guarded by mu
	mu     sync.Mutex
	logs   map[TopicPartition]*dirLog
	closed bool

	// guarded by writing, which is held while the files are replaced, and taken before mu
	writing sync.Mutex
	stored  checkpoints
}

// dirLog is a log that was opened in this directory, and what became of it.
type dirLog struct {
	log     *Log // nil while it is being opened
	closed  bool
	orderly bool // closed without an error
}

// checkpoints are the three files that hold an offset of every partition. Kafka: LogManager's checkpoint maps.
type checkpoints struct {
	recoveryPoints map[TopicPartition]int64
	logStarts      map[TopicPartition]int64
	highWatermarks map[TopicPartition]int64
}

// OpenLogDir takes the directory at path for id, making it where it is absent.
//
// ErrLocked: a broker, an agent or a tool has it. ErrForeignLogDir: it belongs to another cluster or node.
// ErrCorruptMetadata: meta.properties cannot be read. A checkpoint file that does not parse is a warning (Warnings) and
// counts as empty: logs are then scanned from their start. The mark of an orderly stop is gone on return.
// Kafka: LogManager.createAndValidateLogDirs, lockLogDirs, loadLogs.
func OpenLogDir(path string, id Identity) (*LogDir, error) {
	if err := makeDir(path); err != nil {
		return nil, err
	}
	lock, err := lockDir(path)
	if err != nil {
		return nil, err
	}
	d := &LogDir{path: path, id: id, lock: lock, logs: make(map[TopicPartition]*dirLog)}
	if err := d.load(); err != nil {
		return nil, errors.Join(err, unlockDir(lock))
	}
	return d, nil
}

func (d *LogDir) load() error {
	if err := claimMetaProperties(d.path, d.id); err != nil {
		return err
	}
	for _, file := range d.stored.files() {
		offsets, err := ReadOffsetCheckpoint(filepath.Join(d.path, file.name))
		if errors.Is(err, ErrCorruptCheckpoint) {
			d.warnings = append(d.warnings, err)
			offsets, err = make(map[TopicPartition]int64), nil
		}
		if err != nil {
			return err
		}
		*file.offsets = offsets
	}
	var err error
	d.clean, err = takeCleanShutdown(d.path)
	return err
}

type checkpointFile struct {
	name    string
	offsets *map[TopicPartition]int64
}

func (c *checkpoints) files() []checkpointFile {
	return []checkpointFile{
		{recoveryPointsName, &c.recoveryPoints}, {logStartsName, &c.logStarts}, {highWatermarksName, &c.highWatermarks},
	}
}

// note enters what l says of itself now.
func (c *checkpoints) note(tp TopicPartition, l *Log) {
	c.recoveryPoints[tp] = l.RecoveryPoint()
	c.highWatermarks[tp] = l.HighWatermark()
	// As in Kafka: a log start that is a segment's base can be read off the file names. But those of an empty log say so
	// little that a crash while it begins anew, or below its start, could lose it.
	if start := l.LogStartOffset(); start > l.FirstSegmentBase() || start > 0 && start >= l.LogEndOffset() {
		c.logStarts[tp] = start
	} else {
		delete(c.logStarts, tp)
	}
}

// Path is the directory's path, as it was given.
func (d *LogDir) Path() string { return d.path }

// Identity is whose directory it is.
func (d *LogDir) Identity() Identity { return d.id }

// ClusterID is the destination cluster's id.
func (d *LogDir) ClusterID() string { return d.id.ClusterID }

// Clean tells whether the last stop before OpenLogDir was orderly.
func (d *LogDir) Clean() bool { return d.clean }

// Warnings are the checkpoint files that could not be read at OpenLogDir.
func (d *LogDir) Warnings() []error { return slices.Clone(d.warnings) }

// Partitions lists the partition directories, by topic and partition.
//
// foreign has one error for every other directory, named: ErrNotPartition for one a broker would not start over, and a
// plain note for one it sets aside (a deleted, stray or future partition, or a partition number with leading zeros),
// or that cannot be looked at (a dangling link). None of them is touched. Kafka: LogManager.loadLogs.
func (d *LogDir) Partitions() (partitions []TopicPartition, foreign []error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, []error{err}
	}
	for _, entry := range entries {
		name := entry.Name()
		isDir := entry.IsDir()
		if entry.Type()&os.ModeSymlink != 0 {
			info, err := os.Stat(filepath.Join(d.path, name))
			if err != nil {
				foreign = append(foreign, err)
				continue
			}
			isDir = info.IsDir()
		}
		if !isDir || name == remoteIndexCacheName {
			continue
		}
		tp, state, err := ParseDirName(name)
		switch {
		case err != nil:
			foreign = append(foreign, fmt.Errorf("%s: %w", d.path, err))
		case state != DirNormal:
			foreign = append(foreign, fmt.Errorf("%s: partition %s is %s", filepath.Join(d.path, name), tp, state))
		case tp.String() != name:
			foreign = append(foreign, fmt.Errorf("%s: partition %s under another name", filepath.Join(d.path, name), tp))
		default:
			partitions = append(partitions, tp)
		}
	}
	slices.SortFunc(partitions, TopicPartition.Compare)
	return partitions, foreign
}

// Exists tells whether there is a directory for tp.
func (d *LogDir) Exists(tp TopicPartition) bool {
	info, err := os.Stat(d.dirOf(tp))
	return err == nil && info.IsDir()
}

func (d *LogDir) dirOf(tp TopicPartition) string { return filepath.Join(d.path, tp.String()) }

// OpenLog opens the log of tp, or makes an empty one. The report says what recovery did, also beside an error.
//
// The caller is the log's owner, and may close it; Close of the directory closes what is left. A log that failed is
// closed and opened again here, which recovers it. ErrLogOpen while it is open. Kafka: LogManager.getOrCreateLog.
func (d *LogDir) OpenLog(tp TopicPartition, cfg Config) (*Log, RecoveryReport, error) {
	report := RecoveryReport{TopicPartition: tp}
	if name := tp.String(); len(name) > maxDirNameSize || filepath.Base(name) != name {
		return nil, report, fmt.Errorf("%s: %w", d.path, fmt.Errorf("%.300q: %w", name, ErrNotPartition))
	}
	slot := new(dirLog)
	before, err := d.begin(tp, slot)
	if err != nil {
		return nil, report, err
	}
	d.writing.Lock()
	p := openParams{
		path: d.dirOf(tp), tp: tp, cfg: cfg, clean: d.clean,
		recoveryPoint: d.stored.recoveryPoints[tp], logStart: d.stored.logStarts[tp],
		highWatermark: d.stored.highWatermarks[tp],
		persist:       d.Checkpoint,
		onClose:       func(err error) { d.ended(slot, err) },
	}
	d.writing.Unlock()
	if before != nil {
		p.clean = before.orderly
	}
	if before != nil && before.log != nil {
		p.recoveryPoint, p.highWatermark = before.log.RecoveryPoint(), before.log.HighWatermark()
		p.logStart = before.log.LogStartOffset()
	}
	l, report, err := openLog(p)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		slot.closed = true
		if before != nil {
			slot.log = before.log
		}
		return nil, report, err
	}
	slot.log = l
	return l, report, nil
}

// begin puts slot in the place of tp and returns what was there before.
func (d *LogDir) begin(tp TopicPartition, slot *dirLog) (before *dirLog, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("%s: %w", d.path, os.ErrClosed)
	}
	before = d.logs[tp]
	if before != nil && !before.closed {
		return nil, fmt.Errorf("%s: %w", tp, ErrLogOpen)
	}
	d.logs[tp] = slot
	return before, nil
}

func (d *LogDir) ended(slot *dirLog, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	slot.closed, slot.orderly = true, err == nil
}

// Forget drops what the checkpoint files say of tp, whose directory was removed or handed over. Its log must be closed.
func (d *LogDir) Forget(tp TopicPartition) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	d.mu.Lock()
	slot := d.logs[tp]
	if slot != nil && !slot.closed {
		d.mu.Unlock()
		return fmt.Errorf("%s: %w", tp, ErrLogOpen)
	}
	delete(d.logs, tp)
	d.mu.Unlock()
	for _, file := range d.stored.files() {
		delete(*file.offsets, tp)
	}
	return d.write()
}

// Checkpoint replaces the three checkpoint files by what the logs say now, durably. Entries of partitions that were not
// opened stay. Kafka: LogManager.checkpointLogRecoveryOffsets, checkpointLogStartOffsets,
// ReplicaManager.checkpointHighWatermarks.
func (d *LogDir) Checkpoint() error {
	d.writing.Lock()
	defer d.writing.Unlock()
	d.mu.Lock()
	closed := d.closed && d.lock == nil
	for tp, slot := range d.logs {
		if slot.log != nil {
			d.stored.note(tp, slot.log)
		}
	}
	d.mu.Unlock()
	if closed {
		return fmt.Errorf("%s: %w", d.path, os.ErrClosed)
	}
	return d.write()
}

func (d *LogDir) write() error {
	for _, file := range d.stored.files() {
		if err := WriteOffsetCheckpoint(filepath.Join(d.path, file.name), *file.offsets); err != nil {
			return err
		}
	}
	return nil
}

// Close closes every log that is open, writes the checkpoints, and gives the directory up. The owners of the logs must
// have stopped.
//
// The mark of an orderly stop speaks for every partition, so it is only written where each of them was closed without
// an error, or was not opened and had been closed in order before. Kafka: LogManager.shutdown.
func (d *LogDir) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	var open []*Log
	for _, slot := range d.logs {
		if slot.log != nil && !slot.closed {
			open = append(open, slot.log)
		}
	}
	d.mu.Unlock()
	err := closeAll(open)
	checkpointErr := d.Checkpoint()
	err = errors.Join(err, checkpointErr)
	if checkpointErr == nil && d.orderly() {
		err = errors.Join(err, writeCleanShutdown(d.path))
	}
	err = errors.Join(err, unlockDir(d.lock))
	d.mu.Lock()
	d.lock = nil
	d.mu.Unlock()
	return err
}

// closesAtOnce is how many logs are closed at the same time: closing one is a few syncs, of which a file system does
// many as fast as one.
const closesAtOnce = 64

func closeAll(logs []*Log) error {
	errs := make([]error, len(logs))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(len(logs), closesAtOnce) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(logs); i = int(next.Add(1)) - 1 {
				errs[i] = logs[i].Close()
			}
		})
	}
	workers.Wait()
	return errors.Join(errs...)
}

// orderly tells whether every partition in the directory is as an orderly stop leaves it.
func (d *LogDir) orderly() bool {
	partitions, _ := d.Partitions()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, tp := range partitions {
		slot := d.logs[tp]
		if slot == nil && !d.clean || slot != nil && !slot.orderly {
			return false
		}
	}
	return true
}
