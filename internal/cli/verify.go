package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/log"
)

// Names in a data folder.
const (
	storeName = "STORE"
	logName   = "log"
	indexName = "index"

	tempPrefix = "verify-" // of a folder that verify makes and removes
)

func (a *app) verifyCommand() *cobra.Command {
	rebuild := false
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Read a data folder to the last byte and say whether it is whole",
		Long: `Read the log in a data folder to the last byte, checksums of batches and messages included, and
say whether it is whole. No server may have the folder open. Nothing in it is changed.

With --rebuild the index is judged too: the log is replayed into an index of its own, and the
state that comes out must be the one that the folder's index and log give. Both are done in a
copy within the folder (files that do not change are linked), which is removed at the end.

It exits with 1 if something is damaged, and names file, byte and reason.`,
		Example: a.example("verify --data ./duemq-data", "", "verify --rebuild", "the index too"),
		Args:    a.args(0, 0),
	}
	settings := a.settingsFlags(cmd, "data")
	cmd.Flags().BoolVar(&rebuild, "rebuild", false, "replay the log and compare the state with the index")
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		l, err := settings.load()
		if err != nil {
			return err
		}
		v := &verifier{a: a, data: l.Config.Data}
		return v.run(cmd.Context(), rebuild)
	}
	return cmd
}

// A verifier is one run of verify.
type verifier struct {
	a     *app
	data  string
	found verification
}

// A verification is the result as JSON.
type verification struct {
	Data     string        `json:"data"`
	Whole    bool          `json:"whole"`
	Segments int           `json:"segments"`
	Batches  uint64        `json:"batches,string"`
	Messages uint64        `json:"messages,string"`
	Bytes    int64         `json:"bytes,string"`
	Torn     int64         `json:"torn,string"` // bytes at the end that were never acknowledged
	Damage   []damagePlace `json:"damage,omitempty"`
	More     int           `json:"more,omitempty"`   // places beyond those
	State    string        `json:"state,omitempty"`  // hash of the state
	Replay   string        `json:"replay,omitempty"` // hash of the state that replaying the log gives
}

type damagePlace struct {
	File   string `json:"file"`
	Offset int64  `json:"offset,string"`
	Reason string `json:"reason"`
}

func (v *verifier) run(ctx context.Context, rebuild bool) error {
	if _, err := os.Stat(filepath.Join(v.data, storeName)); err != nil {
		return noStore(v.data, err)
	}
	lock, err := fs.Real().Lock(filepath.Join(v.data, lockName))
	if err != nil {
		if fs.Locked(err) {
			err = fmt.Errorf("%w: %w", engine.ErrInUse, err)
		}
		return v.a.cannotOpen(ctx, v.data, err)
	}
	defer lock.Close()
	first, err := v.log()
	if err != nil {
		return v.a.cannotOpen(ctx, v.data, err)
	}
	if rebuild && len(v.found.Damage) == 0 {
		if first.Index > 0 {
			return &failure{
				code: exitFailure, what: "the index cannot be judged by a replay",
				why: fmt.Errorf("the log begins with batch %d, what was before is in the index only", first.Index+1),
			}
		}
		if err := v.rebuild(ctx); err != nil {
			return err
		}
	}
	v.found.Whole = len(v.found.Damage) == 0 && v.found.State == v.found.Replay
	if err := v.a.one(v.found, strings.TrimSuffix(v.text(), "\n")); err != nil {
		return err
	}
	return v.verdict()
}

// log reads the log.
func (v *verifier) log() (first log.Start, err error) {
	disk := fs.Real()
	store, err := log.OpenStore(disk, v.data, log.StoreOptions{})
	if err != nil {
		return first, err
	}
	bar := v.a.progress("verifying", size)
	r, err := log.Verify(log.Options{
		FS: disk, Dir: filepath.Join(v.data, logName), StoreID: store.ID, SegmentBytes: store.SegmentBytes,
	}, bar.set)
	bar.end()
	if err != nil {
		return first, err
	}
	v.found = verification{
		Data: v.data, Segments: r.Segments, Batches: r.Batches, Messages: r.Messages, Bytes: r.Bytes, Torn: r.Torn, More: r.More,
	}
	for _, d := range r.Damage {
		v.found.Damage = append(v.found.Damage, damagePlace{d.File, d.Offset, d.Reason})
	}
	return r.First, nil
}

// rebuild computes the state twice: from the index and what the log has after
// it, and from the log alone.
func (v *verifier) rebuild(ctx context.Context) (err error) {
	temp, err := os.MkdirTemp(v.data, tempPrefix)
	if err != nil {
		return &failure{code: exitFailure, what: "cannot make a copy in " + quote(v.data), why: err}
	}
	defer func() {
		if rerr := os.RemoveAll(temp); err == nil && rerr != nil {
			err = &failure{code: exitFailure, what: "cannot remove the copy", why: rerr}
		}
	}()
	for _, side := range []struct {
		name  string
		index bool
		hash  *string
	}{{"state", true, &v.found.State}, {"replay", false, &v.found.Replay}} {
		dir := filepath.Join(temp, side.name)
		if err := clone(v.data, dir, side.index); err != nil {
			return &failure{code: exitFailure, what: "cannot make a copy in " + quote(v.data), why: err}
		}
		if *side.hash, err = stateOf(ctx, dir); err != nil {
			f := v.a.cannotOpen(ctx, v.data, err)
			if f.code == exitFailure {
				f.what, f.next = "the index in "+quote(v.data)+" cannot be read", v.remedy()
				if !side.index {
					f.what, f.next = "the log in "+quote(v.data)+" cannot be replayed", ""
				}
			}
			return f
		}
	}
	return nil
}

// stateOf opens a data folder of which nobody else knows and hashes its state.
// By its clock it is 1970, which no engine believes, so nothing falls due.
func stateOf(ctx context.Context, dir string) (hash string, err error) {
	e, err := engine.Open(ctx, engine.Options{FS: fs.Real(), Dir: dir, Clock: stopped{}})
	if err != nil {
		return "", err
	}
	defer func() {
		if cerr := e.Close(); err == nil {
			err = cerr
		}
	}()
	return e.Hash()
}

func (v *verifier) remedy() string {
	return fmt.Sprintf("the log is whole: move %s away, and serve rebuilds it from the log", quote(filepath.Join(v.data, indexName)))
}

func (v *verifier) text() string {
	var b strings.Builder
	f := &v.found
	state := v.a.paint(v.a.outWidth, green, "whole")
	if len(f.Damage) > 0 {
		state = v.a.paint(v.a.outWidth, red, "damaged")
	}
	fmt.Fprintf(&b, "log    %s, %s, %s, %s: %s\n", several(f.Segments, "segment"), several(f.Batches, "batch"),
		several(f.Messages, "message"), size(f.Bytes), state)
	for _, d := range f.Damage {
		fmt.Fprintf(&b, "       %s: byte %d: %s\n", d.File, d.Offset, d.Reason)
	}
	if f.More > 0 {
		fmt.Fprintf(&b, "       and %d more places\n", f.More)
	}
	if f.Torn > 0 {
		fmt.Fprintf(&b, "       %s at the end were never acknowledged; the next start drops them\n", size(f.Torn))
	}
	switch f.State {
	case "":
	case f.Replay:
		fmt.Fprintf(&b, "index  agrees with the log (state %.16s)\n", f.State)
	default:
		fmt.Fprintf(&b, "index  %s: state %.16s, the log gives %.16s\n", v.a.paint(v.a.outWidth, red, "differs from the log"), f.State, f.Replay)
	}
	return b.String()
}

// verdict is the failure that damage is.
func (v *verifier) verdict() error {
	f := &v.found
	switch {
	case f.Whole:
		return nil
	case len(f.Damage) > 0:
		return &failure{
			code: exitFailure, what: "the log is damaged in " + several(len(f.Damage)+f.More, "place"),
			why:  errors.New("bytes that had been acknowledged are gone or changed; a server refuses to start on them"),
			next: "bring the named files back from a backup, and look at the disk (dmesg, smartctl)",
		}
	default:
		return &failure{
			code: exitFailure, what: "the index differs from the log",
			why: errors.New("the log is the truth, so this is a defect of duemq or of the disk"), next: v.remedy(),
		}
	}
}

// stopped is a clock that stands still.
type stopped struct{}

func (stopped) Now() clock.Reading                 { return clock.Reading{} }
func (stopped) NewTimer(time.Duration) clock.Timer { return never{} }

// never is a timer that does not fire.
type never struct{}

func (never) C() <-chan time.Time      { return nil }
func (never) Stop() bool               { return true }
func (never) Reset(time.Duration) bool { return true }
