package replicator

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"segmirror/segment"
)

var powerCutFor = flag.Duration("powercut", 2*time.Second, "how long each record log is appended to at random while "+
	"power is cut")

// disk is what a directory's files hold, by path inside it.
type disk map[string][]byte

func readDisk(t *testing.T, root string) disk {
	t.Helper()
	out := disk{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(root, path)
		out[inside] = b
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (d disk) write(t *testing.T, root string) {
	t.Helper()
	if err := os.RemoveAll(root); err != nil {
		t.Fatal(err)
	}
	for name, b := range d {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// replaced reports whether a file is only ever renamed into place whole, after it was synced.
func replaced(name string) bool {
	base := filepath.Base(name)
	return strings.HasSuffix(base, "checkpoint") || base == "meta.properties" || base == "digests" ||
		filepath.Ext(base) == ".snapshot"
}

// powerCut drives a record log and, at every sync and between, opens what a power cut could leave at that moment.
type powerCut[R, I any] struct {
	t     *testing.T
	kind  recordKind[R, I]
	root  string
	aside string // where images are opened

	mu     sync.Mutex // the log's writer cuts too, in the middle of a rewrite
	rng    *rand.Rand
	synced disk // .log files as their newest syncs left them

	model    I // what was acknowledged
	pending  []R
	cuts     int
	rewrites int
}

func (p *powerCut[R, I]) afterSync(path string) {
	b, err := os.ReadFile(path)
	if err != nil {
		p.t.Error(err)
		return
	}
	inside, err := filepath.Rel(p.root, path)
	if err != nil {
		p.t.Error(err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.synced[inside] = b
	if p.rng.IntN(3) == 0 {
		p.cut()
	}
}

// image is one thing that the disk may hold after a power cut now: of a .log file a mix of pages of before and after
// its newest sync, of an index any page may be missing, files replaced whole are what they are.
func (p *powerCut[R, I]) image() disk {
	now := readDisk(p.t, p.root)
	out := disk{}
	for name, b := range p.synced { // a file that was removed may come back
		if _, there := now[name]; !there && filepath.Ext(name) == ".log" && p.rng.IntN(2) == 0 {
			out[name] = b
		}
	}
	for name, b := range now {
		then, durable := p.synced[name]
		isLog := filepath.Ext(name) == ".log"
		switch {
		case replaced(name) || filepath.Base(name) == ".lock":
			out[name] = b
		case !isLog && p.rng.IntN(4) == 0: // an index or a snapshot that did not reach the disk
		case isLog && !durable && p.rng.IntN(2) == 0:
			out[name] = nil // the name is there, nothing of its bytes
		default:
			out[name] = p.pages(b, then)
		}
	}
	return out
}

func (p *powerCut[R, I]) pages(now, then []byte) []byte {
	const page = 4096
	size := len(now)
	if p.rng.IntN(2) == 0 {
		size = len(then)
	}
	mixed := make([]byte, size)
	for pos := 0; pos < size; pos += page {
		from := now
		if p.rng.IntN(2) == 0 {
			from = then
		}
		if pos < len(from) {
			copy(mixed[pos:min(pos+page, size)], from[pos:])
		}
	}
	return mixed
}

// cut opens an image, mu held: it must say what was acknowledged, or that and all of the append that was under way.
func (p *powerCut[R, I]) cut() {
	p.cuts++
	p.image().write(p.t, p.aside)
	got := p.open(p.aside)
	acknowledged := p.says(p.model)
	if got == acknowledged {
		return
	}
	with := p.clone(p.model)
	for i := range p.pending {
		p.kind.apply(with, &p.pending[i])
	}
	if got != p.says(with) {
		p.t.Fatalf("cut %d: the log says\n%s\nacknowledged was\n%s\nwith what was under way\n%s", p.cuts, got, acknowledged,
			p.says(with))
	}
}

// open replays the log in a directory twice, as two starts would, and returns what it says.
func (p *powerCut[R, I]) open(root string) string {
	var said string
	kind := p.kind
	kind.config.AfterSync = nil
	for round := range 2 {
		dir, err := segment.OpenLogDir(root, segment.Identity{ClusterID: "here", NodeID: 1})
		if err != nil {
			p.t.Fatal(err)
		}
		log, err := openRecordLog(kind, dir, slog.New(slog.DiscardHandler))
		if err != nil {
			p.t.Fatalf("cut %d, start %d: %v", p.cuts, round, err)
		}
		var now string
		log.view(func(image I) { now = p.says(image) })
		log.close()
		if err := log.log.Check(); err != nil {
			p.t.Errorf("cut %d, start %d: %v", p.cuts, round, err)
		}
		if err := dir.Close(); err != nil {
			p.t.Fatal(err)
		}
		if round > 0 && now != said {
			p.t.Fatalf("cut %d: the second start says\n%s\nthe first\n%s", p.cuts, now, said)
		}
		said = now
	}
	return said
}

// says is an image in a form that can be compared.
func (p *powerCut[R, I]) says(image I) string {
	var out bytes.Buffer
	records := p.kind.all(image)
	for i := range records {
		key, value := p.kind.encode(&records[i])
		fmt.Fprintf(&out, "%q %q\n", key, value)
	}
	return out.String()
}

func (p *powerCut[R, I]) clone(image I) I {
	out := p.kind.empty()
	records := p.kind.all(image)
	for i := range records {
		p.kind.apply(out, &records[i])
	}
	return out
}

// run appends what next makes for d, with restarts in between, clean ones and kills.
func (p *powerCut[R, I]) run(d time.Duration, next func(*rand.Rand) []R) {
	p.kind.config.AfterSync = p.afterSync
	p.kind.config.SegmentBytes = 8 << 10
	p.kind.rewriteBytes = 4 << 10
	p.model = p.kind.empty()
	var dir *segment.LogDir
	var log *recordLog[R, I]
	start := func() {
		var err error
		if dir, err = segment.OpenLogDir(p.root, segment.Identity{ClusterID: "here", NodeID: 1}); err != nil {
			p.t.Fatal(err)
		}
		if log, err = openRecordLog(p.kind, dir, slog.New(slog.DiscardHandler)); err != nil {
			p.t.Fatal(err)
		}
		log.view(func(image I) {
			if got, want := p.says(image), p.says(p.model); got != want {
				p.t.Fatalf("after a start the log says\n%s\nacknowledged was\n%s", got, want)
			}
		})
	}
	start()
	appends := 0
	for deadline := time.Now().Add(d); time.Now().Before(deadline) || appends < 30; appends++ {
		p.mu.Lock()
		records := next(p.rng)
		p.pending = records
		p.mu.Unlock()
		from := log.log.LogStartOffset()
		if err := log.append(records...); err != nil {
			p.t.Fatal(err)
		}
		p.mu.Lock()
		for i := range records {
			p.kind.apply(p.model, &records[i])
		}
		p.pending = nil
		n := p.rng.IntN(100)
		p.mu.Unlock()
		switch {
		case n < 10:
			log.close() // its writer may be in a rewrite still
			if n%2 == 0 {
				if err := log.rewrite(); err != nil {
					p.t.Fatal(err)
				}
			}
			p.mu.Lock()
			p.cut()
			p.mu.Unlock()
			if err := dir.Close(); err != nil {
				p.t.Fatal(err)
			}
			p.synced = readDisk(p.t, p.root)
			start()
		case n == 10: // killed: what is in the files is what a new start finds
			log.close()
			left := readDisk(p.t, p.root)
			if err := dir.Close(); err != nil {
				p.t.Fatal(err)
			}
			left.write(p.t, p.root)
			start()
		}
		if log.log.LogStartOffset() > from {
			p.rewrites++
		}
	}
	log.close()
	if err := dir.Close(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Logf("%d appends, %d cuts, %d rewrites seen", appends, p.cuts, p.rewrites)
	if p.cuts < 10 || p.rewrites == 0 {
		p.t.Errorf("%d cuts, %d rewrites: too few to show anything", p.cuts, p.rewrites)
	}
}

func newPowerCut[R, I any](t *testing.T, kind recordKind[R, I]) *powerCut[R, I] {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return &powerCut[R, I]{
		t: t, kind: kind, rng: rand.New(rand.NewPCG(seed, 1)), root: filepath.Join(t.TempDir(), "log"),
		aside: filepath.Join(t.TempDir(), "image"), synced: disk{},
	}
}

// TestStateLog_SaysWhatWasAcknowledgedAfterAnyPowerCut appends random states while the log is rewritten again and again.
func TestStateLog_SaysWhatWasAcknowledgedAfterAnyPowerCut(t *testing.T) {
	newPowerCut(t, stateLogKind()).run(*powerCutFor, func(rng *rand.Rand) []StateRecord {
		mirror := fmt.Sprintf("m%d", rng.IntN(3))
		var out []StateRecord
		for range 1 + rng.IntN(5) {
			r := StateRecord{Mirror: mirror, Topic: fmt.Sprintf("t%d", rng.IntN(5)), Partition: rng.Int32N(4)}
			switch rng.IntN(12) {
			case 0:
				r.Type, r.SourceClusterID = recordMirrorSource, "source"
				r.Topic, r.Partition = "", 0
			case 1:
				r.Type, r.Lost = recordLostRange, LostSpan{From: rng.Int64N(100), To: 100 + rng.Int64N(100), AtMs: 1}
			case 2:
				r = StateRecord{Type: recordLastMirrorEpochs, Mirror: mirror, Epochs: []LastMirrorEpoch{
					{Topic: r.Topic, Partition: r.Partition, Epoch: rng.Int32N(9), EndOffset: rng.Int64N(999)},
				}}
			case 3:
				r = StateRecord{Type: recordPartitionState, Mirror: mirror, Tombstone: true}
			default:
				r.Type, r.State = recordPartitionState, State(rng.IntN(7))
				if r.State == StateFailed {
					r.Cause, r.Attempts, r.Text = CauseIO, rng.Int32N(9), strings.Repeat("x", rng.IntN(2000))
				}
			}
			out = append(out, r)
		}
		return out
	})
}

// TestMetadataLog_SaysWhatWasAcknowledgedAfterAnyPowerCut makes random changes, each of which must be there whole or
// not at all.
func TestMetadataLog_SaysWhatWasAcknowledgedAfterAnyPowerCut(t *testing.T) {
	kinds := []int8{resourceTopic, resourceBroker, resourceMirror}
	newPowerCut(t, metadataLogKind()).run(*powerCutFor, func(rng *rand.Rand) []MetadataRecord {
		var out []MetadataRecord
		for range 1 + rng.IntN(20) {
			kind, name, key := kinds[rng.IntN(3)], fmt.Sprintf("r%d", rng.IntN(4)), fmt.Sprintf("k%d", rng.IntN(4))
			switch rng.IntN(6) {
			case 0:
				out = append(out, configDeleted(kind, name, key))
			case 1:
				out = append(out, MetadataRecord{PartitionChange: &PartitionChangeRecord{
					PartitionID: rng.Int32N(3), TopicID: [16]byte{byte(rng.IntN(3))}, MinLeaderEpoch: rng.Int32N(1000),
				}})
			case 2:
				id := [16]byte{byte(rng.IntN(3))}
				if rng.IntN(2) == 0 {
					out = append(out, MetadataRecord{ACLRemoved: &id})
					break
				}
				out = append(out, MetadataRecord{ACL: &ACLRecord{ID: id, ResourceType: 8, ResourceName: name, Principal: "User:x"}})
			default:
				out = append(out, configSet(kind, name, key, strings.Repeat("v", rng.IntN(1500))))
			}
		}
		return out
	})
}

// TestPowerCut_MixesEveryPageAndSize shows that an image may lack any page, and all of the growth, of what was not synced.
func TestPowerCut_MixesEveryPageAndSize(t *testing.T) {
	p := newPowerCut(t, metadataLogKind())
	now, then := bytes.Repeat([]byte{1}, 9000), bytes.Repeat([]byte{2}, 5000)
	seen := map[string]bool{}
	for range 200 {
		mixed := p.pages(now, then)
		seen[fmt.Sprint(len(mixed), mixed[0], mixed[4096])] = true
	}
	if len(seen) != 8 {
		t.Errorf("%d kinds of mixes of two pages and two sizes, want 8: %v", len(seen), seen)
	}
}
