package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"segmirror/admin"
	"segmirror/replicator"
)

//go:embed testdata/session.txt
var sessionText string

// sessionTopics are the partitions of the page's topics, and how many records each has.
var sessionTopics = map[string][]int{
	"orders-us": {3}, "orders-eu": {2}, "orders-internal": {1}, "my-topic": {5},
	"foo": {69, 94, 94}, "bar": {7}, "baz": {4, 4},
}

// session replays testdata/session.txt.
type session struct {
	t      *testing.T
	names  *strings.Replacer // from the file's addresses and paths to this run's
	back   *strings.Replacer
	client *admin.Client

	line    int
	command string
	out     []string // lines not matched yet
	code    int
	stderr  string
	loose   bool // other lines may stand between, and lines may go on
}

func TestSession_OfTheKIPsPageRunsLineByLine(t *testing.T) {
	source := sessionSource(t)
	agent := freeAddr(t)
	dir := t.TempDir()
	startSessionAgent(t, filepath.Join(dir, "data"), agent)
	client, err := admin.New(admin.Config{BootstrapServers: []string{agent}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	properties := filepath.Join(dir, "mirror.properties")
	s := &session{
		t: t, client: client,
		names: strings.NewReplacer("/tmp/mirror.properties", properties, "localhost:9092", source, " :9094", " "+agent),
		back:  strings.NewReplacer(source, "localhost:9092", properties, "/tmp/mirror.properties"),
	}
	for line := range strings.SplitSeq(sessionText, "\n") {
		s.line++
		s.step(line)
	}
	s.end()
}

// step does what one line of the file says.
func (s *session) step(line string) {
	mark, rest, _ := strings.Cut(line, " ")
	switch {
	case line == "" || mark == "#":
	case mark == "$" || mark == "+":
		s.end()
		s.run(rest)
	case mark == "@":
		s.end()
		fields := strings.Fields(rest)
		s.await(fields[0], fields[1], fields[2])
	case mark == "!":
		if s.code != exitFinding || !strings.Contains(s.stderr, rest) {
			s.t.Errorf("line %d: %s: exit %d, stderr %q, want 1 and %q", s.line, s.command, s.code, s.stderr, rest)
		}
		s.code = exitDone
	case line == "=":
		s.loose = true
	default:
		s.expect(strings.TrimRight(line, " "))
	}
}

// end wants that the command before has printed nothing else, and has gone well unless a ! line said otherwise.
func (s *session) end() {
	if len(s.out) > 0 && !s.loose {
		s.t.Errorf("line %d: %s: prints also %q", s.line, s.command, s.out)
	}
	if s.code != exitDone {
		s.t.Errorf("line %d: %s: exit %d, stderr %q", s.line, s.command, s.code, s.stderr)
	}
	s.out, s.code, s.loose = nil, exitDone, false
}

func (s *session) expect(line string) {
	for i, got := range s.out {
		if got == line || s.loose && strings.HasPrefix(got, line) {
			s.out = s.out[i+1:]
			return
		}
		if !s.loose {
			break
		}
	}
	s.t.Errorf("line %d: %s: want %q, have %q (stderr %q)", s.line, s.command, line, s.out, s.stderr)
}

// run runs one command: echo TEXT >FILE, or one of the tools.
func (s *session) run(command string) {
	s.command = command
	words := shellWords(s.names.Replace(command))
	if words[0] == "echo" {
		if err := os.WriteFile(strings.TrimPrefix(words[2], ">"), []byte(words[1]+"\n"), 0o600); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	if words[0] == "bin/kafka-configs.sh" {
		words = append([]string{"segmirror", "configs"}, words[1:]...)
	}
	var out, errs bytes.Buffer
	s.code = run(s.t.Context(), words, &out, &errs)
	s.stderr = errs.String()
	for line := range strings.SplitSeq(strings.TrimSuffix(s.back.Replace(out.String()), "\n"), "\n") {
		if line = strings.TrimRight(line, " "); line != "" {
			s.out = append(s.out, line)
		}
	}
}

// shellWords splits a command at spaces outside quotes.
func shellWords(command string) []string {
	var words []string
	for i, part := range strings.FieldsFunc(command, func(r rune) bool { return r == '\'' || r == '"' }) {
		if i%2 == 0 {
			words = append(words, strings.Fields(part)...)
		} else {
			words = append(words, part)
		}
	}
	return words
}

// await waits until a topic's partitions are in a state and, of MIRRORING, without lag.
func (s *session) await(mirror, topic, state string) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 3*time.Minute)
	defer cancel()
	var last string
	for ctx.Err() == nil {
		got, err := s.client.DescribeMirrors(ctx, []string{mirror}, admin.DescribeMirrorsOptions{})
		if err != nil {
			s.t.Fatal(err)
		}
		var ready bool
		if ready, last = reached(got, topic, state); ready {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	s.t.Fatalf("line %d: %s of %s does not become %s: %s", s.line, topic, mirror, state, last)
}

func reached(d *admin.Descriptions, topic, state string) (ready bool, last string) {
	for _, m := range d.Mirrors {
		for _, t := range m.Topics {
			if t.Name != topic {
				continue
			}
			ready = len(t.Partitions) == len(sessionTopics[topic])
			for _, p := range t.Partitions {
				ready = ready && p.State == state && (state != admin.StateMirroring || p.Lag == 0)
			}
			return ready, fmt.Sprintf("%+v", t.Partitions)
		}
	}
	return false, "it is not there"
}

// sessionSource starts the page's source and returns its address.
func sessionSource(t *testing.T) string {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.ClusterID("lBq12jYZRp-9wF3M9MPopg"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for topic, counts := range sessionTopics {
		if _, err := kadm.NewClient(client).CreateTopic(t.Context(), int32(len(counts)), 1, nil, topic); err != nil {
			t.Fatal(err)
		}
		for partition, count := range counts {
			var records []*kgo.Record
			for i := range count {
				records = append(records, &kgo.Record{Topic: topic, Partition: int32(partition), Value: strconv.AppendInt(nil, int64(i), 10)})
			}
			if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return cluster.ListenAddrs()[0]
}

// startSessionAgent runs an agent without declared mirrors until the test's end.
func startSessionAgent(t *testing.T, dir, addr string) {
	t.Helper()
	cfg, err := replicator.ParseConfig(map[string]string{
		"node.id": "4", "log.dirs": dir, "listeners": "PLAINTEXT://" + addr, "min.free.bytes": "0",
		"metrics.listener": "127.0.0.1:0", "mirror.metadata.refresh.interval.ms": "100",
		"mirror.fetch.wait.max.ms": "50",
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var logs syncBuffer
	agent, err := replicator.New(cfg, slog.New(slog.NewTextHandler(&logs, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- agent.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the agent's log:\n%s", logs.String())
		}
	})
	awaitListener(t, addr)
}

// freeAddr returns a loopback address nobody listens on.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func awaitListener(t *testing.T, addr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", addr)
		if err == nil {
			_ = conn.Close() // it was only a look
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", addr, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
