//go:build linux

// Command bench measures the figures that docs/benchmarks.md shows: durable
// enqueue beside a raw write and sync loop, a burst that falls due at one
// instant, lateness under a steady load and beside another topic's burst,
// cancelling, rescheduling and counting what waits, memory, disk and restart with
// messages waiting, bytes written, carrying, cold bodies with less memory than
// log, backup and restore, and what an idle broker costs.
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
	huge   bool
	markdn bool
	sizes  sizes
}

// A sizes is how much each figure is taken of.
type sizes struct {
	Rate    int           // messages of a sending rate
	Waiting int           // messages that wait; ten times as many with -full, a hundred times with -huge
	Steer   int           // messages cancelled, and as many rescheduled
	Steady  time.Duration // how long a steady load is sent
	Watch   time.Duration // how long an idle broker is watched
	Cold    int           // messages of 1 KiB in a log that is larger than memory
	Memory  int64         // bytes of memory for who reads that log; 0: no limit
	Segment int64         // bytes of a segment; 0: the default
}

// bind has the command line choose sizes.
func (s *sizes) bind(f *flag.FlagSet) {
	f.IntVar(&s.Rate, "rate", 1_000_000, "messages of a sending rate")
	f.IntVar(&s.Waiting, "waiting", 1_000_000, "messages that wait, or fall due at one instant")
	f.IntVar(&s.Steer, "steer", 40_000, "messages cancelled, and as many rescheduled")
	f.DurationVar(&s.Steady, "steady", 3*time.Second, "how long a steady load is sent")
	f.DurationVar(&s.Watch, "watch", 3*time.Second, "how long an idle broker is watched")
	f.IntVar(&s.Cold, "cold", 300_000, "messages of 1 KiB in the log that is larger than memory")
	f.Int64Var(&s.Memory, "memory", 80<<20, "bytes of memory for who reads that log, 0 for any")
	f.Int64Var(&s.Segment, "segment", 0, "bytes of a segment, 0 for the default")
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
	f.BoolVar(&s.full, "full", false, "also ten times as many messages waiting")
	f.BoolVar(&s.huge, "huge", false, "with -full: also a hundred times as many, once; takes about 15 GB of disk")
	f.BoolVar(&s.markdn, "markdown", false, "print the table as Markdown")
	s.sizes.bind(f)
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
	note       string // instead of samples: why there are none
}

// collect takes every figure, in the order of the plan.
func collect(s settings, progress io.Writer) ([]row, error) {
	var rows []row
	var errs []error
	plan := planned(s)
	began := time.Now()
	for i, sc := range plan {
		if !strings.Contains(sc.name, s.only) {
			continue
		}
		for r := range sc.times(s.runs) {
			fmt.Fprintf(progress, "\r\033[K[%d/%d] %s, run %d of %d, %s so far", i+1, len(plan), sc.name, r+1, sc.times(s.runs), time.Since(began).Round(time.Second))
			got, err := child(s, sc.name)
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
	Note  string  `json:"note,omitempty"`
}

// A report takes the figures of a scenario.
type report struct{ emit func(figure) }

// of reports a figure.
func (r report) of(name string, value float64, unit string) {
	r.emit(figure{Name: name, Value: value, Unit: unit})
}

// note reports why there is no figure of that name.
func (r report) note(name, text string) { r.emit(figure{Name: name, Note: text}) }

func gather(rows []row, sc scenario, got []figure) []row {
	for _, f := range got {
		name := sc.name + ": " + f.Name
		i := slices.IndexFunc(rows, func(r row) bool { return r.name == name })
		if i < 0 {
			rows = append(rows, row{name: name, goal: sc.goals[f.Name], unit: f.Unit})
			i = len(rows) - 1
		}
		if f.Note != "" {
			rows[i].note = f.Note
			continue
		}
		rows[i].samples = append(rows[i].samples, f.Value)
	}
	return rows
}

// child takes one figure in a process of its own.
func child(s settings, name string) ([]figure, error) {
	tmp, err := os.MkdirTemp(s.dir, "duemq-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(tmp) }() // a leftover in the temporary folder is not worth an error
	given, err := json.Marshal(s.sizes)
	if err != nil {
		return nil, err
	}
	var stdout bytes.Buffer
	if err := again(&stdout, name, tmp, string(given)); err != nil {
		return nil, err
	}
	return figures(&stdout)
}

// again runs a part of this program in a process of its own.
func again(stdout io.Writer, name, arg, given string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(context.Background(), exe, "measure", name, arg, given) //nolint:gosec // this program itself
	cmd.Stdout, cmd.Stderr = stdout, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return nil
}

func figures(r io.Reader) ([]figure, error) {
	var got []figure
	for dec := json.NewDecoder(r); ; {
		var f figure
		if err := dec.Decode(&f); errors.Is(err, io.EOF) {
			return got, nil
		} else if err != nil {
			return nil, err
		}
		got = append(got, f)
	}
}

// measure is what a child does: measure NAME DIR SIZES, or a helper's part.
func measure(args []string, out io.Writer) error {
	if len(args) != 3 {
		return errors.New("usage: bench measure NAME DIR SIZES")
	}
	enc := json.NewEncoder(out)
	var lost error
	to := report{func(f figure) { lost = errors.Join(lost, enc.Encode(f)) }}
	if help, ok := helpers[args[0]]; ok {
		return errors.Join(help(args[1], out, to), lost)
	}
	s := settings{full: true, huge: true}
	if err := json.Unmarshal([]byte(args[2]), &s.sizes); err != nil {
		return err
	}
	for _, sc := range planned(s) {
		if sc.name == args[0] {
			return errors.Join(sc.take(args[1], to), lost)
		}
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
		fmt.Fprintf(out, line, r.name, r.text(), r.goal)
	}
}

// text is the median of a row and its spread.
func (r row) text() string {
	if len(r.samples) == 0 {
		return r.note
	}
	slices.Sort(r.samples)
	mid := r.samples[len(r.samples)/2]
	return fmt.Sprintf("%s %s (%s to %s)", human(mid), r.unit, human(r.samples[0]), human(r.samples[len(r.samples)-1]))
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
