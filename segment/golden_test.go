package segment

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// kafkaFiles returns the files that Kafka wrote, by path relative to the images' log directories.
func kafkaFiles(t *testing.T, pattern string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("../testdata/golden/*/logdir", pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no %s: %v", pattern, err)
	}
	files := make(map[string][]byte, len(paths))
	for _, path := range paths {
		if files[path], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func TestKafkaWroteEpochFiles_ReadAndWriteBackEqual(t *testing.T) {
	entries := 0
	for path, want := range kafkaFiles(t, "*/"+epochFileName) {
		h, dropped, err := parseEpochFile(want)
		if err != nil || dropped != 0 {
			t.Errorf("%s: %d dropped, %v", path, dropped, err)
			continue
		}
		entries += len(h.entries)
		if got := h.append(nil); len(want) > 0 && !bytes.Equal(got, want) {
			t.Errorf("%s: %q, written anew %q", path, want, got)
		}
	}
	if entries < 5 {
		t.Errorf("only %d entries were seen", entries)
	}
}

func TestKafkaWroteOffsetCheckpoints_ReadAndWriteBackEqual(t *testing.T) {
	entries := 0
	for path, b := range kafkaFiles(t, "*-offset-checkpoint") {
		offsets, err := parseOffsetCheckpoint(b)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		entries += len(offsets)
		written := appendOffsetCheckpoint(nil, offsets)
		again, err := parseOffsetCheckpoint(written)
		if err != nil || !maps.Equal(again, offsets) || len(b) > 0 && len(written) != len(b) { // in hash order there
			t.Errorf("%s: %q, written anew %q, %v", path, b, written, err)
		}
	}
	if entries < 5 {
		t.Errorf("only %d entries were seen", entries)
	}
}

func TestKafkaWroteMetadataFiles_Read(t *testing.T) {
	for path, want := range kafkaFiles(t, "*/"+metadataFileName) {
		id, err := parsePartitionMetadata(want)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		dir := t.TempDir()
		if err := WritePartitionMetadata(dir, id); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, metadataFileName)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %q, written anew %q, %v", path, want, got, err)
		}
	}
	for path, b := range kafkaFiles(t, metaPropertiesName) {
		m, err := parseMetaProperties(b)
		if err != nil || m.ClusterID == "" || m.DirectoryID.IsZero() {
			t.Errorf("%s: %+v, %v", path, m, err)
			continue
		}
		again, err := parseMetaProperties(m.append(nil))
		if err != nil || again != m {
			t.Errorf("%s: %+v, written anew %+v, %v", path, m, again, err)
		}
	}
}

// TestKafkaWroteLogs_EveryBatchAndRecordReads walks every log of every image down to the records, which decides the
// layout tables of batches and records, and every codec as Kafka's producers write it.
func TestKafkaWroteLogs_EveryBatchAndRecordReads(t *testing.T) {
	d := decompressor(t, 0)
	codecs, records := map[int8]int{}, 0
	for path, b := range kafkaFiles(t, "*/*.log") {
		it := NewBatchIterator(b)
		for it.Next() {
			batch := it.Batch()
			if err := batch.Validate(); err != nil {
				t.Errorf("%s at %d: %v", path, it.Pos(), err)
			}
			plain, err := d.Decompress(batch.Codec(), batch.Magic(), batch.Records())
			if err != nil {
				t.Errorf("%s at %d: %v", path, it.Pos(), err)
				continue
			}
			all, err := readRecords(batch, plain)
			if err != nil || len(all) != int(batch.RecordsCount()) {
				t.Errorf("%s at %d: %d of %d records, %v", path, it.Pos(), len(all), batch.RecordsCount(), err)
			}
			checkRewritten(t, path, batch, plain, all)
			codecs[batch.Codec()]++
			records += len(all)
		}
		if err := it.Err(); err != nil {
			t.Errorf("%s at %d: %v", path, it.Pos(), err)
		}
	}
	for codec := CodecNone; codec <= CodecZstd; codec++ {
		if codecs[codec] == 0 {
			t.Errorf("no batch of codec %s", CodecName(codec))
		}
	}
	if records < 100 {
		t.Errorf("only %d records", records)
	}
}

// checkRewritten writes a batch anew from what was read and compares every byte.
func checkRewritten(t *testing.T, path string, batch Batch, plain []byte, all []Record) {
	t.Helper()
	if batch.Magic() != 2 || batch.LogAppendTime() { // those records' own times are not kept
		return
	}
	var again []byte
	for i := range all {
		again = AppendRecord(again, batch.BaseOffset(), batch.BaseTimestampMs(), &all[i])
	}
	if !bytes.Equal(again, plain) {
		t.Errorf("%s: records at %d written anew differ", path, batch.BaseOffset())
	}
	h := BatchHeader{
		BaseOffset: batch.BaseOffset(), LeaderEpoch: batch.LeaderEpoch(), Attributes: batch.Attributes(),
		LastOffsetDelta: batch.LastOffsetDelta(), BaseTimestampMs: batch.BaseTimestampMs(),
		MaxTimestampMs: batch.MaxTimestampMs(), ProducerID: batch.ProducerID(), ProducerEpoch: batch.ProducerEpoch(),
		BaseSequence: batch.BaseSequence(), RecordsCount: batch.RecordsCount(),
	}
	if whole := AppendBatch(nil, &h, batch.Records()); !bytes.Equal(whole, batch) {
		t.Errorf("%s: batch at %d written anew differs", path, batch.BaseOffset())
	}
}
