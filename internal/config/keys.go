package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/httpapi/wire"
	"github.com/duemq/duemq/internal/timeline"
)

// A Key is one thing that a server can be told.
type Key struct {
	Name    string // of its flag, without the dashes
	Value   string // what stands for the value in help texts; empty for a switch
	Default string // text of the default; empty when there is none
	Usage   string // one line

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

// Keys lists all keys, in the order in which they are shown.
func Keys() []Key {
	return []Key{
		{"data", "DIR", "./duemq-data", "folder of the data, made when missing", setData},
		{"http", "ADDR", "127.0.0.1:9870", "address of the HTTP API, or off", setHTTP},
		{
			"sync", "POLICY", "always",
			"when a sender is answered: always (its message is on disk) or interval (it is written; a power cut loses up to sync-every)",
			setSync,
		},
		{"sync-every", "DURATION", "500ms", "time between syncs under sync interval", setSyncEvery},
		{"port-base", "N", "", "first of the ports: HTTP gets N", setPortBase},
		{"insecure", "", "false", "allow addresses that other machines reach, although nobody is asked for a password", setInsecure},
		{
			"levels", "LIST", levelsText(engine.DefaultLevels()),
			"delay levels 1, 2, ..., as in RocketMQ's messageDelayLevel; a change moves no waiting message", setLevels,
		},
		{"max-delay", "DURATION", "365d", "longest delay that is accepted", setMaxDelay},
		{"log-level", "LEVEL", "info", "lowest level of log lines: debug, info, warn or error", setLogLevel},
		{"log-format", "FORMAT", FormatText, "form of log lines: text or json", setLogFormat},
	}
}

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

func setSync(c *Config, text string) error {
	switch text {
	case "always":
		c.Sync = engine.SyncAlways
	case "interval":
		c.Sync = engine.SyncInterval
	default:
		return choice(text, "always", "interval")
	}
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
		if d < time.Millisecond {
			return fmt.Errorf("level %d: %v, want at least 1ms", i+1, d)
		}
		c.Levels = append(c.Levels, d)
	}
	return nil
}

// levelsText writes levels as setLevels reads them: 1s 1m 1h.
func levelsText(levels []time.Duration) string {
	words := make([]string, len(levels))
	for i, d := range levels {
		words[i] = shortDuration(d)
	}
	return strings.Join(words, " ")
}

// shortDuration leaves out the zeros that Go writes: 1h, not 1h0m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
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
	levels := map[string]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	}
	level, ok := levels[text]
	if !ok {
		return choice(text, "debug", "info", "warn", "error")
	}
	c.LogLevel = level
	return nil
}

func setLogFormat(c *Config, text string) error {
	if text != FormatText && text != FormatJSON {
		return choice(text, FormatText, FormatJSON)
	}
	c.LogFormat = text
	return nil
}

// choice refuses a word that is none of those.
func choice(text string, words ...string) error {
	want := "want " + strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
	if near, ok := Nearest(text, words); ok {
		return fmt.Errorf("%s; did you mean %s?", want, near)
	}
	return errors.New(want)
}
