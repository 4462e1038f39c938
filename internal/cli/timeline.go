package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// A timelineRun is one run of pending timeline.
type timelineRun struct {
	a      *app
	s      selection
	step   string
	every  string // of --watch; empty draws once
	remote *remote
	lines  int // drawn last
}

func (a *app) pendingTimelineCommand() *cobra.Command {
	t := &timelineRun{a: a}
	cmd := &cobra.Command{
		Use: "timeline", Short: "See how much falls due when", Args: a.args(0, 0),
		Long: `See how much falls due when: a bar for each stretch of time, about 60 of them from the first due to
the last, as high as there are messages. -o wide tells topics apart. Where standard output is no
terminal it is a table. Messages are counted by the minute and not looked at one by one.`,
		Example: a.example(
			"pending timeline", "",
			"pending timeline --topic orders --within 1h", "",
			"pending timeline --watch -o wide", "again every 2s, by topic",
			"pending timeline --step 1d -o json", "for a program",
		),
	}
	t.s.rangeFlags(cmd.Flags())
	f := cmd.Flags()
	f.StringVar(&t.step, "step", "", "so `LONG` a bar, whole minutes; without it, about 60 bars")
	f.StringVar(&t.every, "watch", "", "again every so `OFTEN`, until you interrupt")
	f.Lookup("watch").NoOptDefVal = "2s"
	t.remote = a.serverFlag(cmd)
	a.wideFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return t.run(cmd) }
	return cmd
}

func (t *timelineRun) run(cmd *cobra.Command) error {
	a := t.a
	if err := t.s.read(a, cmd); err != nil {
		return err
	}
	q := wire.TimelineQuery{Topic: t.s.query.Topic, From: t.s.query.From, To: t.s.query.To, ByTopic: a.format == formatWide}
	if t.s.query.Within != 0 {
		q.To = wire.TimeOf(a.now().Add(time.Duration(t.s.query.Within)))
	}
	if t.step != "" {
		d, err := wire.ParseDuration(t.step)
		if err != nil || d < time.Minute || d%time.Minute != 0 {
			return usage("--step "+quote(t.step), "want whole minutes, such as 5m or 1d")
		}
		q.Step = wire.Duration(d)
	}
	every := time.Duration(0)
	if t.every != "" {
		var err error
		if every, err = wire.ParseDuration(t.every); err != nil || every < time.Second/10 {
			return usage("--watch "+quote(t.every), "want a length of time of at least 100ms, such as 2s")
		}
		if a.format == formatJSON {
			return usage("--watch and -o json", "it never ends; want -o jsonl")
		}
	}
	c, err := t.remote.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	for {
		if err := t.once(cmd.Context(), c, q); err != nil || every == 0 {
			return err
		}
		if err := a.pause(cmd.Context(), every); err != nil {
			return err
		}
	}
}

// pause waits so long; an interrupt ends it.
func (a *app) pause(ctx context.Context, d time.Duration) error {
	timer := a.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return interrupted()
	case <-timer.C():
		return nil
	}
}

func (t *timelineRun) once(ctx context.Context, c *client.Client, q wire.TimelineQuery) error {
	a := t.a
	w, err := c.Timeline(ctx, q)
	if err != nil {
		return a.answered(ctx, "cannot count what waits", err)
	}
	if !a.forPeople() {
		return a.one(w, "")
	}
	var text string
	if a.outWidth > 0 {
		text = a.timelineChart(&w)
	} else if text, err = a.timelineTable(&w); err != nil {
		return err
	}
	if a.outWidth > 0 && t.lines > 0 {
		fmt.Fprintf(a.Stdout, "\x1b[%dA\x1b[J", t.lines) // over what was drawn last
	}
	t.lines = strings.Count(text, "\n")
	_, err = fmt.Fprint(a.Stdout, text)
	return err
}

// bars are the buckets of a timeline one after another, with those that are
// empty, and of one topic if it is named.
func (a *app) bars(w *wire.Timeline, topic string) (*chart, error) {
	c := &chart{from: w.From.Time().In(a.Zone), step: time.Duration(w.Step)}
	if c.step <= 0 || w.To <= w.From {
		return c, errors.New("the server's timeline has no length")
	}
	c.bars = make([]int64, min(int64((w.To.Time().Sub(w.From.Time())+c.step-1)/c.step), maxBars))
	for i := range w.Buckets {
		b := &w.Buckets[i]
		n := b.Count
		if topic != "" {
			n = int64(b.Topics[topic])
		}
		if at := int64(b.From.Time().Sub(w.From.Time()) / c.step); at >= 0 && at < int64(len(c.bars)) {
			c.bars[at] += n
		}
	}
	return c, nil
}

// maxBars bounds what is drawn: two years of minutes.
const maxBars = 1 << 20

// timelineHead says how much there is, in a line.
func (a *app) timelineHead(w *wire.Timeline) string {
	s := several(w.Total, "message") + " fall due"
	switch {
	case w.Total == 0 && w.Earliest == 0:
		s = "nothing waits"
	case w.Total == 0:
		s = "nothing falls due"
	case w.Total == 1:
		s = "1 message falls due"
	}
	if w.From != 0 && w.Earliest != 0 {
		s += fmt.Sprintf(" from %s to %s", a.minute(w.From), a.minute(w.To))
	}
	if w.Overdue > 0 {
		s += fmt.Sprintf(", %s overdue", count(w.Overdue))
	}
	if w.Paused > 0 {
		s += fmt.Sprintf("; %s due and held back", count(w.Paused))
	}
	return s
}

// minute gives an instant without seconds, with the date unless it is today's.
func (a *app) minute(t wire.Time) string { return strings.TrimSuffix(a.instant(t), ":00.000") }

// timelineChart draws a timeline for the terminal.
func (a *app) timelineChart(w *wire.Timeline) string {
	var b strings.Builder
	line := func(text string) { b.WriteString(cut(text, a.outWidth) + "\n") }
	line(a.timelineHead(w))
	c, err := a.bars(w, "")
	if err != nil || w.Total == 0 {
		return b.String()
	}
	c, wide := c.fitTo(a.outWidth)
	at, peak := c.peak()
	line(fmt.Sprintf("the most, %s, in the %s from %s", count(peak), span(c.step), a.minute(wire.TimeOf(c.at(at)))))
	b.WriteString(c.draw(wide, func(s string) string { return a.paint(a.outWidth, dim, s) }))
	if a.format != formatWide {
		return b.String()
	}
	line("")
	a.topicCharts(&b, w)
	return b.String()
}

// maxTopicCharts is how many topics have a line of their own.
const maxTopicCharts = 20

// topicCharts draws a line for each topic, that with the most first.
func (a *app) topicCharts(b *strings.Builder, w *wire.Timeline) {
	totals := topicTotals(w)
	longest := len("TOPIC")
	for _, t := range totals[:min(len(totals), maxTopicCharts)] {
		longest = max(longest, len(t.topic))
	}
	head := fmt.Sprintf("%-*s  %10s  %10s  ", longest, "TOPIC", "MESSAGES", "MOST")
	b.WriteString(cut(strings.TrimRight(head, " "), a.outWidth) + "\n")
	for i, t := range totals {
		if i == maxTopicCharts {
			fmt.Fprintf(b, "and %s more\n", several(len(totals)-i, "topic"))
			break
		}
		c, err := a.bars(w, t.topic)
		if err != nil {
			return
		}
		_, peak := c.peak()
		line := fmt.Sprintf("%-*s  %10s  %10s  ", longest, t.topic, count(t.total), count(peak))
		b.WriteString(cut(line+c.spark(a.outWidth-len(line)), a.outWidth) + "\n")
	}
}

// A topicTotal is how much of a topic is in a timeline.
type topicTotal struct {
	topic string
	total int64
}

func topicTotals(w *wire.Timeline) []topicTotal {
	sums := map[string]int64{}
	for i := range w.Buckets {
		for topic, n := range w.Buckets[i].Topics {
			sums[topic] += int64(n)
		}
	}
	totals := make([]topicTotal, 0, len(sums))
	for topic, n := range sums {
		totals = append(totals, topicTotal{topic, n})
	}
	slices.SortFunc(totals, func(x, y topicTotal) int {
		return cmp.Or(cmp.Compare(y.total, x.total), cmp.Compare(x.topic, y.topic))
	})
	return totals
}

// timelineTable lists a timeline where there is no terminal: the buckets with
// something in them, or that of each topic.
func (a *app) timelineTable(w *wire.Timeline) (string, error) {
	var b strings.Builder
	b.WriteString(a.timelineHead(w) + "\n")
	if len(w.Buckets) == 0 {
		return b.String(), nil
	}
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	byTopic := a.format == formatWide
	head := "FROM\tTO\tMESSAGES"
	if byTopic {
		head += "\tTOPIC"
	}
	fmt.Fprintln(t, head)
	for i := range w.Buckets {
		k := &w.Buckets[i]
		when := fmt.Sprintf("%s\t%s", a.minute(k.From), a.minute(wire.TimeOf(k.From.Time().Add(time.Duration(w.Step)))))
		if !byTopic {
			fmt.Fprintf(t, "%s\t%d\n", when, k.Count)
			continue
		}
		for _, topic := range slices.Sorted(maps.Keys(k.Topics)) {
			fmt.Fprintf(t, "%s\t%d\t%s\n", when, k.Topics[topic], topic)
		}
	}
	if err := t.Flush(); err != nil {
		return "", err
	}
	return b.String(), nil
}
