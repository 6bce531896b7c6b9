package segment

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func containsAll(s string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}

func TestOffsetCheckpoint_RoundTripInOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), recoveryPointsName)
	offsets := map[TopicPartition]int64{{"b", 10}: 5, {"b", 2}: 1 << 40, {"a.x_y", 0}: 0}
	if err := WriteOffsetCheckpoint(path, offsets); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil || string(b) != "0\n3\na.x_y 0 0\nb 2 1099511627776\nb 10 5\n" {
		t.Errorf("file is %q, %v", b, err)
	}
	if again, err := ReadOffsetCheckpoint(path); err != nil || !maps.Equal(again, offsets) {
		t.Errorf("read back %v, %v", again, err)
	}
	if !gone(t, path+temporarySuffix) {
		t.Error("the temporary file is left")
	}
}

func TestOffsetCheckpoint_AbsentAndEmptyHaveNoEntries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	for range 2 {
		if offsets, err := ReadOffsetCheckpoint(path); err != nil || offsets == nil || len(offsets) != 0 {
			t.Errorf("%v, %v", offsets, err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOffsetCheckpoint_ReadsWhatKafkaReads(t *testing.T) {
	offsets, err := parseOffsetCheckpoint([]byte("0\n3\nt 0 5\nt\t1  7\nt 0 9\n"))
	want := map[TopicPartition]int64{{"t", 0}: 9, {"t", 1}: 7}
	if err != nil || !maps.Equal(offsets, want) {
		t.Errorf("%v, %v, want %v: any white space parts words, the last of two lines counts", offsets, err, want)
	}
}

func TestOffsetCheckpoint_DamageNamesItsLine(t *testing.T) {
	for content, line := range map[string]string{
		"aa\n":                             "line 1",
		"0\n1\naa\n":                       "line 3",
		"0\n3\nt 0 1\nt 1 1\n":             "line 5",
		"0\n1\nt 0 1\nt 1 1\n":             "line 4",
		"0\n1\nt x 1\n":                    "line 3",
		"0\n1\nt -1 1\n":                   "line 3",
		"0\n1\n\nt 0 1\n":                  "line 3",
		"0\n-1\n":                          "line 2",
		"0":                                "line 2",
		"0\n2147483647\n":                  "line 3",
		strings.Repeat("\x00", 20):         "line 1",
		"0\n1\n t 0 1\n":                   "line 3",
		"0\n1\nt 0 99999999999999999999\n": "line 3",
	} {
		if _, err := parseOffsetCheckpoint([]byte(content)); !errors.Is(err, ErrCorruptCheckpoint) || !containsAll(err.Error(), line+":") {
			t.Errorf("%q: %v, want %s", content, err, line)
		}
	}
}

func FuzzParseOffsetCheckpoint(f *testing.F) {
	f.Add([]byte("0\n2\na 0 5\nb 1 7\n"))
	f.Add([]byte("0\n1\nt\t0  5\n"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, b []byte) {
		offsets, err := parseOffsetCheckpoint(b)
		if err != nil {
			return
		}
		again, err := parseOffsetCheckpoint(appendOffsetCheckpoint(nil, offsets))
		if err != nil || !maps.Equal(again, offsets) {
			t.Errorf("accepted %q as %v, written anew it reads as %v, %v", b, offsets, again, err)
		}
	})
}
