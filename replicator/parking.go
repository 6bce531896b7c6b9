package replicator

import (
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A log that takes records holds up to filesOfLog descriptors and one of the process's maps until it is parked. They
// are bounded by what the process may have, not by how many partitions take records now and then.
const (
	filesOfLog  = 4
	spareFiles  = 512    // for connections, state logs and readers
	mostAtWork  = 30_000 // of vm.max_map_count, 65,530 unless it was raised
	leastAtWork = 16
	parksAtOnce = 64 // side by side, so that the fetcher goes on after a few syncs
)

// workingLogs counts the logs that hold descriptors, over all fetchers of an agent.
type workingLogs struct {
	limit int64

	// atomic
	n      atomic.Int64
	warned atomic.Bool
}

// newWorkingLogs takes the limit from what the process may open.
func newWorkingLogs() *workingLogs {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		files.Cur = 1024
	}
	limit := (int64(min(files.Cur, 1<<40)) - spareFiles) / filesOfLog
	return &workingLogs{limit: max(leastAtWork, min(limit, mostAtWork))}
}

// files is what a partition's log has open.
type files int8

const (
	filesResting files = iota // none: it took no record since it was opened
	filesOpen
	filesParked // none, and they are what an orderly stop leaves
)

// begin notes that a partition's log opens its files now. Holder of the partition only.
func (w *workingLogs) begin(p *partition) {
	if p.feed.files != filesOpen {
		p.feed.files = filesOpen
		w.n.Add(1)
	}
}

// end notes that it has closed them. Holder of the partition only.
func (w *workingLogs) end(p *partition, now files) {
	if p.feed.files == filesOpen {
		w.n.Add(-1)
	}
	p.feed.files = now
}

// makeRoom lets p take records: where as many logs hold descriptors as may, those of this fetcher that had no record
// for longest are parked. Busier partitions than the limit go on, each time opening what was closed.
func (f *fetcher) makeRoom(p *partition) {
	logs := f.mirror.agent.working
	if p.feed.files == filesOpen {
		return
	}
	if logs.n.Load() >= logs.limit {
		if !logs.warned.Swap(true) {
			f.mirror.logger.Warn("more partitions take records than may be open: logs are closed and opened again; "+
				"raise the limit of open files", slog.Int64("open", logs.limit))
		}
		f.parkOldest()
	}
	logs.begin(p)
}

// parkOldest parks parksAtOnce of the fetcher's logs.
func (f *fetcher) parkOldest() {
	var working []*partition
	for _, p := range f.slots {
		if p != nil && p.feed.files == filesOpen && p.feed.log.Failed() == nil {
			working = append(working, p)
		}
	}
	slices.SortFunc(working, func(a, b *partition) int { return a.feed.lastBatch.Compare(b.feed.lastBatch) })
	f.park(working[:min(len(working), parksAtOnce)])
}

// parkIdle parks logs that had no record for mirror.idle.partition.close.ms: a few at each call, so that thousands
// that fall idle together hold up nothing.
func (f *fetcher) parkIdle(now time.Time) {
	f.care.idle = f.care.idle[:0]
	before := now.Add(-f.mirror.agent.cfg.IdlePartitionAge)
	for _, p := range f.slots {
		if p != nil && p.feed.files != filesParked && p.feed.lastBatch.Before(before) && p.unflushed() == 0 {
			if f.care.idle = append(f.care.idle, p); len(f.care.idle) == parksAtOnce {
				break
			}
		}
	}
	f.park(f.care.idle)
}

// park closes the files of partitions, which are durable then. One that cannot be parked leaves the fetcher.
func (f *fetcher) park(parts []*partition) {
	errs := make([]error, len(parts))
	inParallel(len(parts), func(i int) { errs[i] = parts[i].feed.log.Park() })
	for i, p := range parts {
		f.mirror.agent.working.end(p, filesParked)
		p.stats.disk.flushed.Store(p.feed.appended)
		if errs[i] != nil {
			f.release(release{p: p, why: f.ioFailure(p, errs[i])})
		}
	}
}
