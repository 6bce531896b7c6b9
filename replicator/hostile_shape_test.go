package replicator

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"

	"segmirror/fetchwire"
	"segmirror/segment"
)

// offsetsAsked lists the distinct offsets a partition was asked for, in order.
func (s *testSource) offsetsAsked(p *testPartition) (offsets []int64) {
	for _, f := range s.fetches(p) {
		if n := len(offsets); n == 0 || offsets[n-1] != f.FetchOffset {
			offsets = append(offsets, f.FetchOffset)
		}
	}
	return offsets
}

// mustEqual stops the agent and demands that a partition holds the source's bytes.
func (a *testAgent) mustEqual(t *testing.T, s *testSource, topic *testTopic, index int) {
	t.Helper()
	a.stop()
	if got, want := diskBytes(t, a.dir, topic.name, index), s.bytes(topic.partitions[index]); !bytes.Equal(got, want) {
		t.Errorf("%s-%d: %d bytes on disk are not the source's %d", topic.name, index, len(got), len(want))
	}
}

// TestHostile_PartialLastBatchAtEveryLength cuts each partition's first answer inside its second batch, at another
// byte in every partition.
func TestHostile_PartialLastBatchAtEveryLength(t *testing.T) {
	first, second := sizedBatch(0, 1, 20), sizedBatch(1, 1, 20)
	s := newTestSource(t)
	topic := s.addTopic("t", len(second)-1)
	s.update(func() {
		for i, p := range topic.partitions {
			p.append(first, second)
			p.alter = func(asked fetchwire.FetchPartition, answer *fetchwire.FetchPartitionResponse) {
				if asked.FetchOffset == 0 {
					answer.Records = answer.Records[:len(first)+1+i]
				}
			}
		}
	})
	a := startAgent(t, s, t.TempDir(), stayFailed())
	for i := range topic.partitions {
		a.awaitEnd(t, "t", i, 2)
	}
	a.stop()
	for i, p := range topic.partitions {
		a.mustEqual(t, s, topic, i)
		if asked := s.offsetsAsked(p); !slices.Equal(asked, []int64{0, 1, 2}) && !slices.Equal(asked, []int64{0, 1}) {
			t.Errorf("partition %d was asked for offsets %d", i, asked)
		}
	}
}

func TestHostile_LessThanABatchForEverIsAnError(t *testing.T) {
	s := newTestSource(t)
	topic := s.addTopic("t", 2)
	s.update(func() {
		for _, p := range topic.partitions {
			p.append(dataBatch(0, 5))
		}
		topic.partitions[1].alter = func(_ fetchwire.FetchPartition, answer *fetchwire.FetchPartitionResponse) {
			answer.Records = answer.Records[:min(40, len(answer.Records))]
		}
	})
	a := startAgent(t, s, t.TempDir(), stayFailed())
	a.awaitFailed(t, "t", 1, CauseProtocol, 0)
	a.awaitEnd(t, "t", 0, 5)
}

// TestHostile_HigherEpochInTheMiddle is an old leader that sends batches from after its own demotion.
func TestHostile_HigherEpochInTheMiddle(t *testing.T) {
	s := newTestSource(t)
	topic := s.addTopic("t", 1)
	p := topic.partitions[0]
	b := [4][]byte{}
	for i, epoch := range []int32{5, 5, 7, 5} {
		b[i] = withEpoch(dataBatch(int64(i), 1), epoch)
	}
	s.update(func() {
		p.leaderEpoch = 5
		p.epochs = []segment.EpochEntry{{Epoch: 5}}
		p.append(b[:2]...)
		p.alter = func(asked fetchwire.FetchPartition, answer *fetchwire.FetchPartitionResponse) {
			if asked.FetchOffset == 0 {
				answer.Records = slices.Concat(b[:]...)
			}
		}
	})
	a := startAgent(t, s, t.TempDir(), stayFailed())
	a.awaitEnd(t, "t", 0, 2)
	s.update(func() { // the true leader, in epoch 7, has other records from offset 2 on
		p.startEpoch(7)
		p.append(withEpoch(sizedBatch(2, 3, 50), 7))
	})
	a.awaitEnd(t, "t", 0, 5)
	a.mustEqual(t, s, topic, 0)
	if asked := s.offsetsAsked(p); !slices.Equal(asked, []int64{0, 2, 5}) && !slices.Equal(asked, []int64{0, 2}) {
		t.Errorf("asked for offsets %d", asked)
	}
}

func TestHostile_CompactedGapsAreSteppedOverByTheHeader(t *testing.T) {
	s := newTestSource(t)
	topic := s.addTopic("t", 1)
	p := topic.partitions[0]
	s.update(func() {
		p.append(gapBatch(100, 9, 30, 0, 4, 7))
		p.logStart = 100
	})
	a := startAgent(t, s, t.TempDir(), stayFailed())
	a.awaitEnd(t, "t", 0, 110)
	s.update(func() { p.append(dataBatch(140, 1)) })
	a.awaitEnd(t, "t", 0, 141)
	s.update(func() { p.append(gapBatch(150, 9, 0)) }) // an emptied batch still moves the end
	a.awaitEnd(t, "t", 0, 160)
	a.mustEqual(t, s, topic, 0)
	asked := s.offsetsAsked(p)
	for _, offset := range asked {
		if !slices.Contains([]int64{100, 110, 141, 160}, offset) {
			t.Errorf("asked for offsets %d", asked)
			break
		}
	}
}

// TestHostile_OffsetsFarApart is a heavily compacted topic whose offsets do not fit one segment's relative ones.
func TestHostile_OffsetsFarApart(t *testing.T) {
	s := newTestSource(t)
	topic := s.addTopic("t", 1)
	s.update(func() {
		for _, base := range []int64{0, 2147483647, 2147483648, 4294967296} {
			topic.partitions[0].append(dataBatch(base, 1))
		}
	})
	a := startAgent(t, s, t.TempDir(), stayFailed())
	a.awaitEnd(t, "t", 0, 4294967297)
	a.mustEqual(t, s, topic, 0)
	for _, base := range []int64{0, 2147483648, 4294967296} {
		if _, err := os.Stat(filepath.Join(a.dir, "t-0", fmt.Sprintf("%020d.log", base))); err != nil {
			t.Error(err)
		}
	}
}

func TestHostile_LogStartInsideABatch(t *testing.T) {
	s := newTestSource(t)
	topic := s.addTopic("t", 1)
	p := topic.partitions[0]
	s.update(func() {
		p.append(dataBatch(0, 10), dataBatch(10, 1))
		p.logStart = 4
	})
	a := startAgent(t, s, t.TempDir(), stayFailed())
	a.awaitEnd(t, "t", 0, 11)
	if status := a.partition("t", 0); status.LogStart != 4 {
		t.Errorf("log start %d, want the source's 4", status.LogStart)
	}
	a.mustEqual(t, s, topic, 0)
	starts, err := segment.ReadOffsetCheckpoint(filepath.Join(a.dir, "log-start-offset-checkpoint"))
	if err != nil || starts[segment.TopicPartition{Topic: "t"}] != 4 {
		t.Errorf("log start checkpoint: %v, %v", starts, err)
	}
}

func TestHostile_EarlyAnswerIsRefusedByALogThatHasRecords(t *testing.T) {
	s := newTestSource(t)
	topic := s.addTopic("t", 1)
	p := topic.partitions[0]
	s.update(func() { p.append(dataBatch(0, 5)) })
	a := startAgent(t, s, t.TempDir(), stayFailed())
	a.awaitEnd(t, "t", 0, 5)
	s.update(func() {
		p.batches = append(p.batches, dataBatch(3, 5)) // begins below the mirror's end and ends above it
		p.end = 8
	})
	a.awaitFailed(t, "t", 0, CauseOutOfOrder, 5)
	a.stop()
	if !bytes.Equal(diskBytes(t, a.dir, "t", 0), dataBatch(0, 5)) {
		t.Error("the log was changed")
	}
}

func TestHostile_BatchLargerThanASegment(t *testing.T) {
	s := newTestSource(t)
	topic := s.addTopic("t", 1)
	s.update(func() {
		topic.partitions[0].append(sizedBatch(0, 1, 40), sizedBatch(1, 1, 1_100_000), sizedBatch(2, 1, 40))
	})
	a := startAgent(t, s, t.TempDir(), stayFailed(
		"log.segment.bytes", "1048576", "mirror.m.mirror.fetch.max.bytes", "1000"))
	a.awaitEnd(t, "t", 0, 3)
	a.mustEqual(t, s, topic, 0)
	large, err := os.ReadFile(filepath.Join(a.dir, "t-0", "00000000000000000001.log"))
	if err != nil || !bytes.Equal(large, sizedBatch(1, 1, 1_100_000)) {
		t.Errorf("the large batch's own segment: %d bytes, %v", len(large), err)
	}
}

// TestHostile_CompressionBombIsNeverExpanded mirrors a batch of 20 KiB that would take half a gigabyte.
func TestHostile_CompressionBombIsNeverExpanded(t *testing.T) {
	var blob bytes.Buffer
	enc, err := zstd.NewWriter(&blob)
	if err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 1<<20)
	for range 512 {
		if _, err := enc.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := enc.Close(); err != nil {
		t.Fatal(err)
	}
	bomb := segment.AppendBatch(nil, &segment.BatchHeader{
		Attributes: int16(segment.CodecZstd), ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, RecordsCount: 1,
	}, blob.Bytes())
	if len(bomb) > 1<<20 {
		t.Fatalf("the bomb has %d bytes", len(bomb))
	}
	s := newTestSource(t)
	topic := s.addTopic("t", 1)
	s.update(func() { topic.partitions[0].append(bomb, dataBatch(1, 1)) })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	a := startAgent(t, s, t.TempDir(), stayFailed())
	a.awaitEnd(t, "t", 0, 2)
	a.mustEqual(t, s, topic, 0)
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 128<<20 {
		t.Errorf("mirroring %d bytes allocated %d", len(bomb), grown)
	}
}

// TestHostile_LengthsBeyondTheFrameBreakTheConnectionOnly answers with a frame whose records would reach beyond it.
func TestHostile_LengthsBeyondTheFrameBreakTheConnectionOnly(t *testing.T) {
	s := newTestSource(t)
	topic := s.addTopic("t", 2)
	s.update(func() {
		for _, p := range topic.partitions {
			p.append(dataBatch(0, 5), dataBatch(5, 5))
		}
	})
	broken := 0
	s.update(func() {
		s.mangle = func(frame []byte, h fetchwire.RequestHeader) []byte {
			if h.APIKey != fetchwire.KeyFetch || broken > 2 {
				return frame
			}
			broken++
			switch broken {
			case 1: // announces less than it holds: what follows is no frame
				binary.BigEndian.PutUint32(frame, binary.BigEndian.Uint32(frame)-10)
			case 2: // another request's answer
				binary.BigEndian.PutUint32(frame[4:], 0x7fffffff)
			default: // cut in the middle of records
				frame = frame[:len(frame)-200]
			}
			return frame
		}
	})
	a := startAgent(t, s, t.TempDir(), nil)
	for i := range topic.partitions {
		a.awaitEnd(t, "t", i, 10)
	}
	for i := range topic.partitions {
		a.mustEqual(t, s, topic, i)
	}
	if broken != 3 {
		t.Errorf("broke %d answers", broken)
	}
}

// TestHostile_ConnectionLostInTheMiddleOfAStartIsMadeAgain cuts the connection at the question that a start asks: for a
// broker's first partition, and for one that joins another, which has to go on as well.
func TestHostile_ConnectionLostInTheMiddleOfAStartIsMadeAgain(t *testing.T) {
	s := newTestSource(t)
	cut := false
	s.update(func() {
		s.mangle = func(frame []byte, h fetchwire.RequestHeader) []byte {
			if !cut || h.APIKey != fetchwire.KeyListOffsets {
				return frame
			}
			cut = false
			return frame[:len(frame)-1]
		}
	})
	var topics []*testTopic
	add := func(name string) {
		s.update(func() { cut = true })
		topics = append(topics, s.addTopic(name, 1))
		s.update(func() {
			for _, topic := range topics {
				topic.partitions[0].append(dataBatch(topic.partitions[0].end, 5))
			}
		})
	}
	add("first")
	a := startAgent(t, s, t.TempDir(), nil)
	a.awaitEnd(t, "first", 0, 5)
	add("second")
	a.awaitEnd(t, "second", 0, 5)
	a.awaitEnd(t, "first", 0, 10)
	s.update(func() {
		if cut {
			t.Error("nothing was cut")
		}
	})
}
