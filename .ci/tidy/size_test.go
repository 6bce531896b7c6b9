package tidy

import (
	"go/ast"
	"go/token"
	"path"
	"strings"
	"testing"
	"unicode/utf8"
)

// The limits. A table-driven test may be longer than a function that runs in production.
const (
	maxFileLines     = 600
	maxTestFileLines = 800
	maxFuncLines     = 70
	maxTestFuncLines = 120
	maxStructFields  = 20
	maxParams        = 5
	maxLineRunes     = 120
	maxTestLineRunes = 160 // a row of a table
)

func TestFiles_AreShort(t *testing.T) {
	for _, src := range sources(t) {
		limit := maxFileLines
		if src.test {
			limit = maxTestFileLines
		}
		if n := strings.Count(src.text, "\n"); n > limit {
			t.Errorf("%s: %d lines, at most %d: one noun to a file", src.name, n, limit)
		}
	}
}

func TestLines_FitTheScreen(t *testing.T) {
	for name, text := range textFiles(t) {
		if path.Ext(name) != ".go" && name != ".ci/run" {
			continue
		}
		limit := maxLineRunes
		if strings.HasSuffix(name, "_test.go") {
			limit = maxTestLineRunes
		}
		for i, line := range strings.Split(text, "\n") {
			if n := utf8.RuneCountInString(line); n > limit {
				t.Errorf("%s:%d: %d characters, at most %d", name, i+1, n, limit)
			}
		}
	}
}

func TestFunctions_AreShort(t *testing.T) {
	for _, src := range sources(t) {
		limit := maxFuncLines
		if src.test {
			limit = maxTestFuncLines
		}
		for _, decl := range src.file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			if n := codeLines(src, fn.Pos(), fn.End()); n > limit {
				t.Errorf("%s:%d: %s has %d lines, at most %d", src.name, src.line(fn.Pos()), fn.Name.Name, n, limit)
			}
		}
	}
}

// codeLines counts the lines of a node without those that hold nothing but a comment.
func codeLines(src source, from, to token.Pos) int {
	lines := strings.Split(src.text, "\n")
	n := 0
	for _, line := range lines[src.line(from)-1 : src.line(to)] {
		if !strings.HasPrefix(strings.TrimSpace(line), "//") {
			n++
		}
	}
	return n
}

func TestFunctions_TakeFewParameters(t *testing.T) {
	for _, src := range sources(t) {
		ast.Inspect(src.file, func(n ast.Node) bool {
			fn, ok := n.(*ast.FuncType)
			if !ok {
				return true
			}
			if got := fieldCount(fn.Params); got > maxParams {
				t.Errorf("%s:%d: %d parameters, at most %d", src.name, src.line(fn.Pos()), got, maxParams)
			}
			return true
		})
	}
}

func TestStructs_HaveFewFields(t *testing.T) {
	for _, src := range sources(t) {
		ast.Inspect(src.file, func(n ast.Node) bool {
			st, ok := n.(*ast.StructType)
			if !ok {
				return true
			}
			if got := fieldCount(st.Fields); got > maxStructFields {
				t.Errorf("%s:%d: struct of %d fields, at most %d", src.name, src.line(st.Pos()), got, maxStructFields)
			}
			return true
		})
	}
}

// fieldCount counts names, an embedded or unnamed field as one.
func fieldCount(list *ast.FieldList) int {
	n := 0
	for _, field := range list.List {
		n += max(1, len(field.Names))
	}
	return n
}
