package cli

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// onTerminal gives an app whose outputs are terminals of 100 columns.
func onTerminal(c clock.Clock) (*app, *output) {
	out := newOutput()
	a := newApp(Process{Args: []string{"duemq"}, Stdout: out, Stderr: out, Clock: c, Zone: time.UTC})
	a.outWidth, a.errWidth = 100, 100
	return a, out
}

func TestProgress(t *testing.T) {
	c := clock.NewFake(testStart)
	a, out := onTerminal(c)
	p := a.progress("sending", count)
	p.set(1, 1000)
	if out.String() != "" {
		t.Errorf("a bar before there is anything to wait for: %q", out)
	}
	c.Advance(2 * time.Second)
	p.set(500, 1000)
	p.set(501, 1000)
	want := "\r\x1b[Ksending [████████████············]  50%  500 of 1,000  250/s  2s left"
	if out.String() != want {
		t.Errorf("drawn:\n%q\nwant:\n%q", out, want)
	}
	c.Advance(time.Second)
	p.set(7, 0)
	p.end()
	if want += "\r\x1b[Ksending 7  2/s\r\x1b[K"; out.String() != want {
		t.Errorf("drawn:\n%q\nwant:\n%q", out, want)
	}
}

// TestProgressHidden draws nothing for programs.
func TestProgressHidden(t *testing.T) {
	for name, adapt := range map[string]func(*app){
		"no terminal": func(a *app) { a.errWidth = 0 },
		"JSON":        func(a *app) { a.format = formatJSONL },
	} {
		c := clock.NewFake(testStart)
		a, out := onTerminal(c)
		adapt(a)
		p := a.progress("sending", count)
		c.Advance(time.Minute)
		p.set(1, 2)
		p.end()
		if out.String() != "" {
			t.Errorf("%s: drawn %q", name, out)
		}
	}
}

func TestNarrow(t *testing.T) {
	c := clock.NewFake(testStart)
	a, out := onTerminal(c)
	a.errWidth = 20
	p := a.progress("verifying", size)
	c.Advance(time.Second)
	p.set(1<<20, 4<<20)
	if got := len([]rune(strings.TrimPrefix(out.String(), "\r\x1b[K"))); got != 19 {
		t.Errorf("%d columns drawn on a terminal of 20: %q", got, out)
	}
}

// TestCountdown counts down to a message, and learns of an earlier one.
func TestCountdown(t *testing.T) {
	w := newWorld(t)
	own := clock.NewFake(testStart) // has no timer but the countdown's
	a, out := onTerminal(own)
	c, err := client.New(w.server.URL, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	send := func(after string) {
		if _, err := c.Publish(t.Context(), wire.Send{Topic: "orders", Text: "x", After: after}); err != nil {
			t.Fatal(err)
		}
	}
	tick := func(d time.Duration) {
		for deadline := time.Now().Add(20 * time.Second); own.Timers() == 0; runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatalf("the next drawing is not planned; drawn: %q", out)
			}
		}
		own.Advance(d)
	}
	send("1h")
	wait := a.watch(t.Context(), c, "orders")
	tick(time.Second)
	out.await(t, `waiting… next due in 59m 59s \(1 pending\)`)
	send("10m")
	tick(time.Second) // what was heard a second ago is new enough
	out.await(t, `next due in 59m 58s \(1 pending\)`)
	tick(countStale)
	out.await(t, `next due in 9m 53s \(2 pending\)`)
	wait.end()
	if !strings.HasSuffix(out.String(), "\r\x1b[K") {
		t.Errorf("the line is still there: %q", out)
	}
	if got := wait.line(0, 0); got != "waiting… nothing pending in orders" {
		t.Errorf("nothing pending is told as %q", got)
	}
}

// TestColors paints for terminals only, and not when that is not wanted.
func TestColors(t *testing.T) {
	for _, tt := range []struct {
		environ []string
		width   int
		want    bool
	}{{nil, 80, true}, {nil, 0, false}, {[]string{"NO_COLOR=1"}, 80, false}, {[]string{"TERM=dumb"}, 80, false}, {[]string{"NO_COLOR="}, 80, true}} {
		a := newApp(Process{Args: []string{"duemq"}, Environ: tt.environ, Clock: clock.NewFake(testStart)})
		if got := a.paint(tt.width, red, "x") != "x"; got != tt.want {
			t.Errorf("%v, %d columns: painted %v, want %v", tt.environ, tt.width, got, tt.want)
		}
	}
}
