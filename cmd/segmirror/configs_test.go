package main

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"segmirror/admin/fakeagent"
	"segmirror/fetchwire"
)

// keepConfigs makes a peer keep the configurations of resources by kind and name, refuse the key "bad", and know no
// others.
func keepConfigs(a *fakeagent.Agent, source int8, kind int8, name string, values map[string]string) {
	words := "Unknown mirror configuration: bad"
	gone := "there is none"
	fakeagent.On(a, func(req *fetchwire.IncrementalAlterConfigsRequest) fetchwire.Response {
		resp := &fetchwire.IncrementalAlterConfigsResponse{}
		for _, r := range req.Resources {
			out := fetchwire.AlterConfigsResult{ResourceType: r.ResourceType, ResourceName: r.ResourceName}
			if r.ResourceType != kind || r.ResourceName != name {
				out.ErrorCode, out.ErrorMessage = fetchwire.CodeUnknownMirror, &gone
			}
			for _, c := range r.Configs {
				switch {
				case c.Name == "bad":
					out.ErrorCode, out.ErrorMessage = fetchwire.CodeInvalidConfig, &words
				case c.Op == fetchwire.ConfigDelete:
					delete(values, c.Name)
				default:
					values[c.Name] = *c.Value
				}
			}
			resp.Resources = append(resp.Resources, out)
		}
		return resp
	})
	fakeagent.On(a, func(req *fetchwire.DescribeConfigsRequest) fetchwire.Response {
		resp := &fetchwire.DescribeConfigsResponse{}
		for _, r := range req.Resources {
			out := fetchwire.DescribeConfigsResult{ResourceType: r.ResourceType, ResourceName: r.ResourceName}
			if r.ResourceType != kind || r.ResourceName != name {
				out.ErrorCode, out.ErrorMessage = fetchwire.CodeUnknownMirror, &gone
			} else {
				out.Configs = described(source, values)
			}
			resp.Resources = append(resp.Resources, out)
		}
		return resp
	})
}

// described lists values as set, a password as sensitive, and one default.
func described(source int8, values map[string]string) []fetchwire.DescribedConfig {
	fallback := "100"
	configs := []fetchwire.DescribedConfig{{
		Name: "a.default", Value: &fallback, Source: fetchwire.ConfigSourceDefault,
		ConfigSynonyms: []fetchwire.ConfigSynonym{{Name: "a.default", Value: &fallback, Source: fetchwire.ConfigSourceDefault}},
	}}
	for key, value := range maps.All(values) {
		c := fetchwire.DescribedConfig{Name: key, Value: &value, Source: source}
		if key == "sasl.jaas.config" {
			c.Value, c.IsSensitive = nil, true
		}
		c.ConfigSynonyms = []fetchwire.ConfigSynonym{{Name: key, Value: c.Value, Source: source}}
		configs = append(configs, c)
	}
	return configs
}

func TestConfigs_AlterSetsListsAndDeletes(t *testing.T) {
	a := fakeagent.Start(t, 4)
	values := map[string]string{"old": "1"}
	keepConfigs(a, fetchwire.ConfigSourceMirror, fetchwire.ResourceMirror, "my-mirror", values)
	at := []string{"configs", "--bootstrap-server", a.Addr(), "--alter", "--entity-type", "mirrors", "--entity-name", "my-mirror"}
	got := success(t, append(at, "--add-config", "bootstrap.servers=[a:1,b:2], empty=,k = v ,", "--delete-config", "old")...)
	if got != "Completed updating config for mirror my-mirror.\n" {
		t.Errorf("prints %q", got)
	}
	if want := map[string]string{"bootstrap.servers": "a:1,b:2", "empty": "", "k": "v"}; !maps.Equal(values, want) {
		t.Errorf("set %v, want %v", values, want)
	}
	file := mirrorFile(t, "from.file = x=y,z\n")
	success(t, append(at, "--add-config-file", file)...)
	if values["from.file"] != "x=y,z" {
		t.Errorf("from the file: %v", values)
	}
	failure(t, append(at, "--add-config", "bad=1"),
		"mirror my-mirror: "+a.Addr()+": INVALID_CONFIG (40): Unknown mirror configuration: bad")
	failure(t, []string{"configs", "--bootstrap-server", a.Addr(), "--alter", "--mirror", "nope", "--add-config", "k=v"},
		"mirror nope: "+a.Addr()+": UNKNOWN_MIRROR (1136): there is none")
}

func TestConfigs_OfBrokersAndTopicsHaveTheirLines(t *testing.T) {
	a := fakeagent.Start(t, 4)
	values := map[string]string{}
	keepConfigs(a, fetchwire.ConfigSourceDynamicBroker, fetchwire.ResourceBroker, "4", values)
	at := []string{"configs", "--bootstrap-server", a.Addr()}
	got := success(t, append(at, "--entity-type", "brokers", "--entity-name", "4", "--alter", "--add-config",
		"mirror.replication.throttled.rate=100000000")...)
	if got != "Completed updating config for broker 4.\n" || values["mirror.replication.throttled.rate"] != "100000000" {
		t.Errorf("prints %q, set %v", got, values)
	}
	got = success(t, append(at, "--broker", "4", "--describe")...)
	want := "Dynamic configs for broker 4 are:\n  mirror.replication.throttled.rate=100000000 sensitive=false " +
		"synonyms={DYNAMIC_BROKER_CONFIG:mirror.replication.throttled.rate=100000000}\n"
	if got != want {
		t.Errorf("prints %q, want %q", got, want)
	}
	if got := success(t, append(at, "--broker", "5", "--describe")...); got !=
		"The broker '5' doesn't exist and doesn't have dynamic config.\n" {
		t.Errorf("of another broker: %q", got)
	}
	failure(t, append(at, "--broker", "5", "--alter", "--delete-config", "k"), "no node has the id 5; those reached have [4]")
	keepConfigs(a, fetchwire.ConfigSourceDynamicDefault, fetchwire.ResourceBroker, "", values)
	got = success(t, append(at, "--entity-type", "brokers", "--entity-default", "--alter", "--add-config", "k=v")...)
	if got != "Completed updating default config for brokers in the cluster.\n" {
		t.Errorf("prints %q", got)
	}
	keepConfigs(a, fetchwire.ConfigSourceTopic, fetchwire.ResourceTopic, "my-topic", values)
	got = success(t, append(at, "--entity-type", "topics", "--entity-name", "my-topic", "--alter", "--add-config",
		"mirror.replication.throttled.replicas=[0:4]")...)
	if got != "Completed updating config for topic my-topic.\n" || values["mirror.replication.throttled.replicas"] != "0:4" {
		t.Errorf("prints %q, set %v", got, values)
	}
}

func TestConfigs_DescribeShowsWhatIsSetAndAll(t *testing.T) {
	a := fakeagent.Start(t, 4)
	keepConfigs(a, fetchwire.ConfigSourceMirror, fetchwire.ResourceMirror, "dr", map[string]string{
		"sasl.jaas.config": "secret", "mirror.topics.include": "o.*",
	})
	fakeagent.On(a, func(*fetchwire.ListMirrorsRequest) fetchwire.Response {
		return &fetchwire.ListMirrorsResponse{Mirrors: []fetchwire.ListedMirror{{MirrorName: "dr"}}}
	})
	at := []string{"configs", "--bootstrap-server", a.Addr(), "--entity-type", "mirrors", "--describe"}
	dynamic := "Dynamic configs for mirror dr are:\n" +
		"  mirror.topics.include=o.* sensitive=false synonyms={DYNAMIC_MIRROR_CONFIG:mirror.topics.include=o.*}\n" +
		"  sasl.jaas.config=null sensitive=true synonyms={DYNAMIC_MIRROR_CONFIG:sasl.jaas.config=null}\n"
	if got := success(t, at...); got != dynamic {
		t.Errorf("all mirrors: %q, want %q", got, dynamic)
	}
	all := strings.Replace(dynamic, "Dynamic configs for mirror dr are:\n", "All configs for mirror dr are:\n"+
		"  a.default=100 sensitive=false synonyms={DEFAULT_CONFIG:a.default=100}\n", 1)
	if got := success(t, append(at, "--entity-name", "dr", "--all")...); got != all {
		t.Errorf("--all: %q, want %q", got, all)
	}
	var parsed []describedConfigs
	got := success(t, append(at, "--json")...)
	if err := json.Unmarshal([]byte(got), &parsed); err != nil || len(parsed) != 1 || len(parsed[0].Configs) != 2 {
		t.Fatalf("--json: %q, %v", got, err)
	}
	if e := parsed[0].Configs[1]; e.Name != "sasl.jaas.config" || e.Value != nil || !e.Sensitive || strings.Contains(got, "secret") {
		t.Errorf("--json shows %+v", e)
	}
	if got := success(t, append(at, "--entity-name", "x")...); got != "The mirror 'x' doesn't exist and doesn't have dynamic config.\n" {
		t.Errorf("a mirror that is not there: %q", got)
	}
	if got := success(t, append(at, "--entity-name", "x", "--json")...); got != "[]\n" {
		t.Errorf("a mirror that is not there, --json: %q", got)
	}
}

func TestAddConfig_GroupsInBrackets(t *testing.T) {
	for list, want := range map[string]map[string]string{
		"a=b":                        {"a": "b"},
		"a=[b,c],d=e":                {"a": "b,c", "d": "e"},
		"a=[x=\"1\" y=\"2\"],b=":     {"a": `x="1" y="2"`, "b": ""},
		"a=1,a=2":                    {"a": "2"},
		" a = b , c = [ d , e ] ,":   {"a": "b", "c": "d , e"},
		"a=[[b]]":                    {"a": "b"},
		"replicas=[0:4,1:4],rate=10": {"replicas": "0:4,1:4", "rate": "10"},
	} {
		got, err := parseAddConfig(list)
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%q: %v, %v; want %v", list, got, err, want)
		}
	}
	for _, list := range []string{"", "a", "a=b=c", "a=b,,c=d", ",a=b"} {
		if got, err := parseAddConfig(list); err == nil {
			t.Errorf("%q: %v, want an error", list, got)
		}
	}
}

func FuzzParseAddConfig(f *testing.F) {
	for _, list := range []string{"a=b", "a=[b,c],d=e", "a=b=c", "[", "]=", ",", "a=[", "=,="} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		got, err := parseAddConfig(list)
		if err != nil {
			if words := kafkaWords(""); !errors.As(err, &words) || got != nil {
				t.Fatalf("%q: %v, %v", list, got, err)
			}
			return
		}
		for _, value := range got {
			if strings.ContainsAny(value, "[]") {
				t.Fatalf("%q: brackets in the value %q", list, value)
			}
		}
	})
}
