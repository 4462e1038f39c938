package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/cli/machine"
	"github.com/duemq/duemq/internal/config"
	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/httpapi"
	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// A demo is one run of demo.
type demo struct {
	a      *app
	remote *remote
	addr   string // of a server of its own
	rate   int
	length string
	url    string // of the server that is fed
	own    bool
}

func (a *app) demoCommand() *cobra.Command {
	d := &demo{a: a}
	cmd := &cobra.Command{
		Use: "demo", Short: "Run a small shop on a server in memory, to look at", Args: a.args(0, 0),
		Long: `Run a small shop, to look at: orders that are closed unless they are paid in time, reminders that
move, webhooks that fail and are tried again, a push to everybody at 09:00, trials that end in weeks.
It begins a server in memory, of which nothing is left at the end; with --server it feeds that one,
in topics whose names begin with demo-. An interrupt stops it.`,
		Example: a.example("demo", "", "demo --rate 100", "a busy shop", "demo --server http://127.0.0.1:9870", "feed a server that runs"),
	}
	f := cmd.Flags()
	f.StringVar(&d.addr, "http", config.DefaultHTTP, "`ADDR` of the HTTP API of the server in memory; another port if that is taken")
	f.IntVar(&d.rate, "rate", 10, "so `MANY` orders a second")
	f.StringVar(&d.length, "for", "", "end after so `LONG`; without it, when you interrupt")
	d.remote = a.serverFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return d.run(cmd.Context()) }
	return cmd
}

// maxDemoRate bounds the shop: one goroutine runs it.
const maxDemoRate = 1000

func (d *demo) run(ctx context.Context) error {
	if d.rate < 1 || d.rate > maxDemoRate {
		return usage(fmt.Sprintf("--rate %d", d.rate), "want 1 to %s", count(maxDemoRate))
	}
	length := time.Duration(0)
	if d.length != "" {
		var err error
		if length, err = wire.ParseDuration(d.length); err != nil || length <= 0 {
			return usage("--for "+quote(d.length), "want a length of time above zero, such as 1m")
		}
	}
	d.url = d.remote.url
	if d.own = !d.remote.flags.Changed(serverName); d.own { // never the server of the environment: it may be a real one
		stop, err := d.serve(ctx)
		if err != nil {
			return err
		}
		defer stop()
	}
	c, err := (&remote{url: d.url, flags: d.remote.flags}).dial()
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Ready(ctx); err != nil {
		return d.a.answered(ctx, "there is no server to feed", err)
	}
	d.tell()
	s := newShop(d.a, c, d.rate)
	ferr := s.run(ctx, length)
	fmt.Fprintf(d.a.Stdout, "%s\n", s.summary())
	if d.own {
		fmt.Fprintln(d.a.Stdout, "the server is stopped; nothing is left of it")
	} else if ferr == nil || errors.Is(ctx.Err(), context.Canceled) {
		d.leave()
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil // that is how it ends
	}
	return ferr
}

// leave says what stays in the server that was fed, and how to take it away.
func (d *demo) leave() {
	a, server := d.a, serverArgument(d.url)
	fmt.Fprintf(a.Stdout, "what waits stays: %s pending timeline%s; to take it away:\n", a.self, server)
	lines := make([]string, 0, 5)
	for _, topic := range []string{shopOrders, shopReminders, shopWebhooks, shopPush, shopTrials} {
		lines = append(lines, fmt.Sprintf("%s topic rm %s --yes%s", a.self, topic, server))
	}
	fmt.Fprintln(a.Stdout, strings.Join(lines, "; "))
}

// serve begins a server in memory and gives what ends it.
func (d *demo) serve(ctx context.Context) (stop func(), err error) {
	a := d.a
	l, err := d.listen(ctx)
	if err != nil {
		return nil, &failure{code: exitFailure, what: "cannot listen on " + d.addr, why: err, next: a.self + " demo --http 127.0.0.1:0"}
	}
	if exposed(l.Addr()) {
		return nil, &failure{
			code: exitUsage, what: "will not listen on " + d.addr, why: errors.Join(errors.New("other machines reach it"), l.Close()),
			next: a.self + " demo --http 127.0.0.1:0",
		}
	}
	quiet := slog.New(slog.DiscardHandler)
	b, err := broker.Open(ctx, broker.Options{Engine: engine.Options{FS: fs.NewMem(), Dir: "demo", Clock: a.Clock, Rand: a.Rand, Logger: quiet}})
	if err != nil {
		return nil, &failure{code: exitFailure, what: "cannot begin a server in memory", why: errors.Join(err, l.Close())}
	}
	h := httpapi.New(b, httpapi.Options{Version: buildVersion().Version, Clock: a.Clock, Logger: quiet})
	doors, shut := context.WithCancel(context.WithoutCancel(ctx)) // the shop ends first
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = h.Serve(doors, l) // the shop notices
	}()
	d.url = "http://" + l.Addr().String()
	return func() {
		shut()
		<-ended
		_ = b.Close() // it was in memory
	}, nil
}

// listen takes the address, or any port if that one is taken.
func (d *demo) listen(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", d.addr)
	if err == nil || !machine.PortTaken(err) {
		return l, err
	}
	host, _, serr := net.SplitHostPort(d.addr)
	if serr != nil {
		return nil, err
	}
	return lc.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
}

// tell says what there is to look at.
func (d *demo) tell() {
	a := d.a
	server := ""
	if d.url != "http://"+config.DefaultHTTP {
		server = serverArgument(d.url)
	}
	what := "a server in memory, " + d.url
	if !d.own {
		what = d.url
	}
	fmt.Fprintf(a.Stdout, "  %s  on %s\n", a.paint(a.outWidth, bold, "a small shop"), what)
	for _, line := range [][2]string{
		{"pending timeline --within 10m --watch -o wide", "what falls due when"},
		{"pending ls --topic demo-orders", "orders that are not paid yet"},
		{"group lag demo-webhooks", "webhooks that are tried again"},
		{"dlq ls demo-webhooks", "webhooks that are given up"},
		{"pending spread --topic demo-push --at '" + nine(a.now(), a.Zone).Format("2006-01-02 15:04") + "' --over 10m --dry-run", "no herd at nine"},
		{"topic pause demo-reminders", "reminders wait; then resume"},
		{"recv demo-orders --group audit", "orders that nobody paid"},
	} {
		fmt.Fprintf(a.Stdout, "  %-30s %s %s%s\n", line[1], a.self, line[0], server)
	}
	fmt.Fprintf(a.Stdout, "  %-30s %s\n", "figures", "curl -s "+d.url+"/metrics | grep ^duemq")
	fmt.Fprintln(a.Stdout, "  An interrupt (Ctrl-C) stops it.")
}

// nine is the next 09:00.
func nine(now time.Time, zone *time.Location) time.Time {
	now = now.In(zone)
	at := time.Date(now.Year(), now.Month(), now.Day(), 9, 0, 0, 0, zone)
	if !at.After(now) {
		at = time.Date(now.Year(), now.Month(), now.Day()+1, 9, 0, 0, 0, zone)
	}
	return at
}

// lostRace says that a refusal is one that a shop expects.
func lostRace(err error) bool {
	switch client.CodeOf(err) {
	case wire.CodeAlreadyDelivered, wire.CodeAlreadyCancelled, wire.CodeMessageUnknown, wire.CodeLeaseLost:
		return true
	default:
		return false
	}
}
