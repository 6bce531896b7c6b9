package replicator

import (
	"slices"
	"strings"
	"testing"
	"time"

	"segmirror/fetchwire"
	"segmirror/segment"
)

// announcer answers as an agent whose records are all of one epoch, and lets a test alter that.
func announcer(epoch int32, more func(asked fetchwire.FetchPartition, answer *fetchwire.FetchPartitionResponse)) func(
	fetchwire.FetchPartition, *fetchwire.FetchPartitionResponse,
) {
	return func(asked fetchwire.FetchPartition, answer *fetchwire.FetchPartitionResponse) {
		if len(answer.Records) > 0 {
			answer.MirrorLeaderEpoch = epoch
			if asked.MirrorLeaderEpoch != epoch {
				answer.Records = nil
			}
		}
		if more != nil {
			more(asked, answer)
		}
	}
}

// announcingSource is an agent with one partition of offsets 0..19, whose batches carry epoch 0.
func announcingSource(t *testing.T) (*testSource, *testTopic, *testPartition) {
	t.Helper()
	s := newTestSource(t)
	s.agent = true
	topic := s.addTopic("t", 1)
	p := topic.partitions[0]
	s.update(func() { p.append(dataBatch(0, 10), dataBatch(10, 10)) })
	return s, topic, p
}

func TestAnnounced_RecordsOfAnotherEpochAreCutAndFetchedAgain(t *testing.T) {
	s, topic, p := announcingSource(t)
	lies := 2
	s.update(func() {
		p.alter = announcer(5, func(asked fetchwire.FetchPartition, answer *fetchwire.FetchPartitionResponse) {
			if len(answer.Records) > 0 && asked.FetchOffset == 0 && lies > 0 {
				lies--
				answer.MirrorLeaderEpoch = 6
			}
		})
	})
	a := startAgent(t, s, t.TempDir(), nil)
	await(t, patience, "the records are sound", func() bool { return a.partition("t", 0).HighWatermark == 20 })
	a.mustEqual(t, s, topic, 0)
	if got, want := sourceEpochs(t, a.dir, 0), []segment.EpochEntry{{Epoch: 5}}; !slices.Equal(got, want) {
		t.Errorf("source epochs %v, want %v", got, want)
	}
	if n := strings.Count(a.logged.String(), "truncating: an agent sent records of another epoch"); n != 2 {
		t.Errorf("%d cuts were named, want 2", n)
	}
	for _, f := range s.fetches(p) {
		if f.LastFetchedEpoch != -1 {
			t.Errorf("a fetch of an agent names LastFetchedEpoch %d", f.LastFetchedEpoch)
		}
	}
}

func TestAnnounced_AnAgentThatNeverKeepsToItFailsThePartition(t *testing.T) {
	for name, alter := range map[string]func(fetchwire.FetchPartition, *fetchwire.FetchPartitionResponse){
		"another epoch behind the records": announcer(5,
			func(_ fetchwire.FetchPartition, answer *fetchwire.FetchPartitionResponse) {
				if len(answer.Records) > 0 {
					answer.MirrorLeaderEpoch = 6
				}
			}),
		"no epoch behind the records": announcer(5,
			func(_ fetchwire.FetchPartition, answer *fetchwire.FetchPartitionResponse) {
				if len(answer.Records) > 0 {
					answer.MirrorLeaderEpoch = -1
				}
			}),
		"records before any epoch": func(_ fetchwire.FetchPartition, answer *fetchwire.FetchPartitionResponse) {
			answer.MirrorLeaderEpoch = -1
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, p := announcingSource(t)
			s.update(func() { p.alter = alter })
			a := startAgent(t, s, t.TempDir(), stayFailed())
			a.awaitFailed(t, "t", 0, CauseProtocol, 0)
		})
	}
}

func TestAnnounced_AnEpochThatFallsIsRefused(t *testing.T) {
	s, _, p := announcingSource(t)
	s.update(func() { p.alter = announcer(5, nil) })
	a := startAgent(t, s, t.TempDir(), stayFailed())
	a.awaitEnd(t, "t", 0, 20)
	s.update(func() {
		p.alter = announcer(4, nil)
		p.append(dataBatch(20, 10))
	})
	a.awaitFailed(t, "t", 0, CauseProtocol, 20)
}

func TestAnnounced_ASourceThatStopsAnnouncingMustHaveTheSameHistory(t *testing.T) {
	for name, c := range map[string]struct {
		epoch int32
		same  bool
	}{"the batches carry it": {0, true}, "the batches carry another": {5, false}} {
		t.Run(name, func(t *testing.T) {
			s, topic, p := announcingSource(t)
			s.update(func() { p.alter = announcer(c.epoch, nil) })
			dir := t.TempDir()
			a := startAgent(t, s, dir, stayFailed())
			a.awaitEnd(t, "t", 0, 20)
			a.stop()
			s.update(func() {
				s.agent, p.alter = false, nil
				p.append(dataBatch(20, 10))
			})
			b := startAgent(t, s, dir, stayFailed())
			if c.same {
				b.awaitEnd(t, "t", 0, 30)
				b.mustEqual(t, s, topic, 0)
			} else {
				b.awaitFailed(t, "t", 0, CauseProtocol, 20)
			}
		})
	}
}

// mirrorReader asks an agent as another agent's fetcher does.
func (ch *chain) mirrorReader(t *testing.T) *reader {
	t.Helper()
	return readerOf(t, &runningAgent{Agent: ch.b.Agent}, "broker-9-fetcher-0-mirror-x")
}

func TestServedEpochs_AreAnnouncedAtOnceAndEndTheRecords(t *testing.T) {
	ch := newChain(t, 1, "rebase", "rebase", nil)
	ch.elect(2) // 0..19
	ch.elect(5) // 20..39
	ch.startB(t)
	ch.b.awaitEnd(t, "t", 0, 40)
	r := ch.mirrorReader(t)
	session := fetchwire.NewFetchSession(19)
	ask := func(offset int64, epoch int32) answered {
		t.Helper()
		want := r.want("t", 0, offset)
		want.MirrorLeaderEpoch = epoch
		head, got := r.ask(t, session.Next(
			fetchwire.FetchParams{MaxWaitMs: longPollMs, MinBytes: 1, MaxBytes: 1 << 20}, []fetchwire.SessionPartition{want}))
		if err := session.HandleResponse(head.SessionID, head.ErrorCode); err != nil {
			t.Fatal(err)
		}
		return got[0]
	}
	began := time.Now()
	for _, step := range []struct {
		offset         int64
		named, epoch   int32
		next, diverges int64
	}{
		{0, -1, 2, 0, -1},  // announced, no records
		{0, 2, 2, 20, -1},  // records up to where the epoch ends
		{10, 2, 2, 20, -1}, // and of a middle
		{20, 2, 5, 0, -1},  // the next is announced
		{20, 5, 5, 40, -1}, // and sent
		{40, 2, 5, 0, 20},  // epoch 2 does not reach so far
		{30, 3, 5, 0, 20},  // an epoch that was never
		{0, 5, 2, 0, -1},   // an epoch that ends later is no divergence
		{20, 5, 5, 40, -1}, // still the same session
		{15, 2, 2, 20, -1}, // whole batches only
		{39, -1, 5, 0, -1}, // of the last record
		{39, 5, 5, 40, -1}, //
		{20, -1, 5, 0, -1}, // one who has fetched none
		{20, 5, 5, 40, -1}, //
		{0, 2, 2, 20, -1},  //
	} {
		got := ask(step.offset, step.named)
		if got.code != 0 || got.epoch != step.epoch || got.next != step.next || got.diverging.EndOffset != step.diverges {
			t.Errorf("offset %d with epoch %d: %+v", step.offset, step.named, got)
		}
	}
	if took := time.Since(began); took > patience {
		t.Errorf("the answers took %v: an announcement waited", took)
	}
}

func TestServedEpochs_AMirrorThatDoesNotHearThemIsRefusedWhereBatchesLie(t *testing.T) {
	for policy, want := range map[string]int16{"rebase": fetchwire.CodeUnsupportedVersion, "preserve": fetchwire.CodeNone} {
		t.Run(policy, func(t *testing.T) {
			ch := newChain(t, 1, policy, policy, nil)
			ch.elect(2)
			ch.startB(t)
			ch.b.awaitEnd(t, "t", 0, 20)
			r := ch.mirrorReader(t)
			wanted := []fetchwire.SessionPartition{r.want("t", 0, 0)}
			_, got := r.ask(t, fetchwire.NewFetchSession(18).Next(fetchwire.FetchParams{MinBytes: 1, MaxBytes: 1 << 20}, wanted))
			if got[0].code != want || want == 0 && got[0].next != 20 {
				t.Errorf("%+v", got[0])
			}
		})
	}
}
