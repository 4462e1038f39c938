package cli

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

func (a *app) benchCommand() *cobra.Command {
	return a.group("bench", "Measure a server that runs, over HTTP", a.benchSendCommand(), a.benchReceiveCommand(), a.benchDelayCommand())
}

// A bench is one run of a measurement.
type bench struct {
	a       *app
	remote  *remote
	client  *client.Client
	kind    string
	topic   string
	group   string
	total   int
	size    int
	batch   int
	clients int
	rate    int
	delay   string
	wait    string
	json    bool

	least, most time.Duration // of the delay
	patience    time.Duration // of a receiver that gets nothing
	tally       tally
}

// Limits of a measurement, which keep it from measuring this machine's memory.
const (
	benchTotal   = 100_000_000
	benchSize    = 1 << 20
	benchBatch   = 4096
	benchClients = 1024
)

func (b *bench) flags(cmd *cobra.Command, total, batch int) {
	f := cmd.Flags()
	f.IntVar(&b.total, "msgs", total, "so `MANY` messages")
	f.IntVar(&b.batch, "batch", batch, "so `MANY` in one request")
	f.IntVar(&b.clients, "clients", 4, "so `MANY` requests at once")
	f.BoolVar(&b.json, "json", false, "as -o json")
	b.remote = b.a.serverFlag(cmd)
	b.a.outputFlag(cmd)
}

func (b *bench) sendFlags(cmd *cobra.Command, delay string) {
	f := cmd.Flags()
	f.IntVar(&b.size, "size", 256, "so many `BYTES` of body")
	f.IntVar(&b.rate, "rate", 0, "so `MANY` a second at most; 0 is as fast as it goes")
	f.StringVar(&b.delay, "delay", delay, "due so `LONG` after they are sent: 10s, or 1s-60s for any time between")
}

// check refuses what cannot be measured.
func (b *bench) check() error {
	if b.json {
		b.a.format = formatJSON
	}
	for _, n := range []struct {
		flag        string
		value       int
		least, most int
	}{
		{"msgs", b.total, 1, benchTotal},
		{"batch", b.batch, 1, benchBatch},
		{"clients", b.clients, 1, benchClients},
		{"size", b.size, 0, benchSize},
		{"rate", b.rate, 0, benchTotal},
	} {
		if n.value < n.least || n.value > n.most {
			return usage(fmt.Sprintf("--%s %d", n.flag, n.value), "want %s to %s", count(n.least), count(n.most))
		}
	}
	if b.wait != "" {
		d, err := wire.ParseDuration(b.wait)
		if err != nil || d <= 0 {
			return usage("--wait "+quote(b.wait), "want a length of time above zero, such as 5s")
		}
		b.patience = d
	}
	return b.readDelay()
}

// readDelay reads one delay, or the two ends of a range.
func (b *bench) readDelay() error {
	if b.delay == "" {
		return nil
	}
	least, most, ranged := strings.Cut(strings.TrimPrefix(b.delay, "uniform:"), "-")
	var err error
	if b.least, err = wire.ParseDuration(least); err == nil {
		b.most = b.least
		if ranged {
			b.most, err = wire.ParseDuration(most)
		}
	}
	if err != nil {
		return usage("--delay "+quote(b.delay), "%w", err)
	}
	if b.least < 0 || b.most < b.least {
		return usage("--delay "+quote(b.delay), "want a delay such as 10s, or a range from the shorter to the longer: 1s-60s")
	}
	return nil
}

// command makes the command of a measurement.
func (b *bench) command(use, short, long, example string, measure func(context.Context) error) *cobra.Command {
	b.kind, _, _ = strings.Cut(use, " ")
	cmd := &cobra.Command{Use: use, Short: short, Long: long + benchLong, Example: example, Args: b.a.args(0, 0)}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := b.check(); err != nil {
			return err
		}
		c, err := b.remote.dial()
		if err != nil {
			return err
		}
		defer c.Close()
		b.client = c
		return b.finish(cmd.Context(), measure(cmd.Context()))
	}
	return cmd
}

const benchLong = `

A progress bar is shown on a terminal. An interrupt shows what was measured so far. Client and server
share this machine if they run on it: then it measures both.`

func (a *app) benchSendCommand() *cobra.Command {
	b := &bench{a: a}
	cmd := b.command("send", "Measure how fast messages are taken", "Send messages, and show how many a second were taken and how long answers took.",
		a.example(
			"bench send", "",
			"bench send --batch 1 --clients 64", "one message a request",
			"bench send --delay 1h --msgs 1000000", "that wait",
		), b.send)
	cmd.Flags().StringVar(&b.topic, "topic", "bench", "to that `TOPIC`")
	b.flags(cmd, 100_000, 500)
	b.sendFlags(cmd, "")
	return cmd
}

func (a *app) benchReceiveCommand() *cobra.Command {
	b := &bench{a: a}
	cmd := b.command("recv", "Measure how fast messages are handed out", `Receive messages, acknowledge each, and show how many a second that were. It ends after --msgs, or
when nothing came for --wait.`,
		a.example("bench send", "", "bench recv", "what that sent"), b.receive)
	cmd.Flags().StringVar(&b.topic, "topic", "bench", "of that `TOPIC`")
	cmd.Flags().StringVarP(&b.group, "group", "g", "bench", "as that `GROUP`")
	cmd.Flags().StringVar(&b.wait, "wait", "2s", "end when nothing came for so `LONG`")
	b.flags(cmd, 100_000, 500)
	return cmd
}

func (a *app) benchDelayCommand() *cobra.Command {
	b := &bench{a: a, group: "bench"}
	cmd := b.command("delay", "Measure how late messages are", `Send messages that wait, receive them meanwhile, and show how late they were: when they became
visible, by the server's clock, and when they were received, by this machine's, which has to agree
with the server's for that. It counts what came early, twice or never.

Without --topic it takes one of its own and deletes it afterwards.`,
		a.example(
			"bench delay", "",
			"bench delay --msgs 100000 --rate 5000 --delay 1s-30s", "",
			"bench delay --delay 10s --json", "for a program",
		), b.delayed)
	cmd.Flags().StringVar(&b.topic, "topic", "", "in that `TOPIC`, which must be empty")
	cmd.Flags().StringVar(&b.wait, "wait", "10s", "give up on the last ones after so `LONG` without any")
	b.flags(cmd, 10_000, 100)
	b.sendFlags(cmd, "1s-10s")
	cmd.Flags().Lookup("rate").DefValue = "1000"
	b.rate = 1000
	return cmd
}

// dice gives the generator of delays, which are no secret. The same run has the
// same delays.
func dice(worker int) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(worker), 1))
}

// due draws a delay.
func (b *bench) due(r *rand.Rand) string {
	switch {
	case b.delay == "":
		return ""
	case b.most == b.least:
		return b.least.String()
	}
	return (b.least + time.Duration(r.Int64N(int64((b.most-b.least)/time.Millisecond)+1))*time.Millisecond).String()
}
