package clock

import "time"

// Real gives the machine's clock. Inside a testing/synctest bubble it follows
// the bubble's fake time, provided it was made inside the bubble.
func Real() Clock { return realClock{start: time.Now()} }

// realClock measures its monotonic part from start.
type realClock struct{ start time.Time }

func (c realClock) Now() Reading {
	now := time.Now()
	return Reading{Wall: now.UnixNano(), Mono: int64(now.Sub(c.start))}
}

func (realClock) NewTimer(d time.Duration) Timer { return realTimer{time.NewTimer(d)} }

type realTimer struct{ t *time.Timer }

func (t realTimer) C() <-chan time.Time        { return t.t.C }
func (t realTimer) Stop() bool                 { return t.t.Stop() }
func (t realTimer) Reset(d time.Duration) bool { return t.t.Reset(d) }
