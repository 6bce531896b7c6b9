package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"segmirror/bench/kafka"
)

//go:embed WriteGolden.java
var source []byte

const (
	className    = "WriteGolden"
	messagesName = "messages.txt"
	manifestName = "manifest.json"
)

// manifest says where the messages come from.
type manifest struct {
	Kafka   string `json:"kafka"`
	Java    string `json:"java"`
	Time    string `json:"time"`
	Command string `json:"command"`
	Shows   string `json:"shows"`
}

func main() {
	out := flag.String("out", "testdata/protocol", "folder to write into")
	flag.Parse()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *out); err != nil {
		log.Error("protocol examples", slog.Any("err", err))
		os.Exit(3)
	}
}

// run writes both files.
func run(ctx context.Context, out string) error {
	messages, m, err := write(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(out, messagesName), messages, 0o644),
		os.WriteFile(filepath.Join(out, manifestName), append(text, '\n'), 0o644))
}

// errNoCompiler says that javac is not on the PATH.
var errNoCompiler = errors.New("javac is not on the PATH")

// write compiles and runs WriteGolden.java and returns what it wrote. errNoCompiler and kafka.ErrMissingTool name what
// has to be installed first.
func write(ctx context.Context) (messages []byte, m manifest, err error) {
	javac, err := exec.LookPath("javac")
	if err != nil {
		return nil, m, errNoCompiler
	}
	dist, err := kafka.Install(ctx)
	if err != nil {
		return nil, m, err
	}
	dir, err := os.MkdirTemp("", "segmirror-protocol-")
	if err != nil {
		return nil, m, err
	}
	defer os.RemoveAll(dir) // nothing in it is needed any more
	file := filepath.Join(dir, className+".java")
	if err := os.WriteFile(file, source, 0o644); err != nil {
		return nil, m, err
	}
	libs := filepath.Join(dist.Libs, "*")
	if _, err := command(ctx, javac, "-cp", libs, "-d", dir, file); err != nil {
		return nil, m, err
	}
	list := filepath.Join(dir, messagesName)
	version, err := command(ctx, dist.Java, "-Dlog4j2.level=OFF", "-Dlog4j2.StatusLogger.level=OFF",
		"-cp", dir+string(os.PathListSeparator)+libs, className, list)
	if err != nil {
		return nil, m, err
	}
	java, err := command(ctx, javac, "-version")
	if err != nil {
		return nil, m, err
	}
	messages, err = os.ReadFile(list)
	return messages, manifest{
		Kafka: version, Java: java, Time: time.Now().UTC().Format(time.RFC3339),
		Command: "go run ./bench/kafka/protocol",
		Shows:   "messages and records encoded by Kafka's protocol types, see WriteGolden.java",
	}, err
}

// command runs a program and returns what it printed.
func command(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, stderr.Bytes())
	}
	return strings.TrimSpace(stdout.String()), nil
}
