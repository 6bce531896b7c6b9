package dump

import "strconv"

// recordLine is what the lines of a batch's records have in common.
type recordLine struct {
	timestampType string
	sequence      bool // v2: sequence and header keys are printed
	control       bool
}

// record prints one record's line. Kafka: DumpLogSegments.dumpBatchRecords.
func (l *logDump) record(line *recordLine, rec *record) *Exception {
	out := &l.d.out
	if !l.skipRecord {
		if thrown := l.metadata(line, rec); thrown != nil {
			return thrown
		}
	}
	if l.contents && !line.control {
		prefix := " "
		if l.skipRecord {
			prefix = "| "
		}
		if thrown := l.recordContents(rec, prefix); thrown != nil {
			return thrown
		}
	}
	out.buf = append(out.buf, '\n')
	out.spill()
	return nil
}

// metadata prints a record's offset, time, sizes and so on. Kafka prints it in parts, of which each may throw.
func (l *logDump) metadata(line *recordLine, rec *record) *Exception {
	out := &l.d.out
	dst := strconv.AppendInt(append(out.buf, "| offset: "...), rec.offset, 10)
	dst = append(append(append(dst, ' '), line.timestampType...), ": "...)
	dst = strconv.AppendInt(dst, rec.timestampMs, 10)
	dst = strconv.AppendInt(append(dst, " keySize: "...), int64(rec.keySize), 10)
	dst = strconv.AppendInt(append(dst, " valueSize: "...), int64(rec.valueSize), 10)
	if line.sequence {
		dst = strconv.AppendInt(append(dst, " sequence: "...), int64(rec.sequence), 10)
		dst = append(dst, " headerKeys: ["...)
		for i := rec.headers.from; i < rec.headers.to; i++ {
			if i > rec.headers.from {
				dst = append(dst, ',')
			}
			dst = out.text.appendText(dst, l.records.headerKeys[i])
		}
		dst = append(dst, ']')
	}
	if rec.legacy != nil {
		dst = strconv.AppendBool(append(dst, " isValid: "...), rec.legacy.valid())
		dst = strconv.AppendUint(append(dst, " crc: "...), uint64(rec.legacy.crc()), 10)
	}
	out.buf = dst
	if line.control {
		return l.controlRecord(rec)
	}
	return nil
}

// recordContents prints a record's key and value. Kafka: DumpLogSegments.printRecordContents.
func (l *logDump) recordContents(rec *record, prefix string) *Exception {
	out := &l.d.out
	before := len(out.buf)
	dst, thrown := l.decode.parse(out.buf, prefix, rec)
	if thrown != nil {
		out.buf = out.buf[:before]
		return thrown
	}
	out.buf = dst
	return nil
}
