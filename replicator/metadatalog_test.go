package replicator

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"segmirror/segment"
)

func openMetadata(t *testing.T, path string) (*segment.LogDir, *metadataLog) {
	t.Helper()
	dir, err := segment.OpenLogDir(path, segment.Identity{ClusterID: "here", NodeID: 1})
	if err != nil {
		t.Fatal(err)
	}
	log, err := openMetadataLog(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return dir, log
}

func configSet(kind int8, name, key, value string) MetadataRecord {
	return MetadataRecord{Config: &ConfigRecord{ResourceType: kind, ResourceName: name, Name: key, Value: &value}}
}

func configDeleted(kind int8, name, key string) MetadataRecord {
	return MetadataRecord{Config: &ConfigRecord{ResourceType: kind, ResourceName: name, Name: key}}
}

func TestMetadataLog_HoldsWhatWasAppendedThroughARestart(t *testing.T) {
	path := t.TempDir()
	dir, log := openMetadata(t, path)
	id := segment.TopicID{7}
	bump := func(epoch int32) MetadataRecord {
		return MetadataRecord{PartitionChange: &PartitionChangeRecord{PartitionID: 2, TopicID: id, MinLeaderEpoch: epoch}}
	}
	for _, records := range [][]MetadataRecord{
		{configSet(resourceMirror, "m", "bootstrap.servers", "a:1"), configSet(resourceMirror, "m", "mirror.topics.include", "")},
		{configSet(resourceMirror, "m", "bootstrap.servers", "b:1"), configSet(resourceTopic, "t", "mirror.name", "m")},
		{configDeleted(resourceTopic, "t", "mirror.name"), bump(9), bump(4)},
	} {
		if err := log.append(records...); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 2 {
		want := map[string]string{"bootstrap.servers": "b:1", "mirror.topics.include": ""}
		if got := log.config(resource{resourceMirror, "m"}); !maps.Equal(got, want) {
			t.Errorf("round %d: mirror m has %v, want %v", round, got, want)
		}
		if got := log.names(resourceTopic); len(got) != 0 {
			t.Errorf("round %d: topics %v have a configuration, none should", round, got)
		}
		if got := log.minLeaderEpoch(id, 2); got != 9 {
			t.Errorf("round %d: least leader epoch %d, want 9", round, got)
		}
		if got := log.minLeaderEpoch(id, 3); got != -1 {
			t.Errorf("round %d: another partition's least leader epoch %d, want -1", round, got)
		}
		log.close()
		if err := dir.Close(); err != nil {
			t.Fatal(err)
		}
		dir, log = openMetadata(t, path)
	}
	log.close()
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	wantModes(t, filepath.Join(path, "__cluster_metadata-0"))
}

// wantModes wants a directory and its .log files closed to others: they can hold credentials.
func wantModes(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, files[0]: 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode().Perm(), want)
		}
	}
}

func TestMetadataLog_ClosesFilesThatWereOpenToOthers(t *testing.T) {
	path := t.TempDir()
	dir, log := openMetadata(t, path)
	log.close()
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	inside := filepath.Join(path, "__cluster_metadata-0")
	files, err := filepath.Glob(filepath.Join(inside, "*.log"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	if err := errors.Join(os.Chmod(inside, 0o755), os.Chmod(files[0], 0o644)); err != nil {
		t.Fatal(err)
	}
	dir, log = openMetadata(t, path)
	if err := log.append(configSet(resourceTopic, "t", "k", "v")); err != nil {
		t.Fatal(err)
	}
	wantModes(t, inside)
	log.close()
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestMetadataLog_RefusesAChangeThatIsNoOneBatch(t *testing.T) {
	dir, log := openMetadata(t, t.TempDir())
	many := make([]MetadataRecord, recordLogBatchRecords+1)
	for i := range many {
		many[i] = configSet(resourceTopic, "t", fmt.Sprint(i), "v")
	}
	large := configSet(resourceTopic, "t", "k", strings.Repeat("v", recordLogBatchBytes))
	for _, records := range [][]MetadataRecord{many, {large}} {
		if err := log.append(records...); !errors.Is(err, errChangeTooLarge) {
			t.Errorf("%d records: %v", len(records), err)
		}
	}
	if err := log.append(many[:recordLogBatchRecords]...); err != nil || log.log.LogEndOffset() != recordLogBatchRecords {
		t.Errorf("%v, log end %d", err, log.log.LogEndOffset())
	}
	log.close()
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
}

// What was refused must not count later, neither at once nor after a restart.
func TestMetadataLog_TakesBackWhatItCouldNotMakeDurable(t *testing.T) {
	path := t.TempDir()
	dir, log := openMetadata(t, path)
	if err := log.append(configSet(resourceTopic, "t", "a", "1")); err != nil {
		t.Fatal(err)
	}
	inside := filepath.Join(path, "__cluster_metadata-0")
	if err := os.Rename(inside, inside+".away"); err != nil {
		t.Fatal(err)
	}
	if err := log.append(configSet(resourceTopic, "t", "a", "2")); err == nil {
		t.Fatal("appended to a directory that is gone")
	}
	if err := errors.Join(os.RemoveAll(inside), os.Rename(inside+".away", inside)); err != nil {
		t.Fatal(err)
	}
	if err := log.append(configSet(resourceTopic, "t", "b", "3")); err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		want := map[string]string{"a": "1", "b": "3"}
		if got := log.config(resource{resourceTopic, "t"}); !maps.Equal(got, want) {
			t.Errorf("round %d: %v, want %v", round, got, want)
		}
		log.close()
		if err := dir.Close(); err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			dir, log = openMetadata(t, path)
		}
	}
}

func TestMetadataLog_TellsOfEachChangeOnce(t *testing.T) {
	dir, log := openMetadata(t, t.TempDir())
	var told []string
	log.onChange(func(r resource) { told = append(told, fmt.Sprint(r.kind, " ", r.name)) })
	if err := log.append(
		configSet(resourceMirror, "m", "a", "1"), configSet(resourceMirror, "m", "b", "2"),
		configSet(resourceTopic, "t", "a", "1"),
	); err != nil {
		t.Fatal(err)
	}
	if want := []string{"64 m", "2 t"}; !slices.Equal(told, want) {
		t.Errorf("told of %v, want %v", told, want)
	}
	log.close()
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestMetadataLog_IsRewrittenToWhatItSays(t *testing.T) {
	path := t.TempDir()
	dir, log := openMetadata(t, path)
	log.kind.rewriteBytes = 4 << 10
	for i := range 500 {
		if err := log.append(configSet(resourceTopic, fmt.Sprintf("t%d", i%5), "k", fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	log.close()
	if start, size := log.log.LogStartOffset(), log.log.Size(); start == 0 || size > 8<<10 {
		t.Errorf("log start %d, %d bytes: it was not rewritten", start, size)
	}
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	dir, log = openMetadata(t, path)
	for i := range 5 {
		if got := log.config(resource{resourceTopic, fmt.Sprintf("t%d", i)})["k"]; got != fmt.Sprint(495+i) {
			t.Errorf("t%d has %q, want %d", i, got, 495+i)
		}
	}
	log.close()
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
}
