package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/duemq/duemq/internal/backup"
	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

func (a *app) restoreCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore FILE|-",
		Short: "Make a data folder of a backup",
		Long: `Make a data folder of what ` + "`backup`" + ` wrote: from a file, or from standard input. The folder must be
empty or missing. Every byte is checked on the way; what is not whole is refused, and no
store is left in the folder, at most a file LOCK.

The new store has an id of its own. Messages keep their ids and their moments: what fell due since
the backup was made goes out at the first start. As long as the store that was copied runs as well,
both deliver what waited in it.`,
		Example: a.example(
			"restore orders.duemq --data ./restored", "",
			"serve --data ./restored", "",
			"restore - --data ./restored < orders.duemq", "",
		),
		Args: a.args(1, 1),
	}
	settings := a.settingsFlags(cmd, "data")
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		l, err := settings.load()
		if err != nil {
			return err
		}
		r := &restoring{a: a, file: args[0], data: l.Config.Data, began: a.Clock.Now().Mono}
		return r.run(cmd.Context())
	}
	return cmd
}

// A restoring is one run of restore.
type restoring struct {
	a     *app
	file  string // or streamArgument
	data  string
	began int64
}

func (r *restoring) run(ctx context.Context) error {
	in := r.a.Stdin
	if r.file != streamArgument {
		f, err := os.Open(r.file)
		if err != nil {
			return r.noFile(err)
		}
		defer f.Close()
		in = f
	}
	info, err := r.restore(ctx, in)
	if err != nil {
		return r.failed(ctx, err)
	}
	result := resultOf(r.file, &info)
	result.Data, result.Store = r.data, fmt.Sprintf("%x", info.Restored)
	return r.a.one(result, fmt.Sprintf("%s\nnext: %s serve --data %s", r.a.backedUp(r.data, &result, r.began), r.a.self, quote(r.data)))
}

func (r *restoring) restore(ctx context.Context, in io.Reader) (engine.BackupInfo, error) {
	bar := r.a.progress("restoring", size)
	defer bar.end()
	o := engine.Options{FS: fs.Real(), Dir: r.data, Rand: r.a.Rand}
	return engine.RestoreBackup(ctx, o, bufio.NewReaderSize(in, 1<<20), bar.set)
}

func (r *restoring) noFile(err error) *failure {
	f := &failure{code: exitFailure, what: "cannot read " + quote(r.file), why: err}
	if errors.Is(err, os.ErrNotExist) {
		f.code = exitNotFound
	}
	return f
}

// failed tells why there is no store.
func (r *restoring) failed(ctx context.Context, err error) *failure {
	from := quote(r.file)
	if r.file == streamArgument {
		from = "standard input"
	}
	f := &failure{code: exitFailure, what: "nothing was restored to " + quote(r.data), why: err}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return interrupted()
	case errors.Is(err, engine.ErrInUse):
		return r.a.cannotOpen(ctx, r.data, err)
	case errors.Is(err, engine.ErrNotEmpty):
		f.code, f.next = exitConflict, fmt.Sprintf("name a new folder: %s restore %s --data NEW", r.a.self, quote(r.file))
	case errors.Is(err, backup.ErrIncomplete):
		f.what = from + " is not a whole backup; " + f.what
		f.next = "take another one, or make one anew: " + r.a.self + " backup FILE"
	case errors.Is(err, record.ErrVersion):
		f.what = from + " was written by another version; " + f.what
	case errors.Is(err, record.ErrCorrupt):
		f.what = from + " is no backup, or damaged; " + f.what
		f.next = "take another one, or make one anew: " + r.a.self + " backup FILE"
	}
	return f
}
