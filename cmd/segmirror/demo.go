package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"segmirror/replicator"
)

const demoDescription = `Starts a Kafka cluster inside this process, producers of every kind (each codec, idempotent,
transactions committed, aborted and left open, records without key or value), and an agent that mirrors
it all into partition directories. Then it stops the agent, fetches every batch again with another client
to compare it byte by byte with the mirror's files, checks every directory, and opens it once more as a
restart would.

Exits 0 only if everything held, 1 if something differs.`

func demoCommand() *cli.Command {
	return &cli.Command{
		Name:        "demo",
		Usage:       "mirror an embedded cluster under live producers and prove the result; needs nothing installed",
		ArgsUsage:   " ",
		Description: demoDescription,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "dir", Usage: "keep the mirrored directories in `DIR`, which must be empty or absent"},
			&cli.StringFlag{Name: "size", Value: "256MiB", Usage: "how much to produce, before compression"},
		}, demoLogFlags()...),
		Action: runDemo,
	}
}

// demoLogFlags are the agent's, quiet unless asked.
func demoLogFlags() []cli.Flag {
	flags := logFlags()
	flags[0].(*cli.StringFlag).Value = "warn"
	return flags
}

// demo is one run.
type demo struct {
	out       io.Writer
	log       *slog.Logger
	dir       string // the agent's log directory
	size      int64
	source    *demoSource
	producers *demoProducers
}

func runDemo(c *cli.Context) error {
	if c.Args().Present() {
		return usagef("demo: unexpected argument %q", c.Args().First())
	}
	size, err := parseSize(c.String("size"))
	if err != nil {
		return usagef("demo: --size: %w", err)
	}
	if size < demoMinimumSize {
		return usagef("demo: --size %s is below the least, %s", c.String("size"), formatSize(demoMinimumSize))
	}
	log, err := newLogger(c, c.App.ErrWriter)
	if err != nil {
		return err
	}
	dir, remove, err := demoDir(c.String("dir"))
	if err != nil {
		return err
	}
	d := &demo{out: c.App.Writer, log: log, dir: dir, size: size}
	err = d.run(c.Context)
	if errors.Is(err, context.Canceled) {
		err = errors.New("demo: interrupted, nothing is proved")
	}
	return errors.Join(err, remove())
}

// demoDir makes the directory of the mirror and returns what removes it: nothing where the user named it.
func demoDir(name string) (string, func() error, error) {
	if name == "" {
		dir, err := os.MkdirTemp("", "segmirror-demo-")
		return dir, func() error { return os.RemoveAll(dir) }, err
	}
	dir, err := filepath.Abs(name)
	if err != nil {
		return "", nil, err
	}
	entries, err := os.ReadDir(dir)
	switch {
	case err == nil && len(entries) > 0:
		return "", nil, usagef("demo: --dir %s is not empty", name)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return "", nil, err
	}
	return dir, func() error { return nil }, os.MkdirAll(dir, 0o755)
}

func (d *demo) run(ctx context.Context) error {
	source, err := startDemoSource(ctx)
	if err != nil {
		return err
	}
	defer source.Close()
	d.source, d.producers = source, newDemoProducers(source.cluster.ListenAddrs())
	defer d.producers.close()
	fmt.Fprintf(d.out, "source: an embedded cluster of %d brokers at %s\n", demoBrokers, source.bootstrap())

	// A backlog that the mirror has to catch up with, then producers that write while it mirrors.
	backlog := d.size / 2
	began := time.Now()
	if err := d.producers.run(ctx, backlog); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "backlog: %s records of %d bytes in %.1f s\n", formatCount(d.producers.produced.records.Load()),
		demoValueBytes, time.Since(began).Seconds())
	if err := d.mirror(ctx, d.size-backlog); err != nil {
		return err
	}
	produced := &d.producers.produced
	fmt.Fprintf(d.out, "produced: %s records; codecs none, lz4, snappy, zstd, gzip; transactions: %d committed, "+
		"%d aborted, 1 left open\n", formatCount(produced.records.Load()), produced.committed.Load(), produced.aborted.Load())
	return d.prove(ctx)
}

// mirror runs an agent until it has caught up with the backlog and with live bytes more, then stops it cleanly.
func (d *demo) mirror(ctx context.Context, live int64) error {
	cfg, err := replicator.ParseConfig(map[string]string{
		"cluster.id":                          demoIdentity.ClusterID,
		"node.id":                             strconv.Itoa(int(demoIdentity.NodeID)),
		"log.dirs":                            d.dir,
		"mirrors":                             "demo",
		"mirror.demo.bootstrap.servers":       d.source.bootstrap(),
		"mirror.demo.mirror.topics.include":   ".*",
		"mirror.demo.mirror.fetch.backoff.ms": "100",
	}, nil)
	if err != nil {
		return err
	}
	agent, err := replicator.New(cfg, d.log)
	if err != nil {
		return err
	}
	agentCtx, stop := context.WithCancel(ctx)
	stopped := make(chan error, 1)
	go func() { stopped <- agent.Run(agentCtx) }() // ends with agentCtx, waited for below
	err = d.follow(ctx, agent, live)
	stop()
	if runErr := <-stopped; runErr != nil {
		err = errors.Join(err, fmt.Errorf("agent: %w", runErr))
	}
	return err
}

// follow watches the agent catch up with the backlog, then with the live producers.
func (d *demo) follow(ctx context.Context, agent *replicator.Agent, live int64) error {
	// Every record and a few markers more: the bar is exact at its end.
	total := recordsOf(d.size, 1) + recordsInTxn
	bar := newProgress(d.out, "mirroring", int64(total))
	defer bar.finish()
	began := time.Now()
	if err := d.catchUp(ctx, agent, bar); err != nil {
		return err
	}
	caught := time.Since(began)
	bytes := mirroredBytes(agent.Status())
	producing := make(chan error, 1)
	go func() { // ends with the producers, which ctx stops; waited for below
		err := d.producers.run(ctx, live)
		if err == nil {
			err = d.producers.leaveOpen(ctx)
		}
		producing <- err
	}()
	err := d.watchUntil(ctx, agent, bar, producing)
	if err == nil {
		err = d.catchUp(ctx, agent, bar)
	}
	if err != nil {
		return err
	}
	bar.finish()
	all := mirroredBytes(agent.Status())
	fmt.Fprintf(d.out, "mirrored: backlog %s in %.2f s, %.0f MB/s; live %s, caught up %.1f s after the start\n",
		formatSize(bytes), caught.Seconds(), float64(bytes)/1e6/caught.Seconds(), formatSize(all-bytes),
		time.Since(began).Seconds())
	return nil
}

// pollEvery is how often the agent's figures are looked at.
const pollEvery = 20 * time.Millisecond

// watchUntil shows the mirror's progress until done delivers.
func (d *demo) watchUntil(ctx context.Context, agent *replicator.Agent, bar *progress, done <-chan error) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			status := agent.Status()
			if err := failedPartition(status); err != nil && ctx.Err() == nil {
				d.log.Warn("the demo's mirror has trouble", slog.Any("err", err))
			}
			bar.show(mirroredRecords(status), mirroredBytes(status))
		}
	}
}

// catchUpWithin bounds the wait for a mirror that does not move.
const catchUpWithin = 60 * time.Second

// catchUp waits until every partition's end is the source's.
func (d *demo) catchUp(ctx context.Context, agent *replicator.Agent, bar *progress) error {
	ends, err := d.source.ends(ctx)
	if err != nil {
		return err
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	records, moved := int64(-1), time.Now()
	for {
		status := agent.Status()
		bar.show(mirroredRecords(status), mirroredBytes(status))
		behind := firstBehind(status, ends)
		if behind == "" {
			return nil
		}
		if now := mirroredRecords(status); now != records {
			records, moved = now, time.Now()
		}
		if time.Since(moved) > catchUpWithin {
			return errors.Join(fmt.Errorf("the mirror stands still: %s", behind), failedPartition(status))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
