//go:build linux

package main

import (
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/clock"
)

// A steady load is a topic's messages, sent five at a time at an even pace.
type steady struct {
	topic  string
	rate   int // messages a second
	lasts  time.Duration
	delay  delayer
	clock  clock.Clock // the broker's
	during func()      // once the first was sent, beside the rest; nil: nothing
}

// An arrival is when a message was due, Unix ms, and by how many ms a consumer
// in the same process received it later.
type arrival struct {
	due  int64
	late float64
}

// run sends the load, and returns when all of it was received.
func (l steady) run(b *broker.Broker) ([]arrival, error) {
	const together = 5
	n := max(int(float64(l.rate)*l.lasts.Seconds())/together, 1) * together
	var mu sync.Mutex
	arrivals := make([]arrival, 0, n)
	done := make(chan error, 1)
	go func() {
		done <- drain(b, taking{topic: l.topic, n: n, consumers: 2, most: 256, seen: func(got []broker.Delivery) {
			now := l.clock.Now().Wall
			mu.Lock()
			defer mu.Unlock()
			for i := range got {
				late := float64(now-got[i].Due*int64(time.Millisecond)) / 1e6
				arrivals = append(arrivals, arrival{got[i].Due, late})
			}
		}})
	}()
	var beside sync.WaitGroup
	if l.during != nil {
		beside.Go(l.during)
	}
	payload := body(256)
	next := time.Now()
	for i := 0; i < n; i += together {
		msgs := make([]broker.Message, together)
		for k := range msgs {
			msgs[k] = broker.Message{Topic: l.topic, Body: payload, Delay: l.delay(i + k)}
		}
		if _, err := send(b, msgs); err != nil {
			return nil, err
		}
		next = next.Add(together * time.Second / time.Duration(l.rate))
		time.Sleep(time.Until(next))
	}
	err := <-done
	beside.Wait()
	return arrivals, err
}

// A lag is what arrivals say of lateness, in ms.
type lag struct {
	p50, p99, max float64
	early         int
}

func lagOf(arrivals []arrival) lag {
	var l lag
	late := make([]float64, len(arrivals))
	for i, a := range arrivals {
		late[i] = a.late
		if a.late < 0 {
			l.early++
		}
	}
	slices.Sort(late)
	l.p50, l.p99, l.max = percentile(late, 0.50), percentile(late, 0.99), percentile(late, 1)
	return l
}

// of reports a lag under a name.
func (l lag) of(out report, name string) {
	out.of(name+", p50", l.p50, "ms")
	out.of(name+", p99", l.p99, "ms")
	out.of(name+", max", l.max, "ms")
}

// lateness sends a steady 5,000 messages a second and measures, at a consumer
// in the same process, how long after its due each was received. Messages
// already waiting are the ballast.
func lateness(dir string, lasts time.Duration, d delayer, ballast int, out report) error {
	b, err := open(filepath.Join(dir, "store"), nil)
	if err != nil {
		return err
	}
	l := load{n: ballast, size: 64, senders: 4, batch: 1000}
	if err := fill(b, l, byTime(24*time.Hour, 300*24*time.Hour)); err != nil {
		return err
	}
	var syncs []float64
	var probe error
	arrivals, err := steady{
		topic: topic, rate: 5000, lasts: lasts, delay: d, clock: clock.Real(),
		during: func() { // the disk itself, in the same run: one small sync every 10 ms
			syncs, probe = syncTimes(filepath.Join(dir, "probe"), int(lasts/(10*time.Millisecond)), 10*time.Millisecond)
		},
	}.run(b)
	if err != nil {
		return err
	}
	if probe != nil {
		return probe
	}
	if err := b.Close(); err != nil {
		return err
	}
	slices.Sort(syncs)
	got, disk := lagOf(arrivals), percentile(syncs, 0.99)
	got.of(out, "received late")
	out.of("fdatasync p99 of another file", disk, "ms")
	out.of("beyond 2 x fdatasync p99, p99", got.p99-2*disk, "ms")
	out.of("early", float64(got.early), "")
	return nil
}

// syncTimes measures fdatasync after small writes, one every gap, in ms.
func syncTimes(name string, n int, gap time.Duration) ([]float64, error) {
	f, err := preallocated(name, 4<<20)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	buf := body(1500)
	took := make([]float64, 0, n)
	for i := range n {
		if _, err := f.WriteAt(buf, int64(i%2000)*1500); err != nil {
			return nil, err
		}
		began := time.Now()
		if err := fdatasync(f); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began).Seconds()*1e3)
		time.Sleep(gap)
	}
	return took, nil
}
