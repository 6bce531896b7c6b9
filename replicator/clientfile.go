package replicator

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/magiconair/properties"

	"segmirror/fetchwire"
)

// ClientFile is what a Kafka client's properties file says, as the commands take it with --command-config.
type ClientFile struct {
	Client      ClientConfig
	ClientID    string        // client.id; "" = not given
	CallTimeout time.Duration // default.api.timeout.ms; 0 = not given
	Unknown     []string      // keys that no Kafka client has, each with the nearest that one has
}

// clientFileOther are Kafka's keys of admin clients that mean nothing here; a file may hold them.
var clientFileOther = []string{
	"auto.include.jmx.reporter", "bootstrap.controllers", "client.dns.lookup", "client.rack", "connections.max.idle.ms",
	"enable.metrics.push", "metadata.max.age.ms", "metadata.recovery.rebootstrap.trigger.ms",
	"metadata.recovery.strategy", "metric.reporters", "metrics.num.samples", "metrics.recording.level",
	"metrics.sample.window.ms", "receive.buffer.bytes", "reconnect.backoff.max.ms", "reconnect.backoff.ms", "retries",
	"retry.backoff.max.ms", "retry.backoff.ms", "send.buffer.bytes", "socket.connection.setup.timeout.max.ms",
}

// ReadProperties reads a properties file in Java's format without variable expansion. Values are trimmed.
func ReadProperties(path string) (map[string]string, error) {
	loader := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
	props, err := loader.LoadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: reading %s: %w", ErrConfig, path, err)
	}
	values := props.Map()
	for key, value := range values {
		values[key] = strings.TrimSpace(value)
	}
	return values, nil
}

// ReadClientFile reads a Kafka client's properties file: security.*, ssl.*, sasl.* and time limits.
//
// Faults are joined, each wrapping ErrConfig and naming its key; none holds a secret. A key that Kafka's clients do not
// have is no fault, as it is none to them.
func ReadClientFile(path string) (ClientFile, error) {
	props, err := ReadProperties(path)
	if err != nil {
		return ClientFile{}, err
	}
	f := ClientFile{Client: DefaultClientConfig()}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(props)) {
		if err := f.set(key, props[key]); err != nil {
			errs = append(errs, fmt.Errorf("%w: %s: %s: %w", ErrConfig, path, key, err))
		}
	}
	if err := f.Client.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("%w: %s: %w", ErrConfig, path, err))
	}
	return f, errors.Join(errs...)
}

func (f *ClientFile) set(key, value string) error {
	switch {
	case isClientKey(key):
		f.Client.Security[key] = value
		return nil
	case key == "bootstrap.servers":
		return setAddrs(&f.Client.BootstrapServers, value)
	case key == "request.timeout.ms":
		return setMs(&f.Client.RequestTimeout, value, 1)
	case key == "socket.connection.setup.timeout.ms":
		return setMs(&f.Client.ConnectTimeout, value, 1)
	case key == "default.api.timeout.ms":
		return setMs(&f.CallTimeout, value, 1)
	case key == "client.id":
		f.ClientID = value
		return nil
	case slices.Contains(clientFileOther, key):
		return nil
	}
	known := slices.Concat(clientFileOther, slices.Collect(maps.Keys(clientKeys)), []string{
		"bootstrap.servers", "request.timeout.ms", "socket.connection.setup.timeout.ms", "default.api.timeout.ms",
		"client.id",
	})
	f.Unknown = append(f.Unknown, fmt.Sprintf("%s (the nearest is %s)", key, nearestKey(key, known)))
	return nil
}

// DialConfig returns how fetchwire reaches a broker with this configuration. Every call makes a TLS configuration of
// its own.
func (c *ClientConfig) DialConfig(addr, clientID string) (fetchwire.DialConfig, error) {
	return c.dialConfig(addr, clientID, c.RequestTimeout)
}
