package tidy

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// forbiddenWords must not stand in any text file. The patterns are split so that this file does not match itself.
var forbiddenWords = []struct {
	pattern *regexp.Regexp
	why     string
}{
	{regexp.MustCompile(`(?:^|[^\w./-])/` + `(?:work|root|home/\w+|Users/\w+)(?:/|\b)`), "a path of one machine"},
	{regexp.MustCompile(`\b(?:TO` + `DO|FIX` + `ME|XX` + `X)\b`), "unfinished work belongs into an issue"},
	{regexp.MustCompile(`(?i)\bissue ` + `#?\d+`), "say what holds and why, not where it was asked for"},
	{regexp.MustCompile(`\bC[01]` + `\d\d\b`), "name the claim, not a case's number"},
}

func TestText_HasNoForbiddenWords(t *testing.T) {
	for name, text := range textFiles(t) {
		for i, line := range strings.Split(text, "\n") {
			for _, word := range forbiddenWords {
				if hit := word.pattern.FindString(line); hit != "" {
					t.Errorf("%s:%d: %q: %s", name, i+1, strings.TrimSpace(hit), word.why)
				}
			}
		}
	}
}

func TestTests_DoNotSleep(t *testing.T) {
	for _, src := range sources(t) {
		// In a synctest bubble time stands still, so a sleep there waits for nothing.
		if !src.test || imports(src, "testing/synctest") {
			continue
		}
		ast.Inspect(src.file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && isSelector(call.Fun, "time", "Sleep") {
				t.Errorf("%s:%d: sleeps: wait for the event, or use a synctest bubble", src.name, src.line(n.Pos()))
			}
			return true
		})
	}
}

func TestOnlyTheCommand_ExitsTheProcess(t *testing.T) {
	for _, src := range sources(t) {
		if src.test || src.file.Name.Name == "main" {
			continue
		}
		ast.Inspect(src.file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && isSelector(call.Fun, "os", "Exit") {
				t.Errorf("%s:%d: exits the process", src.name, src.line(n.Pos()))
			}
			return true
		})
	}
}

// A panic is for our own mistakes, and says so: bytes from a disk or a socket are answered with an error. What recover
// gave back may be raised again.
func TestPanics_AreBugs(t *testing.T) {
	for _, src := range sources(t) {
		if src.test {
			continue
		}
		lines := strings.Split(src.text, "\n")
		raised := recovered(src)
		ast.Inspect(src.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !isCall(call, "panic") {
				return true
			}
			again, ok := call.Args[0].(*ast.Ident)
			if ok && raised[again.Name] {
				return true
			}
			if !strings.Contains(lines[src.line(n.Pos())-1], `"BUG: `) {
				t.Errorf("%s:%d: a panic's text begins with BUG: , or it is an error", src.name, src.line(n.Pos()))
			}
			return true
		})
	}
}

func TestPackages_HaveNoInit(t *testing.T) {
	for _, src := range sources(t) {
		for _, decl := range src.file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s:%d: init: construct it where it is used", src.name, src.line(fn.Pos()))
			}
		}
	}
}

// recovered returns the names of the variables that a file assigns recover's result to.
func recovered(src source) map[string]bool {
	names := make(map[string]bool)
	ast.Inspect(src.file, func(n ast.Node) bool {
		assign, ok := n.(*ast.AssignStmt)
		if !ok || len(assign.Lhs) != 1 || len(assign.Rhs) != 1 {
			return true
		}
		name, isName := assign.Lhs[0].(*ast.Ident)
		call, isIt := assign.Rhs[0].(*ast.CallExpr)
		if isName && isIt && isCall(call, "recover") {
			names[name.Name] = true
		}
		return true
	})
	return names
}

func isCall(call *ast.CallExpr, name string) bool {
	ident, ok := call.Fun.(*ast.Ident)
	return ok && ident.Name == name
}

func imports(src source, path string) bool {
	return slices.ContainsFunc(src.file.Imports, func(spec *ast.ImportSpec) bool {
		return spec.Path.Value == `"`+path+`"`
	})
}

func isSelector(expr ast.Expr, pkg, name string) bool {
	sel, ok := expr.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	ident, ok := sel.X.(*ast.Ident)
	return ok && ident.Name == pkg
}
