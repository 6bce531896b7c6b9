package dumpcases

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Run is one command line. Paths in it are relative to the folder that Build was given.
type Run struct{ Args []string }

// Group are runs whose results are kept together: as text, or only their hash.
type Group struct {
	Name string
	Text bool
	Runs []Run
}

// builder gathers groups and writes their files.
type builder struct {
	golden string // testdata/golden
	root   string
	groups []Group
}

// Build writes the files of all groups below root. golden is testdata/golden.
func Build(golden, root string) ([]Group, error) {
	b := &builder{golden: golden, root: root}
	steps := []func() error{
		b.named, b.names, b.images, b.sweeps, b.indexSweeps, b.texts, b.coordinators, b.metadata, b.controls,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return b.groups, nil
}

// write writes a file below root and returns its name there.
func (b *builder) write(name string, content []byte) (string, error) {
	path := filepath.Join(b.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	return name, os.WriteFile(path, content, 0o644)
}

// group begins a group.
func (b *builder) group(name string, text bool) *Group {
	b.groups = append(b.groups, Group{Name: name, Text: text})
	return &b.groups[len(b.groups)-1]
}

func (g *Group) run(args ...string) { g.Runs = append(g.Runs, Run{Args: args}) }

const (
	logName   = "00000000000000000000.log"
	indexName = "00000000000000000000.index"
	timeName  = "00000000000000000000.timeindex"
)

// codecWords are what a library that decompresses says, which is not Kafka's.
var codecWords = regexp.MustCompile(`(KafkaException: )(?:java|org\.xerial)\.[^\n]*`)

// Result is the text of what a run printed: exit code, stdout, and stderr by sections, in alphabetical order because
// Kafka's depends on the paths. Our own remarks, the words of codecs' libraries, and what a JVM prints behind an
// exception's first line are left out.
func Result(run Run, root string, exit int, stdout, stderr []byte) string {
	var sections []string
	for line := range strings.Lines(strings.ReplaceAll(string(stderr), root+"/", "ROOT/")) {
		switch {
		case strings.HasPrefix(line, "segmirror: "), strings.HasPrefix(line, "\tat "),
			strings.HasPrefix(line, "Caused by: "):
		case len(sections) > 0 && (strings.HasPrefix(line, " ") || strings.HasPrefix(line, "Indexed offset: ")):
			sections[len(sections)-1] += line
		default:
			sections = append(sections, codecWords.ReplaceAllString(line, "$1"))
		}
	}
	slices.Sort(sections)
	out := strings.ReplaceAll(string(stdout), root+"/", "ROOT/")
	return fmt.Sprintf("$ %s\n%s=> %d\n%s\n", strings.Join(run.Args, " "), endLine(out), exit, strings.Join(sections, ""))
}

// endLine ends text that stops in a line, so that it can be told from text that does not.
func endLine(text string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		return text + "%\n"
	}
	return text
}
