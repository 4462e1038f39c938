package duemqtest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/duemq/duemq"
	"github.com/duemq/duemq/duemqtest"
)

// Thirty minutes in a call. In a test, t is its *testing.T.
func ExampleTestQueue_Advance() {
	t := &exampleT{}
	defer t.end()

	q := duemqtest.New(t)
	sent, err := q.Send(t.Context(), "reminders", []byte("your table is free"), duemq.After(30*time.Minute))
	if err != nil {
		t.Fatalf("send: %v", err)
	}
	fmt.Println("sent at", q.Now().Format(time.TimeOnly), "due at", sent.DueAt.Format(time.TimeOnly))

	q.Advance(30*time.Minute - time.Millisecond)
	got, err := q.ReceiveBatch(t.Context(), "reminders", duemq.Wait(0))
	fmt.Println("a millisecond before:", len(got), err)

	q.Advance(time.Millisecond)
	got, err = q.ReceiveBatch(t.Context(), "reminders", duemq.Wait(0))
	fmt.Println("then:", len(got), err)
	for _, m := range got {
		fmt.Printf("%s, late by %v\n", m.Body, m.Lateness())
	}
	// Output:
	// sent at 09:00:00 due at 09:30:00
	// a millisecond before: 0 <nil>
	// then: 1 <nil>
	// your table is free, late by 0s
}

// What a program does when the machine loses power while a message waits.
func ExampleTestQueue_Crash() {
	t := &exampleT{}
	defer t.end()

	q := duemqtest.New(t)
	if _, err := q.Send(t.Context(), "reminders", []byte("still here"), duemq.After(30*time.Minute)); err != nil {
		t.Fatalf("send: %v", err)
	}
	q.PowerCut()
	q.Advance(time.Hour) // nobody is there when it falls due
	q.Start()
	got, err := q.ReceiveBatch(t.Context(), "reminders", duemq.Wait(0))
	for _, m := range got {
		fmt.Printf("%s, late by %v\n", m.Body, m.Lateness())
	}
	fmt.Println(err)
	// Output:
	// still here, late by 30m0s
	// <nil>
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
