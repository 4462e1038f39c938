package duemq_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/duemq/duemq"
)

// A message that waits, is received when it is due and acknowledged.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "duemq")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	q, err := duemq.Open(ctx, dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer q.Close()

	// On disk when Send returns.
	r, err := q.Send(ctx, "orders", []byte("is order 1981 paid?"), duemq.After(50*time.Millisecond), duemq.Key("1981"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("waits:", !r.Ready)

	for m, err := range q.Receive(ctx, "orders", duemq.Group("billing")) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %s, early: %v\n", m.Key, m.Body, m.Lateness() < 0)
		if err := m.Ack(ctx); err != nil {
			fmt.Println(err)
		}
		break
	}
	// Output:
	// waits: true
	// 1981: is order 1981 paid?, early: false
}

// The delay levels have RocketMQ's numbers: 16 is 30 minutes.
func ExampleLevel() {
	ctx := context.Background()
	q, err := duemq.Open(ctx, "", duemq.WithMemory(duemq.NewMemory()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer q.Close()

	for _, level := range []int{1, 14, 16, 18} {
		if _, err := q.Send(ctx, "orders", nil, duemq.Level(level)); err != nil {
			fmt.Println(err)
			return
		}
	}
	for m, err := range q.Pending(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("level %d waits %v\n", m.DueLevel, m.DueAt.Sub(m.StoredAt).Round(time.Second))
	}

	_, err = q.Send(ctx, "orders", nil, duemq.Level(16), duemq.After(30*time.Minute))
	fmt.Println(err)
	// Output:
	// level 1 waits 1s
	// level 14 waits 10m0s
	// level 16 waits 30m0s
	// level 18 waits 2h0m0s
	// invalid request: Level(16) and After(30m0s): a message has one delay
}

// A message that waits can be taken away; the answer is the truth.
func ExampleQueue_Cancel() {
	ctx := context.Background()
	q, err := duemq.Open(ctx, "", duemq.WithMemory(duemq.NewMemory()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer q.Close()

	waits, err := q.Send(ctx, "orders", []byte("cancel me"), duemq.After(30*time.Minute))
	if err != nil {
		fmt.Println(err)
		return
	}
	gone, err := q.Send(ctx, "orders", []byte("at once"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(q.Cancel(ctx, waits.ID))
	fmt.Println(errors.Is(q.Cancel(ctx, waits.ID), duemq.ErrAlreadyCancelled))
	fmt.Println(errors.Is(q.Cancel(ctx, gone.ID), duemq.ErrAlreadyDelivered))
	fmt.Println(errors.Is(q.Cancel(ctx, "00000000deadbeef"), duemq.ErrUnknownMessage))
	// Output:
	// <nil>
	// true
	// true
	// true
}

// A waiting message keeps its identity when it gets another due.
func ExampleQueue_Reschedule() {
	ctx := context.Background()
	q, err := duemq.Open(ctx, "", duemq.WithMemory(duemq.NewMemory()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer q.Close()

	r, err := q.Send(ctx, "orders", []byte("hello"), duemq.After(30*time.Minute))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(q.Reschedule(ctx, r.ID, duemq.At(r.DueAt.Add(time.Hour))))
	m, err := q.Get(ctx, r.ID)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s %s, moved by %v\n", m.State, m.Body, m.DueAt.Sub(r.DueAt))
	fmt.Println(q.DeliverNow(ctx, r.ID))
	got, err := q.ReceiveBatch(ctx, "orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("received:", got[0].ID == r.ID)
	// Output:
	// <nil>
	// waiting hello, moved by 1h0m0s
	// <nil>
	// received: true
}

// Many messages in one write. A refused one does not keep the others back.
func ExampleQueue_SendBatch() {
	ctx := context.Background()
	q, err := duemq.Open(ctx, "", duemq.WithMemory(duemq.NewMemory()), duemq.WithMaxDelay(24*time.Hour))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer q.Close()

	receipts, err := q.SendBatch(ctx, []duemq.Message{
		{Topic: "orders", Body: []byte("one"), After: 30 * time.Minute},
		{Topic: "orders", Body: []byte("two"), After: 48 * time.Hour},
		{Topic: "orders", Body: []byte("three"), Level: 3, Tag: "retail"},
		{Body: []byte("four")},
	})
	fmt.Println(err)
	for i, r := range receipts {
		fmt.Println(i, r.ID != "", errors.Is(r.Err, duemq.ErrDelayTooLong), errors.Is(r.Err, duemq.ErrInvalid))
	}
	n, err := q.Count(ctx)
	fmt.Println(n, err)
	// Output:
	// message 1: delay too long: 48h0m0s, limit 24h0m0s (86400000 ms)
	// message 3: invalid request: no topic given
	// 0 true false false
	// 1 false true false
	// 2 true false false
	// 3 false false true
	// 2 <nil>
}

// What is there, acknowledged in one write.
func ExampleQueue_ReceiveBatch() {
	ctx := context.Background()
	q, err := duemq.Open(ctx, "", duemq.WithMemory(duemq.NewMemory()), duemq.WithQueues(1))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer q.Close()

	for _, body := range []string{"one", "two", "three"} {
		if _, err := q.Send(ctx, "orders", []byte(body)); err != nil {
			fmt.Println(err)
			return
		}
	}
	got, err := q.ReceiveBatch(ctx, "orders", duemq.Max(100))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range got {
		fmt.Printf("%d %s\n", m.Offset, m.Body)
	}
	fmt.Println(q.AckAll(ctx, got))
	// Output:
	// 0 one
	// 1 two
	// 2 three
	// <nil>
}

// What will fall due within the hour, without receiving it.
func ExampleQueue_Pending() {
	ctx := context.Background()
	q, err := duemq.Open(ctx, "", duemq.WithMemory(duemq.NewMemory()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer q.Close()

	for _, d := range []time.Duration{2 * time.Hour, 20 * time.Minute, 40 * time.Minute} {
		if _, err := q.Send(ctx, "orders", nil, duemq.After(d), duemq.Key(d.String())); err != nil {
			fmt.Println(err)
			return
		}
	}
	for m, err := range q.Pending(ctx, duemq.Topic("orders"), duemq.Within(time.Hour)) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(m.Key)
	}
	// Output:
	// 20m0s
	// 40m0s
}

// A queue that a server keeps. What is done with it is the same.
func ExampleDial() {
	ctx := context.Background()
	q, err := duemq.Dial(ctx, "http://127.0.0.1:9870")
	if err != nil {
		fmt.Println(err) // errors.Is(err, duemq.ErrUnavailable) if nobody is there
		return
	}
	defer q.Close()

	r, err := q.Send(ctx, "orders", []byte("is order 1981 paid?"), duemq.After(30*time.Minute))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.ID, "is due at", r.DueAt)

	for m, err := range q.Receive(ctx, "orders", duemq.Group("billing")) { // goes on when the server was restarted
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(string(m.Body))
		if err := m.Ack(ctx); err != nil {
			fmt.Println(err)
		}
	}
}

// A waiting message is put off, or brought forward, from the due that it has.
func ExampleQueue_Shift() {
	ctx := context.Background()
	q, err := duemq.Open(ctx, "", duemq.WithMemory(duemq.NewMemory()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer q.Close()

	r, err := q.Send(ctx, "orders", []byte("hello"), duemq.After(30*time.Minute))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(q.Shift(ctx, r.ID, 15*time.Minute))
	fmt.Println(q.Shift(ctx, r.ID, -5*time.Minute))
	m, err := q.Get(ctx, r.ID)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("moved by", m.DueAt.Sub(r.DueAt))
	// Output:
	// <nil>
	// <nil>
	// moved by 10m0s
}
