package replicator

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"segmirror/fetchwire"
)

// ClientConfig is how the agent reaches a source cluster: Kafka's client keys.
type ClientConfig struct {
	BootstrapServers   []string          // bootstrap.servers
	ConnectTimeout     time.Duration     // socket.connection.setup.timeout.ms
	RequestTimeout     time.Duration     // request.timeout.ms
	SocketTimeout      time.Duration     // mirror.socket.timeout.ms: silence tolerated on a fetcher's connection
	ReceiveBufferBytes int               // mirror.socket.receive.buffer.bytes; -1 = the kernel's choice
	Security           map[string]string // security.*, ssl.* and sasl.* as given; never printed
}

// LogValue keeps secrets out of logs.
func (c ClientConfig) LogValue() slog.Value {
	return slog.GroupValue(slog.Any("bootstrap_servers", c.BootstrapServers),
		slog.String("security_protocol", c.protocol()))
}

// String keeps secrets out of formatted text.
func (c ClientConfig) String() string {
	return c.protocol() + "://" + strings.Join(c.BootstrapServers, ",")
}

// GoString keeps secrets out of %#v.
func (c ClientConfig) GoString() string { return c.String() }

// DefaultClientConfig returns Kafka's client defaults, no bootstrap servers.
func DefaultClientConfig() ClientConfig {
	return ClientConfig{
		ConnectTimeout:     10 * time.Second,
		RequestTimeout:     30 * time.Second,
		SocketTimeout:      30 * time.Second,
		ReceiveBufferBytes: -1,
		Security:           map[string]string{},
	}
}

type clientKeyKind int8

const (
	clientUnknown clientKeyKind = iota
	clientUsed
	clientNoEffect // of the Java client's inside; accepted so that a client's file can be used as it is
	clientRefused  // would change who is trusted or how one logs in: ignoring it would be wrong
)

// clientKeys are Kafka's client keys for security.
var clientKeys = map[string]clientKeyKind{
	"security.protocol":                     clientUsed,
	"security.providers":                    clientNoEffect,
	"sasl.mechanism":                        clientUsed,
	"sasl.jaas.config":                      clientUsed,
	"sasl.client.callback.handler.class":    clientRefused,
	"sasl.login.callback.handler.class":     clientRefused,
	"sasl.login.class":                      clientRefused,
	"sasl.kerberos.service.name":            clientRefused,
	"sasl.kerberos.kinit.cmd":               clientNoEffect,
	"sasl.kerberos.ticket.renew.jitter":     clientNoEffect,
	"sasl.login.connect.timeout.ms":         clientNoEffect,
	"sasl.login.read.timeout.ms":            clientNoEffect,
	"sasl.login.refresh.buffer.seconds":     clientNoEffect,
	"sasl.login.refresh.window.factor":      clientNoEffect,
	"sasl.oauthbearer.token.endpoint.url":   clientRefused,
	"ssl.truststore.type":                   clientUsed,
	"ssl.truststore.location":               clientUsed,
	"ssl.truststore.certificates":           clientUsed,
	"ssl.truststore.password":               clientUsed,
	"ssl.keystore.type":                     clientUsed,
	"ssl.keystore.location":                 clientUsed,
	"ssl.keystore.key":                      clientUsed,
	"ssl.keystore.certificate.chain":        clientUsed,
	"ssl.keystore.password":                 clientUsed,
	"ssl.key.password":                      clientUsed,
	"ssl.endpoint.identification.algorithm": clientUsed,
	"ssl.enabled.protocols":                 clientUsed,
	"ssl.protocol":                          clientUsed,
	"ssl.cipher.suites":                     clientUsed,
	"ssl.engine.factory.class":              clientRefused,
	"ssl.keymanager.algorithm":              clientNoEffect,
	"ssl.trustmanager.algorithm":            clientNoEffect,
	"ssl.provider":                          clientNoEffect,
	"ssl.secure.random.implementation":      clientNoEffect,
}

func isClientKey(key string) bool { return clientKeys[key] != clientUnknown }

func (c *ClientConfig) protocol() string {
	if p := strings.ToUpper(c.Security["security.protocol"]); p != "" {
		return p
	}
	return "PLAINTEXT"
}

// Validate reports what cannot work: an unknown protocol or mechanism, stores that are not PEM, unreadable files.
// No error holds a secret.
func (c *ClientConfig) Validate() error {
	for key := range c.Security {
		if clientKeys[key] == clientRefused {
			return fmt.Errorf("%s is not supported; use sasl.mechanism PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512 "+
				"with sasl.jaas.config, and PEM files for ssl.*", key)
		}
	}
	_, tlsErr := c.tlsConfig()
	_, saslErr := c.saslMechanism()
	return errors.Join(tlsErr, saslErr)
}

func (c *ClientConfig) usesTLS() (bool, error) {
	switch c.protocol() {
	case "PLAINTEXT", "SASL_PLAINTEXT":
		return false, nil
	case "SSL", "SASL_SSL":
		return true, nil
	default:
		return false, fmt.Errorf("security.protocol %q is none of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL", c.protocol())
	}
}

// dialConfig returns how fetchwire reaches the broker at addr as clientID.
func (c *ClientConfig) dialConfig(addr, clientID string, timeout time.Duration) (fetchwire.DialConfig, error) {
	tlsConfig, err := c.tlsConfig()
	if err != nil {
		return fetchwire.DialConfig{}, err
	}
	if host, _, err := net.SplitHostPort(addr); err == nil && tlsConfig != nil {
		tlsConfig.ServerName = host
	}
	mechanism, err := c.saslMechanism()
	if err != nil {
		return fetchwire.DialConfig{}, err
	}
	return fetchwire.DialConfig{
		Addr:               addr,
		ClientID:           clientID,
		TLS:                tlsConfig,
		SASL:               mechanism,
		DialTimeout:        c.ConnectTimeout,
		RequestTimeout:     timeout,
		ReceiveBufferBytes: max(c.ReceiveBufferBytes, 0),
	}, nil
}

// kgoOpts returns the same for franz-go's client, which asks for topic configurations.
func (c *ClientConfig) kgoOpts(clientID string) ([]kgo.Opt, error) {
	opts := []kgo.Opt{
		kgo.SeedBrokers(c.BootstrapServers...),
		kgo.ClientID(clientID),
		kgo.DialTimeout(c.ConnectTimeout),
		kgo.RetryTimeout(c.RequestTimeout),
		kgo.RequestTimeoutOverhead(c.RequestTimeout),
		kgo.DisableClientMetrics(),
	}
	tlsConfig, err := c.tlsConfig()
	if err != nil {
		return nil, err
	}
	if tlsConfig != nil {
		opts = append(opts, kgo.DialTLSConfig(tlsConfig))
	}
	mechanism, err := c.saslMechanism()
	if err != nil {
		return nil, err
	}
	if mechanism != nil {
		opts = append(opts, kgo.SASL(mechanism))
	}
	return opts, nil
}
