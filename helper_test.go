package duemq_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq"
)

const topic = "orders"

// send sends or ends the test.
func send(t *testing.T, q *duemq.Queue, body string, opts ...duemq.SendOption) duemq.Receipt {
	t.Helper()
	r, err := q.Send(t.Context(), topic, []byte(body), opts...)
	if err != nil {
		t.Fatalf("Send(%q): %v", body, err)
	}
	return r
}

// batch sends messages of which none is refused.
func batch(t *testing.T, q *duemq.Queue, msgs []duemq.Message) []duemq.Receipt {
	t.Helper()
	rs, err := q.SendBatch(t.Context(), msgs)
	if err != nil {
		t.Fatalf("SendBatch: %v", err)
	}
	return rs
}

// take receives what is there and acknowledges it.
func take(t *testing.T, q *duemq.Queue, opts ...duemq.ReceiveOption) []*duemq.Message {
	t.Helper()
	var all []*duemq.Message
	for {
		got, err := q.ReceiveBatch(t.Context(), topic, append(opts, duemq.Wait(0))...)
		if err != nil {
			t.Fatalf("ReceiveBatch: %v", err)
		}
		if len(got) == 0 {
			return all
		}
		if err := q.AckAll(t.Context(), got); err != nil {
			t.Fatalf("AckAll: %v", err)
		}
		all = append(all, got...)
	}
}

// bodies are the messages' bodies, sorted.
func bodies(msgs []*duemq.Message) string {
	sorted := slices.SortedFunc(slices.Values(msgs), func(a, b *duemq.Message) int { return bytes.Compare(a.Body, b.Body) })
	return inOrder(sorted)
}

// inOrder are the messages' bodies as they came.
func inOrder(msgs []*duemq.Message) string {
	all := make([]string, len(msgs))
	for i, m := range msgs {
		all[i] = string(m.Body)
	}
	return strings.Join(all, " ")
}

// punctual takes what is there and demands that each of the receipts came once
// and exactly at its due, or at the instant at which the queue came up if it was
// due before.
func punctual(t *testing.T, q *bench, sent []duemq.Receipt, up time.Time) {
	t.Helper()
	due := make(map[string]time.Time, len(sent))
	for _, r := range sent {
		due[r.ID] = r.DueAt
	}
	if len(due) != len(sent) {
		t.Errorf("%d distinct ids of %d messages", len(due), len(sent))
	}
	for _, m := range take(t, q.Queue) {
		want, ok := due[m.ID]
		if !ok {
			t.Errorf("message %s, %q: received twice or never sent", m.ID, m.Body)
			continue
		}
		delete(due, m.ID)
		if !m.DueAt.Equal(want) {
			t.Errorf("message %s: due %v, its receipt said %v", m.ID, m.DueAt, want)
		}
		if want.Before(up) {
			want = up
		}
		if !m.VisibleAt.Equal(want) {
			t.Errorf("message %s: visible at %v, %v after %v", m.ID, m.VisibleAt, m.VisibleAt.Sub(want), want)
		}
	}
	if len(due) > 0 {
		t.Errorf("%d of %d messages were not received", len(due), len(sent))
	}
}

// numbered makes n messages with the bodies 0, 1, ...
func numbered(n int, fill func(i int, m *duemq.Message)) []duemq.Message {
	msgs := make([]duemq.Message, n)
	for i := range msgs {
		msgs[i] = duemq.Message{Topic: topic, Body: fmt.Append(nil, i)}
		fill(i, &msgs[i])
	}
	return msgs
}
