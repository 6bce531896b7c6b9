package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"segmirror/admin/fakeagent"
	"segmirror/fetchwire"
)

func TestTools_WrongOptionsGetTheWordsOfKafkasTools(t *testing.T) {
	const at = "--bootstrap-server=127.0.0.1:9"
	mirrors := func(args ...string) []string { return append([]string{"mirrors"}, args...) }
	configs := func(args ...string) []string { return append([]string{"configs"}, args...) }
	const oneAction = "Command must include exactly one action: " +
		"--create, --start, --stop, --delete, --pause, --resume, --list, or --describe"
	for _, tc := range []struct {
		args []string
		says string
	}{
		{mirrors(at), oneAction},
		{mirrors(at, "--list", "--describe"), oneAction},
		{mirrors("--list"), "--bootstrap-server must be specified"},
		{mirrors(at, "--delete"), "--mirror must be specified"},
		{mirrors(at, "--create", "--mirror", "m"), "--mirror-config must be specified when creating a mirror"},
		{mirrors(at, "--start", "--mirror", "m"), "--topics must be specified when starting mirror topic(s)"},
		{mirrors(at, "--stop", "--mirror", "m"), "--topics must be specified when stopping mirror topic(s)"},
		{mirrors(at, "--pause", "--mirror", "m", "--topics", ""), "--topics must be specified when pausing mirror topic(s)"},
		{mirrors(at, "--resume", "--mirror", "m"), "--topics must be specified when resuming mirror topic(s)"},
		{mirrors(at, "--stop", "--mirror", "m", "--topics", "t", "--exclude", "x"), "--exclude is only valid with --start"},
		{mirrors(at, "--list", "--json"), "--json is only supported for describing mirrors"},
		{mirrors(at, "--list", "--check"), "--check is only valid with --describe"},
		{mirrors(at, "--describe", "--when-caught-up"), "--when-caught-up is only valid with --stop"},
		{mirrors(at, "--list", "--topics", "t"), `Option "[list]" can't be used with option "[topics]"`},
		{mirrors(at, "--list", "--mirror-config", "f"), `Option "[list]" can't be used with option "[mirror-config]"`},
		{mirrors(at, "--frob"), "frob is not a recognized option"},
		{mirrors(at, "--mirror"), "Option mirror requires an argument"},
		{mirrors(at, "--list", "--mirror", "a", "--mirror", "b"), "Found multiple arguments for option mirror, but you asked for only one"},
		{mirrors(at, "--list", "more"), `unexpected argument "more"`},
		{mirrors(at, "--start", "--mirror", "m", "--topics", "a("), "--topics: configuration: \"a(\" is neither a topic's name nor an RE2 pattern"},
		{mirrors(at, "--start", "--mirror", "m", "--topics", "a", "--exclude", "["), "--exclude: "},
		{mirrors(at, "--create", "--mirror", "m", "--mirror-config", "/does/not/exist"), "--mirror-config: stat /does/not/exist"},
		{mirrors("--bootstrap-server", "nowhere", "--list"), "invalid url in bootstrap.servers: \"nowhere\" is not host:port"},
		{mirrors(at, "--list"), "check that an agent runs"},
		{mirrors(at, "--list", "--command-config", "/does/not/exist"), "reading /does/not/exist"},

		{configs(at), "Command must include exactly one action: --describe, --alter"},
		{configs(at, "--alter", "--describe"), "Command must include exactly one action: --describe, --alter"},
		{configs(at, "--describe"), "At least one entity type must be specified"},
		{configs("--describe", "--entity-type", "mirrors"), "--bootstrap-server must be specified"},
		{
			configs(at, "--describe", "--entity-type", "topics", "--add-config", "a=b"),
			`Option "[describe]" can't be used with option "[add-config]"`,
		},
		{
			configs(at, "--describe", "--entity-type", "clients"),
			"Invalid entity type clients, the entity type must be one of topics, brokers, mirrors with a --bootstrap-server argument; " +
				"use kafka-configs.sh for clients of a Kafka cluster",
		},
		{configs(at, "--alter", "--entity-type", "mirrors", "--add-config", "a=b"), "An entity name must be specified with --alter of mirrors"},
		{
			configs(at, "--alter", "--entity-type", "brokers", "--add-config", "a=b"),
			"An entity-name or default entity must be specified with --alter of users, clients, brokers or ips",
		},
		{
			configs(at, "--describe", "--entity-type", "mirrors", "--entity-default"),
			"--entity-default must not be specified with --describe of mirrors",
		},
		{
			configs(at, "--alter", "--broker", "x", "--add-config", "a=b"),
			"The entity name for brokers must be a valid integer broker id, but it is: x",
		},
		{
			configs(at, "--alter", "--topic", "t"),
			"At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter",
		},
		{
			configs(at, "--alter", "--topic", "t", "--add-config", "a=b", "--add-config-file", "f"),
			"Only one of --add-config or --add-config-file must be specified",
		},
		{
			configs(at, "--describe", "--entity-name", "t", "--topic", "t"),
			"--entity-{type,name,default} should not be used in conjunction with specific entity flags",
		},
		{configs(at, "--describe", "--topic", "t", "--mirror", "m"), "Only one entity type may be specified, not topics and mirrors"},
		{
			configs(at, "--alter", "--topic", "t", "--add-config", "a"),
			`Invalid entity config: all configs to be added must be in the format "key=val" or  "key=[val1,val2]"`,
		},
		{configs(at, "--alter", "--topic", "t", "--add-config", "bad key=1"), "Invalid character found for config key: bad key"},
		{configs(at, "--alter", "--topic", "t", "--add-config-file", "/does/not/exist"), "--add-config-file: stat /does/not/exist"},
	} {
		_, _, stderr := runCommand(t.Context(), tc.args...)
		if strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: stderr %q is not one line", tc.args, stderr)
		}
		failure(t, tc.args, tc.says)
	}
}

func TestTools_VersionAndHelpNeedNothingElse(t *testing.T) {
	for _, command := range []string{"mirrors", "configs"} {
		if got := success(t, command, "--version"); got != version()+"\n" {
			t.Errorf("%s --version prints %q", command, got)
		}
		help := success(t, command, "--help")
		if !strings.Contains(help, "\nOption                                  Description\n") || !strings.Contains(help, "Examples:") {
			t.Errorf("%s --help prints %q", command, help)
		}
		for line := range strings.SplitSeq(help, "\n") {
			if len(line) > 120 || strings.HasSuffix(line, " ") {
				t.Errorf("%s --help has the line %q", command, line)
			}
		}
	}
}

func TestTools_TheBinarysNameIsACommand(t *testing.T) {
	for _, name := range []string{"kafka-mirrors", "kafka-mirrors.sh", "/opt/bin/kafka-mirrors.sh"} {
		var out, errs bytes.Buffer
		code := run(t.Context(), []string{name, "--version"}, &out, &errs)
		if code != exitDone || out.String() != version()+"\n" {
			t.Errorf("%s --version: exit %d, %q, %q", name, code, out.String(), errs.String())
		}
		if code := run(t.Context(), []string{name}, &out, &errs); code != exitFinding {
			t.Errorf("%s without options exits %d", name, code)
		}
	}
	if got := asTool([]string{"segmirror", "demo"}); !slices.Equal(got, []string{"segmirror", "demo"}) {
		t.Errorf("another name became %v", got)
	}
}

func TestTools_AStockBrokerIsNamed(t *testing.T) {
	broker := fakeagent.StartBroker(t, 1)
	at := broker.Addr()
	const says = " is a Kafka broker, not a mirror agent"
	failure(t, []string{"mirrors", "--bootstrap-server", at, "--list"}, at+says)
	failure(t, []string{"mirrors", "--bootstrap-server", at, "--stop", "--mirror", "m", "--topics", ".*"}, at+says)
	failure(t, []string{"configs", "--bootstrap-server", at, "--describe", "--entity-type", "mirrors"}, at+says)
}

func TestTools_CommandConfigIsAKafkaClientsFile(t *testing.T) {
	a := fakeagent.Start(t, 1)
	fakeagent.On(a, func(*fetchwire.ListMirrorsRequest) fetchwire.Response { return &fetchwire.ListMirrorsResponse{} })
	path := filepath.Join(t.TempDir(), "client.properties")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"mirrors", "--bootstrap-server", a.Addr(), "--list", "--command-config", path}
	write("security.protocol=PLAINTEXT\nrequest.timeout.ms=5000\nretries=2\nsecurity.protocl=SSL\n")
	code, stdout, stderr := runCommand(t.Context(), args...)
	if code != exitDone || stdout != "No mirrors found\n" ||
		!strings.Contains(stderr, "security.protocl (the nearest is security.protocol) is no key of a Kafka client") {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
	write("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\n")
	failure(t, args, "sasl.mechanism", "GSSAPI")
	write("security.protocol=SSL\n")
	failure(t, args, a.Addr())
}
