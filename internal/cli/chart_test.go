package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func unpainted(s string) string { return s }

// hill is a chart of a morning: a hill, a gap, and one peak.
func hill() *chart {
	c := &chart{from: testStart, step: time.Minute, bars: make([]int64, 60)}
	for i := range c.bars[:40] {
		c.bars[i] = int64(i * (40 - i))
	}
	c.bars[55] = 1234
	c.bars[57] = 1
	return c
}

// drawn fits a chart to a terminal and draws it.
func drawn(c *chart, width int) string {
	fitted, wide := c.fitTo(width)
	return fitted.draw(wide, unpainted)
}

// TestChart draws for terminals of some widths, and over some lengths of time.
func TestChart(t *testing.T) {
	var b strings.Builder
	for _, width := range []int{40, 80, 140} {
		fmt.Fprintf(&b, "%d columns\n%s\n", width, drawn(hill(), width))
	}
	days := &chart{from: testStart, step: 24 * time.Hour, bars: []int64{3, 0, 5, 1}}
	fmt.Fprintf(&b, "four days\n%s\n", drawn(days, 60))
	hours := &chart{from: testStart, step: time.Hour, bars: make([]int64, 48)}
	hours.bars[0], hours.bars[47] = 1, 1
	fmt.Fprintf(&b, "two days in hours\n%s\n", drawn(hours, 80))
	years := &chart{from: testStart, step: 30 * 24 * time.Hour, bars: make([]int64, 30)}
	years.bars[29] = 1e9
	fmt.Fprintf(&b, "years\n%s\n", drawn(years, 80))
	month := &chart{from: testStart.Add(9 * time.Hour), step: 6 * time.Hour, bars: make([]int64, 118)}
	month.bars[2], month.bars[90] = 2000, 7
	fmt.Fprintf(&b, "a month\n%s\n", drawn(month, 90))
	fmt.Fprintf(&b, "one\n%s\n", drawn(&chart{from: testStart, step: time.Minute, bars: []int64{7}}, 30))
	fmt.Fprintf(&b, "in a row\n|%s|\n", hill().spark(60))
	golden(t, "chart.golden", b.String())
}

// TestChartFits has a chart of any bars fit its terminal, and lose nothing: what
// is not nothing is drawn in the lowest row, in the column of its time.
func TestChartFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &chart{
			from: testStart, step: rapid.SampledFrom([]time.Duration{time.Minute, time.Hour, 24 * time.Hour}).Draw(t, "step"),
			bars: rapid.SliceOfN(rapid.Int64Range(0, 1e7), 1, 300).Draw(t, "bars"),
		}
		width := rapid.IntRange(20, 250).Draw(t, "width")
		rows := strings.Split(strings.TrimSuffix(drawn(c, width), "\n"), "\n")
		if len(rows) != chartRows+2 {
			t.Fatalf("%d lines, want %d", len(rows), chartRows+2)
		}
		for _, row := range rows {
			if n := utf8.RuneCountInString(row); n > width {
				t.Errorf("a line of %d columns on a terminal of %d: %q", n, width, row)
			}
		}
		_, peak := c.peak()
		fitted, _ := c.fitTo(width)
		if got, want := sum(fitted.bars), sum(c.bars); got != want {
			t.Errorf("%d in the bars drawn, want %d", got, want)
		}
		fitted, wide := c.fit(width)
		lowest := []rune(fitted.row(0, chartRows, wide, peak))
		for i, v := range fitted.bars {
			if drawn := lowest[i*wide] != ' '; drawn != (v > 0) {
				t.Errorf("bar %d of %d: drawn %v", i, v, drawn)
			}
		}
	})
}
