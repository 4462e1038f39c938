package engine

import "time"

// A TopicCount is a topic's name and figures.
type TopicCount struct {
	Name string
	Counts
}

// Topics gives the figures of all topics, in the order in which they were made.
func (e *Engine) Topics() []TopicCount {
	e.mu.RLock()
	defer e.mu.RUnlock()
	out := make([]TopicCount, 0, len(e.m.topics.all))
	e.m.topics.each(func(t *Topic) {
		c := Counts{Overdue: e.stats.backlog.Load()}
		t.count(&c)
		out = append(out, TopicCount{t.Name, c})
	})
	return out
}

// Sizes is how many topics and groups there are.
func (e *Engine) Sizes() (topics, groups int) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return len(e.m.topics.names), e.m.groups.Len()
}

// LevelTable is the delays of the levels, from level 1 on. It is the caller's
// to read only.
func (e *Engine) LevelTable() []time.Duration { return e.o.Levels }

// MaxDelay is the longest delay that is accepted.
func (e *Engine) MaxDelay() time.Duration { return e.o.MaxDelay }
