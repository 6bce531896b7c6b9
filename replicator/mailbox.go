package replicator

import "sync"

// mailbox is a queue whose sender never waits. It is bounded by what is sent through it: at most a few messages for
// each partition are under way at any time.
type mailbox[T any] struct {
	ready chan struct{} // one slot: says that there is something to take

	// guarded by mu
	mu    sync.Mutex
	queue []T
}

func newMailbox[T any]() *mailbox[T] { return &mailbox[T]{ready: make(chan struct{}, 1)} }

func (m *mailbox[T]) put(v T) {
	m.mu.Lock()
	m.queue = append(m.queue, v)
	m.mu.Unlock()
	m.wake()
}

func (m *mailbox[T]) wake() {
	select {
	case m.ready <- struct{}{}:
	default:
	}
}

// take returns what is queued and keeps spare's room for what comes next.
func (m *mailbox[T]) take(spare []T) []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.queue) == 0 {
		return nil
	}
	out := m.queue
	m.queue = spare[:0]
	return out
}

func (m *mailbox[T]) empty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.queue) == 0
}
