package duemq_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq"
)

// TestRetentionOptions: what became visible a minute ago is given up with its
// log, and what waits in the same log is carried out of it and comes.
func TestRetentionOptions(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t, duemq.WithRetention(time.Minute, 0), duemq.WithCarryAfter(time.Minute))
		far := send(t, q.Queue, "far", duemq.After(24*time.Hour))
		var old duemq.Receipt
		for range 5 { // more than one file of the log
			old = send(t, q.Queue, strings.Repeat("x", 3<<20))
		}
		low := func() int64 {
			info, err := q.TopicInfo(t.Context(), topic)
			if err != nil {
				t.Fatalf("TopicInfo: %v", err)
			}
			return info.Offsets[old.Queue].Low
		}
		began := low()
		for i := 0; low() == began; i++ {
			if i == 1000 {
				t.Fatal("nothing is given up after more than a minute")
			}
			q.Advance(5 * time.Second)
		}
		q.Crash()
		if m, err := q.Get(t.Context(), far.ID); err != nil || string(m.Body) != "far" {
			t.Fatalf("what waits: %+v, %v", m, err)
		}
		q.Advance(24 * time.Hour)
		got := take(t, q.Queue)
		if len(got) == 0 || string(got[len(got)-1].Body) != "far" {
			t.Errorf("received %d messages, and not the one that waited", len(got))
		}
	})
}

func TestRetentionOptionsAreBounded(t *testing.T) {
	for what, o := range map[string]duemq.Option{
		"seconds": duemq.WithRetention(time.Second, 0),
		"bytes":   duemq.WithRetention(time.Hour, 1<<20),
		"carry":   duemq.WithCarryAfter(time.Second),
	} {
		if q, err := duemq.Open(t.Context(), t.TempDir(), o); !errors.Is(err, duemq.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
			if err == nil {
				_ = q.Close()
			}
		}
		if _, err := duemq.Dial(t.Context(), "127.0.0.1:1", o); !errors.Is(err, duemq.ErrInvalid) {
			t.Errorf("%s: Dial: %v", what, err)
		}
	}
}
