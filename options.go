package duemq

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/fs"
)

// An Option changes how [Open] or [Dial] opens a queue. The last one of a kind
// wins. One that is about the store is refused by Dial, whose server has its own
// settings, and one about the connection by Open.
type Option func(*settings)

// settings are what the options say. Zero means the default.
type settings struct {
	sync         SyncPolicy
	levels       []time.Duration
	levelsGiven  bool
	maxDelay     time.Duration
	queues       int
	queuesGiven  bool
	segmentBytes int64
	retention    engine.Retention
	window       time.Duration
	logger       *slog.Logger
	clock        Clock
	memory       *Memory
	httpClient   *http.Client
	token        string

	openOnly, dialOnly []string // options that were given and make sense one way only
}

// clockOr is the clock that was given, or another one.
func (s *settings) clockOr(other clock.Clock) clock.Clock {
	if s.clock == nil {
		return other
	}
	return givenClock{s.clock}
}

// loggerOr is the logger that was given, or one that drops everything.
func (s *settings) loggerOr() *slog.Logger {
	if s.logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.logger
}

// A SyncPolicy says what has happened to a change when its caller is answered.
type SyncPolicy time.Duration

// Always answers when the change is on disk. Callers that come while one sync
// runs share the next.
const Always SyncPolicy = 0

// Interval answers when the change is written, and syncs every d. A power cut
// loses at most what was answered in the last d. Zero is [Always].
func Interval(d time.Duration) SyncPolicy { return SyncPolicy(d) }

// WithSync chooses the sync policy; default [Always].
func WithSync(p SyncPolicy) Option {
	return func(s *settings) { s.openOnly, s.sync = append(s.openOnly, "WithSync"), p }
}

// WithLevels names the delays of [Level] 1, 2, ... It takes 1 to 18, each in
// whole milliseconds. Messages that wait keep the due they were given. Default:
// RocketMQ's 1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h.
func WithLevels(delays ...time.Duration) Option {
	return func(s *settings) {
		s.openOnly = append(s.openOnly, "WithLevels")
		s.levels, s.levelsGiven = slices.Clone(delays), true
	}
}

// WithMaxDelay bounds how far ahead a message may be due; default 365 days. It
// also bounds how far the machine's clock may be ahead of the last start and
// still be believed.
func WithMaxDelay(d time.Duration) Option {
	return func(s *settings) { s.openOnly, s.maxDelay = append(s.openOnly, "WithMaxDelay"), d }
}

// WithQueues says how many queues a topic gets when it is made; 1 to 1024,
// default 8. With one, the whole topic is in order.
func WithQueues(n int) Option {
	return func(s *settings) {
		s.openOnly = append(s.openOnly, "WithQueues")
		s.queues, s.queuesGiven = n, true
	}
}

// WithSegmentBytes sets the size of the log's files: a multiple of 4096 from
// 8 MiB to 1 GiB, default 64 MiB. It is fixed when the folder is made; an
// existing one stays as it is.
func WithSegmentBytes(n int64) Option {
	return func(s *settings) { s.openOnly, s.segmentBytes = append(s.openOnly, "WithSegmentBytes"), n }
}

// Forever as the time of [WithRetention] keeps everything, as long as the disk
// has room.
const Forever time.Duration = -1

// WithRetention says how long a message is kept once it is visible, and how many
// bytes of log at most: above that the oldest go before their time. Default 72
// hours and any number of bytes (0). The time is at least a minute, or [Forever];
// the bytes are at least 256 MiB. What waits is kept however long it waits and
// does not count. A group that is slower than retention misses messages; it sees
// how many ([GroupTopic].Skipped).
func WithRetention(d time.Duration, bytes int64) Option {
	return func(s *settings) {
		s.openOnly = append(s.openOnly, "WithRetention")
		s.retention.Time, s.retention.Bytes = d, bytes
	}
}

// WithCarryAfter says at which age of the log a message that still waits is
// moved out of it, so that the log can be given up: once in its life. Default 24
// hours, at least a minute. Less frees space sooner, more writes less twice.
func WithCarryAfter(d time.Duration) Option {
	return func(s *settings) {
		s.openOnly, s.retention.CarryAfter = append(s.openOnly, "WithCarryAfter"), d
	}
}

// WithIdempotencyWindow says how long an [IdempotencyKey] is remembered: that
// long, or until its message is delivered if that is later. Default 24 hours, at
// least a second.
func WithIdempotencyWindow(d time.Duration) Option {
	return func(s *settings) { s.openOnly, s.window = append(s.openOnly, "WithIdempotencyWindow"), d }
}

// WithLogger has the queue report what an operator should know: a clock that
// was set, a cut that was put off, a failed disk, a server that is away, a
// handler that failed. Default: nothing.
func WithLogger(l *slog.Logger) Option { return func(s *settings) { s.logger = l } }

// WithClock replaces the machine's clock, for tests. With [Dial] it is what
// [Wait] and the pauses between two attempts are measured by; dues are the
// server's.
func WithClock(c Clock) Option { return func(s *settings) { s.clock = c } }

// WithMemory keeps everything in m and nothing on disk, for tests. Open's dir is
// then a folder within m, which holds one queue per folder. Since m knows no
// other clock, one that is before 2020, as in a [testing/synctest] bubble, is
// accepted.
func WithMemory(m *Memory) Option {
	return func(s *settings) { s.openOnly, s.memory = append(s.openOnly, "WithMemory"), m }
}

// Bounds of WithSegmentBytes. The lower one has room for the largest message
// that is taken.
const (
	minSegmentBytes    = 8 << 20
	maxSegmentBytes    = 1 << 30
	segmentBytesFactor = 4096
)

// check reports everything that is wrong with the settings.
func (s *settings) check(dir string) error {
	var errs []error
	refuse := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
	}
	for _, name := range s.dialOnly {
		refuse("%s is an option of Dial: there is no server to talk to", name)
	}
	if dir == "" && s.memory == nil {
		refuse("no folder given")
	}
	if s.sync < 0 {
		refuse("sync interval %v, want none below zero", time.Duration(s.sync))
	}
	if n := len(s.levels); s.levelsGiven && (n == 0 || n > len(engine.DefaultLevels())) {
		refuse("%d delay levels, want 1 to %d", n, len(engine.DefaultLevels()))
	}
	for i, d := range s.levels {
		if d <= 0 || d%time.Millisecond != 0 {
			refuse("delay level %d is %v, want whole milliseconds above zero", i+1, d)
		}
	}
	if s.maxDelay < 0 || s.maxDelay%time.Millisecond != 0 {
		refuse("max delay %v, want whole milliseconds above zero", s.maxDelay)
	}
	if s.queuesGiven && (s.queues < 1 || s.queues > broker.MaxQueues) {
		refuse("%d queues a topic, want 1 to %d", s.queues, broker.MaxQueues)
	}
	s.checkKeeping(refuse)
	if n := s.segmentBytes; n != 0 && (n < minSegmentBytes || n > maxSegmentBytes || n%segmentBytesFactor != 0) {
		refuse("segments of %d bytes, want a multiple of %d from %d to %d", n, segmentBytesFactor, minSegmentBytes, maxSegmentBytes)
	}
	return errors.Join(errs...)
}

// Bounds of keeping. Less log than a few segments is no retention, and less time
// would give up what a consumer has not had a chance to see.
const (
	minRetentionBytes = 256 << 20
	minKept           = time.Minute
)

func (s *settings) checkKeeping(refuse func(format string, args ...any)) {
	if n := s.retention.Bytes; n != 0 && n < minRetentionBytes {
		refuse("retention of %d bytes, want 0 for any or at least %d", n, minRetentionBytes)
	}
	if d := s.retention.Time; d != 0 && d != Forever && d < minKept {
		refuse("retention of %v, want Forever or at least %v", d, minKept)
	}
	if d := s.retention.CarryAfter; d != 0 && d < minKept {
		refuse("carry after %v, want at least %v", d, minKept)
	}
	if d := s.window; d != 0 && d < time.Second {
		refuse("idempotency window of %v, want at least %v", d, time.Second)
	}
}

// broker turns the settings into those of the rooms below.
func (s *settings) broker(dir string) broker.Options {
	o := broker.Options{
		Queues: uint32(s.queues),
		Engine: engine.Options{
			FS: fs.Real(), Dir: dir, Clock: s.clockOr(clock.Real()), Rand: rand.Reader,
			SegmentBytes: s.segmentBytes, Levels: s.levels, MaxDelay: s.maxDelay, Logger: s.logger,
			Retention: s.retention, Idempotency: s.window,
		},
	}
	if s.sync != Always {
		o.Engine.Sync, o.Engine.SyncEvery = engine.SyncInterval, time.Duration(s.sync)
	}
	if s.memory == nil {
		return o
	}
	o.Engine.FS = s.memory.front
	if dir == "" {
		o.Engine.Dir = "duemq"
	}
	if s.segmentBytes == 0 {
		o.Engine.SegmentBytes = minSegmentBytes // a Memory copies a whole file at each sync of it
	}
	return o
}
