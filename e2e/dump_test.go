package e2e

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"segmirror/bench/kafka"
)

// segmentFiles lists a partition directory's files with the extension, by base offset.
func segmentFiles(t *testing.T, dir, ext string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"+ext))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// dumpText is what kafka-dump-log --deep-iteration prints of a partition's .log files, without what depends on where
// its segments begin: headings, positions, and on stderr the file names and the report that a file does not begin at
// 0.
type dumpText struct {
	stdout []string
	stderr []string
}

var (
	position   = regexp.MustCompile(` position: \d+`)
	segmentIn  = regexp.MustCompile(`^(Non-consecutive offsets in ).*`)
	firstBatch = regexp.MustCompile(`^\s+-1 is followed by \d+$`)
)

// dumpLogs dumps the .log files of several partition directories in one JVM.
func dumpLogs(t *testing.T, dist kafka.Dist, dirs []string) []dumpText {
	t.Helper()
	var files []string
	for _, dir := range dirs {
		files = append(files, segmentFiles(t, dir, ".log")...)
	}
	dumps, stderr, err := dist.DumpFiles(t.Context(), files, "--deep-iteration")
	if err != nil {
		t.Fatal(err)
	}
	texts := make([]dumpText, len(dirs))
	for _, d := range dumps {
		i := indexOfDir(dirs, d.File)
		for line := range strings.Lines(d.Text) {
			if !strings.HasPrefix(line, "Log starting offset: ") {
				texts[i].stdout = append(texts[i].stdout, position.ReplaceAllString(strings.TrimSpace(line), ""))
			}
		}
	}
	addReports(texts, dirs, stderr)
	return texts
}

// addReports shares out the reports on stderr, each of which is a heading with a file's path and indented lines.
func addReports(texts []dumpText, dirs []string, stderr string) {
	i := -1
	for line := range strings.Lines(stderr) {
		line = strings.TrimRight(line, "\n")
		if !strings.HasPrefix(line, " ") {
			i = indexOfDir(dirs, line[strings.Index(line, "/"):])
			if !segmentIn.MatchString(line) {
				texts[i].stderr = append(texts[i].stderr, line)
			}
			continue
		}
		if !firstBatch.MatchString(line) {
			texts[i].stderr = append(texts[i].stderr, line)
		}
	}
}

func indexOfDir(dirs []string, file string) int {
	for i, dir := range dirs {
		if filepath.Dir(file) == dir {
			return i
		}
	}
	panic("BUG: " + file + " is in none of the directories")
}

// firstLineThatDiffers compares two texts line by line.
func firstLineThatDiffers(a, b []string) (line int, inA, inB string, differ bool) {
	for i := range max(len(a), len(b)) {
		var x, y string
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return i + 1, x, y, true
		}
	}
	return 0, "", "", false
}
