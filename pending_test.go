package duemq_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/duemq/duemq"
)

// pending reads a whole listing.
func pending(t *testing.T, q *duemq.Queue, filters ...duemq.Filter) []*duemq.Message {
	t.Helper()
	var all []*duemq.Message
	for m, err := range q.Pending(t.Context(), filters...) {
		if err != nil {
			t.Fatalf("Pending: %v", err)
		}
		all = append(all, m)
	}
	return all
}

// TestPendingInOrder: more than one page, in the order of falling due, also from
// the disk.
func TestPendingInOrder(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		const n = 2500
		batch(t, q.Queue, numbered(n, func(i int, m *duemq.Message) {
			m.After = time.Duration(1+(i*7919)%n) * time.Second
			m.Key = strconv.Itoa((i * 7919) % n)
		}))
		for _, restarted := range []bool{false, true} {
			if restarted {
				q.Restart()
			}
			all := pending(t, q.Queue)
			if len(all) != n {
				t.Fatalf("restarted %v: %d messages, want %d", restarted, len(all), n)
			}
			for i, m := range all {
				if m.Key != strconv.Itoa(i) || m.State != duemq.StateWaiting || m.Body != nil {
					t.Fatalf("restarted %v: message %d is %+v", restarted, i, m)
				}
			}
		}
	})
}

func TestPendingFilters(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		start := q.Now()
		for i := range 10 {
			tag := []string{"even", "odd"}[i%2]
			for _, name := range []string{topic, "other"} {
				if _, err := q.Send(t.Context(), name, nil, duemq.After(time.Duration(i+1)*time.Minute), duemq.Tag(tag), duemq.Key(name[:1]+strconv.Itoa(i))); err != nil {
					t.Fatalf("Send: %v", err)
				}
			}
		}
		q.Advance(30 * time.Second)
		at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
		for _, c := range []struct {
			name    string
			filters []duemq.Filter
			want    string
		}{
			{"all of a topic, first three", []duemq.Filter{duemq.Topic(topic), duemq.DueBefore(at(4))}, "[o0 o1 o2]"},
			{"from", []duemq.Filter{duemq.Topic("other"), duemq.DueFrom(at(9))}, "[o8 o9]"},
			{"from and before", []duemq.Filter{duemq.DueFrom(at(2)), duemq.DueBefore(at(3))}, "[o1 o1]"},
			{"finer than a millisecond", []duemq.Filter{duemq.Topic(topic), duemq.DueFrom(at(9).Add(1)), duemq.DueBefore(at(10).Add(1))}, "[o9]"},
			{"within", []duemq.Filter{duemq.Topic(topic), duemq.Within(2 * time.Minute)}, "[o0 o1]"},
			{"within nothing", []duemq.Filter{duemq.Within(0)}, "[]"},
			{"before everything", []duemq.Filter{duemq.DueBefore(time.Time{})}, "[]"},
			{"tag", []duemq.Filter{duemq.Topic(topic), duemq.Tagged("odd")}, "[o1 o3 o5 o7 o9]"},
			{"tag and before", []duemq.Filter{duemq.Topic(topic), duemq.Tagged("odd"), duemq.DueBefore(at(4))}, "[o1]"},
			{"no such tag", []duemq.Filter{duemq.Tagged("none")}, "[]"},
		} {
			keys := []string{}
			for _, m := range pending(t, q.Queue, c.filters...) {
				keys = append(keys, m.Key)
			}
			if got := fmt.Sprint(keys); got != c.want {
				t.Errorf("%s: %s, want %s", c.name, got, c.want)
			}
			if n, err := q.Count(t.Context(), c.filters...); err != nil || n != int64(len(keys)) {
				t.Errorf("%s: Count %d, %v; want %d", c.name, n, err, len(keys))
			}
		}
		if n, err := q.Count(t.Context()); n != 20 || err != nil {
			t.Errorf("Count of all: %d, %v; want 20", n, err)
		}
		if n, err := q.Count(t.Context(), duemq.Topic(topic)); n != 10 || err != nil {
			t.Errorf("Count of a topic: %d, %v; want 10", n, err)
		}
	})
}

func TestPendingEnds(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		send(t, q.Queue, "x", duemq.After(time.Hour))
		send(t, q.Queue, "y", duemq.After(time.Hour))
		for range q.Pending(t.Context()) {
			break
		}
		for m, err := range q.Pending(t.Context(), duemq.Topic("nowhere")) {
			if m != nil || !errors.Is(err, duemq.ErrUnknownTopic) {
				t.Errorf("unknown topic: %v, %v; want %v", m, err, duemq.ErrUnknownTopic)
			}
		}
		if _, err := q.Count(t.Context(), duemq.Topic("nowhere")); !errors.Is(err, duemq.ErrUnknownTopic) {
			t.Errorf("Count of an unknown topic: %v, want %v", err, duemq.ErrUnknownTopic)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for m, err := range q.Pending(ctx) {
			if m != nil || !errors.Is(err, context.Canceled) {
				t.Errorf("ended context: %v, %v; want %v", m, err, context.Canceled)
			}
		}
	})
}
