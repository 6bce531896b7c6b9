package replicator

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
)

// kafkaRecords reads the examples that Kafka's protocol types wrote, by name.
func kafkaRecords(tb testing.TB) map[string][]byte {
	tb.Helper()
	text, err := os.ReadFile("../testdata/protocol/messages.txt")
	if err != nil {
		tb.Fatal(err)
	}
	records := map[string][]byte{}
	for line := range strings.Lines(string(text)) {
		name, digits, _ := strings.Cut(strings.TrimSpace(line), " ")
		if records[name], err = hex.DecodeString(digits); err != nil {
			tb.Fatalf("%s: %v", name, err)
		}
	}
	return records
}

const goldenEnd = 0x1122334455667788

var goldenID = [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}

func TestStateRecords_AreWhatKafkaWrites(t *testing.T) {
	examples := kafkaRecords(t)
	state := StateRecord{
		Type: recordPartitionState, Mirror: "my-mirror", Topic: "my-topic", Partition: 3, State: StateMirroring,
	}
	epochs := StateRecord{Type: recordLastMirrorEpochs, Mirror: "my-mirror", Epochs: []LastMirrorEpoch{
		{"my-topic", 0, 4, goldenEnd}, {"my-topic", 9, -1, -1}, {"other", 1, 2, -1},
	}}
	for _, tc := range []struct {
		key, value string
		record     StateRecord
	}{{"state/key1", "state/value1", epochs}, {"state/key2", "state/value2", state}} {
		key, value := examples[tc.key], examples[tc.value]
		if got := tc.record.AppendKey(nil); !bytes.Equal(got, key) || len(key) != 13 {
			t.Errorf("%s is %x, Kafka writes %x", tc.key, got, key)
		}
		if got := tc.record.AppendValue(nil); !bytes.Equal(got, value) {
			t.Errorf("%s is %x, Kafka writes %x", tc.value, got, value)
		}
		if got, err := DecodeStateRecord(key, value); err != nil || !reflect.DeepEqual(got, tc.record) {
			t.Errorf("Kafka's bytes are %+v, %v; want %+v", got, err, tc.record)
		}
	}
	if n := len(examples["state/value2"]); n != 17 {
		t.Errorf("the value has %d bytes, want 17", n)
	}
	batch := appendStateRecords(5, 1_700_000_000_000, []StateRecord{state})
	binary.BigEndian.PutUint32(batch[12:], 0xffffffff) // the leader epoch, as Kafka leaves it until the leader stamps it
	if want := examples["state/batch"]; !bytes.Equal(batch, want) || len(want) != 98 {
		t.Errorf("the batch is\n%x, Kafka writes\n%x", batch, want)
	}
}

func metadataExamples() map[string]MetadataRecord {
	value := "source:9092"
	change := func(minEpoch int32) MetadataRecord {
		return MetadataRecord{PartitionChange: &PartitionChangeRecord{7, goldenID, minEpoch}}
	}
	return map[string]MetadataRecord{
		"metadata/config": {Config: &ConfigRecord{64, "my-mirror", "bootstrap.servers", &value}},
		"metadata/config-deleted": {Config: &ConfigRecord{
			ResourceType: 4, Name: "mirror.replication.throttled.rate",
		}},
		"metadata/acl":                       {ACL: &ACLRecord{goldenID, 8, "my-mirror", 3, "User:alice", "*", 8, 3}},
		"metadata/acl-removed":               {ACLRemoved: &goldenID},
		"metadata/partition-change-2":        change(-1),
		"metadata/partition-change-2-all":    change(-1),
		"metadata/partition-change-3":        change(51),
		"metadata/partition-change-3-leader": change(-1),
	}
}

func TestMetadataRecords_AreWhatKafkaWrites(t *testing.T) {
	examples := kafkaRecords(t)
	for name, want := range metadataExamples() {
		value := examples[name]
		got, err := DecodeMetadataRecord(value)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: Kafka's bytes are %+v, %v", name, got, err)
		}
		if strings.Contains(name, "-2") || strings.HasSuffix(name, "leader") {
			continue // older versions and other changes are read only
		}
		if got := want.AppendTo(nil); !bytes.Equal(got, value) {
			t.Errorf("%s is %x, Kafka writes %x", name, got, value)
		}
	}
}

func TestDecodeMetadataRecord_RefusesWhatItDoesNotKnow(t *testing.T) {
	for name, value := range map[string][]byte{
		"nothing": {}, "a newer frame": {2, 4, 0}, "an unknown type": {1, 99, 0}, "a newer version": {1, 19, 1},
		"a version of a partition change to come": {1, 5, 4}, "a length beyond the record": {1, 4, 0, 64, 0xff, 0xff, 3},
	} {
		if _, err := DecodeMetadataRecord(value); !errors.Is(err, ErrMetadataRecord) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzDecodeMetadataRecord(f *testing.F) {
	examples := kafkaRecords(f)
	for name := range metadataExamples() {
		f.Add(examples[name])
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		r, err := DecodeMetadataRecord(value)
		if err != nil {
			if !errors.Is(err, ErrMetadataRecord) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		again, err := DecodeMetadataRecord(r.AppendTo(nil))
		if err != nil || !reflect.DeepEqual(r, again) {
			t.Fatalf("%x: %+v became %+v, %v", value, r, again, err)
		}
		for n := range value {
			if _, err := DecodeMetadataRecord(value[:n]); err == nil {
				t.Fatalf("%d of %d bytes are accepted", n, len(value))
			}
		}
	})
}
