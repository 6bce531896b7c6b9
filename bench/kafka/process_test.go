package kafka

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// envChild makes the test binary the process that is killed by TestSpawner_ChildrenDieWithTheProcess.
const envChild = "SEGMIRROR_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(envChild) == "" {
		os.Exit(m.Run())
	}
	cmd := exec.Command("sleep", "600")
	if err := newSpawner().start(cmd); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(cmd.Process.Pid)
	select {} // until it is killed
}

// TestSpawner_ChildrenDieWithTheProcess kills a process with SIGKILL and wants what it started to end with it.
func TestSpawner_ChildrenDieWithTheProcess(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self)
	parent.Env = append(os.Environ(), envChild+"=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("the started process is not there: %v", err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	parent.Wait() // its error is that it was killed
	err = poll(t.Context(), "the started process to end", func() (bool, error) {
		return gone(pid), nil
	})
	if err != nil {
		t.Error(err)
	}
}

// gone says whether a process has ended; one that nobody has waited for yet counts.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// TestLockFile_AdmitsOneAndSaysWhatItWaitsFor takes a lock twice.
func TestLockFile_AdmitsOneAndSaysWhatItWaitsFor(t *testing.T) {
	path := t.TempDir() + "/lock"
	unlock, err := lockFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() {
		again, err := lockFile(t.Context(), path)
		if err == nil {
			again()
		}
		waited <- err
	}()
	select {
	case err := <-waited:
		t.Fatalf("a second holder got the lock: %v", err)
	case <-time.After(3 * pollInterval):
	}
	unlock()
	if err := <-waited; err != nil {
		t.Error(err)
	}
}

// TestSlots_BoundWhatOneProcessRuns counts clusters and brokers without starting any.
func TestSlots_BoundWhatOneProcessRuns(t *testing.T) {
	s := slots{clusters: 1, brokers: 2, unlock: func() {}}
	if err := s.acquire(t.Context(), 2); !errors.Is(err, ErrTooMany) {
		t.Errorf("a fourth broker: %v", err)
	}
	if err := s.acquire(t.Context(), 1); err != nil {
		t.Errorf("a third broker: %v", err)
	}
	if err := s.acquire(t.Context(), 0); !errors.Is(err, ErrTooMany) {
		t.Errorf("a third cluster: %v", err)
	}
}
