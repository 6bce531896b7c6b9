package segment

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// These tests run one scenario in a process of its own, under strace, and end or fail it at its n-th call of every
// system call that changes a file, for every n. What is left on disk is then opened and held against a model.

// scene is the state a step of the scenario leads to.
type scene struct {
	start   int64
	batches []spec
	end     int64
}

// act is one step: what it does to the log, and the scene after it.
type act struct {
	name  string
	do    func(l *Log) error
	after scene
	ack   bool  // flushed after it
	floor int64 // lowest end that a crash during it may leave, where it truncates
}

var scenarioSource = SourceID{ClusterID: "source", TopicID: TopicID{1}}

func scenarioConfig() Config {
	cfg := DefaultConfig()
	cfg.SegmentBytes, cfg.IndexIntervalBytes = 1000, 150
	cfg.Policy = EpochRebase
	return cfg
}

// scenario is every kind of change a log knows.
func scenario() []act {
	var acts []act
	now := scene{}
	add := func(a act) {
		a.after = scene{start: now.start, batches: slices.Clone(now.batches), end: now.end}
		acts = append(acts, a)
	}
	appended := func(name string, specs ...spec) {
		now.batches = append(slices.Clone(now.batches), specs...)
		now.end = specs[len(specs)-1].last + 1
		add(act{name: name, do: func(l *Log) error { return appendMissing(l, specs) }})
	}
	flushed := func() {
		add(act{name: "flush", ack: true, do: func(l *Log) error {
			offset, err := l.Flush()
			if err == nil {
				l.MarkFlushed(offset)
				err = l.persist()
			}
			return err
		}})
	}
	truncated := func(offset int64) {
		now.batches = slices.DeleteFunc(slices.Clone(now.batches), func(s spec) bool { return s.last >= offset })
		now.end = now.batches[len(now.batches)-1].last + 1
		add(act{name: "truncate", floor: now.end, do: func(l *Log) error {
			_, err := l.TruncateTo(offset)
			return err
		}})
	}
	anew := func(offset int64) {
		now = scene{start: offset, end: offset}
		add(act{name: "start anew", do: func(l *Log) error {
			_, err := l.TruncateFullyAndStartAt(offset)
			return err
		}})
	}
	anew(4)
	appended("straddle", data(0, 9).at(1), txnData(10, 12, 7, 0).at(1))
	flushed()
	appended("roll", data(13, 15).at(2), data(16, 18).at(2), data(19, 21).at(2), marker(22, 7, 0).at(2), data(23, 25).at(2))
	appended("gap", data(50, 52).at(3), data(53, 55).at(3), data(56, 58).at(3), data(59, 61).at(3), data(62, 64).at(3))
	flushed()
	appended("txn", txnData(65, 66, 8, 0).at(3), txnData(67, 68, 9, 0).at(3), marker(69, 8, 1).at(3), data(70, 75).at(4))
	truncated(58)
	appended("other", data(56, 59).at(5), data(60, 63).at(5), data(64, 70).at(6), marker(71, -1, 7).at(6))
	flushed()
	now.start = 20
	add(act{name: "advance", do: func(l *Log) error {
		_, err := l.AdvanceLogStart(20)
		return err
	}})
	add(act{name: "park", do: (*Log).Park})
	appended("unpark", data(72, 80).at(6), data(81, 90).at(7))
	add(act{name: "roll", do: (*Log).Roll})
	anew(60)
	appended("again", data(60, 64).at(8), data(65, 90).at(8), data(91, 92).at(9))
	return acts
}

// appendMissing appends those batches that end behind the log end.
func appendMissing(l *Log, specs []spec) error {
	end := l.LogEndOffset()
	var b []byte
	for _, s := range specs {
		if s.last >= end {
			b = append(b, s.bytes()...)
		}
	}
	_, err := l.AppendAsFollower(b, -1)
	return err
}

// TestScenarioProcess is the process that is ended; alone it does nothing.
func TestScenarioProcess(t *testing.T) {
	dir := os.Getenv("SEGMENT_SCENARIO_DIR")
	if dir == "" {
		t.Skip("run by the tests of system calls")
	}
	runtime.LockOSThread() // the calls are counted by thread
	progress, err := os.OpenFile(dir+".progress", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	say := func(format string, args ...any) { fmt.Fprintf(progress, format+"\n", args...) }
	p := player{t: t, dir: dir}
	say("opened")
	p.open()
	for i, a := range scenario() {
		say("begin %d", i)
		for try := 0; ; try++ {
			err := p.log.Failed()
			if err == nil {
				if err = p.catchUp(i); err == nil {
					err = a.do(p.log)
				}
			}
			if err == nil && p.log.LogEndOffset() == a.after.end {
				break
			}
			if try == 3 {
				t.Fatalf("%s: %v, end %d", a.name, err, p.log.LogEndOffset())
			}
			say("error in %d: %v", i, err)
			if err := p.log.Failed(); err != nil {
				say("closed: %v", p.log.Close())
				p.openLog()
			}
		}
		if a.ack {
			say("ack %d", i)
		}
		say("done %d", i)
	}
	if err := p.d.Close(); err != nil {
		say("closing: %v", err)
	}
}

// player plays the scenario, through failures.
type player struct {
	t   *testing.T
	dir string
	d   *LogDir
	log *Log
}

func (p *player) open() {
	p.t.Helper()
	var err error
	for range 3 {
		if p.d, err = OpenLogDir(p.dir, Identity{ClusterID: "here", NodeID: 1}); err == nil {
			p.openLog()
			return
		}
	}
	p.t.Fatal(err)
}

func (p *player) openLog() {
	p.t.Helper()
	var err error
	for range 3 {
		if p.log, _, err = p.d.OpenLog(testPartition, scenarioConfig()); err != nil {
			continue
		}
		if err = p.log.Bind(scenarioSource); err == nil {
			return
		}
		_ = p.log.Close()
	}
	p.t.Fatal(err)
}

// catchUp brings a log that lost its end to where step i begins.
func (p *player) catchUp(i int) error {
	acts := scenario()
	if i == 0 || acts[i].name == "start anew" {
		return nil
	}
	return appendMissing(p.log, acts[i-1].after.batches)
}

// strace runs the scenario with one injection, and returns what it said.
func strace(t *testing.T, dir, injection string) (progress string, counted bool) {
	t.Helper()
	trace := dir + ".trace"
	cmd := exec.Command("strace", "-f", "-qq", "-o", trace, "-e", "inject="+injection,
		"-e", "trace="+strings.SplitN(injection, ":", 2)[0],
		os.Args[0], "-test.run=^TestScenarioProcess$", "-test.count=1")
	cmd.Env = append(os.Environ(), "SEGMENT_SCENARIO_DIR="+dir, "GOMAXPROCS=1")
	out, err := cmd.CombinedOutput()
	b, _ := os.ReadFile(trace)
	counted = bytes.Contains(b, []byte("INJECTED")) || bytes.Contains(b, []byte("killed by"))
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	said, _ := os.ReadFile(dir + ".progress")
	if exit != nil && !bytes.Contains(b, []byte("killed by SIGKILL")) && len(said) > 0 {
		t.Errorf("%s: the process ended with %v\n%s", injection, err, out)
	}
	return string(said), counted
}

// changing are the system calls that change a file or a directory, and one that maps.
var changing = []string{
	"fsync", "renameat", "unlinkat", "ftruncate", "pwrite64", "fallocate", "mkdirat", "munmap", "openat", "write",
}

// sampled is how many calls a run takes one of.
const sampled = 9

func needStrace(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs some hundred processes")
	}
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is not installed")
	}
}

func TestKill_AtEverySystemCallLeavesAPrefix(t *testing.T) {
	needStrace(t)
	for _, call := range changing {
		t.Run(call, func(t *testing.T) { eachCall(t, call, "signal=SIGKILL") })
	}
}

func TestFault_OfEverySystemCallHealsByReopening(t *testing.T) {
	needStrace(t)
	for _, call := range []string{
		"fsync:error=EIO", "renameat:error=EIO", "unlinkat:error=EIO", "ftruncate:error=EIO", "pwrite64:error=ENOSPC",
		"pwrite64:error=EIO", "fallocate:error=ENOSPC", "openat:error=EMFILE", "write:error=ENOSPC", "mkdirat:error=EIO",
	} {
		name, fault, _ := strings.Cut(call, ":")
		t.Run(call, func(t *testing.T) { eachCall(t, name, fault) })
	}
}

// eachCall runs the scenario once for every time it makes the call; for some of them unless SEGMENT_SCENARIO_ALL is set
// (minutes). SEGMENT_SCENARIO_WHEN begins at one of them.
func eachCall(t *testing.T, call, fault string) {
	t.Helper()
	from, step := 1+int(time.Now().UnixNano()%sampled), sampled
	if os.Getenv("SEGMENT_SCENARIO_ALL") != "" {
		from, step = 1, 1
	}
	if s := os.Getenv("SEGMENT_SCENARIO_WHEN"); s != "" {
		from, _ = strconv.Atoi(s)
	}
	for n := from; n < 1000; n += step {
		dir := filepath.Join(t.TempDir(), "logs")
		injection := fmt.Sprintf("%s:%s:when=%d", call, fault, n)
		progress, counted := strace(t, dir, injection)
		if !counted {
			t.Logf("%s: %d calls", call, n-1)
			return
		}
		if !strings.Contains(progress, "opened") {
			continue // before the scenario
		}
		judge(t, injection, dir, progress)
		if t.Failed() {
			t.Fatalf("%s\n%s", injection, progress)
		}
	}
}

// judge opens what is left twice, and holds it against the scenes around the step that was at hand.
func judge(t *testing.T, injection, dir, progress string) {
	t.Helper()
	acts := scenario()
	at, done, acked := -1, -1, int64(0)
	for line := range strings.Lines(progress) {
		word, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, _ := strconv.Atoi(number)
		switch word {
		case "begin":
			at = n
			if acts[n].name == "truncate" {
				acked = min(acked, acts[n].floor)
			}
			if acts[n].name == "start anew" {
				acked = 0
			}
		case "ack":
			acked = acts[n].after.end
		case "done":
			done = n
		}
	}
	before, after := scene{}, scene{}
	if done >= 0 {
		before, after = acts[done].after, acts[done].after
	}
	if at > done {
		after = acts[at].after
	}
	d, err := OpenLogDir(dir, Identity{ClusterID: "here", NodeID: 1})
	if err != nil {
		t.Fatalf("%s: %v", injection, err)
	}
	l, _, err := d.OpenLog(testPartition, scenarioConfig())
	if err != nil {
		t.Fatalf("%s: %v", injection, err)
	}
	judgeLog(t, l, before, after, acked)
	start, end, have := l.LogStartOffset(), l.LogEndOffset(), fileContent(t, l)
	crash(t, l)
	if err := unlockDir(d.lock); err != nil {
		t.Fatal(err)
	}
	again, err := OpenLogDir(dir, Identity{ClusterID: "here", NodeID: 1})
	if err != nil {
		t.Fatal(err)
	}
	l, report, err := again.OpenLog(testPartition, scenarioConfig())
	if err != nil {
		t.Fatal(err)
	}
	if l.LogStartOffset() != start || l.LogEndOffset() != end || !bytes.Equal(fileContent(t, l), have) || len(report.Cuts) > 0 {
		t.Errorf("a second open made [%d, %d) of [%d, %d): %+v", l.LogStartOffset(), l.LogEndOffset(), start, end, report)
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	findings, err := CheckDir(l.dir, l.cfg)
	if err != nil || len(findings) > 0 {
		t.Errorf("closed: %v, %v", findings, err)
	}
}

// fileContent is the bytes of all segments, also those below the log start.
func fileContent(t *testing.T, l *Log) []byte {
	t.Helper()
	var all []byte
	for _, s := range l.list() {
		b, err := os.ReadFile(s.logPath())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b[:s.size.Load()]...)
	}
	return all
}

func judgeLog(t *testing.T, l *Log, before, after scene, acked int64) {
	t.Helper()
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	have := fileContent(t, l)
	base := l.FirstSegmentBase()
	prefixOf := func(s scene) bool {
		var want []byte
		for _, b := range s.batches {
			if b.last >= base && b.base >= base {
				b.epoch = 0 // stamped
				want = append(want, b.bytes()...)
			}
		}
		if !bytes.HasPrefix(want, have) {
			return false
		}
		ends := map[int64]bool{s.start: true, base: true}
		for _, b := range s.batches {
			ends[b.last+1], ends[b.base] = true, true
		}
		return ends[l.LogEndOffset()]
	}
	if !prefixOf(before) && !prefixOf(after) {
		t.Errorf("%d bytes up to %d are no prefix of [%d, %d) or [%d, %d)", len(have), l.LogEndOffset(),
			before.start, before.end, after.start, after.end)
	}
	wantDigests(t, l, have)
	if l.LogEndOffset() < acked {
		t.Errorf("log end %d, flushed up to %d", l.LogEndOffset(), acked)
	}
	anew := l.LogStartOffset() == base && before.end > after.end // deleted records may show while a log is being emptied
	if start := l.LogStartOffset(); start != before.start && start != after.start && !anew {
		t.Errorf("log start %d, not %d or %d", start, before.start, after.start)
	}
	if l.LogStartOffset() >= l.LogEndOffset() {
		return // an empty range may keep the epoch it ended in
	}
	var sources []EpochEntry
	latest := int32(-1)
	bound := before
	if !prefixOf(before) {
		bound = after
	}
	for _, b := range bound.batches {
		if b.base < l.LogEndOffset() && b.epoch > latest && b.last >= l.LogStartOffset() {
			latest = b.epoch
			sources = append(sources, EpochEntry{Epoch: b.epoch, StartOffset: max(b.base, l.LogStartOffset())})
		}
	}
	if have := l.SourceEpochEntries(); !sameEpochs(have, sources) {
		t.Errorf("source epochs %v, the batches say %v", have, sources)
	}
}

// wantDigests holds the digests against those of the bytes, where they say to begin there.
func wantDigests(t *testing.T, l *Log, content []byte) {
	t.Helper()
	if l.digests == nil || l.digests.StartOffset() != l.FirstSegmentBase() {
		return
	}
	d := NewDigests(l.FirstSegmentBase())
	for it := NewBatchIterator(content); it.Next(); {
		d.Add(it.Batch())
	}
	if have, want := l.Digests(), d.Ranges(); !slices.Equal(have, want) {
		t.Errorf("digests %+v, the batches say %+v", have, want)
	}
}

// sameEpochs compares histories but for where the first begins: a log start may have moved it.
func sameEpochs(a, b []EpochEntry) bool {
	return len(a) == len(b) && (len(a) == 0 || a[0].Epoch == b[0].Epoch && slices.Equal(a[1:], b[1:]))
}
