package replicator

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// minimal is the least that is a configuration.
func minimal(more ...string) map[string]string {
	props := map[string]string{
		"log.dirs": "/d1", "mirrors": "dr", "mirror.dr.bootstrap.servers": "h1:9092,h2:9092",
	}
	for i := 0; i < len(more); i += 2 {
		props[more[i]] = more[i+1]
	}
	return props
}

func TestParseConfig_NamesWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		props     map[string]string
		overrides []string
		want      string // part of the error
	}{
		"unknown agent key": {
			props: minimal("log.segement.bytes", "1"),
			want:  "nearest is log.segment.bytes",
		},
		"unknown mirror key": {
			props: minimal("mirror.dr.mirror.topic.include", "a"),
			want:  "nearest is mirror.dr.mirror.topics.include",
		},
		"unknown client key": {
			props: minimal("mirror.dr.sasl.mechanisms", "PLAIN"),
			want:  "nearest is mirror.dr.sasl.mechanism",
		},
		"key of an undeclared mirror": {
			props: minimal("mirror.eu.bootstrap.servers", "h:1"),
			want:  `no mirror "eu" is declared`,
		},
		"no number": {
			props: minimal("log.roll.ms", "1d"),
			want:  `log.roll.ms: "1d" is not a whole number`,
		},
		"too small": {props: minimal("mirror.num.replica.fetchers", "0"), want: "0 is below 1"},
		"too large": {props: minimal("log.segment.bytes", "3000000000"), want: "above 2147483647"},
		"no boolean": {
			props: minimal("handoff.on.stop", "yes"),
			want:  `"yes" is neither true nor false`,
		},
		"no address": {
			props: minimal("mirror.dr.bootstrap.servers", "h1"),
			want:  `"h1" is not host:port`,
		},
		"no port":                {props: minimal("metrics.listener", "h:x"), want: "no port from 0 to 65535"},
		"no log dirs":            {props: minimal("log.dirs", ""), want: "log.dirs is required"},
		"log dir twice":          {props: minimal("log.dirs", "/a,/a/"), want: "names /a twice"},
		"metadata dir elsewhere": {props: minimal("metadata.log.dir", "/x"), want: "/x is not one of log.dirs"},
		"role":                   {props: minimal("mirror.role", "leader"), want: "neither primary nor replica"},
		"gap policy": {
			props: minimal("mirror.dr.mirror.gap.policy", "skip"),
			want:  "neither resume nor fail",
		},
		"epoch policy": {
			props: minimal("mirror.dr.mirror.leader.epoch.policy", "keep"),
			want:  "neither preserve nor rebase",
		},
		"start position": {
			props: minimal("mirror.dr.mirror.start.position", "offset:-4"),
			want:  "not a whole number from 0",
		},
		"start position word": {
			props: minimal("mirror.dr.mirror.start.position", "first"),
			want:  "none of earliest, latest",
		},
		"pattern": {
			props: minimal("mirror.dr.mirror.topics.include", "a("),
			want:  "neither a name nor an RE2",
		},
		"colliding name": {
			props: map[string]string{"log.dirs": "/d", "mirrors": "fetch"},
			want:  "could not be told from the keys mirror.fetch.*",
		},
		"colliding first word": {
			props: map[string]string{"log.dirs": "/d", "mirrors": "nodes.x"},
			want:  "mirror.nodes.*",
		},
		"name with a slash": {
			props: map[string]string{"log.dirs": "/d", "mirrors": "a/b"},
			want:  "1 to 249 ASCII letters",
		},
		"reserved ending": {
			props: map[string]string{"log.dirs": "/d", "mirrors": "a.paused"},
			want:  "may not end in .stopped or .paused",
		},
		"mirror twice": {props: minimal("mirrors", "dr,dr"), want: `"dr" is declared twice`},
		"no bootstrap servers": {
			props: map[string]string{"log.dirs": "/d", "mirrors": "dr"},
			want:  "bootstrap.servers is required",
		},
		"key in both spellings": {
			props: minimal("mirror.dr.topics.include", "a", "mirror.dr.mirror.topics.include", "b"), want: "is given twice",
		},
		"override without value": {props: minimal(), overrides: []string{"node.id"}, want: "is not key=value"},
		"override of nonsense":   {props: minimal(), overrides: []string{"node.idd=1"}, want: "nearest is node.id"},
		"protocol": {
			props: minimal("mirror.dr.security.protocol", "TLS"),
			want:  "none of PLAINTEXT, SSL",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseConfig(c.props, c.overrides)
			if !errors.Is(err, ErrConfig) || !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("got %v\nwant one that says %q", err, c.want)
			}
		})
	}
}

func TestParseConfig_JoinsEveryFault(t *testing.T) {
	_, err := ParseConfig(minimal("node.id", "x", "log.roll.ms", "y", "nonsense", "1"), nil)
	for _, want := range []string{"node.id", "log.roll.ms", "nonsense"} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

func TestParseConfig_TheLongestDeclaredNameWins(t *testing.T) {
	cfg, err := ParseConfig(map[string]string{
		"log.dirs": "/d", "mirrors": "a,a.b",
		"mirror.a.bootstrap.servers": "one:1", "mirror.a.b.bootstrap.servers": "two:2",
		"mirror.a.b.mirror.topics.include": "x",
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := cfg.Mirrors[0].Client.BootstrapServers[0]; got != "one:1" {
		t.Errorf("a goes to %s", got)
	}
	if m := cfg.Mirrors[1]; m.Name != "a.b" || m.Client.BootstrapServers[0] != "two:2" || len(m.TopicsInclude) != 1 {
		t.Errorf("a.b is %s", m.Client)
	}
}

func TestParseConfig_OverridesWinAndAgentDefaultsReachEveryMirror(t *testing.T) {
	cfg, err := ParseConfig(minimal("node.id", "3", "mirror.fetch.min.bytes", "5", "mirror.gap.policy", "fail",
		"mirror.dr.mirror.fetch.min.bytes", "6"), []string{"node.id=4", "log.roll.ms = 60000"})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.NodeID != 4 || cfg.Log.RollAge != time.Minute {
		t.Errorf("node.id %d, log.roll.ms %v", cfg.NodeID, cfg.Log.RollAge)
	}
	if m := cfg.Mirrors[0]; !m.GapFail || m.Fetch.MinBytes != 6 {
		t.Errorf("gap fail %v, min bytes %d", m.GapFail, m.Fetch.MinBytes)
	}
}

func TestParseConfig_TheEpochPolicyFollowsTheHandoff(t *testing.T) {
	for name, c := range map[string]struct {
		more []string
		want EpochPolicy
	}{
		"no hand-off": {nil, EpochPolicyPreserve},
		"hand-off":    {[]string{"handoff.bootstrap.servers", "b:1"}, EpochPolicyRebase},
		"hand-off, preserve": {
			[]string{"handoff.bootstrap.servers", "b:1", "mirror.dr.mirror.leader.epoch.policy", "preserve"},
			EpochPolicyPreserve,
		},
		"rebase": {[]string{"mirror.dr.mirror.leader.epoch.policy", "rebase"}, EpochPolicyRebase},
	} {
		cfg, err := ParseConfig(minimal(c.more...), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := cfg.Mirrors[0].EpochPolicy; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestParseConfig_NamesKeysWithoutEffect(t *testing.T) {
	cfg, err := ParseConfig(minimal("listeners", "PLAINTEXT://:9092", "mirror.role", "primary", "mirror.nodes", "a:1",
		"mirror.dr.mirror.groups.include", ".*", "mirror.dr.ssl.provider", "SunJSSE"), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"mirror.dr.mirror.groups.include", "mirror.dr.ssl.provider", "mirror.nodes"}
	if !slices.Equal(cfg.WithoutEffect, want) {
		t.Errorf("got %q, want %q", cfg.WithoutEffect, want)
	}
}

func TestReadConfig_ReadsJavaPropertiesWithoutExpansion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.properties")
	text := "# a comment\nlog.dirs = /a, /b\nmirrors: dr\nmirror.dr.bootstrap.servers=h:1\n" +
		"mirror.dr.mirror.topics.include=orders-\\\n  .*,pay${x}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := ReadConfig(path, []string{"mirror.dr.mirror.topics.include=orders-.*"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(cfg.LogDirs, []string{"/a", "/b"}) || cfg.Mirrors[0].TopicsInclude[0] != "orders-.*" {
		t.Errorf("got %q, %q", cfg.LogDirs, cfg.Mirrors[0].TopicsInclude)
	}
	if _, err := ReadConfig(path+"x", nil); !errors.Is(err, ErrConfig) {
		t.Errorf("an absent file: %v", err)
	}
}

func TestClientConfig_SecretsAppearInNoErrorAndNoText(t *testing.T) {
	const secret = "hunter2-very-secret"
	for name, more := range map[string][]string{
		"fine": {
			"sasl.mechanism", "PLAIN", "sasl.jaas.config",
			`org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="` + secret + `";`,
		},
		"no semicolon":  {"sasl.mechanism", "PLAIN", "sasl.jaas.config", `M required username="u" password="` + secret + `"`},
		"open quote":    {"sasl.mechanism", "PLAIN", "sasl.jaas.config", `M required username="u" password="` + secret + `;`},
		"no assignment": {"sasl.mechanism", "PLAIN", "sasl.jaas.config", `M required ` + secret + `;`},
		"bad mechanism": {"sasl.mechanism", "GSSAPI", "sasl.jaas.config", `M required password="` + secret + `";`},
		"bad key": {
			"ssl.keystore.type", "PEM", "security.protocol", "SASL_SSL",
			"ssl.keystore.key", secret, "ssl.keystore.certificate.chain", secret, "ssl.key.password", secret,
		},
	} {
		props := minimal("mirror.dr.security.protocol", "SASL_PLAINTEXT")
		for i := 0; i < len(more); i += 2 {
			props["mirror.dr."+more[i]] = more[i+1]
		}
		cfg, err := ParseConfig(props, nil)
		var text strings.Builder
		slog.New(slog.NewTextHandler(&text, nil)).Info("x", slog.Any("err", err), slog.Any("cfg", cfg.Mirrors[0].Client))
		fmt.Fprintf(&text, "%v %+v %#v", cfg.Mirrors[0].Client, cfg, cfg.Mirrors[0].Client)
		if strings.Contains(text.String(), secret) {
			t.Errorf("%s: the secret is in %s", name, text.String())
		}
		if (err == nil) != (name == "fine") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestClientConfig_RefusesJKSInWords(t *testing.T) {
	for _, kind := range []string{"", "JKS", "PKCS12"} {
		props := minimal("mirror.dr.security.protocol", "SSL", "mirror.dr.ssl.truststore.location", "/t.jks")
		if kind != "" {
			props["mirror.dr.ssl.truststore.type"] = kind
		}
		_, err := ParseConfig(props, nil)
		if err == nil || !strings.Contains(err.Error(), "convert the store to PEM") {
			t.Errorf("type %q: %v", kind, err)
		}
	}
}

func TestParseJAAS_ReadsQuotesAndEscapes(t *testing.T) {
	options, err := parseJAAS(`a.b.ScramLoginModule required
		username="al\"ice" password='p w;d' tokenauth=true ;`)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"username": `al"ice`, "password": "p w;d", "tokenauth": "true"} {
		if options[key] != want {
			t.Errorf("%s is %q, want %q", key, options[key], want)
		}
	}
}

func FuzzParseConfig_NeverPanics(f *testing.F) {
	f.Add("mirrors", "a,a.b", "mirror.a.b.sasl.jaas.config", `M required u="x";`)
	f.Add("log.dirs", "/a", "mirror.start.position", "timestamp:12")
	f.Add("mirror.dr.ssl.truststore.certificates", "-----BEGIN", "mirror.dr.security.protocol", "SSL")
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2 string) {
		cfg, err := ParseConfig(minimal(k1, v1, k2, v2), []string{k1 + "=" + v2})
		if err == nil && cfg.Validate() != nil {
			t.Errorf("accepted, but Validate says %v", cfg.Validate())
		}
	})
}
