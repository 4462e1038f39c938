package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// morning is a timeline of two topics.
func morning() wire.Timeline {
	w := wire.Timeline{
		From: wire.TimeOf(testStart), To: wire.TimeOf(testStart.Add(time.Hour)), Step: wire.Duration(time.Minute),
		Overdue: 2, Paused: 1, Earliest: wire.TimeOf(testStart), Latest: wire.TimeOf(testStart.Add(time.Hour)),
	}
	for i := range 60 {
		orders, push := wire.Number(i*(60-i)), wire.Number(0)
		if i == 30 {
			push = 2000
		}
		b := wire.TimelineBucket{From: wire.TimeOf(testStart.Add(time.Duration(i) * time.Minute)), Count: int64(orders + push)}
		if b.Topics = map[string]wire.Number{"orders": orders, "push": push}; push == 0 {
			delete(b.Topics, "push")
		}
		if b.Count > 0 {
			w.Buckets = append(w.Buckets, b)
		}
		w.Total += b.Count
	}
	return w
}

// TestTimelineOnTerminal draws for terminals of several widths, and by topic.
func TestTimelineOnTerminal(t *testing.T) {
	var b strings.Builder
	for _, width := range []int{40, 80, 150} {
		a, _ := onTerminal(clock.NewFake(testStart))
		a.outWidth, a.noColor, a.format = width, true, formatWide
		w := morning()
		fmt.Fprintf(&b, "%d columns\n%s\n", width, a.timelineChart(&w))
	}
	a, _ := onTerminal(clock.NewFake(testStart))
	fmt.Fprintf(&b, "nothing\n%s\n", a.timelineChart(&wire.Timeline{Step: wire.Duration(time.Minute)}))
	golden(t, "timeline.golden", b.String())
}

// TestTimelineWatch draws over what was drawn, until an interrupt.
func TestTimelineWatch(t *testing.T) {
	w := newWorld(t)
	own := clock.NewFake(testStart)
	a, out := onTerminal(own)
	a.noColor = true
	a.Args = []string{"duemq", "pending", "timeline", "--watch=5s", "--server", w.server.URL}
	c, err := client.New(w.server.URL, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	send := func() {
		if _, err := c.Publish(t.Context(), wire.Send{Topic: "orders", Text: "x", After: "10m"}); err != nil {
			t.Fatal(err)
		}
	}
	send()
	ctx, stop := contextWithStop(t)
	ended := make(chan int, 1)
	go func() { ended <- a.report(a.run(ctx)) }()
	out.await(t, `1 message falls due(?s:.*)09:10`)
	send()
	awaitTimer(t, own)
	own.Advance(5 * time.Second)
	out.await(t, `\x1b\[12A\x1b\[J2 messages fall due`)
	stop()
	if code := <-ended; code != exitInterrupted {
		t.Errorf("exit %d after an interrupt, want %d", code, exitInterrupted)
	}
}
