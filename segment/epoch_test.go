package segment

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func newEpochs(t testing.TB, entries ...EpochEntry) *LeaderEpochCache {
	t.Helper()
	c := NewLeaderEpochCache(filepath.Join(t.TempDir(), epochFileName))
	for _, e := range entries {
		if err := c.Assign(e.Epoch, e.StartOffset); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		again, dropped, err := OpenLeaderEpochCache(c.path)
		if err != nil || dropped != 0 || !slices.Equal(again.Entries(), c.Entries()) {
			t.Errorf("the file says %v (%d dropped, %v), the cache %v", again.Entries(), dropped, err, c.Entries())
		}
	})
	return c
}

func TestEpochAssign_DropsWhatItContradicts(t *testing.T) {
	for name, c := range map[string]struct {
		before []EpochEntry
		assign EpochEntry
		want   []EpochEntry
	}{
		"first":                       {nil, EpochEntry{0, 0}, []EpochEntry{{0, 0}}},
		"repeat of the latest":        {[]EpochEntry{{3, 5}}, EpochEntry{3, 9}, []EpochEntry{{3, 5}}},
		"higher":                      {[]EpochEntry{{3, 0}}, EpochEntry{5, 3}, []EpochEntry{{3, 0}, {5, 3}}},
		"lower removes all higher":    {[]EpochEntry{{3, 0}, {5, 3}, {7, 6}}, EpochEntry{0, 9}, []EpochEntry{{0, 9}}},
		"earlier start of the latest": {[]EpochEntry{{3, 0}, {5, 6}}, EpochEntry{5, 4}, []EpochEntry{{3, 0}, {5, 4}}},
		"start below earlier entries": {[]EpochEntry{{3, 0}, {5, 6}}, EpochEntry{7, 6}, []EpochEntry{{3, 0}, {7, 6}}},
	} {
		e := newEpochs(t, c.before...)
		if err := e.Assign(c.assign.Epoch, c.assign.StartOffset); err != nil || !slices.Equal(e.Entries(), c.want) {
			t.Errorf("%s: %v, %v, want %v", name, e.Entries(), err, c.want)
		}
	}
	e := newEpochs(t, EpochEntry{3, 0})
	for _, bad := range []EpochEntry{{-1, 5}, {4, -1}} {
		if err := e.Assign(bad.Epoch, bad.StartOffset); !errors.Is(err, ErrEpochNegative) || len(e.Entries()) != 1 {
			t.Errorf("Assign(%v): %v, %v", bad, err, e.Entries())
		}
	}
}

func TestEpochTruncate_FromEitherEnd(t *testing.T) {
	all := []EpochEntry{{1, 0}, {3, 5}, {4, 9}}
	for offset, want := range map[int64][]EpochEntry{0: nil, 5: all[:1], 6: all[:2], 9: all[:2], 10: all} {
		c := newEpochs(t, all...)
		if err := c.TruncateFromEnd(offset); err != nil || !slices.Equal(c.Entries(), want) {
			t.Errorf("TruncateFromEnd(%d): %v, %v, want %v", offset, c.Entries(), err, want)
		}
	}
	for offset, want := range map[int64][]EpochEntry{
		0: all, 3: {{1, 3}, {3, 5}, {4, 9}}, 5: all[1:], 7: {{3, 7}, {4, 9}}, 9: all[2:], 20: {{4, 20}},
	} {
		c := newEpochs(t, all...)
		if err := c.TruncateFromStart(offset); err != nil || !slices.Equal(c.Entries(), want) {
			t.Errorf("TruncateFromStart(%d): %v, %v, want %v", offset, c.Entries(), err, want)
		}
	}
	c := newEpochs(t, EpochEntry{2, 7})
	if err := c.TruncateFromStart(3); err != nil || !slices.Equal(c.Entries(), []EpochEntry{{2, 7}}) {
		t.Errorf("a start before all entries: %v, %v", c.Entries(), err)
	}
}

func TestEndOffsetFor_AnswersAsKafkaDoes(t *testing.T) {
	c := newEpochs(t, EpochEntry{2, 10}, EpochEntry{4, 20}, EpochEntry{7, 30})
	for requested, want := range map[int32][2]int64{
		-1: {-1, -1}, 0: {0, 10}, 1: {1, 10}, 2: {2, 20}, 3: {2, 20}, 4: {4, 30}, 6: {4, 30}, 7: {7, 40}, 8: {-1, -1},
	} {
		epoch, end := c.EndOffsetFor(requested, 40)
		if int64(epoch) != want[0] || end != want[1] {
			t.Errorf("EndOffsetFor(%d) = %d, %d, want %v", requested, epoch, end, want)
		}
	}
	if epoch, end := newEpochs(t).EndOffsetFor(3, 40); epoch != -1 || end != -1 {
		t.Errorf("an empty history answers %d, %d", epoch, end)
	}
	for offset, want := range map[int64]int32{9: -1, 10: 2, 29: 4, 99: 7} {
		if epoch, ok := c.EpochForOffset(offset); epoch != want || ok != (want >= 0) {
			t.Errorf("EpochForOffset(%d) = %d, %t", offset, epoch, ok)
		}
	}
}

func writeEpochFile(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), epochFileName)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEpochFile_KafkaBytes(t *testing.T) {
	const kafka = "0\n2\n0 0\n2 751864\n"
	c, dropped, err := OpenLeaderEpochCache(writeEpochFile(t, kafka))
	if err != nil || dropped != 0 || !slices.Equal(c.Entries(), []EpochEntry{{0, 0}, {2, 751864}}) {
		t.Fatalf("%v, %d dropped, %v", c.Entries(), dropped, err)
	}
	if got := string(c.history.Load().append(nil)); got != kafka {
		t.Errorf("written anew it is %q", got)
	}
}

func TestEpochFile_EntriesThatGoBackwardsAreDroppedAndTheFileRepaired(t *testing.T) {
	path := writeEpochFile(t, "0\n3\n0 0\n2 5\n1 3\n")
	c, dropped, err := OpenLeaderEpochCache(path)
	if err != nil || dropped != 1 || !slices.Equal(c.Entries(), []EpochEntry{{0, 0}, {1, 3}}) {
		t.Fatalf("%v, %d dropped, %v", c.Entries(), dropped, err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "0\n2\n0 0\n1 3\n" {
		t.Errorf("the file is now %q, %v", b, err)
	}
}

func TestEpochFile_DamageNamesItsLine(t *testing.T) {
	for content, line := range map[string]string{
		"0\n3\n0 0\n2 5\n":            "line 5",
		string(make([]byte, 20)):      "line 1",
		"0\n1\n-1 0\n":                "line 3",
		"0\n1\n1 -5\n":                "line 3",
		"1\n0\n":                      "line 1",
		"0\nx\n":                      "line 2",
		"0\n1\n1 2 3\n":               "line 3",
		"0\n1\n 1 2\n":                "line 3",
		"0\n1\n1 2\n3 4\n":            "line 4",
		"0\n2\n1 2\n\n":               "line 4",
		"source abc\n0\n0\n":          "line 1",
		"source abc def\n0\n0\n":      "line 1",
		"0\n99999999999999999999\n":   "line 2",
		"0\n1\n9999999999 0\n":        "line 3",
		"source a b c d\n0\n1\n0 0\n": "line 1",
	} {
		_, _, err := OpenLeaderEpochCache(writeEpochFile(t, content))
		if !errors.Is(err, ErrCorruptCheckpoint) || !containsAll(err.Error(), line+":", epochFileName) {
			t.Errorf("%q: %v, want %s", content, err, line)
		}
	}
	if c, _, err := OpenLeaderEpochCache(writeEpochFile(t, "")); err != nil || len(c.Entries()) != 0 {
		t.Errorf("an empty file: %v", err)
	}
}

func TestEpochSource_AnotherTopicStartsAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), sourceEpochFileName)
	c := NewLeaderEpochCache(path)
	first := SourceID{ClusterID: "5L6g3nShT-eMCtK--X86sw", TopicID: TopicID{1, 2, 3}}
	second := SourceID{ClusterID: first.ClusterID, TopicID: TopicID{9}}
	if _, ok := c.Source(); ok {
		t.Error("a new history has a source")
	}
	if err := errors.Join(c.SetSource(first, 10), c.Assign(5, 10), c.SetSource(first, 11)); err != nil {
		t.Fatal(err)
	}
	again, _, err := OpenLeaderEpochCache(path)
	if err != nil {
		t.Fatal(err)
	}
	if id, ok := again.Source(); !ok || id != first || !slices.Equal(again.Entries(), []EpochEntry{{5, 10}}) {
		t.Errorf("read back %v, %t, %v", id, ok, again.Entries())
	}
	if err := again.SetSource(second, 12); err != nil {
		t.Fatal(err)
	}
	if id, _ := again.Source(); id != second || len(again.Entries()) != 0 {
		t.Errorf("bound to another topic: %v, %v", id, again.Entries())
	}
	if err := again.SetSource(SourceID{ClusterID: "two words"}, 0); err == nil {
		t.Error("a cluster id that the file could not hold was taken")
	}
	if err := errors.Join(again.Assign(1, 0), again.Clear()); err != nil {
		t.Fatal(err)
	}
	if id, ok := again.Source(); !ok || id != second {
		t.Errorf("Clear forgot the source: %v", id)
	}
}

func TestEpochReplace_TakesAHistoryWhole(t *testing.T) {
	c := newEpochs(t, EpochEntry{1, 0}, EpochEntry{2, 5})
	if err := c.Replace([]EpochEntry{{3, 0}, {5, 7}, {4, 8}}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.Entries(), []EpochEntry{{3, 0}, {4, 8}}) {
		t.Errorf("entries %v", c.Entries())
	}
	if err := c.Replace([]EpochEntry{{-1, 0}}); !errors.Is(err, ErrEpochNegative) || len(c.Entries()) != 2 {
		t.Errorf("a negative epoch: %v, %v", err, c.Entries())
	}
}

func TestEpochAssign_AllocatesNothingForTheLatestEpoch(t *testing.T) {
	c := newEpochs(t, EpochEntry{1, 0})
	offset := int64(1)
	n := testing.AllocsPerRun(100, func() {
		offset++
		if err := c.Assign(1, offset); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParseEpochFile(f *testing.F) {
	f.Add([]byte("0\n2\n0 0\n2 751864\n"))
	f.Add([]byte("source 5L6g3nShT-eMCtK--X86sw phIVGnTWSMKcT9jBWWtxDQ 6\n0\n1\n3 7\n"))
	f.Add([]byte("0\n3\n0 0\n2 5\n1 3\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, dropped, err := parseEpochFile(b)
		if err != nil || len(b) == 0 {
			return
		}
		again, d, err := parseEpochFile(h.append(nil))
		if err != nil || d != 0 || !slices.Equal(again.entries, h.entries) || (again.source == nil) != (h.source == nil) ||
			again.from != h.from {
			t.Errorf("accepted %q (%d dropped), written anew it reads as %v, %d, %v", b, dropped, again.entries, d, err)
		}
		for i := 1; i < len(h.entries); i++ {
			if a, b := h.entries[i-1], h.entries[i]; a.Epoch >= b.Epoch || a.StartOffset >= b.StartOffset {
				t.Errorf("%v before %v", a, b)
			}
		}
	})
}
