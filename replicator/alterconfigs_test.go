package replicator

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"segmirror/fetchwire"
)

// caller is a connection to an agent's listener that calls what the agent answers.
func caller(t *testing.T, a *runningAgent) *fetchwire.Conn {
	t.Helper()
	conn, err := fetchwire.Dial(t.Context(), fetchwire.DialConfig{Addr: a.ListenerAddrs()[0], ClientID: "operator"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // nothing is lost with it
	return conn
}

func call[R fetchwire.Message](t *testing.T, conn *fetchwire.Conn, req fetchwire.Message, resp R) R {
	t.Helper()
	if err := conn.Call(t.Context(), req, resp); err != nil {
		t.Fatal(err)
	}
	return resp
}

// op is one change; a value of "-" deletes the key.
func op(kind int8, key, value string) fetchwire.AlterConfig {
	return fetchwire.AlterConfig{Name: key, Op: kind, Value: &value}
}

func set(key, value string) fetchwire.AlterConfig { return op(fetchwire.ConfigSet, key, value) }

// altered alters one resource and returns the code and the words of the answer.
func altered(
	t *testing.T, conn *fetchwire.Conn, kind int8, name string, changes ...fetchwire.AlterConfig,
) (int16, string) {
	t.Helper()
	resp := call(t, conn, &fetchwire.IncrementalAlterConfigsRequest{Resources: []fetchwire.AlterConfigsResource{
		{ResourceType: kind, ResourceName: name, Configs: changes},
	}}, &fetchwire.IncrementalAlterConfigsResponse{})
	r := resp.Resources[0]
	if r.ErrorMessage == nil {
		return r.ErrorCode, ""
	}
	return r.ErrorCode, *r.ErrorMessage
}

// configsOf returns a resource's configurations by name.
func configsOf(t *testing.T, conn *fetchwire.Conn, kind int8, name string) map[string]fetchwire.DescribedConfig {
	t.Helper()
	resp := call(t, conn, &fetchwire.DescribeConfigsRequest{
		Resources:       []fetchwire.DescribeConfigsResource{{ResourceType: kind, ResourceName: name}},
		IncludeSynonyms: true, IncludeDocumentation: true,
	}, &fetchwire.DescribeConfigsResponse{})
	if code := resp.Resources[0].ErrorCode; code != fetchwire.CodeNone {
		t.Fatalf("%s: %s %s", name, fetchwire.ErrorName(code), *resp.Resources[0].ErrorMessage)
	}
	out := map[string]fetchwire.DescribedConfig{}
	for _, c := range resp.Resources[0].Configs {
		out[c.Name] = c
	}
	return out
}

func shown(c fetchwire.DescribedConfig) string {
	if c.Value == nil {
		return fmt.Sprintf("null/%d", c.Source)
	}
	return fmt.Sprintf("%s/%d", *c.Value, c.Source)
}

// withCreated is an agent with the declared mirror dr and the mirror eu, made by a request, of the same source.
func withCreated(t *testing.T, s *fakeKafka, more ...string) (*runningAgent, *fetchwire.Conn) {
	t.Helper()
	props := s.properties(t.TempDir(), append([]string{
		"listeners", "PLAINTEXT://127.0.0.1:0", "mirror.dr.mirror.topics.include", "orders",
	}, more...)...)
	a := runAgent(t, props)
	conn := caller(t, a)
	bootstrap, none := strings.Join(s.ListenAddrs(), ","), ""
	resp := call(t, conn, &fetchwire.CreateMirrorRequest{MirrorName: "eu", Config: []fetchwire.MirrorConfig{
		{Name: keyBootstrap, Value: &bootstrap}, {Name: keyInclude, Value: &none},
	}}, &fetchwire.CreateMirrorResponse{})
	if err := resp.Err(); err != nil {
		t.Fatal(err)
	}
	return a, conn
}

func TestAlterConfigs_OfAMirrorAreRefusedInWords(t *testing.T) {
	s := newFakeKafka(t)
	a, conn := withCreated(t, s)

	for name, c := range map[string]struct {
		mirror  string
		changes []fetchwire.AlterConfig
		code    int16
		words   string
	}{
		"unknown key": {
			"eu",
			[]fetchwire.AlterConfig{set("mirror.topic.include", "x")},
			fetchwire.CodeInvalidConfig,
			"Unknown mirror configuration: mirror.topic.include; the nearest is mirror.topics.include",
		},
		"unknown key deleted": {
			"eu", []fetchwire.AlterConfig{op(fetchwire.ConfigDelete, "x", "")}, fetchwire.CodeInvalidConfig, "Unknown mirror",
		},
		"key of the agent's own": {
			"eu", []fetchwire.AlterConfig{set(keyDeleting, "true")}, fetchwire.CodeInvalidConfig, "Unknown mirror",
		},
		"value that is none": {
			"eu", []fetchwire.AlterConfig{set("request.timeout.ms", "soon")}, fetchwire.CodeInvalidConfig, "soon",
		},
		"pattern that is none": {
			"eu", []fetchwire.AlterConfig{set("mirror.groups.include", "a(")}, fetchwire.CodeInvalidConfig, "a(",
		},
		"rule with an unknown operation": {
			"eu",
			[]fetchwire.AlterConfig{set("mirror.acl.include", "TOPIC;x;REED")},
			fetchwire.CodeInvalidConfig,
			"the nearest is READ",
		},
		"one of two is bad": {
			"eu",
			[]fetchwire.AlterConfig{set("mirror.fetch.min.bytes", "7"), set("mirror.fetch.max.bytes", "0")},
			fetchwire.CodeInvalidConfig, "mirror.fetch.max.bytes",
		},
		"no source left": {
			"eu",
			[]fetchwire.AlterConfig{op(fetchwire.ConfigDelete, keyBootstrap, "")},
			fetchwire.CodeInvalidConfig,
			"bootstrap.servers is required",
		},
		"append to what is no list": {
			"eu",
			[]fetchwire.AlterConfig{op(fetchwire.ConfigAppend, "request.timeout.ms", "1")},
			fetchwire.CodeInvalidConfig,
			"because its type is not LIST",
		},
		"the same key twice": {
			"eu", []fetchwire.AlterConfig{set(keyExclude, "a"), set(keyExclude, "b")}, fetchwire.CodeInvalidRequest, "twice",
		},
		"fixed since its start": {
			"eu",
			[]fetchwire.AlterConfig{set("mirror.leader.epoch.policy", "rebase")},
			fetchwire.CodeInvalidConfig,
			"cannot become rebase",
		},
		"declared": {
			"dr",
			[]fetchwire.AlterConfig{set("request.timeout.ms", "1000")},
			fetchwire.CodePolicyViolation,
			"change mirror.dr.request.timeout.ms there",
		},
		"no such mirror": {
			"us", []fetchwire.AlterConfig{set("request.timeout.ms", "1000")}, fetchwire.CodeUnknownMirror, "us",
		},
	} {
		t.Run(name, func(t *testing.T) {
			was := a.metadata.config(resource{resourceMirror, c.mirror})
			code, words := altered(t, conn, fetchwire.ResourceMirror, c.mirror, c.changes...)
			if code != c.code || !strings.Contains(words, c.words) {
				t.Errorf("%s %q, want %s %q", fetchwire.ErrorName(code), words, fetchwire.ErrorName(c.code), c.words)
			}
			if is := a.metadata.config(resource{resourceMirror, c.mirror}); !maps.Equal(is, was) {
				t.Errorf("it is %v now, was %v", is, was)
			}
		})
	}
}

func TestAlterConfigs_OfAMirrorTakeEffectAndAreDescribed(t *testing.T) {
	s := newFakeKafka(t)
	s.createTopic(t, "orders", 1)
	s.createTopic(t, "payments", 1)
	s.produce(t, "payments", 0, 20)
	a, conn := withCreated(t, s)
	if resp := call(t, conn, &fetchwire.IncrementalAlterConfigsRequest{
		Resources: []fetchwire.AlterConfigsResource{{
			ResourceType: fetchwire.ResourceMirror, ResourceName: "eu",
			Configs: []fetchwire.AlterConfig{set(keyInclude, "payments")},
		}}, ValidateOnly: true,
	}, &fetchwire.IncrementalAlterConfigsResponse{}); resp.Resources[0].ErrorCode != fetchwire.CodeNone {
		t.Errorf("a valid change, only to be validated: %+v", resp.Resources[0])
	}
	if v := a.metadata.config(resource{resourceMirror, "eu"})[keyInclude]; v != "" {
		t.Errorf("it was validated only, and stored: %q", v)
	}

	if code, words := altered(t, conn, fetchwire.ResourceMirror, "eu", op(fetchwire.ConfigAppend, keyExclude, "tmp.*,__.*"),
		op(fetchwire.ConfigAppend, keyInclude, "payments"), set("sasl.jaas.config", "hidden"),
		set("mirror.acl.include", "topic;orders-.*;read"), set("request.timeout.ms", "20000")); code != fetchwire.CodeNone {
		t.Fatalf("%s %s", fetchwire.ErrorName(code), words)
	}
	caughtUp(t, a, "payments", 1)
	is := configsOf(t, conn, fetchwire.ResourceMirror, "eu")
	for key, want := range map[string]string{
		keyExclude: "__.*,tmp.*/64", keyInclude: "payments/64", "request.timeout.ms": "20000/64",
		"mirror.gap.policy": "resume/5", "mirror.leader.epoch.policy": "preserve/5", "sasl.jaas.config": "null/64",
		"mirror.acl.include": "topic;orders-.*;read/64", throttleRateKey: "null/5",
	} {
		if got := shown(is[key]); got != want {
			t.Errorf("%s is described as %s, want %s", key, got, want)
		}
	}
	if c := is["sasl.jaas.config"]; !c.IsSensitive || c.ConfigSynonyms[0].Value != nil {
		t.Errorf("a secret is described as %+v", c)
	}
	if c := is[keyExclude]; len(c.ConfigSynonyms) != 2 || *c.ConfigSynonyms[1].Value != "__.*" || c.Documentation == nil {
		t.Errorf("%+v", c)
	}
	if code, words := altered(t, conn, fetchwire.ResourceMirror, "eu", op(fetchwire.ConfigSubtract, keyExclude, "__.*"),
		op(fetchwire.ConfigDelete, "request.timeout.ms", "")); code != fetchwire.CodeNone {
		t.Fatalf("%s %s", fetchwire.ErrorName(code), words)
	}
	is = configsOf(t, conn, fetchwire.ResourceMirror, "eu")
	if got := shown(is[keyExclude]) + " " + shown(is["request.timeout.ms"]); got != "tmp.*/64 30000/5" {
		t.Errorf("described as %s", got)
	}
	declared := configsOf(t, conn, fetchwire.ResourceMirror, "dr")
	if got := shown(declared[keyInclude]); got != "orders/4" || !declared[keyInclude].ReadOnly {
		t.Errorf("a declared mirror's include is described as %s, %+v", got, declared[keyInclude])
	}
}

func TestAlterConfigs_OfBrokersAndTopics(t *testing.T) {
	s := newFakeKafka(t)
	s.createTopic(t, "orders", 1)
	s.produce(t, "orders", 0, 10)
	a, conn := withCreated(t, s)
	caughtUp(t, a, "orders", 1)
	ok := func(kind int8, name string, changes ...fetchwire.AlterConfig) {
		t.Helper()
		if code, words := altered(t, conn, kind, name, changes...); code != fetchwire.CodeNone {
			t.Errorf("%s %s", fetchwire.ErrorName(code), words)
		}
	}
	refused := func(want int16, kind int8, name string, changes ...fetchwire.AlterConfig) {
		t.Helper()
		if code, words := altered(t, conn, kind, name, changes...); code != want || words == "" {
			t.Errorf("%s %q, want %s", fetchwire.ErrorName(code), words, fetchwire.ErrorName(want))
		}
	}
	ok(fetchwire.ResourceBroker, "", set(throttleRateKey, "5000"))
	if rate := a.Status().Throttle.Rate; rate != 5000 {
		t.Errorf("the default of all nodes gives rate %d", rate)
	}
	ok(fetchwire.ResourceBroker, "7", set(throttleRateKey, "9000"))
	if rate := a.Status().Throttle.Rate; rate != 9000 {
		t.Errorf("the node's own gives rate %d", rate)
	}
	if got := shown(configsOf(t, conn, fetchwire.ResourceBroker, "7")[throttleRateKey]); got != "9000/2" {
		t.Errorf("described as %s", got)
	}
	ok(fetchwire.ResourceBroker, "7", op(fetchwire.ConfigDelete, throttleRateKey, ""))
	if got := shown(configsOf(t, conn, fetchwire.ResourceBroker, "7")[throttleRateKey]); got != "5000/3" {
		t.Errorf("described as %s", got)
	}
	ok(fetchwire.ResourceBroker, "", op(fetchwire.ConfigDelete, throttleRateKey, ""))
	if rate := a.Status().Throttle.Rate; rate != 0 {
		t.Errorf("rate %d after all was deleted", rate)
	}
	refused(fetchwire.CodeInvalidRequest, fetchwire.ResourceBroker, "8", set(throttleRateKey, "1"))
	refused(fetchwire.CodeInvalidConfig, fetchwire.ResourceBroker, "7", set(throttleRateKey, "fast"))
	refused(fetchwire.CodeInvalidConfig, fetchwire.ResourceBroker, "7", set("num.io.threads", "1"))

	ok(fetchwire.ResourceTopic, "orders", set(throttleReplicasKey, "0:7"))
	ok(fetchwire.ResourceTopic, "orders", op(fetchwire.ConfigAppend, throttleReplicasKey, "1:7"))
	if got := shown(configsOf(t, conn, fetchwire.ResourceTopic, "orders")[throttleReplicasKey]); got != "0:7,1:7/1" {
		t.Errorf("described as %s", got)
	}
	if got := shown(configsOf(t, conn, fetchwire.ResourceTopic, "orders")[keyMirrorName]); got != "dr/1" {
		t.Errorf("described as %s", got)
	}
	refused(fetchwire.CodeInvalidConfig, fetchwire.ResourceTopic, "orders", set(throttleReplicasKey, "0"))
	refused(fetchwire.CodeInvalidConfig, fetchwire.ResourceTopic, "orders", set("segment.bytes", "1"))
	refused(fetchwire.CodeInvalidRequest, fetchwire.ResourceTopic, "orders", set(keyMirrorName, "eu"))
	refused(fetchwire.CodeUnknownTopicOrPartition, fetchwire.ResourceTopic, "none", set(throttleReplicasKey, "*"))
	refused(fetchwire.CodeInvalidRequest, 8, "7", set("x", "y"))
}

func TestShownKeys_AreTheMirrorKeys(t *testing.T) {
	m := DefaultMirrorConfig("m")
	for key := range mirrorKeys {
		shown, ok := shownKeys[key]
		if !ok {
			t.Errorf("%s is not described", key)
			continue
		}
		value := shown.show(&m)
		if value == "" || value == "default" {
			continue
		}
		if err := mirrorKeys[key].set(&m, value); err != nil {
			t.Errorf("%s: what is described as the default, %q, is refused: %v", key, value, err)
		}
	}
	if got, want := fmt.Sprintf("%#v", m), fmt.Sprintf("%#v", DefaultMirrorConfig("m")); got != want {
		t.Errorf("setting what is described changed\n%s\nto\n%s", want, got)
	}
}

func TestConfigTexts_AreTheDocuments(t *testing.T) {
	for _, row := range docRows(t, "configuration.md") {
		text, ok := configTexts[row.name]
		if _, described := shownKeys[row.name]; described && !ok {
			t.Errorf("%s has no text", row.name)
		}
		if plain := strings.ReplaceAll(row.third, "`", ""); ok && text != plain {
			t.Errorf("%s: described as %q, documented as %q", row.name, text, plain)
		}
	}
}

func TestACLRules(t *testing.T) {
	read := ACLRecord{ResourceType: 2, ResourceName: "orders-us", Operation: 3, PermissionType: 3, Principal: "User:a"}
	for text, want := range map[string]bool{
		"*": true, "TOPIC": true, "topic": true, "GROUP": false, "TOPIC;orders-.*": true, "TOPIC;orders": false,
		"*;*;read": true, "*;*;WRITE": false, "*;*;*;allow": true, "*;*;*;DENY": false, "*;*;*;*;User:a": true,
		"*;*;*;*;User:": false, "GROUP;my-group,TOPIC;orders-us": true, "": false,
	} {
		rules, err := parseACLRules(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		got := false
		for i := range rules {
			got = got || rules[i].matches(&read)
		}
		if got != want {
			t.Errorf("%q includes it: %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{"TOPICS", "TOPIC;(", "*;*;REED", "*;*;*;MAYBE", "*;*;*;*;*;*", "TOPIC;", "*;*;*;*;("} {
		if rules, err := parseACLRules(text); err == nil {
			t.Errorf("%q is taken: %+v", text, rules)
		}
	}
}

func FuzzParseACLRules(f *testing.F) {
	for _, text := range []string{"*", "TOPIC;orders-.*", "group;g;read;allow;User:.*", "TOPIC;a,GROUP;b", ";;;;"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rules, err := parseACLRules(text)
		if err == nil && len(rules) > strings.Count(text, ",")+1 {
			t.Errorf("%d rules of %q", len(rules), text)
		}
	})
}
