package replicator

import "time"

// ClientConfig is how the agent reaches a source cluster: Kafka's client keys.
type ClientConfig struct {
	BootstrapServers   []string          // bootstrap.servers
	RequestTimeout     time.Duration     // request.timeout.ms
	SocketTimeout      time.Duration     // mirror.socket.timeout.ms
	ReceiveBufferBytes int               // mirror.socket.receive.buffer.bytes; -1 = the kernel's choice
	Security           map[string]string // security.*, ssl.* and sasl.* as given; secrets are never printed
}

// DefaultClientConfig returns Kafka's client defaults, no bootstrap servers.
func DefaultClientConfig() ClientConfig {
	return ClientConfig{RequestTimeout: 30 * time.Second, SocketTimeout: 30 * time.Second, ReceiveBufferBytes: -1}
}
