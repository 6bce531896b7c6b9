package fetchwire

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"
)

// What ApiVersions says of this client.
const (
	softwareName    = "segmirror"
	softwareVersion = "1.0"
)

// maxSaslSteps bounds an authentication's dialogue: no mechanism takes more than three.
const maxSaslSteps = 16

// minReauth is the least time between two authentications on a connection.
const minReauth = 1100 * time.Millisecond

// maxSessionLifetime bounds what a broker may say of a SASL session, so that no duration overflows.
const maxSessionLifetime = 365 * 24 * time.Hour

// Dial connects, does the TLS handshake, asks for ApiVersions and authenticates.
//
// Errors: *NotKafkaError when the port speaks TLS or HTTP, KafkaError for a code, ctx's cause when cancelled.
func Dial(ctx context.Context, cfg DialConfig) (*Conn, error) {
	cfg = cfg.withDefaults()
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.DialTimeout,
		fmt.Errorf("%s: not connected within %v: %w", cfg.Addr, cfg.DialTimeout, context.DeadlineExceeded))
	defer cancel()
	dialer := net.Dialer{ControlContext: func(_ context.Context, _, _ string, raw syscall.RawConn) error {
		return setReceiveBuffer(raw, cfg.ReceiveBufferBytes)
	}}
	nc, err := dialer.DialContext(ctx, "tcp", cfg.Addr)
	if err != nil {
		return nil, causeOr(ctx, err)
	}
	if cfg.TLS != nil {
		if nc, err = startTLS(ctx, nc, cfg); err != nil {
			return nil, causeOr(ctx, err)
		}
	}
	c := newConn(nc, cfg)
	if err := c.handshake(ctx); err != nil {
		_ = c.Close() // err is the cause worth telling
		return nil, err
	}
	return c, nil
}

// causeOr returns ctx's cause if ctx ended, else err.
func causeOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// setReceiveBuffer sets SO_RCVBUF before the connection is made, when it still decides the window's scale.
func setReceiveBuffer(raw syscall.RawConn, size int) error {
	if size <= 0 {
		return nil
	}
	var setErr error
	err := raw.Control(func(fd uintptr) {
		setErr = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, size)
	})
	return errors.Join(err, setErr)
}

// startTLS does the handshake; on an error nc is closed.
func startTLS(ctx context.Context, nc net.Conn, cfg DialConfig) (net.Conn, error) {
	tlsConfig := cfg.TLS
	if tlsConfig.ServerName == "" {
		host, _, err := net.SplitHostPort(cfg.Addr)
		if err != nil {
			_ = nc.Close()
			return nil, err
		}
		tlsConfig = tlsConfig.Clone()
		tlsConfig.ServerName = host
	}
	tc := tls.Client(nc, tlsConfig)
	err := tc.HandshakeContext(ctx)
	if err == nil {
		return tc, nil
	}
	_ = nc.Close() // err is the cause worth telling
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &record):
		if e := notTLS(cfg.Addr, record.RecordHeader[:]); e != nil {
			return nil, e
		}
	case errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET):
		return nil, fmt.Errorf("%s closed the connection in the TLS handshake (a plaintext listener does so): %w",
			cfg.Addr, err)
	}
	return nil, fmt.Errorf("TLS handshake with %s: %w", cfg.Addr, err)
}

// handshake learns the broker's versions and authenticates.
func (c *Conn) handshake(ctx context.Context) error {
	if err := c.sock.enter(ctx); err != nil {
		return err
	}
	err := c.askVersions()
	if err == nil && c.cfg.SASL != nil {
		err = c.authenticate(ctx)
	}
	return c.leave(err)
}

// askVersions sends ApiVersions in our newest version, and once more in one the broker named, else in version 0.
func (c *Conn) askVersions() error {
	api, _ := LookupAPI(KeyApiVersions)
	resp, err := c.apiVersions(api.Max)
	if err != nil {
		return err
	}
	if resp.ErrorCode == CodeUnsupportedVersion {
		version := int16(0)
		for _, k := range resp.APIKeys {
			if k.APIKey == KeyApiVersions {
				version = max(0, min(api.Max-1, k.MaxVersion))
			}
		}
		if resp, err = c.apiVersions(version); err != nil {
			return err
		}
	}
	if resp.ErrorCode != CodeNone {
		return KafkaError{Code: resp.ErrorCode, Message: "in answer to ApiVersions"}
	}
	for _, k := range resp.APIKeys {
		if i := apiIndex(k.APIKey); i >= 0 {
			c.versions[i] = versionRange{lowest: k.MinVersion, highest: k.MaxVersion, offered: true}
		}
	}
	c.agent = c.versions[apiIndex(KeyListMirrors)].offered
	return nil
}

// apiVersions asks once. A broker that does not know the version answers in version 0.
func (c *Conn) apiVersions(version int16) (*ApiVersionsResponse, error) {
	req := &ApiVersionsRequest{ClientSoftwareName: softwareName, ClientSoftwareVersion: softwareVersion}
	if err := c.send(req, version); err != nil {
		return nil, c.foreign(err)
	}
	body, err := c.receive(KeyApiVersions, version, handshakeMaxBytes)
	if err != nil {
		return nil, c.foreign(err)
	}
	if len(body) >= 2 && int16(binary.BigEndian.Uint16(body)) == CodeUnsupportedVersion {
		version = 0
	}
	resp := &ApiVersionsResponse{}
	return resp, resp.DecodeFrom(body, version)
}

// foreign names another protocol, if the first bytes received betray one.
func (c *Conn) foreign(err error) error {
	if e := notKafka(c.cfg.Addr, c.frame.buf[:c.frame.w]); e != nil {
		return e
	}
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return fmt.Errorf("%s closed the connection without an answer (a TLS listener does so): %w", c.cfg.Addr, err)
	}
	return err
}

// notKafka recognises what a TLS or HTTP server says to a client that sent a Kafka request; nil for anything else.
func notKafka(addr string, b []byte) error {
	switch {
	case len(b) >= 3 && b[1] == 3 && b[2] <= 4 && b[0] == 0x15:
		detail := "it answered with a TLS alert; set security.protocol to SSL or SASL_SSL"
		if len(b) >= 7 {
			detail = fmt.Sprintf("it answered with TLS alert %d; set security.protocol to SSL or SASL_SSL", b[6])
		}
		return &NotKafkaError{Addr: addr, Protocol: "TLS", Detail: detail}
	case len(b) >= 3 && b[1] == 3 && b[2] <= 4 && b[0] == 0x16:
		return &NotKafkaError{
			Addr: addr, Protocol: "TLS",
			Detail: "it answered with a TLS handshake; set security.protocol to SSL or SASL_SSL",
		}
	case strings.HasPrefix(string(b), "HTTP"):
		return &NotKafkaError{Addr: addr, Protocol: "HTTP", Detail: "it answered \"" + printable(b, 40) + "\"; wrong port?"}
	}
	return nil
}

// notTLS recognises what answered a TLS client in plain text; nil for anything else.
func notTLS(addr string, b []byte) error {
	if strings.HasPrefix(string(b), "HTTP") {
		return &NotKafkaError{
			Addr: addr, Protocol: "HTTP", Detail: "it answered a TLS handshake with \"" + printable(b, 40) + "\"",
		}
	}
	return nil
}

// printable returns the first line of b, at most n bytes, other bytes as dots.
func printable(b []byte, n int) string {
	var s strings.Builder
	for _, c := range b[:min(n, len(b))] {
		if c == '\r' || c == '\n' {
			break
		}
		if c < ' ' || c > '~' {
			c = '.'
		}
		s.WriteByte(c)
	}
	return s.String()
}

// maybeReauthenticate renews a SASL session before the broker ends it. KIP-368.
func (c *Conn) maybeReauthenticate(ctx context.Context) error {
	if c.reauthAt.IsZero() || time.Now().Before(c.reauthAt) {
		return nil
	}
	return c.authenticate(ctx)
}

// authenticate runs the mechanism's dialogue, between enter and leave.
func (c *Conn) authenticate(ctx context.Context) error {
	if err := c.pickMechanism(); err != nil {
		return err
	}
	version, err := c.Version(KeySaslAuthenticate)
	if err != nil {
		return err
	}
	session, token, err := c.cfg.SASL.Authenticate(ctx, c.cfg.Addr)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSASL, err)
	}
	lifetimeMs := int64(0)
	began := time.Now()
	for done, step := false, 0; !done || len(token) > 0; step++ {
		if step == maxSaslSteps {
			return fmt.Errorf("%w: no end after %d steps", ErrSASL, step)
		}
		resp := &SaslAuthenticateResponse{}
		if err := c.exchange(&SaslAuthenticateRequest{AuthBytes: token}, resp, version); err != nil {
			return fmt.Errorf("while authenticating: %w", err)
		}
		if resp.ErrorCode != CodeNone {
			return KafkaError{Code: resp.ErrorCode, Message: deref(resp.ErrorMessage)}
		}
		lifetimeMs, token = resp.SessionLifetimeMs, nil
		if !done {
			if done, token, err = session.Challenge(resp.AuthBytes); err != nil {
				return fmt.Errorf("%w: %w", ErrSASL, err)
			}
		}
	}
	c.reauthAt = reauthTime(began, lifetimeMs)
	return nil
}

func (c *Conn) pickMechanism() error {
	version, err := c.Version(KeySaslHandshake)
	if err != nil {
		return err
	}
	name := c.cfg.SASL.Name()
	resp := &SaslHandshakeResponse{}
	if err := c.exchange(&SaslHandshakeRequest{Mechanism: name}, resp, version); err != nil {
		return err
	}
	if resp.ErrorCode != CodeNone {
		return KafkaError{
			Code:    resp.ErrorCode,
			Message: fmt.Sprintf("%s; the broker offers %s", name, strings.Join(resp.Mechanisms, ", ")),
		}
	}
	return nil
}

// reauthTime is 85% into the session's lifetime, but not so soon that a broker refuses: it takes one
// authentication a second. Zero for a session without an end. Kafka: KafkaChannel.maybeBeginServerReauthentication.
func reauthTime(began time.Time, lifetimeMs int64) time.Time {
	if lifetimeMs <= 0 {
		return time.Time{}
	}
	lifetime := time.Duration(min(lifetimeMs, maxSessionLifetime.Milliseconds())) * time.Millisecond
	return began.Add(max(lifetime/100*85, minReauth))
}
