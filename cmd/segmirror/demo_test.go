package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"segmirror/compare"
)

func TestDemo_ProvesASmallMirrorAndKeepsItsDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mirror")
	code, stdout, stderr := runCommand(t.Context(), "demo", "--size", "8MiB", "--dir", dir)
	if code != exitDone || stderr != "" {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	if n := strings.Count(stdout, "proved: "); n != 3 {
		t.Errorf("%d things proved, want 3:\n%s", n, stdout)
	}
	for _, topic := range demoTopics {
		logs, err := filepath.Glob(filepath.Join(dir, topic.name+"-0", "*.log"))
		if err != nil || len(logs) == 0 {
			t.Errorf("%s-0 has no segment left (%v)", topic.name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, ".kafka_cleanshutdown")); err != nil {
		t.Errorf("the log directory is not left as after an orderly stop: %v", err)
	}
}

func TestDemo_InterruptedRemovesItsDirectoryAndProvesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, stdout, stderr := runCommand(ctx, "demo", "--size", "4MiB")
	if code != exitCouldNot || !strings.Contains(stderr, "interrupted") || strings.Contains(stdout, "proved") {
		t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) > 0 {
		t.Errorf("%d entries are left behind (%v)", len(left), err)
	}
}

func TestJudge_AcceptsOnlyTheWholeRange(t *testing.T) {
	end := demoEnds{topic: "t", partition: 1, start: 5, end: 10}
	good := compare.Result{From: 5, To: 10, Batches: 1}
	if err := judge(end, good); err != nil {
		t.Errorf("the whole range is refused: %v", err)
	}
	tests := map[string]func(*compare.Result){
		"a difference":  func(r *compare.Result) { r.Different = &compare.Difference{Offset: 7, Field: "crc"} },
		"missing tail":  func(r *compare.Result) { r.To, r.TailOnlyB = 8, compare.Range{From: 8, To: 10} },
		"missing head":  func(r *compare.Result) { r.From, r.HeadOnlyB = 7, compare.Range{From: 5, To: 7} },
		"too much":      func(r *compare.Result) { r.TailOnlyA = compare.Range{From: 10, To: 12} },
		"both too late": func(r *compare.Result) { r.From = 7 },
		"both too soon": func(r *compare.Result) { r.To = 8 },
		"nothing":       func(r *compare.Result) { *r = compare.Result{} },
	}
	for name, change := range tests {
		bad := good
		change(&bad)
		if err := judge(end, bad); err == nil || !strings.Contains(err.Error(), "t-1") {
			t.Errorf("%s: %v, want an error that names t-1", name, err)
		}
	}
}
