package replicator

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// docRow is a row of a table whose first cell is code: `name`.
type docRow struct{ name, second, third string }

var rowPattern = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]*) \\|(?: (.*) \\|)?$")

// docRows reads the tables of a file in docs.
func docRows(t *testing.T, file string) []docRow {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", file))
	if err != nil {
		t.Fatal(err)
	}
	var rows []docRow
	for _, cells := range rowPattern.FindAllStringSubmatch(string(text), -1) {
		rows = append(rows, docRow{cells[1], strings.TrimSpace(cells[2]), cells[3]})
	}
	return rows
}

// sameNames fails unless both lists hold the same names, each once.
func sameNames(t *testing.T, what string, documented, inCode []string) {
	t.Helper()
	slices.Sort(documented)
	slices.Sort(inCode)
	for _, name := range documented {
		if !slices.Contains(inCode, name) {
			t.Errorf("%s: %s is documented and does not exist", what, name)
		}
	}
	for _, name := range inCode {
		if !slices.Contains(documented, name) {
			t.Errorf("%s: %s is not documented", what, name)
		}
	}
	for i := 1; i < len(documented); i++ {
		if documented[i] == documented[i-1] {
			t.Errorf("%s: %s is documented twice", what, documented[i])
		}
	}
}

func TestDocs_ConfigurationListsEveryKey(t *testing.T) {
	var documented []string
	for _, row := range docRows(t, "configuration.md") {
		documented = append(documented, row.name)
	}
	inCode := slices.Concat(slices.Collect(maps.Keys(agentKeys)), slices.Collect(maps.Keys(logKeys)),
		slices.Collect(maps.Keys(mirrorKeys)), slices.Collect(maps.Keys(clientKeys)), []string{"mirrors"})
	sameNames(t, "configuration.md", documented, inCode)
}

func TestDocs_ConfigurationStatesTheDefaultsOfTheCode(t *testing.T) {
	base := map[string]string{"log.dirs": "d", "mirrors": "m", "mirror.m.bootstrap.servers": "h:1"}
	parse := func(key, value string) Config {
		props := maps.Clone(base)
		if key != "" {
			props[key] = value
		}
		cfg, err := ParseConfig(props, nil)
		if err != nil {
			t.Fatalf("%s=%s: %v", key, value, err)
		}
		cfg.WithoutEffect = nil
		return cfg
	}
	want, checked := parse("", ""), 0
	for _, row := range docRows(t, "configuration.md") {
		value, isCode := strings.CutPrefix(row.second, "`")
		if clientKeys[row.name] != clientUnknown || !isCode {
			continue
		}
		key := row.name
		if _, ofMirror := mirrorKeys[key]; ofMirror {
			key = "mirror.m." + key
		}
		if got := parse(key, strings.TrimSuffix(value, "`")); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %s is documented as the default, but setting it changes the configuration", row.name, row.second)
		}
		checked++
	}
	if checked < 30 {
		t.Errorf("only %d defaults were found in the tables", checked)
	}
}

func TestDocs_ConfigurationTellsUsedFromRefusedClientKeys(t *testing.T) {
	words := map[clientKeyKind][]string{
		clientUsed: {"used", "accepted"}, clientNoEffect: {"without"}, clientRefused: {"refused"},
	}
	for _, row := range docRows(t, "configuration.md") {
		kind := clientKeys[row.name]
		first, _, _ := strings.Cut(strings.Trim(row.second, ",:;"), " ")
		if kind != clientUnknown && !slices.Contains(words[kind], strings.Trim(first, ",:;")) {
			t.Errorf("%s is documented as %q, want one of %q", row.name, row.second, words[kind])
		}
	}
}

func TestDocs_ExampleConfigurationIsAccepted(t *testing.T) {
	cfg, err := ReadConfig(filepath.Join("..", "docs", "agent.properties"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Mirrors) != 1 || cfg.Mirrors[0].Name != "dr" || len(cfg.WithoutEffect) > 0 {
		t.Errorf("%d mirrors, keys without effect %q", len(cfg.Mirrors), cfg.WithoutEffect)
	}
}

func TestDocs_MetricsListsEveryMetric(t *testing.T) {
	var documented []string
	for _, row := range docRows(t, "metrics.md") {
		documented = append(documented, row.name)
	}
	out := make(chan prometheus.Metric, 100)
	set := newMetricSet()
	set.mirror(out, &MirrorStatus{
		Name: "m", Refreshed: time.Now(), Errors: map[Cause]int64{CauseIO: 1},
		Partitions: make([]PartitionStatus, 1), Fetchers: make([]FetcherStatus, 1),
	})
	set.throttle(out, &ThrottleStatus{}, "")
	gauge(out, set.free, 0, "d")
	gauge(out, set.full, 0, "d")
	close(out)
	var inCode []string
	name := regexp.MustCompile(`fqName: "([^"]+)"`)
	for metric := range out {
		inCode = append(inCode, name.FindStringSubmatch(metric.Desc().String())[1])
	}
	slices.Sort(inCode)
	sameNames(t, "metrics.md", documented, slices.Compact(inCode))
}

func TestDocs_OperationsExplainsEveryCause(t *testing.T) {
	rows := docRows(t, "operations.md")
	retried := map[retryClass]string{retryForever: "yes", retryCounted: "counted", retryNever: "no"}
	var documented, inCode []string
	for _, row := range rows {
		documented = append(documented, row.name)
		for cause, name := range causeNames {
			if name == row.name && retried[cause.retryClass()] != row.second {
				t.Errorf("%s is documented as retried: %s, want %s", name, row.second, retried[cause.retryClass()])
			}
		}
	}
	for cause, name := range causeNames {
		if cause != CauseNone {
			inCode = append(inCode, name)
		}
	}
	sameNames(t, "operations.md", documented, inCode)
}
