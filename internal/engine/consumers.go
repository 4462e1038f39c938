package engine

import (
	"github.com/duemq/duemq/internal/group"
	"github.com/duemq/duemq/internal/record"
)

// GroupNow finds a group and how it is configured now; nil if there is none of
// that name. What the group itself says is read under the lock only. The
// attributes are the caller's to read.
func (e *Engine) GroupNow(name string) (*group.Group, record.Group) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	g := e.m.groups.Named(name)
	if g == nil {
		return nil, record.Group{}
	}
	return g, g.Group
}

// GroupsNow tells how all groups are configured now, in the order in which they
// were made.
func (e *Engine) GroupsNow() []record.Group {
	e.mu.RLock()
	defer e.mu.RUnlock()
	all := e.m.groups.All()
	out := make([]record.Group, len(all))
	for i, g := range all {
		out[i] = g.Group
	}
	return out
}

// GroupQueues gives the queues in which a group has begun, in order.
func (e *Engine) GroupQueues(g *group.Group) []record.QueueNumber {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return g.Queues()
}
