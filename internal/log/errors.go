package log

import (
	"errors"
	"fmt"
	"strings"

	"github.com/duemq/duemq/internal/record"
)

// Classes of error. Callers test with errors.Is; the text names the instance.
// Sizes beyond a limit are a [record.ErrTooLarge], bytes of a version that this
// binary does not read a [record.ErrVersion].
var (
	// ErrPoisoned is every Append, Sync or other change after a write or a sync
	// failed. It wraps the cause. Nothing is retried; only opening anew helps.
	ErrPoisoned = errors.New("log poisoned by an earlier failure")
	// ErrGap is a batch whose index does not continue the log.
	ErrGap = errors.New("index does not continue the log")
	// ErrRemoved is a place or an index that the log no longer keeps.
	ErrRemoved = errors.New("no longer kept")
	// ErrRange is a place or an index beyond the end of the log, or a range that
	// is not within one segment.
	ErrRange = errors.New("outside the log")
	// ErrClosed is a use of a closed log.
	ErrClosed = errors.New("log is closed")
)

// A DamageError says that kept bytes are not what was written and that what
// they held had been acknowledged. Opening refuses then: nothing is repaired
// silently and nothing is cut off.
type DamageError struct {
	File   string // path of the file
	Offset int64  // byte within it
	Reason string // what is wrong there and how that is known
}

// Error gives file, byte and reason.
func (e *DamageError) Error() string {
	return fmt.Sprintf("%s: byte %d: %s", e.File, e.Offset, e.Reason)
}

// Is reports a DamageError as a kind of [record.ErrCorrupt].
func (e *DamageError) Is(target error) bool { return target == record.ErrCorrupt }

// A flaw is why no batch can be read at a place. Whether that is the end of the
// log, a torn tail or damage is for the reader to judge.
type flaw string

// Error is the reason.
func (f flaw) Error() string { return string(f) }

func flawf(format string, args ...any) error { return flaw(fmt.Sprintf(format, args...)) }

// asFlaw tells a flaw, which is about bytes, from a failure to read them.
func asFlaw(err error) (flaw, bool) {
	return errors.AsType[flaw](err)
}

// reason is what an ErrCorrupt says, without the class, as a flaw.
func reason(err error) flaw {
	return flaw(strings.TrimPrefix(err.Error(), record.ErrCorrupt.Error()+": "))
}
