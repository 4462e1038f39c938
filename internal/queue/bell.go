package queue

import "sync"

// A Bell wakes readers that wait for a topic to have something new. Its zero
// value is ready; it is safe for concurrent use.
type Bell struct {
	mu sync.Mutex
	ch chan struct{}
}

// Wait gives a channel that is closed at the next Ring. Ask for it before
// looking whether there is something to read.
func (b *Bell) Wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

// Ring wakes everybody who waits.
func (b *Bell) Ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}
