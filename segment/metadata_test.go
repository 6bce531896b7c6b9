package segment

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const kafkaMetadata = "version: 0\ntopic_id: phIVGnTWSMKcT9jBWWtxDQ"

func TestPartitionMetadata_KafkaBytes(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, metadataFileName)
	if err := os.WriteFile(path, []byte(kafkaMetadata), 0o644); err != nil {
		t.Fatal(err)
	}
	id, err := ReadPartitionMetadata(dir)
	if err != nil || id.String() != "phIVGnTWSMKcT9jBWWtxDQ" {
		t.Fatalf("%v, %v", id, err)
	}
	if err := WritePartitionMetadata(dir, id); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != kafkaMetadata || len(b) != 43 {
		t.Errorf("written anew it is %q, %v", b, err)
	}
}

func TestPartitionMetadata_UnusableFilesAreNamed(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadPartitionMetadata(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	for name, content := range map[string]string{
		"empty":            "",
		"zero id":          "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
		"cut":              "version: 0\ntopic_",
		"negative version": "version: -1\ntopic_id: phIVGnTWSMKcT9jBWWtxDQ",
		"short id":         "version: 0\ntopic_id: phIVGnTWSMKcT9jBWWtxD",
		"not base64url":    "version: 0\ntopic_id: phIVGnTWSMKcT9jBWWtx+Q",
		"zeros":            string(make([]byte, 43)),
	} {
		if _, err := parsePartitionMetadata([]byte(content)); !errors.Is(err, ErrCorruptMetadata) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := parsePartitionMetadata([]byte(strings.Replace(kafkaMetadata, "0", "1", 1))); err != nil {
		t.Errorf("version 1, which Kafka takes: %v", err)
	}
}

func TestMetaProperties_ReadsWhatKafkaWrites(t *testing.T) {
	const kafka = "#\n#Tue Dec 01 00:00:00 UTC 2026\ncluster.id=5L6g3nShT-eMCtK--X86sw\n" +
		"directory.id=phIVGnTWSMKcT9jBWWtxDQ\nnode.id=1\nversion=1\n"
	m, err := parseMetaProperties([]byte(kafka))
	if err != nil || m.Identity != dirID || m.DirectoryID.String() != "phIVGnTWSMKcT9jBWWtxDQ" {
		t.Errorf("%+v, %v", m, err)
	}
	m, err = parseMetaProperties([]byte("version=0\nbroker.id=3\n"))
	if err != nil || m.NodeID != 3 || m.ClusterID != "" {
		t.Errorf("version 0: %+v, %v", m, err)
	}
	for name, content := range map[string]string{
		"version 2":             "version=2\ncluster.id=x\nnode.id=1\n",
		"no cluster.id":         "version=1\nnode.id=1\n",
		"no node.id":            "version=1\ncluster.id=x\n",
		"node.id is no number":  "version=1\ncluster.id=x\nnode.id=one\n",
		"reserved directory.id": "version=1\ncluster.id=x\nnode.id=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\n",
		"bad directory.id":      "version=1\ncluster.id=x\nnode.id=1\ndirectory.id=xyz\n",
	} {
		if _, err := parseMetaProperties([]byte(content)); !errors.Is(err, ErrCorruptMetadata) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMetaProperties_NewDirectoryGetsAnIDOfItsOwn(t *testing.T) {
	seen := make(map[TopicID]bool)
	for range 2 {
		dir := t.TempDir()
		if err := claimMetaProperties(dir, dirID); err != nil {
			t.Fatal(err)
		}
		m, found, err := readMetaProperties(dir)
		if err != nil || !found || m.Identity != dirID || m.DirectoryID.IsZero() || seen[m.DirectoryID] {
			t.Errorf("%+v, %t, %v", m, found, err)
		}
		seen[m.DirectoryID] = true
	}
}

func FuzzParsePartitionMetadata(f *testing.F) {
	f.Add([]byte(kafkaMetadata))
	f.Add([]byte(kafkaMetadata + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		id, err := parsePartitionMetadata(b)
		if err != nil {
			return
		}
		again, err := ParseTopicID(id.String())
		if err != nil || again != id || id.IsZero() {
			t.Errorf("accepted %q as %v, which reads as %v, %v", b, id, again, err)
		}
	})
}

func FuzzParseMetaProperties(f *testing.F) {
	f.Add([]byte("#\ncluster.id=5L6g3nShT-eMCtK--X86sw\ndirectory.id=phIVGnTWSMKcT9jBWWtxDQ\nnode.id=1\nversion=1\n"))
	f.Add([]byte("version=0\nbroker.id=3\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseMetaProperties(b)
		if err != nil || m.ClusterID == "" || m.DirectoryID.IsZero() || strings.ContainsFunc(m.ClusterID, notPrintable) {
			return
		}
		again, err := parseMetaProperties(m.append(nil))
		if err != nil || again != m {
			t.Errorf("accepted %q as %+v, written anew it reads as %+v, %v", b, m, again, err)
		}
	})
}

// notPrintable leaves out what no cluster id has and the writer does not escape.
func notPrintable(r rune) bool { return r < ' ' || r > '~' }
