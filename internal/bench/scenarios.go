//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/engine"
)

type report func(name string, value float64, unit string)

// A scenario takes one or more figures.
type scenario struct {
	name  string
	goals map[string]string
	take  func(dir string, out report) error
}

func scenarios(full bool) []scenario {
	enqueue := map[string]string{"rate": ">= 400,000", "of a raw loop that syncs each batch of 1,000": ">= 0.60"}
	singles := map[string]string{"rate": ">= 250,000"}
	burst := map[string]string{"visible": ">= 1,000,000", "received and acked": ">= 400,000"}
	late := map[string]string{"beyond 2 x fdatasync p99, p99": "<= 2", "early": "0"}
	written256 := map[string]string{"all bytes per body byte": "<= 1.35"}
	written1K := map[string]string{"all bytes per body byte": "<= 1.12"}
	quiet := map[string]string{"CPU of a core": "< 0.2", "wake-ups that found nothing": "0"}
	wait := map[string]string{"RSS": "<= 96", "disk": "<= 400", "timer bytes a message": "<= 32", "restart to first ack": "<= 1000"}
	all := []scenario{
		{"batches of 1,000, level", enqueue, func(dir string, out report) error { return sendBatches(dir, byLevel(18), out) }},
		{"batches of 1,000, any time", enqueue, func(dir string, out report) error { return sendBatches(dir, byTime(2*time.Hour, time.Hour), out) }},
		{"256 single senders, level", singles, func(dir string, out report) error { return sendSingles(dir, byLevel(18), out) }},
		{"256 single senders, any time", singles, func(dir string, out report) error { return sendSingles(dir, byTime(2*time.Hour, time.Hour), out) }},
		{"1,000,000 due at one instant, any time", burst, burstAnyTime},
		{"1,000,000 due at one instant, level", burst, burstLevel},
		{"5,000/s, level of 1 s", late, func(dir string, out report) error { return lateness(dir, byLevel(1), 0, out) }},
		{"5,000/s, any time 0.1 to 2 s", late, func(dir string, out report) error {
			return lateness(dir, byTime(100*time.Millisecond, 1900*time.Millisecond), 0, out)
		}},
		{"1,000,000 waiting, level", wait, func(dir string, out report) error { return waiting(dir, 1_000_000, 256, "level", out) }},
		{"1,000,000 waiting, any time", wait, func(dir string, out report) error { return waiting(dir, 1_000_000, 256, "any", out) }},
		{"bytes written, 256 B, level of 1 s, acked", written256, func(dir string, out report) error { return bytesWritten(dir, 256, 400_000, byLevel(1), out) }},
		{"bytes written, 256 B, any time to 2 s, acked", written256, func(dir string, out report) error {
			return bytesWritten(dir, 256, 400_000, byTime(100*time.Millisecond, 1900*time.Millisecond), out)
		}},
		{"bytes written, 1 KiB, level of 1 s, acked", written1K, func(dir string, out report) error { return bytesWritten(dir, 1024, 200_000, byLevel(1), out) }},
		{"bytes written, 1 KiB, any time to 2 s, acked", written1K, func(dir string, out report) error {
			return bytesWritten(dir, 1024, 200_000, byTime(100*time.Millisecond, 1900*time.Millisecond), out)
		}},
		{"what the index costs, level", nil, func(dir string, out report) error { return indexCost(dir, "level", out) }},
		{"what the index costs, any time", nil, func(dir string, out report) error { return indexCost(dir, "any", out) }},
		{"idle with 1,000,000 waiting, level", quiet, func(dir string, out report) error { return idle(dir, "level", out) }},
		{"idle with 1,000,000 waiting, any time", quiet, func(dir string, out report) error { return idle(dir, "any", out) }},
	}
	if full {
		all = append(all, many()...)
	}
	return all
}

// many is what is taken only when asked for: ten million messages waiting.
func many() []scenario {
	return []scenario{
		{
			"10,000,000 waiting, 64 B, any time",
			map[string]string{"RSS": "<= 1024", "restart to first ack": "<= 2000"},
			func(dir string, out report) error { return waiting(dir, 10_000_000, 64, "any", out) },
		},
		{
			"5,000/s beside 10,000,000 waiting",
			map[string]string{"received late, p99": "that of an empty store + 1 ms", "early": "0"},
			func(dir string, out report) error {
				return lateness(dir, byTime(100*time.Millisecond, 1900*time.Millisecond), 10_000_000, out)
			},
		},
	}
}

// sendBatches sends 256 B messages in batches, and then runs a loop that only
// writes and syncs as many bytes in writes of the same size.
func sendBatches(dir string, d delayer, out report) error {
	const n, size = 2_000_000, 256
	b, err := open(filepath.Join(dir, "store"), nil)
	if err != nil {
		return err
	}
	before := b.Stats()
	began := time.Now()
	if err := fill(b, load{n, size, 16, 1000}, d); err != nil {
		return err
	}
	took := time.Since(began)
	after := b.Stats()
	if err := b.Close(); err != nil {
		return err
	}
	syncs := after.Syncs - before.Syncs
	bytes := int64(after.LogBytes - before.LogBytes)
	raw, err := rawLoop(filepath.Join(dir, "raw"), bytes, bytes/max(syncs, 1))
	if err != nil {
		return err
	}
	out("rate", n/took.Seconds(), "msg/s")
	whole, err := rawLoop(filepath.Join(dir, "raw-batch"), bytes, bytes/(n/1000))
	if err != nil {
		return err
	}
	out("of a raw loop that syncs each batch of 1,000", whole.Seconds()/took.Seconds(), "")
	out("of a raw loop with as many syncs", raw.Seconds()/took.Seconds(), "")
	out("messages a sync", float64(n)/float64(syncs), "")
	return nil
}

// rawLoop writes bytes in writes of one size, each followed by fdatasync, into
// a file made for it in the same way as a segment.
func rawLoop(name string, bytes, size int64) (time.Duration, error) {
	const segment = 64 << 20
	buf := body(int(size))
	var f *os.File
	var err error
	began := time.Now()
	for done, at, files := int64(0), int64(segment), 0; done < bytes; done, at = done+size, at+size {
		if at+size > segment {
			if f != nil {
				if err := f.Close(); err != nil {
					return 0, err
				}
			}
			files++
			if f, err = preallocated(fmt.Sprintf("%s-%d", name, files), segment); err != nil {
				return 0, err
			}
			at = 0
		}
		if _, err := f.WriteAt(buf, at); err != nil {
			return 0, err
		}
		if err := fdatasync(f); err != nil {
			return 0, err
		}
	}
	took := time.Since(began)
	return took, f.Close()
}

func sendSingles(dir string, d delayer, out report) error {
	const n, senders = 500_000, 256
	b, err := open(filepath.Join(dir, "store"), nil)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := fill(b, load{n, 256, senders, 1}, d); err != nil {
		return err
	}
	took := time.Since(began)
	s := b.Stats()
	out("rate", n/took.Seconds(), "msg/s")
	out("messages a sync", n/float64(s.Syncs), "")
	out("mean fdatasync", s.SyncTime.Seconds()*1e3/float64(s.Syncs), "ms")
	return b.Close()
}

// burstAnyTime has a million messages fall due at one instant.
func burstAnyTime(dir string, out report) error {
	due := time.Now().Add(12 * time.Second)
	return burst(dir, at(due), func() time.Time { return due }, nil, out)
}

// burstLevel has a level's messages all due within the second in which they
// were sent; the burst is what a start finds overdue after a stop.
func burstLevel(dir string, out report) error {
	due := time.Now().Add(12 * time.Second)
	return burst(dir, byLevel(1), func() time.Time { return due }, []time.Duration{time.Until(due)}, out)
}

func burst(dir string, d delayer, due func() time.Time, levels []time.Duration, out report) error {
	const n = 1_000_000
	b, err := open(filepath.Join(dir, "store"), func(o *broker.Options) {
		if levels != nil {
			o.Engine.Levels = levels
		}
	})
	if err != nil {
		return err
	}
	if err := fill(b, load{n, 256, 4, 1000}, d); err != nil {
		return err
	}
	if levels != nil { // a FIFO falls due as fast as it was filled: wait for all of it
		if err := visible(b, n); err != nil {
			return err
		}
	} else {
		time.Sleep(time.Until(due()))
		began := time.Now()
		if err := visible(b, n); err != nil {
			return err
		}
		out("visible", n/time.Since(began).Seconds(), "msg/s")
	}
	began := time.Now()
	if err := drain(b, n, 4, 1000, nil); err != nil {
		return err
	}
	out("received and acked", n/time.Since(began).Seconds(), "msg/s")
	return b.Close()
}

// lateness sends a steady 5,000 messages a second and measures, at a consumer
// in the same process, how long after its due each was received. Messages
// already waiting are the ballast.
func lateness(dir string, d delayer, ballast int, out report) error {
	b, err := open(filepath.Join(dir, "store"), nil)
	if err != nil {
		return err
	}
	if ballast > 0 {
		if err := fill(b, load{ballast, 64, 4, 1000}, byTime(24*time.Hour, 300*24*time.Hour)); err != nil {
			return err
		}
	}
	const rate, seconds = 5000, 12
	var mu sync.Mutex
	var received []float64
	early := 0
	done := make(chan error, 1)
	go func() {
		done <- drain(b, rate*seconds, 2, 256, func(got []broker.Delivery) {
			now := time.Now()
			mu.Lock()
			defer mu.Unlock()
			for i := range got {
				late := now.Sub(time.UnixMilli(got[i].Due)).Seconds() * 1e3
				if late < 0 {
					early++
				}
				received = append(received, late)
			}
		})
	}()
	probed := make(chan []float64, 1)
	go func() { // the disk itself, in the same run: one small sync every 10 ms
		took, err := syncTimes(filepath.Join(dir, "probe"), rate*seconds/50, 10*time.Millisecond)
		if err != nil {
			took = nil
		}
		probed <- took
	}()
	payload := body(256)
	next := time.Now()
	for i := range rate * seconds / 5 { // 1,000 times a second, five at a time
		msgs := make([]broker.Message, 5)
		for k := range msgs {
			msgs[k] = broker.Message{Topic: topic, Body: payload, Delay: d(5*i + k)}
		}
		if err := send(b, msgs); err != nil {
			return err
		}
		next = next.Add(time.Millisecond)
		time.Sleep(time.Until(next))
	}
	if err := <-done; err != nil {
		return err
	}
	if err := b.Close(); err != nil {
		return err
	}
	syncs := <-probed
	slices.Sort(received)
	slices.Sort(syncs)
	p99 := percentile(received, 0.99)
	out("received late, p50", percentile(received, 0.50), "ms")
	out("received late, p99", p99, "ms")
	out("received late, max", received[len(received)-1], "ms")
	out("fdatasync p99 of another file", percentile(syncs, 0.99), "ms")
	out("beyond 2 x fdatasync p99, p99", p99-2*percentile(syncs, 0.99), "ms")
	out("early", float64(early), "")
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

func waitDelay(kind string) delayer {
	if kind == "level" {
		return byLevel(18)
	}
	return byTime(2*time.Hour, 28*24*time.Hour)
}

// waiting fills a store in a process of its own and kills that the moment the
// last message is acknowledged, then measures the restart here.
func waiting(dir string, n, size int, kind string, out report) error {
	store := filepath.Join(dir, "store")
	killed, err := fillAndKill(store, fmt.Sprintf("%d %d %s", n, size, kind))
	if err != nil {
		return err
	}
	for name, v := range killed {
		out(name, v, "MB")
	}
	disk, err := diskMB(store)
	if err != nil {
		return err
	}
	out("disk", disk, "MB")
	began := time.Now()
	b, err := open(store, nil)
	if err != nil {
		return err
	}
	if err := send(b, []broker.Message{{Topic: topic, Body: body(size), Delay: engine.Delay{Kind: engine.DelayAfter, Value: 3_600_000}}}); err != nil {
		return err
	}
	out("restart to first ack", time.Since(began).Seconds()*1e3, "ms")
	c, err := b.Counts(topic)
	if err != nil {
		return err
	}
	if c.Waiting != int64(n)+1 {
		return fmt.Errorf("%d messages wait after the restart, want %d", c.Waiting, n+1)
	}
	if err := b.Cut(); err != nil {
		return err
	}
	out("timer bytes a message", float64(b.Stats().Index.LiveBytes)/float64(n), "B")
	rss, _ := resident()
	out("RSS after restart", rss, "MB")
	return b.Close()
}

// helpers run in a process of their own and talk by lines.
var helpers = map[string]func(arg string, out io.Writer) error{"fill": fillHelper}

// fillAndKill starts the filler, reads its figures, and kills it.
func fillAndKill(store, arg string) (map[string]float64, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.Background(), exe, "measure", "fill", store+" "+arg) //nolint:gosec // this program itself
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	got := make(map[string]float64)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && lines.Text() != "filled" {
		name, value, _ := strings.Cut(lines.Text(), "=")
		var v float64
		if _, err := fmt.Sscan(value, &v); err == nil {
			got[name] = v
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		return nil, err
	}
	if err := cmd.Wait(); err == nil || len(got) == 0 {
		return nil, errors.New("the filler ended by itself")
	}
	return got, nil
}

func fillHelper(arg string, out io.Writer) error {
	var store, kind string
	var n, size int
	if _, err := fmt.Sscan(arg, &store, &n, &size, &kind); err != nil {
		return err
	}
	b, err := open(store, nil)
	if err != nil {
		return err
	}
	if err := fill(b, load{n, size, 4, 1000}, waitDelay(kind)); err != nil {
		return err
	}
	now, peak := resident()
	fmt.Fprintf(out, "RSS=%f\nRSS at the peak=%f\nfilled\n", now, peak)
	time.Sleep(time.Minute)
	return b.Close()
}

// bytesWritten counts every byte that a store writes for messages that are
// sent, delivered after a second and acknowledged.
func bytesWritten(dir string, size, n int, d delayer, out report) error {
	b, err := open(filepath.Join(dir, "store"), nil)
	if err != nil {
		return err
	}
	before, log := written(), b.Stats().LogBytes
	done := make(chan error, 1)
	go func() { done <- drain(b, n, 2, 1000, nil) }()
	if err := fill(b, load{n, size, 2, 1000}, d); err != nil {
		return err
	}
	if err := <-done; err != nil {
		return err
	}
	if err := b.Cut(); err != nil {
		return err
	}
	bodies := float64(n * size)
	out("all bytes per body byte", (written()-before)/bodies, "")
	out("log bytes per body byte, all of a record included", float64(b.Stats().LogBytes-log)/bodies, "")
	return b.Close()
}

// indexCost sends the same messages with cuts and with none, all in memory.
func indexCost(dir, kind string, out report) error {
	const n = 2_000_000
	var used [2]time.Duration
	for i, commands := range []uint64{250_000, 1 << 60} {
		b, err := open(filepath.Join(dir, strconv.Itoa(i)), func(o *broker.Options) {
			o.Engine.CutCommands, o.Engine.CutBytes = commands, 1<<60
			o.Engine.CutEvery = time.Hour
			if i == 0 {
				o.Engine.CutEvery = 0
			}
		})
		if err != nil {
			return err
		}
		before := cpu()
		if err := fill(b, load{n, 256, 4, 1000}, waitDelay(kind)); err != nil {
			return err
		}
		used[i] = cpu() - before
		if err := b.Close(); err != nil {
			return err
		}
	}
	out("CPU with the index", used[0].Seconds()/n*1e6, "s per million")
	out("CPU in memory only", used[1].Seconds()/n*1e6, "s per million")
	return nil
}

// idle leaves a store with a million messages waiting alone.
func idle(dir, kind string, out report) error {
	b, err := open(filepath.Join(dir, "store"), nil)
	if err != nil {
		return err
	}
	if err := fill(b, load{1_000_000, 256, 4, 1000}, waitDelay(kind)); err != nil {
		return err
	}
	if err := b.Cut(); err != nil {
		return err
	}
	settle, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	<-settle.Done() // compactions and the collector come to rest
	before, wake := cpu(), b.Stats()
	const watch = 30 * time.Second
	time.Sleep(watch)
	after := b.Stats()
	out("CPU of a core", float64(cpu()-before)/float64(watch)*100, "%")
	out("wake-ups that found nothing", float64(after.Fruitless-wake.Fruitless), "")
	out("wake-ups for a due", float64(after.Wakeups-wake.Wakeups), "")
	rss, _ := resident()
	out("RSS", rss, "MB")
	return b.Close()
}
