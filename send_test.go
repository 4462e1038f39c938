package duemq_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq"
)

func TestSendRefuses(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		many := make([]duemq.SendOption, 129)
		for i := range many {
			many[i] = duemq.Header(strconv.Itoa(i), "x")
		}
		for _, c := range []struct {
			name  string
			topic string
			body  int
			opts  []duemq.SendOption
			want  error
		}{
			{"no topic", "", 0, nil, duemq.ErrInvalid},
			{"a topic with a blank", "a b", 0, nil, duemq.ErrInvalid},
			{"a long topic", strings.Repeat("t", 128), 0, nil, duemq.ErrInvalid},
			{"an internal topic", "SCHEDULE_TOPIC_XXXX", 0, nil, duemq.ErrForbidden},
			{"a retry topic", "%RETRY%g", 0, nil, duemq.ErrForbidden},
			{"a large body", topic, 4<<20 + 1, nil, duemq.ErrTooLarge},
			{"many headers", topic, 0, many, duemq.ErrTooLarge},
			{"a large header", topic, 0, []duemq.SendOption{duemq.Header("h", strings.Repeat("x", 32<<10))}, duemq.ErrTooLarge},
			{"an internal header", topic, 0, []duemq.SendOption{duemq.Header("DELAY", "3")}, duemq.ErrForbidden},
			{"a header without a name", topic, 0, []duemq.SendOption{duemq.Header("", "x")}, duemq.ErrInvalid},
			{"a separator in the key", topic, 0, []duemq.SendOption{duemq.Key("a\x01b")}, duemq.ErrInvalid},
			{"two tags", topic, 0, []duemq.SendOption{duemq.Tag("a || b")}, duemq.ErrInvalid},
			{"a queue below 0", topic, 0, []duemq.SendOption{duemq.InQueue(-1)}, duemq.ErrInvalid},
			{"a queue that is not there", topic, 0, []duemq.SendOption{duemq.InQueue(8)}, duemq.ErrInvalid},
		} {
			r, err := q.Send(t.Context(), c.topic, make([]byte, c.body), c.opts...)
			if !errors.Is(err, c.want) || r != (duemq.Receipt{}) {
				t.Errorf("Send with %s: %+v, %v; want %v", c.name, r, err, c.want)
			}
		}
		if got := take(t, q.Queue); len(got) != 0 {
			t.Errorf("received %q, want nothing", bodies(got))
		}
		send(t, q.Queue, strings.Repeat("x", 4<<20))
		if got := take(t, q.Queue); len(got) != 1 || len(got[0].Body) != 4<<20 {
			t.Errorf("the largest body: received %d messages", len(got))
		}
	})
}

// TestSendBatchTellsEach: receipts in order, also of those refused, over several
// topics.
func TestSendBatchTellsEach(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t, duemq.WithQueues(2))
		msgs := []duemq.Message{
			{Topic: topic, Body: []byte("0"), After: time.Minute},
			{Topic: "a b"},
			{Topic: "other", Body: []byte("2"), Queue: 1, InQueue: true, Headers: map[string]string{"h": "v"}},
			{Topic: topic, After: 366 * 24 * time.Hour},
			{Topic: topic, Body: []byte("4"), Queue: 7}, // without InQueue the queue is not looked at
			{Topic: topic, Queue: 7, InQueue: true},
		}
		rs, err := q.SendBatch(t.Context(), msgs)
		if len(rs) != len(msgs) {
			t.Fatalf("%d receipts for %d messages", len(rs), len(msgs))
		}
		for i, want := range []error{nil, duemq.ErrInvalid, nil, duemq.ErrDelayTooLong, nil, duemq.ErrInvalid} {
			r := rs[i]
			if !errors.Is(r.Err, want) || (r.ID != "") != (want == nil) || r.Topic != msgs[i].Topic {
				t.Errorf("receipt %d: %+v, want error %v", i, r, want)
			}
			if want != nil && (!errors.Is(err, want) || !strings.Contains(err.Error(), fmt.Sprintf("message %d: ", i))) {
				t.Errorf("error %q does not tell of message %d", err, i)
			}
		}
		if rs[0].Ready || rs[0].Handle == "" || rs[0].Offset != -1 || rs[2].Queue != 1 || !rs[2].Ready || rs[2].Offset != 0 {
			t.Errorf("receipts %+v", rs)
		}
		if got := take(t, q.Queue); bodies(got) != "4" {
			t.Errorf("received %q, want 4", bodies(got))
		}
		if rs, err := q.SendBatch(t.Context(), nil); len(rs) != 0 || err != nil {
			t.Errorf("empty batch: %v, %v", rs, err)
		}
		if _, err := q.SendBatch(t.Context(), numbered(duemq.MaxBatch+1, func(int, *duemq.Message) {})); !errors.Is(err, duemq.ErrInvalid) {
			t.Errorf("a batch of too many: %v, want %v", err, duemq.ErrInvalid)
		}
	})
}

// TestSendWithAnEndedContext sends nothing.
func TestSendWithAnEndedContext(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := q.Send(ctx, topic, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("Send: %v, want %v", err, context.Canceled)
		}
		if rs, err := q.SendBatch(ctx, numbered(3, func(int, *duemq.Message) {})); rs != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("SendBatch: %v, %v; want %v", rs, err, context.Canceled)
		}
		if err := q.Cancel(ctx, "0000000000000001"); !errors.Is(err, context.Canceled) {
			t.Errorf("Cancel: %v, want %v", err, context.Canceled)
		}
		if got := take(t, q.Queue); len(got) != 0 {
			t.Errorf("received %d messages, want none", len(got))
		}
	})
}

// TestBodyIsTheCallersAgain: whatever became of the call, the caller may write
// into the body when it returns. The race detector watches.
func TestBodyIsTheCallersAgain(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		body := make([]byte, 1<<10)
		sent := 0
		for i := range 200 {
			for k := range body {
				body[k] = byte(i)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go cancel()
			if _, err := q.Send(ctx, topic, body); err == nil {
				sent++
			} else if !errors.Is(err, context.Canceled) {
				t.Fatalf("Send: %v", err)
			}
			cancel()
		}
		for i := range body {
			body[i] = 0xFF
		}
		got := take(t, q.Queue)
		if len(got) < sent {
			t.Errorf("received %d, %d were acknowledged", len(got), sent)
		}
		for _, m := range got {
			if strings.Trim(string(m.Body), string(m.Body[:1])) != "" {
				t.Fatalf("message %s has a body of two sends", m.ID)
			}
		}
	})
}

// TestOrderWithinAQueue: the order of becoming visible, for equal dues that of
// sending.
func TestOrderWithinAQueue(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t, duemq.WithQueues(1))
		batch(t, q.Queue, numbered(100, func(i int, m *duemq.Message) {
			m.After = time.Duration(10-i/10) * time.Second // ten equal ones, then ten sooner
		}))
		q.Advance(10 * time.Second)
		got := take(t, q.Queue)
		for i, m := range got {
			if want := strconv.Itoa((9-i/10)*10 + i%10); string(m.Body) != want || m.Offset != int64(i) {
				t.Errorf("place %d: message %s at offset %d, want %s", i, m.Body, m.Offset, want)
			}
		}
		if len(got) != 100 {
			t.Errorf("received %d messages, want 100", len(got))
		}
	})
}
