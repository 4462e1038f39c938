package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2   // what was typed can never work
	exitNotFound    = 3   // no such message, topic or store
	exitConflict    = 4   // too late, taken back already, or there already and not the same
	exitUnavailable = 5   // no server, not now, or not in time; the same again may work
	exitAuth        = 6   // not allowed
	exitPartial     = 7   // some of it was done
	exitInterrupted = 130 // as shells have it for an interrupt
)

const exitCodes = `Exit codes: 0 done, 1 failure, 2 usage, 3 not found, 4 too late or conflict, 5 unavailable or
timeout, 6 not allowed, 7 partly done, 130 interrupted.`

// A failure is an error as it is told: what did not happen, why, and what to
// do next.
type failure struct {
	code int
	what string
	why  error
	next string // empty if there is nothing to try
}

// Error gives what and why.
func (f *failure) Error() string {
	if f.why == nil {
		return f.what
	}
	return f.what + ": " + f.why.Error()
}

// Unwrap gives the cause.
func (f *failure) Unwrap() error { return f.why }

// usage refuses what was typed.
func usage(what, format string, args ...any) *failure {
	return &failure{code: exitUsage, what: what, why: fmt.Errorf(format, args...)}
}

// report tells an error and gives its exit code. One that no command made comes
// from the parser of the command line.
func (a *app) report(err error) int {
	if err == nil {
		return exitOK
	}
	f, ok := errors.AsType[*failure](err)
	if !ok {
		f = &failure{code: exitUsage, what: err.Error(), next: a.self + " --help"}
	}
	a.tell(f)
	return f.code
}

// tell writes a failure: a line for each part, more for a cause of several.
func (a *app) tell(f *failure) {
	if f.what == "" {
		return
	}
	fmt.Fprintf(a.Stderr, "%s %s\n", a.paint(a.errWidth, red, "duemq:"), f.what)
	if f.why != nil {
		for i, line := range strings.Split(f.why.Error(), "\n") {
			label := "why: "
			if i > 0 {
				label = "     "
			}
			fmt.Fprintf(a.Stderr, "  %s %s\n", label, line)
		}
	}
	if f.next != "" {
		fmt.Fprintf(a.Stderr, "  next: %s\n", f.next)
	}
}

// interrupted is the failure of a command that the user broke off.
func interrupted() *failure { return &failure{code: exitInterrupted} }

// meanings of the codes that a server answers with. next may name the program
// as %[1]s.
var meanings = map[wire.Code]struct {
	exit int
	next string
}{
	wire.CodeBadRequest:       {exitUsage, ""},
	wire.CodeUnknownParameter: {exitUsage, "%[1]s version (is the server another one?)"},
	wire.CodeUnknownField:     {exitUsage, "%[1]s version (is the server another one?)"},
	wire.CodeInvalidValue:     {exitUsage, ""},
	wire.CodeTooLarge:         {exitUsage, ""},
	wire.CodeDelayInvalid:     {exitUsage, "%[1]s send --help"},
	wire.CodeDelayConflict:    {exitUsage, "give one of --after, --at and --level"},
	wire.CodeDelayTooLong:     {exitUsage, "restart the server with a longer limit: %[1]s serve --max-delay LONG"},
	wire.CodeTopicUnknown:     {exitNotFound, "%[1]s send TOPIC BODY (the first message makes the topic)"},
	wire.CodeGroupUnknown:     {exitNotFound, "%[1]s group ls"},
	wire.CodeOperationUnknown: {exitNotFound, "%[1]s op ls"},
	wire.CodeMessageUnknown:   {exitNotFound, "%[1]s pending ls"},
	wire.CodeRouteUnknown:     {exitNotFound, "%[1]s doctor (is that a duemq server?)"},
	wire.CodeMethod:           {exitFailure, "%[1]s doctor (is that a duemq server?)"},
	wire.CodeAlreadyDelivered: {exitConflict, "%[1]s pending get ID"},
	wire.CodeAlreadyCancelled: {exitConflict, ""},
	wire.CodeExists:           {exitConflict, ""},
	wire.CodeTransactionEnded: {exitConflict, "%[1]s pending get ID"},
	wire.CodeMismatch:         {exitConflict, "send another message under a key of its own"},
	wire.CodeTooMany:          {exitUsage, "select less"},
	wire.CodeConfirm:          {exitUsage, "%[1]s version (is the server another one?)"},
	wire.CodeLeaseLost:        {exitConflict, "receive it again; it is delivered at least once"},
	wire.CodeEnded:            {exitConflict, ""},
	wire.CodeForbidden:        {exitAuth, ""},
	wire.CodeCrossOrigin:      {exitAuth, ""},
	wire.CodeHostRefused:      {exitAuth, "%[1]s serve --http-hosts NAME (restart the server, if that is its name)"},
	wire.CodeFull:             {exitFailure, "%[1]s pending ls (use a topic or group that there is)"},
	wire.CodeOverloaded:       {exitUnavailable, "try again in a moment"},
	wire.CodeDraining:         {exitUnavailable, "try again when the server is back"},
	wire.CodeTimeout:          {exitUnavailable, "look whether it happened: %[1]s pending ls"},
	wire.CodeClockSuspect:     {exitUnavailable, "set the machine's clock, or: %[1]s clock accept"},
	wire.CodeDiskFull:         {exitUnavailable, "make room on the server's disk; %[1]s doctor"},
	wire.CodeFailed:           {exitUnavailable, "%[1]s doctor"},
	wire.CodeInternal:         {exitFailure, "look at the server's log; %[1]s doctor"},
}

// answered makes a failure of an error that a call to the server returned.
func (a *app) answered(ctx context.Context, what string, err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	f := &failure{code: exitFailure, what: what, why: err}
	code := client.CodeOf(err)
	meaning, known := meanings[code]
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return interrupted()
	case known:
		f.code = meaning.exit
		f.next = strings.ReplaceAll(meaning.next, "%[1]s", a.self)
	case errors.Is(err, client.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		f.code, f.next = exitUnavailable, "start one: "+a.self+" serve"
	}
	return f
}
