package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"segmirror/bench/kafka"
	"segmirror/dump"
)

// TestDumpLog_PrintsABrokersLogDirAsKafkaDoes copies the log dir of a broker that is being written to and compares what
// both tools print of every file, whole and in the same order.
func TestDumpLog_PrintsABrokersLogDirAsKafkaDoes(t *testing.T) {
	kafka.Require(t)
	cluster, err := kafka.Start(t.Context(), kafka.Config{Brokers: 1, Props: map[string]string{
		"offsets.topic.num.partitions": "2", "log.index.size.max.bytes": "4096", "metadata.log.max.snapshot.interval.ms": "1",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	dir := busyLogDir(t, cluster)
	all := filesBelow(t, dir)
	logs := ofKind(all, ".log", ".checkpoint")
	in := func(topic string) []string {
		return slices.DeleteFunc(slices.Clone(logs), func(f string) bool { return !strings.Contains(f, "/"+topic) })
	}
	for name, run := range map[string]struct {
		files []string
		flags []string
	}{
		"deep":         {slices.Concat(logs, ofKind(all, ".snapshot", ".txnindex")), []string{"--print-data-log"}},
		"indexes":      {ofKind(all, ".index", ".timeindex"), nil},
		"offsets":      {in("__consumer_offsets"), []string{"--offsets-decoder"}},
		"transactions": {in("__transaction_state"), []string{"--transaction-log-decoder", "--skip-record-metadata"}},
		"metadata":     {in("__cluster_metadata"), []string{"--cluster-metadata-decoder"}},
	} {
		t.Run(name, func(t *testing.T) {
			if len(run.files) == 0 {
				t.Fatal("the broker has no such files")
			}
			compareDumps(t, cluster.Dist(), run.files, run.flags)
		})
	}
}

// busyLogDir makes a broker write all that it can write, and copies its log dir meanwhile.
func busyLogDir(t *testing.T, cluster *kafka.Cluster) string {
	t.Helper()
	ctx := t.Context()
	for _, topic := range []string{"plain", "txn"} {
		spec := kafka.TopicSpec{Name: topic, Partitions: 2, Configs: map[string]string{
			"internal.segment.bytes": "60000", "index.interval.bytes": "500",
		}}
		if err := cluster.CreateTopic(ctx, spec); err != nil {
			t.Fatal(err)
		}
	}
	live := cluster.StartLive(ctx, kafka.LiveTopic{Name: "plain", Partitions: 2, Codecs: kafka.Codecs()},
		kafka.LiveTopic{Name: "txn", Partitions: 2, Transactional: true})
	consumeInGroup(t, cluster)
	adm := cluster.Admin()
	quota := 1000.5
	_, err := adm.AlterClientQuotas(ctx, []kadm.AlterClientQuotaEntry{{
		Entity: kadm.ClientQuotaEntity{{Type: "user", Name: kadm.StringPtr("é\"x")}},
		Ops:    []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: quota}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = adm.AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{{
		User: "u", Mechanism: kadm.ScramSha256, Iterations: 4096, Password: "p",
	}})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "some hundred batches", func() (bool, string) {
		stats := live.Stats()
		return stats.Batches > 400, fmt.Sprintf("%+v", stats)
	})
	dir := filepath.Join(t.TempDir(), "copy")
	copyWhileWritten(t, cluster.Broker(1).LogDirs[0], dir)
	live.Stop()
	return dir
}

// consumeInGroup reads as a member of a classic group, commits and leaves.
func consumeInGroup(t *testing.T, cluster *kafka.Cluster) {
	t.Helper()
	cl, err := cluster.NewClient(kgo.ConsumerGroup("group"), kgo.ConsumeTopics("plain", "txn"), kgo.DisableAutoCommit())
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if fetches := cl.PollFetches(ctx); fetches.Err() != nil {
		t.Fatal(fetches.Err())
	}
	if err := cl.CommitUncommittedOffsets(ctx); err != nil {
		t.Fatal(err)
	}
}

// copyWhileWritten copies a log dir's files, indexes before their logs, so that no entry lies behind its log's end.
func copyWhileWritten(t *testing.T, from, to string) {
	t.Helper()
	for _, logs := range []bool{false, true} {
		err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			rel, relErr := filepath.Rel(from, path)
			if err = errors.Join(err, relErr); err != nil || d.IsDir() {
				return errors.Join(err, os.MkdirAll(filepath.Join(to, rel), 0o755))
			}
			if strings.HasSuffix(path, ".log") != logs {
				return nil
			}
			content, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return errors.Join(err, os.WriteFile(filepath.Join(to, rel), content, 0o644))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func filesBelow(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func ofKind(files []string, suffixes ...string) []string {
	return slices.DeleteFunc(slices.Clone(files), func(f string) bool { return !slices.Contains(suffixes, filepath.Ext(f)) })
}

// compareDumps runs both tools over files of which none makes Kafka's stop, and over the first that does.
func compareDumps(t *testing.T, dist kafka.Dist, files, flags []string) {
	t.Helper()
	var good []string
	stopped := ""
	for _, file := range files {
		if _, _, exit := dumpOurs(t, []string{file}, flags); exit == 0 {
			good = append(good, file)
		} else if stopped == "" {
			stopped = file
		}
	}
	if stopped != "" {
		good = append(good, stopped)
	}
	stdout, stderr, exit := dumpOurs(t, good, flags)
	want, err := dist.Tool(t.Context(), kafka.DumpLogSegments, append(slices.Clone(flags), "--files", strings.Join(good, ","))...)
	if err != nil {
		t.Fatal(err)
	}
	if exit != want.ExitCode {
		t.Errorf("exit %d, Kafka's %d", exit, want.ExitCode)
	}
	for stream, text := range map[string][2]string{
		"stdout": {stdout, string(want.Stdout)}, "stderr": {withoutTraces(stderr), withoutTraces(string(want.Stderr))},
	} {
		line, ours, theirs, differ := firstLineThatDiffers(strings.Split(text[0], "\n"), strings.Split(text[1], "\n"))
		if differ {
			t.Errorf("%s, line %d of %d files:\nours   %s\nKafka's %s", stream, line, len(good), ours, theirs)
		}
	}
	t.Logf("%d of %d files, %d bytes the same", len(good), len(files), len(stdout))
}

// withoutTraces leaves out what a JVM prints behind an exception, and our own remarks.
func withoutTraces(stderr string) string {
	var b strings.Builder
	for line := range strings.Lines(stderr) {
		if !strings.HasPrefix(line, "\tat ") && !strings.HasPrefix(line, "Caused by: ") && !strings.HasPrefix(line, "segmirror: ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func dumpOurs(t *testing.T, files, flags []string) (stdout, stderr string, exit int) {
	t.Helper()
	opts, err := dump.Parse(append(slices.Clone(flags), "--files", strings.Join(files, ",")))
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	err = dump.Run(t.Context(), opts, &out, &errs, dump.LocaleCharset())
	if err != nil && !errors.Is(err, dump.ErrFaults) {
		t.Fatal(err)
	}
	if err != nil {
		exit = 1
	}
	return out.String(), errs.String(), exit
}
