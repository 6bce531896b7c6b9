package replicator

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestClientFile_IsAKafkaClientsOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "client.properties")
	text := "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n" +
		"sasl.jaas.config=x.PlainLoginModule required username=\"u\" password=\"hidden\";\n" +
		"client.id=ops\nrequest.timeout.ms=1500\ndefault.api.timeout.ms=2500\nretries=3\nsecurity.protcol=SSL\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := ReadClientFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dial, err := f.Client.DialConfig("h:1", f.ClientID)
	if err != nil {
		t.Fatal(err)
	}
	if dial.ClientID != "ops" || dial.SASL == nil || dial.TLS != nil || dial.RequestTimeout != 1500*time.Millisecond ||
		f.CallTimeout != 2500*time.Millisecond {
		t.Errorf("read %+v and %v", f, dial.RequestTimeout)
	}
	if len(f.Unknown) != 1 || f.Unknown[0] != "security.protcol (the nearest is security.protocol)" {
		t.Errorf("unknown keys: %q", f.Unknown)
	}
}

func TestClientFile_FaultsNameTheKeyAndHoldNoSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "client.properties")
	text := "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n" +
		"sasl.jaas.config=x.PlainLoginModule required username=\"u\" password=\"hidden\"\nrequest.timeout.ms=soon\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := ReadClientFile(path)
	if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "request.timeout.ms") ||
		!strings.Contains(err.Error(), "sasl.jaas.config") || strings.Contains(err.Error(), "hidden") {
		t.Errorf("error %v", err)
	}
	if _, err := ReadClientFile(path + ".not"); !errors.Is(err, ErrConfig) {
		t.Errorf("no file: %v", err)
	}
}
