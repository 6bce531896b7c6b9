package index

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// twoSegments are the entries Kafka 4.3.1 wrote for producer 7 with data at 0..1, producer 8 with data at 2,
// ABORT of 7 at 3, ABORT of 8 at 4.
var twoSegments = []AbortedTxn{
	{ProducerID: 7, FirstOffset: 0, LastOffset: 3, LastStableOffset: 2},
	{ProducerID: 8, FirstOffset: 2, LastOffset: 4, LastStableOffset: 5},
}

func openTxn(t testing.TB, start int64) *TransactionIndex {
	t.Helper()
	x, err := OpenTransaction(filepath.Join(t.TempDir(), "x.txnindex"), start)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(x.Check(), x.Close()); err != nil {
			t.Errorf("at the end of the test: %v", err)
		}
	})
	return x
}

func TestTransactionIndex_KafkaWorkedExample(t *testing.T) {
	x := openTxn(t, 2)
	for _, e := range twoSegments {
		if err := x.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	mustDo(t, x.Write)
	want, _ := hex.DecodeString(
		"0000" + "0000000000000007" + "0000000000000000" + "0000000000000003" + "0000000000000002" +
			"0000" + "0000000000000008" + "0000000000000002" + "0000000000000004" + "0000000000000005")
	if got := fileBytes(t, x.Path()); !bytes.Equal(got, want) {
		t.Errorf("file is % x, Kafka's is % x", got, want)
	}
}

func TestTransactionIndex_NoFileBeforeTheFirstEntry(t *testing.T) {
	x := openTxn(t, 0)
	for _, do := range []func() error{x.Write, x.Sync, x.Park, x.Reset} {
		mustDo(t, do)
	}
	if found, complete, err := x.Collect(0, 100); len(found) != 0 || complete || err != nil {
		t.Errorf("Collect of nothing = %v, %v, %v", found, complete, err)
	}
	if _, err := os.Stat(x.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a file: %v", err)
	}
	if err := x.Append(AbortedTxn{ProducerID: 1, FirstOffset: 0, LastOffset: 5, LastStableOffset: 6}); err != nil {
		t.Fatal(err)
	}
	mustDo(t, x.Write)
	mustDo(t, x.Sync)
	if got := len(fileBytes(t, x.Path())); got != 34 {
		t.Errorf("%d bytes after one entry", got)
	}
}

func TestTransactionIndex_CollectTakesWhatOverlapsAndSaysWhenThatIsAll(t *testing.T) {
	x := openTxn(t, 2)
	for _, e := range twoSegments {
		if err := x.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		from, to int64
		want     []AbortedTxn
		complete bool
	}{
		{0, 5, twoSegments, true},
		{0, 2, twoSegments[:1], true},
		{4, 5, twoSegments[1:], true},
		{0, 6, twoSegments, false},
		{5, 9, nil, false},
	} {
		found, complete, err := x.Collect(c.from, c.to)
		if err != nil || complete != c.complete || !slices.Equal(found, c.want) {
			t.Errorf("Collect(%d, %d) = %v, %v, %v, want %v, %v", c.from, c.to, found, complete, err, c.want, c.complete)
		}
	}
}

func TestTransactionIndex_FragmentIsCutBeforeTheNextEntry(t *testing.T) {
	first := AbortedTxn{ProducerID: 7, FirstOffset: 0, LastOffset: 2, LastStableOffset: 3}
	path := writeFile(t, "x.txnindex", append(AppendAbortedTxn(nil, first), 0, 0, 0))
	x, err := OpenTransaction(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	second := AbortedTxn{ProducerID: 7, FirstOffset: 3, LastOffset: 4, LastStableOffset: 5}
	if err := x.Append(second); err != nil {
		t.Fatal(err)
	}
	mustDo(t, x.Close)
	if got, want := fileBytes(t, path), AppendAbortedTxn(AppendAbortedTxn(nil, first), second); !bytes.Equal(got, want) {
		t.Errorf("file is % x", got)
	}
}

func TestTransactionIndex_DamageIsRefusedAtOpen(t *testing.T) {
	good := AppendAbortedTxn(nil, twoSegments[0])
	otherVersion := bytes.Clone(good)
	otherVersion[txnEntryVersionPos+1] = 1
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"version 1":             {otherVersion, ErrUnknownVersion},
		"marker below segment":  {AppendAbortedTxn(nil, AbortedTxn{7, 0, 1, 2}), ErrCorruptIndex},
		"markers out of order":  {AppendAbortedTxn(bytes.Clone(good), AbortedTxn{8, 0, 3, 4}), ErrCorruptIndex},
		"zero entry":            {append(bytes.Clone(good), make([]byte, 34)...), ErrCorruptIndex},
		"ends before it begins": {AppendAbortedTxn(nil, AbortedTxn{7, 9, 5, 6}), ErrCorruptIndex},
	} {
		path := writeFile(t, "x.txnindex", c.b)
		if _, err := OpenTransaction(path, 2); !errors.Is(err, c.want) {
			t.Errorf("%s: OpenTransaction = %v", name, err)
		}
		if got := fileBytes(t, path); !bytes.Equal(got, c.b) {
			t.Errorf("%s: a refused file was changed", name)
		}
		if _, err := CreateTransaction(path, 2); err != nil {
			t.Errorf("%s: CreateTransaction = %v", name, err)
		}
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the file is still there", name)
		}
	}
}

func TestTransactionIndex_TruncateGoesByTheMarker(t *testing.T) {
	for offset, keep := range map[int64]int{0: 0, 3: 0, 4: 1, 5: 2} {
		x := openTxn(t, 2)
		for _, e := range twoSegments {
			if err := x.Append(e); err != nil {
				t.Fatal(err)
			}
		}
		mustDo(t, x.Write)
		if err := x.TruncateTo(offset); err != nil || x.Entries() != keep {
			t.Errorf("TruncateTo(%d) keeps %d entries (%v), want %d", offset, x.Entries(), err, keep)
		}
		for _, e := range twoSegments[keep:] {
			if err := x.Append(e); err != nil {
				t.Errorf("append after TruncateTo(%d): %v", offset, err)
			}
		}
	}
}

func TestTransactionIndex_RefusedAppendChangesNothing(t *testing.T) {
	x := openTxn(t, 2)
	if err := x.Append(twoSegments[0]); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []AbortedTxn{{8, 0, 3, 4}, {8, 0, 2, 4}, {8, 5, 5, 6}} {
		if err := x.Append(bad); !errors.Is(err, ErrOffsetsOutOfOrder) {
			t.Errorf("Append(%v) = %v", bad, err)
		}
	}
	if all, err := x.All(); err != nil || !slices.Equal(all, twoSegments[:1]) {
		t.Errorf("entries are %v, %v", all, err)
	}
}
