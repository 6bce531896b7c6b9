package kafka

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ErrNotRunning says that a broker's process is not there, with the end of its log.
var ErrNotRunning = errors.New("broker is not running")

// Broker is one node of a cluster. Its exported fields do not change.
type Broker struct {
	ID      int32
	Dir     string   // holds server.properties, server.log, out.log
	LogDirs []string // log.dirs

	cluster *Cluster
	port    int
	more    map[string]int // port of each further listener
	proc    *process       // nil before the first start
}

// Addr is the broker's host:port for clients.
func (b *Broker) Addr() string { return fmt.Sprintf("127.0.0.1:%d", b.port) }

// ListenerAddr is the host:port of one of Config.Listeners.
func (b *Broker) ListenerAddr(name string) string { return fmt.Sprintf("127.0.0.1:%d", b.more[name]) }

// Pid is the process id, 0 when the broker does not run.
func (b *Broker) Pid() int {
	if !b.Running() {
		return 0
	}
	return b.proc.cmd.Process.Pid
}

// Running says whether the broker's process is there (paused counts).
func (b *Broker) Running() bool { return b.proc != nil && b.proc.alive() }

// PartitionDir is where the broker keeps partition p of topic, in the first log dir that has it; the place in the
// first log dir if none does.
func (b *Broker) PartitionDir(topic string, p int32) string {
	name := fmt.Sprintf("%s-%d", topic, p)
	for _, d := range b.LogDirs {
		dir := filepath.Join(d, name)
		if _, err := os.Stat(dir); err == nil {
			return dir
		}
	}
	return filepath.Join(b.LogDirs[0], name)
}

// Start starts the broker's process and waits until it answers and the cluster counts it in.
func (b *Broker) Start(ctx context.Context) error {
	if err := b.launch(); err != nil {
		return err
	}
	return b.awaitReady(ctx)
}

// launch starts the process without waiting for it.
func (b *Broker) launch() error {
	if b.Running() {
		return fmt.Errorf("broker %d runs already", b.ID)
	}
	args := append(b.cluster.cfg.jvmFlags(),
		"-Dlog4j2.configurationFile=file:"+filepath.Join(b.Dir, "log4j2.properties"),
		"-cp", b.cluster.dist.Libs+"/*", "kafka.Kafka", filepath.Join(b.Dir, "server.properties"))
	cmd := exec.Command(b.cluster.dist.Java, args...)
	cmd.Dir = b.Dir
	proc, err := startProcess(b.cluster.spawner, cmd, filepath.Join(b.Dir, "out.log"))
	if err != nil {
		return err
	}
	b.proc = proc
	return nil
}

// awaitReady asks the broker for metadata until it lists itself.
func (b *Broker) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return poll(ctx, fmt.Sprintf("broker %d to be ready", b.ID), func() (bool, error) {
		if !b.Running() {
			return false, b.notRunning()
		}
		ids, err := brokerIDs(ctx, b.Addr())
		if err != nil {
			return false, nil // not listening yet
		}
		for _, id := range ids {
			if id == b.ID {
				return true, nil
			}
		}
		return false, nil
	})
}

// notRunning is ErrNotRunning with what the broker said last.
func (b *Broker) notRunning() error {
	return fmt.Errorf("%w: broker %d, %s\n%s%s", ErrNotRunning, b.ID, b.Dir,
		tailOf(filepath.Join(b.Dir, "out.log"), 2000), tailOf(filepath.Join(b.Dir, "server.log"), 4000))
}

// Stop shuts the broker down in order (SIGTERM) and waits for its end. A broker that does not end by itself in time
// (the controller it needs may be gone) is killed, which is an error.
func (b *Broker) Stop(ctx context.Context) error {
	if !b.Running() {
		return nil
	}
	if err := errors.Join(b.proc.signal(syscall.SIGCONT), b.proc.signal(syscall.SIGTERM)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	select {
	case <-b.proc.exited:
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("broker %d did not stop: %w", b.ID, ctx.Err()), b.Kill())
	}
}

// Kill ends the broker with SIGKILL and waits for its end.
func (b *Broker) Kill() error {
	if !b.Running() {
		return nil
	}
	if err := b.proc.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-b.proc.exited
	return nil
}

// Restart stops the broker in order and starts it again.
func (b *Broker) Restart(ctx context.Context) error {
	if err := b.Stop(ctx); err != nil {
		return err
	}
	return b.Start(ctx)
}

// Pause stops the broker's process where it stands (SIGSTOP); Continue lets it go on.
func (b *Broker) Pause() error { return b.proc.signal(syscall.SIGSTOP) }

// Continue ends a Pause.
func (b *Broker) Continue() error { return b.proc.signal(syscall.SIGCONT) }

// ServerLog is the text of the broker's log so far.
func (b *Broker) ServerLog() (string, error) {
	data, err := os.ReadFile(filepath.Join(b.Dir, "server.log"))
	return string(data), err
}

// tailOf returns the last n bytes of a file, or nothing.
func tailOf(path string, n int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	if len(data) > n {
		data = data[len(data)-n:]
	}
	return strings.ToValidUTF8(string(data), "?")
}

// Waiting times for outside processes. They are generous: the machine may be busy.
const (
	readyTimeout = 120 * time.Second
	stopTimeout  = 60 * time.Second
	pollInterval = 50 * time.Millisecond
)

// poll calls cond until it says true, fails, or ctx is done; the error then names what was awaited.
func poll(ctx context.Context, what string, cond func() (bool, error)) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		ok, err := cond()
		if err != nil {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
}
