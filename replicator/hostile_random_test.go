package replicator

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"segmirror/fetchwire"
)

// chaos makes a source answer wrongly, in seeded ways, as long as it has faults left.
type chaos struct {
	rng    *rand.Rand
	faults int // left
}

// spend reports whether the next answer is a wrong one.
func (c *chaos) spend(odds int) bool {
	if c.faults == 0 || c.rng.IntN(odds) != 0 {
		return false
	}
	c.faults--
	return true
}

// alter spoils one partition's answer. What no receiver could notice, a batch's base offset and epoch, it leaves.
func (c *chaos) alter(p *testPartition) func(fetchwire.FetchPartition, *fetchwire.FetchPartitionResponse) {
	return func(asked fetchwire.FetchPartition, answer *fetchwire.FetchPartitionResponse) {
		if len(answer.Records) == 0 || !c.spend(4) {
			return
		}
		records := slices.Clone(answer.Records)
		switch c.rng.IntN(6) {
		case 0: // a bit of some batch behind its epoch
			at := 0
			for next := at; next < len(records) && c.rng.IntN(3) > 0; next = at + batchSize(records[at:]) {
				at = next
			}
			records[at+16+c.rng.IntN(batchSize(records[at:])-16)] ^= 1 << c.rng.IntN(8)
		case 1: // a batch's length
			records[8+c.rng.IntN(4)] ^= 1 << c.rng.IntN(8)
		case 2: // a part
			records = records[:c.rng.IntN(len(records))]
		case 3: // an error
			codes := []int16{
				fetchwire.CodeNotLeaderOrFollower, fetchwire.CodeKafkaStorageError, fetchwire.CodeUnknownServerError,
				fetchwire.CodeOffsetNotAvailable, fetchwire.CodeUnknownTopicOrPartition, fetchwire.CodeCorruptMessage,
			}
			answer.ErrorCode, records = codes[c.rng.IntN(len(codes))], nil
		case 4: // batches that were there before
			records = append(slices.Clone(p.batches[0]), records...)
		case 5: // the second batch first
			if n := batchSize(records); n < len(records) {
				records = slices.Concat(records[n:n+batchSize(records[n:])], records)
			}
		}
		answer.Records = records
	}
}

// batchSize is the size of the first batch in b by its length field.
func batchSize(b []byte) int { return 12 + int(binary.BigEndian.Uint32(b[8:])) }

// mangle spoils a frame.
func (c *chaos) mangle(frame []byte, h fetchwire.RequestHeader) []byte {
	if h.APIKey == fetchwire.KeyApiVersions || !c.spend(12) {
		return frame
	}
	switch c.rng.IntN(4) {
	case 0:
		return frame[:c.rng.IntN(len(frame))]
	case 1:
		binary.BigEndian.PutUint32(frame, c.rng.Uint32())
	case 2:
		binary.BigEndian.PutUint32(frame[4:], c.rng.Uint32())
	default:
		return append(frame, 0)[1:] // shifted by a byte
	}
	return frame
}

// produce appends n batches of all kinds to p. Call within update.
func produce(p *testPartition, rng *rand.Rand, n int) {
	for range n {
		var b []byte
		switch pid := int64(7 + rng.IntN(3)); rng.IntN(6) {
		case 0: // compacted
			b = gapBatch(p.end+int64(rng.IntN(5)), 9, 1+rng.IntN(200), 0, 4, 7)
		case 1: // emptied
			b = gapBatch(p.end, int64(rng.IntN(3)), 0)
		case 2: // of a transaction
			b = txnBatch(p.end, 1+rng.IntN(4), pid)
		case 3: // its end
			b = markerBatch(p.end, pid, []byte{0, 0, 0, byte(rng.IntN(2))}, []byte{0, 0, 0, 0, 0, 1})
		default:
			b = sizedBatch(p.end, 1+rng.IntN(8), 1+rng.IntN(600))
		}
		p.append(withEpoch(b, p.leaderEpoch))
	}
}

// TestHostile_RandomFaultsEndInEqualLogs restarts the agent in the middle of everything; each time its logs must be
// batch-exact prefixes of the source's, and at the end equal to them.
func TestHostile_RandomFaultsEndInEqualLogs(t *testing.T) {
	seeds := uint64(6)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		policy := []string{"preserve", "rebase"}[seed%2]
		t.Run(fmt.Sprintf("seed=%d/%s", seed, policy), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 9))
			s := newTestSource(t)
			topic := s.addTopic("t", 4)
			c := &chaos{rng: rand.New(rand.NewPCG(seed, 10))}
			s.update(func() {
				s.mangle = c.mangle
				for _, p := range topic.partitions {
					p.alter = c.alter(p)
				}
			})
			dir := t.TempDir()
			props := map[string]string{
				"log.segment.bytes": "20000", "mirror.m.mirror.fetch.max.bytes": "9000",
				"mirror.failed.retry.max.attempts": "0", "log.index.interval.bytes": "100",
				"mirror.leader.epoch.policy": policy,
				// An answer that announces more than it holds is waited for this long.
				"mirror.socket.timeout.ms": "1000", "mirror.m.request.timeout.ms": "1000",
			}
			for round := range 3 {
				a := startAgent(t, s, dir, props)
				for range 10 {
					s.update(func() {
						c.faults = 8
						for _, p := range topic.partitions {
							if rng.IntN(8) == 0 {
								p.startEpoch(p.leaderEpoch + 1 + int32(rng.IntN(3)))
							}
							produce(p, rng, 1+rng.IntN(8))
						}
					})
				}
				if round == 2 {
					s.update(func() { c.faults = 0 })
					for i, p := range topic.partitions {
						a.awaitEnd(t, "t", i, p.end)
					}
				}
				a.stop()
				checkPrefixes(t, s, topic, dir, round == 2)
			}
		})
	}
}

// withoutEpochs zeroes the leader epoch of each whole batch in b.
func withoutEpochs(b []byte) []byte {
	for at := 0; len(b)-at >= 61 && batchSize(b[at:]) <= len(b)-at; at += batchSize(b[at:]) {
		clear(b[at+12 : at+16])
	}
	return b
}

// checkPrefixes demands that each mirrored partition is a batch-exact prefix of the source's, or all of it.
func checkPrefixes(t *testing.T, s *testSource, topic *testTopic, dir string, whole bool) {
	t.Helper()
	for i, p := range topic.partitions {
		got, want := withoutEpochs(diskBytes(t, dir, "t", i)), withoutEpochs(s.bytes(p))
		if !bytes.HasPrefix(want, got) || whole && len(got) != len(want) {
			t.Fatalf("partition %d: %d bytes on disk, %d at the source: not a prefix, or not all", i, len(got), len(want))
		}
		end := 0
		for end < len(got) {
			end += batchSize(want[end:])
		}
		if end != len(got) {
			t.Fatalf("partition %d: %d bytes on disk end inside a batch", i, len(got))
		}
	}
}
