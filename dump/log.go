package dump

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"segmirror/segment"
)

// logDump prints one .log or .checkpoint file. Kafka: DumpLogSegments.dumpLog.
type logDump struct {
	d          *Dumper
	file       javaFile
	in         slice
	deep       bool
	contents   bool
	skipRecord bool
	maxBytes   int32
	decode     parser
	records    recordReader
	gaps       *gapReport // nil until there is one
	path       string     // absolute, for the report
	lastOffset int64
	suspect    int64 // first batch since the last one with a right sum, -1 if that was the last one
}

func (d *Dumper) dumpLog(file javaFile) *Exception {
	l := &logDump{
		d: d, file: file, deep: d.opts.deepIteration(), contents: d.opts.contents(), skipRecord: d.opts.skipRecord,
		lastOffset: -1, suspect: -1,
	}
	var thrown *Exception
	if d.parser == nil {
		if d.parser, thrown = newParser(d.opts, d.out.text); thrown != nil {
			return thrown
		}
	}
	l.decode = d.parser
	if l.maxBytes, thrown = d.opts.maxBytes.integer(noMaxBytes); thrown != nil {
		return thrown
	}
	if thrown = l.heading(); thrown != nil {
		return thrown
	}
	log, thrown := openLog(file.path)
	if thrown != nil {
		return thrown
	}
	defer log.close()
	if l.in, thrown = log.slice(0, l.maxBytes); thrown != nil {
		return thrown
	}
	return l.batches()
}

// heading prints what the file's name says.
func (l *logDump) heading() *Exception {
	out := &l.d.out
	name := l.file.name()
	switch {
	case strings.HasSuffix(name, ".log"):
		start, thrown := l.file.startOffset()
		if thrown != nil {
			return thrown
		}
		out.line("Log starting offset: " + strconv.FormatInt(start, 10))
	case name == "bootstrap.checkpoint":
		out.line("KRaft bootstrap snapshot")
	default:
		offset, epoch, thrown := snapshotID(name)
		if thrown != nil {
			return thrown
		}
		out.line(fmt.Sprintf("Snapshot end offset: %d, epoch: %d", offset, epoch))
	}
	return nil
}

// snapshotID reads the end offset and the epoch in a KRaft snapshot's name. Kafka: Snapshots.parse.
func snapshotID(name string) (offset int64, epoch int32, thrown *Exception) {
	const offsetWidth, epochWidth = 20, 10
	part := func(from, to int) (string, *Exception) {
		if to > len(name) {
			return "", throwf(classStringBounds, "begin %d, end %d, length %d", from, to, len(name))
		}
		return name[from:to], nil
	}
	digits, thrown := part(0, offsetWidth)
	if thrown == nil {
		offset, thrown = parseLong(digits)
	}
	if thrown == nil {
		digits, thrown = part(offsetWidth+1, offsetWidth+epochWidth+1)
	}
	if thrown != nil {
		return 0, 0, thrown
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		return 0, 0, throwf(classNumberFormat, `For input string: "%s"`, digits)
	}
	return offset, int32(n), nil
}

// batches prints the file's batches. With --continue it goes on behind what it cannot read.
func (l *logDump) batches() *Exception {
	pos := int64(0)
	for {
		b, ok, thrown := l.in.next(pos)
		if l.d.out.err != nil {
			return nil
		}
		if thrown == nil && ok {
			if thrown = l.batch(&b); thrown != nil && !l.d.fault(l.file, b.pos, thrown) {
				return thrown
			}
			pos += b.total()
			continue
		}
		if thrown != nil && !l.d.fault(l.file, pos, thrown) {
			return thrown
		}
		found := int64(-1)
		if l.d.opts.goOn {
			found = l.resync(pos)
		}
		if found < 0 {
			l.trailing(pos)
			return nil
		}
		pos = found
	}
}

func (l *logDump) trailing(valid int64) {
	if bytes := l.in.end - valid; bytes > 0 && l.maxBytes == noMaxBytes {
		l.d.out.line(fmt.Sprintf("Found %d invalid bytes at the end of %s", bytes, l.file.name()))
	}
}

// batch prints one batch and, if asked for, its records.
func (l *logDump) batch(b *batch) *Exception {
	out := &l.d.out
	var full segment.Batch
	var thrown *Exception
	if b.total() >= batchOverhead || b.magic < 2 {
		full, thrown = b.full()
		if thrown == nil && b.magic < 0 {
			out.buf = appendLegacyStart(out.buf, b.offset)
			_, thrown = b.header()
		}
		if thrown == nil {
			thrown = l.batchLine(b, full, full)
		}
	} else {
		var header segment.Batch
		if header, thrown = b.header(); thrown == nil {
			header = append(segment.Batch{}, header...)
			full, thrown = b.full()
		}
		if thrown == nil {
			thrown = l.batchLine(b, header, full)
		}
	}
	out.spill()
	if thrown != nil || !l.deep {
		return thrown
	}
	return l.batchRecords(b, full)
}

func appendLegacyStart(dst []byte, offset int64) []byte {
	return strconv.AppendInt(append(dst, "offset: "...), offset, 10)
}

// batchLine prints what is in a batch's header. Kafka prints it in two parts, of which the second may throw.
func (l *logDump) batchLine(b *batch, header, full segment.Batch) *Exception {
	dst := l.d.out.buf
	if b.magic >= 2 {
		dst = appendBatchStart(dst, header)
	} else {
		dst = appendLegacyStart(dst, b.offset)
	}
	l.d.out.buf = dst
	codec := header.Codec()
	if codec > segment.CodecZstd {
		return throwf(classIllegalArgument, "Unknown compression type id: %d", codec)
	}
	dst = strconv.AppendInt(append(dst, " position: "...), b.pos, 10)
	dst = append(append(append(dst, ' '), timestampType(header)...), ": "...)
	dst = strconv.AppendInt(dst, header.MaxTimestampMs(), 10)
	dst = strconv.AppendInt(append(dst, " size: "...), b.total(), 10)
	dst = strconv.AppendInt(append(dst, " magic: "...), int64(b.magic), 10)
	dst = append(append(dst, " compresscodec: "...), segment.CodecName(codec)...)
	dst = strconv.AppendUint(append(dst, " crc: "...), uint64(header.CRC()), 10)
	ok := valid(full)
	if ok {
		l.suspect = -1
	} else if l.suspect < 0 {
		l.suspect = b.pos
	}
	dst = append(strconv.AppendBool(append(dst, " isvalid: "...), ok), '\n')
	l.d.out.buf = dst
	if !ok {
		l.d.invalid(l.file, b, full)
	}
	return nil
}

func appendBatchStart(dst []byte, b segment.Batch) []byte {
	dst = strconv.AppendInt(append(dst, "baseOffset: "...), b.BaseOffset(), 10)
	dst = strconv.AppendInt(append(dst, " lastOffset: "...), b.LastOffset(), 10)
	dst = strconv.AppendInt(append(dst, " count: "...), int64(b.RecordsCount()), 10)
	dst = strconv.AppendInt(append(dst, " baseSequence: "...), int64(b.BaseSequence()), 10)
	last := b.BaseSequence()
	if last != -1 {
		last = addSequence(last, b.LastOffsetDelta())
	}
	dst = strconv.AppendInt(append(dst, " lastSequence: "...), int64(last), 10)
	dst = strconv.AppendInt(append(dst, " producerId: "...), b.ProducerID(), 10)
	dst = strconv.AppendInt(append(dst, " producerEpoch: "...), int64(b.ProducerEpoch()), 10)
	dst = strconv.AppendInt(append(dst, " partitionLeaderEpoch: "...), int64(b.LeaderEpoch()), 10)
	dst = strconv.AppendBool(append(dst, " isTransactional: "...), b.Transactional())
	dst = strconv.AppendBool(append(dst, " isControl: "...), b.Control())
	if !b.HasDeleteHorizon() {
		return append(dst, " deleteHorizonMs: OptionalLong.empty"...)
	}
	dst = strconv.AppendInt(append(dst, " deleteHorizonMs: OptionalLong["...), b.BaseTimestampMs(), 10)
	return append(dst, ']')
}

// timestampType is the name of a batch's kind of timestamps. Kafka: TimestampType.
func timestampType(b segment.Batch) string {
	switch {
	case b.Magic() == 0:
		return "NoTimestampType"
	case b.LogAppendTime():
		return "LogAppendTime"
	default:
		return "CreateTime"
	}
}

// batchRecords prints the records of a batch.
func (l *logDump) batchRecords(b *batch, full segment.Batch) *Exception {
	if full.Magic() < 2 {
		return l.legacyRecords(full)
	}
	r := &l.records
	var u unpacked
	if compressed(full) {
		u = l.d.ahead.take(b.pos, full)
	}
	if thrown := r.start(full, u); thrown != nil {
		return thrown
	}
	l.unpackNext(b.pos + b.total())
	line := recordLine{timestampType: timestampType(full), sequence: true, control: r.control}
	for {
		rec, thrown := r.next()
		if rec == nil {
			return thrown
		}
		l.offset(rec.offset)
		if thrown := l.record(&line, rec); thrown != nil {
			return thrown
		}
	}
}

// unpackNext decompresses the batch at pos meanwhile, if it is in memory already: reading it may end the life of the
// one that is printed.
func (l *logDump) unpackNext(pos int64) {
	if !l.in.log.holds(pos, batchOverhead) {
		return
	}
	b, ok, thrown := l.in.next(pos)
	if thrown != nil || !ok || b.magic < 2 || !l.in.log.holds(pos, b.total()) {
		return
	}
	if full, thrown := b.full(); thrown == nil && compressed(full) {
		l.d.ahead.begin(pos, full)
	}
}

// offset notes a record's offset for the report on gaps.
func (l *logDump) offset(offset int64) {
	if offset != l.lastOffset+1 {
		l.gap(offset)
	}
	l.lastOffset = offset
}

// gap notes that an offset does not follow the one before it.
func (l *logDump) gap(offset int64) {
	if l.gaps == nil {
		l.path = l.file.absolute()
	}
	l.gaps = l.d.reports.nonConsecutive.get(l.path, newGapReport)
	l.gaps.add(l.lastOffset, offset)
}

// javaFile is a path as java.io.File has it: without double and trailing slashes.
type javaFile struct{ path string }

func newJavaFile(path string) javaFile {
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	return javaFile{path: path}
}

func (f javaFile) name() string { return f.path[strings.LastIndexByte(f.path, '/')+1:] }

// absolute is the path behind the working directory, which is not cleaned.
func (f javaFile) absolute() string {
	if strings.HasPrefix(f.path, "/") {
		return f.path
	}
	dir, err := filepath.Abs(".")
	if resolved, e := filepath.EvalSymlinks(dir); e == nil && err == nil {
		dir = resolved
	}
	if dir == "/" {
		return "/" + f.path
	}
	return dir + "/" + f.path
}

// stem is what stands in front of the name's first dot.
func (f javaFile) stem() string {
	stem, _, _ := strings.Cut(f.name(), ".")
	return stem
}

// startOffset is the number in front of the name's first dot.
func (f javaFile) startOffset() (int64, *Exception) { return parseLong(f.stem()) }

// sibling is the file beside f with the same stem and another suffix.
func (f javaFile) sibling(suffix string) string {
	abs := f.absolute()
	return abs[:strings.LastIndexByte(abs, '/')+1] + f.stem() + suffix
}
