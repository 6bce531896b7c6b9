package segment

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// memDir is a directory in memory where there is one: thousands of recoveries need not wait for a disk.
func memDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "segment-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// dirImage is the files of a partition directory, by name.
type dirImage map[string][]byte

func readImage(t testing.TB, dir string) dirImage {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := make(dirImage, len(entries))
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// write makes dir hold exactly the image.
func (m dirImage) write(t testing.TB, dir string) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, b := range m {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// logs is the bytes of all .log files, in order, each up to the first byte that is no batch.
func (m dirImage) logs() []byte {
	var all []byte
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if filepath.Ext(name) != logSuffix {
			continue
		}
		it := NewBatchIterator(m[name])
		for it.Next() {
			all = append(all, it.Batch()...)
		}
	}
	return all
}

// smallLog is a log with everything in it, over three segments: plain and transactional batches, an abort whose
// transaction began in the segment before, a commit, a reset, a gap, two epochs.
func smallLog(t testing.TB, orderly bool) (dirImage, openParams) {
	t.Helper()
	p := testParams(t)
	p.path = filepath.Join(memDir(t), "orders-0")
	p.cfg.CutDir = ""
	p.cfg.IndexIntervalBytes = 100
	p.cfg.SegmentBytes = 64 << 10
	l, _, err := openLog(p)
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, data(0, 2), txnData(3, 4, 7, 0), data(5, 5).at(1))
	if err := l.Roll(); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, txnData(6, 6, 8, 5).at(1), marker(7, 7, 0).at(1), data(8, 9).at(1), marker(10, 8, 1).at(1))
	if err := l.Roll(); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, data(11, 11).at(2), txnData(12, 13, 9, 0).at(2), marker(14, 9, 0).at(2), marker(15, -1, 7).at(2),
		data(20, 21).at(2), txnData(22, 22, 9, 0).at(2))
	if orderly {
		checkAndClose(t, l)
	} else {
		if _, err := l.Flush(); err != nil {
			t.Fatal(err)
		}
		crash(t, l)
	}
	return readImage(t, p.path), p
}

// damage is one way to spoil a file.
type damage struct {
	what  string
	apply func(b []byte) []byte
}

// damagesAt are the ways to spoil the byte at pos: cut here, flip bits, zeros to the end of the sector or page.
func damagesAt(pos int, allBits bool) []damage {
	ways := []damage{{"cut", func(b []byte) []byte { return b[:pos] }}}
	for bit := range 8 {
		if allBits || bit == pos%8 {
			ways = append(ways, damage{fmt.Sprintf("bit %d", bit), func(b []byte) []byte {
				b = bytes.Clone(b)
				b[pos] ^= 1 << bit
				return b
			}})
		}
	}
	for i, sector := range []int{512, 4096} {
		if !allBits && i != pos%2 {
			continue
		}
		ways = append(ways, damage{fmt.Sprintf("zeros to %d", sector), func(b []byte) []byte {
			b = bytes.Clone(b)
			clear(b[pos:min(len(b), (pos/sector+1)*sector)])
			return b
		}})
	}
	return ways
}

// outsideCRC tells whether a byte of a .log file lies where the CRC of its batch does not look: base offset, length,
// leader epoch, magic. What a flip there does:
//
//	base offset  lower: out of order, cut here. Higher: the batch stays, under offsets that were never its own, unless
//	             it then runs into the next batch, which is cut in its place; the next segment still follows where
//	             offsets meet. Nothing else could tell.
//	length       framing breaks or the CRC fails: cut here.
//	leader epoch stays, and goes into the epoch file where it is higher than all before it.
//	magic        0 and 1 have another CRC, others do not exist: cut here.
func outsideCRC(log []byte, pos int) bool {
	it := NewBatchIterator(log)
	for it.Next() {
		if start := it.Pos(); pos >= start && pos < start+len(it.Batch()) {
			return pos-start < crcPos && (pos-start < lengthPos || pos-start >= leaderEpochPos && pos-start < magicPos)
		}
	}
	return false
}

// reopenDamaged opens a spoiled image as after a crash and checks what must hold whatever was spoiled: it opens, holds a
// batch-exact prefix of what the files say, takes an append, and a second recovery changes nothing.
//
// trueEpochs is false where the batches' own epochs are spoiled: nothing can tell that they and the epoch file differ for
// another reason than that.
func reopenDamaged(t *testing.T, p openParams, spoiled dirImage, trueEpochs bool) []byte {
	t.Helper()
	spoiled.write(t, p.path)
	l, _, err := openLog(p)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	have := content(t, l)
	if err := l.Check(); err != nil && trueEpochs {
		t.Errorf("check: %v", err)
	}
	end := l.LogEndOffset()
	crash(t, l)

	before := readImage(t, p.path)
	l, report, err := openLog(p)
	if err != nil {
		t.Fatalf("second open: %v", err)
	}
	if again := content(t, l); !bytes.Equal(again, have) || l.LogEndOffset() != end || len(report.Cuts) > 0 {
		t.Errorf("second recovery: end %d after %d, %d bytes after %d, cuts %v",
			l.LogEndOffset(), end, len(again), len(have), report.Cuts)
	}
	if after := readImage(t, p.path); !maps.EqualFunc(before, after, bytes.Equal) {
		t.Errorf("second recovery changed %v", changed(before, after))
	}
	info, err := l.AppendAsFollower(data(end, end).at(99).bytes(), -1)
	if err != nil || info.Batches != 1 || l.LogEndOffset() != end+1 {
		t.Errorf("append at %d: %+v, %v", end, info, err)
	}
	if trueEpochs {
		checkAndClose(t, l)
	} else {
		crash(t, l)
	}
	return have
}

func changed(a, b dirImage) []string {
	var names []string
	for name := range a {
		if !bytes.Equal(a[name], b[name]) {
			names = append(names, fmt.Sprintf("%s (%d to %d bytes)", name, len(a[name]), len(b[name])))
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name+" (new)")
		}
	}
	return names
}

func TestDamage_OfALogFileEndsThePrefixThere(t *testing.T) {
	whole, p := smallLog(t, true)
	p.clean = false
	want := whole.logs()
	stride := 1
	if testing.Short() {
		stride = 23
	}
	for _, name := range slices.Sorted(maps.Keys(whole)) {
		if filepath.Ext(name) != logSuffix {
			continue
		}
		for pos := 0; pos < len(whole[name]); pos += stride {
			if inPayload(whole[name], pos) && pos%32 > 0 {
				continue
			}
			free := outsideCRC(whole[name], pos)
			if !free && pos%4 > 0 {
				continue // under the CRC one byte is like the next
			}
			for _, d := range damagesAt(pos, free) {
				spoiled := maps.Clone(whole)
				spoiled[name] = d.apply(whole[name])
				have := reopenDamaged(t, p, spoiled, !free)
				if !free && !bytes.HasPrefix(want, have) {
					t.Errorf("%d bytes are no prefix, first difference at %d", len(have), firstDiff(want, have))
				}
				if free && !batchesOf(have, spoiled.logs()) {
					t.Errorf("there are batches that were not in the files, or in another order")
				}
				if t.Failed() {
					t.Fatalf("%s, %s at %d (outside the CRC: %t)", name, d.what, pos, free)
				}
			}
		}
	}
}

// inPayload tells whether a byte lies behind the header and the first fields of a batch's records.
func inPayload(log []byte, pos int) bool {
	it := NewBatchIterator(log)
	for it.Next() {
		if start := it.Pos(); pos < start+len(it.Batch()) {
			return pos-start > batchHeaderSize+20
		}
	}
	return false
}

// batchesOf tells whether every batch of b is one of all's, in the same order.
func batchesOf(b, all []byte) bool {
	have, from := NewBatchIterator(b), NewBatchIterator(all)
	for have.Next() {
		for {
			if !from.Next() {
				return false
			}
			if bytes.Equal(from.Batch(), have.Batch()) {
				break
			}
		}
	}
	return have.Err() == nil
}

func TestDamage_EveryByteOfACacheFileLosesNoRecord(t *testing.T) {
	for _, orderly := range []bool{true, false} {
		whole, p := smallLog(t, orderly)
		p.clean = false
		want := whole.logs()
		stride := 1
		if testing.Short() {
			stride = 17
		}
		for _, name := range slices.Sorted(maps.Keys(whole)) {
			if filepath.Ext(name) == logSuffix || name == sourceEpochFileName || name == epochFileName {
				continue
			}
			for pos := 0; pos < len(whole[name]); pos += stride {
				for _, d := range damagesAt(pos, false) {
					spoiled := maps.Clone(whole)
					spoiled[name] = d.apply(whole[name])
					if have := reopenDamaged(t, p, spoiled, true); !bytes.Equal(have, want) {
						t.Errorf("%d bytes of %d", len(have), len(want))
					}
					if t.Failed() {
						t.Fatalf("%s, %s at %d, after an orderly stop: %t", name, d.what, pos, orderly)
					}
				}
			}
			spoiled := maps.Clone(whole)
			delete(spoiled, name)
			if have := reopenDamaged(t, p, spoiled, true); !bytes.Equal(have, want) || t.Failed() {
				t.Fatalf("%s removed: %d bytes of %d", name, len(have), len(want))
			}
		}
	}
}

// TestDamage_IndexesAfterAnOrderlyStop has the mark of an orderly stop beside a damaged index: nothing is recovered
// that looks right, so a read has to check what an index says.
func TestDamage_IndexesAfterAnOrderlyStop(t *testing.T) {
	whole, p := smallLog(t, true)
	want := whole.logs()
	stride := 1
	if testing.Short() {
		stride = 7
	}
	for _, name := range slices.Sorted(maps.Keys(whole)) {
		if ext := filepath.Ext(name); ext != offsetIndexSuffix && ext != timeIndexSuffix && ext != txnIndexSuffix {
			continue
		}
		for pos := 0; pos < len(whole[name]); pos += stride {
			for _, d := range damagesAt(pos, true) {
				spoiled := maps.Clone(whole)
				spoiled[name] = d.apply(whole[name])
				spoiled.write(t, p.path)
				l, _, err := openLog(p)
				if err != nil {
					t.Fatalf("%s, %s at %d: %v", name, d.what, pos, err)
				}
				if have := content(t, l); !bytes.Equal(have, want) {
					t.Fatalf("%s, %s at %d: %d bytes of %d, first difference at %d",
						name, d.what, pos, len(have), len(want), firstDiff(have, want))
				}
				if l.LogEndOffset() != 23 {
					t.Fatalf("%s, %s at %d: log end %d", name, d.what, pos, l.LogEndOffset())
				}
				for offset := range int64(23) {
					s, err := l.Read(offset, 1, ReadLogEnd)
					if err != nil || s.NextOffset() <= offset {
						t.Fatalf("%s, %s at %d: reading %d: %v", name, d.what, pos, offset, err)
					}
					if err := s.Release(); err != nil {
						t.Fatal(err)
					}
				}
				crash(t, l)
			}
		}
	}
}

func TestDamage_HolesOfPagesEndThePrefixThere(t *testing.T) {
	p := testParams(t)
	p.path = filepath.Join(memDir(t), "orders-0")
	p.cfg.CutDir = ""
	l, _, err := openLog(p)
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, batches(0, 60, 6)...)
	crash(t, l)
	whole := readImage(t, p.path)
	p.clean = false
	name := segmentFileName(0, logSuffix)
	want := whole.logs()
	for pos := 0; pos < len(want); pos += 4096 {
		spoiled := maps.Clone(whole)
		b := bytes.Clone(whole[name])
		clear(b[pos:min(pos+4096, len(b))])
		spoiled[name] = b
		have := reopenDamaged(t, p, spoiled, true)
		if !bytes.HasPrefix(want, have) || len(have) > pos || t.Failed() {
			t.Fatalf("hole at %d: %d bytes", pos, len(have))
		}
		if len(have)+int(batchSizeAt(want, len(have))) <= pos {
			t.Fatalf("hole at %d: only %d bytes are left", pos, len(have))
		}
	}
}

func batchSizeAt(b []byte, pos int) uint32 {
	return binary.BigEndian.Uint32(b[pos+lengthPos:]) + lengthOverhead
}
