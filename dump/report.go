package dump

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
)

// reports are what follows on stderr when all files were printed, by file. Kafka: the end of DumpLogSegments.main.
type reports struct {
	mismatches     fileMap[*pairs]
	timeMismatches fileMap[*pairs]
	outOfOrder     fileMap[*pairs]
	notFound       fileMap[*pairs]
	nonConsecutive fileMap[*gapReport]
}

// fileMap maps absolute paths to reports, and walks them in the order of a Java HashMap that computeIfAbsent has
// filled.
type fileMap[R any] struct {
	names   []string // as they were added
	byName  map[string]R
	buckets int
}

// get returns the report on a file, which is made where there is none.
func (m *fileMap[R]) get(name string, make func() R) R {
	if m.byName == nil {
		m.byName, m.buckets = map[string]R{}, 16
	}
	// A table that is more than three quarters full doubles, but not before it is asked for something again.
	if len(m.names)*4 > m.buckets*3 {
		m.buckets *= 2
	}
	r, ok := m.byName[name]
	if !ok {
		r = make()
		m.names = append(m.names, name)
		m.byName[name] = r
	}
	return r
}

// each walks the map: by bucket, the last added first.
func (m *fileMap[R]) each(visit func(name string, r R)) {
	bucket := func(name string) uint32 {
		h := uint32(javaHash(name))
		return (h ^ h>>16) & uint32(m.buckets-1)
	}
	names := slices.Clone(m.names)
	slices.Reverse(names)
	slices.SortStableFunc(names, func(a, b string) int { return int(bucket(a)) - int(bucket(b)) })
	for _, name := range names {
		visit(name, m.byName[name])
	}
}

// write writes the reports.
func (r *reports) write(w io.Writer, text Charset) error {
	p := reportPrinter{w: w, text: text}
	r.mismatches.each(func(name string, found *pairs) {
		p.heading("Mismatches in :", name)
		found.byFirst(true, func(a, b int64) { p.printf("  Index offset: %d, log offset: %d\n", a, b) })
	})
	r.timeMismatches.each(func(name string, found *pairs) {
		p.heading("Found timestamp mismatch in :", name)
		found.each(func(a, b int64) { p.printf("  Index timestamp: %d, log timestamp: %d\n", a, b) })
	})
	r.outOfOrder.each(func(name string, found *pairs) {
		p.heading("Found out of order timestamp in :", name)
		found.each(func(a, b int64) { p.printf("  Index timestamp: %d, Previously indexed timestamp: %d\n", a, b) })
	})
	r.notFound.each(func(name string, found *pairs) {
		p.heading("The following indexed offsets are not found in :", name)
		found.each(func(a, b int64) { p.printf("Indexed offset: %d, found log offset: %d\n", a, b) })
	})
	r.nonConsecutive.each(func(name string, gaps *gapReport) {
		p.heading("Non-consecutive offsets in ", name)
		gaps.each(func(a, b int64) { p.printf("  %d is followed by %d\n", a, b) })
	})
	p.flush()
	return p.err
}

// reportPrinter writes lines in larger pieces and keeps the first error.
type reportPrinter struct {
	w    io.Writer
	text Charset
	buf  []byte
	err  error
}

func (p *reportPrinter) heading(what, name string) {
	p.buf = p.text.appendText(append(p.buf, what...), []byte(name))
	p.buf = append(p.buf, '\n')
}

func (p *reportPrinter) printf(format string, args ...any) {
	p.buf = fmt.Appendf(p.buf, format, args...)
	if len(p.buf) >= outputSize {
		p.flush()
	}
}

func (p *reportPrinter) flush() {
	if p.err == nil && len(p.buf) > 0 {
		_, p.err = p.w.Write(p.buf)
	}
	p.buf = p.buf[:0]
}

// pairs are findings on an index, of which there are no more than it has entries.
type pairs struct{ list [][2]int64 }

func newPairs() *pairs { return &pairs{} }

func (p *pairs) add(a, b int64) { p.list = append(p.list, [2]int64{a, b}) }

func (p *pairs) each(visit func(a, b int64)) {
	for _, pair := range p.list {
		visit(pair[0], pair[1])
	}
}

// byFirst walks the pairs by their first numbers, as a TreeMap that was filled with them: of equal ones the last
// counts.
func (p *pairs) byFirst(descending bool, visit func(a, b int64)) {
	list := slices.Clone(p.list)
	slices.SortStableFunc(list, func(x, y [2]int64) int {
		if descending {
			x, y = y, x
		}
		switch {
		case x[0] < y[0]:
			return -1
		case x[0] > y[0]:
			return 1
		}
		return 0
	})
	for i, pair := range list {
		// Descending, the sort has left equal ones as they were added, too.
		if i+1 < len(list) && list[i+1][0] == pair[0] {
			continue
		}
		visit(pair[0], pair[1])
	}
}

// newGapReport makes a report that a reports' map holds.
func newGapReport() *gapReport { return &gapReport{} }

// gapReport holds the places in a log where an offset is not that of the record before plus one. There may be as
// many as records, so they are kept as differences of a few bytes each.
type gapReport struct {
	deltas   []byte
	previous int64
	unsorted bool
}

// add notes that an offset is followed by another one.
func (g *gapReport) add(offset, next int64) {
	if len(g.deltas) > 0 && offset <= g.previous {
		g.unsorted = true
	}
	g.deltas = binary.AppendVarint(g.deltas, offset-g.previous)
	g.deltas = binary.AppendVarint(g.deltas, next-offset)
	g.previous = offset
}

// each walks the gaps by their first offsets.
func (g *gapReport) each(visit func(offset, next int64)) {
	if g.unsorted {
		var all pairs
		g.walk(all.add)
		all.byFirst(false, visit)
		return
	}
	g.walk(visit)
}

func (g *gapReport) walk(visit func(offset, next int64)) {
	var offset int64
	for b := g.deltas; len(b) > 0; {
		step, n := binary.Varint(b)
		gap, m := binary.Varint(b[n:])
		if n <= 0 || m <= 0 {
			panic("BUG: gaps that add did not write")
		}
		b = b[n+m:]
		offset += step
		visit(offset, offset+gap)
	}
}
