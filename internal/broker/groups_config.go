package broker

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/duemq/duemq/internal/group"
	"github.com/duemq/duemq/internal/record"
)

// Attributes of a group. What is at its default is not kept, so that it follows
// the default.
const (
	attrMaxAttempts = "max_attempts"
	attrBackoff     = "backoff"
	attrInflightMax = "inflight_max"
	attrInvisible   = "invisible"
)

// ladderFrom is the delay level of the first retry, as RocketMQ has it: 10 s.
const ladderFrom = 3

// ladder is the back-off of a group that has none of its own: the delay levels
// from the third on.
func ladder(levels []time.Duration) []time.Duration {
	if len(levels) < ladderFrom {
		return levels
	}
	return levels[ladderFrom-1:]
}

// filled puts the defaults in.
func filled(c GroupConfig, levels []time.Duration) GroupConfig {
	if c.Start == 0 {
		c.Start = StartEarliest
	}
	if c.Start != StartAt {
		c.StartTime = 0
	}
	if c.MaxAttempts == 0 {
		c.MaxAttempts = DefaultMaxAttempts
	}
	if len(c.Backoff) == 0 {
		c.Backoff = ladder(levels)
	}
	if c.InflightMax == 0 {
		c.InflightMax = group.MaxInflight
	}
	if c.Invisible == 0 {
		c.Invisible = DefaultInvisible
	}
	return c
}

// check wants the defaults filled in.
func (c *GroupConfig) check(name string) error {
	switch {
	case !c.Start.Known():
		return fmt.Errorf("%w: group %q starts by policy %d, want earliest, latest or a time", ErrInvalid, name, c.Start)
	case c.StartTime < 0:
		return fmt.Errorf("%w: group %q starts at %d ms, want an instant from 1970 on", ErrInvalid, name, c.StartTime)
	case c.MaxAttempts < 1 || c.MaxAttempts > MaxAttempts:
		return fmt.Errorf("%w: group %q with %d attempts, want 1 to %d", ErrInvalid, name, c.MaxAttempts, MaxAttempts)
	case len(c.Backoff) > MaxBackoffs:
		return fmt.Errorf("%w: group %q with %d steps of back-off, limit %d", ErrInvalid, name, len(c.Backoff), MaxBackoffs)
	case c.InflightMax < 1 || c.InflightMax > group.MaxInflight:
		return fmt.Errorf("%w: group %q with %d messages in flight, want 1 to %d", ErrInvalid, name, c.InflightMax, group.MaxInflight)
	case c.Invisible < time.Millisecond || c.Invisible > MaxInvisible:
		return fmt.Errorf("%w: group %q with leases of %v, want 1ms to %v", ErrInvalid, name, c.Invisible, MaxInvisible)
	}
	for _, d := range c.Backoff {
		if d < 0 || d > MaxInvisible {
			return fmt.Errorf("%w: group %q with a back-off of %v, want 0 to %v", ErrInvalid, name, d, MaxInvisible)
		}
	}
	return nil
}

// attributes says what is not at its default, beside what is there of other
// names.
func (c *GroupConfig) attributes(levels []time.Duration, others []record.Property) []record.Property {
	out := slices.DeleteFunc(slices.Clone(others), func(p record.Property) bool {
		return slices.Contains([]string{attrMaxAttempts, attrBackoff, attrInflightMax, attrInvisible}, p.Name)
	})
	put := func(name, value string) { out = append(out, record.Property{Name: name, Value: value}) }
	if c.MaxAttempts != DefaultMaxAttempts {
		put(attrMaxAttempts, strconv.Itoa(c.MaxAttempts))
	}
	if !slices.Equal(c.Backoff, ladder(levels)) {
		steps := make([]string, len(c.Backoff))
		for i, d := range c.Backoff {
			steps[i] = d.String()
		}
		put(attrBackoff, strings.Join(steps, ","))
	}
	if c.InflightMax != group.MaxInflight {
		put(attrInflightMax, strconv.Itoa(c.InflightMax))
	}
	if c.Invisible != DefaultInvisible {
		put(attrInvisible, c.Invisible.String())
	}
	return out
}

// configOf reads how a group is configured. What cannot be read is at its
// default; nobody has written it here.
func configOf(g *record.Group, levels []time.Duration) GroupConfig {
	c := GroupConfig{Start: g.Start, StartTime: g.StartTime}
	for _, p := range g.Attributes {
		switch p.Name {
		case attrMaxAttempts:
			c.MaxAttempts, _ = strconv.Atoi(p.Value)
		case attrBackoff:
			c.Backoff = parseBackoff(p.Value)
		case attrInflightMax:
			c.InflightMax, _ = strconv.Atoi(p.Value)
		case attrInvisible:
			c.Invisible, _ = time.ParseDuration(p.Value)
		}
	}
	return filled(c, levels)
}

func parseBackoff(s string) (steps []time.Duration) {
	for step := range strings.SplitSeq(s, ",") {
		d, err := time.ParseDuration(step)
		if err != nil {
			return nil
		}
		steps = append(steps, d)
	}
	return steps
}

// backoff is how long a message waits after a try that failed, the first being
// 1. The last step repeats.
func (c *GroupConfig) backoff(attempt int) time.Duration {
	if len(c.Backoff) == 0 {
		return 0
	}
	return c.Backoff[min(max(attempt, 1), len(c.Backoff))-1]
}

func (c *GroupConfig) equal(d *GroupConfig) bool {
	return c.Start == d.Start && c.StartTime == d.StartTime && c.MaxAttempts == d.MaxAttempts &&
		slices.Equal(c.Backoff, d.Backoff) && c.InflightMax == d.InflightMax && c.Invisible == d.Invisible
}
