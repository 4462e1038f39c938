// Command duemq is DueMQ: server and command line in one binary. What it does
// is in internal/cli; this file gives it the machine.
package main

import (
	"context"
	"crypto/rand"
	"os"
	"os/signal"
	"syscall"
	"time"
	_ "time/tzdata" // names of time zones, on machines that have none

	"github.com/duemq/duemq/internal/cli"
	"github.com/duemq/duemq/internal/clock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the first signal asks; a second one ends the process as if we did not listen
	os.Exit(cli.Run(ctx, cli.Process{
		Args: os.Args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(),
		Clock: clock.Real(), Rand: rand.Reader, Zone: time.Local,
	}))
}
