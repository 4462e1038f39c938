package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// A receiver is one run of recv.
type receiver struct {
	a      *app
	remote *remote
	topic  string
	group  string
	max    int
	wait   string
	ack    ackMode
	tags   string
	order  bool
	exec   string
	out    list
	met    bool // the server has answered before
}

func (a *app) recvCommand() *cobra.Command {
	r := &receiver{a: a, ack: ackAuto, out: list{a: a}}
	cmd := &cobra.Command{
		Use:     "recv TOPIC",
		Aliases: []string{"receive"},
		Short:   "Receive messages as they fall due",
		Long: `Receive messages as they fall due, until there are --max, nothing came for --wait, or you
interrupt. Receivers of one group share the messages; each group gets all. A new group begins
with the earliest message.

A message is acknowledged once it has been printed. With --ack none it is not: it comes again
when its lease of 30 s ends.

With --exec each message goes to a shell command, one at a time: the body on its standard input,
DUEMQ_ID, DUEMQ_TOPIC, DUEMQ_KEY, DUEMQ_TAG and DUEMQ_ATTEMPT in its environment. If it succeeds,
the message is acknowledged; if it fails, the message comes again after the group's back-off, and
is a dead letter after the group's attempts. The lease is renewed while the command runs. However
commands end, recv exits as it does without them: it is 0 after --max.

An interrupt (Ctrl-C) lets a command that runs finish, and its end counts; nothing is received after
it. A second one kills the command: the message may be received again at once, and the attempt does
not count.

It exits with 5 if nothing came within --wait, or when the server is gone; on a terminal it waits
for the server to come back.`,
		Example: a.example(
			"recv orders", "",
			"recv orders --group billing --max 1 -o json", "one message, for a script",
			"recv orders --tags 'paid || shipped'", "",
			"recv orders --group billing --exec ./close-order", "what fails comes again: duemq group create --help",
			"recv orders --wait 5s", "what there is, then 5 s without any",
		),
		Args: a.args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.topic = args[0]
			return r.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVarP(&r.group, "group", "g", "cli", "`GROUP` of receivers that share the messages")
	f.IntVar(&r.max, "max", 0, "end after so `MANY` deliveries, each attempt at a message counted; 0 is no end")
	f.StringVar(&r.wait, "wait", "", "end when nothing came for so `LONG`; without it, never")
	f.StringVar(&r.tags, "tags", "", "only those with one of `TAGS`: 'paid || shipped'; others are finished for the group, unseen")
	f.BoolVar(&r.order, "ordered", false, "of each queue one at a time, in order")
	f.StringVar(&r.exec, "exec", "", "give each message to a shell `COMMAND`: if it fails, the message comes again")
	f.Var(&r.ack, "ack", "acknowledge what was printed: auto, or none")
	complete(cmd, "ack", string(ackAuto), string(ackNone))
	r.remote = a.serverFlag(cmd)
	a.outputFlag(cmd)
	return cmd
}

// An ackMode says whether received messages are acknowledged.
type ackMode string

const (
	ackAuto ackMode = "auto"
	ackNone ackMode = "none"
)

// Set takes the value of --ack.
func (m *ackMode) Set(s string) error {
	if *m = ackMode(s); *m != ackAuto && *m != ackNone {
		return errors.New("want auto or none")
	}
	return nil
}

// String gives the mode's name.
func (m *ackMode) String() string { return string(*m) }

// Type stands for the value in help texts.
func (*ackMode) Type() string { return "MODE" }

const (
	pollFor  = 20 * time.Second // of one long poll
	pageSize = 100              // messages of one receive
)

func (r *receiver) run(ctx context.Context) error {
	patience := time.Duration(0) // none is for ever
	if r.wait != "" {
		var err error
		if patience, err = wire.ParseDuration(r.wait); err != nil || patience <= 0 {
			return usage("--wait "+quote(r.wait), "want a length of time above zero, such as 5s")
		}
	}
	if r.exec != "" && r.ack == ackNone {
		return usage("--exec with --ack none", "the command's end acknowledges; leave one of them out")
	}
	if r.max < 0 {
		return usage(fmt.Sprintf("--max %d", r.max), "want at least 0")
	}
	c, err := r.remote.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	err = r.receive(ctx, c, patience)
	if eerr := r.out.end(); err == nil {
		err = eerr
	}
	return err
}

func (r *receiver) receive(ctx context.Context, c *client.Client, patience time.Duration) error {
	last := r.a.Clock.Now().Mono // when the last message came
	for r.max == 0 || r.out.n < r.max {
		ask := wire.Receive{Group: r.group, Max: pageSize, Wait: wire.Duration(pollFor), Tags: r.tags, Ordered: r.order}
		if !r.met && r.a.watched() {
			ask.Wait = 0 // is there a server? What is gone later is waited for
		}
		if r.max > 0 {
			ask.Max = min(ask.Max, r.max-r.out.n)
		}
		if r.exec != "" {
			ask.Max = 1
		}
		if patience > 0 {
			left := patience - time.Duration(r.a.Clock.Now().Mono-last)
			if left <= 0 {
				return r.ended(patience)
			}
			ask.Wait = min(ask.Wait, wire.Duration(left))
		}
		watch := r.a.watch(ctx, c, r.topic)
		msgs, err := c.Receive(ctx, r.topic, ask)
		watch.end()
		if err != nil {
			f := r.a.answered(ctx, "cannot receive from "+r.topic, err)
			if !r.again(ctx, f) {
				return f
			}
			continue
		}
		r.met = true
		if len(msgs) == 0 {
			continue
		}
		last = r.a.Clock.Now().Mono
		if err := r.take(ctx, c, msgs); err != nil {
			f, ok := errors.AsType[*failure](err)
			if !ok || !r.again(ctx, f) {
				return err
			}
			r.a.tell(f)
		}
	}
	return nil
}

// again says whether to go on after a failure, and waits before that. A person
// who watches a terminal while the server is started anew wants to see the
// messages that come then; a program wants to know.
func (r *receiver) again(ctx context.Context, f *failure) bool {
	if f.code != exitUnavailable || !r.met || !r.a.watched() {
		return false
	}
	fmt.Fprintf(r.a.Stderr, "\r\x1b[K%s", r.a.paint(r.a.errWidth, yellow, "the server is gone; waiting for it…"))
	defer fmt.Fprint(r.a.Stderr, "\r\x1b[K")
	timer := r.a.Clock.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}

// ended is the end after nothing came for a while.
func (r *receiver) ended(patience time.Duration) error {
	if r.out.n > 0 {
		return nil
	}
	return &failure{
		code: exitUnavailable, what: "no message in " + r.topic + " within " + span(patience),
		next: fmt.Sprintf("look at what waits: %s pending ls --topic %s%s", r.a.self, r.topic, r.remote.argument()),
	}
}

// take prints messages and acknowledges them.
func (r *receiver) take(ctx context.Context, c *client.Client, msgs []wire.Message) error {
	leases := make([]string, len(msgs))
	for i := range msgs {
		leases[i] = msgs[i].Lease
		if err := r.out.add(&msgs[i], r.a.received(&msgs[i])); err != nil {
			return err
		}
	}
	if r.exec != "" {
		hard, stop := r.a.untilTwice(ctx)
		defer stop()
		return r.handle(ctx, hard, c, &msgs[0])
	}
	if r.ack == ackNone {
		return nil
	}
	reply, err := c.AckAll(ctx, leases)
	if err != nil {
		return r.a.answered(ctx, several(len(leases), "message")+" not acknowledged, and may come again", err)
	}
	for i := range reply.Results {
		if p := reply.Results[i].Problem; p != nil {
			r.a.tell(r.a.answered(ctx, msgs[i].ID+" was not acknowledged; it may come again", &client.Error{Problem: *p}))
		}
	}
	return nil
}

// received is the line of a received message.
func (a *app) received(m *wire.Message) string {
	line := fmt.Sprintf("%s  %s  %s", a.instant(m.VisibleAt), m.ID, body(m.Body))
	if m.Key != "" {
		line += "  key " + quote(m.Key)
	}
	if m.Tag != "" {
		line += "  tag " + quote(m.Tag)
	}
	if m.LatenessMs != nil {
		c := green
		if *m.LatenessMs >= 1000 {
			c = yellow
		}
		line += "   " + a.paint(a.outWidth, c, lateness(*m.LatenessMs))
	}
	if m.Attempt > 1 {
		line += fmt.Sprintf("   attempt %d", m.Attempt)
	}
	return line
}
