package fetchwire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// socket is a net.Conn whose reads and writes end when a context does and when the peer falls silent.
//
// No goroutine waits for the context: context.AfterFunc moves the deadline into the past. The registration is kept
// from call to call while the context stays the same, so a fetcher's loop allocates nothing for it.
type socket struct {
	net     net.Conn
	silence time.Duration // longest wait for a single read or write; set by the owner between calls

	mu          sync.Mutex // guards what follows; never held over a read or write
	ctx         context.Context
	unwatch     func() bool
	active      bool
	interrupted bool
}

// enter puts ctx in force until leave.
func (s *socket) enter(ctx context.Context) error {
	s.mu.Lock()
	if s.ctx != ctx {
		if s.unwatch != nil {
			s.unwatch()
		}
		s.ctx = ctx
		s.unwatch = context.AfterFunc(ctx, func() { s.interrupt(ctx) })
	}
	s.active, s.interrupted = true, false
	s.mu.Unlock()
	if ctx.Err() != nil { // it may have ended before active was set
		s.leave()
		return context.Cause(ctx)
	}
	return nil
}

func (s *socket) leave() {
	s.mu.Lock()
	s.active = false
	s.mu.Unlock()
}

// interrupt makes the read or write under way return, if ctx is still the one in force.
func (s *socket) interrupt(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active && s.ctx == ctx {
		s.interrupted = true
		_ = s.net.SetDeadline(time.Unix(1, 0)) // fails only on a closed connection, which has ended the call already
	}
}

// arm sets the deadline of the next read or write.
func (s *socket) arm() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.interrupted {
		return context.Cause(s.ctx)
	}
	return s.net.SetDeadline(time.Now().Add(s.silence))
}

// Read reads once, for at most the silence tolerated.
func (s *socket) Read(p []byte) (int, error) {
	if err := s.arm(); err != nil {
		return 0, err
	}
	n, err := s.net.Read(p)
	return n, s.explain(err)
}

// Write writes all of p.
func (s *socket) Write(p []byte) (int, error) {
	if err := s.arm(); err != nil {
		return 0, err
	}
	n, err := s.net.Write(p)
	return n, s.explain(err)
}

// explain names the context's cause, or how long the peer was silent, instead of a bare timeout.
func (s *socket) explain(err error) error {
	if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.interrupted {
		return context.Cause(s.ctx)
	}
	return fmt.Errorf("silent for %v: %w", s.silence, err)
}

// close closes the connection and forgets the context. Any goroutine, any number of times.
func (s *socket) close() error {
	s.mu.Lock()
	if s.unwatch != nil {
		s.unwatch()
		s.unwatch = nil
		s.ctx = nil
	}
	s.mu.Unlock()
	return s.net.Close()
}
