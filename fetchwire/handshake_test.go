package fetchwire

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// listen accepts connections on loopback and hands each to serve, until the test ends.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = nc.Close() }()
				serve(nc)
			}()
		}
	}()
	return l.Addr().String()
}

// answering serves requests with what answer returns, nil to say nothing more.
func answering(answer func(h RequestHeader, body []byte) []byte) func(net.Conn) {
	return func(nc net.Conn) {
		var buf []byte
		for {
			var err error
			if buf, err = ReadRequestFrame(nc, buf, 1<<20); err != nil {
				return
			}
			h, body, err := DecodeRequestHeader(buf)
			if err != nil {
				return
			}
			reply := answer(h, body)
			if reply == nil {
				_, _ = io.Copy(io.Discard, nc) // until the client goes
				return
			}
			if _, err := nc.Write(reply); err != nil {
				return
			}
		}
	}
}

// offers answers ApiVersions with our whole table, and anything else by answer.
func offers(answer func(h RequestHeader, body []byte) []byte) func(net.Conn) {
	return answering(func(h RequestHeader, body []byte) []byte {
		if h.APIKey == KeyApiVersions {
			return AnswerApiVersions(nil, h, ourOffer())
		}
		return answer(h, body)
	})
}

func ourOffer() (offer []APIVersion) {
	for _, a := range APIs() {
		offer = append(offer, APIVersion{APIKey: a.Key, MinVersion: a.Min, MaxVersion: a.Max})
	}
	return offer
}

func silent(RequestHeader, []byte) []byte { return nil }

func TestVersion_KeepsAgentsVersionsFromBrokers(t *testing.T) {
	offer := []APIVersion{{KeyApiVersions, 0, 4}, {KeyFetch, 4, 19}}
	for i, want := range []int16{18, 19} {
		agent := i == 1
		if agent {
			offer = append(offer, APIVersion{KeyListMirrors, 0, 0})
		}
		c := dialTest(t, listen(t, answering(func(h RequestHeader, _ []byte) []byte {
			return AnswerApiVersions(nil, h, offer)
		})))
		if got, err := c.Version(KeyFetch); got != want || err != nil || c.Agent() != agent {
			t.Errorf("agent %t: Fetch v%d, %v, want v%d", c.Agent(), got, err, want)
		}
		if _, err := c.Version(KeyCreateMirror); !errors.Is(err, ErrUnsupportedVersion) {
			t.Errorf("an API that was not offered: %v", err)
		}
	}
}

func TestDial_NegotiatesTheNewestCommonVersions(t *testing.T) {
	addr := listen(t, answering(func(h RequestHeader, _ []byte) []byte {
		return AnswerApiVersions(nil, h, []APIVersion{
			{KeyFetch, 0, 11}, {KeyMetadata, 0, 99}, {KeyListOffsets, 12, 14}, {KeyApiVersions, 0, 4},
		})
	}))
	c := dialTest(t, addr)
	if v, err := c.Version(KeyFetch); v != 11 || err != nil {
		t.Errorf("Fetch: v%d, %v", v, err)
	}
	if v, err := c.Version(KeyMetadata); v != 13 || err != nil {
		t.Errorf("Metadata: v%d, %v", v, err)
	}
	_, err := c.Version(KeyListOffsets)
	if !errors.Is(err, ErrUnsupportedVersion) || !strings.Contains(err.Error(), "12 to 14") {
		t.Errorf("ListOffsets: %v", err)
	}
	if _, err := c.Version(KeyDescribeCluster); !errors.Is(err, ErrUnsupportedVersion) {
		t.Errorf("DescribeCluster: %v", err)
	}
	if lowest, highest, ok := c.Versions(KeyMetadata); lowest != 0 || highest != 99 || !ok {
		t.Errorf("Metadata's range: %d to %d, %t", lowest, highest, ok)
	}
}

func TestDial_FallsBackForOldBrokers(t *testing.T) {
	for name, tc := range map[string]struct {
		highest int16 // of ApiVersions at the broker
		lists   bool  // whether it lists its APIs beside the error
		asked   []int16
	}{
		"lists what it has":          {3, true, []int16{4, 3}},
		"names an error and no APIs": {2, false, []int16{4, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []int16
			addr := listen(t, answering(func(h RequestHeader, _ []byte) []byte {
				asked = append(asked, h.APIVersion)
				resp := &ApiVersionsResponse{FinalizedFeaturesEpoch: -1}
				offer := []APIVersion{{KeyApiVersions, 0, tc.highest}, {KeyFetch, 0, 6}}
				if h.APIVersion > tc.highest {
					h.APIVersion, resp.ErrorCode = 0, CodeUnsupportedVersion
					if tc.lists {
						resp.APIKeys = offer
					}
				} else {
					resp.APIKeys = offer
				}
				return AppendResponse(nil, h, resp)
			}))
			c := dialTest(t, addr)
			if v, err := c.Version(KeyFetch); v != 6 || err != nil {
				t.Errorf("Fetch: v%d, %v", v, err)
			}
			if len(asked) != 2 || asked[0] != tc.asked[0] || asked[1] != tc.asked[1] {
				t.Errorf("asked in versions %v, want %v", asked, tc.asked)
			}
		})
	}
}

func TestDial_NamesOtherProtocols(t *testing.T) {
	secure := listen(t, func(nc net.Conn) { _, _ = nc.Write([]byte{0x15, 3, 3, 0, 2, 2, 10}) })
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	hello := listen(t, func(nc net.Conn) { _, _ = nc.Write([]byte{0x16, 3, 3, 0, 90, 2}) })
	closing := listen(t, func(net.Conn) {})

	for name, tc := range map[string]struct {
		addr  string
		tls   bool
		proto string // of a NotKafkaError; "" = another error that names the remedy
		words string
	}{
		"TLS alert":               {secure, false, "TLS", "security.protocol"},
		"TLS handshake":           {hello, false, "TLS", "security.protocol"},
		"HTTP":                    {web.Listener.Addr().String(), false, "HTTP", "HTTP/1.1 400"},
		"HTTP in answer to TLS":   {web.Listener.Addr().String(), true, "HTTP", "HTTP/"},
		"closed in plain text":    {closing, false, "", "a TLS listener does so"},
		"closed in TLS handshake": {closing, true, "", "a plaintext listener does so"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DialConfig{Addr: tc.addr, DialTimeout: 10 * time.Second}
			if tc.tls {
				cfg.TLS = &tls.Config{InsecureSkipVerify: true}
			}
			_, err := Dial(t.Context(), cfg)
			var notKafka *NotKafkaError
			if errors.As(err, &notKafka) != (tc.proto != "") || notKafka != nil && notKafka.Protocol != tc.proto {
				t.Errorf("got %v", err)
			}
			if err == nil || !strings.Contains(err.Error(), tc.words) || !strings.Contains(err.Error(), tc.addr) {
				t.Errorf("got %v, want a mention of %q", err, tc.words)
			}
		})
	}
}

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestDial_SpeaksTLSAndChecksTheCertificate(t *testing.T) {
	cert := selfSigned(t)
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	addr := listen(t, func(nc net.Conn) {
		offers(silent)(tls.Server(nc, &tls.Config{Certificates: []tls.Certificate{cert}}))
	})
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	c, err := Dial(t.Context(), DialConfig{Addr: addr, TLS: &tls.Config{RootCAs: pool}})
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if _, err := Dial(t.Context(), DialConfig{Addr: addr, TLS: &tls.Config{}}); err == nil {
		t.Error("a certificate nobody vouches for is accepted")
	}
}

func TestDial_AuthenticatesWithSASL(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(),
		kfake.Superuser("PLAIN", "ann", "secret"), kfake.Superuser("SCRAM-SHA-256", "bob", "secret"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	addr := cluster.ListenAddrs()[0]
	for name, tc := range map[string]struct {
		mechanism sasl.Mechanism
		wrong     bool
	}{
		"PLAIN":          {plain.Auth{User: "ann", Pass: "secret"}.AsMechanism(), false},
		"SCRAM":          {scram.Auth{User: "bob", Pass: "secret"}.AsSha256Mechanism(), false},
		"wrong password": {plain.Auth{User: "ann", Pass: "guess"}.AsMechanism(), true},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Dial(t.Context(), DialConfig{Addr: addr, SASL: tc.mechanism})
			if tc.wrong {
				if err == nil || strings.Contains(err.Error(), "guess") {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			if _, err := c.Metadata(t.Context(), &MetadataRequest{}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSASL_NamesTheMechanismsOnOffer(t *testing.T) {
	addr := listen(t, offers(func(h RequestHeader, _ []byte) []byte {
		return AppendResponse(nil, h, &SaslHandshakeResponse{
			ErrorCode: CodeUnsupportedSaslMechanism, Mechanisms: []string{"SCRAM-SHA-512", "OAUTHBEARER"},
		})
	}))
	_, err := Dial(t.Context(), DialConfig{Addr: addr, SASL: plain.Auth{User: "u", Pass: "p"}.AsMechanism()})
	var kafka KafkaError
	if !errors.As(err, &kafka) || kafka.Code != CodeUnsupportedSaslMechanism ||
		!strings.Contains(err.Error(), "PLAIN; the broker offers SCRAM-SHA-512, OAUTHBEARER") {
		t.Errorf("got %v", err)
	}
}

// endless is a mechanism that is never satisfied.
type endless struct{}

func (endless) Name() string { return "ENDLESS" }
func (endless) Authenticate(context.Context, string) (sasl.Session, []byte, error) {
	return endless{}, []byte("x"), nil
}
func (endless) Challenge([]byte) (bool, []byte, error) { return false, []byte("x"), nil }

// obliging answers handshakes and tokens with success and a session's lifetime, and metadata with nothing.
func obliging(lifetimeMs int64, count map[int16]int) func(net.Conn) {
	return offers(func(h RequestHeader, _ []byte) []byte {
		count[h.APIKey]++
		switch h.APIKey {
		case KeySaslHandshake:
			return AppendResponse(nil, h, &SaslHandshakeResponse{Mechanisms: []string{"PLAIN"}})
		case KeySaslAuthenticate:
			return AppendResponse(nil, h, &SaslAuthenticateResponse{AuthBytes: []byte{}, SessionLifetimeMs: lifetimeMs})
		}
		return AppendResponse(nil, h, &MetadataResponse{})
	})
}

func TestSASL_GivesUpOnAnEndlessDialogue(t *testing.T) {
	addr := listen(t, obliging(0, map[int16]int{}))
	if _, err := Dial(t.Context(), DialConfig{Addr: addr, SASL: endless{}}); !errors.Is(err, ErrSASL) {
		t.Errorf("got %v", err)
	}
}

func TestSASL_AuthenticatesAgainBeforeTheSessionEnds(t *testing.T) {
	count := make(map[int16]int)
	addr := listen(t, obliging(2000, count))
	began := time.Now()
	c, err := Dial(t.Context(), DialConfig{Addr: addr, SASL: plain.Auth{User: "u", Pass: "p"}.AsMechanism()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	const due = 1700 * time.Millisecond
	if c.reauthAt.Before(began.Add(due)) || c.reauthAt.After(time.Now().Add(due)) {
		t.Errorf("of two seconds, authentication is due after %v", c.reauthAt.Sub(began))
	}
	c.reauthAt = time.Now()
	if _, err := c.Metadata(t.Context(), &MetadataRequest{}); err != nil {
		t.Fatal(err)
	}
	if count[KeySaslHandshake] != 2 || count[KeySaslAuthenticate] != 2 || count[KeyMetadata] != 1 {
		t.Errorf("requests by key: %v", count)
	}
	for _, lifetime := range []int64{0, -5} {
		if !reauthTime(began, lifetime).IsZero() {
			t.Errorf("a lifetime of %d ends", lifetime)
		}
	}
	if at := reauthTime(began, 5); at.Sub(began) < time.Second {
		t.Error("it is authenticated again sooner than a broker takes it")
	}
	if at := reauthTime(began, 1<<62); at.Before(began) || at.After(began.Add(maxSessionLifetime)) {
		t.Errorf("an absurd lifetime ends at %v", at)
	}
}

var errStop = errors.New("asked to stop")

func TestDial_EndsWithItsContextAndItsTimeout(t *testing.T) {
	asked := make(chan struct{})
	addr := listen(t, answering(func(RequestHeader, []byte) []byte {
		asked <- struct{}{}
		return nil
	}))
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-asked
		cancel(errStop)
	}()
	if _, err := Dial(ctx, DialConfig{Addr: addr}); !errors.Is(err, errStop) {
		t.Errorf("cancelled: %v", err)
	}
	go func() { <-asked }()
	_, err := Dial(t.Context(), DialConfig{Addr: addr, DialTimeout: 30 * time.Millisecond})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), addr) {
		t.Errorf("timed out: %v", err)
	}
}

func TestConn_WaitEndsWithTheContext(t *testing.T) {
	asked := make(chan struct{})
	addr := listen(t, offers(func(RequestHeader, []byte) []byte {
		asked <- struct{}{}
		return nil
	}))
	c := dialTest(t, addr)
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-asked
		cancel(errStop)
	}()
	if _, err := c.Fetch(ctx, requestFor(sampleResponse(17))); !errors.Is(err, errStop) {
		t.Errorf("got %v", err)
	}
	if _, err := c.Metadata(t.Context(), &MetadataRequest{}); !errors.Is(err, ErrConnBroken) || !errors.Is(err, errStop) {
		t.Errorf("afterwards: %v", err)
	}
}

func TestConn_ContextThatEndsBetweenCallsDoesNoHarm(t *testing.T) {
	addr := listen(t, obliging(0, map[int16]int{}))
	c := dialTest(t, addr)
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := c.Metadata(ctx, &MetadataRequest{}); err != nil {
			t.Fatal(err)
		}
		cancel()
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errStop)
	if _, err := c.Metadata(ctx, &MetadataRequest{}); !errors.Is(err, errStop) {
		t.Errorf("with a context that has ended: %v", err)
	}
	if _, err := c.Metadata(t.Context(), &MetadataRequest{}); err != nil {
		t.Errorf("a call that was never sent broke the connection: %v", err)
	}
}

func TestConn_SilenceIsAnErrorThatSaysHowLong(t *testing.T) {
	addr := listen(t, offers(silent))
	c := dialTest(t, addr)
	c.cfg.RequestTimeout = 40 * time.Millisecond // after the handshake, which a busy machine may not get done in it
	c.sock.silence = c.cfg.RequestTimeout
	_, err := c.Metadata(t.Context(), &MetadataRequest{})
	if !errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(err.Error(), "40ms") {
		t.Errorf("got %v", err)
	}
}

func TestConn_CloseFromElsewhereEndsACall(t *testing.T) {
	asked := make(chan struct{})
	addr := listen(t, offers(func(RequestHeader, []byte) []byte {
		asked <- struct{}{}
		return nil
	}))
	c := dialTest(t, addr)
	go func() {
		<-asked
		_ = c.Close()
	}()
	if _, err := c.Metadata(t.Context(), &MetadataRequest{}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestConn_RefusesHostileFrames(t *testing.T) {
	for name, tc := range map[string]struct {
		reply []byte
		want  error
	}{
		"above the limit":      {[]byte{0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 2}, ErrFrameTooLarge},
		"negative":             {[]byte{0x80, 0, 0, 0, 0, 0, 0, 2}, ErrMalformed},
		"another request's":    {[]byte{0, 0, 0, 5, 0, 0, 0, 9, 0}, ErrCorrelation},
		"ends early":           {[]byte{0, 0, 0, 50, 0, 0, 0, 2, 0}, io.ErrUnexpectedEOF},
		"not what it says":     {[]byte{0, 0, 0, 6, 0, 0, 0, 2, 0, 1}, ErrMalformed},
		"bytes of a next one":  {[]byte{0, 0, 0, 4, 0, 0, 0, 2, 0}, ErrMalformed},
		"a header with no end": {[]byte{0, 0, 0, 6, 0, 0, 0, 2, 0xff, 0xff}, ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			addr := listen(t, func(nc net.Conn) {
				first := true
				offers(func(RequestHeader, []byte) []byte {
					if !first {
						return nil
					}
					first = false
					_, _ = nc.Write(tc.reply)
					_ = nc.Close()
					return []byte{}
				})(nc)
			})
			c := dialTest(t, addr)
			_, err := c.Metadata(t.Context(), &MetadataRequest{})
			if !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if _, err := c.Metadata(t.Context(), &MetadataRequest{}); !errors.Is(err, ErrConnBroken) {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

func TestConn_AnnouncedSizeAloneAllocatesLittle(t *testing.T) {
	sc := &scriptConn{answer: func([]byte) []byte { return []byte{0x06, 0, 0, 0, 0, 0, 0, 1, 0} }}
	c := scripted(sc, 17)
	var err error
	if n := allocated(func() { _, err = c.Metadata(t.Context(), &MetadataRequest{}) }); n > 1<<20 {
		t.Errorf("96 MiB announced and nine bytes sent allocated %d bytes", n)
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
}

func TestConn_NeverClaimsToBeABroker(t *testing.T) {
	c := scripted(&scriptConn{}, 17)
	if _, err := c.Fetch(t.Context(), &FetchRequest{}); !errors.Is(err, ErrReplicaID) {
		t.Errorf("Fetch: %v", err)
	}
	if _, err := c.ListOffsets(t.Context(), &ListOffsetsRequest{}); !errors.Is(err, ErrReplicaID) {
		t.Errorf("ListOffsets: %v", err)
	}
	if _, err := c.OffsetForLeaderEpoch(t.Context(), &OffsetForLeaderEpochRequest{}); !errors.Is(err, ErrReplicaID) {
		t.Errorf("OffsetForLeaderEpoch: %v", err)
	}
}
