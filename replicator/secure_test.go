package replicator

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
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
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

// secureKafka is a source that speaks TLS under a certificate of its own and wants alice's password.
func secureKafka(t *testing.T) (src *fakeKafka, caFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "source"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	caFile = filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(caFile, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(),
		kfake.User("PLAIN", "alice", "wonder\"land"), kfake.User("SCRAM-SHA-256", "alice", "wonder\"land"),
		kfake.User("SCRAM-SHA-512", "alice", "wonder\"land"),
		kfake.TLS(&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.DialTLSConfig(&tls.Config{RootCAs: roots}),
		kgo.SASL(plain.Auth{User: "alice", Pass: "wonder\"land"}.AsMechanism()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &fakeKafka{Cluster: cluster, client: client, admin: kadm.NewClient(client)}, caFile
}

func TestClient_ReadsOverTLSWithEachMechanism(t *testing.T) {
	src, ca := secureKafka(t)
	src.createTopic(t, "orders", 1, "segment.bytes", "20000")
	src.produce(t, "orders", 0, 40)
	for mechanism, module := range map[string]string{
		"PLAIN": "plain.PlainLoginModule", "SCRAM-SHA-256": "scram.ScramLoginModule", "SCRAM-SHA-512": "scram.ScramLoginModule",
	} {
		t.Run(mechanism, func(t *testing.T) {
			a := runAgent(t, src.properties(t.TempDir(),
				"mirror.dr.security.protocol", "SASL_SSL", "mirror.dr.sasl.mechanism", mechanism,
				"mirror.dr.ssl.truststore.type", "PEM", "mirror.dr.ssl.truststore.location", ca,
				"mirror.dr.sasl.jaas.config", "org.apache.kafka.common.security."+module+
					` required username="alice" password="wonder\"land";`))
			a.awaitEnd(t, "orders", 0, 40)
			if strings.Contains(a.logs.String(), "configuration could not be read") {
				t.Error("the admin client did not get in")
			}
			if strings.Contains(a.logs.String(), "wonder") {
				t.Error("the password is in the log")
			}
		})
	}
}

func TestClient_AWrongPasswordOrCertificateIsNamed(t *testing.T) {
	src, ca := secureKafka(t)
	src.createTopic(t, "orders", 1)
	for name, c := range map[string]struct {
		more []string
		want string
	}{
		"password": {[]string{
			"mirror.dr.security.protocol", "SASL_SSL", "mirror.dr.sasl.mechanism", "PLAIN",
			"mirror.dr.ssl.truststore.type", "PEM", "mirror.dr.ssl.truststore.location", ca,
			"mirror.dr.sasl.jaas.config", `M required username="alice" password="looking-glass";`,
		}, "while authenticating"},
		"no trust": {[]string{"mirror.dr.security.protocol", "SSL"}, "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			a := runAgent(t, src.properties(t.TempDir(), c.more...))
			await(t, patience, "an error that says "+c.want, func() bool {
				return strings.Contains(a.Status().Mirrors[0].RefreshError, c.want)
			})
			if strings.Contains(a.logs.String(), "looking-glass") {
				t.Error("the password is in the log")
			}
		})
	}
}

func TestStartPosition_ByTimestampBeginsAtTheFirstRecordThatIsNotOlder(t *testing.T) {
	src := newFakeKafka(t)
	src.createTopic(t, "orders", 1)
	base := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	for i := range 5 {
		if err := src.client.ProduceSync(t.Context(), &kgo.Record{
			Topic: "orders", Timestamp: base.Add(time.Duration(i) * time.Minute), Value: bytes.Repeat([]byte("v"), 100),
		}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	a := runAgent(t, src.properties(t.TempDir(), "mirror.dr.mirror.start.position",
		"timestamp:"+strconv.FormatInt(base.Add(2*time.Minute).UnixMilli(), 10)))
	a.awaitEnd(t, "orders", 0, 5)
	if p, _ := a.partition("orders", 0); p.LogStart != 2 {
		t.Errorf("the log starts at %d, want 2", p.LogStart)
	}
}
