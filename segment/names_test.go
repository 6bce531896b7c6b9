package segment

import (
	"errors"
	"strings"
	"testing"
)

const hex32 = "0123456789abcdef0123456789abcdef"

func TestParseDirName_TellsPartitionsFromEverythingElse(t *testing.T) {
	for name, want := range map[string]struct {
		tp    TopicPartition
		state DirState
	}{
		"orders-0":                          {TopicPartition{"orders", 0}, DirNormal},
		"-crypto-0":                         {TopicPartition{"-crypto", 0}, DirNormal},
		"t--1":                              {TopicPartition{"t-", 1}, DirNormal},
		"topic-007":                         {TopicPartition{"topic", 7}, DirNormal},
		"delete-0":                          {TopicPartition{"delete", 0}, DirNormal},
		"a.b-2147483647":                    {TopicPartition{"a.b", 2147483647}, DirNormal},
		"t-1." + hex32 + "-delete":          {TopicPartition{"t", 1}, DirDelete},
		"a.b-1." + hex32 + "-stray":         {TopicPartition{"a.b", 1}, DirStray},
		"t-1." + hex32 + "-future":          {TopicPartition{"t", 1}, DirFuture},
		"__cluster_metadata-0":              {TopicPartition{"__cluster_metadata", 0}, DirNormal},
		strings.Repeat("a", 249) + "-99999": {TopicPartition{strings.Repeat("a", 249), 99999}, DirNormal},
	} {
		tp, state, err := ParseDirName(name)
		if err != nil || tp != want.tp || state != want.state {
			t.Errorf("%s: %v, %v, %v", name, tp, state, err)
		}
	}
	for _, name := range []string{
		"lost+found", "noDash", "topic-x", "-0", "topic-2147483648", "x-delete", "", "-", "t-", "t-+1", "t-0-delete",
		"t-0.-delete", "t 0.x-stray",
	} {
		if tp, _, err := ParseDirName(name); !errors.Is(err, ErrNotPartition) {
			t.Errorf("%q parses as %v, %v", name, tp, err)
		}
	}
}

func TestDirName_FitsAFileSystem(t *testing.T) {
	long := TopicPartition{Topic: strings.Repeat("a", 249), Partition: 99999}
	for state := range dirStateSuffixes {
		name := DirName(long, state, hex32)
		tp, parsed, err := ParseDirName(name)
		if err != nil || parsed != state || tp.Partition != 99999 || !strings.HasPrefix(long.Topic, tp.Topic) {
			t.Errorf("%v: %q parses as %v, %v, %v", state, name, tp, parsed, err)
		}
		if len(name) > maxDirNameSize && state != DirFuture {
			t.Errorf("%v: %d bytes", state, len(name))
		}
	}
	if name := DirName(TopicPartition{"t", 0}, DirDelete, hex32); name != "t-0."+hex32+"-delete" {
		t.Errorf("short name is %q", name)
	}
}

func TestSegmentFileName_IsTwentyDigits(t *testing.T) {
	if name := segmentFileName(751864, logSuffix); name != "00000000000000751864.log" {
		t.Errorf("name is %q", name)
	}
	for name, want := range map[string]int64{
		"00000000000000751864.log": 751864, "00000000000000000003.log.swap": 3, "3.log": -1, "foo.log": -1,
		"+0000000000000000003.log": -1, "99999999999999999999.log": -1, "00000000000000000003": -1,
	} {
		base, suffix, ok := parseSegmentFileName(name)
		if ok != (want >= 0) || ok && (base != want || segmentFileName(base, suffix) != name) {
			t.Errorf("%s: %d, %q, %t", name, base, suffix, ok)
		}
	}
}
