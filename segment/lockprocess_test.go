package segment

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLockProcess is another process, which takes .lock as a JVM does: with a POSIX record lock.
func TestLockProcess(t *testing.T) {
	path := os.Getenv("SEGMENT_LOCK_PATH")
	if path == "" {
		t.Skip("run by the test of locks between processes")
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lock); err != nil {
		fmt.Println("refused")
		return
	}
	fmt.Println("taken")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil { // until the test is done with it
		t.Fatal(err)
	}
}

func TestLock_AndAPosixLockOfAnotherProcessExcludeEachOther(t *testing.T) {
	dir := t.TempDir()
	other := func() (answer string, end func()) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestLockProcess$", "-test.count=1")
		cmd.Env = append(os.Environ(), "SEGMENT_LOCK_PATH="+filepath.Join(dir, lockFileName))
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return line, func() { _ = errors.Join(in.Close(), cmd.Wait()) }
	}
	d, err := OpenLogDir(dir, Identity{ClusterID: "here", NodeID: 1})
	if err != nil {
		t.Fatal(err)
	}
	// Somebody in this process looks at the file: a POSIX lock would be lost with that.
	f, err := os.Open(filepath.Join(dir, lockFileName))
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	answer, end := other()
	end()
	if answer != "refused\n" {
		t.Errorf("beside an open log directory: %q", answer)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	answer, end = other()
	if answer != "taken\n" {
		t.Errorf("after Close: %q", answer)
	}
	if _, err := OpenLogDir(dir, Identity{ClusterID: "here", NodeID: 1}); !errors.Is(err, ErrLocked) {
		t.Errorf("beside another process: %v", err)
	}
	end()
	if d, err = OpenLogDir(dir, Identity{ClusterID: "here", NodeID: 1}); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
