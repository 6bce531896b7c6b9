package compare

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Dir reads the batches of a partition directory from its .log files, in the order of their base offsets.
type Dir struct {
	path  string
	names []string // the segments still to read
	file  *os.File // the one being read, nil between segments
	in    *bufio.Reader
	left  int64 // bytes of it that are not read yet
	pos   int64
	batch []byte
}

// OpenDir lists the segments of a partition directory. A directory without any is an empty log. Close it after use.
func OpenDir(path string) (*Dir, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	d := &Dir{path: path, in: bufio.NewReaderSize(nil, 256<<10)}
	for _, entry := range entries {
		base, isLog := strings.CutSuffix(entry.Name(), ".log")
		if !isLog {
			continue
		}
		if _, err := strconv.ParseInt(base, 10, 64); err != nil || len(base) != 20 {
			return nil, fmt.Errorf("%s: a segment's name is its base offset in 20 digits", filepath.Join(path, entry.Name()))
		}
		d.names = append(d.names, entry.Name())
	}
	slices.Sort(d.names)
	return d, nil
}

// Next returns the next batch, valid until the next call, or io.EOF.
//
// A torn or corrupt batch, also a zero-filled tail, is an error that wraps ErrBadBatch and names the file and position.
func (d *Dir) Next() (Batch, error) {
	for {
		if d.file == nil {
			if len(d.names) == 0 {
				return nil, io.EOF
			}
			if err := d.openSegment(); err != nil {
				return nil, err
			}
		}
		if d.left > 0 {
			return d.readBatch()
		}
		if err := d.Close(); err != nil {
			return nil, err
		}
	}
}

func (d *Dir) openSegment() error {
	file, err := os.Open(filepath.Join(d.path, d.names[0]))
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	d.names = d.names[1:]
	d.file, d.left, d.pos = file, info.Size(), 0
	d.in.Reset(file)
	return nil
}

func (d *Dir) readBatch() (Batch, error) {
	fault := func(err error) error {
		return fmt.Errorf("%s: position %d: %w", d.file.Name(), d.pos, err)
	}
	if d.left < headerSize {
		return nil, fault(fmt.Errorf("%w: %d bytes are left", ErrBadBatch, d.left))
	}
	head, err := d.in.Peek(overhead)
	if err != nil {
		return nil, fault(err)
	}
	size := batchSize(head)
	if size < headerSize || size > d.left {
		return nil, fault(fmt.Errorf("%w: %d bytes long where %d are left", ErrBadBatch, size, d.left))
	}
	d.batch = slices.Grow(d.batch[:0], int(size))[:size]
	if _, err := io.ReadFull(d.in, d.batch); err != nil {
		return nil, fault(err)
	}
	if err := check(d.batch); err != nil {
		return nil, fault(err)
	}
	d.left -= size
	d.pos += size
	return d.batch, nil
}

// Close closes the segment that is open. A Dir that Next has read to io.EOF has none.
func (d *Dir) Close() error {
	if d.file == nil {
		return nil
	}
	file := d.file
	d.file = nil
	return file.Close()
}
