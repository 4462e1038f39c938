//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/engine"
)

// One message in so many is in each of the two bursts of cold bodies.
const coldShare = 12

// coldAfter is how long after the beginning everything in the bursts is due: a
// level of 2 h, and any time in the ten minutes after that.
const coldAfter = 2*time.Hour + 11*time.Minute

// A coldRun is what the process that reads cold bodies is told.
type coldRun struct {
	Group   string // control group to join; empty: none
	Store   string
	Topic   string
	N       int
	Now     int64  // Unix ms: the instant at which the store is opened
	Raw     string // what the files that hold the bodies are named
	Ordered bool   // the bodies lie there in the order in which they are read
	Segment int64
}

// cold fills a log that is larger than memory, in which the messages of two
// bursts lie far apart, and has a process with little memory receive each burst:
// a level's, which is read in the order in which it was written, and one of any
// time, which is not. With carried all of it was carried before.
func cold(dir string, z sizes, carried bool, out report) (err error) {
	store := filepath.Join(dir, "store")
	began := time.Now()
	if err := fillCold(store, z, carried); err != nil {
		return err
	}
	group := ""
	if z.Memory > 0 {
		g, err := limitMemory(z.Memory)
		if err != nil {
			out.note("memory", "no limit: "+strings.ReplaceAll(err.Error(), "\n", "; "))
		} else {
			out.of("memory", float64(z.Memory)/1e6, "MB")
			group = g.dir
			defer func() { err = errors.Join(err, g.remove()) }()
		}
	}
	size, err := diskMB(store)
	if err != nil {
		return err
	}
	out.of("log and index", size, "MB")
	for _, topic := range []string{"level", "any time"} {
		r := coldRun{
			Group: group, Store: store, Topic: coldTopics[topic], N: (z.Cold + coldShare - 1) / coldShare, Segment: z.segment(),
			Now: began.Add(coldAfter).UnixMilli(), Raw: ".seg", Ordered: topic == "level",
		}
		if carried {
			r.Raw, r.Ordered = ".sst", true
		}
		if err := readCold(r, topic, out); err != nil {
			return err
		}
	}
	return nil
}

var coldTopics = map[string]string{"level": "cold-level", "any time": "cold-any"}

// readCold has a process of its own read one burst.
func readCold(r coldRun, name string, out report) error {
	if err := evict(r.Store); err != nil {
		return err
	}
	told, err := json.Marshal(r)
	if err != nil {
		return err
	}
	var stdout bytes.Buffer
	if err := again(&stdout, "cold", string(told), ""); err != nil {
		return err
	}
	got, err := figures(&stdout)
	for _, f := range got {
		out.of(name+": "+f.Name, f.Value, f.Unit)
	}
	return err
}

// fillCold sends the two bursts in between messages that wait for longer.
func fillCold(store string, z sizes, carried bool) error {
	b, err := open(store, func(o *broker.Options) {
		o.Engine.SegmentBytes = z.segment()
		if carried {
			oldAtOnce(o)
		}
	})
	if err != nil {
		return err
	}
	late, dues := byTime(20*24*time.Hour, 8*24*time.Hour), byTime(2*time.Hour, 10*time.Minute)
	l := load{n: z.Cold, size: 1024, senders: 4, batch: 1000, distinct: true, topic: func(i int) string {
		switch i % coldShare {
		case 0:
			return coldTopics["level"]
		case 1:
			return coldTopics["any time"]
		}
		return topic
	}}
	delay := func(i int) engine.Delay {
		switch i % coldShare {
		case 0:
			return byLevel(18)(i)
		case 1:
			return dues(i / coldShare)
		}
		return late(i)
	}
	if err := fill(b, l, delay); err != nil {
		return err
	}
	if carried {
		// The last segment is never carried: it must not hold anything that counts.
		more := load{n: int(z.segment()/1024) + 1, size: 1024, senders: 4, batch: 1000, distinct: true}
		if err := fill(b, more, late); err != nil {
			return err
		}
		if _, err := carryAll(b, int64(b.Stats().LogBytes)/z.segment()*z.segment(), z.segment()); err != nil {
			return err
		}
	}
	return b.Close()
}

// coldHelper joins the control group, opens the store when everything in the
// burst is due, and receives it; then it reads as many pieces of the same files.
func coldHelper(arg string, _ io.Writer, to report) error {
	var r coldRun
	if err := json.Unmarshal([]byte(arg), &r); err != nil {
		return err
	}
	if r.Group != "" {
		if err := (&memoryGroup{r.Group}).join(); err != nil {
			return err
		}
	}
	b, _, err := openAt(r.Store, time.UnixMilli(r.Now), func(o *broker.Options) { o.Engine.SegmentBytes = r.Segment })
	if err != nil {
		return err
	}
	began := time.Now()
	var mu sync.Mutex
	late := make([]float64, 0, r.N)
	err = drain(b, taking{topic: r.Topic, n: r.N, consumers: 4, most: 256, seen: func(got []broker.Delivery) {
		now := time.Since(began).Seconds() * 1e3
		mu.Lock()
		defer mu.Unlock()
		for range got {
			late = append(late, now)
		}
	}})
	if err != nil {
		return err
	}
	rate := float64(r.N) / time.Since(began).Seconds()
	if err := b.Close(); err != nil {
		return err
	}
	_, peak := resident()
	if err := evict(r.Store); err != nil {
		return err
	}
	names, err := files(r.Store)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(s string) bool { return !strings.HasSuffix(s, r.Raw) })
	raw, err := rawReads(names, r.N, 1024, 4, r.Ordered)
	if err != nil {
		return err
	}
	slices.Sort(late)
	to.of("received and acked by 4 consumers", rate, "msg/s")
	to.of("of raw reads of 1 KiB by 4 threads, "+map[bool]string{true: "in order", false: "at random"}[r.Ordered], rate/raw, "")
	to.of("received after the burst began, p50", percentile(late, 0.50), "ms")
	to.of("received after the burst began, p99", percentile(late, 0.99), "ms")
	to.of("received after the burst began, max", percentile(late, 1), "ms")
	to.of("RSS at the peak", peak, "MB")
	return nil
}
