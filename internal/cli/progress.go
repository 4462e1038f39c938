package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/duemq/duemq/internal/clock"
)

// A progress is a bar on a terminal for work that takes a while. It draws
// nothing when standard error is no terminal, or results are for a program.
type progress struct {
	w     io.Writer
	clock clock.Clock
	width int // 0 draws nothing
	label string
	unit  func(int64) string
	began int64 // mono
	drawn int64 // mono of the last drawing
	shown bool
}

// The bar appears when work has taken a moment, and is drawn so often.
const (
	progressAfter = 300 * time.Millisecond
	progressEvery = 100 * time.Millisecond
)

func (a *app) progress(label string, unit func(int64) string) *progress {
	p := &progress{w: a.Stderr, clock: a.Clock, label: label, unit: unit, began: a.Clock.Now().Mono}
	if a.forPeople() {
		p.width = a.errWidth
	}
	p.drawn = p.began + int64(progressAfter-progressEvery)
	return p
}

// set shows that done of total is done; total is 0 if it is not known.
func (p *progress) set(done, total int64) {
	now := p.clock.Now().Mono
	if p.width == 0 || now-p.drawn < int64(progressEvery) {
		return
	}
	p.drawn, p.shown = now, true
	line := p.line(done, total, time.Duration(now-p.began))
	if len([]rune(line)) >= p.width {
		line = string([]rune(line)[:p.width-1])
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s", line)
}

// barCells is how wide the bar is.
const barCells = 24

func (p *progress) line(done, total int64, took time.Duration) string {
	rate := float64(done) / took.Seconds()
	if total <= 0 {
		return fmt.Sprintf("%s %s  %s/s", p.label, p.unit(done), p.unit(int64(rate)))
	}
	done = min(done, total)
	full := int(done * barCells / total)
	s := fmt.Sprintf("%s [%s%s] %3d%%  %s of %s  %s/s", p.label, strings.Repeat("█", full), strings.Repeat("·", barCells-full),
		done*100/total, p.unit(done), p.unit(total), p.unit(int64(rate)))
	if done > 0 && done < total {
		s += "  " + span(time.Duration(float64(total-done)/rate*float64(time.Second)).Round(time.Second)) + " left"
	}
	return s
}

// end takes the bar away.
func (p *progress) end() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
