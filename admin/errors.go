package admin

import (
	"errors"
	"fmt"
	"slices"

	"segmirror/fetchwire"
)

// The package's sentinels.
var (
	// ErrNotAgent says that a peer is a Kafka broker, or an agent too old for the call: see NotAgentError.
	ErrNotAgent = errors.New("not a mirror agent")
	// ErrNoAnswer says that a response leaves out something that was asked.
	ErrNoAnswer = errors.New("the agent gave no answer")
	// ErrConfig says that a Config or a Selection cannot be used.
	ErrConfig = errors.New("configuration")
	// ErrUnknownNode says that no peer has a node id.
	ErrUnknownNode = errors.New("unknown node")
	// ErrClosed says that the client was closed.
	ErrClosed = errors.New("the client is closed")
)

// An AgentError is what went wrong with one agent: no connection, or what it answered.
type AgentError struct {
	Addr string // host:port
	Err  error
}

// Error names the agent.
func (e *AgentError) Error() string { return e.Addr + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *AgentError) Unwrap() error { return e.Err }

// A NotAgentError says that a peer does not offer a call of Cluster Mirroring. It wraps ErrNotAgent.
type NotAgentError struct {
	Addr  string
	API   string // Kafka's name of the call
	Agent bool   // it is an agent, but one that does not offer this call
}

// Error says what the peer is and where to turn instead.
func (e *NotAgentError) Error() string {
	if e.Agent {
		return fmt.Sprintf("%s is a mirror agent that does not offer %s: its version is older than this client's",
			e.Addr, e.API)
	}
	return fmt.Sprintf("%s is a Kafka broker, not a mirror agent: it does not offer %s; "+
		"give an address of an agent's listeners", e.Addr, e.API)
}

// Unwrap makes errors.Is(err, ErrNotAgent) true.
func (e *NotAgentError) Unwrap() error { return ErrNotAgent }

// absent tells whether an error only says that this agent knows nothing of what was asked for.
func absent(err error) bool {
	var kafka fetchwire.KafkaError
	return errors.As(err, &kafka) && slices.Contains([]int16{
		fetchwire.CodeUnknownMirror, fetchwire.CodeTopicNotInMirror, fetchwire.CodeUnknownTopicOrPartition,
		fetchwire.CodeUnknownTopicID,
	}, kafka.Code)
}

// worse returns the error that says more: one that is not merely absent, else the first.
func worse(a, b error) error {
	if a == nil || b != nil && absent(a) && !absent(b) {
		return b
	}
	return a
}
