package segment

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"testing"
)

// kafkaRecords is a batch Kafka 4.3.1 wrote: 3 records at 5..7, epoch 4, producer 9 epoch 3, base sequence 2^31-2,
// one header h=null.
const kafkaRecords = "00000000000000050000004b000000040295f975f50000000000020000018bcfe568000000018bcfe5680500000000000000" +
	"0900037ffffffe0000000316000000026b0276020268010c000a020100000c000104000100"

// kafkaAbort is an ABORT marker Kafka 4.3.1 wrote: offset 7, epoch 4, producer 9 epoch 3, coordinator epoch 12.
const kafkaAbort = "00000000000000070000004200000004027c3d2ea40030000000000000018bcfe568000000018bcfe56800000000000000000" +
	"90003ffffffff000000012000000008000000000c00000000000c00"

func fromHex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func readRecords(b Batch, plain []byte) ([]Record, error) {
	var all []Record
	r := NewRecordReader(b, plain)
	for {
		rec, ok := r.Next()
		if !ok {
			return all, r.Err()
		}
		rec.Headers = append([]Header(nil), rec.Headers...)
		all = append(all, rec)
	}
}

func TestRecords_KafkaBytes(t *testing.T) {
	b := Batch(fromHex(t, kafkaRecords))
	records, err := readRecords(b, b.Records())
	if err != nil || len(records) != 3 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	first := records[0]
	if first.Offset != 5 || string(first.Key) != "k" || string(first.Value) != "v" || first.Sequence != 2147483646 ||
		len(first.Headers) != 1 || first.Headers[0].Key != "h" || first.Headers[0].Value != nil {
		t.Errorf("first record %+v", first)
	}
	if records[1].Sequence != 2147483647 || records[2].Sequence != 0 || records[2].Offset != 7 {
		t.Errorf("the sequence wraps as %d, %d", records[1].Sequence, records[2].Sequence)
	}
	var again []byte
	for i := range records {
		again = AppendRecord(again, b.BaseOffset(), b.BaseTimestampMs(), &records[i])
	}
	if !bytes.Equal(again, b.Records()) {
		t.Errorf("records written anew:\n% x\nKafka's:\n% x", again, b.Records())
	}
	h := BatchHeader{
		BaseOffset: 5, LeaderEpoch: 4, LastOffsetDelta: 2, BaseTimestampMs: b.BaseTimestampMs(),
		MaxTimestampMs: b.MaxTimestampMs(), ProducerID: 9, ProducerEpoch: 3, BaseSequence: 2147483646, RecordsCount: 3,
	}
	if whole := AppendBatch(nil, &h, again); !bytes.Equal(whole, b) {
		t.Errorf("batch written anew:\n% x\nKafka's:\n% x", whole, []byte(b))
	}
}

func TestRecords_NullIsNotEmpty(t *testing.T) {
	nulls := Record{Headers: []Header{{"h", nil}, {"", []byte{}}, {"h", []byte("dup")}}, Sequence: -1}
	empty := Record{
		Offset: 1, Key: []byte{}, Value: []byte{}, Headers: []Header{{"", []byte{}}}, Sequence: -1,
	}
	plain := AppendRecord(AppendRecord(nil, 0, 0, &nulls), 0, 0, &empty)
	b := Batch(AppendBatch(nil, &BatchHeader{LastOffsetDelta: 1, RecordsCount: 2, BaseSequence: -1}, plain))
	records, err := readRecords(b, b.Records())
	if err != nil || !reflect.DeepEqual(records, []Record{nulls, empty}) {
		t.Errorf("%+v, %v", records, err)
	}
}

func TestRecords_TimeIsOfTheBatchOrOfTheRecord(t *testing.T) {
	const horizon, now = 1700000000000, 1800000000000
	record := Record{TimestampMs: now}
	for name, h := range map[string]BatchHeader{
		"log append time": {Attributes: attrLogAppendTime, BaseTimestampMs: -1, MaxTimestampMs: now, RecordsCount: 1},
		"delete horizon":  {Attributes: attrDeleteHorizon, BaseTimestampMs: horizon, MaxTimestampMs: now, RecordsCount: 1},
	} {
		base := h.BaseTimestampMs
		if h.Attributes == attrLogAppendTime {
			base = now - 5 // a delta of 5 that has to be left out
		}
		b := Batch(AppendBatch(nil, &h, AppendRecord(nil, 0, base, &record)))
		records, err := readRecords(b, b.Records())
		if err != nil || records[0].TimestampMs != now {
			t.Errorf("%s: %+v, %v", name, records, err)
		}
	}
}

func TestRecords_HeaderThatContradictsTheBodyIsAnError(t *testing.T) {
	one := AppendRecord(nil, 0, 0, &Record{Value: []byte("v")})
	for name, c := range map[string]struct {
		count int32
		plain []byte
	}{
		"count 5, one record":   {5, one},
		"count 0, one record":   {0, one},
		"length beyond the end": {1, one[:len(one)-1]},
		"length too short":      {1, append([]byte{one[0] - 2}, one[1:]...)},
		"header count":          {1, append(bytes.Clone(one[:len(one)-1]), 0xfe, 0xff, 0xff, 0xff, 0x0f)},
		"negative header count": {1, append(bytes.Clone(one[:len(one)-1]), 1)},
		"varint without an end": {1, []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80}},
		"nothing":               {1, nil},
	} {
		b := Batch(AppendBatch(nil, &BatchHeader{RecordsCount: c.count}, c.plain))
		if _, err := readRecords(b, c.plain); !errors.Is(err, ErrCorruptRecord) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzRecordReader(f *testing.F) {
	seed := fromHex(f, kafkaRecords)[batchHeaderSize:]
	f.Add(seed, int32(3))
	f.Add(fromHex(f, kafkaAbort)[batchHeaderSize:], int32(1))
	f.Fuzz(func(t *testing.T, plain []byte, count int32) {
		b := Batch(AppendBatch(nil, &BatchHeader{RecordsCount: count, BaseSequence: -1}, nil))
		records, err := readRecords(b, plain)
		if err != nil {
			return
		}
		var again []byte
		for i := range records {
			again = AppendRecord(again, 0, 0, &records[i])
		}
		reread, err := readRecords(b, again)
		if err != nil || !reflect.DeepEqual(records, reread) {
			t.Errorf("accepted % x, written anew it reads as %+v, %v", plain, reread, err)
		}
		if len(again) == len(plain) && !bytes.Equal(again, plain) {
			t.Errorf("accepted % x, written anew it is % x", plain, again)
		}
		if len(plain) > 0 && count > 0 {
			if _, err := readRecords(b, plain[:len(plain)-1]); err == nil {
				t.Error("accepted without its last byte")
			}
		}
	})
}
