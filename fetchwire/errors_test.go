package fetchwire

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

func TestErrorNames_AgreeWithFranzGo(t *testing.T) {
	for code := int16(-1); int(code) <= len(errorNames); code++ {
		theirs := kerr.TypedErrorForCode(code)
		if theirs == nil {
			if code != CodeNone || ErrorName(code) != "NONE" || Retriable(code) {
				t.Errorf("code %d is %s", code, ErrorName(code))
			}
			continue
		}
		if code == CodeNotLeaderOrFollower { // franz-go keeps the name it had before Kafka 2.6
			continue
		}
		if theirs.Code == code && theirs.Message != ErrorName(code) {
			t.Errorf("code %d is %s, franz-go %s", code, ErrorName(code), theirs.Message)
		}
	}
	for _, code := range []int16{CodeInvalidMirrorName - 1, CodeMirrorAuthorizationFailed + 1} {
		if got := ErrorName(code); got != fmt.Sprintf("ERROR_CODE_%d", code) {
			t.Errorf("a code nobody knows: %s", got)
		}
	}
}

func TestErrorNames_OfClusterMirroring(t *testing.T) {
	for code, name := range map[int16]string{
		CodeInvalidMirrorName: "INVALID_MIRROR_NAME", CodeUnknownMirror: "UNKNOWN_MIRROR",
		CodeTopicAlreadyInMirror: "TOPIC_ALREADY_IN_MIRROR", CodeTopicNotInMirror: "TOPIC_NOT_IN_MIRROR",
		CodeMirrorTopicAlreadyPaused: "MIRROR_TOPIC_ALREADY_PAUSED", CodeMirrorTopicNotPaused: "MIRROR_TOPIC_NOT_PAUSED",
		CodeMirrorTopicBeingStopped: "MIRROR_TOPIC_BEING_STOPPED", CodeMirrorNotEmpty: "MIRROR_NOT_EMPTY",
		CodeMirrorAuthorizationFailed: "MIRROR_AUTHORIZATION_FAILED",
	} {
		if ErrorName(code) != name || Retriable(code) {
			t.Errorf("%d is %s, retriable %t", code, ErrorName(code), Retriable(code))
		}
	}
}

func TestErrors_CarryWhatACallerNeeds(t *testing.T) {
	err := fmt.Errorf("broker 3: %w", KafkaError{Code: CodeFencedLeaderEpoch, Message: "too old"})
	var kafka KafkaError
	if !errors.As(err, &kafka) || !kafka.Retriable() || err.Error() != "broker 3: FENCED_LEADER_EPOCH (74): too old" {
		t.Errorf("%v", err)
	}
	if CodeError(0) != nil || !errors.Is(CodeError(1), KafkaError{Code: 1}) || Retriable(CodeOffsetOutOfRange) {
		t.Error("codes and errors do not match")
	}
	var resp MetadataResponse
	err = resp.DecodeFrom([]byte{0, 0, 0, 0, 0, 0, 0, 9}, 4)
	if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "Metadata v4: brokers at byte 8") {
		t.Errorf("%v", err)
	}
}
