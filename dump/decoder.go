package dump

import (
	"encoding/hex"
	"fmt"
	"strconv"
)

// parser makes text of a record's key and value and appends it to dst: "key: K" behind prefix, and "payload: V"
// behind prefix or a blank. What it throws ends the tool. Kafka: DumpLogSegments.MessageParser.
type parser interface {
	parse(dst []byte, prefix string, rec *record) ([]byte, *Exception)
}

// appendContents appends a key and a value that are there.
func appendContents(dst []byte, prefix string, key, value []byte) []byte {
	if key != nil {
		dst = append(append(append(dst, prefix...), "key: "...), key...)
		prefix = " "
	}
	if value != nil {
		dst = append(append(append(dst, prefix...), "payload: "...), value...)
	}
	return dst
}

// valueDecoder appends what one of Kafka's decoders makes of bytes. Kafka: tools.api.Decoder.
type valueDecoder func(dst, b []byte) ([]byte, *Exception)

// decoderOf returns Kafka's decoder of that class. Other Java classes cannot be run here.
func decoderOf(class string, text Charset) (valueDecoder, error) {
	switch class {
	case stringDecoder:
		return func(dst, b []byte) ([]byte, *Exception) { return text.appendText(dst, b), nil }, nil
	case "org.apache.kafka.tools.api.IntegerDecoder":
		return func(dst, b []byte) ([]byte, *Exception) {
			if len(b) < 4 {
				return dst, throwNoMessage(classBufferUnderflow)
			}
			return strconv.AppendInt(dst, int64(int32be(b)), 10), nil
		}, nil
	case "org.apache.kafka.tools.api.LongDecoder":
		return func(dst, b []byte) ([]byte, *Exception) {
			if len(b) < 8 {
				return dst, throwNoMessage(classBufferUnderflow)
			}
			return strconv.AppendInt(dst, int64be(b), 10), nil
		}, nil
	case "org.apache.kafka.tools.api.DefaultDecoder":
		// Kafka prints the address of a Java array here.
		return func(dst, b []byte) ([]byte, *Exception) { return hex.AppendEncode(dst, b), nil }, nil
	default:
		return nil, fmt.Errorf("%q is no decoder of Kafka's own, and other Java classes cannot be run here; "+
			"there are StringDecoder, IntegerDecoder, LongDecoder and DefaultDecoder of org.apache.kafka.tools.api", class)
	}
}

// plainParser prints key and value each by a decoder. Kafka: DumpLogSegments.DecoderMessageParser.
type plainParser struct{ key, value valueDecoder }

func (p *plainParser) parse(dst []byte, prefix string, rec *record) ([]byte, *Exception) {
	if thrown := rec.load(); thrown != nil {
		return dst, thrown
	}
	var thrown *Exception
	if rec.key != nil {
		if dst, thrown = p.key(append(append(dst, prefix...), "key: "...), rec.key); thrown != nil {
			return dst, thrown
		}
		prefix = " "
	}
	if rec.value != nil {
		dst, thrown = p.value(append(append(dst, prefix...), "payload: "...), rec.value)
	}
	return dst, thrown
}

// newParser returns the parser that the options ask for; of several, Kafka takes the first in this order.
func newParser(o *Options, text Charset) (parser, *Exception) {
	switch {
	case o.decoders.offsets:
		consumer := newTables(consumerTables)
		return &coordinatorParser{byType: coordinatorTables(offsetsTables), text: text, embedded: map[string]*table{
			"subscription": consumer.message("ConsumerProtocolSubscription"),
			"assignment":   consumer.message("ConsumerProtocolAssignment"),
		}}, nil
	case o.decoders.transactions:
		return &coordinatorParser{byType: coordinatorTables(transactionTables), text: text}, nil
	case o.decoders.clusterMetadata:
		return &metadataParser{byType: metadataTables(), text: text}, nil
	case o.decoders.remoteMetadata:
		return &remoteParser{tables: newTables(remoteTables), text: text}, nil
	case o.decoders.shareState:
		return &coordinatorParser{byType: coordinatorTables(shareTables), text: text}, nil
	case o.decoders.mirrorState:
		return &coordinatorParser{byType: coordinatorTables(mirrorTables), text: text}, nil
	}
	var p plainParser
	for _, d := range []struct {
		option *argument
		to     *valueDecoder
	}{{&o.valueDecoder, &p.value}, {&o.keyDecoder, &p.key}} {
		class, thrown := d.option.one(stringDecoder)
		if thrown != nil {
			return nil, thrown
		}
		decoder, err := decoderOf(class, text)
		if err != nil {
			return nil, throwf(classRuntime, "%s", err)
		}
		*d.to = decoder
	}
	return &p, nil
}
