package e2e

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"segmirror/bench/kafka"
	"segmirror/compare"
	"segmirror/segment"
)

// compareLogs walks the source's and the mirror's partition directories and wants every batch of the common range
// equal, with or without the epoch bytes.
func compareLogs(t *testing.T, p tp, sourceDir, mirrorDir string, ignoreEpoch bool) compare.Result {
	t.Helper()
	a, err := compare.OpenDir(sourceDir)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := compare.OpenDir(mirrorDir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	result, err := compare.Compare(a, b, compare.Options{IgnoreEpoch: ignoreEpoch})
	if err != nil {
		t.Fatalf("%v: A %s, B %s: %v", p, sourceDir, mirrorDir, err)
	}
	if !result.Equal() {
		t.Errorf("%v differs (A is the source's): %v", p, result.Different)
	}
	return result
}

// compareLive is compareLogs with the source's batches read from its leader, whose files may be half written. A leader
// that has just been elected may not know yet that all it holds is committed: it is asked again.
func compareLive(t *testing.T, src *kafka.Cluster, p tp, mirrorDir string, ignoreEpoch bool) compare.Result {
	t.Helper()
	var result compare.Result
	eventually(t, patience, p.String()+" to be served up to the mirror's end", func() (bool, string) {
		a, err := openTopic(t, src, p)
		if err != nil {
			return false, err.Error() // the leader moved
		}
		b, err := compare.OpenDir(mirrorDir)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if result, err = compare.Compare(a, b, compare.Options{IgnoreEpoch: ignoreEpoch}); err != nil {
			if strings.HasPrefix(err.Error(), "B: ") {
				t.Fatalf("%v: %v", p, err)
			}
			return false, err.Error() // it moved meanwhile
		}
		return result.TailOnlyB.Empty() || !result.Equal(), fmt.Sprintf("only in the mirror: %v", result.TailOnlyB)
	})
	if !result.Equal() {
		t.Errorf("%v differs (A is the source's): %v", p, result.Different)
	}
	return result
}

// openTopic reads a partition from its leader, from the log start on, as a consumer of uncommitted data.
func openTopic(t *testing.T, c *kafka.Cluster, p tp) (compare.Source, error) {
	t.Helper()
	start, _, err := c.Offsets(t.Context(), p.topic, p.partition, false)
	if err != nil {
		return nil, err
	}
	span := compare.Range{From: start, To: compare.End}
	return compare.OpenTopic(t.Context(), c.Client(), p.topic, p.partition, span)
}

// wantWhole wants the mirror to hold all that the source holds from its log start on. What only the mirror has before
// that may stay.
func wantWhole(t *testing.T, src *kafka.Cluster, p tp, r compare.Result) {
	t.Helper()
	start, _, err := src.Offsets(t.Context(), p.topic, p.partition, false)
	if err != nil {
		t.Fatal(err)
	}
	if r.HeadOnlyA.To > start || !r.TailOnlyA.Empty() || !r.TailOnlyB.Empty() {
		t.Errorf("%v: only in the source: offsets %v (its log start is %d) and %v; only in the mirror: %v", p, r.HeadOnlyA,
			start, r.TailOnlyA, r.TailOnlyB)
	}
}

// wantPrefix wants the mirror to begin with the source's first batch and to hold nothing behind the source's end.
func wantPrefix(t *testing.T, p tp, r compare.Result) {
	t.Helper()
	if !r.HeadOnlyA.Empty() && r.Batches > 0 || !r.TailOnlyB.Empty() {
		t.Errorf("%v: not a prefix: offsets only in the source before %v, only in the mirror after %v",
			p, r.HeadOnlyA, r.TailOnlyB)
	}
}

// checkDir wants every index, the leader epochs and the producer snapshot of a closed mirror to be what a rebuild from
// its .log files makes.
func checkDir(t *testing.T, p tp, logDir string, interval int32) {
	t.Helper()
	cfg := segment.DefaultConfig()
	cfg.IndexIntervalBytes = interval
	findings, err := segment.CheckDir(p.dir(logDir), cfg)
	if err != nil {
		t.Errorf("%v: %v", p, err)
	}
	for _, f := range findings {
		t.Errorf("%v: %v", p, f)
	}
}

// batches calls f with each batch of a partition directory.
func batches(t *testing.T, dir string, f func(b compare.Batch)) {
	t.Helper()
	d, err := compare.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for {
		b, err := d.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		f(b)
	}
}
