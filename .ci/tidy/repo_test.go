package tidy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// root is the repository's folder as seen from this one, where go test runs the tests.
const root = "../.."

// modulePath is the prefix of the repository's own import paths.
const modulePath = "segmirror"

// source is one parsed Go file.
type source struct {
	name string // path inside the repository, with slashes
	dir  string // folder inside the repository, "." at the top
	test bool
	text string
	file *ast.File
	fset *token.FileSet
}

// line returns the line of a position in the file.
func (s source) line(p token.Pos) int { return s.fset.Position(p).Line }

// textFiles returns the repository's text files that people write: Go, shell, Markdown, YAML, properties and XML.
// Written-by-Kafka test data is left out.
func textFiles(t *testing.T) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(name, root), "/"))
		if entry.IsDir() {
			if rel == ".git" || path.Base(rel) == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		switch path.Ext(rel) {
		case ".go", ".md", ".sh", ".yml", ".yaml", ".properties", ".xml", ".java", ".mod":
		default:
			if rel != ".ci/run" {
				return nil
			}
		}
		body, err := os.ReadFile(name)
		files[rel] = string(body)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 10 {
		t.Fatalf("only %d files under %s: this test looks in the wrong place", len(files), root)
	}
	return files
}

// sources returns every Go file, parsed with comments.
func sources(t *testing.T) []source {
	t.Helper()
	fset := token.NewFileSet()
	var all []source
	for name, text := range textFiles(t) {
		if path.Ext(name) != ".go" {
			continue
		}
		file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, source{
			name: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), text: text, file: file, fset: fset,
		})
	}
	return all
}
