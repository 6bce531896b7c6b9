package segment

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"segmirror/psm"
)

// maxCutNames is how many cuts at one place are told apart by name.
const maxCutNames = 1000

// dropFrom takes the segments from list[i] on out of the log: between them and what is left something is missing.
func (ld *loader) dropFrom(i int) error {
	for j := i; j < len(ld.list); j++ {
		s := ld.list[j]
		cut := Cut{
			File: filepath.Base(s.logPath()), ToPos: s.size.Load(), Offset: s.base,
			Why: fmt.Errorf("%w: follows a cut at offset %d", ErrOffsetsOutOfOrder, ld.next),
		}
		if cut.ToPos > 0 {
			if err := ld.keep(&cut, s); err != nil {
				return err
			}
		}
		ld.report.Cuts = append(ld.report.Cuts, cut)
	}
	for _, s := range slices.Backward(ld.list[i:]) {
		if err := errors.Join(s.remove(), psm.RemoveSnapshot(ld.l.dir, s.base)); err != nil {
			return err
		}
	}
	ld.list = ld.list[:i]
	return syncDir(ld.l.dir)
}

// keep copies the bytes of cut into CutDir, at most CutMaxBytes, durably, and notes where. The name says
// topic-partition, offset, file and position.
func (ld *loader) keep(cut *Cut, s *Segment) (err error) {
	dir, limit := ld.l.cfg.CutDir, ld.l.cfg.CutMaxBytes
	if dir == "" || limit <= 0 {
		return nil
	}
	if err := makeDir(dir); err != nil {
		return fmt.Errorf("keeping what is cut: %w", err)
	}
	out, err := createCut(dir, fmt.Sprintf("%s-offset-%d-%s-pos-%d", ld.l.tp, cut.Offset, cut.File, cut.FromPos))
	if err != nil {
		return fmt.Errorf("keeping what is cut: %w", err)
	}
	f, err := s.acquire()
	if err != nil {
		return errors.Join(err, out.Close())
	}
	size := min(cut.ToPos-cut.FromPos, limit)
	n, err := io.Copy(out, io.NewSectionReader(f, cut.FromPos, size))
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close(), f.release(), syncDir(dir)); err != nil {
		// Half a copy has no use, and a log is opened again and again while the disk is full.
		return fmt.Errorf("keeping what is cut: %w", errors.Join(err, os.Remove(out.Name())))
	}
	cut.Kept, cut.KeptBytes = out.Name(), n
	return nil
}

// createCut makes a file in dir that was not there, named name or name with a number.
func createCut(dir, name string) (*os.File, error) {
	path := filepath.Join(dir, name)
	for i := range maxCutNames {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, os.ErrExist) {
			return f, err
		}
		path = filepath.Join(dir, fmt.Sprintf("%s.%d", name, i+1))
	}
	return nil, fmt.Errorf("%s: %w", path, os.ErrExist)
}
