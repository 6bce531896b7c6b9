package fetchwire

import (
	"errors"
	"fmt"
	"strconv"
)

// The package's sentinels. Errors returned by this package wrap one of them, a KafkaError, or the network's own error.
var (
	// ErrMalformed says that bytes received are not the message they should be; the error chain holds a *DecodeError.
	ErrMalformed = errors.New("malformed message")
	// ErrFrameTooLarge says that a peer announced a frame above the limit; nothing of it was read or allocated.
	ErrFrameTooLarge = errors.New("frame above the limit")
	// ErrCorrelation says that a response carries another correlation id than the request waiting for it.
	ErrCorrelation = errors.New("response to another request")
	// ErrUnsupportedVersion says that this package and the peer share no version of an API.
	ErrUnsupportedVersion = errors.New("no common API version")
	// ErrUnexpectedPartition says that a fetch response holds a partition that was not asked for.
	ErrUnexpectedPartition = errors.New("partition was not asked for")
	// ErrConnBroken says that the connection failed before, or a fetch response was left unread on it: dial again.
	ErrConnBroken = errors.New("connection is broken")
	// ErrBusy says that a call was made while a fetch response was still being read from the connection.
	ErrBusy = errors.New("a response is being read from this connection")
	// ErrSASL says that authentication failed before the broker could name an error code.
	ErrSASL = errors.New("SASL authentication")
	// ErrReplicaID says that a request would have claimed to come from a broker.
	ErrReplicaID = errors.New("replica id must be negative: this client reads as a consumer")
)

// A DecodeError tells where in a message the bytes stopped making sense. It wraps ErrMalformed.
type DecodeError struct {
	API     int16  // API key
	Version int16  // version the message was decoded as
	Field   string // Kafka's name of the field
	Pos     int    // byte position behind the frame's size field and header
	Reason  string
}

// Error names API, version, field and position.
func (e *DecodeError) Error() string {
	return fmt.Sprintf("%s v%d: %s at byte %d: %s", APIName(e.API), e.Version, e.Field, e.Pos, e.Reason)
}

// Unwrap makes errors.Is(err, ErrMalformed) true.
func (e *DecodeError) Unwrap() error { return ErrMalformed }

// A NotKafkaError says that the peer speaks another protocol, which its first bytes betray.
type NotKafkaError struct {
	Addr     string
	Protocol string // "TLS" or "HTTP"
	Detail   string // what the bytes were and what to do
}

// Error names the address, the protocol found and the remedy.
func (e *NotKafkaError) Error() string {
	return fmt.Sprintf("%s does not speak plain Kafka but %s: %s", e.Addr, e.Protocol, e.Detail)
}

// A KafkaError is an error code that a broker answered.
type KafkaError struct {
	Code    int16
	Message string // the broker's own words, often empty
}

// Error gives Kafka's name of the code, the number, and the broker's words.
func (e KafkaError) Error() string {
	s := ErrorName(e.Code) + " (" + strconv.Itoa(int(e.Code)) + ")"
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

// Retriable reports whether Kafka's own clients would try again.
func (e KafkaError) Retriable() bool { return Retriable(e.Code) }

// CodeError returns nil for code 0 and KafkaError{Code: code} otherwise. Any goroutine.
func CodeError(code int16) error {
	if code == CodeNone {
		return nil
	}
	return KafkaError{Code: code}
}

// Codes that a mirror acts on. ErrorName knows all of Kafka 4.3.1.
//
// Kafka: Errors.
const (
	CodeUnknownServerError       int16 = -1
	CodeNone                     int16 = 0
	CodeOffsetOutOfRange         int16 = 1
	CodeCorruptMessage           int16 = 2
	CodeUnknownTopicOrPartition  int16 = 3
	CodeLeaderNotAvailable       int16 = 5
	CodeNotLeaderOrFollower      int16 = 6
	CodeRequestTimedOut          int16 = 7
	CodeBrokerNotAvailable       int16 = 8
	CodeReplicaNotAvailable      int16 = 9
	CodeInvalidTopic             int16 = 17
	CodeTopicAuthorizationFailed int16 = 29
	CodeClusterAuthorization     int16 = 31
	CodeUnsupportedSaslMechanism int16 = 33
	CodeIllegalSaslState         int16 = 34
	CodeUnsupportedVersion       int16 = 35
	CodeInvalidRequest           int16 = 42
	CodeKafkaStorageError        int16 = 56
	CodeSaslAuthenticationFailed int16 = 58
	CodeFetchSessionIDNotFound   int16 = 70
	CodeInvalidFetchSessionEpoch int16 = 71
	CodeFencedLeaderEpoch        int16 = 74
	CodeUnknownLeaderEpoch       int16 = 75
	CodeOffsetNotAvailable       int16 = 78
	CodeUnknownTopicID           int16 = 100
	CodeInconsistentTopicID      int16 = 103
	CodeFetchSessionTopicIDError int16 = 106
	CodeOffsetMovedToTiered      int16 = 109
)

// Codes that the agent's own server answers besides those above.
const (
	CodeInvalidFetchSize        int16 = 4
	CodeCoordinatorNotAvailable int16 = 15
	CodeNotCoordinator          int16 = 16
	CodeTopicAlreadyExists      int16 = 36
	CodeInvalidConfig           int16 = 40
	CodePolicyViolation         int16 = 44
	CodeOperationNotAttempted   int16 = 55
	CodeThrottlingQuotaExceeded int16 = 89
	CodeDuplicateResource       int16 = 92
	CodeInconsistentClusterID   int16 = 104
	CodeMismatchedEndpointType  int16 = 114
	CodeUnsupportedEndpointType int16 = 115
)

// Codes of Cluster Mirroring. KIP-1279 gives no numbers yet: these are private.
const (
	CodeInvalidMirrorName         int16 = 1135
	CodeUnknownMirror             int16 = 1136
	CodeTopicAlreadyInMirror      int16 = 1137
	CodeTopicNotInMirror          int16 = 1138
	CodeMirrorTopicAlreadyPaused  int16 = 1139
	CodeMirrorTopicNotPaused      int16 = 1140
	CodeMirrorTopicBeingStopped   int16 = 1141
	CodeMirrorNotEmpty            int16 = 1142
	CodeMirrorAuthorizationFailed int16 = 1143
)
