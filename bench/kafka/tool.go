package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// Class names of Kafka's tools for Tool.
const (
	DumpLogSegments      = "org.apache.kafka.tools.DumpLogSegments"
	TopicCommand         = "org.apache.kafka.tools.TopicCommand"
	ProducerPerformance  = "org.apache.kafka.tools.ProducerPerformance"
	ConsoleConsumer      = "org.apache.kafka.tools.consumer.ConsoleConsumer"
	ReassignPartitions   = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
	MirrorMaker          = "org.apache.kafka.connect.mirror.MirrorMaker"
	toolHeap             = "-Xmx192m"
	toolNoLog            = "-Dlog4j2.level=OFF"
	toolNoStatusMessages = "-Dlog4j2.StatusLogger.level=OFF"
)

// Output is what a tool printed and how it ended.
type Output struct {
	Stdout, Stderr []byte
	ExitCode       int
}

// Tool runs one of Kafka's tools by its class name in a JVM of its own and waits for it. An exit code other than 0 is
// no error. The tool is killed when ctx is done.
func (d Dist) Tool(ctx context.Context, class string, args ...string) (Output, error) {
	return d.ToolIn(ctx, "", class, args...)
}

// ToolIn is Tool with a working directory, for tools whose output repeats the paths they were given.
func (d Dist) ToolIn(ctx context.Context, dir, class string, args ...string) (Output, error) {
	java := []string{
		toolHeap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xshare:auto",
		toolNoLog, toolNoStatusMessages, "-cp", d.Libs + "/*", class,
	}
	cmd := exec.CommandContext(ctx, d.Java, append(java, args...)...)
	cmd.Dir = dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	s := newSpawner()
	defer s.close()
	err := s.start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	out := Output{Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), ExitCode: cmd.ProcessState.ExitCode()}
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		if ws, ok := exit.Sys().(syscall.WaitStatus); !ok || !ws.Signaled() {
			return out, nil
		}
	}
	if err != nil {
		return out, fmt.Errorf("%s: %w", class, errors.Join(err, ctx.Err()))
	}
	return out, nil
}

// ErrDumpFailed says that kafka-dump-log threw; what it printed before is lost.
var ErrDumpFailed = errors.New("kafka-dump-log failed")

// Dump is what kafka-dump-log printed about one file.
type Dump struct {
	File string // as given
	Text string // stdout without the "Dumping" line
}

// DumpFiles runs one kafka-dump-log over many files with the given flags, and cuts its stdout into one piece a file.
// Paths must not hold commas. The reports on stderr, which come after all files, are returned whole.
func (d Dist) DumpFiles(ctx context.Context, files []string, flags ...string) (dumps []Dump, stderr string, err error) {
	return d.DumpFilesIn(ctx, "", files, flags...)
}

// DumpFilesIn is DumpFiles for paths relative to a directory.
func (d Dist) DumpFilesIn(
	ctx context.Context, dir string, files []string, flags ...string,
) (dumps []Dump, stderr string, err error) {
	out, err := d.ToolIn(ctx, dir, DumpLogSegments, append(flags, "--files", strings.Join(files, ","))...)
	if err != nil {
		return nil, "", err
	}
	if out.ExitCode != 0 {
		return nil, "", fmt.Errorf("%w: exit %d\n%s", ErrDumpFailed, out.ExitCode, out.Stderr)
	}
	rest := string(out.Stdout)
	for i, file := range files {
		head := "Dumping " + file + "\n"
		if !strings.HasPrefix(rest, head) {
			return nil, "", fmt.Errorf("kafka-dump-log: no line %q after %d files", strings.TrimSpace(head), i)
		}
		rest = rest[len(head):]
		text := rest
		if i+1 < len(files) {
			next := strings.Index("\n"+rest, "\nDumping "+files[i+1]+"\n")
			if next < 0 {
				return nil, "", fmt.Errorf("kafka-dump-log: %s is not in its output", files[i+1])
			}
			text, rest = rest[:next], rest[next:]
		}
		dumps = append(dumps, Dump{File: file, Text: text})
	}
	return dumps, string(out.Stderr), nil
}

// SkipReason says why no Kafka can be run here: Java or Maven is missing, or the jars cannot be resolved. "" = it can.
func SkipReason(ctx context.Context) string {
	if _, err := Install(ctx); err != nil {
		return err.Error()
	}
	return ""
}

// RequireEnv is the environment variable that, set to 1, turns a missing Kafka from a skipped test into a failed one.
const RequireEnv = "SEGMIRROR_REQUIRE_KAFKA"

// TB is what Require needs of *testing.T and *testing.B.
type TB interface {
	Helper()
	Context() context.Context
	Skipf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Require skips the test, visibly, where no Kafka can be run, and fails it there if RequireEnv is 1.
func Require(tb TB) {
	tb.Helper()
	reason := SkipReason(tb.Context())
	if reason == "" {
		return
	}
	if os.Getenv(RequireEnv) == "1" {
		tb.Fatalf("real Kafka is required (%s=1): %s", RequireEnv, reason)
	}
	tb.Skipf("real Kafka cannot be run here: %s", reason)
}
