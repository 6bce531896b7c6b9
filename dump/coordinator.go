package dump

//lint:file-ignore ST1005 the words of these errors are those that Kafka's tool prints

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// recordTables are the tables of one type of coordinator record.
type recordTables struct{ key, value *table }

// coordinatorParser prints the records of a coordinator's topic: a key is int16 type and the fields of the type's
// key, a value is int16 version and the fields of the type's value. Kafka:
// DumpLogSegments.CoordinatorRecordMessageParser, CoordinatorRecordSerde.
type coordinatorParser struct {
	byType   map[int16]recordTables
	embedded map[string]*table
	text     Charset
	key      []byte
	value    []byte
}

// errUnknownType says that a coordinator has no records of the type.
var errUnknownType = errors.New("unknown record type")

func (p *coordinatorParser) parse(dst []byte, prefix string, rec *record) ([]byte, *Exception) {
	thrown := rec.load()
	if thrown == nil && rec.key == nil {
		thrown = throwf(classRuntime, "Failed to decode message at offset %d using the specified decoder "+
			"(message had a missing key)", rec.offset)
	}
	if thrown != nil {
		return dst, thrown
	}
	kind, err := p.record(rec)
	switch {
	case err == nil:
		return appendContents(dst, prefix, p.key, p.value), nil
	case errors.Is(err, errUnknownType):
		p.key = fmt.Appendf(p.key[:0], "Unknown record type %d at offset %d, skipping.", kind, rec.offset)
	default:
		p.key = fmt.Appendf(p.key[:0], "Error at offset %d, skipping. ", rec.offset)
		p.key = p.text.appendText(p.key, []byte(err.Error()))
	}
	return appendContents(dst, prefix, p.key, nil), nil
}

// record decodes rec into key and value.
func (p *coordinatorParser) record(rec *record) (kind int16, err error) {
	if len(rec.key) < 2 {
		return 0, errors.New("Could not read version from key's buffer.") //nolint:staticcheck // Kafka's words
	}
	kind = int16be(rec.key)
	tables, known := p.byType[kind]
	if !known {
		return kind, errUnknownType
	}
	p.key = strconv.AppendInt(append(p.key[:0], `{"type":"`...), int64(kind), 10)
	p.key = append(p.key, `","data":`...)
	var thrown *Exception
	if p.key, thrown = p.fields(p.key, tables.key, 0, rec.key[2:]); thrown != nil {
		return kind, unreadable("key", kind, thrown)
	}
	p.key = append(p.key, '}')
	if rec.value == nil {
		p.value = append(p.value[:0], "<DELETE>"...)
		return kind, nil
	}
	if len(rec.value) < 2 {
		return kind, errors.New("Could not read version from value's buffer.") //nolint:staticcheck // Kafka's words
	}
	version := int16be(rec.value)
	if version < tables.value.lowest || version > tables.value.highest {
		//nolint:staticcheck // Kafka's words
		return kind, fmt.Errorf("Found an unknown record version %d for %d type", version, kind)
	}
	p.value = strconv.AppendInt(append(p.value[:0], `{"version":"`...), int64(version), 10)
	p.value = append(p.value, `","data":`...)
	if p.value, thrown = p.fields(p.value, tables.value, version, rec.value[2:]); thrown != nil {
		return kind, unreadable("value", version, thrown)
	}
	p.value = append(p.value, '}')
	return kind, nil
}

// fields appends the JSON of b, fields of a version.
func (p *coordinatorParser) fields(dst []byte, t *table, version int16, b []byte) ([]byte, *Exception) {
	d := decoder{text: p.text, in: cursor{b: b}, embedded: p.embedded}
	return d.message(dst, t, version, version)
}

// unreadable is the error where key or value cannot be read; version is the type where it is the key.
func unreadable(what string, version int16, thrown *Exception) error {
	//nolint:staticcheck // Kafka's words
	return fmt.Errorf("Could not read record with version %d from %s's buffer due to: %s.",
		version, what, thrown.message())
}

// coordinatorTables returns the tables of a text by the type of record.
func coordinatorTables(text string) map[int16]recordTables {
	byType := map[int16]recordTables{}
	for name, m := range *newTables(text) {
		pair := byType[m.kind]
		if strings.HasSuffix(name, "Key") {
			pair.key = m
		} else {
			pair.value = m
		}
		byType[m.kind] = pair
	}
	return byType
}
