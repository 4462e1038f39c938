// Package cli is the command line: one file for each verb, with the tree of
// commands in root.go and the meaning of exit codes in fail.go. Commands decide
// nothing about messages: they turn what was typed into a request to the HTTP
// API, or into the options of a server, and the answer into lines.
//
// Results go to standard output, everything else (errors, progress, the log of
// a server) to standard error. What a script may rely on is -o json and the exit
// code.
package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/fs"
)

// A Process is what one run of the program has of its surroundings. All fields
// are required.
type Process struct {
	Args    []string // the first is how the program was called
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Environ []string       // "NAME=value"
	Clock   clock.Clock    //
	Rand    io.Reader      // where the id of a new store comes from
	Zone    *time.Location // of instants that are shown, or typed without one
}

// Run runs the command in p.Args and returns the exit code; see fail.go. When
// ctx ends, a server drains and a command stops.
func Run(ctx context.Context, p Process) int {
	a := newApp(p)
	return a.report(a.run(ctx))
}

// An app is one run.
type app struct {
	Process

	began   clock.Reading
	self    string                               // what to type to run this program
	noColor bool                                 // by flag or environment
	format  format                               // of results
	disk    fs.FS                                // under a server
	listen  func(chan<- os.Signal) (stop func()) // for interrupts

	inTerminal bool // on standard input: somebody can be asked

	outWidth int // columns of the terminal on standard output, 0 if it is none
	errWidth int // the same for standard error
}

func newApp(p Process) *app {
	a := &app{Process: p, began: p.Clock.Now(), format: formatTable, disk: fs.Real(), listen: interrupts}
	a.self = command(p.Args[0])
	a.outWidth, a.errWidth = width(p.Stdout), width(p.Stderr)
	if f, ok := p.Stdin.(*os.File); ok {
		a.inTerminal = term.IsTerminal(int(f.Fd()))
	}
	a.noColor = a.env("NO_COLOR") != "" || a.env("TERM") == "dumb"
	return a
}

func (a *app) run(ctx context.Context) error {
	root := a.root() //nolint:contextcheck // commands get it from cobra
	root.SetArgs(a.Args[1:])
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	return root.ExecuteContext(ctx)
}

// env gives the value of an environment variable, empty if it is not set.
func (a *app) env(name string) string {
	for _, pair := range slices.Backward(a.Environ) {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

// now is the machine's time.
func (a *app) now() time.Time { return a.Clock.Now().Time() }

// command is what a user has to type to run the program that was called as
// name. The go command runs it from a folder of its own.
func command(name string) string {
	if strings.Contains(filepath.ToSlash(name), "/go-build") {
		return "go run ./cmd/duemq"
	}
	return name
}

// width is how many columns a terminal has; 0 for what is none.
func width(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 {
		return 80
	}
	return columns
}
