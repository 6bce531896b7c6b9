package replicator

import (
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// saslMechanism builds the login from sasl.mechanism and sasl.jaas.config, nil without SASL.
func (c *ClientConfig) saslMechanism() (sasl.Mechanism, error) {
	if !strings.HasPrefix(c.protocol(), "SASL_") {
		return nil, nil
	}
	name := c.Security["sasl.mechanism"]
	switch name {
	case "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512":
	case "":
		return nil, errors.New("sasl.mechanism is required with security.protocol SASL_* (Kafka's default, GSSAPI, " +
			"is not supported): PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
	default:
		return nil, fmt.Errorf("sasl.mechanism %q is none of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512", name)
	}
	options, err := parseJAAS(c.Security["sasl.jaas.config"])
	if err != nil {
		return nil, fmt.Errorf("sasl.jaas.config: %w", err)
	}
	user, password := options["username"], options["password"]
	if user == "" {
		return nil, errors.New("sasl.jaas.config: no username")
	}
	auth := scram.Auth{User: user, Pass: password, IsToken: options["tokenauth"] == "true"}
	switch name {
	case "SCRAM-SHA-256":
		return auth.AsSha256Mechanism(), nil
	case "SCRAM-SHA-512":
		return auth.AsSha512Mechanism(), nil
	default:
		return plain.Auth{User: user, Pass: password}.AsMechanism(), nil
	}
}

// parseJAAS reads `LoginModule flag key=value ...;` and returns the options. Values may be quoted, with backslash
// escapes. Its errors name keys, never values.
func parseJAAS(text string) (map[string]string, error) {
	words, err := jaasWords(text)
	if err != nil {
		return nil, err
	}
	if len(words) < 2 {
		return nil, errors.New("expected: LoginModule required username=\"...\" password=\"...\";")
	}
	options := map[string]string{}
	for _, w := range words[2:] {
		key, value, ok := strings.Cut(w, "=")
		if !ok || key == "" {
			return nil, errors.New("an option is not key=value")
		}
		options[key] = value
	}
	return options, nil
}

func jaasWords(text string) ([]string, error) {
	text = strings.TrimSpace(text)
	var words []string
	var word strings.Builder
	quoted, open := byte(0), false
	for i := 0; i < len(text); i++ {
		b := text[i]
		switch {
		case quoted != 0 && b == '\\' && i+1 < len(text):
			i++
			word.WriteByte(text[i])
		case quoted != 0 && b == quoted:
			quoted = 0
		case quoted != 0:
			word.WriteByte(b)
		case b == '"' || b == '\'':
			quoted, open = b, true
		case b == ';' || b == ' ' || b == '\t' || b == '\n' || b == '\r':
			if open {
				words = append(words, word.String())
			}
			word.Reset()
			open = false
			if b == ';' {
				return words, nil
			}
		default:
			word.WriteByte(b)
			open = true
		}
	}
	if quoted != 0 {
		return nil, errors.New("a quote is not closed")
	}
	return nil, errors.New("the closing ';' is missing")
}
