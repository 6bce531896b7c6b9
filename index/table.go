package index

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// pageSize is how many bytes a lookup reads at once when it has narrowed the search down that far.
const pageSize = 4096

// table is a file of entries of one size, and the entries appended since the last write.
//
// The file and the buffer are separate so that an append costs a copy and the disk sees one pwrite for all
// entries of a commit. Readers see both.
type table struct {
	path      string
	entrySize int

	// atomic
	content durable // of the file
	name    durable // of its directory, where the file was created

	// guarded by mu
	mu      sync.RWMutex
	file    *os.File // nil while parked
	buf     []byte   // entries behind the file's
	written int      // entries in the file
	closed  bool
}

// durable counts changes and which of them are on disk. A sync that began before a change does not count for it, and
// one that is still going on counts for nobody: two goroutines may sync, and each must see its own end.
type durable struct{ changes, synced atomic.Int64 }

// changed is called after a change was made.
func (d *durable) changed() { d.changes.Add(1) }

// sync calls do where there is something to sync.
func (d *durable) sync(do func() error) error {
	n := d.changes.Load()
	if d.synced.Load() >= n {
		return nil
	}
	if err := do(); err != nil {
		return err
	}
	for {
		before := d.synced.Load()
		if before >= n || d.synced.CompareAndSwap(before, n) {
			return nil
		}
	}
}

// openTable opens or creates the file and returns its size in bytes, which may be no multiple of entrySize.
func (t *table) openTable(path string, entrySize, flags int) (int64, error) {
	t.path, t.entrySize = path, entrySize
	_, statErr := os.Stat(path)
	f, err := os.OpenFile(path, os.O_RDWR|flags, 0o644)
	if err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, errors.Join(err, f.Close())
	}
	if errors.Is(statErr, os.ErrNotExist) {
		t.name.changed()
		t.content.changed()
	} else if flags&os.O_TRUNC != 0 {
		t.content.changed()
	}
	t.written = int(info.Size() / int64(entrySize))
	return info.Size(), f.Close()
}

// count returns the number of entries, those not yet written included.
func (t *table) count() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.written + len(t.buf)/t.entrySize
}

// append adds one entry to the buffer.
func (t *table) append(entry []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return fmt.Errorf("%s: %w", t.path, ErrClosed)
	}
	t.buf = append(t.buf, entry...)
	return nil
}

// reader returns a descriptor to read from and whether the caller has to close it.
func (t *table) reader() (*os.File, bool, error) {
	t.mu.RLock()
	f, closed := t.file, t.closed
	t.mu.RUnlock()
	if closed {
		return nil, false, fmt.Errorf("%s: %w", t.path, ErrClosed)
	}
	if f != nil {
		return f, false, nil
	}
	f, err := os.Open(t.path)
	return f, true, err
}

// readAt fills p from entry i on of the file, which must hold that many.
func (t *table) readAt(p []byte, i int) error {
	for {
		f, temporary, err := t.reader()
		if err != nil {
			return err
		}
		_, err = f.ReadAt(p, int64(i)*int64(t.entrySize))
		if temporary {
			err = errors.Join(err, f.Close())
		}
		if errors.Is(err, os.ErrClosed) {
			continue // parked by the owner between the two calls
		}
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: entry %d: file is shorter than its index: %w", t.path, i, ErrCorruptIndex)
		}
		return err
	}
}

// at copies entry i into p.
func (t *table) at(p []byte, i int) error {
	t.mu.RLock()
	written, size := t.written, t.entrySize
	if i < 0 || i >= written+len(t.buf)/size {
		n := written + len(t.buf)/size
		t.mu.RUnlock()
		return fmt.Errorf("%s: entry %d of %d: %w", t.path, i, n, os.ErrInvalid)
	}
	if i >= written {
		copy(p[:size], t.buf[(i-written)*size:])
		t.mu.RUnlock()
		return nil
	}
	t.mu.RUnlock()
	return t.readAt(p[:size], i)
}

// pages lends the buffers that lookups read a page of entries into.
var pages = sync.Pool{New: func() any { return new([pageSize]byte) }}

// floor copies the last entry whose key is at most target into p and returns its number, or -1 where there
// is none. Keys rise with the entry number.
func (t *table) floor(p []byte, target int64, key func([]byte) int64) (int, error) {
	size := t.entrySize
	t.mu.RLock()
	written := t.written
	if len(t.buf) > 0 && key(t.buf) <= target {
		i := floorIn(t.buf, size, target, key)
		copy(p[:size], t.buf[i*size:])
		t.mu.RUnlock()
		return written + i, nil
	}
	t.mu.RUnlock()

	page, ok := pages.Get().(*[pageSize]byte)
	if !ok {
		page = new([pageSize]byte)
	}
	defer pages.Put(page)
	perPage := pageSize / size
	low, high := 0, written // the answer is in [low-1, high)
	for high-low > perPage {
		mid := low + (high-low)/2
		if err := t.readAt(page[:size], mid); err != nil {
			return -1, err
		}
		if key(page[:]) <= target {
			low = mid
		} else {
			high = mid
		}
	}
	if high == low {
		return -1, nil
	}
	entries := page[:(high-low)*size]
	if err := t.readAt(entries, low); err != nil {
		return -1, err
	}
	i := floorIn(entries, size, target, key)
	if i < 0 {
		return -1, nil
	}
	copy(p[:size], entries[i*size:])
	return low + i, nil
}

// floorIn returns the number of the last entry in b whose key is at most target, or -1.
func floorIn(b []byte, size int, target int64, key func([]byte) int64) int {
	low, high := 0, len(b)/size
	for low < high {
		mid := low + (high-low)/2
		if key(b[mid*size:]) <= target {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low - 1
}

// each calls fn for every entry from number i on until it returns false. The slice is valid during the call.
func (t *table) each(i int, fn func(i int, entry []byte) (bool, error)) error {
	size := t.entrySize
	t.mu.RLock()
	written := t.written
	tail := append([]byte(nil), t.buf...)
	t.mu.RUnlock()
	page := make([]byte, pageSize/size*size)
	for i < written {
		n := min(written-i, len(page)/size)
		if err := t.readAt(page[:n*size], i); err != nil {
			return err
		}
		for j := range n {
			if more, err := fn(i+j, page[j*size:(j+1)*size:(j+1)*size]); err != nil || !more {
				return err
			}
		}
		i += n
	}
	for j := i - written; j < len(tail)/size; j++ {
		if more, err := fn(written+j, tail[j*size:(j+1)*size:(j+1)*size]); err != nil || !more {
			return err
		}
	}
	return nil
}

// writer returns the descriptor to write with, opening the file where it is parked. The file is not
// created: one that was removed under us stays removed.
func (t *table) writer(flags int) (*os.File, error) {
	t.mu.RLock()
	f, closed := t.file, t.closed
	t.mu.RUnlock()
	if closed {
		return nil, fmt.Errorf("%s: %w", t.path, ErrClosed)
	}
	if f != nil {
		return f, nil
	}
	f, err := os.OpenFile(t.path, os.O_RDWR|flags, 0o644)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.file = f
	t.mu.Unlock()
	return f, nil
}

// write puts the buffered entries into the file.
func (t *table) write(flags int) error {
	t.mu.RLock()
	pending := t.buf
	pos := int64(t.written) * int64(t.entrySize)
	t.mu.RUnlock()
	if len(pending) == 0 {
		return nil
	}
	f, err := t.writer(flags)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(pending, pos)
	t.content.changed()
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.written += len(pending) / t.entrySize
	t.buf = t.buf[:0]
	t.mu.Unlock()
	return nil
}

// cutTo drops every entry from number n on.
func (t *table) cutTo(n int) error {
	t.mu.Lock()
	if n >= t.written {
		t.buf = t.buf[:min(len(t.buf), (n-t.written)*t.entrySize)]
		t.mu.Unlock()
		return nil
	}
	t.written = n
	t.buf = t.buf[:0]
	t.mu.Unlock()
	f, err := t.writer(0)
	if err != nil {
		return err
	}
	err = f.Truncate(int64(n) * int64(t.entrySize))
	t.content.changed()
	return err
}

// sync makes what was written durable, and the file's name where it is new.
func (t *table) sync() error {
	if err := t.content.sync(t.syncFile); err != nil {
		return err
	}
	return t.name.sync(t.syncName)
}

func (t *table) syncName() error { return syncDir(filepath.Dir(t.path)) }

func (t *table) syncFile() error {
	for {
		f, temporary, err := t.reader()
		if err != nil {
			return err
		}
		err = f.Sync()
		if temporary {
			err = errors.Join(err, f.Close())
		}
		if errors.Is(err, os.ErrClosed) {
			continue // parked by the owner between the two calls
		}
		return err
	}
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// park writes what is buffered and closes the descriptor.
func (t *table) park(flags int) error {
	if err := t.write(flags); err != nil {
		return err
	}
	t.mu.Lock()
	f := t.file
	t.file = nil
	t.mu.Unlock()
	if f == nil {
		return nil
	}
	return f.Close()
}

// close parks the table for good.
func (t *table) close(flags int) error {
	err := t.park(flags)
	t.mu.Lock()
	t.closed = true
	f := t.file
	t.file = nil
	t.mu.Unlock()
	if f != nil { // the write failed: the descriptor goes all the same
		err = errors.Join(err, f.Close())
	}
	return err
}
