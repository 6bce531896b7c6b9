package main

import (
	"bytes"
	"context"
	"crypto/sha256"
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
	"strconv"
	"strings"
	"syscall"
	"time"

	"segmirror/bench/kafka"
	"segmirror/bench/kafka/dumpcases"
)

//go:embed DumpAll.java
var source []byte

const className = "DumpAll"

// manifest says where the texts come from.
type manifest struct {
	Kafka   string `json:"kafka"`
	Java    string `json:"java"`
	Time    string `json:"time"`
	Command string `json:"command"`
	Shows   string `json:"shows"`
}

func main() {
	out := flag.String("out", "testdata/dumplog", "folder to write into")
	golden := flag.String("golden", "testdata/golden", "the golden images")
	texts := flag.String("texts", "", "folder for the texts of all groups")
	flag.Parse()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *golden, *out, *texts); err != nil {
		log.Error("dump-log examples", slog.Any("err", err))
		os.Exit(3)
	}
}

func run(ctx context.Context, golden, out, texts string) error {
	dir, err := os.MkdirTemp("", "segmirror-dumplog-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // nothing in it is needed any more
	root, printed := filepath.Join(dir, "root"), filepath.Join(dir, "printed")
	if err := errors.Join(os.Mkdir(root, 0o755), os.Mkdir(printed, 0o755)); err != nil {
		return err
	}
	groups, err := dumpcases.Build(golden, root)
	if err != nil {
		return err
	}
	m, err := runAll(ctx, groups, dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	if err := keep(groups, root, printed, out, texts); err != nil {
		return err
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "manifest.json"), append(text, '\n'), 0o644)
}

// errNoCompiler says that javac is not on the PATH.
var errNoCompiler = errors.New("javac is not on the PATH")

// runAll runs every command line in dir/root and leaves what it printed in dir/printed.
func runAll(ctx context.Context, groups []dumpcases.Group, dir string) (manifest, error) {
	javac, err := exec.LookPath("javac")
	if err != nil {
		return manifest{}, errNoCompiler
	}
	dist, err := kafka.Install(ctx)
	if err != nil {
		return manifest{}, err
	}
	var lines strings.Builder
	for _, g := range groups {
		for _, r := range g.Runs {
			lines.WriteString(strings.Join(r.Args, "\t") + "\n")
		}
	}
	list, file := filepath.Join(dir, "lines"), filepath.Join(dir, className+".java")
	err = errors.Join(os.WriteFile(list, []byte(lines.String()), 0o644), os.WriteFile(file, source, 0o644))
	if err != nil {
		return manifest{}, err
	}
	libs := filepath.Join(dist.Libs, "*")
	if _, err := command(ctx, dir, javac, "-cp", libs, "-d", dir, file); err != nil {
		return manifest{}, err
	}
	_, err = command(ctx, filepath.Join(dir, "root"), dist.Java, "-Xmx512m", "-XX:+UseSerialGC", "-Dlog4j2.level=OFF",
		"-Dlog4j2.StatusLogger.level=OFF", "-Dfile.encoding=UTF-8", "-cp", dir+string(os.PathListSeparator)+libs,
		className, list, filepath.Join(dir, "printed"))
	if err != nil {
		return manifest{}, err
	}
	java, err := command(ctx, dir, javac, "-version")
	return manifest{
		Kafka: kafka.Version, Java: java, Time: time.Now().UTC().Format(time.RFC3339),
		Command: "go run ./bench/kafka/dumplog",
		Shows:   "what kafka-dump-log prints of the files of bench/kafka/dumpcases",
	}, err
}

// keep writes what was printed.
func keep(groups []dumpcases.Group, root, printed, out, texts string) error {
	var hashes strings.Builder
	n := 0
	for _, g := range groups {
		var text strings.Builder
		for _, r := range g.Runs {
			result, err := result(r, root, filepath.Join(printed, strconv.Itoa(n)))
			if err != nil {
				return err
			}
			text.WriteString(result)
			n++
		}
		to := out
		if !g.Text {
			fmt.Fprintf(&hashes, "%s %d %x\n", g.Name, len(g.Runs), sha256.Sum256([]byte(text.String())))
			to = texts
		}
		if to == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(to, g.Name+".txt"), []byte(text.String()), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(out, "hashes.txt"), []byte(hashes.String()), 0o644)
}

func result(r dumpcases.Run, root, base string) (string, error) {
	stdout, err := os.ReadFile(base + ".out")
	if err != nil {
		return "", err
	}
	stderr, err := os.ReadFile(base + ".err")
	if err != nil {
		return "", err
	}
	exit, err := os.ReadFile(base + ".exit")
	if err != nil {
		return "", err
	}
	code, err := strconv.Atoi(string(exit))
	return dumpcases.Result(r, root, code, stdout, stderr), err
}

// command runs a program and returns what it printed.
func command(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, stderr.Bytes())
	}
	return strings.TrimSpace(stdout.String()), nil
}
