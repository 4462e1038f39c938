package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A benchResult is what a measurement found, as JSON.
type benchResult struct {
	Kind     string       `json:"kind"`
	Messages int          `json:"messages"` // that were to be sent or received
	Size     int          `json:"size,omitempty"`
	Batch    int          `json:"batch"`
	Clients  int          `json:"clients"`
	Delay    string       `json:"delay,omitempty"`
	Sent     *benchRate   `json:"sent,omitempty"`
	Received *benchRate   `json:"received,omitempty"`
	Answers  *percentiles `json:"answersMs,omitempty"`  // how long a request took to be answered
	Visible  *percentiles `json:"visibleMs,omitempty"`  // late, on the server's clock
	Arrived  *percentiles `json:"receivedMs,omitempty"` // late, on this machine's clock
	Early    *int         `json:"early,omitempty"`
	Twice    *int         `json:"twice,omitempty"`
	Lost     *int         `json:"lost,omitempty"` // sent, and not received
}

// A benchRate is how many in how long.
type benchRate struct {
	Messages int     `json:"messages"`
	Seconds  float64 `json:"seconds"`
	Rate     float64 `json:"rate"` // a second
}

// percentiles are of a distribution of times, in milliseconds.
type percentiles struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

func percentilesOf(h *hdrhistogram.Histogram) *percentiles {
	at := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1000 }
	return &percentiles{at(50), at(90), at(99), at(99.9), float64(h.Max()) / 1000}
}

func (p *percentiles) String() string {
	var words []string
	for _, v := range []struct {
		name string
		ms   float64
	}{{"p50", p.P50}, {"p90", p.P90}, {"p99", p.P99}, {"p99.9", p.P999}, {"max", p.Max}} {
		words = append(words, fmt.Sprintf("%s %s", v.name, msText(v.ms)))
	}
	return strings.Join(words, "   ")
}

// msText gives milliseconds with as many digits as matter.
func msText(ms float64) string {
	switch {
	case ms < 10:
		return fmt.Sprintf("%.2f ms", ms)
	case ms < 10_000:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return span(time.Duration(ms * float64(time.Millisecond)))
}

func rateOf(n int, ns int64) *benchRate {
	r := &benchRate{Messages: n, Seconds: float64(ns) / 1e9}
	if ns > 0 {
		r.Rate = float64(n) / r.Seconds
	}
	return r
}

func (r *benchRate) String() string {
	s := fmt.Sprintf("%s in %s", several(r.Messages, "message"), span(time.Duration(r.Seconds*1e9)))
	if r.Rate > 0 {
		s += fmt.Sprintf(": %s/s", count(int64(r.Rate)))
	}
	return s
}

// result sums a measurement up.
func (b *bench) result() *benchResult {
	t := &b.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &benchResult{Kind: b.kind, Messages: b.total, Size: b.size, Batch: b.batch, Clients: b.clients, Delay: b.delay}
	if b.kind != "recv" {
		r.Sent, r.Answers = rateOf(t.sent, t.sending), percentilesOf(t.answers)
	}
	if b.kind != "send" {
		r.Received = rateOf(t.received, t.taking)
	}
	if b.kind != "delay" {
		return r
	}
	twice, lost := 0, 0
	for _, n := range t.gotIDs {
		twice += n - 1
	}
	for id := range t.sentIDs {
		if t.gotIDs[id] == 0 {
			lost++
		}
	}
	early := t.early
	r.Visible, r.Arrived, r.Early, r.Twice, r.Lost = percentilesOf(t.visible), percentilesOf(t.arrived), &early, &twice, &lost
	return r
}

// finish shows what was measured, also after an error, and gives the error.
func (b *bench) finish(ctx context.Context, err error) error {
	if b.tally.answers == nil {
		return err // it never began
	}
	r := b.result()
	if serr := b.a.one(r, r.text()); err == nil {
		err = serr
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return interrupted()
	}
	if err != nil {
		return err
	}
	if b.kind != "delay" && b.a.forPeople() {
		fmt.Fprintf(b.a.Stderr, "to take the messages away: %s topic rm %s --yes%s\n", b.a.self, b.topic, b.remote.argument())
	}
	switch {
	case r.Lost != nil && *r.Lost > 0:
		return &failure{code: exitFailure, what: several(*r.Lost, "message") + " did not come", next: "give them longer: --wait 1m"}
	case r.Early != nil && *r.Early > 0:
		return &failure{code: exitFailure, what: several(*r.Early, "message") + " came early"}
	case b.kind == "recv" && r.Received.Messages == 0:
		return &failure{code: exitUnavailable, what: "no message in " + b.topic, next: "send some: " + b.a.self + " bench send" + b.remote.argument()}
	}
	return nil
}

// text is the result for people.
func (r *benchResult) text() string {
	var b strings.Builder
	line := func(name, value string) { fmt.Fprintf(&b, "%-10s %s\n", name, value) }
	requests := fmt.Sprintf(" (%s at once, %s each)", several(r.Clients, "request"), count(r.Batch))
	if r.Sent != nil {
		line("sent", r.Sent.String()+requests)
		line("answered", r.Answers.String())
	}
	if r.Received != nil && r.Visible == nil { // else it took as long as they had to wait
		line("received", r.Received.String()+requests)
	}
	if r.Visible != nil {
		line("visible", "late by "+r.Visible.String())
		line("received", "late by "+r.Arrived.String())
		line("of these", fmt.Sprintf("%s early, %s twice, %s lost", count(*r.Early), count(*r.Twice), count(*r.Lost)))
	}
	return strings.TrimSuffix(b.String(), "\n")
}
