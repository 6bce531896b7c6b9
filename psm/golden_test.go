package psm

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestKafkaWroteSnapshots_ReadAndWriteBackEqual(t *testing.T) {
	paths, err := filepath.Glob("../testdata/golden/*/logdir/*/*.snapshot")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no snapshots: %v", err)
	}
	producers, open := 0, 0
	for _, path := range paths {
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		entries, err := DecodeSnapshot(want)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if got := AppendSnapshot(nil, entries); !bytes.Equal(got, want) {
			t.Errorf("%s: % x, written anew % x", path, want, got)
		}
		offset, ok := ParseSnapshotName(filepath.Base(path))
		if !ok {
			t.Errorf("%s: its name is not understood", path)
		}
		m := New()
		if err := m.Load(entries, offset); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		producers += m.Len()
		open += len(m.OngoingTxns())
	}
	if producers < 5 || open == 0 {
		t.Errorf("only %d producers and %d open transactions were seen", producers, open)
	}
}
