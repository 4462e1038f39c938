// Package config is what a server can be told, in one list of keys: their
// flags, environment variables, names in the YAML file, defaults and meanings
// all come from [Keys]. A flag beats the environment, which beats the file,
// which beats the default; [Load] says for each value where it came from.
//
// Nothing is read that was not named: there is no file in a home folder that
// changes what a server does. A key that does not exist is an error with the
// nearest one that does.
package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/duemq/duemq/internal/engine"
)

// Off is the address of a door that stays shut.
const Off = "off"

// MaxDelayLimit bounds what max-delay may allow. It keeps sums of a due and a
// delay far from the ends of their type.
const MaxDelayLimit = 100 * 365 * 24 * time.Hour

// Config is the configuration of a server, whole and checked.
type Config struct {
	Data      string            // folder of the data
	HTTP      string            // address of the HTTP API, or Off
	HTTPHosts []string          // names that the Host of a request to a loopback address may have
	Sync      engine.SyncPolicy // what has happened to a message when its sender is answered
	SyncEvery time.Duration     // between syncs; only read under engine.SyncInterval
	PortBase  int               // first of the ports, 0 for the usual ones
	Insecure  bool              // an address that other machines reach is allowed
	Levels    []time.Duration   // RocketMQ's messageDelayLevel
	MaxDelay  time.Duration     // longest delay that is accepted
	Retention engine.Retention  // how long what was delivered is kept
	Window    time.Duration     // how long an idempotency key is remembered at least
	LogLevel  slog.Level        // lines below it are not written
	LogFormat string            // FormatText or FormatJSON
}

// The forms of log lines.
const (
	FormatText = "text"
	FormatJSON = "json"
)

// A Setting is the value of one key and where it came from.
type Setting struct {
	Key    Key
	Text   string // as it was given
	Source string // "default", "duemq.yaml:3", "DUEMQ_HTTP", "--http"
	rank   rank
}

// where names the key and its source: a flag or a variable is both.
func (s *Setting) where() string {
	if s.Source == "--"+s.Key.Name || s.Source == s.Key.Env() {
		return s.Source
	}
	return s.Source + ": " + s.Key.YAML()
}

// rank orders sources: a higher one beats a lower one.
type rank uint8

const (
	fromDefault rank = iota
	fromFile
	fromEnvironment
	fromFlag
)

// Loaded is a configuration with its history.
type Loaded struct {
	Config   Config
	Settings []Setting // one for each key, in the order of Keys
	Warnings []string  // what is likely a mistake, but does no harm
}

// Sources are where values may come from.
type Sources struct {
	Flags   map[string]string // values of the flags that were given, by the key's name
	Environ []string          // "NAME=value", as os.Environ gives it
	File    string            // path of the YAML file; empty for none
}

// Load puts a configuration together and checks it. The error joins every
// complaint, each with its place.
func Load(s Sources) (*Loaded, error) {
	l := &Loaded{}
	for _, k := range Keys() {
		l.Settings = append(l.Settings, Setting{Key: k, Text: k.Default, Source: "default"})
	}
	var complaints []error
	if s.File != "" {
		complaints = append(complaints, l.file(s.File))
	}
	l.environment(s.Environ)
	for i := range l.Settings {
		k := l.Settings[i].Key
		if text, ok := s.Flags[k.Name]; ok {
			l.Settings[i] = Setting{Key: k, Text: text, Source: "--" + k.Name, rank: fromFlag}
		}
	}
	wrong := false
	for i := range l.Settings {
		set := &l.Settings[i]
		if err := set.Key.set(&l.Config, set.Text); err != nil {
			complaints = append(complaints, fmt.Errorf("%s %q: %w", set.where(), set.Text, err))
			wrong = true
		}
	}
	if !wrong { // else values that were not understood would be complained about twice
		l.movePorts()
		complaints = append(complaints, l.check()...)
	}
	if err := errors.Join(complaints...); err != nil {
		return nil, err
	}
	return l, nil
}

// Setting gives the setting of the key of that name, which must exist.
func (l *Loaded) Setting(name string) *Setting {
	for i := range l.Settings {
		if l.Settings[i].Key.Name == name {
			return &l.Settings[i]
		}
	}
	panic("no key " + name)
}

// movePorts gives each address the port that port-base has for it, unless the
// address was given by the same kind of source or a stronger one. Its host stays.
func (l *Loaded) movePorts() {
	base, addr := l.Setting("port-base"), l.Setting("http")
	if l.Config.PortBase == 0 || l.Config.HTTP == Off {
		return
	}
	if addr.rank >= base.rank && addr.rank != fromDefault {
		return
	}
	host, _, err := net.SplitHostPort(l.Config.HTTP)
	if err != nil {
		return // check complains about it
	}
	l.Config.HTTP = net.JoinHostPort(host, strconv.Itoa(l.Config.PortBase))
	addr.Text, addr.Source = l.Config.HTTP, "port_base of "+base.Source
}

// check looks at values together.
func (l *Loaded) check() []error {
	var complaints []error
	complain := func(name, format string, args ...any) {
		s := l.Setting(name)
		complaints = append(complaints, fmt.Errorf("%s %q: %s", s.where(), s.Text, fmt.Sprintf(format, args...)))
	}
	c := &l.Config
	if c.HTTP != Off {
		switch host, _, err := net.SplitHostPort(c.HTTP); {
		case err != nil:
			complain("http", "want HOST:PORT or off")
		case !loopback(host) && !c.Insecure:
			complain("http", "other machines reach this address and nobody is asked for a password yet; "+
				"listen on 127.0.0.1, or say with --insecure that you trust the network")
		}
	}
	for i, d := range c.Levels {
		if d > c.MaxDelay {
			complain("levels", "level %d is beyond max_delay %s", i+1, l.Setting("max-delay").Text)
			break
		}
	}
	if s := l.Setting("sync-every"); c.Sync == engine.SyncAlways && s.rank != fromDefault {
		l.Warnings = append(l.Warnings, s.Source+": sync_every is only read under sync: interval")
	}
	return complaints
}

// loopback says that only this machine reaches an address of that host.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
