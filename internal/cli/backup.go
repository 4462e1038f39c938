package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// streamArgument is what stands for standard output, or input, instead of a file.
const streamArgument = "-"

func (a *app) backupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup FILE|-",
		Short: "Copy a store into one file",
		Long: `Copy a store into one file, or to standard output: messages, queues, groups, settings, everything
that was acknowledged before. ` + "`restore`" + ` makes a store of it.

The server goes on meanwhile. With --data a data folder is copied that no server has open: it is
opened as a start would open it, but nothing in it falls due and nothing is given up.

The file gets its name when it is whole and on the disk. It is not compressed and not encrypted, and
holds every message: keep it as you keep the store.`,
		Example: a.example(
			"backup orders.duemq", "of the server on this machine",
			"backup - | zstd > orders.zst", "compressed",
			"backup orders.duemq --data ./duemq-data", "of a server that does not run",
		),
		Args: a.args(1, 1),
	}
	server := a.serverFlag(cmd)
	cmd.ValidArgsFunction = nil // its argument is a file
	data := cmd.Flags().String("data", "", "copy the data in `DIR`, of a server that does not run")
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.exclusive(cmd, serverName, "data"); err != nil {
			return err
		}
		b := &backingUp{a: a, file: args[0], began: a.Clock.Now().Mono}
		if cmd.Flags().Changed("data") {
			return b.run(cmd.Context(), folder{a, *data})
		}
		return b.run(cmd.Context(), online{a, server})
	}
	return cmd
}

// A backupSource writes a backup of a store and says what is in it.
type backupSource interface {
	copyTo(ctx context.Context, w io.Writer, progress func(done, total int64)) (engine.BackupInfo, error)
}

// A folder is the store in a data folder.
type folder struct {
	a    *app
	data string
}

// copyTo opens the folder for itself. By its clock it is 1970, which no engine
// believes: nothing falls due and nothing is trimmed while it is open.
func (f folder) copyTo(ctx context.Context, w io.Writer, progress func(done, total int64)) (info engine.BackupInfo, err error) {
	if _, err := os.Stat(filepath.Join(f.data, storeName)); err != nil {
		return info, noStore(f.data, err)
	}
	e, err := engine.Open(ctx, engine.Options{FS: fs.Real(), Dir: f.data, Clock: stopped{}})
	if err != nil {
		fail := f.a.cannotOpen(ctx, f.data, err)
		if errors.Is(err, engine.ErrInUse) {
			fail.next = fmt.Sprintf("leave --data out: %s backup FILE", f.a.self)
		}
		return info, fail
	}
	info, err = e.Backup(ctx, w, progress)
	cerr := e.Close()
	if err != nil {
		if damaged(err) {
			err = f.a.cannotOpen(ctx, f.data, err)
		}
		return info, err
	}
	return info, cerr
}

func noStore(data string, err error) *failure {
	f := &failure{code: exitNotFound, what: "no data in " + quote(data), why: err, next: "name the folder that serve has: --data DIR"}
	if !errors.Is(err, os.ErrNotExist) {
		f.code = exitFailure
	}
	return f
}

// A backingUp is one run of backup.
type backingUp struct {
	a     *app
	file  string // or streamArgument
	began int64
}

// A backupResult is what backup and restore did, as JSON.
type backupResult struct {
	File    string    `json:"file"`
	Data    string    `json:"data,omitempty"`  // of restore: the folder
	Store   string    `json:"store,omitempty"` // of restore: id of the new store
	Source  string    `json:"source"`          // id of the store that was copied
	Created wire.Time `json:"created"`         // when the copy was made
	Last    uint64    `json:"lastBatch,string"`
	Batches uint64    `json:"batches,string"`
	Keys    uint64    `json:"keys,string"`
	Bytes   int64     `json:"bytes,string"`
}

func resultOf(file string, i *engine.BackupInfo) backupResult {
	return backupResult{
		File: file, Source: fmt.Sprintf("%x", i.Store), Created: wire.Time(i.Created),
		Last: i.End, Batches: i.Batches, Keys: i.Pairs, Bytes: i.Bytes,
	}
}

func (b *backingUp) run(ctx context.Context, source backupSource) error {
	if b.file == streamArgument {
		return b.toStdout(ctx, source)
	}
	if _, err := os.Lstat(b.file); err == nil {
		return &failure{code: exitConflict, what: quote(b.file) + " exists", why: errors.New("a backup is not written over"), next: "name another file, or remove that one"}
	}
	info, err := b.toFile(ctx, source)
	if err != nil {
		return b.failed(ctx, err)
	}
	r := resultOf(b.file, &info)
	return b.a.one(r, b.a.backedUp(b.file, &r, b.began))
}

// backedUp is the line of a result.
func (a *app) backedUp(what string, r *backupResult, began int64) string {
	took := time.Duration(a.Clock.Now().Mono - began)
	return fmt.Sprintf("%s: %s in %s, as of %s", what, size(r.Bytes), span(took), a.instant(r.Created))
}

// toStdout leaves standard output to the backup; the result goes where errors go.
func (b *backingUp) toStdout(ctx context.Context, source backupSource) error {
	if b.a.outWidth > 0 {
		return usage("a backup is not for a terminal", "name a file, or send it somewhere: %s backup - > FILE", b.a.self)
	}
	out := bufio.NewWriterSize(b.a.Stdout, 1<<20)
	info, err := b.copy(ctx, out, source)
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return b.failed(ctx, err)
	}
	r := resultOf(b.file, &info)
	_, err = fmt.Fprintln(b.a.Stderr, b.a.backedUp("backup", &r, b.began))
	return err
}

func (b *backingUp) copy(ctx context.Context, w io.Writer, source backupSource) (engine.BackupInfo, error) {
	bar := b.a.progress("backing up", size)
	defer bar.end()
	return source.copyTo(ctx, w, bar.set)
}

// toFile writes beside the file and renames: what has the name is whole.
func (b *backingUp) toFile(ctx context.Context, source backupSource) (engine.BackupInfo, error) {
	dir, name := filepath.Split(b.file)
	dir = filepath.Clean(dir)
	f, err := os.CreateTemp(dir, "."+name+".part-*")
	if err != nil {
		return engine.BackupInfo{}, err
	}
	info, err := b.copy(ctx, f, source)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), b.file)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return info, err
	}
	return info, syncFolder(dir)
}

// syncFolder makes names in a folder durable.
func syncFolder(dir string) error {
	d, err := fs.Real().OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// failed tells why there is no backup.
func (b *backingUp) failed(ctx context.Context, err error) error {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return interrupted()
	}
	to := quote(b.file)
	if b.file == streamArgument {
		to = "standard output"
	}
	return &failure{code: exitFailure, what: "no backup was written to " + to, why: err}
}
