//go:build linux

// Command bench measures the figures that docs/benchmarks.md shows: durable
// enqueue beside a raw write and sync loop, a burst that falls due at one
// instant, lateness under a steady load, memory, disk and restart with messages
// waiting, bytes written, and what an idle broker costs.
//
// Each figure is taken in a process of its own, several times, and the median
// is printed with the spread. Run it with: make bench
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// A settings is what the command line chose.
type settings struct {
	dir    string
	runs   int
	only   string
	full   bool
	markdn bool
}

func run(args []string, out, progress io.Writer) error {
	if len(args) > 0 && args[0] == "measure" {
		return measure(args[1:], out)
	}
	var s settings
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&s.dir, "dir", os.TempDir(), "folder on the disk to measure")
	f.IntVar(&s.runs, "runs", 3, "how often each figure is taken")
	f.StringVar(&s.only, "only", "", "take only figures whose name holds this")
	f.BoolVar(&s.full, "full", false, "also 10,000,000 messages waiting")
	f.BoolVar(&s.markdn, "markdown", false, "print the table as Markdown")
	if err := f.Parse(args); err != nil {
		return err
	}
	rows, err := collect(s, progress)
	printTable(out, s, rows)
	return err
}

// A row is one figure over all runs.
type row struct {
	name, goal string
	samples    []float64
	unit       string
}

// collect takes every figure, in the order of the plan.
func collect(s settings, progress io.Writer) ([]row, error) {
	var rows []row
	var errs []error
	plan := scenarios(s.full)
	began := time.Now()
	for i, sc := range plan {
		if !strings.Contains(sc.name, s.only) {
			continue
		}
		for r := range s.runs {
			fmt.Fprintf(progress, "\r\033[K[%d/%d] %s, run %d of %d, %s so far", i+1, len(plan), sc.name, r+1, s.runs, time.Since(began).Round(time.Second))
			got, err := child(s.dir, sc.name)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", sc.name, err))
				continue
			}
			rows = gather(rows, sc, got)
		}
	}
	fmt.Fprintf(progress, "\r\033[K")
	return rows, errors.Join(errs...)
}

// A figure is what a measurement prints, a line each.
type figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

func gather(rows []row, sc scenario, got []figure) []row {
	for _, f := range got {
		name := sc.name + ": " + f.Name
		i := slices.IndexFunc(rows, func(r row) bool { return r.name == name })
		if i < 0 {
			rows = append(rows, row{name: name, goal: sc.goals[f.Name], unit: f.Unit})
			i = len(rows) - 1
		}
		rows[i].samples = append(rows[i].samples, f.Value)
	}
	return rows
}

// child takes one figure in a process of its own.
func child(dir, name string) ([]figure, error) {
	tmp, err := os.MkdirTemp(dir, "duemq-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(tmp) }() // a leftover in the temporary folder is not worth an error
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(context.Background(), exe, "measure", name, tmp) //nolint:gosec // this program itself
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	var got []figure
	for dec := json.NewDecoder(&stdout); ; {
		var f figure
		if err := dec.Decode(&f); errors.Is(err, io.EOF) {
			return got, nil
		} else if err != nil {
			return nil, err
		}
		got = append(got, f)
	}
}

func measure(args []string, out io.Writer) error {
	if len(args) != 2 {
		return errors.New("usage: bench measure NAME DIR")
	}
	enc := json.NewEncoder(out)
	for _, sc := range scenarios(true) {
		if sc.name == args[0] {
			return sc.take(args[1], func(name string, value float64, unit string) {
				_ = enc.Encode(figure{name, value, unit})
			})
		}
	}
	if take, ok := helpers[args[0]]; ok {
		return take(args[1], out)
	}
	return fmt.Errorf("no figure named %q", args[0])
}

func printTable(out io.Writer, s settings, rows []row) {
	fmt.Fprintf(out, "%s/%s, %d CPUs, %s, %d runs each: median (min to max)\n\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), s.runs)
	line := "%-58s  %-34s  %s\n"
	if s.markdn {
		line = "| %s | %s | %s |\n"
	}
	fmt.Fprintf(out, line, "figure", "measured", "goal")
	if s.markdn {
		fmt.Fprintf(out, line, "---", "---", "---")
	}
	for _, r := range rows {
		slices.Sort(r.samples)
		mid := r.samples[len(r.samples)/2]
		text := fmt.Sprintf("%s %s (%s to %s)", human(mid), r.unit, human(r.samples[0]), human(r.samples[len(r.samples)-1]))
		fmt.Fprintf(out, line, r.name, text, r.goal)
	}
}

func human(v float64) string {
	switch {
	case v >= 10_000:
		s := fmt.Sprintf("%.0f", v)
		for i := len(s) - 3; i > 0; i -= 3 {
			s = s[:i] + "," + s[i:]
		}
		return s
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.4f", v)
	}
}
