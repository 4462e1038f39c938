package cli

import (
	"bufio"
	"context"
	"errors"
	"io"

	"github.com/duemq/duemq/internal/backup"
	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/record"
)

// An online store is that of a server that runs.
type online struct {
	a      *app
	remote *remote
}

// copyTo has the server send its store and verifies it on the way: that a
// connection ended in order does not prove that the stream is whole, and the
// server's disk is not the only place where bytes can change.
func (o online) copyTo(ctx context.Context, w io.Writer, progress func(done, total int64)) (engine.BackupInfo, error) {
	c, err := o.remote.dial()
	if err != nil {
		return engine.BackupInfo{}, err
	}
	defer c.Close()
	d := download(ctx, c)
	out := bufio.NewWriterSize(w, 1<<20)
	info, err := verified(io.TeeReader(d.stream, out), progress)
	if derr := d.end(err); derr != nil && errors.Is(err, backup.ErrIncomplete) {
		err = derr // why it ended early
	}
	if err != nil {
		return info, o.brokenOff(ctx, err, info.Bytes > 0)
	}
	return info, out.Flush()
}

// A downloading is a backup that a server sends to whoever reads its stream.
type downloading struct {
	stream *io.PipeReader // ends with the error of the download
	cancel context.CancelFunc
	ended  chan error
}

// download begins one. It must be ended.
func download(ctx context.Context, c *client.Client) *downloading {
	ctx, cancel := context.WithCancel(ctx)
	r, w := io.Pipe()
	d := &downloading{stream: r, cancel: cancel, ended: make(chan error, 1)}
	go func() {
		_, err := c.Backup(ctx, w)
		_ = w.CloseWithError(err) // nil is io.EOF
		d.ended <- err
	}()
	return d
}

// end stops the download, if it goes on still, because of why, and gives the
// error that it ended with.
func (d *downloading) end(why error) error {
	_ = d.stream.CloseWithError(why)
	d.cancel()
	return <-d.ended
}

// verified reads a backup to its end and says what is in it; of one that is not
// whole, how many bytes of it came.
func verified(r io.Reader, progress func(done, total int64)) (engine.BackupInfo, error) {
	in, err := backup.NewReader(r)
	if err != nil {
		return engine.BackupInfo{}, err
	}
	h := in.Head()
	for err == nil {
		if !in.More() {
			progress(in.Bytes(), max(in.Bytes(), h.Estimate))
		}
		_, err = in.Next()
	}
	t := in.Totals()
	info := engine.BackupInfo{
		Store: h.Store, Created: h.Created, First: h.First.Index + 1, Applied: h.Applied.Index, End: h.End.Index,
		Position: h.End.Position, Pairs: t.Pairs, Batches: t.Batches, Bytes: in.Bytes(),
	}
	if !errors.Is(err, io.EOF) {
		return info, err
	}
	return info, nil
}

// brokenOff tells why there is no whole stream; begun says that there was the
// beginning of one. An error of the file is just that.
func (o online) brokenOff(ctx context.Context, err error, begun bool) error {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return interrupted()
	case client.Answered(err), errors.Is(err, client.ErrUnavailable) && !begun:
		return o.a.answered(ctx, "no backup was made", err)
	case errors.Is(err, client.ErrUnavailable), errors.Is(err, backup.ErrIncomplete):
		return &failure{code: exitUnavailable, what: "the backup broke off", why: err, next: "try again; the server's log says why"}
	case errors.Is(err, record.ErrCorrupt), errors.Is(err, record.ErrVersion):
		return &failure{code: exitFailure, what: "what the server sent is no backup, or damaged", why: err, next: o.a.self + " version (is the server another one?)"}
	}
	return err
}
