package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"segmirror/bench/kafka"
)

// metadataDir is the controller's own log, left out of the images.
const metadataDir = "__cluster_metadata-0"

// shows says how each image came about.
var shows = map[string]string{
	"clean": "after an orderly stop, with one transaction open",
	"killed": "after kill -9: preallocated index files of active segments, no clean shutdown marker, " +
		"two transactions open",
	"recovered": "killed, after the restart that recovered it and an orderly stop",
	"rebuilt": "recovered, after a start that found only the .log files, partition.metadata and log start offsets, " +
		"and an orderly stop",
	"tv1": "after an orderly stop of a cluster with transaction.version 1: markers carry the epoch of the data",
}

// manifest says how an image was made.
type manifest struct {
	Kafka        string            `json:"kafka"`
	Java         string            `json:"java"`
	Time         string            `json:"time"`
	Command      string            `json:"command"`
	Shows        string            `json:"shows"`
	BrokerProps  map[string]string `json:"brokerProps"`
	TopicConfigs map[string]string `json:"topicConfigs"`
	Topics       []topic           `json:"topics"`
	DumpErrors   map[string]string `json:"dumpErrors,omitempty"` // files Kafka's dump tool could not print, and why
}

// image copies the log dir as it stands into out/name/logdir and writes what kafka-dump-log prints of its files to
// out/name/dump.
func (w *writer) image(ctx context.Context, name string) error {
	w.log.Info("image", slog.String("name", name))
	root := filepath.Join(w.out, name)
	logDir := filepath.Join(root, "logdir")
	if err := copyLogDir(w.cluster.Broker(1).LogDirs[0], logDir); err != nil {
		return err
	}
	java, err := exec.CommandContext(ctx, w.cluster.Dist().Java, "--version").Output()
	if err != nil {
		return err
	}
	m := manifest{
		Kafka: kafka.Version, Java: strings.SplitN(string(java), "\n", 2)[0], Time: time.Now().UTC().Format(time.RFC3339),
		Command: "go run ./bench/kafka/golden", Shows: shows[name], BrokerProps: brokerProps, TopicConfigs: topicConfigs,
		Topics: w.topics, DumpErrors: map[string]string{},
	}
	if err := w.dump(ctx, root, &m); err != nil {
		return err
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "manifest.json"), append(text, '\n'), 0o644)
}

// copyLogDir copies partition directories, checkpoints and meta.properties of a stopped broker.
func copyLogDir(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && (d.Name() == metadataDir || strings.HasSuffix(d.Name(), "-delete")):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		case d.Name() == "bootstrap.checkpoint" || d.Name() == ".lock":
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), data, 0o644)
	})
}

// dump writes dump/<partition>/<file>.txt for every .log (deep), index and snapshot, <file>.data.txt for the .log
// files of clean with their keys and values, and dump/stderr.<kind>.txt where the tool reported something.
func (w *writer) dump(ctx context.Context, root string, m *manifest) error {
	logDir := filepath.Join(root, "logdir")
	files, err := filepath.Glob(filepath.Join(logDir, "*-0", "*"))
	if err != nil {
		return err
	}
	kinds := map[string][]string{}
	for _, f := range files {
		rel, err := filepath.Rel(logDir, f)
		if err != nil {
			return err
		}
		kinds[filepath.Ext(f)] = append(kinds[filepath.Ext(f)], rel)
	}
	for _, run := range []struct{ ext, suffix, flag, not string }{
		{".log", ".txt", "--deep-iteration", "recovered rebuilt"}, // their logs are those of killed
		{".log", ".data.txt", "--print-data-log", "killed recovered rebuilt tv1"},
		{".index", ".txt", "", ""},
		{".timeindex", ".txt", "", ""},
		{".txnindex", ".txt", "", ""},
		{".snapshot", ".txt", "", ""},
	} {
		if strings.Contains(run.not, filepath.Base(root)) {
			continue
		}
		var flags []string
		if run.flag != "" {
			flags = append(flags, run.flag)
		}
		d := dumper{dist: w.cluster.Dist(), root: root, suffix: run.suffix, flags: flags, errors: m.DumpErrors}
		if err := d.dump(ctx, kinds[run.ext]); err != nil {
			return err
		}
	}
	return nil
}

// dumper dumps files of one kind.
type dumper struct {
	dist   kafka.Dist
	root   string // of the image
	suffix string // of the texts' names
	flags  []string
	errors map[string]string // files the tool threw at
}

// dump dumps the files in one JVM, and one by one if the tool throws at one of them, as it does at the preallocated
// indexes of empty segments.
func (u dumper) dump(ctx context.Context, files []string) error {
	if len(files) == 0 {
		return nil
	}
	dumps, stderr, err := u.dist.DumpFilesIn(ctx, filepath.Join(u.root, "logdir"), files, u.flags...)
	if errors.Is(err, kafka.ErrDumpFailed) && len(files) > 1 {
		for f := range slices.Values(files) {
			if err := u.dump(ctx, []string{f}); err != nil {
				return err
			}
		}
		return nil
	}
	if errors.Is(err, kafka.ErrDumpFailed) {
		u.errors[files[0]] = firstException(err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	for _, d := range dumps {
		path := filepath.Join(u.root, "dump", d.File+u.suffix)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(d.Text), 0o644); err != nil {
			return err
		}
	}
	if stderr == "" {
		return nil
	}
	abs, err := filepath.Abs(filepath.Join(u.root, "logdir"))
	if err != nil {
		return err
	}
	name := fmt.Sprintf("stderr%s%s", filepath.Ext(files[0]), u.suffix)
	return os.WriteFile(filepath.Join(u.root, "dump", name), []byte(strings.ReplaceAll(stderr, abs+"/", "")), 0o644)
}

// firstException picks the exception out of a stack trace.
func firstException(text string) string {
	for line := range strings.SplitSeq(text, "\n") {
		if i := strings.Index(line, "Exception"); i >= 0 {
			return strings.TrimSpace(line)
		}
	}
	return text
}
