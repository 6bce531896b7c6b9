package dump

import (
	"strconv"

	"segmirror/segment"
)

const timeEntrySize = 12 // int64 timestamp, int32 offset from the file's start offset

// timeEntry is an entry of a .timeindex file.
type timeEntry struct{ timestampMs, offset int64 }

// timeIndex is a .timeindex file. Kafka: TimeIndex.
type timeIndex struct {
	*indexFile
	base int64
}

func (x *timeIndex) entry(i int64) (timeEntry, *Exception) {
	b, thrown := x.at(i)
	if thrown != nil {
		return timeEntry{}, thrown
	}
	return timeEntry{timestampMs: int64be(b), offset: x.base + int64(int32be(b[8:]))}, nil
}

// sanity is Kafka's check when a broker starts. Kafka: TimeIndex.sanityCheck.
func (x *timeIndex) sanity() *Exception {
	if x.entries > 0 {
		last, thrown := x.entry(x.entries - 1)
		if thrown != nil {
			return thrown
		}
		first, thrown := x.entry(0)
		switch {
		case thrown != nil:
			return thrown
		case last.timestampMs < first.timestampMs:
			return throwf(classCorruptIndex, "Corrupt time index found, time index file (%s) has non-zero size "+
				"but the last timestamp is %d which is less than the first timestamp %d",
				x.path, last.timestampMs, first.timestampMs)
		case last.offset < x.base:
			return throwf(classCorruptIndex, "Corrupt time index found, time index file (%s) has non-zero size "+
				"but the last offset is %d which is less than the first offset %d", x.path, last.offset, x.base)
		}
	}
	if x.size%timeEntrySize != 0 {
		return throwf(classCorruptIndex, "Time index file %s is corrupt, found %d bytes "+
			"which is neither positive nor a multiple of %d", x.path, x.size, timeEntrySize)
	}
	return nil
}

// timeDump prints one .timeindex file. Kafka: DumpLogSegments.dumpTimeIndex.
type timeDump struct {
	d       *Dumper
	file    javaFile
	log     *logFile
	offsets *offsetIndex
	times   *timeIndex
	tail    tailWalk
	records recordReader
}

func (d *Dumper) dumpTimeIndex(file javaFile) *Exception {
	base, thrown := file.startOffset()
	if thrown != nil {
		return thrown
	}
	t := timeDump{d: d, file: file}
	if t.log, thrown = openLog(file.sibling(".log")); thrown != nil {
		return thrown
	}
	defer t.log.close()
	index, thrown := openIndex(file.sibling(".index"), offsetEntrySize)
	if thrown != nil {
		return thrown
	}
	defer index.close()
	f, thrown := openIndex(file.absolute(), timeEntrySize)
	if thrown != nil {
		return thrown
	}
	defer f.close()
	t.offsets = &offsetIndex{indexFile: index, base: base}
	t.times = &timeIndex{indexFile: f, base: base}
	if d.opts.sanityOnly {
		return d.sanity(file, t.times.sanity())
	}
	return t.entries()
}

func (t *timeDump) entries() *Exception {
	previous := int64(-1)
	for i := range t.times.entries {
		entry, thrown := t.times.entry(i)
		if thrown != nil {
			return thrown
		}
		// A preallocated file ends in entries of zeros.
		if entry.offset == t.times.base && i > 0 || t.d.out.err != nil {
			return nil
		}
		if thrown = t.check(entry, previous); thrown != nil {
			if !t.d.fault(t.file, i*timeEntrySize, thrown) {
				return thrown
			}
			continue
		}
		if !t.d.opts.verifyOnly {
			out := &t.d.out
			out.buf = strconv.AppendInt(append(out.buf, "timestamp: "...), entry.timestampMs, 10)
			out.buf = strconv.AppendInt(append(out.buf, " offset: "...), entry.offset, 10)
			out.buf = append(out.buf, '\n')
			out.spill()
		}
		previous = entry.timestampMs
	}
	return nil
}

// check compares an entry with the batch it names.
func (t *timeDump) check(entry timeEntry, previousMs int64) *Exception {
	start, thrown := t.offsets.lookup(entry.offset)
	if thrown != nil {
		return thrown
	}
	in, thrown := t.log.slice(start.position, noMaxBytes)
	if thrown != nil {
		return thrown
	}
	if thrown = t.tail.walk(in); thrown != nil {
		return thrown
	}
	b, last, found, thrown := batchFor(in, entry.offset)
	if thrown != nil {
		return thrown
	}
	reports, path := &t.d.reports, t.file.absolute()
	if !found || last != entry.offset {
		reports.notFound.get(path, newPairs).add(entry.offset, last)
		return nil
	}
	newest, thrown := t.newest(&b)
	if thrown != nil {
		return thrown
	}
	if newest != entry.timestampMs {
		reports.timeMismatches.get(path, newPairs).add(entry.timestampMs, newest)
	}
	if previousMs >= entry.timestampMs {
		reports.outOfOrder.get(path, newPairs).add(entry.timestampMs, previousMs)
	}
	return nil
}

// batchFor returns the first batch of a slice that ends at or behind an offset, and its last offset.
func batchFor(in slice, offset int64) (b batch, last int64, found bool, thrown *Exception) {
	for pos := in.start; ; pos += b.total() {
		var ok bool
		if b, ok, thrown = in.next(pos); thrown != nil || !ok {
			return b, -1, false, thrown
		}
		if last, thrown = b.lastOffset(); thrown != nil || last >= offset {
			return b, last, thrown == nil, thrown
		}
	}
}

// newest is the largest timestamp of a batch's records, -1 where it has none.
func (t *timeDump) newest(b *batch) (int64, *Exception) {
	newest := int64(-1)
	full, thrown := b.full()
	if thrown != nil {
		return 0, thrown
	}
	if full.Magic() < 2 {
		return t.newestLegacy(full)
	}
	var u unpacked
	if compressed(full) {
		u = unpack(t.d.unpack, full.Codec(), full.Magic(), full.Records())
	}
	if thrown := t.records.start(full, u); thrown != nil {
		return 0, thrown
	}
	for {
		rec, thrown := t.records.next()
		if rec == nil {
			return newest, thrown
		}
		newest = max(newest, rec.timestampMs)
	}
}

func (t *timeDump) newestLegacy(full segment.Batch) (int64, *Exception) {
	entries := []legacyEntry{{offset: full.BaseOffset(), message: legacyMessage{b: full[logOverhead:]}}}
	switch codec := entries[0].message.codec(); {
	case codec > segment.CodecZstd:
		return 0, throwf(classIllegalArgument, "Unknown compression type id: %d", codec)
	case codec != segment.CodecNone:
		var thrown *Exception
		if entries, thrown = unwrap(t.d.unpack, &entries[0]); thrown != nil {
			return 0, thrown
		}
	}
	newest := int64(-1)
	for i := range entries {
		ms, thrown := entries[i].message.timestampMs()
		if thrown != nil {
			return 0, thrown
		}
		newest = max(newest, ms)
	}
	return newest, nil
}

// tailWalk finds out whether the batches from a position to the log's end can be walked: Kafka does so for every
// entry. A position that an earlier walk came by needs no walk of its own.
type tailWalk struct {
	known  bool
	at     int64 // a batch that the walk came by
	thrown *Exception
}

func (w *tailWalk) walk(in slice) *Exception {
	if w.known && in.start >= w.at {
		pos := w.at
		for pos < in.start {
			b, ok, thrown := in.next(pos)
			if thrown != nil || !ok {
				break
			}
			pos += b.total()
		}
		if pos == in.start {
			w.at = pos
			return w.thrown
		}
	}
	w.known, w.at = true, in.start
	for pos := in.start; ; {
		b, ok, thrown := in.next(pos)
		if thrown != nil || !ok {
			w.thrown = thrown
			return thrown
		}
		pos += b.total()
	}
}
