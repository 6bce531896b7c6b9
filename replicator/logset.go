package replicator

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"segmirror/segment"
)

// logDir is one entry of log.dirs.
type logDir struct {
	dir *segment.LogDir

	// atomic
	free, total atomic.Int64 // bytes, -1 = not known
	full        atomic.Bool  // appends pause
}

// heldLog is one partition directory of ours. Who owns the partition owns it.
type heldLog struct {
	tp  segment.TopicPartition
	dir *logDir

	// owner
	policy segment.EpochPolicy
	inode  uint64

	// atomic
	log atomic.Pointer[segment.Log] // nil while it could not be opened
	err atomic.Pointer[error]       // why not
	// epochsHeard is one above the newest epoch that the source led in while this copy had all its records; 0 = none.
	epochsHeard atomic.Int32
}

// newestEpoch is the newest epoch known of where the records come from, with or without records, -1 = none. Any
// goroutine.
func (h *heldLog) newestEpoch() int32 {
	newest := h.epochsHeard.Load() - 1
	if log := h.open(); log != nil {
		if epoch, ok := log.LatestSourceEpoch(); ok {
			newest = max(newest, epoch)
		}
	}
	return newest
}

// open returns the open log, or nil.
func (h *heldLog) open() *segment.Log { return h.log.Load() }

// logSet is every partition directory of every log directory: what is there is opened, and so recovered, at start.
type logSet struct {
	dirs   []*logDir
	logger *slog.Logger

	// guarded by mu
	mu     sync.Mutex
	held   map[segment.TopicPartition]*heldLog
	topics map[string][]*heldLog // the same by topic
	counts map[*logDir]int       // and how many lie in each log directory
}

// openLogSet locks the log directories and checks that no partition lies in two of them.
func openLogSet(cfg *Config, logger *slog.Logger) (*logSet, error) {
	s := &logSet{
		logger: logger, held: map[segment.TopicPartition]*heldLog{}, topics: map[string][]*heldLog{},
		counts: map[*logDir]int{},
	}
	clusterID, err := resolveClusterID(cfg, logger)
	if err != nil {
		return nil, err
	}
	id := segment.Identity{ClusterID: clusterID, NodeID: cfg.NodeID}
	for _, path := range cfg.LogDirs {
		dir, err := segment.OpenLogDir(path, id)
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		for _, warning := range dir.Warnings() {
			logger.Warn("a checkpoint file could not be read: logs are scanned from their start", slog.Any("err", warning))
		}
		d := &logDir{dir: dir}
		d.free.Store(-1)
		s.dirs = append(s.dirs, d)
	}
	if err := s.list(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *logSet) list() error {
	var errs []error
	for _, d := range s.dirs {
		tps, foreign := d.dir.Partitions()
		for _, err := range foreign {
			s.logger.Warn("a folder in a log directory is no partition: a broker would not start with it",
				slog.String("log_dir", d.dir.Path()), slog.Any("err", err))
		}
		for _, tp := range tps {
			if tp == stateTopicPartition || tp == metadataTopicPartition {
				continue
			}
			if other := s.held[tp]; other != nil {
				errs = append(errs, fmt.Errorf("partition %s lies in two log directories, %s and %s: move one away",
					tp, filepath.Join(other.dir.dir.Path(), tp.String()), filepath.Join(d.dir.Path(), tp.String())))
				continue
			}
			s.enter(&heldLog{tp: tp, dir: d})
		}
	}
	return errors.Join(errs...)
}

// enter puts h into the tables. mu is held, or nobody else knows s yet.
func (s *logSet) enter(h *heldLog) {
	s.held[h.tp] = h
	s.topics[h.tp.Topic] = append(s.topics[h.tp.Topic], h)
	s.counts[h.dir]++
}

// load opens every listed partition with its configuration, threads at a time in each log directory. One that cannot
// be opened keeps its error and stops nothing else.
func (s *logSet) load(threads int, config func(segment.TopicPartition) segment.Config) {
	var wg sync.WaitGroup
	for _, d := range s.dirs {
		work := make(chan *heldLog) // unbuffered: handed to the workers below
		for range threads {
			wg.Go(func() {
				for h := range work {
					if err := s.reopen(h, config(h.tp)); err != nil {
						s.logger.Error("a partition could not be opened", topicAttr(h.tp), partitionAttr(h.tp),
							slog.Any("err", err))
					}
				}
			})
		}
		wg.Go(func() {
			for _, h := range s.all() {
				if h.dir == d {
					work <- h
				}
			}
			close(work)
		})
	}
	wg.Wait()
}

func (s *logSet) all() []*heldLog {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*heldLog, 0, len(s.held))
	for _, h := range s.held {
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b *heldLog) int { return compareTP(a.tp, b.tp) })
	return out
}

// get returns the partition's directory, nil if there is none. Any goroutine.
func (s *logSet) get(tp segment.TopicPartition) *heldLog {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[tp]
}

// hasTopic reports whether a partition of a topic lies here. Any goroutine.
func (s *logSet) hasTopic(topic string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.topics[topic]) > 0
}

// claim returns the partition's directory, chosen if it is new: the log directory with the fewest partitions, as a
// broker chooses. Nothing is created yet. Any goroutine.
func (s *logSet) claim(tp segment.TopicPartition) *heldLog {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.held[tp]; h != nil {
		return h
	}
	best := s.dirs[0]
	for _, d := range s.dirs {
		if s.counts[d] < s.counts[best] || best.full.Load() && !d.full.Load() {
			best = d
		}
	}
	h := &heldLog{tp: tp, dir: best}
	s.enter(h)
	return h
}

// reopen closes the log if it is open, and opens it: what is there is recovered, what is not is created.
//
// A directory that was there and is gone is not created again: errDirectoryLost. Owner of h only.
func (s *logSet) reopen(h *heldLog, cfg segment.Config) error {
	if old := h.log.Swap(nil); old != nil {
		if err := old.Close(); err != nil {
			s.logger.Warn("closing a log", topicAttr(h.tp), partitionAttr(h.tp), slog.Any("err", err))
		}
	}
	path := filepath.Join(h.dir.dir.Path(), h.tp.String())
	if h.inode != 0 && inodeOf(path) != h.inode {
		return fmt.Errorf("%w: %s", errDirectoryLost, path)
	}
	log, report, err := h.dir.dir.OpenLog(h.tp, cfg)
	if err != nil {
		h.err.Store(&err)
		return err
	}
	logRecovery(s.logger, h.tp, report)
	h.policy, h.inode = cfg.Policy, inodeOf(path)
	h.err.Store(nil)
	h.log.Store(log)
	return nil
}

// abandon closes the log of a directory that is gone, and forgets what the checkpoint files say of it. h stays in the
// table: the directory is not made again. Owner of h only.
func (s *logSet) abandon(h *heldLog) error {
	log := h.log.Swap(nil)
	if log == nil {
		return nil
	}
	return errors.Join(log.Close(), h.dir.dir.Forget(h.tp))
}

var errDirectoryLost = errors.New("the partition's directory was renamed or removed")

// inodeOf returns what identifies the directory at path, 0 if there is none.
func inodeOf(path string) uint64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}

// bindings returns the source topics that the open partitions of a topic are bound to.
func (s *logSet) bindings(topic string) map[segment.SourceID]segment.TopicPartition {
	out := map[segment.SourceID]segment.TopicPartition{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.topics[topic] {
		if log := h.open(); log != nil {
			if id, ok := log.Source(); ok {
				out[id] = h.tp
			}
		}
	}
	return out
}

// measure asks each file system for its room and raises or lowers full: below min bytes appends pause, above a tenth
// more they go on.
func (s *logSet) measure(minFree int64) {
	for _, d := range s.dirs {
		var st unix.Statfs_t
		if err := unix.Statfs(d.dir.Path(), &st); err != nil {
			d.free.Store(-1)
			continue
		}
		free := int64(st.Bavail) * st.Bsize
		d.free.Store(free)
		d.total.Store(int64(st.Blocks) * st.Bsize)
		switch {
		case free < minFree:
			if !d.full.Swap(true) {
				s.logger.Error("a log directory has less than min.free.bytes: appends pause",
					slog.String("log_dir", d.dir.Path()), slog.Int64("free", free), slog.Int64("min_free", minFree))
			}
		case free >= minFree+minFree/10:
			if d.full.Swap(false) {
				s.logger.Info("a log directory has room again",
					slog.String("log_dir", d.dir.Path()), slog.Int64("free", free))
			}
		}
	}
}

// close closes every log directory in order.
func (s *logSet) close() error {
	var errs []error
	for _, d := range s.dirs {
		errs = append(errs, d.dir.Close())
	}
	return errors.Join(errs...)
}

func isNoSpace(err error) bool {
	return errors.Is(err, segment.ErrNoSpace) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

func isGone(err error) bool {
	return errors.Is(err, errDirectoryLost) || errors.Is(err, fs.ErrNotExist)
}
