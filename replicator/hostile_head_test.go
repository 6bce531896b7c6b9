package replicator

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"segmirror/fetchwire"
)

// TestHostile_HeadsThatCannotBeDoNotMoveTheLog answers with offsets no broker could mean.
func TestHostile_HeadsThatCannotBeDoNotMoveTheLog(t *testing.T) {
	for name, alter := range map[string]func(*fetchwire.FetchPartitionResponse){
		"log start beyond the high watermark": func(a *fetchwire.FetchPartitionResponse) { a.LogStartOffset = 1 << 40 },
		"negative high watermark":             func(a *fetchwire.FetchPartitionResponse) { a.HighWatermark = -7 },
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestSource(t)
			topic := s.addTopic("t", 2)
			s.update(func() {
				for _, p := range topic.partitions {
					p.append(dataBatch(0, 5), dataBatch(5, 5))
				}
			})
			a := startAgent(t, s, t.TempDir(), stayFailed("log.segment.bytes", "1024"))
			a.awaitEnd(t, "t", 0, 10)
			a.awaitEnd(t, "t", 1, 10)
			want := s.bytes(topic.partitions[1])
			s.update(func() {
				topic.partitions[1].alter = func(_ fetchwire.FetchPartition, answer *fetchwire.FetchPartitionResponse) {
					alter(answer)
				}
				topic.partitions[1].append(dataBatch(10, 5))
				topic.partitions[0].append(dataBatch(10, 5))
			})
			a.awaitFailed(t, "t", 1, CauseProtocol, 10)
			a.awaitEnd(t, "t", 0, 15)
			if status := a.partition("t", 1); status.LogStart != 0 {
				t.Errorf("log start moved to %d", status.LogStart)
			}
			a.stop()
			if !bytes.Equal(diskBytes(t, a.dir, "t", 1), want) {
				t.Error("records were removed, or added")
			}
		})
	}
}

func TestHostile_HugeHighWatermarkIsOnlyALag(t *testing.T) {
	s := newTestSource(t)
	topic := s.addTopic("t", 1)
	s.update(func() {
		topic.partitions[0].append(dataBatch(0, 5))
		topic.partitions[0].alter = func(_ fetchwire.FetchPartition, answer *fetchwire.FetchPartitionResponse) {
			answer.HighWatermark = math.MaxInt64
		}
	})
	a := startAgent(t, s, t.TempDir(), stayFailed())
	a.awaitEnd(t, "t", 0, 5)
	await(t, patience, "a high watermark at the mirror's end", func() bool {
		status := a.partition("t", 0)
		return status.HighWatermark == 5 && status.LagRecords == math.MaxInt64-5
	})
	a.mustEqual(t, s, topic, 0)
}

// TestHostile_NamesThatLeaveTheDirectory has topics whose names are paths, and partitions below zero.
func TestHostile_NamesThatLeaveTheDirectory(t *testing.T) {
	s := newTestSource(t)
	for _, name := range []string{"../evil", "a/b", "..", ".", "x\x00y", "nul\n", strings.Repeat("x", 300), "é"} {
		s.addTopic(name, 1)
	}
	topic := s.addTopic("good", 2)
	s.update(func() {
		topic.partitions[0].append(dataBatch(0, 5))
		topic.indexes = []int32{0, -5}
	})
	parent := t.TempDir()
	dir := parent + "/logs"
	a := startAgent(t, s, dir, stayFailed())
	a.awaitEnd(t, "good", 0, 5)
	a.mustEqual(t, s, topic, 0)
	for where, want := range map[string][]string{parent: {"logs"}, dir: {"good-0"}} {
		entries, err := os.ReadDir(where)
		if err != nil {
			t.Fatal(err)
		}
		var dirs []string
		for _, e := range entries {
			if e.IsDir() && !strings.HasPrefix(e.Name(), "__") {
				dirs = append(dirs, e.Name())
			}
		}
		if !slices.Equal(dirs, want) {
			t.Errorf("%s holds %q, want %q", where, dirs, want)
		}
	}
}

func TestHostile_StartOffsetBelowZero(t *testing.T) {
	s := newTestSource(t)
	topic := s.addTopic("t", 1)
	s.update(func() {
		topic.partitions[0].append(dataBatch(0, 5))
		topic.partitions[0].logStart = -3
	})
	a := startAgent(t, s, t.TempDir(), stayFailed())
	a.awaitFailed(t, "t", 0, CauseProtocol, 0)
}

// TestHostile_ClusterIDThatIsNoWordIsRefused has cluster ids that would break the files they are written into.
func TestHostile_ClusterIDThatIsNoWordIsRefused(t *testing.T) {
	for name, id := range map[string]string{"line": "a\nb", "blank": "a b"} {
		t.Run(name, func(t *testing.T) {
			s := newTestSource(t)
			s.clusterID = id
			topic := s.addTopic("t", 1)
			s.update(func() { topic.partitions[0].append(dataBatch(0, 5)) })
			dir := t.TempDir()
			for range 2 { // the next start, too
				a := startAgent(t, s, dir, stayFailed())
				await(t, patience, "FAILED", func() bool { return a.partition("t", 0).State == StateFailed })
				a.stop()
			}
			if len(diskBytes(t, dir, "t", 0)) != 0 {
				t.Error("records of a source that cannot be named are on disk")
			}
		})
	}
}

// TestHostile_RefusedFetchesFailInTheEnd has a broker that answers every fetch as a whole with an error code.
func TestHostile_RefusedFetchesFailInTheEnd(t *testing.T) {
	s := newTestSource(t)
	topic := s.addTopic("t", 1)
	s.update(func() {
		topic.partitions[0].append(dataBatch(0, 5))
		s.mangle = func(frame []byte, h fetchwire.RequestHeader) []byte {
			if h.APIKey != fetchwire.KeyFetch {
				return frame
			}
			resp := &fetchwire.FetchResponse{ErrorCode: fetchwire.CodeInvalidRequest}
			return fetchwire.AppendResponse(nil, h, resp)
		}
	})
	a := startAgent(t, s, t.TempDir(), stayFailed())
	status := a.awaitFailed(t, "t", 0, CauseProtocol, 0)
	if !strings.Contains(status.CauseText, "INVALID_REQUEST") {
		t.Errorf("the cause %q does not name the code", status.CauseText)
	}
}

func TestHostile_ThrottleTimeIsBounded(t *testing.T) {
	s := newTestSource(t)
	topic := s.addTopic("t", 1)
	throttled := 0
	s.update(func() {
		topic.partitions[0].append(dataBatch(0, 5))
		s.mangle = func(frame []byte, h fetchwire.RequestHeader) []byte {
			if h.APIKey == fetchwire.KeyFetch {
				throttled++
				binary.BigEndian.PutUint32(frame[9:], math.MaxInt32) // behind size, correlation id and no tags
			}
			return frame
		}
	})
	a := startAgent(t, s, t.TempDir(), stayFailed())
	a.awaitEnd(t, "t", 0, 5)
	a.mustEqual(t, s, topic, 0) // the end does not wait
	if throttled == 0 {
		t.Error("nothing was throttled")
	}
	if got := throttlePause(math.MaxInt32); got != maxThrottle || throttlePause(250) != 250*time.Millisecond ||
		throttlePause(-1) != 0 {
		t.Errorf("the longest pause is %v", got)
	}
}

// TestHostile_PartitionTwiceInOneAnswer repeats a partition, with its records, in the same answer.
func TestHostile_PartitionTwiceInOneAnswer(t *testing.T) {
	s := newTestSource(t)
	topic := s.addTopic("t", 2)
	s.update(func() {
		for _, p := range topic.partitions {
			p.append(dataBatch(0, 5))
		}
		s.repeat = true
	})
	a := startAgent(t, s, t.TempDir(), stayFailed())
	for i := range topic.partitions {
		await(t, patience, "records", func() bool { return a.partition("t", i).EndOffset == 5 })
	}
	for i := range topic.partitions {
		a.mustEqual(t, s, topic, i)
	}
}
