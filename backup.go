package duemq

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/duemq/duemq/internal/backup"
	"github.com/duemq/duemq/internal/engine"
)

// Backup writes a copy of the whole store to w while the queue goes on:
// everything that was acknowledged before, and what came until its end.
// [Restore] makes a store of it. The stream knows its own end, so that one that
// broke off is told from a whole one; it is neither compressed nor encrypted.
// progress, if not nil, is told how many bytes are written and an estimate of
// all. [Queue.Close] ends it.
//
// While it runs nothing of the log is given up. Beside those of ctx and w the
// errors are [ErrClosed], [ErrFailed], [ErrIncomplete] with [ErrUnavailable].
func (q *Queue) Backup(ctx context.Context, w io.Writer, progress func(done, total int64)) error {
	return q.patiently(ctx, func(ctx context.Context) error { return q.b.backup(ctx, w, progress) })
}

// Restore makes a store in the folder dir of what [Queue.Backup] wrote, for
// [Open]. The folder must be missing or empty, or hold what an earlier Restore
// left that was cut off: otherwise [ErrNotEmpty]. The ids of messages stay. Of
// the options it reads [WithLogger] and [WithMemory]. progress, if not nil, is
// told how many bytes are read and an estimate of all.
//
// When the error is nil the store is whole and on disk. Otherwise dir holds no
// store: [ErrIncomplete], [ErrCorrupt] and [ErrVersion] are about the backup.
func Restore(ctx context.Context, dir string, r io.Reader, progress func(done, total int64), opts ...Option) error {
	var s settings
	for _, o := range opts {
		o(&s)
	}
	if err := s.check(dir); err != nil {
		return err
	}
	_, err := engine.RestoreBackup(ctx, s.broker(dir).Engine, r, progress)
	return err
}

func (l local) backup(ctx context.Context, w io.Writer, progress func(done, total int64)) error {
	_, err := l.b.Backup(ctx, w, progress)
	return err
}

// backup verifies the stream on its way: that the connection ended in order does
// not prove that it is whole.
func (r *remote) backup(ctx context.Context, w io.Writer, progress func(done, total int64)) error {
	from, to := io.Pipe()
	var sending sync.WaitGroup
	sending.Go(func() {
		_, err := r.c.Backup(ctx, to)
		_ = to.CloseWithError(answered(ctx, err)) // it never fails; nil is the end
	})
	out := bufio.NewWriterSize(w, 1<<20)
	err := verify(io.TeeReader(from, out), progress)
	_ = from.CloseWithError(err) // it never fails
	sending.Wait()
	if errors.Is(err, ErrIncomplete) && !errors.Is(err, ErrUnavailable) {
		err = fmt.Errorf("%w: the server broke off: %w", ErrUnavailable, err)
	}
	return errors.Join(err, out.Flush())
}

// verify reads a backup to its end.
func verify(r io.Reader, progress func(done, total int64)) error {
	in, err := backup.NewReader(r)
	if err != nil {
		return err
	}
	for err == nil {
		if progress != nil && !in.More() {
			progress(in.Bytes(), max(in.Bytes(), in.Head().Estimate))
		}
		_, err = in.Next()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
