package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// A sender is one run of send.
type sender struct {
	a       *app
	remote  *remote
	when    when
	message wire.Send
	headers []string
	queue   string
	file    string
	count   int
	jsonl   bool
}

func (a *app) sendCommand() *cobra.Command {
	s := &sender{a: a}
	cmd := &cobra.Command{
		Use:   "send TOPIC [BODY|-]",
		Short: "Send a message, to be delivered at once or at its moment",
		Long: `Send a message, to be delivered at once, after a delay or at an instant. It is on the server's
disk when the command returns, unless the server runs with --sync interval. The first message
makes the topic.

A delay has a unit: 30s, 1h30m, 2d. A bare number is refused, since it could be seconds or a
delay level; a level is given by its number (--level 3) or by its delay (--level 10s).`,
		Example: a.example(
			"send orders 'hello' --after 10s", "",
			"send orders 'unpaid?' --level 30m --key o-1981", "RocketMQ's level 16",
			"send push 'good morning' --at '2026-12-01 09:00' --tz Asia/Shanghai", "",
			"send load x --after 1m --count 100000", "as many of the same",
			"send reminders 'in 10 minutes' --name class/42 --at '2026-12-01 08:50'", "again with another moment moves it",
			"send orders 'hello' --idempotency-key 7f3a", "safe to repeat",
			"send orders - < body.json", "body from standard input",
			"send orders --jsonl < messages.jsonl", `lines as {"text":"hi","deliverAfter":"10s"}`,
		),
		Args: a.args(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(a.exclusive(cmd, "after", "at", "level"), a.exclusive(cmd, "count", "jsonl")); err != nil {
				return err
			}
			return s.run(cmd.Context(), args)
		},
	}
	f := cmd.Flags()
	s.when.flags(f, "after", "at")
	f.StringVar((*string)(&s.message.Level), "level", "", "delay `LEVEL`: its number or its delay")
	f.StringVar(&s.message.Key, "key", "", "`KEY` that the message is about, such as an order's number")
	f.StringVar(&s.message.Tag, "tag", "", "`TAG` of the message, its kind within the topic")
	f.StringArrayVarP(&s.headers, "header", "H", nil, "user property `NAME=VALUE`; may be repeated")
	f.StringVar(&s.queue, "queue", "", "`NUMBER` of the topic's queue; the queues in turn without it")
	f.StringVar(&s.message.IdempotencyKey, "idempotency-key", "", "`KEY` under which this message is sent once, however often it is asked for")
	f.StringVar(&s.message.Name, "name", "", "your own `NAME` for it within the topic; takes the place of one that waits under it")
	f.StringVar(&s.message.Transaction, "transaction", "", "a half message of that `GROUP` of producers, delivered once `duemq tx commit` says so")
	f.IntVar(&s.count, "count", 1, "send so `MANY` of the same")
	f.StringVar(&s.file, "file", "", "`FILE` with the body, - for standard input")
	f.BoolVar(&s.jsonl, "jsonl", false, "the body is one message a line, as in the HTTP API; flags are for what a line does not say")
	s.remote = a.serverFlag(cmd)
	a.outputFlag(cmd)
	return cmd
}

func (s *sender) run(ctx context.Context, args []string) error {
	m := &s.message
	m.Topic = args[0]
	if err := s.prepare(); err != nil {
		return err
	}
	in, err := s.input(args[1:])
	if err != nil {
		return err
	}
	defer in.Close()
	c, err := s.remote.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	if s.jsonl {
		return s.many(ctx, c, newLines(in, *m).next, 0)
	}
	if m.Body, err = io.ReadAll(in); err != nil {
		return &failure{code: exitFailure, what: "cannot read the body", why: err}
	}
	if s.count > 1 {
		left := s.count
		return s.many(ctx, c, func() (*wire.Send, error) {
			if left == 0 {
				return nil, io.EOF
			}
			left--
			return m, nil
		}, int64(s.count))
	}
	r, replayed, err := c.PublishOnce(ctx, *m)
	if err != nil {
		return s.a.answered(ctx, "message was not sent to "+m.Topic, err)
	}
	if !s.a.forPeople() {
		return s.a.one(sent{r, replayed}, "")
	}
	return s.a.one(r, s.line(&r, replayed))
}

// prepare checks what was typed, as far as that can be done here; the server
// has the last word.
func (s *sender) prepare() error {
	m := &s.message
	var err error
	if m.After, err = s.when.after(); err != nil {
		return err
	}
	if m.At, err = s.when.at(s.a.Zone); err != nil {
		return err
	}
	if s.count < 1 {
		return usage(fmt.Sprintf("--count %d", s.count), "want at least 1")
	}
	if s.count > 1 && (m.IdempotencyKey != "" || m.Name != "") {
		return usage("--count with --idempotency-key or --name", "all but the first would be the same message again")
	}
	if s.queue != "" {
		n, err := strconv.Atoi(s.queue)
		if err != nil || n < 0 {
			return usage("--queue "+quote(s.queue), "want a number from 0")
		}
		m.Queue = &n
	}
	for _, h := range s.headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			return usage("-H "+quote(h), "want NAME=VALUE")
		}
		if m.Headers == nil {
			m.Headers = map[string]string{}
		}
		if old, ok := m.Headers[name]; ok {
			return usage("-H "+quote(h), "%s is given already, as %q", name, old)
		}
		m.Headers[name] = value
	}
	return nil
}

// input opens what the body is read from. args is what follows the topic.
func (s *sender) input(args []string) (io.ReadCloser, error) {
	standard := io.NopCloser(s.a.Stdin)
	switch {
	case s.file != "" && len(args) > 0:
		return nil, usage("a body and --file", "give one of them")
	case s.file == "-" || len(args) > 0 && args[0] == "-":
		return standard, nil
	case s.file != "":
		f, err := os.Open(s.file)
		if err != nil {
			return nil, &failure{code: exitFailure, what: "cannot read the body", why: err}
		}
		return f, nil
	case len(args) > 0:
		return io.NopCloser(strings.NewReader(args[0])), nil
	case s.jsonl:
		return standard, nil
	}
	f := usage("no body", "give it behind the topic, - for standard input, or --file")
	f.next = s.a.self + " send " + s.message.Topic + " 'hello' --after 10s"
	return nil, f
}

// sent is what became of a message, as JSON.
type sent struct {
	wire.Receipt

	Replayed bool `json:"replayed,omitempty"` // sent before, under the same idempotency key
}

func (s *sender) line(r *wire.Receipt, replayed bool) string {
	line := fmt.Sprintf("%s  %s", r.ID, r.Topic)
	if replayed {
		line += "  sent before under that key;"
	}
	if r.Replaced != "" {
		line += "  in place of " + r.Replaced + ";"
	}
	switch r.State {
	case wire.StateWaiting:
		return fmt.Sprintf("%s  due %s (%s)   cancel: %s cancel %s%s", line, s.a.instant(r.DeliverAt),
			s.a.until(r.DeliverAt), s.a.self, r.ID, s.remote.argument())
	case wire.StateHalf:
		return fmt.Sprintf("%s  half   commit: %s tx commit %s%s", line, s.a.self, r.ID, s.remote.argument())
	default:
		return line + "  sent"
	}
}

// Sizes of the batches in which many messages are sent.
const (
	batchMessages = 500
	batchBytes    = 512 << 10
)

// many sends the messages that next gives until io.EOF, in batches. total is
// how many there are, 0 if that is not known.
func (s *sender) many(ctx context.Context, c *client.Client, next func() (*wire.Send, error), total int64) error {
	run := &batches{s: s, client: c, bar: s.a.progress("sending", count), results: &list{a: s.a}, total: total}
	began := s.a.Clock.Now().Mono
	err := run.all(ctx, next)
	run.bar.end()
	if !s.a.forPeople() {
		if eerr := run.results.end(); err == nil {
			err = eerr
		}
	} else if run.accepted > 0 {
		fmt.Fprintln(s.a.Stdout, run.summary(time.Duration(s.a.Clock.Now().Mono-began)))
	}
	return run.outcome(ctx, err)
}

// batches is one run of many.
type batches struct {
	s        *sender
	client   *client.Client
	bar      *progress
	results  *list
	total    int64
	accepted int64
	refused  int64
	problem  *wire.Problem // the first one
	first    wire.Time     // earliest and latest due
	last     wire.Time
}

func (b *batches) all(ctx context.Context, next func() (*wire.Send, error)) error {
	msgs := make([]wire.Send, 0, batchMessages)
	bytes := 0
	for {
		m, err := next()
		if err == nil {
			msgs = append(msgs, *m)
			bytes += len(m.Body) + len(m.Text)
		}
		if len(msgs) > 0 && (err != nil || len(msgs) == batchMessages || bytes >= batchBytes) {
			if berr := b.batch(ctx, msgs); berr != nil {
				return berr
			}
			msgs, bytes = msgs[:0], 0
			b.bar.set(b.accepted+b.refused, b.total)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (b *batches) batch(ctx context.Context, msgs []wire.Send) error {
	reply, err := b.client.Batch(ctx, msgs)
	if err != nil {
		return err
	}
	for i := range reply.Results {
		r := &reply.Results[i]
		if r.Problem != nil {
			b.refused++
			if b.problem == nil {
				b.problem = r.Problem
			}
			continue
		}
		b.accepted++
		if at := r.Receipt.DeliverAt; at != 0 {
			b.last = max(b.last, at)
			if b.first == 0 || at < b.first {
				b.first = at
			}
		}
		if !b.s.a.forPeople() {
			if err := b.results.add(r.Receipt, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// due tells when they are due.
func (b *batches) due() string {
	a := b.s.a
	switch b.first {
	case 0:
		return ""
	case b.last:
		return fmt.Sprintf(", due %s (%s)", a.instant(b.first), a.until(b.first))
	default:
		return fmt.Sprintf(", due %s to %s (%s)", a.instant(b.first), a.instant(b.last), a.until(b.first))
	}
}

// summary is the line about messages that were sent.
func (b *batches) summary(took time.Duration) string {
	s := "sent " + several(b.accepted, "message")
	if !b.s.jsonl { // else lines may name other topics
		s += " to " + b.s.message.Topic
	}
	s += " in " + span(took)
	if took >= time.Millisecond {
		s += fmt.Sprintf(" (%s/s)", count(int64(float64(b.accepted)/took.Seconds())))
	}
	return s + b.due()
}

// outcome says what went wrong, if anything did.
func (b *batches) outcome(ctx context.Context, err error) error {
	if err == nil && b.refused == 0 {
		return nil
	}
	broke := err != nil
	if !broke {
		err = &client.Error{Problem: *b.problem}
	}
	f := b.s.a.answered(ctx, "sending broke off", err)
	if f.code == exitInterrupted {
		return f
	}
	switch refused := several(b.refused, "message") + " refused"; {
	case !broke:
		f.what = refused
	case b.refused > 0:
		f.what += ", " + refused + " (" + b.problem.Detail + ")"
	}
	if b.accepted > 0 {
		f.what += ", " + count(b.accepted) + " sent"
		f.code = exitPartial
	}
	return f
}
