package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/cli/machine"
	"github.com/duemq/duemq/internal/config"
	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/httpapi"
	"github.com/duemq/duemq/internal/log"
	"github.com/duemq/duemq/internal/record"
)

// lockName is the file in a data folder that a server holds.
const lockName = "LOCK"

func (a *app) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: `Run the server, in the foreground. It needs no configuration: data is kept in ./duemq-data, a
message is on disk before its sender is answered, and the HTTP API listens on 127.0.0.1:9870.

A setting is taken from its flag, else from its environment variable (--max-delay is
DUEMQ_MAX_DELAY), else from the file that --config names (max_delay: 365d), else it has its
default. See ` + "`duemq config show --sources`" + `.

An interrupt or SIGTERM stops it in order: receivers that wait are sent home, requests end, the
state is written. A second one stops it at once; nothing that was acknowledged is lost by that.`,
		Example: a.example(
			"serve", "",
			"serve --data /var/lib/duemq --port-base 7000", "another folder, HTTP on port 7000",
			"serve --http 0.0.0.0:9870 --insecure", "for a network that you trust",
		),
		Args: a.args(0, 0),
	}
	settings := a.settingsFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		l, err := settings.load()
		if err != nil {
			return err
		}
		s := &server{a: a, c: l.Config, log: a.logger(&l.Config)}
		return s.run(cmd.Context())
	}
	return cmd
}

// logger writes log lines to standard error.
func (a *app) logger(c *config.Config) *slog.Logger {
	o := &slog.HandlerOptions{Level: c.LogLevel}
	if c.LogFormat == config.FormatJSON {
		return slog.New(slog.NewJSONHandler(a.Stderr, o))
	}
	return slog.New(slog.NewTextHandler(a.Stderr, o))
}

// A server is one run of serve.
type server struct {
	a      *app
	c      config.Config
	log    *slog.Logger
	broker *broker.Broker
	http   net.Listener // nil if it is off
}

// run serves until ctx ends or the store fails. Doors are opened before the
// store, because a port that is taken shows at once, and nobody is answered
// before the store is recovered.
func (s *server) run(ctx context.Context) (err error) {
	if err := s.listen(ctx); err != nil {
		return err
	}
	if s.http != nil {
		defer func() { _ = s.http.Close() }() // again, if serving closed it
	}
	if s.broker, err = broker.Open(ctx, s.options()); err != nil {
		f := s.a.cannotOpen(ctx, s.c.Data, err)
		if errors.Is(err, engine.ErrInUse) && f.next != "" {
			f.next = "use that server, " + f.next + ", or take another folder: --data DIR --port-base 7000"
		}
		return f
	}
	defer func() {
		cerr := s.broker.Close()
		switch {
		case err != nil: // it says more than what closing finds afterwards
		case cerr != nil:
			err = s.storeFailed(cerr)
		default:
			s.say("done\n")
		}
	}()
	s.announce()
	return s.serve(ctx)
}

func (s *server) options() broker.Options {
	return broker.Options{Engine: engine.Options{
		FS: s.a.disk, Dir: s.c.Data, Clock: s.a.Clock, Rand: s.a.Rand, Logger: s.log,
		Sync: s.c.Sync, SyncEvery: s.c.SyncEvery, Levels: s.c.Levels, MaxDelay: s.c.MaxDelay,
		Retention: s.c.Retention, Idempotency: s.c.Window,
	}}
}

// serve has the doors open until ctx ends, or something fails.
func (s *server) serve(ctx context.Context) error {
	doors, shut := context.WithCancel(ctx)
	defer shut()
	ended := make(chan error, 1)
	go func() {
		if s.http == nil {
			<-doors.Done()
			ended <- nil
			return
		}
		h := httpapi.New(s.broker, httpapi.Options{Version: buildVersion().Version, Hosts: s.c.HTTPHosts, Clock: s.a.Clock, Logger: s.log})
		ended <- h.Serve(doors, s.http)
	}()
	select {
	case <-s.broker.Failed():
		shut()
		s.drained(<-ended)
		return s.storeFailed(s.broker.Err())
	case err := <-ended:
		if ctx.Err() == nil {
			return &failure{code: exitFailure, what: "the HTTP API ended", why: err, next: s.a.self + " doctor"}
		}
		s.drained(err)
	case <-ctx.Done():
		s.say("draining… ")
		s.drained(<-ended)
	}
	return nil
}

// drained notes requests that had to be cut off; that is no failure of stopping.
func (s *server) drained(err error) {
	if err != nil {
		s.log.Warn("not everything ended in time", slog.Any("error", err))
	}
}

// say writes to people; logs in JSON are for programs, which get log lines.
func (s *server) say(format string, args ...any) {
	if s.c.LogFormat == config.FormatText {
		fmt.Fprintf(s.a.Stdout, format, args...)
	}
}

func (s *server) storeFailed(err error) *failure {
	return &failure{
		code: exitFailure, what: "the store can no longer be trusted; nothing more was acknowledged", why: err,
		next: fmt.Sprintf("check the disk (dmesg, df %s), then start again; damage is found by: %s verify --data %s", quote(s.c.Data), s.a.self, quote(s.c.Data)),
	}
}

// listen opens the port.
func (s *server) listen(ctx context.Context) error {
	if s.c.HTTP == config.Off {
		return nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.c.HTTP)
	if err == nil && exposed(l.Addr()) && !s.c.Insecure {
		// A name that the configuration took for this machine's own resolved to something else.
		return &failure{
			code: exitUsage, what: "will not listen on " + s.c.HTTP,
			why:  errors.Join(fmt.Errorf("it is %v, which other machines reach, and nobody is asked for a password yet", l.Addr()), l.Close()),
			next: "listen on 127.0.0.1, or say with --insecure that you trust the network",
		}
	}
	if err == nil {
		s.http = l
		return nil
	}
	f := &failure{code: exitFailure, what: "cannot listen on " + s.c.HTTP, why: err}
	if !machine.PortTaken(err) {
		return f
	}
	host, text, _ := net.SplitHostPort(s.c.HTTP)
	port, _ := strconv.Atoi(text)
	f.why = errors.New("another program has that port")
	if p, ok := machine.PortHolder(port); ok {
		f.why = fmt.Errorf("%v has that port", p)
	}
	f.next = fmt.Sprintf("take another: %s serve --http %s, or --port-base %d", s.a.self,
		net.JoinHostPort(host, strconv.Itoa(port+10)), port+10)
	return f
}

// exposed says whether other machines may reach a listener of that address.
func exposed(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return !ok || !tcp.IP.IsLoopback()
}

// cannotOpen tells why a data folder cannot be used.
func (a *app) cannotOpen(ctx context.Context, folder string, err error) *failure {
	data := quote(folder)
	f := &failure{code: exitFailure, what: "cannot open data folder " + data, why: err}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return interrupted()
	case errors.Is(err, os.ErrPermission):
		f.next = fmt.Sprintf("give yourself the rights (ls -ld %s), or take another folder: --data DIR", data)
	case errors.Is(err, engine.ErrInUse):
		f.what = "data folder " + data + " is in use"
		f.next = "stop it first"
		if p, ok := machine.LockHolder(filepath.Join(folder, lockName)); ok {
			f.why = fmt.Errorf("%v has it open", p)
			f.next = fmt.Sprintf("stop it first (kill %d)", p.PID)
		}
	case damaged(err):
		f.what = "the data in " + data + " is damaged; nothing was changed"
		f.next = fmt.Sprintf("see all of it: %s verify --data %s; then bring that file back from a backup", a.self, data)
	case errors.Is(err, record.ErrVersion):
		f.what = "the data in " + data + " was written by another version"
	}
	return f
}

func damaged(err error) bool {
	_, ok := errors.AsType[*log.DamageError](err)
	return ok || errors.Is(err, record.ErrCorrupt)
}

// since is how long this run has taken so far.
func (s *server) since() time.Duration { return time.Duration(s.a.Clock.Now().Mono - s.a.began.Mono) }
