//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/duemq/duemq"
)

// dial talks to a server by the library until the test ends.
func dial(t *testing.T, s *server) *duemq.Queue {
	t.Helper()
	q, err := duemq.Dial(t.Context(), s.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
	return q
}

// A consumption is a group of one consumer, and what it has received.
type consumption struct {
	t    *testing.T
	q    *duemq.Queue
	sent duemq.Receipt
	got  chan taken
}

// taken is one receipt of a message.
type taken struct {
	id      string
	attempt int
	at      time.Time
}

// consume sends one message, which is not delayed, and has a consumer deal with it
// that says what becomes of it each time. A message of the group g is received four
// times at most: once and three times again.
func consume(t *testing.T, s *server, handler duemq.Handler) *consumption {
	t.Helper()
	c := &consumption{t: t, q: dial(t, s), got: make(chan taken, 100)}
	if _, err := c.q.CreateGroup(t.Context(), "g", duemq.MaxAttempts(4)); err != nil {
		t.Fatal(err)
	}
	var err error
	c.sent, err = c.q.Send(t.Context(), "orders", []byte("cannot be read"), duemq.Key("order-42"), duemq.Header("kind", "bad"))
	if err != nil || !c.sent.Ready {
		t.Fatalf("sent: %+v, %v", c.sent, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- c.q.Handle(ctx, "orders", func(ctx context.Context, m *duemq.Message) error {
			c.got <- taken{m.ID, m.Attempt, time.Now()}
			return handler(ctx, m)
		}, duemq.Group("g"))
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the consumer ended with %v", err)
		}
	})
	return c
}

// times checks when the message is received: at once, and then with these gaps, each
// up to punctual longer and never shorter. Nothing is received for a while after.
func (c *consumption) times(gaps []time.Duration, silence time.Duration) {
	c.t.Helper()
	var last taken
	for i := range len(gaps) + 1 {
		var got taken
		select {
		case got = <-c.got:
		case <-time.After(10 * time.Second):
			c.t.Fatalf("receipt %d does not come", i)
		}
		if got.id != c.sent.ID || got.attempt != i+1 {
			c.t.Errorf("receipt %d: attempt %d of %s, want %d of %s", i, got.attempt, got.id, i+1, c.sent.ID)
		}
		if i > 0 {
			if gap := got.at.Sub(last.at); gap < gaps[i-1] || gap > gaps[i-1]+punctual {
				c.t.Errorf("receipt %d came %v after the one before, want %v and %v more at most", i, gap, gaps[i-1], punctual)
			}
		}
		last = got
	}
	c.dead(last.at, len(gaps)+1)
	select {
	case got := <-c.got:
		c.t.Errorf("received once more: %+v", got)
	case <-time.After(silence):
	}
}

// dead waits until the message is a dead letter, which must be soon after it failed
// for the last time, and looks at it.
func (c *consumption) dead(failed time.Time, attempts int) {
	c.t.Helper()
	var letters []*duemq.Message
	for len(letters) == 0 && time.Since(failed) < punctual {
		letters = c.letters()
	}
	if len(letters) != 1 {
		c.t.Fatalf("%d dead letters %v after the last failure, want 1", len(letters), time.Since(failed))
	}
	m := letters[0]
	if string(m.Body) != "cannot be read" || m.Key != "order-42" || m.Headers["kind"] != "bad" || m.Origin != c.sent.ID ||
		m.OriginTopic != "orders" || m.Group != "g" || m.Attempt != attempts || m.State != duemq.StateDead {
		c.t.Errorf("dead letter %+v of %+v, after %d attempts", m, c.sent, attempts)
	}
	if got, err := c.q.Get(c.t.Context(), m.ID); err != nil || got.Topic != "%DLQ%g" || string(got.Body) != "cannot be read" {
		c.t.Errorf("looked at by its id: %+v, %v", got, err)
	}
}

// letters gives the group's dead letters.
func (c *consumption) letters() (all []*duemq.Message) {
	c.t.Helper()
	for m, err := range c.q.DeadLetters(c.t.Context(), "g") {
		if err != nil {
			c.t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// TestCaseRetries is case G9 with a faster table of levels: three retries and a
// consumer that always fails. The message is received at 0, +0.5, +2.9 and +6.9 s,
// by the levels from the third on, where RocketMQ's table gives 0, +10, +40 and
// +100, and is then a dead letter, within 1.5 s, with its body and key. There is no
// fifth receipt. TestLadder of internal/broker has RocketMQ's table.
func TestCaseRetries(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "--levels", "50ms 250ms 500ms 2400ms 4s") // no step passes for its neighbour that is late
	c := consume(t, s, func(context.Context, *duemq.Message) error { return errors.New("no such order") })
	c.times([]time.Duration{500 * time.Millisecond, 2400 * time.Millisecond, 4 * time.Second}, 4500*time.Millisecond)
}

// TestCaseRetryOverride is case G10: a consumer that says after what time it wants
// the message again, which is once a second, and one that gives it up at once.
func TestCaseRetryOverride(t *testing.T) {
	t.Parallel()
	t.Run("after a second", func(t *testing.T) {
		t.Parallel()
		c := consume(t, serve(t, t.TempDir()), func(ctx context.Context, m *duemq.Message) error {
			return m.Retry(ctx, duemq.After(time.Second))
		})
		c.times([]time.Duration{time.Second, time.Second, time.Second}, 2*time.Second)
	})
	t.Run("never", func(t *testing.T) {
		t.Parallel()
		c := consume(t, serve(t, t.TempDir()), func(ctx context.Context, m *duemq.Message) error {
			return m.Bury(ctx, "no such order")
		})
		c.times(nil, 2*time.Second)
		if m := c.letters()[0]; m.Reason != "no such order" {
			t.Errorf("reason %q", m.Reason)
		}
	})
}

// poisonedBy names the environment variable that makes this program a consumer whom
// one message kills, of the server at a URL or of the store in a folder.
const poisonedBy = "DUEMQ_TEST_POISONED"

const poison = "poison"

// poisoned receives from topic orders for the group g and prints the attempts. It
// kills itself over the poison and acknowledges everything else. The result is its
// exit code, when nothing comes any more.
func poisoned(ctx context.Context, where string) int {
	door := duemq.Open
	if strings.HasPrefix(where, "http") {
		door = duemq.Dial
	}
	q, err := door(ctx, where)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for m, err := range q.Receive(ctx, "orders", duemq.Group("g"), duemq.Wait(3*time.Second)) {
		if err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println(string(m.Body), m.Attempt)
		if string(m.Body) == poison {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // if it fails, the poison is acknowledged and missed
			<-ctx.Done()
		}
		if err := m.Ack(ctx); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	if err := q.Close(); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// TestPoison has a process that a message kills at each receive, and that is started
// again each time. After three attempts the message is a dead letter, the process
// lives, and the messages beside it have been received, once each.
func TestPoison(t *testing.T) {
	t.Parallel()
	t.Run("store in the process", func(t *testing.T) {
		t.Parallel()
		data := t.TempDir()
		q, err := duemq.Open(t.Context(), data)
		if err != nil {
			t.Fatal(err)
		}
		sendPoison(t, q)
		if err := q.Close(); err != nil {
			t.Fatal(err)
		}
		feedPoison(t, data)
		wantPoisonDead(t, open(t, data))
	})
	t.Run("store in a server", func(t *testing.T) {
		t.Parallel()
		s := serve(t, t.TempDir())
		q := dial(t, s)
		sendPoison(t, q)
		feedPoison(t, s.url)
		wantPoisonDead(t, q)
	})
}

// sendPoison sends the poison with a message before it and one behind it.
func sendPoison(t *testing.T, q *duemq.Queue) {
	t.Helper()
	_, err := q.CreateGroup(t.Context(), "g", duemq.MaxAttempts(3), duemq.Invisible(500*time.Millisecond), duemq.Backoff(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"before", poison, "behind"} {
		if _, err := q.Send(t.Context(), "orders", []byte(body), duemq.InQueue(0)); err != nil {
			t.Fatal(err)
		}
	}
}

// feedPoison starts the consumer until it is not killed any more.
func feedPoison(t *testing.T, where string) {
	t.Helper()
	var printed []string
	for kills := 0; ; kills++ {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), poisonedBy+"="+where)
		out, err := cmd.CombinedOutput()
		printed = append(printed, strings.Split(strings.TrimSpace(string(out)), "\n")...)
		if err == nil {
			break
		}
		status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if !ok || !status.Signaled() || kills == 3 {
			t.Fatalf("the consumer ended with %v after %d kills:\n%s", err, kills, strings.Join(printed, "\n"))
		}
	}
	printed = slices.DeleteFunc(printed, func(line string) bool { return line == "" })
	slices.Sort(printed)
	if want := []string{"before 1", "behind 1", "poison 1", "poison 2", "poison 3"}; !slices.Equal(printed, want) {
		t.Errorf("received %q, want %q", printed, want)
	}
}

// wantPoisonDead finds the poison in the dead letters, alone, and nothing else left.
func wantPoisonDead(t *testing.T, q *duemq.Queue) {
	t.Helper()
	var dead []string
	for m, err := range q.DeadLetters(t.Context(), "g") {
		if err != nil {
			t.Fatal(err)
		}
		dead = append(dead, fmt.Sprint(string(m.Body), " ", m.Attempt, " ", m.OriginTopic))
	}
	if want := []string{"poison 3 orders"}; !slices.Equal(dead, want) {
		t.Errorf("dead letters %q, want %q", dead, want)
	}
	g, err := q.GroupInfo(t.Context(), "g")
	if err != nil || len(g.Topics) == 0 || g.Topics[0].Lag != 0 {
		t.Errorf("group %+v, %v; want nothing left", g, err)
	}
}
