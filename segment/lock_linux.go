package segment

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrLocked says that a broker, an agent or a tool that writes has the log directory.
var ErrLocked = errors.New("log directory is in use by another process")

// lockDir takes the log directory's .lock. ErrLocked names the file.
//
// The lock is an open-file-description lock: it conflicts with the POSIX record lock a broker holds on the same file,
// and, unlike that, is not lost when somebody in this process opens and closes the file.
// Kafka: LogManager.lockLogDirs, FileLock.tryLock.
func lockDir(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockFileName)
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return nil, err
		}
		lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
		if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock); err != nil {
			if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
				err = ErrLocked
			}
			return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
		}
		same, err := sameFile(f, path)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if same {
			return f, nil
		}
		// Its owner removed the file between our open and its unlock: what we hold locks nobody out.
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
}

func sameFile(f *os.File, path string) (bool, error) {
	held, err := f.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(held, named), err
}

// unlockDir removes the lock file, as an orderly stop of a broker does, and gives the lock up.
func unlockDir(f *os.File) error {
	return errors.Join(os.Remove(f.Name()), f.Close())
}
