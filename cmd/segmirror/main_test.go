package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"segmirror/replicator"
)

// runCommand runs the program and returns its exit code and what it printed.
func runCommand(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(ctx, append([]string{"segmirror"}, args...), &out, &errs)
	return code, out.String(), errs.String()
}

func TestRun_WrongUsageExits2AndSaysWhatIsWrongOnOneLine(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "keep"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(full, "bad.properties")
	if err := os.WriteFile(bad, []byte("log.dirs=a\nlog.segment.byte=5\nnode.id=x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args []string
		says []string
	}{
		"no command":         {nil, []string{"a command is missing"}},
		"unknown command":    {[]string{"frobnicate"}, []string{`no command "frobnicate"`}},
		"unknown flag":       {[]string{"demo", "--bad"}, []string{"demo:", "-bad"}},
		"global flag":        {[]string{"--bad"}, []string{"-bad"}},
		"agent unconfigured": {[]string{"agent"}, []string{"--config FILE is missing"}},
		"agent's argument":   {[]string{"agent", "--config", "f", "more"}, []string{`unexpected argument "more"`}},
		"override":           {[]string{"agent", "--config", "f", "--override", "a"}, []string{`"a" is not KEY=VALUE`}},
		"log level":          {[]string{"agent", "--config", "f", "--log-level", "loud"}, []string{`"loud"`}},
		"log format":         {[]string{"demo", "--log-format", "xml"}, []string{`"xml"`}},
		"configuration":      {[]string{"agent", "--config", bad}, []string{"log.segment.bytes", "node.id", "; "}},
		"size":               {[]string{"demo", "--size", "big"}, []string{`"big" is not a size`}},
		"small size":         {[]string{"demo", "--size", "1kB"}, []string{"below the least"}},
		"directory in use":   {[]string{"demo", "--dir", full}, []string{"is not empty"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			code, _, stderr := runCommand(t.Context(), tc.args...)
			if code != exitUsage || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "segmirror: ") {
				t.Errorf("exit %d, stderr %q; want %d and one line", code, stderr, exitUsage)
			}
			for _, want := range tc.says {
				if !strings.Contains(stderr, want) {
					t.Errorf("stderr %q does not say %q", stderr, want)
				}
			}
		})
	}
}

func TestRun_AgentWhoseDirectoryIsAFileExits3(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agent.properties")
	if err := os.WriteFile(file, []byte("cluster.id=c\nlog.dirs="+filepath.Join(file, "dir")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := runCommand(t.Context(), "agent", "--config", file)
	if code != exitCouldNot || !strings.Contains(stderr, file) || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit %d, stderr %q; want %d and the path on one line", code, stderr, exitCouldNot)
	}
}

func TestRun_HelpListsOnlyCommandsThatWork(t *testing.T) {
	code, stdout, _ := runCommand(t.Context(), "help")
	if code != exitDone {
		t.Fatalf("exit %d", code)
	}
	for _, command := range newApp(nil, nil).Commands {
		if !strings.Contains(stdout, command.Name) || command.Action == nil || command.Description == "" {
			t.Errorf("%s is not described, or does nothing", command.Name)
		}
		if code, help, _ := runCommand(t.Context(), command.Name, "--help"); code != exitDone ||
			!strings.Contains(help, command.Usage) {
			t.Errorf("%s --help exits %d and prints %q", command.Name, code, help)
		}
	}
}

func TestExitCode_FollowsTheKindOfTheError(t *testing.T) {
	tests := map[string]struct {
		err  error
		want int
	}{
		"none":            {nil, 0},
		"finding":         {findingf("differs"), 1},
		"wrapped finding": {fmt.Errorf("demo: %w", findingf("differs")), 1},
		"usage":           {usagef("what?"), 2},
		"configuration":   {fmt.Errorf("file: %w", replicator.ErrConfig), 2},
		"anything else":   {errors.New("disk on fire"), 3},
		"interrupted":     {context.Canceled, 3},
	}
	for name, tc := range tests {
		if got := exitCode(tc.err); got != tc.want {
			t.Errorf("%s: exit code %d, want %d", name, got, tc.want)
		}
	}
}

func TestOneLine_JoinsWhatErrorsJoinSplits(t *testing.T) {
	got := oneLine(errors.Join(errors.New("first"), fmt.Errorf("second\r\nthird")))
	if got != "first; second; third" {
		t.Errorf("got %q", got)
	}
}
