package dump

import (
	"strconv"
)

const offsetEntrySize = 8 // int32 offset from the file's start offset, int32 position

// offsetEntry is an entry of an .index file.
type offsetEntry struct {
	offset   int64
	position int32
}

// offsetIndex is an .index file. Kafka: OffsetIndex.
type offsetIndex struct {
	*indexFile
	base int64
}

func (x *offsetIndex) parse(b []byte) offsetEntry {
	return offsetEntry{offset: x.base + int64(int32be(b)), position: int32be(b[4:])}
}

func (x *offsetIndex) entry(i int64) (offsetEntry, *Exception) {
	b, thrown := x.at(i)
	if thrown != nil {
		return offsetEntry{}, thrown
	}
	return x.parse(b), nil
}

// lookup returns the last entry not above offset, the start of the log where there is none.
func (x *offsetIndex) lookup(offset int64) (offsetEntry, *Exception) {
	slot, thrown := x.floor(offset, func(b []byte) int64 { return x.parse(b).offset })
	if thrown != nil || slot < 0 {
		return offsetEntry{offset: x.base}, thrown
	}
	return x.entry(slot)
}

// sanity is Kafka's check when a broker starts. Kafka: OffsetIndex.sanityCheck.
func (x *offsetIndex) sanity() *Exception {
	last, thrown := x.entry(x.entries - 1)
	switch {
	case thrown != nil:
		return thrown
	case last.offset < x.base:
		return throwf(classCorruptIndex, "Corrupt index found, index file %s has non-zero size "+
			"but the last offset is %d which is less than the base offset %d", x.path, last.offset, x.base)
	case x.size%offsetEntrySize != 0:
		return throwf(classCorruptIndex, "Index file %s is corrupt, found %d bytes "+
			"which is neither positive nor a multiple of %d", x.path, x.size, offsetEntrySize)
	}
	return nil
}

// dumpIndex prints an .index file and compares it with its log. Kafka: DumpLogSegments.dumpIndex.
func (d *Dumper) dumpIndex(file javaFile) *Exception {
	maxMessage, thrown := d.opts.maxMessage.integer(defaultMaxMessage)
	if thrown != nil {
		return thrown
	}
	base, thrown := file.startOffset()
	if thrown != nil {
		return thrown
	}
	log, thrown := openLog(file.sibling(".log"))
	if thrown != nil {
		return thrown
	}
	defer log.close()
	f, thrown := openIndex(file.absolute(), offsetEntrySize)
	if thrown != nil {
		return thrown
	}
	defer f.close()
	x := &offsetIndex{indexFile: f, base: base}
	if x.entries == 0 {
		d.out.line(file.path + " is empty.")
		return nil
	}
	if d.opts.sanityOnly {
		return d.sanity(file, x.sanity())
	}
	for i := range x.entries {
		entry, thrown := x.entry(i)
		if thrown != nil {
			return thrown
		}
		// A preallocated file ends in entries of zeros.
		if entry.offset == base && i > 0 || d.out.err != nil {
			return nil
		}
		thrown = d.indexEntry(file, log, entry, maxMessage)
		if thrown != nil && !d.fault(file, i*offsetEntrySize, thrown) {
			return thrown
		}
	}
	return nil
}

// sanity prints that a check went well.
func (d *Dumper) sanity(file javaFile, thrown *Exception) *Exception {
	if thrown == nil {
		d.out.line(file.path + " passed sanity check.")
	}
	return thrown
}

func (d *Dumper) indexEntry(file javaFile, log *logFile, entry offsetEntry, maxMessage int32) *Exception {
	in, thrown := log.slice(entry.position, maxMessage)
	if thrown != nil {
		return thrown
	}
	b, ok, thrown := in.next(in.start)
	if thrown == nil && !ok {
		thrown = throwNoMessage(classNoSuchElement)
	}
	if thrown != nil {
		return thrown
	}
	last, thrown := b.lastOffset()
	if thrown != nil {
		return thrown
	}
	if last != entry.offset {
		d.reports.mismatches.get(file.absolute(), newPairs).add(entry.offset, last)
	}
	if !d.opts.verifyOnly {
		out := &d.out
		out.buf = strconv.AppendInt(append(out.buf, "offset: "...), entry.offset, 10)
		out.buf = strconv.AppendInt(append(out.buf, " position: "...), int64(entry.position), 10)
		out.buf = append(out.buf, '\n')
		out.spill()
	}
	return nil
}
