package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"segmirror/bench/kafka"
)

func main() {
	out := flag.String("out", "testdata/golden", "folder to write; what it holds is replaced")
	flag.Parse()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, log, *out); err != nil {
		log.Error("golden directories", slog.Any("err", err))
		os.Exit(3)
	}
}

// run writes the images of both clusters.
func run(ctx context.Context, log *slog.Logger, out string) error {
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := mainImages(ctx, log, out); err != nil {
		return err
	}
	return tv1Image(ctx, log, out)
}

// mainImages runs one broker through its life: clean is taken after an orderly stop, killed after kill -9, recovered
// after the restart that followed and another orderly stop, and rebuilt after a start with nothing but the .log files.
func mainImages(ctx context.Context, log *slog.Logger, out string) (err error) {
	w, err := newWriter(ctx, log, out, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.cluster.Close()) }()
	b := w.cluster.Broker(1)
	if err := errors.Join(w.createTopics(ctx), w.first(ctx)); err != nil {
		return err
	}
	if err := b.Restart(ctx); err != nil { // leader epochs 0 and 2
		return err
	}
	if err := errors.Join(w.second(ctx), b.Stop(ctx), w.image(ctx, "clean")); err != nil {
		return err
	}
	if err := errors.Join(b.Start(ctx), w.third(ctx), b.Kill(), w.image(ctx, "killed")); err != nil {
		return err
	}
	if err := errors.Join(b.Start(ctx), w.awaitLeaders(ctx), b.Stop(ctx), w.image(ctx, "recovered")); err != nil {
		return err
	}
	if err := keepLogsOnly(b.LogDirs[0]); err != nil {
		return err
	}
	return errors.Join(b.Start(ctx), w.awaitLeaders(ctx), b.Stop(ctx), w.image(ctx, "rebuilt"))
}

// tv1Image shows the transaction protocol before transaction.version 2: markers carry the epoch of the data.
func tv1Image(ctx context.Context, log *slog.Logger, out string) (err error) {
	w, err := newWriter(ctx, log, out, map[string]int{"transaction.version": 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.cluster.Close()) }()
	w.topics = []topic{topicNamed("txn")}
	b := w.cluster.Broker(1)
	return errors.Join(w.createTopics(ctx), w.transactions(ctx), b.Stop(ctx), w.image(ctx, "tv1"))
}

// writer drives one broker and copies its log dir.
type writer struct {
	log     *slog.Logger
	out     string
	cluster *kafka.Cluster
	topics  []topic
}

func newWriter(ctx context.Context, log *slog.Logger, out string, features map[string]int) (*writer, error) {
	c, err := kafka.Start(ctx, kafka.Config{Brokers: 1, Props: brokerProps, Features: features})
	if err != nil {
		return nil, err
	}
	return &writer{log: log, out: out, cluster: c, topics: topics}, nil
}

// createTopics creates the writer's topics.
func (w *writer) createTopics(ctx context.Context) error {
	for _, t := range w.topics {
		configs := map[string]string{}
		for _, m := range []map[string]string{topicConfigs, t.Configs} {
			for k, v := range m {
				configs[k] = v
			}
		}
		if err := w.cluster.CreateTopic(ctx, kafka.TopicSpec{Name: t.Name, Configs: configs}); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) awaitLeaders(ctx context.Context) error {
	for _, t := range w.topics {
		if err := w.cluster.AwaitLeaders(ctx, t.Name, 1); err != nil {
			return err
		}
	}
	return nil
}

// dir is where the broker keeps partition 0 of a topic.
func (w *writer) dir(topic string) string {
	return w.cluster.Broker(1).PartitionDir(topic, 0)
}

// await polls cond, which looks at the broker's files, for up to a minute.
func await(ctx context.Context, what string, cond func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := cond()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
}

// keepLogsOnly removes from a stopped broker's log dir all that it can rebuild from the .log files.
func keepLogsOnly(logDir string) error {
	for _, pattern := range []string{
		"*-0/*.index", "*-0/*.timeindex", "*-0/*.txnindex", "*-0/*.snapshot", "[a-z]*-0/leader-epoch-checkpoint",
		"recovery-point-offset-checkpoint", ".kafka_cleanshutdown",
	} {
		files, err := filepath.Glob(filepath.Join(logDir, pattern))
		if err != nil {
			return err
		}
		for _, f := range files {
			if filepath.Base(filepath.Dir(f)) == metadataDir {
				continue // the controller's own log, which has other rules
			}
			if err := os.Remove(f); err != nil {
				return err
			}
		}
	}
	return nil
}
