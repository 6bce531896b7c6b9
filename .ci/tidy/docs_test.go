package tidy

import (
	"go/ast"
	"go/doc/comment"
	"path"
	"slices"
	"strings"
	"testing"
)

// headings are those that a package's doc.go must show to go doc.
var headings = map[string][]string{
	"index":      {"What", "Layout", "Invariants", "Concurrency", "Crash contract"},
	"psm":        {"What", "Layout", "Invariants", "Concurrency", "Crash contract"},
	"segment":    {"What", "Layout", "Invariants", "Concurrency", "Crash contract"},
	"fetchwire":  {"What", "Layout", "Invariants", "Concurrency", "Crash contract"},
	"replicator": {"What", "Layout", "Invariants", "Concurrency", "Crash contract"},
}

func TestPackages_HaveADocWithHeadings(t *testing.T) {
	docs, exists := make(map[string]string), make(map[string]bool)
	for _, src := range sources(t) {
		exists[src.dir] = exists[src.dir] || !src.test
		if src.file.Doc != nil && path.Base(src.name) == "doc.go" {
			docs[src.dir] = src.file.Doc.Text()
		}
	}
	for dir := range arrows {
		text, found := docs[dir]
		if !found && exists[dir] {
			t.Errorf("%s: no doc.go with a package comment directly above its package clause", dir)
		}
		if !found {
			continue
		}
		want := headings[dir]
		if want == nil {
			want = []string{"What"}
		}
		seen := docHeadings(text)
		for _, heading := range want {
			if !slices.Contains(seen, heading) {
				t.Errorf("%s/doc.go: go doc shows no heading %q (it shows %q)", dir, heading, seen)
			}
		}
	}
}

// docHeadings returns what go doc would print as headings.
func docHeadings(text string) []string {
	var names []string
	for _, block := range new(comment.Parser).Parse(text).Content {
		heading, ok := block.(*comment.Heading)
		if !ok {
			continue
		}
		var name strings.Builder
		for _, part := range heading.Text {
			if plain, ok := part.(comment.Plain); ok {
				name.WriteString(string(plain))
			}
		}
		names = append(names, name.String())
	}
	return names
}

func TestExportedSymbols_AreDocumented(t *testing.T) {
	for _, src := range sources(t) {
		if src.test || src.file.Name.Name == "main" {
			continue
		}
		for _, decl := range src.file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && receiverExported(d) && !begins(d.Doc, d.Name.Name) {
					t.Errorf("%s:%d: %s needs a comment that begins with its name", src.name, src.line(d.Pos()), d.Name.Name)
				}
			case *ast.GenDecl:
				checkGroup(t, src, d)
			}
		}
	}
}

func checkGroup(t *testing.T, src source, group *ast.GenDecl) {
	for _, spec := range group.Specs {
		var name string
		var docs []*ast.CommentGroup
		switch s := spec.(type) {
		case *ast.TypeSpec:
			name, docs = s.Name.Name, []*ast.CommentGroup{s.Doc, group.Doc}
		case *ast.ValueSpec:
			// A group of constants may share one comment.
			name, docs = s.Names[0].Name, []*ast.CommentGroup{s.Doc, s.Comment, group.Doc}
		default:
			continue
		}
		if ast.IsExported(name) && !slices.ContainsFunc(docs, func(d *ast.CommentGroup) bool { return d != nil }) {
			t.Errorf("%s:%d: %s %s needs a comment", src.name, src.line(spec.Pos()), group.Tok, name)
		}
	}
}

func receiverExported(fn *ast.FuncDecl) bool {
	if fn.Recv == nil {
		return true
	}
	expr := fn.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.Ident:
			return e.IsExported()
		default:
			return false
		}
	}
}

// begins tells whether a comment starts with the symbol's name, as go doc expects, an article before it allowed.
func begins(group *ast.CommentGroup, name string) bool {
	if group == nil {
		return false
	}
	words := strings.Fields(group.Text())
	return len(words) > 0 && (words[0] == name || len(words) > 1 && words[1] == name || words[0] == "Deprecated:")
}
