//go:build linux

package main

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/log"
)

// A carrying is what was carried out of a log's old segments.
type carrying struct {
	messages int64
	bytes    int64
	cuts     time.Duration // that the cuts took which did it
}

// cutEvery is the pause between the cuts of a carry. The keeper proposes one
// segment a second, and a cut carries it.
const cutEvery = 250 * time.Millisecond

// carryAll carries what lies in the first bytes of the log, whole segments, and
// returns when the log has given them up.
func carryAll(b *broker.Broker, bytes, segment int64) (carrying, error) {
	c := carrying{bytes: bytes}
	end := time.Now().Add(time.Duration(bytes/segment)*5*time.Second + 10*time.Second)
	for last := b.Stats(); ; time.Sleep(cutEvery) {
		if err := b.Cut(); err != nil {
			return c, err
		}
		now := b.Stats()
		if now.Carried > last.Carried {
			c.cuts += now.CutTime - last.CutTime
		}
		c.messages += now.Carried - last.Carried
		last = now
		switch {
		case now.Damaged > 0:
			return c, fmt.Errorf("%d messages could not be carried", now.Damaged)
		case int64(now.LogFirst) >= c.bytes:
			return c, nil
		case time.Now().After(end):
			return c, fmt.Errorf("log begins at %d after %d messages were carried, want %d", now.LogFirst, c.messages, c.bytes)
		}
	}
}

// oldAtOnce has what waits in a sealed segment carried at the next look.
func oldAtOnce(o *broker.Options) { o.Engine.Retention.CarryAfter = time.Millisecond }

// carry measures how fast what waits is moved out of old segments, beside
// copying as many bytes, and what that does to the lateness of other messages:
// a steady load with as many cuts, without and with a carry.
func carry(dir string, z sizes, out report) error {
	store := filepath.Join(dir, "store")
	segment := z.segment()
	sized := func(o *broker.Options) { o.Engine.SegmentBytes = segment }
	b, err := open(store, sized)
	if err != nil {
		return err
	}
	if err := fill(b, load{n: z.Waiting / 2, size: 256, senders: 4, batch: 1000, distinct: true}, waitDelay("any")); err != nil {
		return err
	}
	sealed := int64(b.Stats().LogBytes) / segment
	if sealed == 0 {
		return errors.New("too few messages to fill a segment")
	}
	lasts := time.Duration(sealed+1) * time.Second
	without, err := steadyBeside(b, lasts, func() error {
		for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(cutEvery) {
			if err := b.Cut(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := b.Close(); err != nil {
		return err
	}
	raw, err := rawCopy(filepath.Join(store, "log"), filepath.Join(dir, "copy"), sealed*segment)
	if err != nil {
		return err
	}
	if b, err = open(store, func(o *broker.Options) { sized(o); oldAtOnce(o) }); err != nil {
		return err
	}
	var c carrying
	with, err := steadyBeside(b, lasts, func() error {
		var err error
		c, err = carryAll(b, sealed*segment, segment)
		return err
	})
	if err != nil {
		return err
	}
	if err := b.Close(); err != nil {
		return err
	}
	out.of("carried, of the cuts' time", float64(c.messages)/c.cuts.Seconds(), "msg/s")
	out.of("carried, of the cuts' time, in log", float64(c.bytes)/1e6/c.cuts.Seconds(), "MB/s")
	out.of("carried, of a raw copy of as many bytes", raw.Seconds()/c.cuts.Seconds(), "")
	without.of(out, "2,000/s with cuts, received late")
	with.of(out, "2,000/s with cuts that carry, received late")
	out.of("2,000/s with cuts that carry, p99, of that without", with.p99/without.p99, "")
	return nil
}

// steadyBeside measures a steady load beside something else.
func steadyBeside(b *broker.Broker, lasts time.Duration, do func() error) (lag, error) {
	var other error
	arrivals, err := steady{
		topic: "Y", rate: 2000, lasts: lasts, delay: byTime(20*time.Millisecond, 180*time.Millisecond),
		clock: clock.Real(), during: func() { other = do() },
	}.run(b)
	return lagOf(arrivals), errors.Join(err, other)
}

// segment is the bytes of a segment.
func (z *sizes) segment() int64 { return cmp.Or(z.Segment, log.DefaultSegmentBytes) }
