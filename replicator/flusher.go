package replicator

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"segmirror/segment"
)

// flusher makes what was appended durable, beside the fetchers, several partitions at a time: one is flushed when it
// has log.flush.*'s bytes or messages unflushed or waited its interval. It also writes the checkpoints, after it has
// looked whether every partition's directory is still where it was.
type flusher struct {
	cfg    LogConfig
	logs   *logSet
	logger *slog.Logger
	kicked chan struct{} // one slot: look now

	// guarded by mu
	mu    sync.Mutex
	parts map[*partition]*flushState
	idle  *sync.Cond // a flush ended
}

// flushState is what the flusher knows of a partition.
type flushState struct {
	log   *segment.Log
	since time.Time // oldest unflushed append seen, zero = none
	from  int64     // log end at the newest flush
	busy  bool      // being flushed now
}

func newFlusher(cfg LogConfig, logs *logSet, logger *slog.Logger) *flusher {
	f := &flusher{
		cfg: cfg, logs: logs, logger: logger, kicked: make(chan struct{}, 1), parts: map[*partition]*flushState{},
	}
	f.idle = sync.NewCond(&f.mu)
	return f
}

// add makes a partition's present log one that is flushed. Any goroutine.
func (f *flusher) add(p *partition) {
	f.mu.Lock()
	defer f.mu.Unlock()
	log := p.stats.log.Load()
	f.parts[p] = &flushState{log: log, from: log.RecoveryPoint()}
}

// drop forgets a partition and returns once no flush of it is under way: its log may then be closed. Any goroutine.
func (f *flusher) drop(p *partition) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.parts[p]
	delete(f.parts, p)
	for s != nil && s.busy {
		f.idle.Wait()
	}
}

// kick makes the flusher look now. Any goroutine.
func (f *flusher) kick() {
	select {
	case f.kicked <- struct{}{}:
	default:
	}
}

// run flushes and checkpoints until ctx is done.
func (f *flusher) run(ctx context.Context) {
	schedule := time.NewTicker(f.cfg.FlushSchedule)
	defer schedule.Stop()
	checkpoint := time.NewTicker(f.cfg.CheckpointInterval)
	defer checkpoint.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.kicked:
		case <-schedule.C:
		case <-checkpoint.C:
			f.lookForDirectories()
			f.checkpoint()
		}
		due := f.due(time.Now())
		inParallel(len(due), func(i int) {
			if ctx.Err() == nil {
				f.flush(due[i])
			}
		})
	}
}

// due returns the partitions to flush now.
func (f *flusher) due(now time.Time) []*partition {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*partition
	for p, s := range f.parts {
		unflushed := p.unflushed()
		if unflushed <= 0 {
			s.since = time.Time{}
			continue
		}
		if s.since.IsZero() {
			s.since = now
		}
		if unflushed >= f.cfg.FlushBytes || now.Sub(s.since) >= f.cfg.FlushInterval ||
			s.log.LogEndOffset()-s.from >= f.cfg.FlushMessages {
			out = append(out, p)
		}
	}
	return out
}

func (f *flusher) flush(p *partition) {
	f.mu.Lock()
	s := f.parts[p]
	if s == nil || s.log.Failed() != nil || p.stats.disk.gone.Load() {
		f.mu.Unlock()
		return
	}
	s.busy = true
	f.mu.Unlock()
	appended := p.stats.disk.appended.Load()
	offset, err := s.log.Flush()
	if err == nil {
		p.stats.disk.durable.Store(offset)
		p.stats.disk.flushed.Store(appended)
	} else {
		f.logger.Error("flush", topicAttr(p.tp), partitionAttr(p.tp), slog.Any("err", err))
	}
	f.mu.Lock()
	s.since, s.from, s.busy = time.Time{}, offset, false
	f.idle.Broadcast()
	f.mu.Unlock()
}

// lookForDirectories finds partitions whose directory was renamed or removed under us; their holders stop them.
func (f *flusher) lookForDirectories() {
	f.mu.Lock()
	parts := make([]*partition, 0, len(f.parts))
	for p := range f.parts {
		parts = append(parts, p)
	}
	f.mu.Unlock()
	for _, p := range parts {
		log := p.stats.log.Load()
		if h := f.logs.get(p.tp); h != nil && log != nil && inodeOf(log.Dir()) != h.inode && !p.stats.disk.gone.Swap(true) {
			f.logger.Error("a partition's directory was renamed or removed: it is not written any more",
				topicAttr(p.tp), partitionAttr(p.tp), slog.String("dir", log.Dir()))
		}
	}
}

func (f *flusher) checkpoint() {
	var errs []error
	for _, d := range f.logs.dirs {
		errs = append(errs, d.dir.Checkpoint())
	}
	if err := errors.Join(errs...); err != nil {
		f.logger.Error("checkpoint", slog.Any("err", err))
	}
}
