package dump

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// metadataParser prints the records of __cluster_metadata, which have no keys. Kafka:
// DumpLogSegments.ClusterMetadataLogMessageParser.
type metadataParser struct {
	byType map[int16]metadataTable
	text   Charset
	value  []byte
}

// metadataTable is a table and the name of its type as Kafka prints it.
type metadataTable struct {
	*table
	typeName string
}

func (p *metadataParser) parse(dst []byte, prefix string, rec *record) ([]byte, *Exception) {
	if thrown := rec.load(); thrown != nil {
		return dst, thrown
	}
	if thrown := p.record(rec.value); thrown != nil {
		p.value = fmt.Appendf(p.value[:0], "Error at %d, skipping. ", rec.offset)
		p.value = p.text.appendText(p.value, []byte(thrown.message()))
	}
	return appendContents(dst, prefix, nil, p.value), nil
}

func (p *metadataParser) record(value []byte) *Exception {
	d := decoder{text: p.text, in: cursor{b: value}}
	kind, version, thrown := d.metadataFrame()
	if thrown != nil {
		return thrown
	}
	t, known := p.byType[kind]
	if !known {
		return throwf(classMetadataParse, "%s: Unknown metadata id %d", classUnsupported, kind)
	}
	p.value = append(append(append(p.value[:0], `{"type":"`...), t.typeName...), `","version":`...)
	p.value = append(strconv.AppendInt(p.value, int64(version), 10), `,"data":`...)
	if p.value, thrown = d.message(p.value, t.table, version, version); thrown != nil {
		return throwf(classMetadataParse, "Failed to deserialize record with type %d", kind)
	}
	if left := len(d.in.b); left > 0 {
		return throwf(classMetadataParse, "Found %d byte(s) of garbage after %d", left, kind)
	}
	p.value = append(p.value, '}')
	return nil
}

// metadataFrame reads what stands in front of a metadata record: frame version, type and version as varints.
// Kafka: AbstractApiMessageSerde.read.
func (d *decoder) metadataFrame() (kind, version int16, thrown *Exception) {
	frame, thrown := d.short("frame version")
	if thrown != nil {
		return 0, 0, thrown
	}
	switch frame {
	case 1:
	case 0:
		return 0, 0, throwf(classMetadataParse, "Could not deserialize metadata record with frame version 0. "+
			"Note that upgrades from the preview release of KRaft in 2.8 to newer versions are not supported.")
	default:
		return 0, 0, throwf(classMetadataParse, "Could not deserialize metadata record due to unknown frame version "+
			"%d(only frame version 1 is supported)", frame)
	}
	if kind, thrown = d.short("type"); thrown == nil {
		version, thrown = d.short("version")
	}
	return kind, version, thrown
}

func (d *decoder) short(what string) (int16, *Exception) {
	v := d.in.unsigned()
	if d.in.failed() {
		return 0, throwf(classMetadataParse, "Error while reading %s", what)
	}
	if v > math.MaxInt16 {
		return 0, throwf(classMetadataParse, "Value for %s was too large.", what)
	}
	return int16(v), nil
}

// metadataTables returns the tables of __cluster_metadata by the type of record.
func metadataTables() map[int16]metadataTable {
	byType := map[int16]metadataTable{}
	for name, m := range *newTables(clusterTables) {
		byType[m.kind] = metadataTable{table: m, typeName: enumName(name)}
	}
	return byType
}

// enumName is NoOpRecord's NO_OP_RECORD.
func enumName(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String()
}
