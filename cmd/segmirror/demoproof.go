package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"segmirror/compare"
)

// demoTally counts what kinds of batches were compared.
type demoTally struct {
	batches, bytes, records int64
	codecs                  [8]int64
	transactional, markers  int64
}

func (t *demoTally) add(b compare.Batch) {
	t.batches++
	t.bytes += int64(len(b))
	t.records += int64(b.RecordsCount())
	switch {
	case b.Control():
		t.markers++
	case b.Transactional():
		t.transactional++
		fallthrough
	default:
		t.codecs[b.Codec()]++
	}
}

// prove examines what the stopped agent left and prints what holds. The first thing that does not is an error.
func (d *demo) prove(ctx context.Context) error {
	ends, err := d.source.ends(ctx)
	if err != nil {
		return err
	}
	var tally demoTally
	table := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PARTITION\tOFFSETS\tBATCHES\tSEGMENTS\tSIZE\tXXHASH64\tEQUAL")
	var faults []error
	for _, end := range ends {
		result, err := d.compare(ctx, end, &tally)
		if err != nil {
			return err
		}
		verdict := "yes"
		if fault := judge(end, result); fault != nil {
			verdict = "NO"
			faults = append(faults, fault)
		}
		segments, _ := filepath.Glob(filepath.Join(d.dir, end.String(), "*.log"))
		fmt.Fprintf(table, "%s\t%d..%d\t%d\t%d\t%s\t%016x\t%s\n", end, end.start, end.end, result.Batches, len(segments),
			formatSize(result.Bytes), result.Digest, verdict)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	inDirs, err := d.checkDirs(ends)
	if err != nil {
		return err
	}
	if fault := errors.Join(append(faults, inDirs)...); fault != nil {
		return findingf("demo: %w", fault)
	}
	return d.report(ends, tally)
}

// compare fetches a partition again, with a client that is not ours, and walks it beside the mirror's files.
func (d *demo) compare(ctx context.Context, end demoEnds, tally *demoTally) (compare.Result, error) {
	mirror, err := compare.OpenDir(filepath.Join(d.dir, end.String()))
	if errors.Is(err, os.ErrNotExist) {
		return compare.Result{}, findingf("demo: %s was not mirrored", end)
	}
	if err != nil {
		return compare.Result{}, err
	}
	defer mirror.Close()
	span := compare.Range{From: end.start, To: end.end}
	source, err := compare.OpenTopic(ctx, d.source.client, end.topic, end.partition, span)
	if err != nil {
		return compare.Result{}, err
	}
	result, err := compare.Compare(mirror, source, compare.Options{Each: tally.add})
	if errors.Is(err, compare.ErrBadBatch) {
		return result, findingf("demo: %w", err)
	}
	return result, err
}

// judge returns what is wrong with a comparison: A is the mirror, B the source.
func judge(end demoEnds, result compare.Result) error {
	switch {
	case !result.Equal():
		return fmt.Errorf("%s: %v", end, result.Different)
	case !result.Complete():
		return fmt.Errorf("%s: only the mirror holds %v and %v, only the source %v and %v", end, result.HeadOnlyA,
			result.TailOnlyA, result.HeadOnlyB, result.TailOnlyB)
	case end.end > end.start && (result.From != end.start || result.To != end.end):
		return fmt.Errorf("%s: compared %d..%d of %d..%d", end, result.From, result.To, end.start, end.end)
	}
	return nil
}

// report prints what was proved, after making sure that the demo covered what it says.
func (d *demo) report(ends []demoEnds, tally demoTally) error {
	var missing, open []string
	for i, name := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		if tally.codecs[i] == 0 {
			missing = append(missing, "a batch with codec "+name)
		}
	}
	for _, end := range ends {
		if end.stable < end.end {
			open = append(open, fmt.Sprintf("%s from offset %d", end, end.stable))
		}
	}
	if tally.transactional == 0 || tally.markers == 0 || len(open) == 0 {
		missing = append(missing, "transactions")
	}
	if len(missing) > 0 {
		return findingf("demo: the source holds no %s", strings.Join(missing, ", "))
	}
	slices.Sort(open)
	fmt.Fprintf(d.out, "proved: all %s batches of %d partitions are byte for byte what the source serves, %s\n",
		formatCount(tally.batches), len(ends), formatSize(tally.bytes))
	fmt.Fprintf(d.out, "        (gzip %d, snappy %d, lz4 %d, zstd %d; transactional %d, markers %d)\n", tally.codecs[1],
		tally.codecs[2], tally.codecs[3], tally.codecs[4], tally.transactional, tally.markers)
	fmt.Fprintln(d.out, "proved: indexes, leader epochs and producer snapshots are what the batches make them")
	fmt.Fprintf(d.out, "proved: opened again nothing had to be repaired; ends and open transactions are the source's\n"+
		"        (open: %s)\n", strings.Join(open, ", "))
	return nil
}
