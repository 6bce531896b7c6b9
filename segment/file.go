package segment

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// file is the seam between a Log and the operating system: what a .log file is asked to do. It has one production
// implementation, osFile, which Config.AfterSync may watch; fault tests record and fail its calls.
type file interface {
	io.ReaderAt
	io.WriterAt
	Size() (int64, error)
	Reserve(size int64) error // allocates blocks up to size and grows the file to it
	Truncate(size int64) error
	Sync() error
	Map(size int64) ([]byte, error) // shared read-write mapping of the first size bytes, which may lie past the end
	MapRead(pos, size int64) ([]byte, error)
	Fd() uintptr
	Close() error
}

// openFileFunc opens path for reading and writing, creating it when create is set.
type openFileFunc func(path string, create bool) (file, error)

// osFile is a real file.
type osFile struct{ *os.File }

// openOSFile is the production openFileFunc.
func openOSFile(path string, create bool) (file, error) { return openMode(path, create, 0o644) }

// openPrivateFile is openOSFile for a log with secrets; a file that was open to others is closed to them.
func openPrivateFile(path string, create bool) (file, error) {
	f, err := openMode(path, create, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.(osFile).Chmod(0o600); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func openMode(path string, create bool, mode fs.FileMode) (file, error) {
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(path, flags, mode)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// observedFile tells of its syncs.
type observedFile struct {
	file
	path  string
	after func(path string)
}

// openObserved opens files as open does, and tells of their syncs.
func openObserved(open openFileFunc, after func(path string)) openFileFunc {
	return func(path string, create bool) (file, error) {
		f, err := open(path, create)
		if err != nil {
			return nil, err
		}
		return observedFile{file: f, path: path, after: after}, nil
	}
}

func (f observedFile) Sync() error {
	if err := f.file.Sync(); err != nil {
		return err
	}
	f.after(f.path)
	return nil
}

// Size is the file's length in bytes.
func (f osFile) Size() (int64, error) {
	fi, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}

// Reserve gives every byte below size a block of its own, so that touching it later cannot fail for want of room.
// Where that fails the file may have grown in part; the caller cuts it back. ErrNoSpace is a full disk, quota or limit.
func (f osFile) Reserve(size int64) error {
	cur, err := f.Size()
	if err != nil || size <= cur {
		return err
	}
	for {
		err = unix.Fallocate(int(f.Fd()), 0, cur, size-cur)
		if err != unix.EINTR { //nolint:errorlint // a bare errno from the system call
			break
		}
	}
	switch err { //nolint:errorlint // a bare errno from the system call
	case nil:
		return nil
	case unix.ENOSPC, unix.EDQUOT, unix.EFBIG:
		return fmt.Errorf("%w: %s to %d bytes: %w", ErrNoSpace, f.Name(), size, err)
	default:
		return fmt.Errorf("%s: reserving %d bytes: %w", f.Name(), size, err)
	}
}

// Map maps the first size bytes for reading and writing. Bytes past the reserved ones must not be touched.
func (f osFile) Map(size int64) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

// MapRead maps [pos, pos+size) for reading; pos must be a multiple of the page size.
func (f osFile) MapRead(pos, size int64) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), pos, int(size), unix.PROT_READ, unix.MAP_SHARED)
}
