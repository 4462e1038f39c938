package duemq

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duemq/duemq/internal/clock"
)

// How often a call is made at most, and the pauses between.
const (
	tries      = 4
	firstPause = 200 * time.Millisecond // doubled each time
	maxPause   = 5 * time.Second
)

// A line is the patience with which a server is asked again. It is safe for
// concurrent use.
type line struct {
	clock   clock.Clock
	log     *slog.Logger
	closing <-chan struct{} // ends pauses
	down    atomic.Bool     // it was told that the server is away

	mu     sync.Mutex // guards jitter
	jitter *rand.Rand
}

// pause waits before the attempt after n failed ones (from 1): a random time
// between half of the longest and the longest, so that the clients of a server
// that was away do not all come back at once. At most limit. The error is ctx's,
// or ErrClosed.
func (l *line) pause(ctx context.Context, n int, limit time.Duration) error {
	timer := l.clock.NewTimer(min(l.length(n), limit))
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-l.closing:
		return ErrClosed
	}
}

func (l *line) length(n int) time.Duration {
	longest := maxPause
	if shift := n - 1; shift < 6 {
		longest = min(firstPause<<shift, maxPause)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return longest/2 + time.Duration(l.jitter.Int64N(int64(longest/2)+1))
}

// again makes a call, and makes it again while the server is not to be had:
// after an attempt that cannot have had an effect, or after any if the call is
// the same twice as once. Its error is that of the last attempt.
func (l *line) again(ctx context.Context, twice bool, call func() error) error {
	for n := 1; ; n++ {
		err := call()
		if n == tries || !errors.Is(err, ErrUnavailable) {
			return err
		}
		if !twice && !untaken(err) {
			return err
		}
		if perr := l.pause(ctx, n, maxPause); perr != nil {
			if ctx.Err() != nil {
				return errors.Join(perr, err)
			}
			return err
		}
	}
}

// bridge has a receive that failed n times wait for its server, and tells that
// once. left is what remains of its own waiting time.
func (l *line) bridge(ctx context.Context, n int, left time.Duration, err error) error {
	if !l.down.Swap(true) {
		l.log.Warn("the server is away; receiving goes on when it is back", slog.Any("error", err))
	}
	if left <= 0 {
		left = maxPause
	}
	return l.pause(ctx, n, left)
}

// up tells that the server has answered, if it was away.
func (l *line) up() {
	if l.down.Load() && l.down.Swap(false) {
		l.log.Info("the server is back")
	}
}
