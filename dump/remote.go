package dump

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// remoteParser prints the records of __remote_log_metadata as Java's toString shows the objects Kafka makes of them.
// Kafka: DumpLogSegments.RemoteMetadataLogMessageParser, RemoteLogMetadataSerde.
type remoteParser struct {
	tables *tables
	text   Charset
	value  []byte
}

func (p *remoteParser) parse(dst []byte, prefix string, rec *record) ([]byte, *Exception) {
	if thrown := rec.load(); thrown != nil {
		return dst, thrown
	}
	text, thrown := p.record(rec.value)
	if thrown != nil {
		text = fmt.Sprintf("Error at offset %d, skipping. %s", rec.offset, thrown.message())
	}
	p.value = p.text.appendText(p.value[:0], []byte(text))
	return appendContents(dst, prefix, nil, p.value), nil
}

func (p *remoteParser) record(value []byte) (string, *Exception) {
	if value == nil {
		return "", throwf(classNullPointer, `Cannot invoke "java.nio.ByteBuffer.remaining()" because the return value of `+
			`"org.apache.kafka.common.record.internal.Record.value()" is null`)
	}
	d := decoder{in: cursor{b: value}}
	kind, version, thrown := d.metadataFrame()
	if thrown != nil {
		return "", thrown
	}
	kinds := []string{
		"RemoteLogSegmentMetadataRecord", "RemoteLogSegmentMetadataUpdateRecord", "RemotePartitionDeleteMetadataRecord",
		"RemoteLogSegmentMetadataSnapshotRecord",
	}
	if int(kind) >= len(kinds) || kind < 0 {
		return "", throwf(classMetadataParse, "%s: Unknown metadata id %d", classUnsupported, kind)
	}
	d.version, d.printed = version, version
	r := remoteReader{version: version, values: map[string]string{}}
	thrown = r.table(&d, "", p.tables.message(kinds[kind]))
	if thrown != nil {
		return "", throwf(classMetadataParse, "Failed to deserialize record with type %d", kind)
	}
	if left := len(d.in.b); left > 0 {
		return "", throwf(classMetadataParse, "Found %d byte(s) of garbage after %d", left, kind)
	}
	switch kind {
	case 0:
		return r.segment()
	case 1:
		return r.update()
	case 2:
		return r.partitionDelete()
	default:
		return r.snapshot()
	}
}

// remoteReader holds a record's fields as text, by their names and those of the structures they are in.
type remoteReader struct {
	version int16
	values  map[string]string
	epochs  map[int32]int64
	custom  bool
	size    int
}

// table reads the fields of a table whose names begin with prefix.
func (r *remoteReader) table(d *decoder, prefix string, t *table) *Exception {
	for i := range t.fields {
		f := &t.fields[i]
		if f.tag >= 0 {
			r.values[prefix+f.name] = f.absent
			continue
		}
		if thrown := r.field(d, prefix, f); thrown != nil {
			return thrown
		}
	}
	tagged := make([][]byte, len(t.fields))
	if thrown := d.tags(tagged, t); thrown != nil {
		return thrown
	}
	for i, json := range tagged {
		if json != nil {
			_, value, _ := strings.Cut(string(json), ":")
			r.values[prefix+t.fields[i].name] = value
		}
	}
	return nil
}

func (r *remoteReader) field(d *decoder, prefix string, f *field) *Exception {
	switch {
	case f.array:
		return r.leaderEpochs(d, f)
	case f.kind == kindStruct:
		if r.version > f.inner.highest {
			return throwf(classUnsupported, "Can't read version %d of %s", r.version, f.inner.name)
		}
		return r.table(d, prefix+f.name+".", f.inner)
	case f.kind == kindBytes:
		n := d.length(true, false)
		if thrown := d.failure(); thrown != nil || n < 0 {
			return thrown
		}
		b, thrown := d.array(n)
		r.custom, r.size = true, len(b)
		return thrown
	case f.kind == kindString:
		n := d.length(true, true)
		if thrown := d.failure(); thrown != nil {
			return thrown
		}
		if n < 0 || n > maxStringLength {
			return throwNull(f.name)
		}
		b, thrown := d.array(n)
		r.values[prefix+f.name] = string(b)
		return thrown
	default:
		text := d.scalar(nil, f.kind)
		r.values[prefix+f.name] = strings.Trim(string(text), `"`)
		return d.failure()
	}
}

// leaderEpochs reads the one array there is: epochs and their first offsets.
func (r *remoteReader) leaderEpochs(d *decoder, f *field) *Exception {
	n := d.length(true, false)
	if thrown := d.failure(); thrown != nil {
		return thrown
	}
	if n < 0 || int64(n) > int64(len(d.in.b)) {
		return throwNull(f.name)
	}
	r.epochs = map[int32]int64{}
	for range n {
		if r.version > f.inner.highest {
			return throwf(classUnsupported, "Can't read version %d of %s", r.version, f.inner.name)
		}
		epoch, offset := d.in.take(4), d.in.take(8)
		if thrown := d.failure(); thrown != nil {
			return thrown
		}
		if thrown := d.tags(nil, f.inner); thrown != nil {
			return thrown
		}
		r.epochs[int32be(epoch)] = int64be(offset)
	}
	return nil
}

// named returns "NAME=VALUE" with the value of a field.
func (r *remoteReader) named(name, field string) string { return name + "=" + r.values[field] }

func (r *remoteReader) topicIDPartition(prefix string) string {
	return r.values[prefix+"id"] + ":" + r.values[prefix+"name"] + "-" + r.values[prefix+"partition"]
}

func (r *remoteReader) segmentID() string {
	const id = "remoteLogSegmentId."
	return "remoteLogSegmentId=RemoteLogSegmentId{topicIdPartition=" + r.topicIDPartition(id+"topicIdPartition.") +
		", id=" + r.values[id+"id"] + "}"
}

func (r *remoteReader) leaderEpochText() string {
	epochs := make([]int32, 0, len(r.epochs))
	for epoch := range r.epochs {
		epochs = append(epochs, epoch)
	}
	slices.Sort(epochs)
	parts := make([]string, len(epochs))
	for i, epoch := range epochs {
		parts[i] = fmt.Sprintf("%d=%d", epoch, r.epochs[epoch])
	}
	return "segmentLeaderEpochs={" + strings.Join(parts, ", ") + "}"
}

func (r *remoteReader) customMetadata() string {
	if !r.custom {
		return "customMetadata=Optional.empty"
	}
	return fmt.Sprintf("customMetadata=Optional[CustomMetadata{%d bytes}]", r.size)
}

// state is the name of a state, of which Kafka refuses one it does not know.
func (r *remoteReader) state(field string, names []string) (string, *Exception) {
	n, err := strconv.Atoi(r.values[field])
	if err == nil && n >= 0 && n < len(names) {
		return "state=" + names[n], nil
	}
	if field == "remotePartitionDeleteState" {
		return "", throwNoMessage(classNullPointer)
	}
	return "", throwf(classNullPointer, "state can not be null")
}

func (r *remoteReader) segmentState() (string, *Exception) {
	return r.state("remoteLogSegmentState", []string{
		"COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED", "DELETE_SEGMENT_FINISHED",
	})
}

func throwNoEpochs() *Exception {
	return throwf(classIllegalArgument, "segmentLeaderEpochs can not be null or empty")
}

func (r *remoteReader) segment() (string, *Exception) {
	start, end := r.values["startOffset"], r.values["endOffset"]
	from, _ := strconv.ParseInt(start, 10, 64)
	to, _ := strconv.ParseInt(end, 10, 64)
	switch {
	case from < 0:
		return "", throwf(classIllegalArgument,
			"Unexpected start offset = %s. StartOffset for a remote segment cannot be negative", start)
	case to < from:
		return "", throwf(classIllegalArgument, "Unexpected end offset = %s. "+
			"EndOffset for a remote segment cannot be less than startOffset = %s", end, start)
	case len(r.epochs) == 0:
		return "", throwNoEpochs()
	}
	state, thrown := r.segmentState()
	return "RemoteLogSegmentMetadata{" + strings.Join([]string{
		r.segmentID(), "startOffset=" + start, "endOffset=" + end, r.named("brokerId", "brokerId"),
		r.named("maxTimestampMs", "maxTimestampMs"), r.named("eventTimestampMs", "eventTimestampMs"), r.leaderEpochText(),
		r.named("segmentSizeInBytes", "segmentSizeInBytes"), r.customMetadata(), state,
		r.named("txnIdxEmpty", "txnIndexEmpty"),
	}, ", ") + "}", thrown
}

func (r *remoteReader) update() (string, *Exception) {
	state, thrown := r.segmentState()
	return "RemoteLogSegmentMetadataUpdate{" + strings.Join([]string{
		r.segmentID(), r.customMetadata(), state, r.named("eventTimestampMs", "eventTimestampMs"),
		r.named("brokerId", "brokerId"),
	}, ", ") + "}", thrown
}

func (r *remoteReader) partitionDelete() (string, *Exception) {
	state, thrown := r.state("remotePartitionDeleteState", []string{
		"DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED",
	})
	return "RemotePartitionDeleteMetadata{" + strings.Join([]string{
		"topicPartition=" + r.topicIDPartition("topicIdPartition."), state,
		r.named("eventTimestampMs", "eventTimestampMs"), r.named("brokerId", "brokerId"),
	}, ", ") + "}", thrown
}

func (r *remoteReader) snapshot() (string, *Exception) {
	state, thrown := r.segmentState()
	if thrown == nil && len(r.epochs) == 0 {
		thrown = throwNoEpochs()
	}
	return "RemoteLogSegmentMetadataSnapshot{" + strings.Join([]string{
		r.named("segmentId", "segmentId"), r.named("startOffset", "startOffset"), r.named("endOffset", "endOffset"),
		r.named("maxTimestampMs", "maxTimestampMs"), r.leaderEpochText(),
		r.named("segmentSizeInBytes", "segmentSizeInBytes"), r.customMetadata(), state,
		r.named("txnIdxEmpty", "txnIndexEmpty"),
	}, ", ") + "}", thrown
}
