package segment

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// fileName is a file of a partition directory whose name begins with an offset.
type fileName struct {
	name   string
	offset int64
	kind   string // suffix of the finished file: .log, .index, .timeindex, .txnindex, .snapshot
	state  string // "", .deleted, .cleaned or .swap
}

// parseFileName splits a name; ok is false for files that are no segment's. An error is a name that would stop a
// broker.
func parseFileName(name string) (f fileName, ok bool, err error) {
	f = fileName{name: name}
	rest := name
	for _, state := range []string{".deleted", ".cleaned", ".swap"} {
		if cut, found := strings.CutSuffix(rest, state); found {
			rest, f.state = cut, state
			break
		}
	}
	f.kind = filepath.Ext(rest)
	switch f.kind {
	case ".log", ".index", ".timeindex", ".txnindex", ".snapshot":
	default:
		return f, false, nil
	}
	digits := strings.TrimSuffix(rest, f.kind)
	f.offset, err = strconv.ParseInt(digits, 10, 64)
	if err != nil || len(digits) != 20 || f.offset < 0 || digits[0] == '+' {
		if f.state == ".deleted" {
			return f, true, nil
		}
		return f, false, fmt.Errorf("%s: a file of this kind is named by an offset of 20 digits; a broker stops at it", name)
	}
	return f, true, nil
}

// sweep does what a broker does first on load: removes leftovers, finishes swaps that were ready, and returns the
// names of what is left. Kafka: LogLoader.removeTempFilesAndCollectSwapFiles and steps 2 to 5 of load.
func (ld *loader) sweep() ([]fileName, error) {
	names, err := ld.names()
	if err != nil {
		return nil, err
	}
	if names, err = ld.finishSwaps(names); err != nil {
		return nil, err
	}
	logs := make(map[int64]bool)
	for _, f := range names {
		if f.kind == ".log" {
			logs[f.offset] = true
		}
	}
	kept := names[:0]
	for _, f := range names {
		if f.kind != ".snapshot" && !logs[f.offset] {
			if err := ld.removeFile(f.name, "an index without its .log"); err != nil {
				return nil, err
			}
			continue
		}
		kept = append(kept, f)
	}
	return kept, nil
}

// names lists the directory's offset-named files, sorted, after removing .deleted files and interrupted writes.
func (ld *loader) names() ([]fileName, error) {
	entries, err := os.ReadDir(ld.l.dir)
	if err != nil {
		return nil, err
	}
	var names []fileName
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".tmp") && e.Type().IsRegular() {
			if err := os.Remove(filepath.Join(ld.l.dir, e.Name())); err != nil {
				return nil, err
			}
			continue
		}
		f, ok, err := parseFileName(e.Name())
		if err != nil {
			return nil, err
		}
		if !ok || e.IsDir() {
			continue
		}
		if f.state == ".deleted" {
			if err := ld.removeFile(f.name, "left behind by a deletion"); err != nil {
				return nil, err
			}
			continue
		}
		names = append(names, f)
	}
	slices.SortFunc(names, func(a, b fileName) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), strings.Compare(a.name, b.name))
	})
	return names, nil
}

// finishSwaps removes .cleaned files and the swaps of a split they belong to, and puts finished swaps in place of the
// segments they cover.
func (ld *loader) finishSwaps(names []fileName) ([]fileName, error) {
	firstCleaned := int64(-1)
	for _, f := range names {
		if f.state == ".cleaned" && firstCleaned < 0 {
			firstCleaned = f.offset
		}
	}
	var swaps, plain []fileName
	from, to := int64(-1), int64(-1)
	for _, f := range names {
		switch {
		case f.state == ".cleaned", f.state == ".swap" && firstCleaned >= 0 && f.offset >= firstCleaned:
			if err := ld.removeFile(f.name, "an unfinished rewrite"); err != nil {
				return nil, err
			}
		case f.state == ".swap":
			swaps = append(swaps, f)
			if f.kind != ".log" {
				continue
			}
			next, err := ld.swapEnd(f)
			if err != nil {
				return nil, err
			}
			if from < 0 {
				from = f.offset
			}
			to = max(to, next)
		default:
			plain = append(plain, f)
		}
	}
	if len(swaps) == 0 {
		return plain, nil
	}
	kept := make([]fileName, 0, len(names))
	for _, f := range plain {
		if from >= 0 && f.offset >= from && f.offset < to {
			if err := ld.removeFile(f.name, "replaced by a finished .swap"); err != nil {
				return nil, err
			}
			continue
		}
		kept = append(kept, f)
	}
	for _, f := range swaps {
		final := strings.TrimSuffix(f.name, ".swap")
		if err := os.Rename(filepath.Join(ld.l.dir, f.name), filepath.Join(ld.l.dir, final)); err != nil {
			return nil, err
		}
		ld.note("%s renamed to %s", f.name, final)
		kept = append(kept, fileName{name: final, offset: f.offset, kind: f.kind})
	}
	slices.SortFunc(kept, func(a, b fileName) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), strings.Compare(a.name, b.name))
	})
	return kept, syncDir(ld.l.dir)
}

// swapEnd is the offset after the last whole batch of a .log.swap file.
func (ld *loader) swapEnd(f fileName) (int64, error) {
	log, err := ld.l.cfg.open(filepath.Join(ld.l.dir, f.name), false)
	if err != nil {
		return 0, err
	}
	size, err := log.Size()
	if err != nil {
		return 0, errors.Join(err, log.Close())
	}
	scan := newHeadScanner(log, 0, size)
	defer scan.close()
	next := f.offset
	for {
		m, err := scan.next()
		if err != nil {
			return next, log.Close()
		}
		next = m.LastOffset + 1
	}
}

func (ld *loader) removeFile(name, why string) error {
	ld.note("%s removed: %s", name, why)
	return os.Remove(filepath.Join(ld.l.dir, name))
}
