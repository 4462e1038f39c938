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
	"strings"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/engine"
)

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
		out.of(name, v, "MB")
	}
	disk, err := diskMB(store)
	if err != nil {
		return err
	}
	out.of("disk", disk, "MB")
	began := time.Now()
	b, err := open(store, nil)
	if err != nil {
		return err
	}
	if _, err := send(b, []broker.Message{{Topic: topic, Body: body(size), Delay: engine.Delay{Kind: engine.DelayAfter, Value: 3_600_000}}}); err != nil {
		return err
	}
	out.of("restart to first ack", time.Since(began).Seconds()*1e3, "ms")
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
	out.of("timer bytes a message", float64(b.Stats().Index.LiveBytes)/float64(n), "B")
	rss, _ := resident()
	out.of("RSS after restart", rss, "MB")
	return b.Close()
}

// helpers run in a process of their own; each knows its argument, and talks by
// lines or by figures.
var helpers = map[string]func(arg string, out io.Writer, to report) error{"fill": fillHelper, "cold": coldHelper}

// fillAndKill starts the filler, reads its figures, and kills it.
func fillAndKill(store, arg string) (map[string]float64, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.Background(), exe, "measure", "fill", store+" "+arg, "") //nolint:gosec // this program itself
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

func fillHelper(arg string, out io.Writer, _ report) error {
	var store, kind string
	var n, size int
	if _, err := fmt.Sscan(arg, &store, &n, &size, &kind); err != nil {
		return err
	}
	b, err := open(store, nil)
	if err != nil {
		return err
	}
	if err := fill(b, load{n: n, size: size, senders: 4, batch: 1000}, waitDelay(kind)); err != nil {
		return err
	}
	now, peak := resident()
	fmt.Fprintf(out, "RSS=%f\nRSS at the peak=%f\nfilled\n", now, peak)
	time.Sleep(time.Minute)
	return b.Close()
}

// idle leaves a store with messages waiting alone.
func idle(dir, kind string, n int, watch time.Duration, out report) error {
	b, err := open(filepath.Join(dir, "store"), nil)
	if err != nil {
		return err
	}
	if err := fill(b, load{n: n, size: 256, senders: 4, batch: 1000}, waitDelay(kind)); err != nil {
		return err
	}
	if err := b.Cut(); err != nil {
		return err
	}
	settle, cancel := context.WithTimeout(context.Background(), watch/2)
	defer cancel()
	<-settle.Done() // compactions and the collector come to rest
	before, wake := cpu(), b.Stats()
	time.Sleep(watch)
	after := b.Stats()
	out.of("CPU of a core", float64(cpu()-before)/float64(watch)*100, "%")
	out.of("wake-ups that found nothing", float64(after.Fruitless-wake.Fruitless), "")
	out.of("wake-ups for a due", float64(after.Wakeups-wake.Wakeups), "")
	rss, _ := resident()
	out.of("RSS", rss, "MB")
	return b.Close()
}
