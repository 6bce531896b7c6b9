package replicator

import (
	"context"
	"errors"
	"log/slog"
)

// Agent mirrors the declared mirrors of one Config into its log directories.
type Agent struct {
	cfg Config
	log *slog.Logger
}

// New opens the log directories (each locked and recovered), the state log and the metrics listener.
//
// A log directory held by another process, a cluster.id that is not the stored one or a partition in two log
// directories is an error and leaves nothing locked. The caller owns log; call Run once to mirror and to close.
func New(cfg Config, log *slog.Logger) (*Agent, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Agent{cfg: cfg, log: log}, nil
}

// Run mirrors until ctx is done, then closes every log cleanly. It returns nil after a clean close.
func (a *Agent) Run(ctx context.Context) error {
	<-ctx.Done()
	return errors.New("not mirrored")
}

// MetricsAddr returns the host:port that serves /metrics and /healthz, "" without metrics.listener. Any goroutine.
func (a *Agent) MetricsAddr() string { return "" }

// Status returns a snapshot of what the agent holds. Any goroutine.
func (a *Agent) Status() Status { return Status{} }
