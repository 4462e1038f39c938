package duemq_test

import (
	"errors"
	"testing"
	"time"

	"github.com/duemq/duemq"
)

// TestTransaction: nobody sees a half message, its delay counts from the commit,
// and it ends once.
func TestTransaction(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		ctx := t.Context()
		begin := func(body string, opts ...duemq.BeginOption) *duemq.Tx {
			t.Helper()
			tx, err := q.Begin(ctx, topic, []byte(body), append(opts, duemq.Producer("shop"))...)
			if err != nil {
				t.Fatalf("Begin(%q): %v", body, err)
			}
			return tx
		}
		paid, failed := begin("paid", duemq.Key("k")), begin("failed")
		later := begin("later", duemq.After(time.Minute))
		if paid.Ready || paid.ID == "" {
			t.Errorf("receipt %+v", paid.Receipt)
		}
		if m, err := q.Get(ctx, paid.ID); err != nil || m.State != duemq.StateHalf || string(m.Body) != "paid" {
			t.Errorf("Get: %+v, %v", m, err)
		}
		if n, err := q.Count(ctx); n != 0 || err != nil {
			t.Errorf("Count: %d, %v; a half message waits for nothing", n, err)
		}
		halves, err := q.Transactions(ctx, "shop")
		if err != nil || len(halves) != 3 || halves[0].ID != paid.ID || halves[0].Key != "k" {
			t.Errorf("Transactions: %v, %v", halves, err)
		}
		if got := take(t, q.Queue); len(got) != 0 {
			t.Errorf("received %q", bodies(got))
		}
		if err := errors.Join(paid.Commit(ctx), failed.Rollback(ctx)); err != nil {
			t.Errorf("Commit and Rollback: %v", err)
		}
		q.Crash()
		start := q.Now()
		if err := q.CommitTx(ctx, later.ID); err != nil { // another process, so to say
			t.Errorf("CommitTx: %v", err)
		}
		if got := take(t, q.Queue); bodies(got) != "paid" {
			t.Errorf("received %q, want paid", bodies(got))
		}
		q.Advance(time.Minute)
		if got := take(t, q.Queue); bodies(got) != "later" || got[0].VisibleAt.Sub(start) != time.Minute {
			t.Errorf("received %q, want later", bodies(got))
		}
		for what, err := range map[string]error{
			"Commit of a committed one":   q.CommitTx(ctx, paid.ID),
			"Rollback of a committed one": q.RollbackTx(ctx, paid.ID),
			"Commit of a rolled back one": q.CommitTx(ctx, failed.ID),
		} {
			if !errors.Is(err, duemq.ErrTransactionEnded) {
				t.Errorf("%s: %v, want %v", what, err, duemq.ErrTransactionEnded)
			}
		}
		if err := q.CommitTx(ctx, "00000000000000ff"); !errors.Is(err, duemq.ErrUnknownMessage) {
			t.Errorf("Commit of nothing: %v, want %v", err, duemq.ErrUnknownMessage)
		}
		if _, err := q.Begin(ctx, topic, nil, duemq.Producer("")); !errors.Is(err, duemq.ErrInvalid) {
			t.Errorf("Begin without a producer: %v, want %v", err, duemq.ErrInvalid)
		}
	})
}

// TestChecks: who does not say is asked, after 6 seconds and then every 30, and
// after 15 times the message is rolled back.
func TestChecks(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		ctx := t.Context()
		checks := func() (all []*duemq.Check) {
			t.Helper()
			for c, err := range q.Checks(ctx, duemq.DefaultProducer, duemq.Wait(0)) {
				if err != nil {
					t.Fatalf("Checks: %v", err)
				}
				all = append(all, c)
			}
			return all
		}
		known, err := q.Begin(ctx, topic, []byte("known"))
		if err != nil {
			t.Fatalf("Begin: %v", err)
		}
		q.Advance(6*time.Second - time.Millisecond)
		if got := checks(); len(got) != 0 {
			t.Errorf("asked %d times too early", len(got))
		}
		q.Advance(time.Millisecond)
		if got := checks(); len(got) != 1 || got[0].ID != known.ID || got[0].Checks != 1 || string(got[0].Body) != "known" {
			t.Fatalf("after 6 s: %+v", got)
		}
		if got := checks(); len(got) != 0 {
			t.Errorf("asked again at once")
		}
		q.Advance(30 * time.Second)
		got := checks()
		if len(got) != 1 || got[0].Checks != 2 {
			t.Fatalf("after 36 s: %+v", got)
		}
		if err := got[0].Commit(ctx); err != nil {
			t.Errorf("Commit: %v", err)
		}
		if msgs := take(t, q.Queue); bodies(msgs) != "known" {
			t.Errorf("received %q", bodies(msgs))
		}
		forgotten, err := q.Begin(ctx, topic, []byte("forgotten"))
		if err != nil {
			t.Fatalf("Begin: %v", err)
		}
		asked := 0
		for range 40 {
			q.Advance(30 * time.Second)
			asked += len(checks())
		}
		if asked < 14 || asked > 15 {
			t.Errorf("asked %d times, want 15", asked)
		}
		if err := forgotten.Commit(ctx); !errors.Is(err, duemq.ErrTransactionEnded) {
			t.Errorf("Commit: %v, want %v", err, duemq.ErrTransactionEnded)
		}
		for _, err := range q.Checks(ctx, "p", duemq.Max(duemq.MaxReceive+1)) {
			if !errors.Is(err, duemq.ErrInvalid) {
				t.Errorf("Checks of too many: %v", err)
			}
		}
	})
}
