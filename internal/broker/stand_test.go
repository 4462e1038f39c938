package broker

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/queue"
	"github.com/duemq/duemq/internal/record"
)

// standStart is a full day, so that minutes and buckets are easy to name.
var standStart = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

// A stand is a broker on a disk in memory and on a clock that the test moves.
type stand struct {
	t     *testing.T
	mem   *vfs.MemFS
	disk  *fs.Faulty
	clock *clock.Fake
	b     *Broker
}

func newStand(t *testing.T) *stand {
	t.Helper()
	s := &stand{t: t, clock: clock.NewFake(standStart)}
	s.open(fs.NewMem())
	t.Cleanup(func() { s.b.Close() })
	return s
}

func (s *stand) open(mem *vfs.MemFS) {
	s.t.Helper()
	s.mem, s.disk = mem, fs.NewFaulty(mem)
	b, err := Open(s.t.Context(), Options{Queues: 1, Engine: engine.Options{
		FS: s.disk, Dir: "data", Clock: s.clock, Rand: strings.NewReader("sixteen bytes id"),
		SegmentBytes: 256 << 10, CacheBytes: 1 << 20,
	}})
	if err != nil {
		s.t.Fatalf("Open: %v", err)
	}
	s.b = b
}

// reopen closes the store and opens it again.
func (s *stand) reopen() {
	s.t.Helper()
	if err := s.b.Close(); err != nil {
		s.t.Fatalf("Close: %v", err)
	}
	s.open(s.mem)
}

// crash goes on with the disk as a power cut now leaves it.
func (s *stand) crash() {
	s.t.Helper()
	clone, err := s.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 30, RNG: rand.New(rand.NewPCG(1, 2))})
	if err != nil {
		s.t.Fatal(err)
	}
	s.b.Close()
	s.open(clone)
}

// now is the clock, Unix ms.
func (s *stand) now() int64 { return s.clock.Now().Time().UnixMilli() }

func (s *stand) step(d time.Duration) {
	s.t.Helper()
	s.clock.Advance(d)
	if err := s.b.Settle(s.t.Context()); err != nil {
		s.t.Fatalf("Settle: %v", err)
	}
}

func (s *stand) send(msgs ...Message) []Receipt {
	s.t.Helper()
	receipts, err := s.b.Send(s.t.Context(), msgs)
	if err != nil {
		s.t.Fatalf("Send: %v", err)
	}
	for i, r := range receipts {
		if r.Err != nil {
			s.t.Fatalf("Send, message %d: %v", i, r.Err)
		}
	}
	return receipts
}

// visible gives the bodies of what is visible in a topic, queue by queue.
func (s *stand) visible(topic string) []string {
	s.t.Helper()
	tp := s.b.e.TopicNamed(topic)
	if tp == nil {
		return nil
	}
	var bodies []string
	for i := range tp.Queues {
		q := tp.First() + record.QueueNumber(i)
		from, next, err := s.b.e.Bounds(q)
		var entries []queue.Entry
		for err == nil && from+record.Offset(len(entries)) < next {
			entries, err = s.b.e.Entries(entries, q, from+record.Offset(len(entries)), 1000)
		}
		if err != nil {
			s.t.Fatalf("read queue %d: %v", q, err)
		}
		s.b.e.Messages(entries, func(_ int, m *record.Message, err error) {
			if err != nil {
				s.t.Fatalf("read message: %v", err)
			}
			bodies = append(bodies, string(m.Body))
		})
	}
	return bodies
}

func (s *stand) wantVisible(topic string, want ...string) {
	s.t.Helper()
	if got := s.visible(topic); !slices.Equal(got, want) {
		s.t.Errorf("visible in %s: %q, want %q", topic, got, want)
	}
}

// pending gives everything that a filter selects, page by page.
func (s *stand) pending(f Filter) []View {
	s.t.Helper()
	var all []View
	for cursor := ""; ; {
		page, err := s.b.Pending(s.t.Context(), f, cursor, 700)
		if err != nil {
			s.t.Fatalf("Pending %+v: %v", f, err)
		}
		all = append(all, page.Messages...)
		if cursor = page.Cursor; cursor == "" {
			return all
		}
	}
}

// keysOf gives the keys of messages.
func keysOf(views []View) []string {
	keys := make([]string, len(views))
	for i, v := range views {
		keys[i] = v.Key
	}
	return keys
}

// finish waits for an operation and wants it done, with nothing missed.
func (s *stand) finish(id string, done uint64) Operation {
	s.t.Helper()
	op, err := s.b.WaitOperation(s.t.Context(), id)
	if err != nil || op.State != OperationDone || op.Done != done || op.Missed != 0 || op.Error != "" {
		s.t.Fatalf("operation %+v, %v; want it done with %d and none missed", op, err, done)
	}
	return op
}

func after(d time.Duration) Delay { return Delay{Kind: DelayAfter, Value: d.Milliseconds()} }

// numbered makes n messages of a topic, with keys and bodies 0, 1, 2 ...
func numbered(topic string, n int, delay func(i int) Delay) []Message {
	msgs := make([]Message, n)
	for i := range msgs {
		name := strconv.Itoa(i)
		msgs[i] = Message{Topic: topic, Key: name, Body: []byte(name), Delay: delay(i)}
	}
	return msgs
}
