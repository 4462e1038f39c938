package cli

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/httpapi"
)

// testStart is the wall clock at which fake clocks begin.
var testStart = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)

// A world is a server with a clock that stands still, and a folder to type in.
type world struct {
	t      *testing.T
	clock  *clock.Fake
	broker *broker.Broker
	server *httptest.Server
	env    []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c := clock.NewFake(testStart)
	b, err := broker.Open(t.Context(), broker.Options{Engine: engine.Options{
		FS: fs.NewMem(), Dir: "data", Clock: c, Rand: strings.NewReader(strings.Repeat("duemq test store", 4)),
		SegmentBytes: 4 << 20, CacheBytes: 1 << 20,
	}})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	h := httpapi.New(b, httpapi.Options{Version: "test", Clock: c})
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		h.Drain()
		s.Close()
		if err := b.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return &world{t: t, clock: c, broker: b, server: s, env: []string{"DUEMQ_SERVER=" + s.URL}}
}

// run runs one command line.
func (w *world) run(stdin string, args ...string) (stdout, stderr string, code int) {
	w.t.Helper()
	var out, errs bytes.Buffer
	code = Run(w.t.Context(), Process{
		Args: append([]string{"duemq"}, args...), Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs,
		Environ: w.env, Clock: w.clock, Rand: strings.NewReader(""), Zone: time.UTC,
	})
	return out.String(), errs.String(), code
}

// words splits a line as a shell does, as far as scripts need it.
func words(t *testing.T, line string) (args []string, input string) {
	t.Helper()
	var word strings.Builder
	quoted, began := false, false
	for _, r := range line {
		switch {
		case r == '\'':
			quoted, began = !quoted, true
		case r == ' ' && !quoted:
			if began {
				args = append(args, word.String())
			}
			word.Reset()
			began = false
		default:
			word.WriteRune(r)
			began = true
		}
	}
	if quoted {
		t.Fatalf("no end of the quotes in %q", line)
	}
	if began {
		args = append(args, word.String())
	}
	if n := len(args); n > 2 && args[n-2] == "<" {
		content, err := os.ReadFile(args[n-1])
		if err != nil {
			t.Fatal(err)
		}
		return args[:n-2], string(content)
	}
	return args, ""
}

// TestScripts runs conversations with the command line:
//
//	run       command lines; what they print, lines on standard error after "! ",
//	          and the exit code unless it is 0. With hide, ids are written as ID:
//	          they are places in the log, which depend on when the server has
//	          done what it does in the background
//	file      name=N: writes a file in the folder where the commands run
//	cat       name=N: shows one
//	env       NAME=VALUE for the commands that follow
//	advance   by=D: lets time pass
//	clock     by=D: sets the wall clock
//
// What differs from run to run is written as SERVER.
func TestScripts(t *testing.T) {
	scripts, err := filepath.Abs("testdata/scripts")
	if err != nil {
		t.Fatal(err)
	}
	datadriven.Walk(t, scripts, func(t *testing.T, path string) {
		w := newWorld(t)
		t.Chdir(t.TempDir())
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			w.t = t
			return w.directive(d)
		})
	})
}

var anID = regexp.MustCompile(`\b[0-9a-f]{16}\b`)

func (w *world) directive(d *datadriven.TestData) string {
	w.t.Helper()
	switch d.Cmd {
	case "run":
		var b strings.Builder
		for line := range strings.Lines(d.Input) {
			w.line(&b, strings.TrimSpace(line))
		}
		out := strings.ReplaceAll(b.String(), w.server.URL, "SERVER")
		if d.HasArg("hide") {
			out = anID.ReplaceAllString(out, "ID")
		}
		return out
	case "file":
		name := ""
		d.ScanArgs(w.t, "name", &name)
		if err := os.WriteFile(name, []byte(d.Input+"\n"), 0o600); err != nil {
			w.t.Fatal(err)
		}
		return ""
	case "cat":
		name := ""
		d.ScanArgs(w.t, "name", &name)
		content, err := os.ReadFile(name)
		if err != nil {
			w.t.Fatal(err)
		}
		return string(content)
	case "env":
		for _, a := range d.CmdArgs {
			w.env = append(w.env, a.String())
		}
		return ""
	case "advance", "clock":
		return w.pass(d)
	}
	d.Fatalf(w.t, "unknown directive %q", d.Cmd)
	return ""
}

func (w *world) line(b *strings.Builder, line string) {
	w.t.Helper()
	args, input := words(w.t, line)
	if len(args) == 0 || args[0] != "duemq" {
		w.t.Fatalf("not a command: %q", line)
	}
	stdout, stderr, code := w.run(input, args[1:]...)
	b.WriteString(stdout)
	for l := range strings.Lines(stderr) {
		b.WriteString("! " + strings.TrimSuffix(l, "\n") + "\n")
	}
	if code != 0 {
		fmt.Fprintf(b, "exit %d\n", code)
	}
}

func (w *world) pass(d *datadriven.TestData) string {
	w.t.Helper()
	text := ""
	d.ScanArgs(w.t, "by", &text)
	by, err := time.ParseDuration(text)
	if err != nil {
		w.t.Fatal(err)
	}
	if d.Cmd == "clock" {
		w.clock.Step(by)
		return ""
	}
	w.clock.Advance(by)
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	if err := w.broker.Settle(ctx); err != nil {
		w.t.Fatalf("Settle: %v", err)
	}
	return ""
}
