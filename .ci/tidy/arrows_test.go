package tidy

import (
	"slices"
	"strings"
	"testing"
)

// arrows says which of the repository's packages each package's source files may import. A new package is entered here
// before it can exist. A trailing /... admits a folder's packages, too.
var arrows = map[string][]string{
	"index":                 {},
	"psm":                   {},
	"segment":               {"index", "psm"},
	"fetchwire":             {},
	"replicator":            {"segment", "fetchwire"},
	"admin":                 {"fetchwire"},
	"admin/fakeagent":       {"fetchwire"},
	"compare":               {"segment", "fetchwire"},
	"dump":                  {"segment"},
	"bench":                 {"index", "psm", "segment", "fetchwire", "replicator", "compare", "bench/..."},
	"bench/kafka":           {},
	"bench/kafka/golden":    {"bench/kafka"},
	"bench/kafka/protocol":  {"bench/kafka"},
	"bench/kafka/dumpcases": {"segment"},
	"bench/kafka/dumplog":   {"bench/kafka", "bench/kafka/dumpcases"},
	"cmd/segmirror":         {"segment", "fetchwire", "replicator", "admin", "compare", "dump", "bench/..."},
	"e2e":                   {"segment", "fetchwire", "replicator", "admin", "compare", "dump", "bench/..."},
	".ci/tidy":              {},
}

// testArrows says what a package's tests may import beyond that: what starts or drives a real Kafka, and for those
// above the leaves the packages they are checked against.
var testArrows = map[string][]string{
	"index":         {"bench/kafka"},
	"psm":           {"bench/kafka"},
	"segment":       {"bench/kafka"},
	"fetchwire":     {"bench/kafka"},
	"replicator":    {"bench/kafka", "compare"},
	"compare":       {"bench/kafka"},
	"dump":          {"bench/kafka", "bench/kafka/dumpcases"},
	"bench/kafka":   {"segment", "fetchwire"},
	"admin":         {"admin/fakeagent"},
	"cmd/segmirror": {"admin/fakeagent"},
	"e2e":           {"index", "psm"},
}

func TestImports_FollowTheArrows(t *testing.T) {
	for _, src := range sources(t) {
		allowed, known := arrows[src.dir]
		if !known {
			t.Errorf("%s: package %s has no line in the table of arrows", src.name, src.dir)
			continue
		}
		if src.test {
			allowed = slices.Concat(allowed, testArrows[src.dir], []string{src.dir})
		}
		for _, spec := range src.file.Imports {
			imported := strings.Trim(spec.Path.Value, `"`)
			inner, ours := strings.CutPrefix(imported, modulePath+"/")
			if ours && !admits(allowed, inner) {
				t.Errorf("%s:%d: %s may not import %s", src.name, src.line(spec.Pos()), src.dir, inner)
			}
		}
	}
}

func admits(allowed []string, imported string) bool {
	return slices.ContainsFunc(allowed, func(a string) bool {
		folder, tree := strings.CutSuffix(a, "/...")
		return a == imported || tree && (imported == folder || strings.HasPrefix(imported, folder+"/"))
	})
}

// forbiddenImports are packages that no file may use, with the reason.
var forbiddenImports = map[string]string{
	"unsafe":    "memory maps are []byte and encoding/binary compiles to loads",
	"C":         "the binary is pure Go",
	"io/ioutil": "deprecated",
	"log":       "a *slog.Logger is passed in",
}

func TestImports_NoneIsForbidden(t *testing.T) {
	for _, src := range sources(t) {
		for _, spec := range src.file.Imports {
			if why, bad := forbiddenImports[strings.Trim(spec.Path.Value, `"`)]; bad {
				t.Errorf("%s:%d: imports %s: %s", src.name, src.line(spec.Pos()), spec.Path.Value, why)
			}
		}
	}
}

// leavesDoNotLog are the packages that return what they know and leave logging to those who hold the logger.
var leavesDoNotLog = []string{"index", "psm", "segment", "fetchwire", "admin", "compare", "dump"}

func TestLeaves_DoNotLog(t *testing.T) {
	for _, src := range sources(t) {
		if src.test || !slices.Contains(leavesDoNotLog, src.dir) {
			continue
		}
		for _, spec := range src.file.Imports {
			if spec.Path.Value == `"log/slog"` {
				t.Errorf("%s:%d: %s does not log", src.name, src.line(spec.Pos()), src.dir)
			}
		}
	}
}
