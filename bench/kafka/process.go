package kafka

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// spawner starts processes that die with this one. The kernel ties the parent-death signal to the thread that forked,
// so all of a cluster's processes are started by one goroutine that keeps its thread until the spawner is closed.
type spawner struct {
	work chan func()
	done chan struct{}
}

func newSpawner() *spawner {
	s := &spawner{work: make(chan func()), done: make(chan struct{})}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(s.done)
		for f := range s.work {
			f()
		}
	}()
	return s
}

// start starts cmd in a process group of its own, so that a Ctrl-C at the terminal does not reach it before its owner
// stops it in order.
func (s *spawner) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	errs := make(chan error, 1)
	s.work <- func() { errs <- cmd.Start() }
	return <-errs
}

// close ends the spawner's goroutine and waits for it. Its processes must have ended.
func (s *spawner) close() {
	close(s.work)
	<-s.done
}

// process is one running JVM.
type process struct {
	cmd    *exec.Cmd
	out    *os.File
	exited chan struct{}
	err    error // of Wait; read after exited is closed
}

// startProcess runs cmd with stdout and stderr appended to the file out.
func startProcess(s *spawner, cmd *exec.Cmd, out string) (*process, error) {
	f, err := os.OpenFile(out, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = f, f
	if err := s.start(cmd); err != nil {
		f.Close()
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	p := &process{cmd: cmd, out: f, exited: make(chan struct{})}
	go func() { // ends with the process; everyone who ends it waits for exited
		defer close(p.exited)
		p.err = cmd.Wait()
		f.Close()
	}()
	return p, nil
}

// signal sends sig; a process that has already ended is no error.
func (p *process) signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %v to process %d: %w", sig, p.cmd.Process.Pid, err)
	}
	return nil
}

// alive says whether the process has not ended yet.
func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}
