package tidy

import (
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testCommand is a command of a document that runs certain tests of a package.
var testCommand = regexp.MustCompile("`go test \\./([\\w/]+) -run '?([^'`]+)'?`")

// A command in a document that matches no test proves nothing and still succeeds.
func TestDocuments_NameTestsThatExist(t *testing.T) {
	tests := make(map[string][]string)
	for _, src := range sources(t) {
		for _, decl := range src.file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && src.test && strings.HasPrefix(fn.Name.Name, "Test") {
				tests[src.dir] = append(tests[src.dir], fn.Name.Name)
			}
		}
	}
	found := 0
	for name, text := range textFiles(t) {
		if path.Ext(name) != ".md" {
			continue
		}
		for _, command := range testCommand.FindAllStringSubmatch(text, -1) {
			found++
			// In a table a bar is written \|.
			for pattern := range strings.SplitSeq(strings.ReplaceAll(command[2], `\|`, "|"), "|") {
				if !anyMatches(regexp.MustCompile(pattern), tests[command[1]]) {
					t.Errorf("%s: %s: no test of ./%s matches %q", name, command[0], command[1], pattern)
				}
			}
		}
	}
	if found < 5 {
		t.Errorf("only %d commands were found in the documents", found)
	}
}

func anyMatches(pattern *regexp.Regexp, names []string) bool {
	for _, name := range names {
		if pattern.MatchString(name) {
			return true
		}
	}
	return false
}

var link = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)

func TestDocuments_LinkToFilesThatExist(t *testing.T) {
	for name, text := range textFiles(t) {
		if path.Ext(name) != ".md" {
			continue
		}
		for _, target := range link.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(root, path.Dir(name), target[1])); err != nil {
				t.Errorf("%s: links to %s: %v", name, target[1], err)
			}
		}
	}
}
