package group

import (
	"sync"

	"github.com/duemq/duemq/internal/record"
)

// Locks say which client of a group may consume a queue in order: RocketMQ's
// LOCK_BATCH_MQ. They are memory, like leases, and end by themselves; a client
// renews its own. Instants are monotonic milliseconds. The zero value is ready,
// and safe for concurrent use.
type Locks struct {
	mu    sync.Mutex
	held  map[place]lock
	calls int // of Lock until the next sweep
}

type lock struct {
	client string
	until  int64
}

// sweepCalls is after how many calls of Lock expired locks are swept at the
// soonest; if a sweep leaves more, as many calls go by until the next, so that
// it costs a call no more than its share.
const sweepCalls = 64

// Lock gives a client the queue until an instant, unless another has it now.
// Who has it already goes on with the new instant.
func (l *Locks) Lock(g record.GroupNumber, q record.QueueNumber, client string, now, until int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep(now)
	at := place{g, q}
	if h, ok := l.held[at]; ok && h.client != client && h.until > now {
		return false
	}
	if l.held == nil {
		l.held = make(map[place]lock)
	}
	l.held[at] = lock{client, until}
	return true
}

// sweep drops locks that ended, now and then. The caller holds the mutex.
func (l *Locks) sweep(now int64) {
	if l.calls--; l.calls > 0 {
		return
	}
	for at, h := range l.held {
		if h.until <= now {
			delete(l.held, at)
		}
	}
	l.calls = max(sweepCalls, len(l.held))
}

// Unlock ends a client's lock before its time, and says whether it had one.
func (l *Locks) Unlock(g record.GroupNumber, q record.QueueNumber, client string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := place{g, q}
	h, ok := l.held[at]
	if !ok || h.client != client {
		return false
	}
	delete(l.held, at)
	return true
}

// Holder is the client that has a queue now; ok is false if none does.
func (l *Locks) Holder(g record.GroupNumber, q record.QueueNumber, now int64) (client string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.held[place{g, q}]
	if !ok || h.until <= now {
		return "", false
	}
	return h.client, true
}
