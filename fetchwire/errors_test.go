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
	if got := ErrorName(1135); got != "ERROR_CODE_1135" {
		t.Errorf("a code nobody knows: %s", got)
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
