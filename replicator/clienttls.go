package replicator

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
)

// tlsConfig builds a fresh *tls.Config from ssl.*, nil without TLS. Stores are PEM.
func (c *ClientConfig) tlsConfig() (*tls.Config, error) {
	on, err := c.usesTLS()
	if err != nil || !on {
		return nil, err
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if err := c.setTLSVersions(cfg); err != nil {
		return nil, err
	}
	if err := c.setCipherSuites(cfg); err != nil {
		return nil, err
	}
	if cfg.RootCAs, err = c.trustStore(); err != nil {
		return nil, err
	}
	if err := c.setKeyStore(cfg); err != nil {
		return nil, err
	}
	algorithm, given := c.Security["ssl.endpoint.identification.algorithm"]
	switch {
	case !given || strings.EqualFold(algorithm, "https"):
	case algorithm == "":
		skipHostname(cfg)
	default:
		return nil, fmt.Errorf("ssl.endpoint.identification.algorithm %q is neither https nor empty", algorithm)
	}
	return cfg, nil
}

func (c *ClientConfig) setTLSVersions(cfg *tls.Config) error {
	list := splitList(c.Security["ssl.enabled.protocols"])
	if one := c.Security["ssl.protocol"]; len(list) == 0 && one != "" && one != "TLS" && one != "TLSv1.3" {
		list = []string{one}
	}
	if len(list) == 0 {
		return nil
	}
	cfg.MinVersion, cfg.MaxVersion = tls.VersionTLS13, tls.VersionTLS12
	for _, name := range list {
		switch name {
		case "TLSv1.2":
			cfg.MinVersion = tls.VersionTLS12
		case "TLSv1.3":
			cfg.MaxVersion = tls.VersionTLS13
		default:
			return fmt.Errorf("ssl.enabled.protocols: %q is neither TLSv1.2 nor TLSv1.3", name)
		}
	}
	if cfg.MinVersion > cfg.MaxVersion {
		cfg.MinVersion, cfg.MaxVersion = cfg.MaxVersion, cfg.MinVersion
	}
	if len(list) == 1 {
		only := uint16(tls.VersionTLS12)
		if list[0] == "TLSv1.3" {
			only = tls.VersionTLS13
		}
		cfg.MinVersion, cfg.MaxVersion = only, only
	}
	return nil
}

func (c *ClientConfig) setCipherSuites(cfg *tls.Config) error {
	for _, name := range splitList(c.Security["ssl.cipher.suites"]) {
		found := false
		for _, suite := range tls.CipherSuites() {
			if suite.Name == name {
				cfg.CipherSuites = append(cfg.CipherSuites, suite.ID)
				found = true
			}
		}
		if !found {
			return fmt.Errorf("ssl.cipher.suites: %q is not known or not safe", name)
		}
	}
	return nil
}

// pemText returns the PEM text of a store: inline, or the file at its location when its type says PEM.
func (c *ClientConfig) pemText(store, inline string) ([]byte, error) {
	typeKey, locationKey := "ssl."+store+".type", "ssl."+store+".location"
	kind, location := strings.ToUpper(c.Security[typeKey]), c.Security[locationKey]
	text := c.Security["ssl."+store+"."+inline]
	if kind == "" && location == "" && text == "" {
		return nil, nil
	}
	if kind == "" && text != "" && location == "" {
		kind = "PEM"
	}
	if kind != "PEM" {
		if kind == "" {
			kind = "JKS (Kafka's default)"
		}
		return nil, fmt.Errorf("%s %s is not supported: convert the store to PEM (keytool -exportcert -rfc, "+
			"or openssl pkcs12) and set %s=PEM", typeKey, kind, typeKey)
	}
	if text != "" {
		return []byte(text), nil
	}
	b, err := os.ReadFile(location)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", locationKey, err)
	}
	return b, nil
}

func (c *ClientConfig) trustStore() (*x509.CertPool, error) {
	text, err := c.pemText("truststore", "certificates")
	if err != nil || text == nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("ssl.truststore: no CERTIFICATE block in the PEM text")
	}
	return pool, nil
}

func (c *ClientConfig) setKeyStore(cfg *tls.Config) error {
	text, err := c.pemText("keystore", "certificate.chain")
	if err != nil || text == nil {
		return err
	}
	key := text
	if inline := c.Security["ssl.keystore.key"]; inline != "" {
		key = []byte(inline)
	}
	for rest := key; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "" {
			return errors.New("ssl.keystore: the private key is encrypted, which is not supported: " +
				"decrypt it (openssl pkcs8 -in KEY -out KEY2) and guard the file by its mode")
		}
	}
	certificate, err := tls.X509KeyPair(text, key)
	if err != nil {
		return errors.New("ssl.keystore: no pair of CERTIFICATE and PRIVATE KEY in the PEM text")
	}
	cfg.Certificates = []tls.Certificate{certificate}
	return nil
}

// skipHostname verifies the chain but not the name, as Kafka does with an empty identification algorithm.
func skipHostname(cfg *tls.Config) {
	roots := cfg.RootCAs
	cfg.InsecureSkipVerify = true
	cfg.VerifyConnection = func(state tls.ConnectionState) error {
		opts := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
		for _, cert := range state.PeerCertificates[1:] {
			opts.Intermediates.AddCert(cert)
		}
		_, err := state.PeerCertificates[0].Verify(opts)
		return err
	}
}
