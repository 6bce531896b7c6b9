package replicator

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"segmirror/fetchwire"
)

// TestQuota_NothingIsAskedWhileTheSourceSaysWait has a source that names a throttle time with every answer: no request
// comes before that is over, and the status and the log say why.
func TestQuota_NothingIsAskedWhileTheSourceSaysWait(t *testing.T) {
	const pause = 50 * time.Millisecond
	s := newTestSource(t)
	s.limited = true
	topic := s.addTopic("t", 1)
	var answered time.Time
	early, answers := 0, 0
	s.update(func() {
		topic.partitions[0].fill(20, 64<<10)
		topic.partitions[0].alter = func(fetchwire.FetchPartition, *fetchwire.FetchPartitionResponse) {
			if !answered.IsZero() && time.Since(answered) < pause {
				early++
			}
			answered = time.Time{}
		}
		s.mangle = func(frame []byte, h fetchwire.RequestHeader) []byte {
			if h.APIKey == fetchwire.KeyFetch {
				binary.BigEndian.PutUint32(frame[9:], uint32(pause/time.Millisecond)) // behind size, correlation id, no tags
				answered = time.Now()
				answers++
			}
			return frame
		}
	})
	a := startAgent(t, s, t.TempDir(), stayFailed("mirror.m.mirror.fetch.max.bytes", "70000"))
	a.awaitEnd(t, "t", 0, 20*16)
	s.mu.Lock()
	if early > 0 || answers < 19 {
		t.Errorf("%d of %d requests came before the time the source named was over", early, answers)
	}
	s.mu.Unlock()
	fetcher := a.Status().Mirrors[0].Fetchers[0]
	if fetcher.Throttled < 15*pause {
		t.Errorf("throttled for %v, want %v at least", fetcher.Throttled, 15*pause)
	}
	const line = "the source's quota slows the mirror"
	log := a.logged.String()
	if strings.Count(log, line) != 1 || !strings.Contains(log, "client_id=broker-1-fetcher-0-mirror-m") {
		t.Errorf("the log says it %d times", strings.Count(log, line))
	}
}
