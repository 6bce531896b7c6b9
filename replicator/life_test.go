package replicator

import (
	"encoding/binary"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"segmirror/fetchwire"
	"segmirror/segment"
)

// tenBatches is a source with topic "t" of one partition that holds ten batches of ten records: offsets 0..99.
func tenBatches(t *testing.T) (*testSource, *testTopic) {
	t.Helper()
	s := newTestSource(t)
	topic := s.addTopic("t", 1)
	s.update(func() {
		for i := range int64(10) {
			topic.partitions[0].append(dataBatch(i*10, 10))
		}
	})
	return s, topic
}

func TestStartPosition_AnEmptyPartitionBeginsWhereItWasTold(t *testing.T) {
	for name, c := range map[string]struct {
		position        string
		start, end      int64 // of the mirror once it has all
		firstSegment    string
		produceToFinish bool
	}{
		"earliest":             {"earliest", 0, 100, "00000000000000000000.log", false},
		"latest":               {"latest", 100, 110, "00000000000000000100.log", true},
		"an offset":            {"offset:40", 40, 100, "00000000000000000040.log", false},
		"an offset in a batch": {"offset:45", 45, 100, "00000000000000000040.log", false},
		"the end":              {"offset:100", 100, 110, "00000000000000000100.log", true},
	} {
		t.Run(name, func(t *testing.T) {
			s, topic := tenBatches(t)
			a := startAgent(t, s, t.TempDir(), map[string]string{"mirror.m.mirror.start.position": c.position})
			if c.produceToFinish {
				await(t, patience, "mirroring", func() bool { return a.partition("t", 0).State == StateMirroring })
				s.update(func() { topic.partitions[0].append(dataBatch(100, 10)) })
			}
			a.awaitEnd(t, "t", 0, c.end)
			if p := a.partition("t", 0); p.LogStart != c.start {
				t.Errorf("the log starts at %d, want %d", p.LogStart, c.start)
			}
			a.stop()
			if _, err := os.Stat(filepath.Join(a.dir, "t-0", c.firstSegment)); err != nil {
				t.Error(err)
			}
			want := s.bytes(topic.partitions[0])
			checkSame(t, diskBytes(t, a.dir, "t", 0), want[len(want)-len(diskBytes(t, a.dir, "t", 0)):])
		})
	}
}

func TestStartPosition_IsNotTakenAgainAfterARestart(t *testing.T) {
	s, topic := tenBatches(t)
	dir := t.TempDir()
	latest := map[string]string{"mirror.m.mirror.start.position": "latest"}
	a := startAgent(t, s, dir, latest)
	await(t, patience, "mirroring", func() bool { return a.partition("t", 0).State == StateMirroring })
	a.stop()
	s.update(func() { topic.partitions[0].append(dataBatch(100, 10)) }) // while the agent is away
	b := startAgent(t, s, dir, latest)
	b.awaitEnd(t, "t", 0, 110)
	if p := b.partition("t", 0); p.LogStart != 100 || p.Bytes == 0 {
		t.Errorf("the log starts at %d with %d bytes fetched: records were skipped", p.LogStart, p.Bytes)
	}
}

func TestStartPosition_BeyondTheSourcesEndIsFailedUntilItGetsThere(t *testing.T) {
	s, topic := tenBatches(t)
	a := startAgent(t, s, t.TempDir(), map[string]string{"mirror.m.mirror.start.position": "offset:110"})
	await(t, patience, "FAILED", func() bool { return a.partition("t", 0).Cause == CauseSourceShorter })
	s.update(func() { topic.partitions[0].append(dataBatch(100, 10), dataBatch(110, 10)) })
	a.awaitEnd(t, "t", 0, 120)
}

// overtaken stops an agent at offset 100 and lets retention at the source pass it: the source holds 150..199 then.
func overtaken(t *testing.T, props map[string]string) (*testSource, *testTopic, *testAgent) {
	t.Helper()
	s, topic := tenBatches(t)
	dir := t.TempDir()
	a := startAgent(t, s, dir, props)
	a.awaitEnd(t, "t", 0, 100)
	a.stop()
	s.update(func() {
		p := topic.partitions[0]
		for i := int64(10); i < 20; i++ {
			p.append(dataBatch(i*10, 10))
		}
		p.logStart, p.batches = 150, p.batches[15:]
	})
	return s, topic, startAgent(t, s, dir, props)
}

func TestGapPolicy_ResumeBeginsAtTheSourcesLogStartAndRemembersWhatWasLost(t *testing.T) {
	s, topic, a := overtaken(t, nil)
	a.awaitEnd(t, "t", 0, 200)
	check := func(p PartitionStatus) {
		t.Helper()
		if p.LogStart != 150 || p.LostRecords != 50 || len(p.Lost) != 1 || p.Lost[0].From != 100 || p.Lost[0].To != 150 ||
			p.Lost[0].At.IsZero() {
			t.Errorf("log start %d, %d lost in %v; want 150, 50 in [100, 150)", p.LogStart, p.LostRecords, p.Lost)
		}
	}
	check(a.partition("t", 0))
	a.stop()
	checkSame(t, diskBytes(t, a.dir, "t", 0), s.bytes(topic.partitions[0]))
	b := startAgent(t, s, a.dir, nil)
	b.awaitEnd(t, "t", 0, 200)
	check(b.partition("t", 0))
}

func TestGapPolicy_FailNamesTheLostRangeAndCutsNothing(t *testing.T) {
	fail := map[string]string{"mirror.m.mirror.gap.policy": "fail"}
	s, _, a := overtaken(t, fail)
	p := a.awaitFailed(t, "t", 0, CauseOvertaken, 100)
	if !strings.Contains(p.CauseText, "100..149 are gone at the source") {
		t.Errorf("the cause says %q", p.CauseText)
	}
	a.stop()
	b := startAgent(t, s, a.dir, map[string]string{"mirror.m.mirror.gap.policy": "resume"})
	b.awaitEnd(t, "t", 0, 200)
}

func TestLogStart_FollowsTheSourcesInsideABatch(t *testing.T) {
	s, topic := tenBatches(t)
	a := startAgent(t, s, t.TempDir(), nil)
	a.awaitEnd(t, "t", 0, 100)
	s.update(func() { topic.partitions[0].logStart = 35 })
	await(t, patience, "log start 35", func() bool {
		s.update(func() { topic.partitions[0].append(dataBatch(topic.partitions[0].end, 1)) })
		return a.partition("t", 0).LogStart == 35
	})
}

func TestSource_ATopicCreatedAgainIsFailedAndItsCopyKept(t *testing.T) {
	s, topic := tenBatches(t)
	a := startAgent(t, s, t.TempDir(), nil)
	a.awaitEnd(t, "t", 0, 100)
	before := s.bytes(topic.partitions[0])
	s.update(func() {
		delete(s.topics, "t")
		other := &testTopic{name: "t", id: [16]byte{9, 9}}
		for range 2 {
			p := &testPartition{epochs: []segment.EpochEntry{{}}}
			p.append(dataBatch(0, 50), dataBatch(50, 100))
			other.partitions = append(other.partitions, p)
		}
		s.topics["t"] = other
	})
	a.awaitFailed(t, "t", 0, CauseCreatedAgain, 100)
	await(t, patience, "the new partition is FAILED too", func() bool {
		return a.partition("t", 1).Cause == CauseCreatedAgain
	})
	a.stop()
	checkSame(t, diskBytes(t, a.dir, "t", 0), before)
	if _, err := os.Stat(filepath.Join(a.dir, "t-1")); err == nil {
		t.Error("a directory was made for a partition of the other topic")
	}
	b := startAgent(t, s, a.dir, nil) // any partition's directory tells, also after a restart
	b.awaitFailed(t, "t", 0, CauseCreatedAgain, 100)
	await(t, patience, "the new partition is FAILED again", func() bool {
		return b.partition("t", 1).Cause == CauseCreatedAgain
	})
}

func TestSource_AVanishedTopicIsFailedAndMirroredOnWhenItIsBack(t *testing.T) {
	s, topic := tenBatches(t)
	a := startAgent(t, s, t.TempDir(), nil)
	a.awaitEnd(t, "t", 0, 100)
	s.update(func() { delete(s.topics, "t") })
	a.awaitFailed(t, "t", 0, CauseTopicGone, 100)
	s.update(func() {
		topic.partitions[0].append(dataBatch(100, 10))
		s.topics["t"] = topic
	})
	a.awaitEnd(t, "t", 0, 110)
}

func TestSource_AnotherClusterBehindTheAddressIsFailed(t *testing.T) {
	s, _ := tenBatches(t)
	a := startAgent(t, s, t.TempDir(), nil)
	a.awaitEnd(t, "t", 0, 100)
	s.update(func() { s.clusterID = "another-cluster-id" })
	a.awaitFailed(t, "t", 0, CauseClusterChanged, 100)
	a.stop()
	b := startAgent(t, s, a.dir, nil)
	p := b.awaitFailed(t, "t", 0, CauseClusterChanged, 100)
	if !strings.Contains(p.CauseText, "another-cluster-id") || !strings.Contains(p.CauseText, "test-source-cluster-id") {
		t.Errorf("the cause %q does not name both clusters", p.CauseText)
	}
}

func TestSource_AShorterSourceNeverShortensItsMirror(t *testing.T) {
	s, topic := tenBatches(t)
	a := startAgent(t, s, t.TempDir(), map[string]string{"mirror.m.mirror.unclean.leader.election.enable": "true"})
	a.awaitEnd(t, "t", 0, 100)
	before := s.bytes(topic.partitions[0])
	s.update(func() { topic.partitions[0].batches, topic.partitions[0].end = topic.partitions[0].batches[:5], 50 })
	a.awaitFailed(t, "t", 0, CauseSourceShorter, 100)
	tries := a.partition("t", 0).Attempts
	await(t, patience, "it is looked at again", func() bool { return a.partition("t", 0).Attempts >= tries+3 })
	a.awaitFailed(t, "t", 0, CauseSourceShorter, 100)
	// Other records where ours were, in the same epoch: no epoch tells, the batches do.
	s.update(func() {
		for i := int64(5); i < 12; i++ {
			topic.partitions[0].append(sizedBatch(i*10, 10, 33))
		}
	})
	await(t, patience, "the difference is found", func() bool { return a.partition("t", 0).Cause == CauseDiverged })
	p := a.partition("t", 0)
	if !strings.Contains(p.CauseText, "below 50") {
		t.Errorf("the cause %q does not name the end of what is shared", p.CauseText)
	}
	a.stop()
	checkSame(t, diskBytes(t, a.dir, "t", 0), before)
}

func TestSource_ThatIsAwayFailsItsPartitionsAndSaysSo(t *testing.T) {
	src := newFakeKafka(t)
	src.createTopic(t, "orders", 2)
	src.produce(t, "orders", 0, 20)
	dir := t.TempDir()
	// A broker that ends may leave a connection open and say nothing more on it.
	a := runAgent(t, src.properties(dir, "mirror.dr.mirror.socket.timeout.ms", "500"))
	a.awaitEnd(t, "orders", 0, 20)
	src.Close()
	for i := range int32(2) {
		p := a.awaitState(t, "orders", i, StateFailed)
		if p.Cause != CauseSourceUnreachable {
			t.Errorf("partition %d: %s, %s", i, p.Cause, p.CauseText)
		}
	}
}

func TestDirectory_RenamedUnderUsStopsThatPartitionAndIsNeverMadeAgain(t *testing.T) {
	s, topic := tenBatches(t)
	other := s.addTopic("other", 1)
	a := startAgent(t, s, t.TempDir(), map[string]string{"log.flush.offset.checkpoint.interval.ms": "20"})
	a.awaitEnd(t, "t", 0, 100)
	path := filepath.Join(a.dir, "t-0")
	if err := os.Rename(path, path+".0123456789abcdef0123456789abcdef-delete"); err != nil {
		t.Fatal(err)
	}
	await(t, patience, "FAILED", func() bool { return a.partition("t", 0).Cause == CauseDirectoryLost })
	s.update(func() {
		topic.partitions[0].append(dataBatch(100, 10))
		other.partitions[0].append(dataBatch(0, 10))
	})
	a.awaitEnd(t, "other", 0, 10)
	a.stop()
	if _, err := os.Stat(path); err == nil {
		t.Error("the directory was made again")
	}
}

func TestSpace_BelowTheLeastFreeBytesAppendsPauseAndGoOn(t *testing.T) {
	s, topic := tenBatches(t)
	a := startAgent(t, s, t.TempDir(), nil)
	a.awaitEnd(t, "t", 0, 100)
	a.logs.dirs[0].full.Store(true) // as measure finds it
	s.update(func() { topic.partitions[0].append(dataBatch(100, 10)) })
	await(t, patience, "FAILED for want of room", func() bool {
		a.logs.dirs[0].full.Store(true)
		return a.partition("t", 0).Cause == CauseDiskFull
	})
	a.awaitEnd(t, "t", 0, 110) // measure finds room again
}

func TestMeasure_RaisesAndLowersFull(t *testing.T) {
	cfg := DefaultConfig()
	cfg.LogDirs = []string{t.TempDir()}
	a, err := New(cfg, nil) // not run: it would measure, too
	if err != nil {
		t.Fatal(err)
	}
	defer a.abandon() // the test's end
	a.logs.measure(1 << 62)
	if !a.logs.dirs[0].full.Load() {
		t.Error("less than min.free.bytes is not noticed")
	}
	a.logs.measure(1)
	if a.logs.dirs[0].full.Load() || a.logs.dirs[0].free.Load() <= 0 {
		t.Error("room is not noticed")
	}
}

func TestMirrors_TwoOfOneTopicAreAConflict(t *testing.T) {
	s, _ := tenBatches(t)
	a := startAgent(t, s, t.TempDir(), map[string]string{
		"mirrors": "m,n", "mirror.n.bootstrap.servers": s.addr(), "mirror.n.mirror.topics.include": "t",
	})
	find := func(cause Cause) bool {
		for _, m := range a.Status().Mirrors {
			if slices.ContainsFunc(m.Partitions, func(p PartitionStatus) bool { return p.Cause == cause }) {
				return true
			}
		}
		return false
	}
	await(t, patience, "one mirror's topic is refused", func() bool { return find(CauseConflict) })
	await(t, patience, "the other mirrors it", func() bool {
		for _, m := range a.Status().Mirrors {
			if len(m.Partitions) == 1 && m.Partitions[0].EndOffset == 100 && m.Partitions[0].State == StateMirroring {
				return true
			}
		}
		return false
	})
}

func TestLogDirs_APartitionInTwoOfThemStopsTheStart(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	for _, dir := range []string{one, two} {
		if err := os.MkdirAll(filepath.Join(dir, "t-0"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cfg := DefaultConfig()
	cfg.LogDirs = []string{one, two}
	_, err := New(cfg, nil)
	if err == nil || !strings.Contains(err.Error(), one) || !strings.Contains(err.Error(), two) {
		t.Fatalf("got %v, want both paths", err)
	}
	cfg.LogDirs = []string{one} // and nothing stayed locked
	a, err := New(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.abandon(); err != nil {
		t.Error(err)
	}
}

func TestLogDirs_NewPartitionsSpreadOverThem(t *testing.T) {
	s := newTestSource(t)
	s.addTopic("t", 4)
	one, two := t.TempDir(), t.TempDir()
	a := startAgent(t, s, one, map[string]string{"log.dirs": one + "," + two})
	for i := range 4 {
		a.awaitEnd(t, "t", i, 0)
	}
	counts := map[string]int{}
	for i := range 4 {
		counts[filepath.Dir(a.partition("t", i).Dir)]++
	}
	if counts[one] != 2 || counts[two] != 2 {
		t.Errorf("partitions lie %v", counts)
	}
}

func TestClusterID_IsMadeOnceAndThenKept(t *testing.T) {
	cfg := DefaultConfig()
	cfg.LogDirs = []string{t.TempDir()}
	var ids []string
	for range 2 {
		a, err := New(cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, a.clusterID())
		if err := a.abandon(); err != nil {
			t.Fatal(err)
		}
	}
	if len(ids[0]) != 22 || ids[0] != ids[1] {
		t.Errorf("ids %q", ids)
	}
	cfg.ClusterID = "another"
	if _, err := New(cfg, nil); err == nil {
		t.Error("another cluster.id was accepted")
	}
}

func TestClusterID_IsAskedFromTheDestination(t *testing.T) {
	destination := newTestSource(t)
	cfg := DefaultConfig()
	cfg.LogDirs = []string{t.TempDir()}
	cfg.Handoff.BootstrapServers = []string{destination.addr()}
	a, err := New(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.abandon() // the test's end
	if a.clusterID() != destination.clusterID {
		t.Errorf("cluster id %q", a.clusterID())
	}
}

func TestEpochPolicy_IsFixedAtTheFirstStart(t *testing.T) {
	s, _ := tenBatches(t)
	a := startAgent(t, s, t.TempDir(), nil)
	a.awaitEnd(t, "t", 0, 100)
	a.stop()
	cfg := a.cfg
	cfg.Mirrors = slices.Clone(cfg.Mirrors)
	cfg.Mirrors[0].EpochPolicy, cfg.Mirrors[0].EpochPolicyChosen = EpochPolicyRebase, true
	_, err := New(cfg, nil)
	if err == nil || !strings.Contains(err.Error(), "is preserve since the mirror's first start") {
		t.Errorf("got %v", err)
	}
}

func TestEpochPolicy_RebaseStampsOneEpochAndStillFollowsTheSources(t *testing.T) {
	s := newTestSource(t)
	topic := s.addTopic("t", 1)
	p := topic.partitions[0]
	s.update(func() {
		p.append(dataBatch(0, 10))
		p.startEpoch(4)
		p.append(withEpoch(dataBatch(10, 10), 4))
	})
	dir := t.TempDir()
	rebase := map[string]string{"mirror.m.mirror.leader.epoch.policy": "rebase"}
	a := startAgent(t, s, dir, rebase)
	a.awaitEnd(t, "t", 0, 20)
	a.stop()
	checkSame(t, diskBytes(t, dir, "t", 0), slices.Concat(dataBatch(0, 10), dataBatch(10, 10)))
	s.update(func() { p.append(withEpoch(dataBatch(20, 10), 4)) })
	b := startAgent(t, s, dir, rebase)
	b.awaitEnd(t, "t", 0, 30)
	fetches := s.fetches(p)
	if last := fetches[len(fetches)-1]; last.LastFetchedEpoch != 4 {
		t.Errorf("the last fetched epoch sent is %d, want the source's 4", last.LastFetchedEpoch)
	}
}

func TestEpochs_LostFromTheDirectoryAreComparedAndRestored(t *testing.T) {
	s := newTestSource(t)
	topic := s.addTopic("t", 1)
	p := topic.partitions[0]
	s.update(func() {
		p.append(dataBatch(0, 10))
		p.startEpoch(4)
		p.append(withEpoch(dataBatch(10, 10), 4))
	})
	dir := t.TempDir()
	a := startAgent(t, s, dir, nil)
	a.awaitEnd(t, "t", 0, 20)
	a.stop()
	if err := os.Remove(filepath.Join(dir, "t-0", "source-leader-epoch-checkpoint")); err != nil {
		t.Fatal(err)
	}
	s.update(func() { p.append(withEpoch(dataBatch(20, 10), 4)) })
	b := startAgent(t, s, dir, nil)
	b.awaitEnd(t, "t", 0, 30)
	log := b.logs.get(segment.TopicPartition{Topic: "t"}).open()
	want := []segment.EpochEntry{{Epoch: 0, StartOffset: 0}, {Epoch: 4, StartOffset: 10}}
	if got := log.SourceEpochEntries(); !slices.Equal(got, want) {
		t.Errorf("source epochs %v, want %v", got, want)
	}
}

func TestEpochs_AreRestoredInAsManyQuestionsAsThereAreEpochs(t *testing.T) {
	const high = 1 << 30
	s := newTestSource(t)
	p := s.addTopic("t", 1).partitions[0]
	s.update(func() {
		p.startEpoch(5)
		p.append(withEpoch(dataBatch(0, 10), 5))
		p.startEpoch(5000)
		p.append(withEpoch(dataBatch(10, 10), 5000))
		p.startEpoch(high)
		p.append(withEpoch(dataBatch(20, 10), high))
	})
	dir := t.TempDir()
	a := startAgent(t, s, dir, nil)
	a.awaitEnd(t, "t", 0, 30)
	a.stop()
	if err := os.Remove(filepath.Join(dir, "t-0", "source-leader-epoch-checkpoint")); err != nil {
		t.Fatal(err)
	}
	before := s.epochQuestions()
	s.update(func() { p.append(withEpoch(dataBatch(30, 10), high)) })
	b := startAgent(t, s, dir, nil)
	b.awaitEnd(t, "t", 0, 40)
	log := b.logs.get(segment.TopicPartition{Topic: "t"}).open()
	want := []segment.EpochEntry{{Epoch: 5, StartOffset: 0}, {Epoch: 5000, StartOffset: 10}, {Epoch: high, StartOffset: 20}}
	if got := log.SourceEpochEntries(); !slices.Equal(got, want) {
		t.Errorf("source epochs %v, want %v", got, want)
	}
	if n := s.epochQuestions() - before; n < 3 || n > 6 {
		t.Errorf("%d questions for three epochs", n)
	}
}

func TestDirectory_OfOtherRecordsIsRefusedWithTheSharedEnd(t *testing.T) {
	s, topic := tenBatches(t)
	dir := t.TempDir()
	a := startAgent(t, s, dir, nil)
	a.awaitEnd(t, "t", 0, 100)
	a.stop()
	if err := os.Remove(filepath.Join(dir, "t-0", "source-leader-epoch-checkpoint")); err != nil {
		t.Fatal(err)
	}
	s.update(func() {
		p := topic.partitions[0]
		p.batches, p.end = p.batches[:3], 30
		for i := int64(3); i < 12; i++ {
			p.append(sizedBatch(i*10, 10, 44))
		}
	})
	b := startAgent(t, s, dir, nil)
	await(t, patience, "the difference is found", func() bool { return b.partition("t", 0).Cause == CauseDiverged })
	status := b.partition("t", 0)
	if !strings.Contains(status.CauseText, "below 30") {
		t.Errorf("the cause %q does not name the end of what is shared", status.CauseText)
	}
}

func TestConfiguration_SegmentsFollowTheSourceTopic(t *testing.T) {
	s, topic := tenBatches(t)
	s.update(func() { topic.configs = map[string]string{"segment.bytes": "3000", "cleanup.policy": "compact"} })
	a := startAgent(t, s, t.TempDir(), nil)
	a.awaitEnd(t, "t", 0, 100)
	log := a.logs.get(segment.TopicPartition{Topic: "t"}).open()
	if log.Segments() < 3 {
		t.Errorf("%d segments of 3000 bytes for %d", log.Segments(), log.Size())
	}
	s.update(func() { topic.partitions[0].append(gapBatch(120, 9, 10, 0, 9)) })
	a.awaitEnd(t, "t", 0, 130)
	if p := a.partition("t", 0); p.Gaps != 0 {
		t.Errorf("%d gaps counted on a compacted topic", p.Gaps)
	}
}

func TestIdlePartition_IsParkedAndWokenByTheNextBatch(t *testing.T) {
	s, topic := tenBatches(t)
	a := startAgent(t, s, t.TempDir(), map[string]string{
		"mirror.idle.partition.close.ms": "1", "log.flush.interval.ms": "1", "log.flush.scheduler.interval.ms": "5",
	})
	a.awaitEnd(t, "t", 0, 100)
	open := func() bool {
		links, _ := filepath.Glob("/proc/self/fd/*")
		return slices.ContainsFunc(links, func(l string) bool {
			path, _ := os.Readlink(l)
			return strings.HasPrefix(path, filepath.Join(a.dir, "t-0"))
		})
	}
	await(t, patience, "no descriptor of the partition", func() bool { return !open() })
	s.update(func() { topic.partitions[0].append(dataBatch(100, 10)) })
	a.awaitEnd(t, "t", 0, 110)
}

func TestMetrics_SayWhatIsMirroredAndHowFarBehind(t *testing.T) {
	s, topic := tenBatches(t)
	a := startAgent(t, s, t.TempDir(), map[string]string{"metrics.listener": "127.0.0.1:0"})
	a.awaitEnd(t, "t", 0, 100)
	size := len(s.bytes(topic.partitions[0]))
	page := ""
	for _, want := range []string{
		`segmirror_partition_source_offset{mirror="m",partition="0",topic="t"} 100`,
		`segmirror_partition_end_offset{mirror="m",partition="0",topic="t"} 100`,
		`segmirror_partition_log_start_offset{mirror="m",partition="0",topic="t"} 0`,
		`segmirror_partition_lag_records{mirror="m",partition="0",topic="t"} 0`,
		`segmirror_partition_lag_seconds{mirror="m",partition="0",topic="t"} 0`,
		`segmirror_partition_batches_total{mirror="m",partition="0",topic="t"} 10`,
		`segmirror_partition_bytes_total{mirror="m",partition="0",topic="t"} ` + itoa(int32(size)),
		`segmirror_partition_state{mirror="m",partition="0",topic="t"} 1`,
		`segmirror_partition_lost_records_total{mirror="m",partition="0",topic="t"} 0`,
		`segmirror_fetcher_partitions{broker="1",fetcher="0",mirror="m"} 1`,
		`segmirror_mirror_partitions{mirror="m",state="MIRRORING"} 1`,
		`segmirror_log_dir_full{log_dir="` + a.dir + `"} 0`,
	} {
		await(t, patience, want, func() bool {
			page = scrape(t, a, "/metrics")
			return strings.Contains(page, want+"\n")
		})
	}
	for _, name := range []string{
		"segmirror_log_dir_free_bytes", "segmirror_fetcher_busy_seconds_total", "segmirror_fetcher_throttled_seconds_total",
	} {
		if !strings.Contains(page, "\n"+name+"{") {
			t.Errorf("no metric %s", name)
		}
	}
	if health := scrape(t, a, "/healthz"); !strings.HasPrefix(health, "ok\nmirror m: 1 partitions, 1 mirroring, 0 failed") {
		t.Errorf("healthz says %q", health)
	}
}

func TestMetrics_AreUnknownUntilTheFirstAnswer(t *testing.T) {
	s, topic := tenBatches(t)
	dir := t.TempDir()
	a := startAgent(t, s, dir, nil)
	a.awaitEnd(t, "t", 0, 100)
	a.stop()
	address := s.addr()
	s.listener.Close() // nothing answers any more
	s.disconnect()
	b := startAgent(t, s, dir, map[string]string{
		"metrics.listener": "127.0.0.1:0", "mirror.m.bootstrap.servers": address,
	})
	p := b.partition(topic.name, 0)
	if p.SourceOffset != -1 || p.LagRecords != -1 || p.LagSeconds != -1 || p.EndOffset != 100 {
		t.Errorf("source offset %d, lag %d, %v s, end %d; want -1, -1, -1, 100",
			p.SourceOffset, p.LagRecords, p.LagSeconds, p.EndOffset)
	}
	page := scrape(t, b, "/metrics")
	for _, name := range []string{"source_offset", "lag_records", "lag_seconds"} {
		want := `segmirror_partition_` + name + `{mirror="m",partition="0",topic="t"} NaN`
		if !strings.Contains(page, want) {
			t.Errorf("no line %q", want)
		}
	}
	await(t, patience, "the refresh's error in healthz", func() bool {
		return strings.Contains(scrape(t, b, "/healthz"), "mirror m: source: ")
	})
}

func TestLagSeconds_IsTheAgeOfTheNewestBatchWhileRecordsAreMissing(t *testing.T) {
	now := time.UnixMilli(1_700_000_100_000)
	p := newPartition(&mirror{}, &topic{name: "t"}, 0)
	p.stats.maxTimestamp.Store(1_700_000_000_000)
	for name, c := range map[string]struct {
		lag, answered int64 // answered: ms before now
		want          float64
	}{
		"behind":                     {5, 10, 100},
		"caught up":                  {0, 400, 0},
		"caught up, long unanswered": {0, 60_000, 60},
	} {
		p.stats.answered.Store(counterAt(now.UnixMilli() - c.answered))
		if got := p.stats.lagSeconds(now, c.lag); got != c.want {
			t.Errorf("%s: %v s, want %v", name, got, c.want)
		}
	}
	p.stats.maxTimestamp.Store(-1)
	if got := p.stats.lagSeconds(now, 5); got != -1 {
		t.Errorf("behind without timestamps: %v, want -1", got)
	}
}

func TestStartPosition_PartitionsAndTopicsAddedLaterBeginAtTheirStart(t *testing.T) {
	s, topic := tenBatches(t)
	dir := t.TempDir()
	latest := map[string]string{"mirror.m.mirror.start.position": "latest"}
	a := startAgent(t, s, dir, latest)
	await(t, patience, "mirroring", func() bool { return a.partition("t", 0).State == StateMirroring })
	grow := func() {
		p := &testPartition{epochs: []segment.EpochEntry{{}}}
		p.append(dataBatch(0, 10))
		topic.partitions = append(topic.partitions, p)
	}
	s.update(grow)
	late := s.addTopic("late", 1)
	s.update(func() { late.partitions[0].append(dataBatch(0, 10)) })
	a.awaitEnd(t, "t", 1, 10)
	a.awaitEnd(t, "late", 0, 10)
	a.stop()
	s.update(grow) // while the agent is away
	b := startAgent(t, s, dir, latest)
	b.awaitEnd(t, "t", 2, 10)
	for topic, index := range map[string]int{"t": 2, "late": 0} {
		if p := b.partition(topic, index); p.LogStart != 0 {
			t.Errorf("%s-%d starts at %d: its first records were skipped", topic, index, p.LogStart)
		}
	}
}

func TestRights_AreWaitedForAndTheOthersGoOn(t *testing.T) {
	s, topic := tenBatches(t)
	other := s.addTopic("other", 1)
	s.update(func() {
		topic.partitions[0].alter = func(_ fetchwire.FetchPartition, answer *fetchwire.FetchPartitionResponse) {
			*answer = fetchwire.NewFetchPartitionResponse(0)
			answer.ErrorCode = fetchwire.CodeTopicAuthorizationFailed
		}
		other.partitions[0].append(dataBatch(0, 10))
	})
	a := startAgent(t, s, t.TempDir(), nil)
	await(t, patience, "FAILED", func() bool { return a.partition("t", 0).Cause == CauseNotAuthorized })
	a.awaitEnd(t, "other", 0, 10)
	s.update(func() { topic.partitions[0].alter = nil })
	a.awaitEnd(t, "t", 0, 100)
}

func TestThrottle_IsWaitedForAndCounted(t *testing.T) {
	s, _ := tenBatches(t)
	s.update(func() {
		s.mangle = func(frame []byte, h fetchwire.RequestHeader) []byte {
			if h.APIKey == fetchwire.KeyFetch {
				binary.BigEndian.PutUint32(frame[9:], 30) // behind size, correlation id and no tags
			}
			return frame
		}
	})
	a := startAgent(t, s, t.TempDir(), nil)
	a.awaitEnd(t, "t", 0, 100)
	await(t, patience, "throttled time", func() bool {
		f := a.Status().Mirrors[0].Fetchers
		return len(f) == 1 && f[0].Throttled >= 60*time.Millisecond && f[0].Fetches >= 2
	})
}

func TestFlusher_MovesTheRecoveryPointAndWritesCheckpoints(t *testing.T) {
	s, topic := tenBatches(t)
	a := startAgent(t, s, t.TempDir(), map[string]string{
		"log.flush.interval.ms": "10", "log.flush.scheduler.interval.ms": "5",
		"log.flush.offset.checkpoint.interval.ms": "20",
	})
	a.awaitEnd(t, "t", 0, 100)
	stored := func(want int64) func() bool {
		return func() bool {
			offsets, err := segment.ReadOffsetCheckpoint(filepath.Join(a.dir, "recovery-point-offset-checkpoint"))
			return err == nil && offsets[segment.TopicPartition{Topic: "t"}] == want
		}
	}
	await(t, patience, "a checkpoint of 100", stored(100))
	s.update(func() { topic.partitions[0].append(dataBatch(100, 10)) })
	await(t, patience, "a checkpoint of 110", stored(110))
}

func TestFlusher_KeepsWhatIsNotDurableBounded(t *testing.T) {
	s, topic := tenBatches(t)
	a := startAgent(t, s, t.TempDir(), map[string]string{
		"log.flush.interval.bytes": "1000", "log.flush.interval.ms": "3600000",
		"log.flush.scheduler.interval.ms": "3600000", "mirror.m.mirror.fetch.max.bytes": "500",
	})
	a.awaitEnd(t, "t", 0, 100) // more than the bound: only a kicked flusher lets it get here
	s.update(func() { topic.partitions[0].append(dataBatch(100, 10)) })
	a.awaitEnd(t, "t", 0, 110)
}

func TestLog_ThatFailsIsOpenedAgainAndGoesOn(t *testing.T) {
	s, topic := tenBatches(t)
	a := startAgent(t, s, t.TempDir(), nil)
	a.awaitEnd(t, "t", 0, 100)
	// Somebody cuts the file under the agent: the next read into its map cannot work.
	if err := os.Truncate(filepath.Join(a.dir, "t-0", "00000000000000000000.log"), 0); err != nil {
		t.Fatal(err)
	}
	s.update(func() { topic.partitions[0].append(dataBatch(100, 10)) })
	a.awaitEnd(t, "t", 0, 110)
	a.mustEqual(t, s, topic, 0)
}

func TestApply_MovesOnWithoutAllocating(t *testing.T) {
	s, _ := tenBatches(t)
	a := startAgent(t, s, t.TempDir(), nil)
	a.awaitEnd(t, "t", 0, 100)
	m := a.mirrors["m"]
	a.stop()
	p, f := m.topics["t"].partitions[0], m.fetchers[fetcherKey{broker: 1}]
	head := fetchwire.PartitionHead{HighWatermark: 100, LogStartOffset: 0, RecordsSize: 10}
	info := segment.AppendInfo{Batches: 1, Bytes: 10, FirstOffset: 99, LastOffset: 99, MaxTimestampMs: 5}
	now := time.Now()
	fewest := math.Inf(1)
	for range 5 { // goroutines that earlier tests left to end allocate, too
		fewest = min(fewest, testing.AllocsPerRun(100, func() {
			p.noteAppend(&info, now)
			f.advance(p, &head, &info, now)
		}))
	}
	if fewest != 0 {
		t.Errorf("%v allocations an answer", fewest)
	}
}

func scrape(t *testing.T, a *testAgent, path string) string {
	t.Helper()
	resp, err := http.Get("http://" + a.MetricsAddr() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func counterAt(v int64) *atomic.Int64 {
	c := new(atomic.Int64)
	c.Store(v)
	return c
}
