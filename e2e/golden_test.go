package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"segmirror/compare"
	"segmirror/segment"
)

// goldenDir holds log directories that a real Kafka wrote (bench/kafka/golden).
const goldenDir = "../testdata/golden"

// goldenManifest is what the tests need of an image's manifest.
type goldenManifest struct {
	TopicConfigs map[string]string `json:"topicConfigs"`
	Topics       []struct {
		Name    string            `json:"name"`
		Configs map[string]string `json:"configs"`
	} `json:"topics"`
}

// goldenPartition is one partition of an image with the settings it was written under.
type goldenPartition struct {
	tp
	cfg segment.Config
}

// golden reads the manifest of an image.
func golden(t *testing.T, image string) []goldenPartition {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(goldenDir, image, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var m goldenManifest
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	var parts []goldenPartition
	for _, topic := range m.Topics {
		props := maps.Clone(m.TopicConfigs)
		maps.Copy(props, topic.Configs)
		number := func(key string) int32 {
			n, err := strconv.ParseInt(props[key], 10, 32)
			if err != nil {
				t.Fatalf("%s: %s of %s: %v", image, key, topic.Name, err)
			}
			return int32(n)
		}
		cfg := segment.DefaultConfig()
		cfg.SegmentBytes, cfg.IndexIntervalBytes = number("internal.segment.bytes"), number("index.interval.bytes")
		cfg.IndexMaxBytes = number("segment.index.bytes")
		parts = append(parts, goldenPartition{tp{topic.Name, 0}, cfg})
	}
	return parts
}

// goldenCopy copies an image's log dir, without the files whose names end in one of skip.
func goldenCopy(t *testing.T, image string, skip ...string) string {
	t.Helper()
	dir := t.TempDir()
	copyTree(t, filepath.Join(goldenDir, image, "logdir"), dir, skip...)
	return dir
}

// reopen opens every partition of a log dir with f looking at it, and closes the log dir in order.
func reopen(t *testing.T, dir string, parts []goldenPartition, f func(goldenPartition, *segment.Log)) {
	t.Helper()
	ld, err := segment.OpenLogDir(dir, identityOf(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		log, _, err := ld.OpenLog(segment.TopicPartition{Topic: p.topic, Partition: p.partition}, p.cfg)
		if err != nil {
			t.Fatalf("%v: %v", p, err)
		}
		f(p, log)
	}
	if err := ld.Close(); err != nil {
		t.Fatal(err)
	}
}

// identityOf reads cluster and node id of a log dir.
func identityOf(t *testing.T, dir string) segment.Identity {
	t.Helper()
	id := segment.Identity{NodeID: 1}
	for line := range strings.Lines(string(readFile(t, dir, "meta.properties"))) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "cluster.id="); ok {
			id.ClusterID = v
		}
	}
	return id
}

// TestGolden_BatchHeadersAreWhatDumpLogPrints decodes the headers of every golden batch.
func TestGolden_BatchHeadersAreWhatDumpLogPrints(t *testing.T) {
	for _, image := range []string{"clean", "killed", "tv1"} {
		t.Run(image, func(t *testing.T) {
			logs, err := filepath.Glob(filepath.Join(goldenDir, image, "logdir", "*-0", "*.log"))
			if err != nil || len(logs) == 0 {
				t.Fatalf("%d .log files: %v", len(logs), err)
			}
			count := 0
			for _, path := range logs {
				count += checkHeaders(t, image, path)
			}
			t.Logf("%d batches in %d segments", count, len(logs))
		})
	}
}

func checkHeaders(t *testing.T, image, path string) int {
	t.Helper()
	rel := strings.TrimPrefix(path, filepath.Join(goldenDir, image, "logdir")+"/")
	var want []string
	for line := range strings.Lines(string(readFile(t, filepath.Join(goldenDir, image, "dump"), rel+".txt"))) {
		if strings.HasPrefix(line, "baseOffset: ") {
			want = append(want, strings.TrimSpace(line))
		}
	}
	data := readFile(t, filepath.Dir(path), filepath.Base(path))
	var got []string
	for pos := 0; pos < len(data); {
		b := segment.Batch(data[pos:])
		b = b[:b.Size()]
		got = append(got, headerLine(b, pos))
		pos += len(b)
	}
	if n, theirs, ours, differ := firstLineThatDiffers(want, got); differ {
		t.Errorf("%s: batch %d is, to kafka-dump-log,\n%s\nand to us\n%s", rel, n, theirs, ours)
	}
	return len(got)
}

// headerLine prints a batch as kafka-dump-log does.
func headerLine(b segment.Batch, pos int) string {
	horizon, stamp := "OptionalLong.empty", "CreateTime"
	if b.HasDeleteHorizon() {
		horizon = fmt.Sprintf("OptionalLong[%d]", b.BaseTimestampMs())
	}
	if b.LogAppendTime() {
		stamp = "LogAppendTime"
	}
	last := b.BaseSequence()
	if last >= 0 {
		last += b.LastOffsetDelta()
	}
	codec := []string{"none", "gzip", "snappy", "lz4", "zstd"}[b.Codec()]
	return fmt.Sprintf("baseOffset: %d lastOffset: %d count: %d baseSequence: %d lastSequence: %d producerId: %d "+
		"producerEpoch: %d partitionLeaderEpoch: %d isTransactional: %v isControl: %v deleteHorizonMs: %s position: %d "+
		"%s: %d size: %d magic: %d compresscodec: %s crc: %d isvalid: %v", b.BaseOffset(), b.LastOffset(),
		b.RecordsCount(), b.BaseSequence(), last, b.ProducerID(), b.ProducerEpoch(), b.LeaderEpoch(), b.Transactional(),
		b.Control(), horizon, pos, stamp, b.MaxTimestampMs(), b.Size(), b.Magic(), codec, b.CRC(),
		b.CRC() == b.ComputeCRC())
}

// unlikeARebuild names the files in which a broker's directory is right and yet not what a rebuild from its .log files
// makes: the interval between index entries starts anew when a broker restarts, and the cleaner keeps the index entry
// of an aborted transaction as long as its marker is there.
var unlikeARebuild = []string{
	"compact-0/00000000000000000000.txnindex",
	"epochs-0/00000000000000000013.index",
	"epochs-0/00000000000000000013.timeindex",
}

// TestGolden_CheckFindsOnlyWhatARestartOrTheCleanerLeft checks directories that Kafka closed in order.
func TestGolden_CheckFindsOnlyWhatARestartOrTheCleanerLeft(t *testing.T) {
	for image, want := range map[string][]string{
		"clean": unlikeARebuild, "recovered": unlikeARebuild, "rebuilt": nil, "tv1": nil,
	} {
		var found []string
		for _, p := range golden(t, image) {
			findings, err := segment.CheckDir(p.dir(filepath.Join(goldenDir, image, "logdir")), p.cfg)
			if err != nil {
				t.Errorf("%s %v: %v", image, p.tp, err)
			}
			for _, f := range findings {
				if file := p.String() + "/" + f.File; slices.Contains(want, file) {
					found = append(found, file)
				} else {
					t.Errorf("%s %v: %v", image, p.tp, f)
				}
			}
		}
		slices.Sort(found)
		if found = slices.Compact(found); !slices.Equal(found, want) {
			t.Errorf("%s: findings in %v, want some in %v", image, found, want)
		}
	}
}

// TestGolden_CleanReopenChangesNoByte opens what Kafka closed in order, and closes it again. As at a broker's start,
// leader epochs that begin at the log end go: nothing was written in them.
func TestGolden_CleanReopenChangesNoByte(t *testing.T) {
	for _, image := range []string{"clean", "recovered", "rebuilt", "tv1"} {
		t.Run(image, func(t *testing.T) {
			dir, parts := goldenCopy(t, image), golden(t, image)
			reopen(t, dir, parts, func(goldenPartition, *segment.Log) {})
			original := filepath.Join(goldenDir, image, "logdir")
			for _, p := range parts {
				files, err := os.ReadDir(p.dir(original))
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range files {
					if strings.HasSuffix(f.Name(), ".snapshot") {
						continue // compared by their entries below
					}
					if f.Name() == "leader-epoch-checkpoint" {
						checkEpochsKept(t, p.tp, p.dir(original), p.dir(dir))
						continue
					}
					if !bytes.Equal(readFile(t, p.dir(original), f.Name()), readFile(t, p.dir(dir), f.Name())) {
						t.Errorf("%v/%s changed", p, f.Name())
					}
				}
				sameSnapshot(t, p.tp, p.dir(original), p.dir(dir))
			}
		})
	}
}

// checkEpochsKept wants the leader epochs that begin before the log end, unchanged.
func checkEpochsKept(t *testing.T, p tp, theirs, ours string) {
	t.Helper()
	var end int64
	batches(t, theirs, func(b compare.Batch) { end = b.LastOffset() + 1 })
	want := slices.DeleteFunc(readEpochs(t, theirs), func(e [2]int64) bool { return e[1] >= end })
	if got := readEpochs(t, ours); !slices.Equal(got, want) {
		t.Errorf("%v: leader epochs %v, want %v", p, got, want)
	}
}

// readEpochs reads the (epoch, start offset) pairs of a leader-epoch-checkpoint.
func readEpochs(t *testing.T, dir string) [][2]int64 {
	t.Helper()
	var entries [][2]int64
	for line := range strings.Lines(string(readFile(t, dir, "leader-epoch-checkpoint"))) {
		var e [2]int64
		if n, _ := fmt.Sscan(line, &e[0], &e[1]); n == 2 { // the two lines before the entries have one number
			entries = append(entries, e)
		}
	}
	return entries
}

// sameSnapshot wants the newest snapshots of two directories to hold the same producers at the same offset.
func sameSnapshot(t *testing.T, p tp, theirs, ours string) {
	t.Helper()
	wantOffset, want := newestSnapshot(t, theirs)
	gotOffset, got := newestSnapshot(t, ours)
	sortProducers(want)
	sortProducers(got)
	if gotOffset != wantOffset || !slices.Equal(got, want) {
		t.Errorf("%v: newest snapshot at %d: %+v\nKafka's at %d: %+v", p, gotOffset, got, wantOffset, want)
	}
}

// TestGolden_RecoveryOfAKilledBrokerIsKafkas recovers the image of a killed broker and holds every file against what
// Kafka's own recovery of it left.
func TestGolden_RecoveryOfAKilledBrokerIsKafkas(t *testing.T) {
	dir, parts := goldenCopy(t, "killed"), golden(t, "killed")
	reopen(t, dir, parts, func(goldenPartition, *segment.Log) {})
	want := filepath.Join(goldenDir, "recovered", "logdir")
	for _, p := range parts {
		sameSegments(t, p.tp, p.dir(want), p.dir(dir))
		sameSnapshot(t, p.tp, p.dir(want), p.dir(dir))
		checkEpochsKept(t, p.tp, p.dir(want), p.dir(dir))
	}
}

// TestGolden_RebuildFromBareLogsIsKafkas rebuilds everything from .log files, as the broker of the rebuilt image did.
func TestGolden_RebuildFromBareLogsIsKafkas(t *testing.T) {
	dir := goldenCopy(t, "rebuilt", ".index", ".timeindex", ".txnindex", ".snapshot", "leader-epoch-checkpoint",
		"recovery-point-offset-checkpoint", ".kafka_cleanshutdown")
	parts := golden(t, "rebuilt")
	reopen(t, dir, parts, func(goldenPartition, *segment.Log) {})
	want := filepath.Join(goldenDir, "rebuilt", "logdir")
	for _, p := range parts {
		sameSegments(t, p.tp, p.dir(want), p.dir(dir))
		sameSnapshot(t, p.tp, p.dir(want), p.dir(dir))
		checkEpochsKept(t, p.tp, p.dir(want), p.dir(dir))
	}
}

// sameSegments wants the same segments with the same bytes in .log, indexes and transaction index.
func sameSegments(t *testing.T, p tp, theirs, ours string) {
	t.Helper()
	for _, ext := range []string{".log", ".index", ".timeindex", ".txnindex"} {
		var names []string
		for _, dir := range []string{theirs, ours} {
			for _, f := range segmentFiles(t, dir, ext) {
				names = append(names, filepath.Base(f))
			}
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			a, b := readFile(t, theirs, name), readFile(t, ours, name)
			if !bytes.Equal(a, b) {
				t.Errorf("%v/%s: Kafka's has %d bytes, ours %d: %x\n%x", p, name, len(a), len(b), a[:min(len(a), 96)],
					b[:min(len(b), 96)])
			}
		}
	}
}

// TestGolden_OffsetsAfterReopen wants log start and end as Kafka left them.
func TestGolden_OffsetsAfterReopen(t *testing.T) {
	for _, image := range []string{"clean", "killed"} {
		dir, parts := goldenCopy(t, image), golden(t, image)
		reopen(t, dir, parts, func(p goldenPartition, log *segment.Log) {
			var end int64
			original := p.dir(filepath.Join(goldenDir, image, "logdir"))
			batches(t, original, func(b compare.Batch) { end = b.LastOffset() + 1 })
			start := int64(0)
			if p.topic == "trimmed" {
				start = 25 // where the records were deleted to, inside a segment
			}
			if log.LogStartOffset() != start || log.LogEndOffset() != end {
				t.Errorf("%s %v: log [%d, %d), want [%d, %d)", image, p.tp, log.LogStartOffset(), log.LogEndOffset(),
					start, end)
			}
		})
	}
}
