package cli

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/duemq/duemq/internal/config"
	"github.com/duemq/duemq/internal/engine"
)

// announce says that the server is ready: where data is, how safe it is, what
// was found, and lines to copy.
func (s *server) announce() {
	r := s.broker.Recovered()
	open := s.http != nil && exposed(s.http.Addr())
	if open {
		s.log.Warn("INSECURE: the HTTP API listens beyond this machine, without passwords and without encryption; "+
			"whoever reaches it may send, read, cancel and move every message", slog.String("http", s.http.Addr().String()))
	}
	if s.c.LogFormat == config.FormatJSON {
		s.log.Info("ready", slog.String("version", buildVersion().Version), slog.String("data", s.c.Data),
			slog.String("http", s.address()), slog.Bool("insecure", open), slog.Bool("new", r.New), slog.Int64("pending", r.Waiting),
			slog.Int("overdue", r.Missed), slog.Duration("recovery", r.Took), slog.Duration("start", s.since()))
		return
	}
	s.say("%s", s.banner(&r, s.since()))
	if r.Log.Torn > 0 {
		s.log.Warn("the end of the log was never acknowledged and was dropped", slog.Int64("bytes", r.Log.Torn), slog.String("reason", r.Log.Reason))
	}
}

// local is how programs of this machine reach the HTTP API, HOST:PORT.
func (s *server) local() string {
	host, port, err := net.SplitHostPort(s.http.Addr().String())
	switch {
	case err != nil:
		return s.http.Addr().String()
	case host == "0.0.0.0":
		host = "127.0.0.1"
	case host == "::":
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// address is where the HTTP API is.
func (s *server) address() string {
	if s.http == nil {
		return config.Off
	}
	return "http://" + s.http.Addr().String()
}

func (s *server) banner(r *engine.Recovery, took time.Duration) string {
	var b strings.Builder
	a := s.a
	fmt.Fprintf(&b, "  %s  ·  data %s (%s)  ·  %s\n", a.paint(a.outWidth, bold, "duemq "+buildVersion().Version),
		s.c.Data, found(r), durability(&s.c))
	if s.http == nil {
		fmt.Fprintf(&b, "  HTTP API   off, and this version has no other door: nobody can send or receive\n")
	} else {
		reach := "this machine only"
		if exposed(s.http.Addr()) {
			reach = a.paint(a.outWidth, bold, "INSECURE: no passwords, no encryption; whoever reaches it may do everything")
		}
		url := "http://" + s.local()
		server := ""
		if s.local() != config.DefaultHTTP {
			server = serverArgument(url)
		}
		fmt.Fprintf(&b, "  HTTP API   %s   (%s)\n", s.address(), reach)
		fmt.Fprintf(&b, "  Try:   %s send orders 'hello' --after 10s%s\n", a.self, server)
		fmt.Fprintf(&b, "         %s recv orders%s\n", a.self, server)
		fmt.Fprintf(&b, "         curl -d 'hello' '%s/v1/topics/orders/messages?after=10s'\n", url)
	}
	fmt.Fprintf(&b, "  Ready in %d ms.\n", took.Milliseconds())
	return b.String()
}

// found says what was in the data folder.
func found(r *engine.Recovery) string {
	if r.New {
		return "new"
	}
	overdue := ""
	if r.Overdue {
		more := ""
		if r.Missed == engine.MaxMissed {
			more = " or more"
		}
		overdue = fmt.Sprintf(", %s%s overdue going out now,", count(r.Missed), more)
	}
	return fmt.Sprintf("recovered %s pending%s in %d ms", count(r.Waiting), overdue, r.Took.Milliseconds())
}

// durability says what has happened to a message when its sender is answered.
func durability(c *config.Config) string {
	if c.Sync == engine.SyncInterval {
		return fmt.Sprintf("synced every %v: a power cut loses up to that", c.SyncEvery)
	}
	return "synced before it answers"
}
