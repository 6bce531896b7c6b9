package replicator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"segmirror/segment"
)

// Agent mirrors the mirrors that its Config declares, and those that requests made, into its log directories.
type Agent struct {
	// immutable
	cfg      Config
	declared map[string]*MirrorConfig // by name
	logger   *slog.Logger
	logs     *logSet
	states   *stateLog
	metadata *metadataLog
	flusher  *flusher
	server   *metricsServer // nil without metrics.listener
	clients  *server        // nil without listeners
	served   bell           // told when a mirrored log's high watermark moved

	throttles *throttles
	working   *workingLogs

	// control is held while what is wanted of mirrors and topics is looked at and changed, the sync included.
	control sync.Mutex

	// guarded by mu
	mu      sync.Mutex
	mirrors map[string]*mirror
	ran     bool
	running context.Context // of Run; nil before and after
	work    *sync.WaitGroup // of the mirrors; nil before Run
}

// New opens the log directories (each locked and recovered), the state log and the metrics listener.
//
// A log directory held by another process, a cluster.id that is not the stored one or a partition in two log
// directories is an error and leaves nothing locked. The caller owns logger; call Run once to mirror and to close.
func New(cfg Config, logger *slog.Logger) (*Agent, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	a := &Agent{
		cfg: cfg, logger: logger, declared: map[string]*MirrorConfig{}, mirrors: map[string]*mirror{},
		throttles: newThrottles(&cfg, logger), working: newWorkingLogs(),
	}
	for i := range a.cfg.Mirrors {
		a.declared[a.cfg.Mirrors[i].Name] = &a.cfg.Mirrors[i]
	}
	for _, key := range cfg.WithoutEffect {
		logger.Warn("a key has no effect in this version", slog.String("key", key))
	}
	if err := a.open(); err != nil {
		return nil, errors.Join(err, a.abandon())
	}
	return a, nil
}

func (a *Agent) open() error {
	var err error
	if a.logs, err = openLogSet(&a.cfg, a.logger); err != nil {
		return err
	}
	if a.states, err = openStateLog(a.stateDir(), a.logger); err != nil {
		return err
	}
	if a.metadata, err = openMetadataLog(a.stateDir(), a.logger); err != nil {
		return err
	}
	a.throttles.follow(a.metadata)
	configs, err := a.openMirrors()
	if err != nil {
		return err
	}
	a.logs.measure(a.cfg.MinFreeBytes)
	began := time.Now()
	a.logs.load(a.cfg.RecoveryThreads, a.storedConfig(configs))
	a.logger.Info("log directories opened", slog.Any("log_dirs", a.cfg.LogDirs),
		slog.Int("partitions", len(a.logs.all())), slog.String("cluster_id", a.clusterID()),
		slog.Int64("took_ms", time.Since(began).Milliseconds()))
	a.flusher = newFlusher(a.cfg.Log, a.logs, a.logger)
	for _, cfg := range configs {
		if a.mirrors[cfg.Name], err = newMirror(a, cfg); err != nil {
			return err
		}
	}
	a.metadata.onChange(a.reconsider)
	if len(a.cfg.Server.Listeners) > 0 {
		if a.clients, err = listen(a, a.cfg.Server); err != nil {
			return err
		}
	}
	if a.cfg.MetricsListener != "" {
		if a.server, err = listenMetrics(a, a.cfg.MetricsListener); err != nil {
			return err
		}
	}
	return nil
}

// abandon lets go of what open had, in a New that failed.
func (a *Agent) abandon() error {
	var err error
	if a.clients != nil {
		err = a.clients.close()
	}
	if a.states != nil {
		a.states.close()
	}
	if a.metadata != nil {
		a.metadata.close()
	}
	if a.logs == nil {
		return err
	}
	return errors.Join(err, a.logs.close())
}

func (a *Agent) stateDir() *segment.LogDir {
	for i, path := range a.cfg.LogDirs {
		if a.cfg.MetadataLogDir != "" && filepath.Clean(path) == filepath.Clean(a.cfg.MetadataLogDir) {
			return a.logs.dirs[i].dir
		}
	}
	return a.logs.dirs[0].dir
}

// storedConfig returns what each partition found at start is opened with: the shape and the epoch policy it had when
// its state was last stored, the agent's defaults where nothing was.
func (a *Agent) storedConfig(mirrors []MirrorConfig) func(segment.TopicPartition) segment.Config {
	policies := map[segment.TopicPartition]EpochPolicy{}
	shapes := map[segment.TopicPartition]logShape{}
	for i := range mirrors {
		m := &mirrors[i]
		stored := a.states.mirror(m.Name)
		policy := m.EpochPolicy
		if stored.epochPolicy != EpochPolicyDefault {
			policy = stored.epochPolicy
		}
		for tp, p := range stored.partitions {
			policies[tp], shapes[tp] = policy, p.shape
		}
	}
	return func(tp segment.TopicPartition) segment.Config {
		return shapes[tp].apply(a.cfg.Log.segmentConfig(policies[tp], a.cutDirOf(tp)))
	}
}

// cutDirOf is where recovery keeps what it cuts: beside the log directory, never inside.
func (a *Agent) cutDirOf(tp segment.TopicPartition) string {
	path := a.cfg.LogDirs[0]
	if h := a.logs.get(tp); h != nil {
		path = h.dir.dir.Path()
	}
	return filepath.Join(filepath.Dir(filepath.Clean(path)), "segmirror-cut")
}

// Run mirrors until ctx is done, then closes every log cleanly. It returns nil after a clean close. Call it once.
func (a *Agent) Run(ctx context.Context) error {
	var mirrors, helpers sync.WaitGroup
	if !a.startMirrors(ctx, &mirrors) {
		return errors.New("Run was called before")
	}
	helping, stopHelpers := context.WithCancel(context.WithoutCancel(ctx))
	defer stopHelpers()
	helpers.Go(func() { a.flusher.run(helping) })
	helpers.Go(func() { a.watchSpace(helping) })
	if a.clients != nil {
		a.clients.run()
	}
	a.logger.Info("agent started", slog.Int("mirrors", len(a.allMirrors())), slog.String("metrics", a.MetricsAddr()))
	<-ctx.Done()
	a.logger.Info("closing", slog.String("why", fmt.Sprint(context.Cause(ctx))))
	var err error
	if a.clients != nil {
		err = a.clients.close()
	}
	a.mu.Lock()
	a.running = nil
	a.mu.Unlock()
	mirrors.Wait()
	stopHelpers()
	helpers.Wait()
	a.states.close()
	a.metadata.close()
	if a.server != nil {
		err = errors.Join(err, a.server.close())
	}
	err = errors.Join(err, a.logs.close())
	a.logger.Info("closed", slog.Any("err", err))
	return err
}

// watchSpace measures the file systems until ctx is done.
func (a *Agent) watchSpace(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			a.logs.measure(a.cfg.MinFreeBytes)
		}
	}
}

// MetricsAddr returns the host:port that serves /metrics and /healthz, "" without metrics.listener. Any goroutine.
func (a *Agent) MetricsAddr() string {
	if a.server == nil {
		return ""
	}
	return a.server.addr()
}

// ListenerAddrs returns host:port of each of listeners, with the ports that were given. Any goroutine.
func (a *Agent) ListenerAddrs() (addrs []string) {
	if a.clients != nil {
		for _, e := range a.clients.endpoints {
			addrs = append(addrs, e.listener.Addr().String())
		}
	}
	return addrs
}

func (a *Agent) clusterID() string { return a.logs.dirs[0].dir.ClusterID() }

// logRecovery says what opening a log did, where it did anything.
func logRecovery(logger *slog.Logger, tp segment.TopicPartition, r segment.RecoveryReport) {
	for _, cut := range r.Cuts {
		if cut.ZeroTail {
			continue
		}
		logger.Warn("recovery cut a log", topicAttr(tp), partitionAttr(tp), slog.Int64("offset", cut.Offset),
			slog.String("segment", cut.File), slog.Int64("from_pos", cut.FromPos), slog.Int64("to_pos", cut.ToPos),
			slog.Any("why", cut.Why), slog.String("kept", cut.Kept))
	}
	if r.BytesScanned > 0 || len(r.Notes) > 0 {
		logger.Info("recovered", topicAttr(tp), partitionAttr(tp), slog.Int("segments", r.SegmentsScanned),
			slog.Int64("bytes", r.BytesScanned), slog.Any("rebuilt", r.Rebuilt), slog.Any("notes", r.Notes))
	}
}
