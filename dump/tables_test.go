package dump

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"segmirror/bench/kafka"
)

// definition is one of Kafka's message definitions, or a field or structure of one.
type definition struct {
	Name             string       `json:"name"`
	APIKey           *int         `json:"apiKey"`
	ValidVersions    string       `json:"validVersions"`
	FlexibleVersions string       `json:"flexibleVersions"`
	Type             string       `json:"type"`
	Versions         string       `json:"versions"`
	NullableVersions string       `json:"nullableVersions"`
	Tag              *int         `json:"tag"`
	Default          any          `json:"default"`
	Fields           []definition `json:"fields"`
	CommonStructs    []definition `json:"commonStructs"`
}

// TestTables_AreKafkas reads the message definitions out of Kafka's jars and compares every table with them.
func TestTables_AreKafkas(t *testing.T) {
	kafka.Require(t)
	dist, err := kafka.Install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ours := *newTables(offsetsTables, transactionTables, shareTables, clusterTables, controlTables, consumerTables, remoteTables)
	delete(ours, "MirrorPidResetRecord") // not Kafka's
	for _, source := range []struct{ jar, pattern string }{
		{"kafka-group-coordinator", "common/message/*.json"},
		{"kafka-transaction-coordinator", "common/message/*.json"},
		{"kafka-share-coordinator", "common/message/*.json"},
		{"kafka-metadata", "common/metadata/*.json"},
		{"kafka-storage", "message/Remote*.json"},
		{"kafka-clients", "common/message/*Record.json"},
		{"kafka-clients", "common/message/LeaderChangeMessage.json"},
		{"kafka-clients", "common/message/ConsumerProtocol*.json"},
	} {
		jar := filepath.Join(dist.Libs, source.jar+"-"+kafka.Version+".jar")
		for _, text := range readDefinitions(t, jar, source.pattern) {
			for name, want := range *newTables(text) {
				got, ok := ours[name]
				if !ok {
					t.Errorf("there is no table %s", name)
				} else if !reflect.DeepEqual(got, want) {
					t.Errorf("%s is not\n%s", name, text)
				}
				delete(ours, name)
			}
		}
	}
	for name := range ours {
		t.Errorf("Kafka has no %s", name)
	}
}

// readDefinitions returns the definitions in a jar as the texts of tables.
func readDefinitions(t *testing.T, jar, pattern string) []string {
	t.Helper()
	z, err := zip.OpenReader(jar)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var texts []string
	for _, f := range z.File {
		if ok, err := path.Match(pattern, f.Name); err != nil || !ok {
			continue
		}
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		var d definition
		if err := json.Unmarshal(withoutComments(content), &d); err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		texts = append(texts, d.table())
	}
	if len(texts) == 0 {
		t.Fatalf("%s has no %s", jar, pattern)
	}
	return texts
}

func withoutComments(content []byte) []byte {
	var b strings.Builder
	for line := range strings.Lines(string(content)) {
		if !strings.HasPrefix(strings.TrimSpace(line), "//") {
			b.WriteString(line)
		}
	}
	return []byte(b.String())
}

func (d *definition) table() string {
	var b strings.Builder
	kind := "-"
	if d.APIKey != nil {
		kind = fmt.Sprint(*d.APIKey)
	}
	fmt.Fprintf(&b, "%s %s %s", d.Name, kind, d.ValidVersions)
	if d.FlexibleVersions != "none" {
		fmt.Fprintf(&b, " flexible %s", strings.TrimSuffix(d.FlexibleVersions, "+"))
	}
	b.WriteByte('\n')
	for i := range d.Fields {
		d.Fields[i].line(&b, 1)
	}
	for i := range d.CommonStructs {
		fmt.Fprintf(&b, "\tstruct %s\n", d.CommonStructs[i].Name)
		for j := range d.CommonStructs[i].Fields {
			d.CommonStructs[i].Fields[j].line(&b, 2)
		}
	}
	return b.String()
}

func (d *definition) line(b *strings.Builder, deep int) {
	fmt.Fprintf(b, "%s%s%s %s", strings.Repeat("\t", deep), strings.ToLower(d.Name[:1]), d.Name[1:], d.Type)
	if d.Versions != "" {
		fmt.Fprintf(b, " %s", d.Versions)
	}
	if d.NullableVersions != "" {
		fmt.Fprintf(b, " null %s", d.NullableVersions)
	}
	if d.Tag != nil {
		fmt.Fprintf(b, " tag %d", *d.Tag)
	}
	limited := d.Versions != "" && d.Versions != "0+"
	if d.Default != nil && (d.Tag != nil || limited) {
		fmt.Fprintf(b, " default %v", d.Default)
	}
	b.WriteByte('\n')
	for i := range d.Fields {
		d.Fields[i].line(b, deep+1)
	}
}
