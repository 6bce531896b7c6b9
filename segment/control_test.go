package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"segmirror/psm"
)

func TestEndTxnMarker_KafkaBytes(t *testing.T) {
	m := EndTxnMarker{
		Offset: 7, LeaderEpoch: 4, TimestampMs: 1700000000000, ProducerID: 9, ProducerEpoch: 3, CoordinatorEpoch: 12,
	}
	got := m.AppendTo([]byte("x"))[1:]
	if want := fromHex(t, kafkaAbort); !bytes.Equal(got, want) || len(got) != 78 {
		t.Errorf("marker is\n% x\nKafka's\n% x", got, want)
	}
	var meta batchMeta
	m.Commit = true
	if err := meta.read(Batch(m.AppendTo(nil)), 0); err != nil || meta.Marker != (psm.Marker{Type: psm.MarkerCommit, CoordinatorEpoch: 12}) {
		t.Errorf("COMMIT reads as %+v, %v", meta.Marker, err)
	}
}

func TestMirrorPidReset_HasNoProducerAndReadsBack(t *testing.T) {
	r := MirrorPidReset{Offset: 42, LeaderEpoch: 3, TimestampMs: 1700000000000, SourceClusterID: "5L6g3nShT-eMCtK--X86sw"}
	b := Batch(r.AppendTo(nil))
	if err := b.Validate(); err != nil {
		t.Fatal(err)
	}
	if b.ProducerID() != -1 || b.ProducerEpoch() != -1 || b.BaseSequence() != -1 || b.Transactional() || !b.Control() {
		t.Errorf("producer %d, epoch %d, transactional %t", b.ProducerID(), b.ProducerEpoch(), b.Transactional())
	}
	var meta batchMeta
	if err := meta.read(b, 0); err != nil || meta.Marker.Type != psm.MarkerPidReset {
		t.Errorf("reads as %+v, %v", meta.Marker, err)
	}
	records, err := readRecords(b, b.Records())
	if err != nil || len(records) != 1 || records[0].Offset != 42 {
		t.Fatalf("%+v, %v", records, err)
	}
	kind, err := ParseControlKey(records[0].Key)
	if err != nil || kind != ControlMirrorPidReset || len(records[0].Key) != 4 {
		t.Errorf("key % x: %v, %v", records[0].Key, kind, err)
	}
	id, err := ParseMirrorPidReset(records[0].Value)
	if err != nil || id != r.SourceClusterID || len(records[0].Value) != 2+1+len(id)+1 {
		t.Errorf("value % x: %q, %v", records[0].Value, id, err)
	}
	tagged := append(bytes.Clone(records[0].Value[:len(records[0].Value)-1]), 1, 9, 2, 0xaa, 0xbb)
	if id, err := ParseMirrorPidReset(tagged); err != nil || id != r.SourceClusterID {
		t.Errorf("with a tagged field: %q, %v", id, err)
	}
}

func TestControlRecords_MalformedOnesAreErrors(t *testing.T) {
	for name, err := range map[string]error{
		"key of 2 bytes":          second(ParseControlKey([]byte{0, 0})),
		"negative key version":    second(ParseControlKey([]byte{0xff, 0xff, 0, 0})),
		"marker of 2 bytes":       second(ParseEndTxnMarker([]byte{0, 0})),
		"negative marker version": second(ParseEndTxnMarker([]byte{0x80, 0, 0, 0, 0, 0})),
		"reset of 1 byte":         second(ParseMirrorPidReset([]byte{0})),
		"null cluster id":         second(ParseMirrorPidReset([]byte{0, 0, 0, 0})),
		"cluster id too long":     second(ParseMirrorPidReset([]byte{0, 0, 9, 'a', 0})),
		"no tagged fields":        second(ParseMirrorPidReset([]byte{0, 0, 2, 'a'})),
		"tagged field too long":   second(ParseMirrorPidReset([]byte{0, 0, 2, 'a', 1, 0, 9, 1})),
		"bytes behind":            second(ParseMirrorPidReset([]byte{0, 0, 2, 'a', 0, 1})),
	} {
		if !errors.Is(err, ErrCorruptControl) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A newer version with more in it reads as version 0 does.
	if kind, err := ParseControlKey([]byte{0, 1, 0, 1, 9, 9}); err != nil || kind != ControlCommit {
		t.Errorf("key version 1: %v, %v", kind, err)
	}
	if epoch, err := ParseEndTxnMarker([]byte{0, 1, 0, 0, 0, 5, 1, 2, 3}); err != nil || epoch != 5 {
		t.Errorf("marker version 1: %d, %v", epoch, err)
	}
}

func second[T any](_ T, err error) error { return err }

func FuzzParseControl(f *testing.F) {
	r := MirrorPidReset{SourceClusterID: "abc"}
	b := Batch(r.AppendTo(nil))
	key, value, _ := firstRecord(b.Records(), 0)
	f.Add(key, value)
	f.Add([]byte{0, 0, 0, 1}, binary.BigEndian.AppendUint32([]byte{0, 0}, 7))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		if kind, err := ParseControlKey(key); err == nil {
			if again, err := ParseControlKey(AppendControlKey(nil, kind)); err != nil || again != kind {
				t.Errorf("type %d reads back as %d, %v", kind, again, err)
			}
		}
		if id, err := ParseMirrorPidReset(value); err == nil {
			r := MirrorPidReset{SourceClusterID: id}
			b := Batch(r.AppendTo(nil))
			_, value, _ := firstRecord(b.Records(), 0)
			if again, err := ParseMirrorPidReset(value); err != nil || again != id {
				t.Errorf("%q reads back as %q, %v", id, again, err)
			}
		}
		if epoch, err := ParseEndTxnMarker(value); err == nil && epoch != int32(binary.BigEndian.Uint32(value[2:])) {
			t.Errorf("coordinator epoch %d of % x", epoch, value)
		}
	})
}
