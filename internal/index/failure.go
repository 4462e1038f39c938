package index

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// failure holds the first final error. It is set by Pebble's goroutines, with
// Pebble's locks held, so it takes none.
type failure struct {
	dir    string
	logger *slog.Logger
	err    atomic.Pointer[error]
}

// set makes the index unusable. Only the first error counts: those that follow
// are mostly its consequences.
func (f *failure) set(err error) {
	err = fmt.Errorf("index %s has failed, open it again: %w", f.dir, err)
	if f.err.CompareAndSwap(nil, &err) {
		f.logger.Error("index failed", errAttr(err))
	}
}

// get gives the final error, nil while all is well.
func (f *failure) get() error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return nil
}

// happened says whether there was a final error.
func (f *failure) happened() bool { return f.err.Load() != nil }

func corruption(i pebble.DataCorruptionInfo) error {
	return fmt.Errorf("%w: %s: %w", ErrCorrupt, i.Path, i.Details)
}

// errAttr is the error's text: Pebble's errors, formatted as values, bring the
// stack along.
func errAttr(err error) slog.Attr { return slog.String("error", err.Error()) }

// pebbleLogger is where Pebble talks. Its default ends the process on a fatal
// error, which a library must not; here that error is final for the index only.
type pebbleLogger failure

// Infof is Pebble's chat.
func (l *pebbleLogger) Infof(format string, args ...any) {
	l.logger.Debug("index", slog.String("text", fmt.Sprintf(format, args...)))
}

// Errorf is something that went wrong and was lived with, such as a file that
// could not be removed.
func (l *pebbleLogger) Errorf(format string, args ...any) {
	l.logger.Warn("index", slog.String("text", fmt.Sprintf(format, args...)))
}

// Fatalf is called when Pebble does not know what a restart would find. Pebble
// expects not to come back from it. It does come back here, with an error in
// hand, to callers who clean up after what they take for a change that did not
// happen; the disk refuses that (see disk), since the change may have happened.
func (l *pebbleLogger) Fatalf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for _, arg := range args {
		if err, ok := arg.(error); ok {
			(*failure)(l).set(&fatalError{text: text, cause: classify(err)})
			return
		}
	}
	(*failure)(l).set(errors.New(text))
}

// fatalError keeps Pebble's text and lets callers see the error inside it, such
// as a full disk.
type fatalError struct {
	text  string
	cause error
}

func (e *fatalError) Error() string { return e.text }

func (e *fatalError) Unwrap() error { return e.cause }
