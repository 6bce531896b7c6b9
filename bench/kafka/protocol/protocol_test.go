package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"segmirror/bench/kafka"
)

func TestMessages_AreWhatKafkaWritesNow(t *testing.T) {
	kafka.Require(t)
	got, m, err := write(t.Context())
	if errors.Is(err, errNoCompiler) {
		t.Skipf("cannot compile here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if m.Kafka != kafka.Version {
		t.Errorf("written by Kafka %s, pinned is %s", m.Kafka, kafka.Version)
	}
	want, err := os.ReadFile(filepath.Join("../../../testdata/protocol", messagesName))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("testdata/protocol/%s is not what this Kafka writes:\n%s", messagesName, got)
	}
}
