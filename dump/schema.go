package dump

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A table says which fields a record has, in the lines of a text. The first line names the record:
//
//	OffsetCommitValue 1 0-4 flexible 4
//
// its type (- where it has none), the versions there are, and the first whose encoding is flexible (none). The fields
// follow, each behind as many tabs as it is deep:
//
//	topicId uuid 4+ null 5+ tag 0 default null
//
// its name as it is printed; bool, int8 to int64, uint16, float64, string, bytes, uuid, or the name of a structure,
// of which [] makes an array; the versions that have it (all); those in which it may be null (none); its tag; and
// what it is where the tag is absent. A structure's fields follow the first field of that type, or a line
//
//	struct TopicPartitions
//
// Kafka: the message definitions in its *.json files.

// table is a message or structure.
type table struct {
	name            string
	kind            int16 // the record's type
	lowest, highest int16
	flexible        int16 // first flexible version
	fields          []field
	tags            bool // some field is tagged
	bare            bool // a structure that no tagged fields can follow
}

// noVersion is the first flexible version of a table that has none.
const noVersion = math.MaxInt16

// versions is a range of versions.
type versions struct{ from, to int16 }

func (v versions) has(version int16) bool { return v.from <= version && version <= v.to }

// field is one field of a table.
type field struct {
	name     string
	kind     fieldKind
	array    bool
	inner    *table
	versions versions
	nullable versions // from > to: never
	tag      int32    // -1: none
	absent   string   // JSON of what a tagged field is where it is absent
}

// fieldKind is a field's type, or that of an array's elements.
type fieldKind int8

const (
	kindBool fieldKind = iota
	kindInt8
	kindInt16
	kindInt32
	kindInt64
	kindUint16
	kindFloat64
	kindString
	kindBytes
	kindUUID
	kindStruct
)

var fieldKinds = map[string]fieldKind{
	"bool": kindBool, "int8": kindInt8, "int16": kindInt16, "int32": kindInt32, "int64": kindInt64,
	"uint16": kindUint16, "float64": kindFloat64, "string": kindString, "bytes": kindBytes, "uuid": kindUUID,
}

const zeroUUID = `"AAAAAAAAAAAAAAAAAAAAAA"`

// tables are the tables in use, by name.
type tables map[string]*table

// newTables reads texts of tables, which are part of the program.
func newTables(texts ...string) *tables {
	all := tables{}
	for _, text := range texts {
		var lines []string
		for line := range strings.SplitSeq(text+"\n", "\n") {
			if !strings.HasPrefix(line, "\t") && len(lines) > 0 {
				all.add(lines)
				lines = nil
			}
			if line != "" {
				lines = append(lines, line)
			}
		}
	}
	return &all
}

// message returns a table that there is.
func (t *tables) message(name string) *table {
	m, ok := (*t)[name]
	if !ok {
		panic("BUG: no table " + name)
	}
	return m
}

func (t *tables) add(lines []string) {
	words := strings.Fields(lines[0])
	m := &table{name: words[0], flexible: noVersion}
	if words[1] != "-" {
		m.kind = number(words[1])
	}
	v := versionsOf(words[2])
	m.lowest, m.highest = v.from, v.to
	if len(words) == 5 && words[3] == "flexible" {
		m.flexible = number(words[4])
	}
	p := tableParser{message: m, structs: map[string]*table{}}
	p.commonStructs(lines[1:])
	p.fields(m, lines[1:], 1)
	(*t)[m.name] = m
}

// tableParser reads the lines of one table.
type tableParser struct {
	message *table
	structs map[string]*table
}

func depth(line string) int { return len(line) - len(strings.TrimLeft(line, "\t")) }

// commonStructs makes the structures that have a line of their own, which may use each other.
func (p *tableParser) commonStructs(lines []string) {
	for pass := range 2 {
		for i, line := range lines {
			name, ok := strings.CutPrefix(strings.TrimLeft(line, "\t"), "struct ")
			switch {
			case !ok:
			case pass == 0:
				p.structs[name] = p.newStruct(name)
			default:
				p.fields(p.structs[name], lines[i+1:], 2)
			}
		}
	}
}

func (p *tableParser) newStruct(name string) *table {
	m := p.message
	return &table{name: name, lowest: m.lowest, highest: m.highest, flexible: m.flexible}
}

// fields reads the lines of a depth until one that is less deep.
func (p *tableParser) fields(t *table, lines []string, deep int) {
	for i, line := range lines {
		switch {
		case depth(line) < deep, strings.HasPrefix(strings.TrimLeft(line, "\t"), "struct "):
			return
		case depth(line) == deep:
			f := p.field(strings.Fields(line), lines[i+1:], deep)
			t.tags = t.tags || f.tag >= 0
			t.fields = append(t.fields, f)
		}
	}
}

func (p *tableParser) field(words, following []string, deep int) field {
	valid := versions{p.message.lowest, p.message.highest}
	f := field{name: words[0], versions: valid.within(valid), nullable: versions{1, 0}, tag: -1}
	kind, array := strings.CutPrefix(words[1], "[]")
	f.array = array
	if k, ok := fieldKinds[kind]; ok {
		f.kind = k
	} else {
		f.kind = kindStruct
		f.inner = p.structs[kind]
		if f.inner == nil {
			f.inner = p.newStruct(kind)
			p.structs[kind] = f.inner
			p.fields(f.inner, following, deep+1)
		}
	}
	absent := ""
	for words = words[2:]; len(words) > 0; {
		switch words[0] {
		case "null":
			f.nullable = versionsOf(words[1]).within(valid)
		case "tag":
			f.tag = int32(number(words[1]))
		case "default":
			absent = words[1]
		case "bare":
			f.inner.bare = true
			words = words[1:]
			continue
		default:
			f.versions = versionsOf(words[0]).within(valid)
			words = words[1:]
			continue
		}
		words = words[2:]
	}
	f.absent = f.absentJSON(absent)
	return f
}

// absentJSON is the JSON of the field where it is absent; stated is what the table says of that.
func (f *field) absentJSON(stated string) string {
	switch {
	case stated != "":
		return stated
	case f.array:
		return "[]"
	}
	switch f.kind {
	case kindBool:
		return "false"
	case kindString, kindBytes:
		return `""`
	case kindUUID:
		return zeroUUID
	case kindFloat64:
		return "0.0"
	case kindStruct:
		var parts []string
		for i := range f.inner.fields {
			inner := &f.inner.fields[i]
			if inner.tag < 0 {
				parts = append(parts, strconv.Quote(inner.name)+":"+inner.absent)
			}
		}
		return "{" + strings.Join(parts, ",") + "}"
	default:
		return "0"
	}
}

// versionsOf reads 3, 1-2 or 3+.
func versionsOf(text string) versions {
	from, open := strings.CutSuffix(text, "+")
	from, to, isRange := strings.Cut(from, "-")
	v := versions{from: number(from)}
	switch {
	case open:
		v.to = math.MaxInt16
	case isRange:
		v.to = number(to)
	default:
		v.to = v.from
	}
	return v
}

// within opens the bounds that are those of the valid versions: Kafka's code does not compare with them.
func (v versions) within(valid versions) versions {
	if v.from <= valid.from {
		v.from = math.MinInt16
	}
	if v.to >= valid.to {
		v.to = math.MaxInt16
	}
	return v
}

func number(text string) int16 {
	n, err := strconv.ParseInt(text, 10, 16)
	if err != nil {
		panic(fmt.Sprintf("BUG: %q in a table", text))
	}
	return int16(n)
}
