package dump

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"segmirror/bench/kafka/dumpcases"
)

// dumpTexts is where "go run ./bench/kafka/dumplog -texts" has left the texts of which testdata has only hashes.
var dumpTexts = flag.String("dumptexts", "", "folder of the texts behind testdata/dumplog/hashes.txt")

const answers = "../testdata/dumplog"

// TestRun_PrintsWhatKafkaPrints runs every command line of the examples and compares with what Kafka 4.3.1 answered.
func TestRun_PrintsWhatKafkaPrints(t *testing.T) {
	golden, err := filepath.Abs("../testdata/golden")
	if err != nil {
		t.Fatal(err)
	}
	hashes := readHashes(t)
	texts, err := filepath.Abs(answers)
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	groups, err := dumpcases.Build(golden, root)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	for _, g := range groups {
		t.Run(g.Name, func(t *testing.T) {
			var got strings.Builder
			for _, r := range g.Runs {
				got.WriteString(result(t, r, root))
			}
			sum := fmt.Sprintf("%d %x", len(g.Runs), sha256.Sum256([]byte(got.String())))
			if !g.Text && hashes[g.Name] == sum {
				return
			}
			from := texts
			if !g.Text {
				from = *dumpTexts
			}
			want, err := os.ReadFile(filepath.Join(from, g.Name+".txt"))
			if err != nil {
				t.Fatalf("got %s, Kafka's text has %s", sum, hashes[g.Name])
			}
			firstDifferences(t, got.String(), string(want))
		})
	}
}

func readHashes(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(answers, "hashes.txt"))
	if err != nil {
		t.Fatal(err)
	}
	hashes := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, sum, _ := strings.Cut(strings.TrimSpace(line), " ")
		hashes[name] = sum
	}
	return hashes
}

// result runs one command line as the command does.
func result(t *testing.T, r dumpcases.Run, root string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	exit := 0
	opts, err := Parse(r.Args)
	if err == nil {
		err = Run(context.Background(), opts, &stdout, &stderr, UTF8)
	}
	var thrown *Exception
	var usage *UsageError
	switch {
	case err == nil:
	case errors.As(err, &thrown):
		exit = 1
		fmt.Fprintf(&stderr, "Exception in thread \"main\" %s\n", thrown.Error())
	case errors.Is(err, ErrFaults), errors.As(err, &usage):
		exit = 1
	default:
		t.Fatal(err)
	}
	return dumpcases.Result(r, root, exit, stdout.Bytes(), stderr.Bytes())
}

// firstDifferences shows the first runs that differ.
func firstDifferences(t *testing.T, got, want string) {
	t.Helper()
	gotRuns, wantRuns := strings.Split(got, "\n$ "), strings.Split(want, "\n$ ")
	shown := 0
	for i := range max(len(gotRuns), len(wantRuns)) {
		var g, w string
		if i < len(gotRuns) {
			g = gotRuns[i]
		}
		if i < len(wantRuns) {
			w = wantRuns[i]
		}
		if g == w {
			continue
		}
		if shown++; shown > 5 {
			continue
		}
		gotLines, wantLines := strings.Split(g, "\n"), strings.Split(w, "\n")
		for j := range max(len(gotLines), len(wantLines)) {
			var gl, wl string
			if j < len(gotLines) {
				gl = gotLines[j]
			}
			if j < len(wantLines) {
				wl = wantLines[j]
			}
			if gl != wl {
				t.Errorf("%s\n line %d\n  got %q\n want %q", gotLines[0], j+1, gl, wl)
				break
			}
		}
	}
	if shown > 0 {
		t.Errorf("%d of %d runs differ", shown, len(wantRuns))
	}
}
