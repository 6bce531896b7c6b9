package replicator

import "sync"

// bell tells any number of waiters that something happened. The zero value is ready.
type bell struct {
	mu     sync.Mutex
	waited chan struct{} // guarded by mu; nil = nobody waits
}

// wait returns a channel that the next notify closes: take it, look, then wait on it. Any goroutine.
func (s *bell) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waited == nil {
		s.waited = make(chan struct{})
	}
	return s.waited
}

// notify wakes whoever waits. No allocation. Any goroutine.
func (s *bell) notify() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waited != nil {
		close(s.waited)
		s.waited = nil
	}
}
