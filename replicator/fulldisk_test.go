package replicator

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sys/unix"

	"segmirror/segment"
)

// smallDisk is a place of little room that can be given more. A test asks for one that this machine allows.
type smallDisk struct {
	dir  string
	room func(t *testing.T)           // gives enough room
	free func(t *testing.T, n uint64) // leaves n bytes; nil where only the room of a file is limited
}

// smallDiskBytes is the size of the small file system. The tests mirror about half of it.
const smallDiskBytes = 24 << 20

// mountedDisk is a file system of its own in memory. Mounting needs rights; without them it reports false.
func mountedDisk(t *testing.T) (smallDisk, bool) {
	t.Helper()
	dir := t.TempDir()
	err := unix.Mount("segmirror-test", dir, "tmpfs", 0, fmt.Sprintf("size=%d", smallDiskBytes))
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		t.Logf("mounting is not permitted here (%v): the limit on a file's size stands for the small disk", err)
		return smallDisk{}, false
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	filler := filepath.Join(dir, "filler")
	return smallDisk{
		dir: filepath.Join(dir, "data"),
		room: func(t *testing.T) {
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
		},
		free: func(t *testing.T, n uint64) {
			var st unix.Statfs_t
			if err := unix.Statfs(dir, &st); err != nil {
				t.Fatal(err)
			}
			f, err := os.Create(filler)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if err := unix.Fallocate(int(f.Fd()), 0, 0, int64(st.Bavail*uint64(st.Bsize)-n)); err != nil {
				t.Fatal(err)
			}
		},
	}, true
}

// childMark names the test that a process of its own is for.
const childMark = "SEGMIRROR_TEST_ALONE"

// alone runs the test again in a process of its own and reports whether this is that process; the caller returns where
// it is not. A limit on files' sizes would stop the files of package testing, too.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(childMark) == t.Name() {
		return true
	}
	var pattern []string
	for part := range strings.SplitSeq(t.Name(), "/") {
		pattern = append(pattern, "^"+regexp.QuoteMeta(part)+"$")
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", strings.Join(pattern, "/"), "-test.v")
	child.Env = append(os.Environ(), childMark+"="+t.Name())
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// limitedDisk lets no file of this process, which must be alone, grow beyond limit bytes; any user may ask for that.
func limitedDisk(t *testing.T, limit uint64) smallDisk {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	set := func(t *testing.T, cur uint64) {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: cur, Max: before.Max}); err != nil {
			t.Fatal(err)
		}
	}
	set(t, limit)
	t.Cleanup(func() {
		set(t, before.Cur)
		signal.Reset(syscall.SIGXFSZ)
	})
	return smallDisk{dir: t.TempDir(), room: func(t *testing.T) { set(t, before.Cur) }}
}

// fullRecords is what a partition gets: 3 MB that do not compress.
const fullRecords = 3000

// awaitFull waits until both partitions of the topic have stopped for want of room and returns their ends.
func (a *runningAgent) awaitFull(t *testing.T) [2]int64 {
	t.Helper()
	var ends [2]int64
	for index := range ends {
		await(t, patience, fmt.Sprintf("filling-%d has no room", index), func() bool {
			p, _ := a.partition("filling", int32(index))
			ends[index] = p.EndOffset
			return p.State == StateFailed && p.Cause == CauseDiskFull
		})
	}
	return ends
}

// checkFilling compares the closed mirror of both partitions with the source, byte for byte, and its files with one
// another.
func checkFilling(t *testing.T, src *fakeKafka, dir string) {
	t.Helper()
	for index := range int32(2) {
		checkSame(t, mirrored(t, dir, "filling", index), src.batches(t, "filling", index, 0))
		findings, err := segment.CheckDir(filepath.Join(dir, fmt.Sprintf("filling-%d", index)), segment.DefaultConfig())
		if err != nil || len(findings) > 0 {
			t.Errorf("filling-%d: %v %v", index, findings, err)
		}
	}
}

func newFillingSource(t *testing.T) *fakeKafka {
	t.Helper()
	src := newFakeKafka(t)
	src.createTopic(t, "filling", 2)
	random := rand.NewChaCha8([32]byte{1})
	for index := range int32(2) {
		for range fullRecords / 10 {
			var records []*kgo.Record
			for range 10 {
				value := make([]byte, 1000)
				_, _ = random.Read(value) // never fails
				records = append(records, &kgo.Record{Topic: "filling", Partition: index, Value: value})
			}
			if err := src.client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return src
}

func TestFullDisk_PausesLosesNothingAndGoesOnWhenThereIsRoom(t *testing.T) {
	for name, limited := range map[string]bool{"a small file system": false, "a limit on a file's size": true} {
		t.Run(name, func(t *testing.T) {
			disk, mounted := smallDisk{}, false
			if !limited {
				disk, mounted = mountedDisk(t)
			}
			if !mounted && !alone(t) {
				return
			}
			src := newFillingSource(t)
			if mounted {
				disk.free(t, 2<<20)
			} else {
				disk = limitedDisk(t, 1<<20)
			}
			a := runAgent(t, src.properties(disk.dir))
			ends := a.awaitFull(t)
			for index, end := range ends {
				if end >= fullRecords {
					t.Fatalf("filling-%d was mirrored to its end, %d: the disk is not full", index, end)
				}
			}
			if errs := a.Status().Mirrors[0].Errors[CauseDiskFull]; errs == 0 {
				t.Error("no error of this kind is counted")
			}
			if !strings.Contains(a.logs.String(), "disk_full") {
				t.Error("the log does not name the cause")
			}
			disk.room(t)
			for index := range int32(2) {
				a.awaitEnd(t, "filling", index, fullRecords)
			}
			src.produce(t, "filling", 0, 10)
			a.awaitEnd(t, "filling", 0, fullRecords+10)
			a.stop(t)
			checkFilling(t, src, disk.dir)
		})
	}
}

func TestFullDisk_RestartWithoutRoomLosesNothing(t *testing.T) {
	disk, mounted := mountedDisk(t)
	if !mounted && !alone(t) {
		return
	}
	src := newFillingSource(t)
	if mounted {
		disk.free(t, 2<<20)
	} else {
		disk = limitedDisk(t, 1<<20)
	}
	a := runAgent(t, src.properties(disk.dir))
	a.awaitFull(t)
	a.stop(t)
	var ends [2]int64
	for index := range ends {
		ends[index] = mirroredEnd(t, src, disk.dir, int32(index))
	}
	if ends[0]+ends[1] == 0 {
		t.Fatal("nothing was mirrored before the disk was full")
	}
	b := runAgent(t, src.properties(disk.dir))
	if again := b.awaitFull(t); again[0] < ends[0] || again[1] < ends[1] {
		t.Errorf("the ends went back from %d to %d", ends, again)
	}
	disk.room(t)
	for index := range int32(2) {
		b.awaitEnd(t, "filling", index, fullRecords)
	}
	b.stop(t)
	checkFilling(t, src, disk.dir)
}

// mirroredEnd checks that a closed partition is a prefix of the source's, batch for batch, and returns its end.
func mirroredEnd(t *testing.T, src *fakeKafka, dir string, index int32) int64 {
	t.Helper()
	held := mirrored(t, dir, "filling", index)
	if all := src.batches(t, "filling", index, 0); !strings.HasPrefix(string(all), string(held)) {
		t.Fatalf("the %d bytes of filling-%d are no prefix of the source's %d", len(held), index, len(all))
	}
	end, size := int64(0), 0
	for it := segment.NewBatchIterator(held); it.Next(); {
		end = it.Batch().LastOffset() + 1
		size += it.Batch().Size()
	}
	if size != len(held) {
		t.Fatalf("%d of %d bytes of filling-%d are whole batches", size, len(held), index)
	}
	return end
}

func TestFullDisk_LessThanMinFreeBytesPausesAndIsReported(t *testing.T) {
	disk, ok := mountedDisk(t)
	if !ok {
		// Without a file system of our own none can be made to run low: a bound that none meets stands for it.
		src := newFillingSource(t)
		a := runAgent(t, src.properties(t.TempDir(), "min.free.bytes", "4611686018427387904"))
		a.awaitFull(t)
		checkUnwell(t, a)
		return
	}
	src := newFillingSource(t)
	disk.free(t, 3<<20)
	a := runAgent(t, src.properties(disk.dir, "min.free.bytes", "4194304"))
	a.awaitFull(t)
	checkUnwell(t, a)
	disk.room(t)
	for index := range int32(2) {
		a.awaitEnd(t, "filling", index, fullRecords)
	}
	await(t, patience, "the agent is well", func() bool { return healthz(t, a) == http.StatusOK })
	a.stop(t)
	checkFilling(t, src, disk.dir)
}

// checkUnwell waits until the agent says that its directory is full: partitions may meet the file system's end before
// it is measured.
func checkUnwell(t *testing.T, a *runningAgent) {
	t.Helper()
	await(t, patience, "the agent is unwell", func() bool { return healthz(t, a) == http.StatusServiceUnavailable })
	await(t, patience, "the status says that the log directory is full", func() bool {
		dirs := a.Status().LogDirs
		return len(dirs) == 1 && dirs[0].Full
	})
}

func healthz(t *testing.T, a *runningAgent) int {
	t.Helper()
	resp, err := http.Get("http://" + a.MetricsAddr() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}
