package dumpcases

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"segmirror/segment"
)

// drawn is random bytes of which most are small, so that they are lengths, counts and flags that often fit.
func drawn(rng *rand.Rand) []byte {
	b := make([]byte, rng.IntN(60))
	for i := range b {
		switch rng.IntN(20) {
		case 0:
			b[i] = byte(rng.IntN(256))
		case 1:
			b[i] = 'a' + byte(rng.IntN(26))
		case 2, 3:
			b[i] = byte(rng.IntN(8))
		default:
			b[i] = byte(rng.IntN(3))
		}
	}
	return b
}

// coordinators are records of every type and version there is, and of some there is not, with random fields.
func (b *builder) coordinators() error {
	decoders := []struct {
		flag            string
		types, versions int
	}{{"--offsets-decoder", 26, 6}, {"--transaction-log-decoder", 3, 4}, {"--share-group-state-decoder", 4, 3}}
	for n, d := range decoders {
		rng := rand.New(rand.NewPCG(uint64(n), 3))
		var records []segment.Record
		for kind := range d.types {
			for version := -1; version < d.versions; version++ {
				for range 150 {
					key := binary.BigEndian.AppendUint16(nil, uint16(kind))
					r := segment.Record{Key: append(key, coordinatorKey(rng)...)}
					if rng.IntN(20) > 0 {
						r.Value = append(binary.BigEndian.AppendUint16(nil, uint16(version)), drawn(rng)...)
					}
					records = append(records, r)
				}
			}
		}
		for size := range 4 {
			records = append(records, segment.Record{Key: make([]byte, size), Value: make([]byte, size)})
		}
		records = append(records, members(rng)...)
		file, err := b.write(fmt.Sprintf("coordinators/%d/%s", n, logName), many(records))
		if err != nil {
			return err
		}
		g := b.group("records"+d.flag[1:], false)
		g.run("--files", file, d.flag)
		g.run("--files", file, d.flag, "--skip-record-metadata")
	}
	return nil
}

// coordinatorKey is fields of a key that mostly are two short strings and a number.
func coordinatorKey(rng *rand.Rand) []byte {
	if rng.IntN(8) == 0 {
		return drawn(rng)
	}
	var b []byte
	for range 2 {
		n := rng.IntN(4)
		b = binary.BigEndian.AppendUint16(b, uint16(n))
		for range n {
			b = append(b, byte(rng.IntN(256)))
		}
	}
	return append(b, make([]byte, 20)...)
}

// members are records of classic consumer groups, whose members' bytes are messages of their own.
func members(rng *rand.Rand) []segment.Record {
	var records []segment.Record
	str := func(b []byte, s string) []byte { return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...) }
	for version := range 4 {
		for range 500 {
			value := binary.BigEndian.AppendUint16(nil, uint16(version))
			value = str(value, []string{"consumer", "connect"}[rng.IntN(8)/7])
			value = binary.BigEndian.AppendUint32(value, 5)
			value = str(str(value, "range"), "leader")
			if version >= 2 {
				value = binary.BigEndian.AppendUint64(value, baseTimeMs)
			}
			value = str(binary.BigEndian.AppendUint32(value, 1), "member")
			if version >= 3 {
				value = str(value, "instance")
			}
			value = str(str(value, "client"), "host")
			if version >= 1 {
				value = binary.BigEndian.AppendUint32(value, 1)
			}
			value = binary.BigEndian.AppendUint32(value, 2)
			for range 2 {
				embedded := embeddedMessage(rng)
				value = append(binary.BigEndian.AppendUint32(value, uint32(len(embedded))), embedded...)
			}
			records = append(records, segment.Record{Key: str([]byte{0, 2}, "g"), Value: value})
		}
	}
	return records
}

// embeddedMessage is a subscription or an assignment, more or less.
func embeddedMessage(rng *rand.Rand) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(rng.IntN(6)-1))
	if rng.IntN(3) == 0 {
		return append(b, drawn(rng)...)
	}
	b = binary.BigEndian.AppendUint32(b, 1)
	b = append(b, 0, 1, 't')
	if rng.IntN(2) == 0 {
		b = append(b, 0, 0, 0, 1, 0, 0, 0, 7)
	}
	b = append(b, 0, 0, 0, 1, 'u')
	b = append(b, 0, 0, 0, 1, 0, 1, 'o', 0, 0, 0, 1, 0, 0, 0, 3)
	b = append(b, 0, 0, 0, 9)
	return append(b, 0, 1, 'r')[:max(2, len(b)-rng.IntN(8))]
}

// metadata are metadata records of every type and version, and remote log metadata, with random fields.
func (b *builder) metadata() error {
	for _, d := range []struct {
		flag  string
		types int
	}{{"--cluster-metadata-decoder", 31}, {"--remote-log-metadata-decoder", 6}} {
		rng := rand.New(rand.NewPCG(uint64(d.types), 4))
		records := []segment.Record{{Value: nil}, {Value: []byte{}}, {Value: []byte{0}}, {Value: []byte{2, 2, 2}}}
		records = append(records, segment.Record{Value: []byte{0xff, 0xff, 0xff, 0xff, 0xff}},
			segment.Record{Value: []byte{1, 0xff, 0xff, 0xff, 7}}, segment.Record{Value: []byte{1, 2}})
		for kind := range d.types {
			for version := range 6 {
				for range 150 {
					value := append([]byte{1, byte(kind), byte(version)}, drawn(rng)...)
					if rng.IntN(2) == 0 {
						value = append(value, make([]byte, 30)...)
					}
					records = append(records, segment.Record{Value: value})
				}
			}
		}
		records = append(records, exact(rng, d.types)...)
		file, err := b.write("metadata/"+d.flag[2:]+"/"+logName, many(records))
		if err != nil {
			return err
		}
		b.group("records"+d.flag[1:], false).run("--files", file, d.flag)
	}
	return nil
}

// exact are values of all lengths of zeros, of which one fits each type.
func exact(rng *rand.Rand, types int) []segment.Record {
	var records []segment.Record
	for kind := range types {
		for size := range 90 {
			for range 6 {
				value := append([]byte{1, byte(kind), 0}, make([]byte, size)...)
				for i := 3; i < len(value); i++ {
					if rng.IntN(3) == 0 {
						value[i] = byte(rng.IntN(2))
					}
				}
				records = append(records, segment.Record{Value: value})
			}
		}
	}
	return records
}

// controls are control records of every type with random values, each in a log of its own: Kafka's tool ends at the
// first that it cannot read.
func (b *builder) controls() error {
	rng := rand.New(rand.NewPCG(7, 7))
	g := b.group("records-control", false)
	for kind := range 7 {
		for i := range 100 {
			value := append([]byte{0, byte(rng.IntN(3))}, drawn(rng)...)
			if rng.IntN(10) == 0 {
				value[0] = 0xff
			}
			file, err := b.write(fmt.Sprintf("controls/%d.log", kind*1000+i), single(0, 0x20, control(int16(kind), value)))
			if err != nil {
				return err
			}
			g.run("--files", file, "--deep-iteration")
		}
	}
	return nil
}
