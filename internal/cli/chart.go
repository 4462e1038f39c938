package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// A chart is how much falls due when: bars from left to right, one for each
// length of time.
type chart struct {
	from time.Time // when the first bar begins, in the zone that is shown
	step time.Duration
	bars []int64
}

// chartRows is how high the highest bar is. A row has eight eighths.
const chartRows = 8

var eighths = []rune(" ▁▂▃▄▅▆▇█")

// fit makes a chart as wide as there are columns: bars are merged if there are
// too many, and wide says how many columns each has. A bar that is three columns
// wide or more leaves the last of them free.
func (c *chart) fit(columns int) (fitted *chart, wide int) {
	columns = max(columns, 1)
	if merge := (len(c.bars) + columns - 1) / columns; merge > 1 {
		merged := &chart{from: c.from, step: c.step * time.Duration(merge)}
		for some := range slices.Chunk(c.bars, merge) {
			merged.bars = append(merged.bars, sum(some))
		}
		c = merged
	}
	return c, max(columns/max(len(c.bars), 1), 1)
}

func sum(counts []int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// at is when bar i begins.
func (c *chart) at(i int) time.Time { return c.from.Add(time.Duration(i) * c.step) }

// peak is the highest bar, the first of them.
func (c *chart) peak() (i int, n int64) {
	for at, v := range c.bars {
		if v > n {
			i, n = at, v
		}
	}
	return i, n
}

// cell is what a bar has in a row that begins at so many rows above the axis.
// What is not nothing is seen.
func cell(v, peak int64, row, rows int) rune {
	if v == 0 || peak == 0 {
		return ' '
	}
	height := max(int(float64(v)/float64(peak)*float64(rows*8)), 1)
	return eighths[min(max(height-row*8, 0), 8)]
}

// row draws one row of all bars.
func (c *chart) row(row, rows, wide int, peak int64) string {
	var b strings.Builder
	for _, v := range c.bars {
		r := cell(v, peak, row, rows)
		for i := range wide {
			if i > 0 && wide >= 3 && i == wide-1 {
				r = ' '
			}
			b.WriteRune(r)
		}
	}
	return b.String()
}

// inDays says that the time of day does not matter any more.
func (c *chart) inDays() bool { return time.Duration(len(c.bars))*c.step > 36*time.Hour }

// label writes an instant under a chart, as short as they can be told apart.
func (c *chart) label(t time.Time) string {
	switch {
	case !c.inDays():
		return t.Format("15:04")
	case c.from.Year() == c.at(len(c.bars)).Year():
		return t.Format("Jan 2")
	}
	return t.Format("2006-01-02")
}

// labelColumns is the longest label and a gap.
const labelColumns = len("2006-01-02") + 1

// round are lengths of time between marks under a chart that people can count in.
var round = []time.Duration{
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 20 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, 2 * day, 5 * day, 10 * day, 30 * day,
}

const day = 24 * time.Hour

// marks gives which bars have a mark, the first and from one to the next, if a
// mark needs so many columns. They are at round times of day where bars are.
func (c *chart) marks(columns, wide int) (first, every int) {
	need := (columns + wide - 1) / wide
	for _, r := range round {
		if r%c.step != 0 || int(r/c.step) < need || c.inDays() && r < day {
			continue
		}
		every = int(r / c.step)
		_, offset := c.from.Zone()
		into := (c.from.Unix() + int64(offset)) % int64(min(r, day)/time.Second)
		if into%int64(c.step/time.Second) == 0 {
			first = (every - int(into/int64(c.step/time.Second))) % every
		}
		return first, every
	}
	return 0, need
}

// axis draws the line under the bars with marks, and the instants of the marks.
func (c *chart) axis(wide int) (line, labels string) {
	first, every := c.marks(labelColumns, wide)
	marks := []rune(strings.Repeat("─", len(c.bars)*wide))
	var b strings.Builder
	for i := first; i < len(c.bars); i += every {
		text := c.label(c.at(i))
		if i*wide+len(text) > len(marks) {
			break
		}
		marks[i*wide] = '┴'
		b.WriteString(strings.Repeat(" ", max(i*wide-b.Len(), 0)) + text)
	}
	return string(marks), b.String()
}

// fitTo makes a chart as wide as a terminal has room for beside its axis.
func (c *chart) fitTo(width int) (fitted *chart, wide int) {
	_, peak := c.peak()
	fitted, wide = c.fit(width - len(count(peak)) - 3)
	if _, higher := fitted.peak(); higher > peak { // merged bars are, and may be longer to write
		fitted, wide = c.fit(width - len(count(higher)) - 4)
	}
	return fitted, wide
}

// draw draws a chart that fits, ending each line. paint colors an axis.
func (c *chart) draw(wide int, paint func(string) string) string {
	_, peak := c.peak()
	margin := len(count(peak)) + 2
	var b strings.Builder
	for row := chartRows - 1; row >= 0; row-- {
		label, tick := "", "│"
		switch row {
		case chartRows - 1:
			label, tick = count(peak), "┤"
		case chartRows/2 - 1:
			if peak >= 2 {
				label, tick = count(peak/2), "┤"
			}
		}
		line := strings.TrimRight(c.row(row, chartRows, wide, peak), " ")
		fmt.Fprintf(&b, "%s%s\n", paint(fmt.Sprintf("%*s %s", margin-2, label, tick)), line)
	}
	line, labels := c.axis(wide)
	fmt.Fprintf(&b, "%s\n", paint(fmt.Sprintf("%*s └%s", margin-2, "0", line)))
	fmt.Fprintf(&b, "%s\n", paint(strings.Repeat(" ", margin)+labels))
	return b.String()
}

// spark draws the chart in one row, each bar against the highest.
func (c *chart) spark(columns int) string {
	fitted, wide := c.fit(columns)
	_, peak := fitted.peak()
	return strings.TrimRight(fitted.row(0, 1, wide, peak), " ")
}

// cut keeps a line from being longer than the terminal is wide.
func cut(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:max(width-1, 0)]) + "…"
}
