//go:build unix

package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// A senderApart sends messages of two hours as fast as it can, until it is told to
// stop, and remembers what was acknowledged.
type senderApart struct {
	c    *client.Client
	stop chan struct{}
	mu   sync.Mutex
	ids  []string
	err  error
	done sync.WaitGroup
}

func sendApart(ctx context.Context, c *client.Client) *senderApart {
	a := &senderApart{c: c, stop: make(chan struct{})}
	a.done.Go(func() {
		for {
			select {
			case <-a.stop:
				return
			default:
			}
			receipt, err := c.Publish(ctx, wire.Send{Topic: "traffic", After: "2h", Text: "meanwhile"})
			a.mu.Lock()
			if err != nil {
				a.err = err
				a.mu.Unlock()
				return
			}
			a.ids = append(a.ids, receipt.ID)
			a.mu.Unlock()
		}
	})
	return a
}

// acknowledged gives the ids of what was acknowledged by now.
func (a *senderApart) acknowledged() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clip(a.ids)
}

// end stops and gives the ids of everything that was acknowledged.
func (a *senderApart) end() ([]string, error) {
	close(a.stop)
	a.done.Wait()
	return a.ids, a.err
}

// TestBackupAndRestore copies a server while messages are being sent, makes a store
// of the copy elsewhere and serves that. Everything is there that was acknowledged
// before: what waits comes on time, what was moved and cancelled is so, what a group
// has acknowledged does not come again, its dead letter and its back-off are kept.
// It is a store of its own. A copy that broke off makes none.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := serve(t, t.TempDir())
	r := newTrial(t, s)
	due := time.Now().Add(10 * time.Second)
	msgs := make([]wire.Send, 200)
	for i := range msgs {
		msgs[i] = at(due.Add(time.Duration(i) * time.Millisecond))
	}
	sent := r.send(msgs)
	r.move(&sent[0], wire.Reschedule{At: at(due.Add(time.Second)).At})
	r.due[sent[0].ID] = due.Add(time.Second).Truncate(time.Millisecond)
	if _, err := r.c.Cancel(ctx, sent[1].Handle); err != nil {
		t.Fatal(err)
	}
	r.cancelled(sent[1].ID)
	old := r.past()
	traffic := sendApart(ctx, r.c)
	for len(traffic.acknowledged()) < 20 {
		<-time.After(time.Millisecond)
	}
	before := traffic.acknowledged()
	file := filepath.Join(t.TempDir(), "orders.duemq")
	r.backup(file)
	all, err := traffic.end()
	if err != nil || len(all) <= len(before) {
		t.Errorf("%d sent, %d of them before the copy was made, %v; want some beside it", len(all), len(before), err)
	}
	data := filepath.Join(t.TempDir(), "restored")
	refuseHalf(t, file, data)
	out, errs, code := run(t, "restore", file, "--data", data, "-o", "json")
	var made struct{ Store, Source string }
	if err := json.Unmarshal([]byte(out), &made); err != nil || code != 0 || made.Store == "" || made.Source == "" || made.Store == made.Source {
		t.Fatalf("restore: exit %d, %v\n%s%s", code, err, out, errs)
	}
	s.signal(syscall.SIGKILL)
	_, _ = s.wait() // it was killed
	r.dial(serve(t, data))
	for _, id := range before {
		if m, err := r.c.Message(ctx, id); err != nil || m.State != wire.StateWaiting || m.Text != "meanwhile" {
			t.Fatalf("%s was acknowledged before the copy was made: %+v, %v", id, m, err)
		}
	}
	if n, err := r.c.Count(ctx, wire.PendingQuery{Topic: "traffic"}); err != nil || n < int64(len(before)) || n > int64(len(all)) {
		t.Errorf("%d of the traffic wait, %v; want %d to %d", n, err, len(before), len(all))
	}
	r.same(old)
	r.gone(sent[1].Handle)
	op, err := r.c.BulkCancel(ctx, wire.BulkCancel{Filter: wire.Filter{Topic: "traffic"}})
	if err == nil {
		op, err = r.c.Operation(ctx, op.ID, 10*time.Second)
	}
	if err != nil || op.State != wire.OperationDone {
		t.Fatalf("cancel of the traffic: %+v, %v", op, err)
	}
	r.all()
}

// past makes something that has been: a message that is acknowledged and one that is
// a dead letter, of a group that has a back-off of its own.
func (r *trial) past() (ids []string) {
	r.t.Helper()
	ctx := r.t.Context()
	_, err := r.c.PutGroup(ctx, "billing", wire.GroupSettings{MaxAttempts: new(2), Backoff: []wire.Duration{wire.Duration(time.Minute)}})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, text := range []string{"good", "bad"} {
		receipt, err := r.c.Publish(ctx, wire.Send{Topic: "past", Text: text})
		if err != nil {
			r.t.Fatal(err)
		}
		ids = append(ids, receipt.ID)
		got, err := r.c.Receive(ctx, "past", wire.Receive{Group: "billing", Wait: wire.Duration(time.Second)})
		if err != nil || len(got) != 1 || got[0].ID != receipt.ID {
			r.t.Fatalf("received %+v, %v", got, err)
		}
		if text == "good" {
			err = r.c.Ack(ctx, got[0].Lease)
		} else {
			_, err = r.c.Bury(ctx, got[0].Lease, "no such order")
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
	return ids
}

// same finds what past has made.
func (r *trial) same(ids []string) {
	r.t.Helper()
	ctx := r.t.Context()
	g, err := r.c.Group(ctx, "billing")
	if err != nil || g.MaxAttempts != 2 || len(g.Backoff) != 1 || g.Backoff[0] != wire.Duration(time.Minute) || g.Dead != 1 || g.Topics[0].Lag != 0 {
		r.t.Errorf("group %+v, %v", g, err)
	}
	dead, err := r.c.DeadLetters(ctx, "billing", true, 10, "")
	if err != nil || len(dead.Messages) != 1 || dead.Messages[0].Origin != ids[1] || dead.Messages[0].Text != "bad" || dead.Messages[0].Reason != "no such order" {
		r.t.Errorf("dead letters %+v, %v", dead, err)
	}
	got, err := r.c.Receive(ctx, "past", wire.Receive{Group: "billing"})
	if err != nil || len(got) > 0 {
		r.t.Errorf("received %+v, %v; want nothing again", got, err)
	}
	got, err = r.c.Receive(ctx, "past", wire.Receive{Group: "others", Max: 10})
	if err != nil || len(got) != 2 {
		r.t.Errorf("another group received %+v, %v; want both", got, err)
	}
}

// backup copies the server that runs into a file.
func (r *trial) backup(name string) {
	r.t.Helper()
	f, err := os.Create(name)
	if err != nil {
		r.t.Fatal(err)
	}
	n, err := r.c.Backup(r.t.Context(), f)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := f.Close(); err != nil || n == 0 {
		r.t.Fatalf("%d bytes, %v", n, err)
	}
}

// refuseHalf has a copy that broke off make no store.
func refuseHalf(t *testing.T, file, data string) {
	t.Helper()
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	half := file + ".half"
	if err := os.WriteFile(half, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	_, errs, code := run(t, "restore", half, "--data", data)
	if code == 0 || !strings.Contains(errs, "not a whole backup") {
		t.Errorf("half a copy: exit %d\n%s", code, errs)
	}
	if out, errs, code := run(t, "verify", "--data", data); code == 0 {
		t.Errorf("half a copy left a store:\n%s%s", out, errs)
	}
}
