package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// Words for no limit.
const (
	forever   = "forever"
	unlimited = "unlimited"
)

// minRetentionBytes is the least that a limit of the log may be: below a few
// segments of 64 MiB it would give up what has only just been delivered.
const minRetentionBytes = 256 << 20

func setRetentionTime(c *Config, text string) error {
	if text == forever {
		c.Retention.Time = -1
		return nil
	}
	d, err := within(text, time.Minute)
	if err != nil {
		return fmt.Errorf("%w, or %s", err, forever)
	}
	c.Retention.Time = d
	return nil
}

func setRetentionBytes(c *Config, text string) error {
	if text == unlimited {
		c.Retention.Bytes = 0
		return nil
	}
	n, err := parseSize(text)
	if err != nil {
		return err
	}
	if n < minRetentionBytes {
		return fmt.Errorf("want at least 256MiB, or %s", unlimited)
	}
	c.Retention.Bytes = n
	return nil
}

func setCarryAfter(c *Config, text string) (err error) {
	c.Retention.CarryAfter, err = within(text, time.Minute)
	return err
}

func setIdempotencyWindow(c *Config, text string) (err error) {
	c.Window, err = within(text, time.Second)
	return err
}

// within reads a length of time from least to MaxDelayLimit.
func within(text string, least time.Duration) (time.Duration, error) {
	d, err := wire.ParseDuration(text)
	if err != nil {
		return 0, err
	}
	if d < least || d > MaxDelayLimit {
		return 0, fmt.Errorf("want %s to 36500d", wire.Short(least))
	}
	return d, nil
}

// sizes are the units of a number of bytes, longer names before their ends.
var sizes = []struct {
	name string
	unit float64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
	{"kB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"TB", 1e12},
	{"B", 1},
}

var errSize = errors.New("want a size with its unit, such as 50GiB or 500MB")

// parseSize reads a number of bytes with its unit.
func parseSize(text string) (int64, error) {
	for _, s := range sizes {
		number, ok := strings.CutSuffix(text, s.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		switch n *= s.unit; {
		case err != nil || math.IsNaN(n) || n < 0:
			return 0, errSize
		case n >= math.MaxInt64:
			return 0, errors.New("more bytes than can be counted")
		}
		return int64(n), nil
	}
	return 0, errSize
}
