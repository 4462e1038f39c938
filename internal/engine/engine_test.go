package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

// testStart is the wall clock at which fake clocks begin.
var testStart = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)

func options(disk fs.FS, c clock.Clock) Options {
	return Options{
		FS: disk, Dir: "data", Clock: c, Rand: rand.NewChaCha8([32]byte{1}),
		SegmentBytes: 1 << 20, CacheBytes: 1 << 20,
	}
}

func open(t *testing.T, o Options) *Engine {
	t.Helper()
	e, err := Open(t.Context(), o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func topic(t *testing.T, e *Engine, name string, queues uint32) *Topic {
	t.Helper()
	tp, err := e.MakeTopic(t.Context(), name, queues, nil)
	if err != nil {
		t.Fatalf("MakeTopic: %v", err)
	}
	return tp
}

func send(t *testing.T, e *Engine, tp *Topic, body string, d Delay) Send {
	t.Helper()
	s := []Send{{Message: record.Message{Body: []byte(body)}, Topic: tp.Number, Turn: tp, Delay: d}}
	if err := e.Send(t.Context(), s); err != nil {
		t.Fatalf("Send: %v", err)
	}
	if s[0].Err != nil {
		t.Fatalf("Send: %v", s[0].Err)
	}
	return s[0]
}

// visible gives the bodies and the lateness of a topic's entries, queue by queue.
func visible(t *testing.T, e *Engine, tp *Topic) (out []string) {
	t.Helper()
	for i := range tp.Queues {
		n := tp.FirstQueue + record.QueueNumber(i)
		from, next, err := e.Bounds(n)
		if err != nil {
			t.Fatalf("Bounds: %v", err)
		}
		for from < next {
			entries, err := e.Entries(nil, n, from, 100)
			if err != nil || len(entries) == 0 {
				t.Fatalf("Entries: %v", err)
			}
			from += record.Offset(len(entries))
			e.Messages(entries, func(i int, m *record.Message, err error) {
				if err != nil {
					t.Fatalf("Messages: %v", err)
				}
				late := int64(0)
				if entries[i].Due != 0 {
					late = entries[i].VisibleAt - entries[i].Due
				}
				out = append(out, fmt.Sprintf("%s +%d", m.Body, late))
			})
		}
	}
	return out
}

func TestDelayedBecomesVisible(t *testing.T) {
	c := clock.NewFake(testStart)
	e := open(t, options(fs.NewMem(), c))
	tp := topic(t, e, "orders", 1)
	send(t, e, tp, "now", Delay{})
	send(t, e, tp, "later", Delay{Kind: DelayAfter, Value: 1000})
	send(t, e, tp, "level", Delay{Kind: DelayLevel, Value: 2})
	if got := fmt.Sprint(visible(t, e, tp)); got != "[now +0]" {
		t.Fatalf("at once: %v", got)
	}
	c.Advance(999 * time.Millisecond)
	settle(t, e)
	if got := fmt.Sprint(visible(t, e, tp)); got != "[now +0]" {
		t.Fatalf("1 ms before: %v", got)
	}
	c.Advance(time.Millisecond)
	settle(t, e)
	if got := fmt.Sprint(visible(t, e, tp)); got != "[now +0 later +0]" {
		t.Fatalf("when due: %v", got)
	}
	c.Advance(4 * time.Second)
	settle(t, e)
	if got := fmt.Sprint(visible(t, e, tp)); got != "[now +0 later +0 level +0]" {
		t.Fatalf("level: %v", got)
	}
}

func TestMessageLargerThanASegmentIsRefused(t *testing.T) {
	o := options(fs.NewMem(), clock.NewFake(testStart))
	o.SegmentBytes = 64 << 10
	e := open(t, o)
	tp := topic(t, e, "t", 1)
	for _, size := range []int{64<<10 - segmentOverhead, 64<<10 - segmentOverhead + 1, 1 << 20} {
		s := []Send{{Message: record.Message{Body: make([]byte, size)}, Topic: tp.Number, Turn: tp}}
		if err := e.Send(t.Context(), s); err != nil {
			t.Fatalf("Send of %d bytes: %v", size, err)
		}
		if tooLarge := errors.Is(s[0].Err, record.ErrTooLarge); tooLarge != (size > 64<<10-segmentOverhead) {
			t.Errorf("%d bytes: %v", size, s[0].Err)
		}
	}
	send(t, e, tp, "the others go on", Delay{})
}

func settle(t *testing.T, e *Engine) {
	t.Helper()
	if err := e.Settle(t.Context()); err != nil {
		t.Fatalf("Settle: %v", err)
	}
}

func TestReopenKeepsEverything(t *testing.T) {
	for _, cut := range []bool{false, true} {
		t.Run(fmt.Sprint("cut=", cut), func(t *testing.T) {
			c := clock.NewFake(testStart)
			disk := fs.NewMem()
			e := open(t, options(disk, c))
			tp := topic(t, e, "orders", 4)
			for i := range 500 {
				send(t, e, tp, strconv.Itoa(i), Delay{Kind: DelayAfter, Value: int64(i * 10)})
			}
			if cut {
				if err := e.Cut(); err != nil {
					t.Fatalf("Cut: %v", err)
				}
			}
			c.Advance(2 * time.Second)
			settle(t, e)
			want, err := e.Hash()
			if err != nil {
				t.Fatalf("Hash: %v", err)
			}
			shown := visible(t, e, tp)
			if err := e.Close(); err != nil {
				t.Fatalf("Close: %v", err)
			}
			for _, drop := range []bool{false, true} {
				if drop {
					if err := disk.RemoveAll("data/index"); err != nil {
						t.Fatal(err)
					}
				}
				e = open(t, options(disk, c))
				if got, err := e.Hash(); err != nil || got != want {
					t.Fatalf("index dropped %v: hash %s, want %s (%v)", drop, got, want, err)
				}
				if got := visible(t, e, e.TopicNamed("orders")); fmt.Sprint(got) != fmt.Sprint(shown) {
					t.Fatalf("index dropped %v: visible %v, want %v", drop, got, shown)
				}
				if err := e.Close(); err != nil {
					t.Fatalf("Close: %v", err)
				}
			}
		})
	}
}

func TestIdleDayHasNoFruitlessWakeups(t *testing.T) {
	c := clock.NewFake(testStart)
	e := open(t, options(fs.NewMem(), c))
	tp := topic(t, e, "orders", 1)
	var refs []record.Ref
	for i := range 100 {
		s := send(t, e, tp, "x", Delay{Kind: DelayAfter, Value: int64(i+1) * 800_000})
		_, r, err := e.Find(s.ID)
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, r)
	}
	for i := 0; i < 100; i += 3 {
		if _, err := e.Cancel(context.Background(), refs[i]); err != nil {
			t.Fatal(err)
		}
	}
	for range 24 * 60 {
		c.Advance(time.Minute)
		settle(t, e)
	}
	s := e.Stats()
	if s.Fruitless != 0 || s.Ticks != 66 {
		t.Errorf("%d wake-ups, %d found nothing, %d ticks; want 0 that found nothing and 66 ticks", s.Wakeups, s.Fruitless, s.Ticks)
	}
}

// TestSmallSegments sends more in one call than a segment holds: a batch is
// within one segment, so it takes several.
func TestSmallSegments(t *testing.T) {
	o := options(fs.NewMem(), clock.NewFake(testStart))
	o.SegmentBytes = 64 << 10
	e := open(t, o)
	tp := topic(t, e, "orders", 1)
	sends := make([]Send, 200)
	for i := range sends {
		sends[i] = Send{Message: record.Message{Body: make([]byte, 1000)}, Topic: tp.Number, Turn: tp}
	}
	if err := e.Send(t.Context(), sends); err != nil {
		t.Fatal(err)
	}
	if got := len(visible(t, e, tp)); got != len(sends) {
		t.Errorf("%d of %d messages are visible", got, len(sends))
	}
}
