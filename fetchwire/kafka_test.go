package fetchwire

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"segmirror/bench/kafka"
)

// TestConn_SpeaksWithKafka talks to a real broker in every version this package knows.
func TestConn_SpeaksWithKafka(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a Kafka")
	}
	kafka.Require(t)
	cert := selfSigned(t)
	cluster, err := kafka.Start(t.Context(), secureConfig(t, cert))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Close() })
	if err := cluster.CreateTopic(t.Context(), kafka.TopicSpec{Name: "t", Assignment: [][]int32{{1}, {1}}}); err != nil {
		t.Fatal(err)
	}
	client, err := cluster.NewClient(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for i := range 20 {
		r := &kgo.Record{Topic: "t", Partition: int32(i % 2), Value: bytes.Repeat([]byte{byte(i)}, 1000)}
		if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	addr := cluster.Broker(1).Addr()
	c := dialTest(t, addr)
	id := topicID(t, c, "t")
	logs := [2][]byte{logBytes(t, cluster, 0), logBytes(t, cluster, 1)}

	t.Run("newest versions", func(t *testing.T) { checkNewest(t, c) })
	t.Run("calls", func(t *testing.T) { checkCalls(t, c, cluster.ID()) })
	t.Run("fetch", func(t *testing.T) { checkFetch(t, c, id, logs) })
	t.Run("session", func(t *testing.T) { checkSession(t, c, id, logs) })
	t.Run("first batch whole", func(t *testing.T) { checkFirstBatch(t, c, id, logs[0]) })
	t.Run("TLS and SASL", func(t *testing.T) { checkSecure(t, cluster, cert) })
	t.Run("TLS on a plaintext listener", func(t *testing.T) {
		_, err := Dial(t.Context(), DialConfig{Addr: addr, TLS: &tls.Config{InsecureSkipVerify: true}})
		if err == nil || !strings.Contains(err.Error(), "plaintext listener") {
			t.Errorf("got %v", err)
		}
	})
}

// secureConfig is a broker with listeners for TLS and SASL beside the plain one.
func secureConfig(t *testing.T, cert tls.Certificate) kafka.Config {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	store := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	store = append(store, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})...)
	file := filepath.Join(t.TempDir(), "keystore.pem")
	if err := os.WriteFile(file, store, 0o600); err != nil {
		t.Fatal(err)
	}
	login := "org.apache.kafka.common.security."
	return kafka.Config{
		Listeners: map[string]string{"TLS": "SSL", "BOTH": "SASL_SSL", "SASL": "SASL_PLAINTEXT"},
		Props: map[string]string{
			"ssl.keystore.type": "PEM", "ssl.keystore.location": file,
			"sasl.enabled.mechanisms":                           "PLAIN,SCRAM-SHA-512",
			"listener.name.sasl.connections.max.reauth.ms":      fmt.Sprint(sessionLifetime.Milliseconds()),
			"listener.name.sasl.plain.sasl.jaas.config":         login + `plain.PlainLoginModule required user_ann="secret";`,
			"listener.name.both.plain.sasl.jaas.config":         login + `plain.PlainLoginModule required user_ann="secret";`,
			"listener.name.both.scram-sha-512.sasl.jaas.config": login + "scram.ScramLoginModule required;",
			"listener.name.sasl.scram-sha-512.sasl.jaas.config": login + "scram.ScramLoginModule required;",
		},
	}
}

// checkSecure connects to every kind of listener, rightly and wrongly.
func checkSecure(t *testing.T, cluster *kafka.Cluster, cert tls.Certificate) {
	bob := kadm.UpsertSCRAM{User: "bob", Mechanism: kadm.ScramSha512, Iterations: 4096, Password: "hidden"}
	if res, err := cluster.Admin().AlterUserSCRAMs(t.Context(), nil, []kadm.UpsertSCRAM{bob}); err != nil || res.Error() != nil {
		t.Fatal(err, res.Error())
	}
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	trusting := &tls.Config{RootCAs: pool}
	ann, bobs := plain.Auth{User: "ann", Pass: "secret"}, scram.Auth{User: "bob", Pass: "hidden"}
	for name, tc := range map[string]struct {
		listener string
		tls      *tls.Config
		sasl     sasl.Mechanism
		wrong    string // what the error says; "" = none
	}{
		"TLS":                   {"TLS", trusting, nil, ""},
		"PLAIN over TLS":        {"BOTH", trusting, ann.AsMechanism(), ""},
		"SCRAM over TLS":        {"BOTH", trusting, bobs.AsSha512Mechanism(), ""},
		"SCRAM":                 {"SASL", nil, bobs.AsSha512Mechanism(), ""},
		"untrusted certificate": {"TLS", &tls.Config{}, nil, "certificate"},
		"plain text to TLS":     {"TLS", nil, nil, "TLS"},
		"wrong password":        {"SASL", nil, plain.Auth{User: "ann", Pass: "guess"}.AsMechanism(), "SASL_AUTHENTICATION_FAILED"},
		"mechanism not offered": {"SASL", nil, bobs.AsSha256Mechanism(), "the broker offers"},
	} {
		addr := cluster.Broker(1).ListenerAddr(tc.listener)
		c, err := Dial(t.Context(), DialConfig{Addr: addr, TLS: tc.tls, SASL: tc.sasl})
		if err == nil {
			_, err = c.Metadata(t.Context(), &MetadataRequest{})
			_ = c.Close()
		}
		switch {
		case tc.wrong == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tc.wrong != "" && (err == nil || !strings.Contains(err.Error(), tc.wrong)):
			t.Errorf("%s: %v, want a mention of %q", name, err, tc.wrong)
		}
	}
	checkReauthentication(t, cluster.Broker(1).ListenerAddr("SASL"), bobs.AsSha512Mechanism())
}

// sessionLifetime is how long the broker lets an authentication live. It ends a connection that is used after that
// without a new one, which the client makes in time unless the machine stands still for what is left then.
const sessionLifetime = 5 * time.Second

// checkReauthentication keeps a connection in use for longer than the broker lets one authentication live.
func checkReauthentication(t *testing.T, addr string, mechanism sasl.Mechanism) {
	c, err := Dial(t.Context(), DialConfig{Addr: addr, SASL: mechanism})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	first := c.reauthAt
	if first.IsZero() {
		t.Fatal("the broker did not say how long the session lives")
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	// Every call succeeds, until one comes that no session but a second one allows.
	for end := first.Add(sessionLifetime); time.Now().Before(end); <-tick.C {
		if _, err := c.Metadata(t.Context(), &MetadataRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	if !c.reauthAt.After(first.Add(sessionLifetime / 2)) {
		t.Error("it was not authenticated again")
	}
}

func logBytes(t *testing.T, cluster *kafka.Cluster, p int32) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(cluster.Broker(1).PartitionDir("t", p), "00000000000000000000.log"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// checkNewest demands that our table ends where this Kafka's does.
func checkNewest(t *testing.T, c *Conn) {
	for _, api := range APIs() {
		_, highest, ok := c.Versions(api.Key)
		if ok != (api.KafkaMax >= 0) || ok && highest != api.KafkaMax {
			t.Errorf("%s: Kafka %s offers up to %d (%t), our table says %d",
				api.Name, kafka.Version, highest, ok, api.KafkaMax)
		}
	}
}

// checkCalls makes every call in every version that both sides know.
func checkCalls(t *testing.T, c *Conn, clusterID string) {
	each := func(req, resp Message, check func() bool) {
		api, _ := LookupAPI(req.Key())
		lowest, highest, _ := c.Versions(req.Key())
		for v := max(api.Min, lowest); v <= min(api.Max, highest); v++ {
			if err := c.enter(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := c.leave(c.exchange(req, resp, v)); err != nil {
				t.Fatalf("%s v%d: %v", api.Name, v, err)
			}
			if !check() {
				t.Errorf("%s v%d: %+v", api.Name, v, resp)
			}
		}
	}
	name := "t"
	md := &MetadataResponse{}
	each(&MetadataRequest{Topics: []MetadataRequestTopic{{Name: &name}}}, md, func() bool {
		return deref(md.ClusterID) == clusterID && len(md.Brokers) == 1 && len(md.Topics) == 1 &&
			deref(md.Topics[0].Name) == "t" && len(md.Topics[0].Partitions) == 2 && md.Topics[0].Partitions[0].LeaderID == 1
	})
	dc := &DescribeClusterResponse{}
	each(&DescribeClusterRequest{EndpointType: EndpointBrokers}, dc, func() bool {
		return dc.ClusterID == clusterID && dc.ErrorCode == CodeNone && len(dc.Brokers) == 1 && dc.Brokers[0].BrokerID == 1
	})
	lo := &ListOffsetsResponse{}
	latest := []ListOffsetsPartition{{Index: 1, CurrentLeaderEpoch: -1, Timestamp: TimestampLatest}}
	each(&ListOffsetsRequest{ReplicaID: -1, Topics: []ListOffsetsTopic{{Name: "t", Partitions: latest}}}, lo, func() bool {
		p := lo.Topics[0].Partitions[0]
		return p.ErrorCode == CodeNone && p.Offset == 10 && p.Index == 1
	})
	le := &OffsetForLeaderEpochResponse{}
	zero := []OffsetForLeaderPartition{{Partition: 1, CurrentLeaderEpoch: -1}}
	each(&OffsetForLeaderEpochRequest{
		ReplicaID: -1, Topics: []OffsetForLeaderTopic{{Topic: "t", Partitions: zero}},
	}, le, func() bool {
		p := le.Topics[0].Partitions[0]
		return p.ErrorCode == CodeNone && p.EndOffset == 10 && p.LeaderEpoch == 0 && p.Partition == 1
	})
}

// checkFetch fetches everything in every version and compares with the broker's own file.
func checkFetch(t *testing.T, c *Conn, id [16]byte, logs [2][]byte) {
	api, _ := LookupAPI(KeyFetch)
	for v := api.Min; v <= api.Max; v++ {
		session := NewFetchSession(v)
		got := fetchBoth(t, c, session, id, 0, 0)
		for p := range got {
			if !bytes.Equal(got[p], logs[p]) {
				t.Errorf("v%d: partition %d: %d bytes, the broker's file has %d", v, p, len(got[p]), len(logs[p]))
			}
		}
		if end := session.CloseRequest(); end != nil {
			s, err := c.Fetch(t.Context(), end)
			if err != nil || s.Head().ErrorCode != CodeNone || s.Next() || s.Err() != nil {
				t.Fatalf("v%d: closing the session: %v", v, err)
			}
		}
	}
}

// fetchBoth fetches the partitions of t that have an offset, partition 0 first.
func fetchBoth(t *testing.T, c *Conn, session *FetchSession, id [16]byte, offsets ...int64) (records [2][]byte) {
	t.Helper()
	var wanted []SessionPartition
	for p, offset := range offsets {
		wanted = append(wanted, SessionPartition{Topic: "t", TopicID: id, Slot: p, FetchPartition: FetchPartition{
			Partition: int32(p), FetchOffset: offset, CurrentLeaderEpoch: 0, LastFetchedEpoch: -1, LogStartOffset: -1,
			MaxBytes: 1 << 20,
		}})
	}
	s, err := c.Fetch(t.Context(), session.Next(FetchParams{MinBytes: 1, MaxBytes: math.MaxInt32}, wanted))
	if err != nil {
		t.Fatal(err)
	}
	if err := session.HandleResponse(s.Head().SessionID, s.Head().ErrorCode); err != nil {
		t.Fatal(err)
	}
	for s.Next() {
		p := s.Partition()
		if p.ErrorCode != CodeNone || p.Topic != "t" || p.TopicID != id || p.Slot != int(p.Index) || p.HighWatermark != 10 {
			t.Errorf("head %+v", p)
		}
		if records[p.Index], err = io.ReadAll(s); err != nil {
			t.Fatal(err)
		}
		if tail, err := s.Finish(); err != nil || tail.Diverged() {
			t.Errorf("tail %+v, %v", tail, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return records
}

// checkSession takes one session through nothing new, one partition moved back, and one forgotten and wanted again.
func checkSession(t *testing.T, c *Conn, id [16]byte, logs [2][]byte) {
	version, err := c.Version(KeyFetch)
	if err != nil {
		t.Fatal(err)
	}
	s := NewFetchSession(version)
	for i, st := range []struct {
		offsets []int64
		want    [2][]byte
	}{
		{[]int64{0, 0}, logs},
		{[]int64{10, 10}, [2][]byte{}},
		{[]int64{10, 0}, [2][]byte{nil, logs[1]}},
		{[]int64{10, 10}, [2][]byte{}},
		{[]int64{0}, [2][]byte{logs[0], nil}},
		{[]int64{10, 0}, [2][]byte{nil, logs[1]}},
	} {
		got := fetchBoth(t, c, s, id, st.offsets...)
		if !bytes.Equal(got[0], st.want[0]) || !bytes.Equal(got[1], st.want[1]) {
			t.Errorf("step %d: %d and %d bytes, want %d and %d",
				i, len(got[0]), len(got[1]), len(st.want[0]), len(st.want[1]))
		}
	}
	if s.id == 0 || s.epoch != 6 {
		t.Errorf("session %d, epoch %d after six requests", s.id, s.epoch)
	}
	old := s.id
	s.id = 12345 // as if evicted
	req := s.Next(FetchParams{}, nil)
	stream, err := c.Fetch(t.Context(), req)
	if err != nil || stream.Head().ErrorCode != CodeFetchSessionIDNotFound || stream.Next() || stream.Err() != nil {
		t.Fatalf("an unknown session: %+v, %v", stream.Head(), err)
	}
	if s.HandleResponse(0, stream.Head().ErrorCode) == nil || s.id != 0 {
		t.Error("the session stands")
	}
	if got := fetchBoth(t, c, s, id, 0, 0); !bytes.Equal(got[0], logs[0]) || s.id == old {
		t.Errorf("afterwards: %d bytes in session %d", len(got[0]), s.id)
	}
}

// checkFirstBatch asks for one byte and gets the first batch of log.
func checkFirstBatch(t *testing.T, c *Conn, id [16]byte, log []byte) {
	partition := FetchPartition{
		CurrentLeaderEpoch: -1, LastFetchedEpoch: -1, LogStartOffset: -1, MaxBytes: 1, HighWatermark: NoHighWatermark,
	}
	req := &FetchRequest{
		ReplicaID: -1, ReplicaEpoch: -1, SessionEpoch: -1, MaxBytes: 1, MinBytes: 1,
		Topics: []FetchTopic{{Topic: "t", TopicID: id, Partitions: []FetchPartition{partition}}},
	}
	s, err := c.Fetch(t.Context(), req)
	if err != nil || !s.Next() {
		t.Fatal(err, s.Err())
	}
	batch := 12 + int(binary.BigEndian.Uint32(log[8:])) // its length field counts what follows it
	if n := s.Partition().RecordsSize; n != batch {
		t.Errorf("%d bytes for one asked, the first batch has %d", n, batch)
	}
	if s.Next() || s.Close() != nil {
		t.Error(s.Err())
	}
}
