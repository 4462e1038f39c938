package duemq_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/duemq/duemq"
	"github.com/duemq/duemq/duemqtest"
)

// An order that is not paid within 30 minutes is closed; one that is paid is left
// alone. Cancel may come too late, so the handler looks at the order, too.
func Example_orderTimeout() {
	t := &exampleT{}
	defer t.end()
	q, ctx := duemqtest.New(t), t.Context() // a clock that passes 30 minutes in a call

	timeouts := make(map[string]string)
	for _, order := range []string{"1981", "1982"} {
		r, err := q.Send(ctx, "order-timeouts", []byte(order), duemq.Key(order), duemq.After(30*time.Minute))
		t.check(err)
		timeouts[order] = r.ID // kept with the order
	}

	q.Advance(10 * time.Minute)
	paid := map[string]bool{"1982": true}
	if err := q.Cancel(ctx, timeouts["1982"]); errors.Is(err, duemq.ErrAlreadyDelivered) {
		fmt.Println("too late: the order is being closed")
	}

	q.Advance(20 * time.Minute)
	t.check(q.Handle(ctx, "order-timeouts", func(_ context.Context, m *duemq.Message) error {
		if !paid[string(m.Body)] {
			fmt.Printf("%s: order %s is closed\n", q.Now().Format(time.TimeOnly), m.Body)
		}
		return nil
	}, duemq.Group("orders"), duemq.Wait(0))) // without Wait, until ctx ends
	// Output:
	// 09:30:00: order 1981 is closed
}

// A call that fails is tried again after 1, 5 and 30 seconds; then it is a dead
// letter. When the partner is back, the dead letters are delivered again.
func Example_retries() {
	t := &exampleT{}
	defer t.end()
	q, ctx := duemqtest.New(t), t.Context()

	_, err := q.CreateGroup(ctx, "webhooks",
		duemq.Backoff(time.Second, 5*time.Second, 30*time.Second), duemq.MaxAttempts(4))
	t.check(err)
	_, err = q.Send(ctx, "webhooks", []byte("shipped"))
	t.check(err)

	down := true
	work := func() {
		t.check(q.Handle(ctx, "webhooks", func(_ context.Context, m *duemq.Message) error {
			fmt.Printf("%s: attempt %d, down: %v\n", q.Now().Format(time.TimeOnly), m.Attempt, down)
			if down {
				return errors.New("503 Service Unavailable")
			}
			return nil
		}, duemq.Group("webhooks"), duemq.Wait(0)))
	}
	work()
	for _, d := range []time.Duration{time.Second, 5 * time.Second, 30 * time.Second} {
		q.Advance(d)
		work()
	}
	for m, err := range q.DeadLetters(ctx, "webhooks") {
		t.check(err)
		fmt.Printf("dead letter: %s\n", m.Body)
	}

	down = false
	op, err := q.Redrive(ctx, "webhooks")
	t.check(err)
	t.check(op.Wait(ctx))
	fmt.Println("redriven:", op.Done)
	q.Advance(time.Millisecond)
	work()
	// Output:
	// 09:00:00: attempt 1, down: true
	// 09:00:01: attempt 2, down: true
	// 09:00:06: attempt 3, down: true
	// 09:00:36: attempt 4, down: true
	// dead letter: shipped
	// redriven: 1
	// 09:00:36: attempt 1, down: false
}

// A push to everybody at 09:00 tomorrow does not come at once but evenly over 10
// minutes.
func Example_push() {
	t := &exampleT{}
	defer t.end()
	q, ctx := duemqtest.New(t), t.Context()

	nine := time.Date(2026, 12, 2, 9, 0, 0, 0, time.UTC)
	msgs := make([]duemq.Message, 1000)
	for i := range msgs {
		msgs[i] = duemq.Message{Topic: "push", Key: fmt.Sprint("user-", i), Body: []byte("good morning"), At: nine}
	}
	_, err := q.SendBatch(ctx, msgs)
	t.check(err)

	op, err := q.SpreadWhere(ctx, nine, 10*time.Minute, duemq.Topic("push"))
	t.check(err)
	t.check(op.Wait(ctx))
	fmt.Println("spread:", op.Done)
	line, err := q.Timeline(ctx, duemq.Topic("push"), duemq.Step(time.Minute))
	t.check(err)
	for _, b := range line.Buckets {
		fmt.Println(b.From.Format("15:04"), b.Count)
	}
	// Output:
	// spread: 1000
	// 09:00 100
	// 09:01 100
	// 09:02 100
	// 09:03 100
	// 09:04 100
	// 09:05 100
	// 09:06 100
	// 09:07 100
	// 09:08 100
	// 09:09 100
}

// A reminder 10 minutes before the class. When the class is moved it is sent
// anew: there is one of its name.
func Example_reminder() {
	t := &exampleT{}
	defer t.end()
	q, ctx := duemqtest.New(t), t.Context()

	remind := func(class string, begins time.Time) {
		r, err := q.Send(ctx, "reminders", []byte(class), duemq.Name(class), duemq.At(begins.Add(-10*time.Minute)))
		t.check(err)
		fmt.Println(r.DueAt.Format(time.TimeOnly), "in place of another:", r.Replaced != "")
	}
	remind("chemistry", time.Date(2026, 12, 1, 14, 0, 0, 0, time.UTC))
	remind("chemistry", time.Date(2026, 12, 1, 16, 30, 0, 0, time.UTC)) // it was moved

	q.Advance(12 * time.Hour)
	got, err := q.ReceiveBatch(ctx, "reminders", duemq.Wait(0))
	t.check(err)
	for _, m := range got {
		fmt.Printf("%s: %s\n", m.VisibleAt.Format(time.TimeOnly), m.Body)
	}
	// Output:
	// 13:50:00 in place of another: false
	// 16:20:00 in place of another: true
	// 16:20:00: chemistry
}

// Who got a parcel is asked for a review 2 hours later: once, however often the
// carrier tells of it, and not at all if the parcel goes back.
func Example_review() {
	t := &exampleT{}
	defer t.end()
	q, ctx := duemqtest.New(t), t.Context()

	delivered := func(parcel string) {
		_, err := q.Send(ctx, "reviews", []byte(parcel), duemq.Name(parcel), duemq.After(2*time.Hour))
		t.check(err)
	}
	delivered("parcel-7")
	delivered("parcel-7") // the carrier repeats itself
	delivered("parcel-8")
	t.check(q.CancelNamed(ctx, "reviews", "parcel-8")) // it goes back

	q.Advance(2 * time.Hour)
	got, err := q.ReceiveBatch(ctx, "reviews", duemq.Wait(0))
	t.check(err)
	for _, m := range got {
		fmt.Printf("%s: how was %s?\n", m.VisibleAt.Format(time.TimeOnly), m.Body)
	}
	// Output:
	// 11:00:00: how was parcel-7?
}

// A message that is delivered exactly if something else happened, such as a
// change in a database. Who crashes between is asked.
func ExampleQueue_Begin() {
	t := &exampleT{}
	defer t.end()
	q, ctx := duemqtest.New(t), t.Context()

	tx, err := q.Begin(ctx, "orders", []byte("order 1981"), duemq.Producer("shop"))
	t.check(err)
	orders := map[string]bool{tx.ID: true} // the database commits, and then the shop crashes

	q.Advance(6 * time.Second)
	for c, err := range q.Checks(ctx, "shop", duemq.Wait(0)) { // without Wait, until ctx ends
		t.check(err)
		if orders[c.ID] {
			t.check(c.Commit(ctx))
		} else {
			t.check(c.Rollback(ctx))
		}
	}
	got, err := q.ReceiveBatch(ctx, "orders", duemq.Wait(0))
	t.check(err)
	fmt.Printf("%s\n", got[0].Body)
	fmt.Println(errors.Is(tx.Commit(ctx), duemq.ErrTransactionEnded))
	// Output:
	// order 1981
	// true
}

// Everything that waits under a filter is cancelled, after a look at what that
// would be.
func ExampleQueue_CancelWhere() {
	t := &exampleT{}
	defer t.end()
	q, ctx := duemqtest.New(t), t.Context()

	for i := range 100 {
		_, err := q.Send(ctx, "campaign", nil, duemq.Key(fmt.Sprint("user-", i%10)), duemq.After(time.Hour))
		t.check(err)
	}
	unsubscribed := []duemq.BulkOption{duemq.Topic("campaign"), duemq.Keyed("user-7")}
	op, err := q.CancelWhere(ctx, append(unsubscribed, duemq.DryRun())...)
	t.check(err)
	fmt.Println("would be cancelled:", op.Matched)

	op, err = q.CancelWhere(ctx, unsubscribed...)
	t.check(err)
	t.check(op.Wait(ctx))
	fmt.Println("cancelled:", op.Done)
	// Output:
	// would be cancelled: 10
	// cancelled: 10
}

// Every instance of a program sees everything, and keeps its own place.
func ExampleQueue_Pull() {
	t := &exampleT{}
	defer t.end()
	q, ctx := duemqtest.New(t, duemq.WithQueues(1)), t.Context()

	for _, price := range []string{"3", "4", "5"} {
		_, err := q.Send(ctx, "prices", []byte(price))
		t.check(err)
	}
	for offset := int64(0); ; {
		got, err := q.Pull(ctx, "prices", 0, offset, duemq.Wait(0)) // without Wait, until the next comes
		t.check(err)
		if len(got.Messages) == 0 {
			break
		}
		for _, m := range got.Messages {
			fmt.Printf("%d: %s\n", m.Offset, m.Body)
		}
		offset = got.Next
	}
	// Output:
	// 0: 3
	// 1: 4
	// 2: 5
}

// exampleT stands for a *testing.T, which examples do not get.
type exampleT struct{ cleanups []func() }

func (*exampleT) Helper()                           {}
func (*exampleT) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (*exampleT) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (*exampleT) Context() context.Context          { return context.Background() }
func (t *exampleT) Cleanup(f func())                { t.cleanups = append(t.cleanups, f) }

func (t *exampleT) end() {
	for _, f := range t.cleanups {
		f()
	}
}

// check ends the example if there is an error.
func (t *exampleT) check(err error) {
	if err != nil {
		t.Fatalf("%v", err)
	}
}
