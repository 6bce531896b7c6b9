package psm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	snapshotSuffix  = ".snapshot"
	temporarySuffix = ".snapshot.tmp"
	nameDigits      = 20
)

// SnapshotName returns the name of the snapshot file of offset, without a directory.
func SnapshotName(offset int64) string {
	return fmt.Sprintf("%0*d%s", nameDigits, offset, snapshotSuffix)
}

// ParseSnapshotName returns the offset in the name of a snapshot file, and false for any other name.
func ParseSnapshotName(name string) (int64, bool) {
	digits, ok := strings.CutSuffix(name, snapshotSuffix)
	if !ok || len(digits) != nameDigits {
		return 0, false
	}
	offset, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || offset < 0 || digits[0] == '+' {
		return 0, false
	}
	return offset, true
}

// WriteSnapshot writes entries as the snapshot of offset into dir, replacing the file where there is one.
//
// The file is complete or absent after a crash of the process; with sync it is durable on return, without it
// SyncSnapshot makes it so later. Kafka: ProducerStateManager.takeSnapshot.
func WriteSnapshot(dir string, offset int64, entries []Entry, sync bool) error {
	b := AppendSnapshot(make([]byte, 0, snapshotHeaderSize+entrySize*len(entries)), entries)
	path := filepath.Join(dir, SnapshotName(offset))
	temporary := strings.TrimSuffix(path, snapshotSuffix) + temporarySuffix
	f, err := os.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	if sync {
		return syncPath(dir)
	}
	return nil
}

// SyncSnapshot makes the snapshot of offset in dir, and its name, durable. One that is not there (any more) is
// no error: a truncation may have removed it.
func SyncSnapshot(dir string, offset int64) error {
	err := syncPath(filepath.Join(dir, SnapshotName(offset)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, syncPath(dir))
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// ReadSnapshot reads the snapshot of offset in dir. Errors wrap ErrCorruptSnapshot where the bytes are at fault.
func ReadSnapshot(dir string, offset int64) ([]Entry, error) {
	path := filepath.Join(dir, SnapshotName(offset))
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	entries, err := DecodeSnapshot(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return entries, nil
}

// ListSnapshots returns the offsets of the snapshot files in dir, rising. Kafka:
// ProducerStateManager.loadSnapshots.
func ListSnapshots(dir string) ([]int64, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var offsets []int64
	for _, f := range files {
		if offset, ok := ParseSnapshotName(f.Name()); ok {
			offsets = append(offsets, offset)
		}
	}
	slices.Sort(offsets)
	return offsets, nil
}

// RemoveSnapshot removes the snapshot of offset in dir; one that is not there is no error.
func RemoveSnapshot(dir string, offset int64) error {
	err := os.Remove(filepath.Join(dir, SnapshotName(offset)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// LoadNewest loads the newest usable snapshot in dir whose offset is above logStart and at most end, and
// returns its offset. Where there is none the state is cleared, the map end offset becomes logStart, and
// found is false.
//
// Snapshots that cannot be used are removed, as are those outside (logStart, end]; bad holds why, one error
// (wrapping ErrCorruptSnapshot) for each that was damaged. Kafka: ProducerStateManager.truncateAndReload.
func (m *Manager) LoadNewest(dir string, logStart, end int64) (offset int64, found bool, bad []error, err error) {
	offsets, err := ListSnapshots(dir)
	if err != nil {
		return 0, false, nil, err
	}
	for _, offset := range slices.Backward(offsets) {
		if offset > logStart && offset <= end {
			loadErr := m.loadFile(dir, offset)
			if loadErr == nil {
				return offset, true, bad, removeAtOrBelow(dir, offsets, logStart)
			}
			if !errors.Is(loadErr, ErrCorruptSnapshot) {
				return 0, false, bad, loadErr
			}
			bad = append(bad, loadErr)
		}
		if err := RemoveSnapshot(dir, offset); err != nil {
			return 0, false, bad, err
		}
	}
	m.Clear()
	m.mapEnd = logStart
	return logStart, false, bad, nil
}

func (m *Manager) loadFile(dir string, offset int64) error {
	entries, err := ReadSnapshot(dir, offset)
	if err != nil {
		return err
	}
	if err := m.Load(entries, offset); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, SnapshotName(offset)), err)
	}
	return nil
}

func removeAtOrBelow(dir string, offsets []int64, logStart int64) error {
	for _, offset := range offsets {
		if offset > logStart {
			break
		}
		if err := RemoveSnapshot(dir, offset); err != nil {
			return err
		}
	}
	return nil
}

// RemoveStray removes the snapshots in dir that match none of bases, the segments' base offsets (rising), but
// for the newest one where that is at or above the last base; and what an interrupted write left behind.
// Kafka: ProducerStateManager.removeStraySnapshots.
func RemoveStray(dir string, bases []int64) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), temporarySuffix) {
			if err := os.Remove(filepath.Join(dir, f.Name())); err != nil {
				return err
			}
		}
	}
	offsets, err := ListSnapshots(dir)
	if err != nil {
		return err
	}
	for i, offset := range offsets {
		newest := i == len(offsets)-1 && (len(bases) == 0 || offset >= bases[len(bases)-1])
		if _, isBase := slices.BinarySearch(bases, offset); isBase || newest {
			continue
		}
		if err := RemoveSnapshot(dir, offset); err != nil {
			return err
		}
	}
	return nil
}
