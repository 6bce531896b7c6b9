package dump

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"
)

// decoder makes JSON of a message's bytes by its table, as Kafka's generated classes read and its JSON converters
// print it. Kafka: MessageDataGenerator, JsonConverterGenerator, ByteBufferAccessor.
type decoder struct {
	text    Charset
	in      cursor
	version int16 // of the bytes
	printed int16 // in whose shape they are printed

	consumers bool // the group's protocol type is "consumer", whose members' bytes are messages of their own
	embedded  map[string]*table
}

const maxStringLength = 0x7fff

// message appends the JSON of a message of a version, in the shape of another version, to dst.
func (d *decoder) message(dst []byte, t *table, version, printed int16) ([]byte, *Exception) {
	d.version, d.printed = version, printed
	return d.structure(dst, t)
}

// structure reads the fields that stand in the version, then the tagged ones, and prints all in the table's order.
func (d *decoder) structure(dst []byte, t *table) ([]byte, *Exception) {
	var (
		scratch []byte
		tagged  [][]byte // JSON by field, of those that were there
		thrown  *Exception
		first   = true
	)
	dst = append(dst, '{')
	if t.tags && d.version >= t.flexible {
		tagged = make([][]byte, len(t.fields))
	}
	body := len(dst)
	direct := tagged == nil
	for i := range t.fields {
		f := &t.fields[i]
		if f.tag >= 0 {
			continue
		}
		if direct {
			if dst, first, thrown = d.untagged(dst, f, t, first); thrown != nil {
				return dst, thrown
			}
			continue
		}
		from := len(scratch)
		none := true
		if scratch, none, thrown = d.untagged(scratch, f, t, true); thrown != nil {
			return dst, thrown
		}
		if !none {
			tagged[i] = scratch[from:len(scratch):len(scratch)]
		}
	}
	if d.version >= t.flexible && !t.bare {
		if thrown := d.tags(tagged, t); thrown != nil {
			return dst, thrown
		}
	}
	for i := range tagged {
		if tagged[i] == nil {
			continue
		}
		if len(dst) > body {
			dst = append(dst, ',')
		}
		dst = append(dst, tagged[i]...)
	}
	return append(dst, '}'), nil
}

// untagged reads a field where the version has it and appends its name and value where the printed version does.
func (d *decoder) untagged(dst []byte, f *field, t *table, first bool) (_ []byte, stillFirst bool, thrown *Exception) {
	has, shows := f.versions.has(d.version), f.versions.has(d.printed)
	if !has && !shows {
		return dst, first, nil
	}
	before := len(dst)
	if !first {
		dst = append(dst, ',')
	}
	dst = append(append(append(dst, '"'), f.name...), `":`...)
	if !has {
		return append(dst, f.absent...), false, nil
	}
	if dst, thrown = d.value(dst, f, d.version >= t.flexible, false); thrown != nil {
		return dst, first, thrown
	}
	if !shows {
		return dst[:before], first, nil
	}
	return dst, false, nil
}

// tags reads the tagged fields. Those that are what they are when absent are not printed.
func (d *decoder) tags(tagged [][]byte, t *table) *Exception {
	count := d.in.unsigned()
	for range max(count, 0) {
		tag, size := d.in.unsigned(), d.in.unsigned()
		if thrown := d.failure(); thrown != nil {
			return thrown
		}
		i := t.tagged(tag)
		if i < 0 {
			if _, thrown := d.array(size); thrown != nil {
				return thrown
			}
			continue
		}
		f := &t.fields[i]
		if !f.versions.has(d.version) {
			return throwf(classRuntime, "Tag %d is not valid for version %d", tag, d.version)
		}
		json := append(append([]byte{'"'}, f.name...), `":`...)
		start := len(json)
		json, thrown := d.value(json, f, true, true)
		if thrown != nil {
			return thrown
		}
		tagged[i] = nil
		if string(json[start:]) != f.absent {
			tagged[i] = json
		}
	}
	return d.failure()
}

// tagged returns the index of the field with the tag, -1 where there is none.
func (t *table) tagged(tag int32) int {
	for i := range t.fields {
		if t.tags && t.fields[i].tag == tag && tag >= 0 {
			return i
		}
	}
	return -1
}

// failure is what reading beyond the end, or a broken varint, throws.
func (d *decoder) failure() *Exception {
	switch {
	case d.in.illegal != nil:
		return d.in.illegal
	case d.in.short:
		return throwNoMessage(classBufferUnderflow)
	}
	return nil
}

// value reads a field and appends its JSON.
func (d *decoder) value(dst []byte, f *field, flexible, tagged bool) ([]byte, *Exception) {
	if f.array {
		return d.elements(dst, f, flexible)
	}
	switch f.kind {
	case kindString:
		return d.stringValue(dst, f, f.name, f.nullable.has(d.version), flexible)
	case kindBytes:
		return d.bytesValue(dst, f, flexible)
	case kindStruct:
		if f.nullable.has(d.version) {
			there := false
			if tagged {
				there = d.in.unsigned() > 0
			} else {
				there = int8(d.in.byte()) >= 0
			}
			if thrown := d.failure(); thrown != nil {
				return dst, thrown
			}
			if !there {
				return append(dst, "null"...), nil
			}
		}
		return d.inner(dst, f.inner)
	default:
		dst = d.scalar(dst, f.kind)
		return dst, d.failure()
	}
}

func (d *decoder) inner(dst []byte, t *table) ([]byte, *Exception) {
	if d.version > t.highest {
		return dst, throwf(classUnsupported, "Can't read version %d of %s", d.version, t.name)
	}
	return d.structure(dst, t)
}

// length reads the length of a string, bytes or array.
func (d *decoder) length(flexible, short bool) int32 {
	switch {
	case flexible:
		return d.in.unsigned() - 1
	case short:
		if b := d.in.take(2); b != nil {
			return int32(int16be(b))
		}
	default:
		if b := d.in.take(4); b != nil {
			return int32be(b)
		}
	}
	return 0
}

// array reads n bytes. Kafka: ByteBufferAccessor.readArray.
func (d *decoder) array(n int32) ([]byte, *Exception) {
	if left := len(d.in.b); int64(n) > int64(left) {
		return nil, throwf(classRuntime, "Error reading byte array of %d byte(s): only %d byte(s) available", n, left)
	}
	if n < 0 {
		return nil, throwf(classNegativeArray, "%d", n)
	}
	return d.in.take(n), nil
}

func throwNull(name string) *Exception {
	return throwf(classRuntime, "non-nullable field %s was serialized as null", name)
}

func (d *decoder) stringValue(dst []byte, f *field, name string, nullable, flexible bool) ([]byte, *Exception) {
	n := d.length(flexible, true)
	switch thrown := d.failure(); {
	case thrown != nil:
		return dst, thrown
	case n < 0 && nullable:
		return append(dst, "null"...), nil
	case n < 0:
		return dst, throwNull(name)
	case n > maxStringLength:
		return dst, throwf(classRuntime, "string field %s had invalid length %d", name, n)
	}
	b, thrown := d.array(n)
	if thrown != nil {
		return dst, thrown
	}
	if f.name == "protocolType" && string(b) == "consumer" {
		d.consumers = true
	}
	return d.text.appendJSONString(dst, b), nil
}

func (d *decoder) bytesValue(dst []byte, f *field, flexible bool) ([]byte, *Exception) {
	n := d.length(flexible, false)
	switch thrown := d.failure(); {
	case thrown != nil:
		return dst, thrown
	case n < 0 && f.nullable.has(d.version):
		return append(dst, "null"...), nil
	case n < 0:
		return dst, throwNull(f.name)
	}
	b, thrown := d.array(n)
	if thrown != nil {
		return dst, thrown
	}
	if d.consumers {
		if t, ok := d.embedded[f.name]; ok {
			if json, ok := d.embeddedMessage(dst, t, b); ok {
				return json, nil
			}
		}
	}
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, b)
	return append(dst, '"'), nil
}

// embeddedMessage appends the JSON of a message inside bytes, which begins with its version; false where it is none.
// What follows it is not looked at.
func (d *decoder) embeddedMessage(dst []byte, t *table, b []byte) ([]byte, bool) {
	if len(b) < 2 {
		return dst, false
	}
	version := int16be(b)
	inner := decoder{text: d.text, in: cursor{b: b[2:]}}
	json, thrown := inner.message(dst, t, version, version)
	return json, thrown == nil
}

// elements reads an array.
func (d *decoder) elements(dst []byte, f *field, flexible bool) ([]byte, *Exception) {
	n := d.length(flexible, false)
	left := len(d.in.b)
	switch thrown := d.failure(); {
	case thrown != nil:
		return dst, thrown
	case n < 0 && f.nullable.has(d.version):
		return append(dst, "null"...), nil
	case n < 0:
		return dst, throwNull(f.name)
	case int64(n) > int64(left):
		return dst, throwf(classRuntime,
			"Tried to allocate a collection of size %d, but there are only %d bytes remaining.", n, left)
	}
	var thrown *Exception
	dst = append(dst, '[')
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		switch f.kind {
		case kindStruct:
			dst, thrown = d.inner(dst, f.inner)
		case kindString:
			dst, thrown = d.stringValue(dst, f, f.name+" element", false, flexible)
		default:
			dst = d.scalar(dst, f.kind)
			thrown = d.failure()
		}
		if thrown != nil {
			return dst, thrown
		}
	}
	return append(dst, ']'), nil
}

// scalar reads a field of a fixed size and appends its JSON.
func (d *decoder) scalar(dst []byte, kind fieldKind) []byte {
	var zero [16]byte
	fixed := func(n int32) []byte {
		if b := d.in.take(n); b != nil {
			return b
		}
		return zero[:n]
	}
	switch kind {
	case kindBool:
		return strconv.AppendBool(dst, fixed(1)[0] != 0)
	case kindInt8:
		return strconv.AppendInt(dst, int64(int8(fixed(1)[0])), 10)
	case kindInt16:
		return strconv.AppendInt(dst, int64(int16be(fixed(2))), 10)
	case kindUint16:
		return strconv.AppendUint(dst, uint64(binary.BigEndian.Uint16(fixed(2))), 10)
	case kindInt32:
		return strconv.AppendInt(dst, int64(int32be(fixed(4))), 10)
	case kindInt64:
		return strconv.AppendInt(dst, int64be(fixed(8)), 10)
	case kindFloat64:
		v := math.Float64frombits(binary.BigEndian.Uint64(fixed(8)))
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return append(appendDouble(append(dst, '"'), v), '"')
		}
		return appendDouble(dst, v)
	default: // a UUID
		dst = append(dst, '"')
		dst = base64.RawURLEncoding.AppendEncode(dst, fixed(16))
		return append(dst, '"')
	}
}
