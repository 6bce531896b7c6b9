package kafka

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// MaxClusters and MaxBrokers bound what one process may run at once; the machine-wide lock admits one process.
const (
	MaxClusters = 2
	MaxBrokers  = 3
)

// ErrTooMany says that this process already runs as many clusters or brokers as it may.
var ErrTooMany = errors.New("too many Kafka brokers in this process")

// slots counts the clusters of this process; the first takes the machine-wide lock, the last gives it back.
type slots struct {
	mu       sync.Mutex
	clusters int
	brokers  int
	unlock   func()
}

var machine slots

// acquire waits for the machine's lock if this process does not hold it, and counts one cluster of n brokers.
func (s *slots) acquire(ctx context.Context, n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clusters+1 > MaxClusters || s.brokers+n > MaxBrokers {
		return fmt.Errorf("%w: %d clusters with %d brokers run, %d brokers asked for", ErrTooMany, s.clusters, s.brokers, n)
	}
	if s.clusters == 0 {
		unlock, err := lockFile(ctx, filepath.Join(os.TempDir(), "segmirror-kafka.lock"))
		if err != nil {
			return err
		}
		s.unlock = unlock
	}
	s.clusters++
	s.brokers += n
	return nil
}

// release gives back what acquire counted.
func (s *slots) release(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clusters--
	s.brokers -= n
	if s.clusters == 0 {
		s.unlock()
	}
}

// lockFile takes an exclusive flock on path, asking again until ctx is done. The lock goes with the process.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil // closing the only descriptor releases the lock
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("waiting for %s, held by another process: %w", path, ctx.Err())
		case <-tick.C:
		}
	}
}
