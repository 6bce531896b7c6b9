package dump

import (
	"fmt"
	"strconv"

	"segmirror/segment"
)

const (
	controlKeySize  = 4
	endTxnValueSize = 6
)

// controlRecord prints what a control record says. Kafka: DumpLogSegments.printControlRecord.
func (l *logDump) controlRecord(rec *record) *Exception {
	out := &l.d.out
	kind, thrown := controlType(rec.key)
	if thrown != nil {
		return thrown
	}
	switch kind {
	case segment.ControlAbort, segment.ControlCommit:
		return l.endTxnMarker(kind, rec.value)
	case segment.ControlLeaderChange:
		return l.controlMessage(" LeaderChange: ", "LeaderChangeMessage", rec.value)
	case segment.ControlSnapshotHeader:
		return l.controlMessage(" SnapshotHeader ", "SnapshotHeaderRecord", rec.value)
	case segment.ControlSnapshotFooter:
		return l.controlMessage(" SnapshotFooter ", "SnapshotFooterRecord", rec.value)
	case segment.ControlKRaftVersion:
		return l.controlMessage(" KRaftVersion ", "KRaftVersionRecord", rec.value)
	case segment.ControlKRaftVoters:
		return l.controlMessage(" KRaftVoters ", "VotersRecord", rec.value)
	case segment.ControlMirrorPidReset:
		if rec.value != nil && l.controlMessage(" MirrorPidReset ", "MirrorPidResetRecord", rec.value) == nil {
			return nil
		}
	}
	out.buf = strconv.AppendInt(append(out.buf, " controlType: UNKNOWN("...), int64(kind), 10)
	out.buf = append(out.buf, ')')
	if l.d.opts.goOn {
		out.buf = fmt.Appendf(out.buf, " value: %x", rec.value)
	}
	return nil
}

// controlType reads a control record's key. Kafka: ControlRecordType.parseTypeId.
func controlType(key []byte) (segment.ControlType, *Exception) {
	if key == nil {
		return 0, throwf(classNullPointer, `Cannot invoke "java.nio.ByteBuffer.duplicate()" because "key" is null`)
	}
	if len(key) < controlKeySize {
		return 0, throwf(classInvalidRecord, "Invalid value size found for control record key. Must have at least %d bytes, "+
			"but found only %d", controlKeySize, len(key))
	}
	if version := int16be(key); version < 0 {
		return 0, throwf(classInvalidRecord,
			"Invalid version found for control record: %d. May indicate data corruption", version)
	}
	return segment.ControlType(int16be(key[2:])), nil
}

// endTxnMarker prints the value of a COMMIT or ABORT. Kafka: EndTransactionMarker.deserializeValue.
func (l *logDump) endTxnMarker(kind segment.ControlType, value []byte) *Exception {
	switch {
	case value == nil:
		return throwf(classNullPointer, `Cannot invoke "java.nio.ByteBuffer.getShort()" because "value" is null`)
	case len(value) < 2:
		return throwNoMessage(classBufferUnderflow)
	case int16be(value) < 0:
		return throwf(classInvalidRecord,
			"Invalid version found for end transaction marker: %d. May indicate data corruption", int16be(value))
	case len(value) < endTxnValueSize:
		return throwNoMessage(classBufferUnderflow)
	}
	name := "ABORT"
	if kind == segment.ControlCommit {
		name = "COMMIT"
	}
	out := &l.d.out
	out.buf = append(append(out.buf, " endTxnMarker: "...), name...)
	out.buf = strconv.AppendInt(append(out.buf, " coordinatorEpoch: "...), int64(int32be(value[2:])), 10)
	return nil
}

// controlMessage prints a value by its table. Kafka reads all of them as version 0 and prints them as the version
// that stands in their first field.
func (l *logDump) controlMessage(label, table string, value []byte) *Exception {
	if value == nil {
		return throwf(classNullPointer, `Cannot invoke "java.nio.ByteBuffer.slice()" because "data" is null`)
	}
	out := &l.d.out
	d := decoder{text: out.text, in: cursor{b: value}}
	printed := int16(0)
	if len(value) >= 2 {
		printed = int16be(value)
	}
	if l.d.control == nil {
		l.d.control = newTables(controlTables)
	}
	json, thrown := d.message(nil, l.d.control.message(table), 0, printed)
	if thrown != nil {
		return thrown
	}
	out.buf = append(append(out.buf, label...), json...)
	return nil
}
