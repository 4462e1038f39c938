package config

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/httpapi/wire"
	"github.com/duemq/duemq/internal/timeline"
)

// A Key is one thing that a server can be told.
type Key struct {
	Name    string   // of its flag, without the dashes
	Value   string   // what stands for the value in help texts; empty for a switch
	Default string   // text of the default; empty when there is none
	Usage   string   // one line
	Choices []string // the values there are; nil if there are many

	set func(*Config, string) error
}

// Env is the key's environment variable.
func (k Key) Env() string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(k.Name, "-", "_"))
}

// YAML is the key's name in the file.
func (k Key) YAML() string { return strings.ReplaceAll(k.Name, "-", "_") }

// EnvPrefix begins the names of all our environment variables.
const EnvPrefix = "DUEMQ_"

// DefaultHTTP is where the HTTP API is unless something else is said.
const DefaultHTTP = "127.0.0.1:9870"

// Keys lists all keys, in the order in which they are shown.
func Keys() []Key {
	return []Key{
		{Name: "data", Value: "DIR", Default: "./duemq-data", Usage: "folder of the data, made when missing", set: setData},
		{Name: "http", Value: "ADDR", Default: DefaultHTTP, Usage: "address of the HTTP API, or off", set: setHTTP},
		{
			Name: "http-hosts", Value: "NAMES", set: setHTTPHosts,
			Usage: "names beside localhost that requests to a loopback address may be for, as behind a proxy on this machine",
		},
		{
			Name: "sync", Value: "POLICY", Default: syncPolicies[0], Choices: syncPolicies, set: setSync,
			Usage: "when a sender is answered: always (its message is on disk) or interval (it is written; a power cut loses up to sync-every)",
		},
		{Name: "sync-every", Value: "DURATION", Default: "500ms", Usage: "time between syncs under sync interval", set: setSyncEvery},
		{Name: "port-base", Value: "N", Usage: "first of the ports: HTTP gets N", set: setPortBase},
		{
			Name: "insecure", Default: "false", set: setInsecure,
			Usage: "allow addresses that other machines reach, although nobody is asked for a password",
		},
		{
			Name: "levels", Value: "LIST", Default: levelsText(engine.DefaultLevels()), set: setLevels,
			Usage: "delay levels 1, 2, ..., as in RocketMQ's messageDelayLevel; a change moves no waiting message",
		},
		{Name: "max-delay", Value: "DURATION", Default: "365d", Usage: "longest delay that is accepted", set: setMaxDelay},
		{
			Name: "retention-time", Value: "DURATION", Default: "72h", set: setRetentionTime,
			Usage: "how long a delivered message is kept, or forever; what waits is kept however long it waits",
		},
		{
			Name: "retention-bytes", Value: "SIZE", Default: unlimited, set: setRetentionBytes,
			Usage: "of log to keep, as in 50GiB; above it the oldest delivered messages go before their time",
		},
		{
			Name: "retention-carry-after", Value: "DURATION", Default: "24h", set: setCarryAfter,
			Usage: "age at which the log gives up what still waits in it to the index, so that its space comes back",
		},
		{
			Name: "idempotency-window", Value: "DURATION", Default: "24h", set: setIdempotencyWindow,
			Usage: "how long an idempotency key is remembered, or until its message is delivered if that is later",
		},
		{
			Name: "log-level", Value: "LEVEL", Default: "info", Choices: logLevels, set: setLogLevel,
			Usage: "lowest level of log lines: debug, info, warn or error",
		},
		{Name: "log-format", Value: "FORMAT", Default: FormatText, Choices: logFormats, Usage: "form of log lines: text or json", set: setLogFormat},
	}
}

// The words of keys that take one of a few.
var (
	syncPolicies = []string{"always", "interval"} // by engine.SyncPolicy
	logLevels    = []string{"debug", "info", "warn", "error"}
	logFormats   = []string{FormatText, FormatJSON}
)

func setData(c *Config, text string) error {
	if text == "" {
		return errors.New("no folder given")
	}
	c.Data = text
	return nil
}

func setHTTP(c *Config, text string) error {
	c.HTTP = text
	if text == Off {
		return nil
	}
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return errors.New("want HOST:PORT, as in 127.0.0.1:9870, or off")
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > maxPort {
		return fmt.Errorf("port %q, want 1 to %d, or 0 for any free one", port, maxPort)
	}
	return nil
}

// setHTTPHosts takes names without ports, since that is how they are compared.
func setHTTPHosts(c *Config, text string) error {
	c.HTTPHosts = nil
	for name := range strings.FieldsSeq(text) {
		if strings.ContainsAny(name, ":/*") {
			return fmt.Errorf("%q: want names such as mq.example.org, without port", name)
		}
		c.HTTPHosts = append(c.HTTPHosts, name)
	}
	return nil
}

func setSync(c *Config, text string) error {
	policy := slices.Index(syncPolicies, text)
	if policy < 0 {
		return choice(text, syncPolicies)
	}
	c.Sync = engine.SyncPolicy(policy)
	return nil
}

func setSyncEvery(c *Config, text string) error {
	d, err := wire.ParseDuration(text)
	if err != nil {
		return err
	}
	if d < time.Millisecond || d > time.Minute {
		return errors.New("want 1ms to 1m")
	}
	c.SyncEvery = d
	return nil
}

// ports is how many consecutive ports port-base lays claim to, so that adding a
// door never changes which ports a base needs.
const (
	ports   = 6
	maxPort = 65535
)

func setPortBase(c *Config, text string) error {
	if text == "" {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxPort-ports+1 {
		return fmt.Errorf("want a port from 1 to %d", maxPort-ports+1)
	}
	c.PortBase = n
	return nil
}

func setInsecure(c *Config, text string) error {
	switch strings.ToLower(text) {
	case "true", "1", "yes", "on":
		c.Insecure = true
	case "false", "0", "no", "off":
		c.Insecure = false
	default:
		return errors.New("want true or false")
	}
	return nil
}

func setLevels(c *Config, text string) error {
	fields := strings.Fields(text)
	if len(fields) == 0 || len(fields) > timeline.Levels {
		return fmt.Errorf("%d levels, want 1 to %d", len(fields), timeline.Levels)
	}
	c.Levels = nil
	for i, f := range fields {
		d, err := wire.ParseDuration(f)
		if err != nil {
			return fmt.Errorf("level %d: %w", i+1, err)
		}
		if d < time.Millisecond || d%time.Millisecond != 0 {
			return fmt.Errorf("level %d: %v, want whole milliseconds, at least 1ms", i+1, d)
		}
		c.Levels = append(c.Levels, d)
	}
	return nil
}

// levelsText writes levels as setLevels reads them: 1s 1m 1h.
func levelsText(levels []time.Duration) string {
	words := make([]string, len(levels))
	for i, d := range levels {
		words[i] = wire.Short(d)
	}
	return strings.Join(words, " ")
}

func setMaxDelay(c *Config, text string) error {
	d, err := wire.ParseDuration(text)
	if err != nil {
		return err
	}
	if d < time.Second || d > MaxDelayLimit {
		return errors.New("want 1s to 36500d")
	}
	c.MaxDelay = d
	return nil
}

func setLogLevel(c *Config, text string) error {
	if !slices.Contains(logLevels, text) {
		return choice(text, logLevels)
	}
	return c.LogLevel.UnmarshalText([]byte(text))
}

func setLogFormat(c *Config, text string) error {
	if !slices.Contains(logFormats, text) {
		return choice(text, logFormats)
	}
	c.LogFormat = text
	return nil
}

// choice refuses a word that is none of those.
func choice(text string, words []string) error {
	want := "want " + strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
	if near, ok := Nearest(text, words); ok {
		return fmt.Errorf("%s; did you mean %s?", want, near)
	}
	return errors.New(want)
}
