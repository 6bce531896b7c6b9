package psm

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// withCRC returns b, a snapshot file, with the CRC its bytes have.
func withCRC(b []byte) []byte {
	binary.BigEndian.PutUint32(b[snapshotCRCPos:], crc32.Checksum(b[snapshotCountPos:], castagnoli))
	return b
}

func TestSnapshot_KafkaBytes(t *testing.T) {
	empty, _ := hex.DecodeString("000148674bc700000000") // the empty file Kafka 4.3.1 writes
	if got := AppendSnapshot(nil, nil); !bytes.Equal(got, empty) {
		t.Errorf("empty snapshot is % x, Kafka's is % x", got, empty)
	}
	m := New()
	replay(t, m, marker(MarkerAbort, 7, 0, 5, 0))
	b := AppendSnapshot(nil, m.Entries())
	fields := "0000000000000007" + "0000" + "ffffffff" + "ffffffffffffffff" + "00000000" +
		"0000000000001388" + "00000000" + "ffffffffffffffff"
	if got := hex.EncodeToString(b[snapshotHeaderSize:]); len(b) != 56 || got != fields {
		t.Errorf("%d bytes, entry %s, want %s", len(b), got, fields)
	}
}

func TestDecodeSnapshot_EveryDamageIsNamedAndBounded(t *testing.T) {
	m := New()
	replay(t, m, data(7, 0, 0, 2, 0))
	good := AppendSnapshot(nil, m.Entries())
	change := func(f func(b []byte) []byte) []byte { return f(bytes.Clone(good)) }
	for name, b := range map[string][]byte{
		"CRC 1": change(func(b []byte) []byte { binary.BigEndian.PutUint32(b[snapshotCRCPos:], 1); return b }),
		"empty": {},
		"short": good[:len(good)-9],
		"version 2": change(func(b []byte) []byte {
			b[snapshotVersionPos+1] = 2
			return b
		}),
		"count -1": change(func(b []byte) []byte {
			binary.BigEndian.PutUint32(b[snapshotCountPos:], 0xffffffff)
			return withCRC(b)
		}),
		"count 2^31-1 without entries": withCRC([]byte{0, 1, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff}),
		"count too low": change(func(b []byte) []byte {
			binary.BigEndian.PutUint32(b[snapshotCountPos:], 0)
			return withCRC(b)
		}),
		"a byte behind the entries": withCRC(append(bytes.Clone(good), 0)),
	} {
		if _, err := DecodeSnapshot(b); !errors.Is(err, ErrCorruptSnapshot) {
			t.Errorf("%s: DecodeSnapshot = %v", name, err)
		}
		n := testing.AllocsPerRun(1, func() {
			_, err := DecodeSnapshot(b)
			_ = err // looked at above
		})
		if n > 10 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	for pos := range good {
		for bit := range 8 {
			b := bytes.Clone(good)
			b[pos] ^= 1 << bit
			if _, err := DecodeSnapshot(b); !errors.Is(err, ErrCorruptSnapshot) {
				t.Errorf("bit %d of byte %d flipped: %v", bit, pos, err)
			}
		}
	}
}

func TestSnapshot_RoundTripKeepsEverythingABrokerKnows(t *testing.T) {
	m := New()
	replay(t, m, data(7, 3, 0, 4, 2147483646), txn(9, 1, 4, 1, 8), txn(8, 0, 5, 1, 0),
		marker(MarkerCommit, 8, 1, 6, 2), txn(3, 0, 7, 1, 0))
	entries, err := DecodeSnapshot(AppendSnapshot(nil, m.Entries()))
	if err != nil {
		t.Fatal(err)
	}
	again := New()
	if err := again.Load(entries, m.MapEndOffset()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(again.Entries(), m.Entries()) || !slices.Equal(again.OngoingTxns(), m.OngoingTxns()) {
		t.Errorf("loaded\n%+v\nwant\n%+v", again.Entries(), m.Entries())
	}
	if again.HighestProducerID() != 9 || again.MapEndOffset() != 8 {
		t.Errorf("highest %d, map end %d", again.HighestProducerID(), again.MapEndOffset())
	}
}

func TestLoadNewest_GoesBackToTheNewestGoodOne(t *testing.T) {
	dir := t.TempDir()
	m := New()
	for _, b := range []*Batch{data(7, 0, 0, 2, 0), data(7, 0, 2, 2, 2), data(7, 0, 4, 2, 4)} {
		replay(t, m, b)
		if err := WriteSnapshot(dir, m.MapEndOffset(), m.Entries(), b.BaseOffset == 2); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, SnapshotName(6)), []byte{0, 1}, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, SnapshotName(9)), AppendSnapshot(nil, nil), 0o644); err != nil {
		t.Fatal(err)
	}
	again := New()
	offset, found, bad, err := again.LoadNewest(dir, 2, 7)
	if err != nil || !found || offset != 4 {
		t.Fatalf("loaded %d, %t, %v", offset, found, err)
	}
	if e := mustGet(t, again, 7); e.LastSequence != 3 {
		t.Errorf("entry is %+v", e)
	}
	if len(bad) != 1 || !errors.Is(bad[0], ErrCorruptSnapshot) {
		t.Errorf("reported %v", bad)
	}
	if left, err := ListSnapshots(dir); err != nil || !slices.Equal(left, []int64{4}) {
		t.Errorf("left are %v, %v", left, err)
	}
	if offset, found, _, err := again.LoadNewest(dir, 4, 7); found || offset != 4 || err != nil || again.Len() != 0 {
		t.Errorf("a snapshot at the log start was used: %d, %t, %v", offset, found, err)
	}
}

func TestRemoveStray_KeepsSegmentBasesAndTheNewestBeyondThem(t *testing.T) {
	for name, c := range map[string]struct{ files, bases, want []int64 }{
		"newest at the log end":      {[]int64{5, 10, 15, 20, 23}, []int64{0, 10, 20}, []int64{10, 20, 23}},
		"only the newest beyond":     {[]int64{21, 23}, []int64{0, 20}, []int64{23}},
		"newest below the last base": {[]int64{5, 15}, []int64{0, 20}, nil},
	} {
		dir := t.TempDir()
		for _, offset := range c.files {
			if err := WriteSnapshot(dir, offset, nil, false); err != nil {
				t.Fatal(err)
			}
		}
		leftOver := filepath.Join(dir, "00000000000000000030.snapshot.tmp")
		if err := os.WriteFile(leftOver, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := RemoveStray(dir, c.bases); err != nil {
			t.Fatal(err)
		}
		if left, err := ListSnapshots(dir); err != nil || !slices.Equal(left, c.want) {
			t.Errorf("%s: left are %v, %v", name, left, err)
		}
		if _, err := os.Stat(leftOver); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the interrupted write is still there", name)
		}
	}
}

func TestParseSnapshotName_TakesTwentyDigitsOnly(t *testing.T) {
	for name, want := range map[string]int64{
		"00000000000000000042.snapshot": 42, "42.snapshot": -1, "foo.snapshot": -1, ".snapshot": -1,
		"+0000000000000000042.snapshot": -1, "-0000000000000000042.snapshot": -1, "99999999999999999999.snapshot": -1,
		"00000000000000000042.snapshot.tmp": -1, "00000000000000000042.log": -1,
	} {
		offset, ok := ParseSnapshotName(name)
		if ok != (want >= 0) || ok && offset != want {
			t.Errorf("%s: %d, %t", name, offset, ok)
		}
	}
}

func TestSnapshot_AMillionProducers(t *testing.T) {
	if testing.Short() {
		t.Skip("46 MB")
	}
	const n = 1_000_000
	m := New()
	for i := range int64(n) {
		if err := m.Prepare(data(i, 0, i, 1, 0)); err != nil {
			t.Fatal(err)
		}
		m.Commit()
	}
	dir := t.TempDir()
	if err := WriteSnapshot(dir, n, m.Entries(), false); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, SnapshotName(n)))
	if err != nil || info.Size() != 46_000_010 {
		t.Fatalf("%v, %v", info, err)
	}
	again := New()
	if _, found, _, err := again.LoadNewest(dir, 0, n); err != nil || !found || again.Len() != n {
		t.Errorf("loaded %d producers, %v", again.Len(), err)
	}
}

func FuzzDecodeSnapshot(f *testing.F) {
	m := New()
	replay(f, m, data(7, 0, 0, 2, 0), txn(8, 1, 2, 1, 5))
	f.Add(AppendSnapshot(nil, m.Entries()))
	f.Add(AppendSnapshot(nil, nil))
	f.Add([]byte{0, 1, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= snapshotHeaderSize { // the CRC would keep the fuzzer out of the rest
			b = withCRC(bytes.Clone(b))
		}
		entries, err := DecodeSnapshot(b)
		if err != nil {
			return
		}
		if again := AppendSnapshot(nil, entries); !bytes.Equal(again, b) {
			t.Errorf("accepted % x, written anew it is % x", b, again)
		}
		if len(b) > 0 {
			if _, err := DecodeSnapshot(b[:len(b)-1]); err == nil {
				t.Error("accepted without its last byte")
			}
		}
		loaded := New()
		if err := loaded.Load(entries, 1<<62); err == nil && loaded.Len() != len(entries) {
			t.Errorf("%d entries became %d producers", len(entries), loaded.Len())
		}
	})
}
