package engine

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

// A journal is a logger's output that may be read while it is written.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// waitingHundred sends 100 messages in batches of ten, the n-th due in n hours,
// and fills the segment up behind them.
func waitingHundred(t *testing.T, e *Engine, tp *Topic) (sends []Send) {
	t.Helper()
	for i := 0; i < 100; i += 10 {
		ten := make([]Send, 10)
		for k := range ten {
			body := fmt.Sprintf("message %02d %s", i+k, strings.Repeat("y", 150))
			ten[k] = Send{Message: record.Message{Body: []byte(body)}, Topic: tp.Number, To: tp.FirstQueue, Delay: Delay{DelayAfter, int64(i+k+1) * hourMs}}
		}
		if err := e.Send(t.Context(), ten); err != nil {
			t.Fatal(err)
		}
		sends = append(sends, ten...)
	}
	sendMany(t, e, tp, 0, 100) // the segment is full
	return sends
}

// damageBody flips a bit in the body of a message where it lies in the log.
func damageBody(t *testing.T, disk *vfs.MemFS, id record.ID, body []byte) {
	t.Helper()
	name := fmt.Sprintf("data/log/%020d.seg", uint64(id)&^(64<<10-1))
	data, err := disk.UnsafeGetFileDataBuffer(name)
	if err != nil {
		t.Fatal(err)
	}
	at := int(uint64(id) % (64 << 10))
	in := bytes.Index(data[at:], body)
	if in < 0 {
		t.Fatalf("message %v is not in %s", id, name)
	}
	data[at+in+len(body)/2] ^= 1 << 3
}

// arrivals reads what becomes visible hour by hour, and gives the errors.
func arrivals(t *testing.T, e *Engine, c *clock.Fake, tp *Topic, sends []Send) (failed map[record.ID]error) {
	t.Helper()
	failed = make(map[record.ID]error)
	_, at, err := e.Bounds(tp.FirstQueue)
	if err != nil {
		t.Fatal(err)
	}
	for i := range sends {
		c.Advance(time.Duration(sends[i].Due-e.Now()-1) * time.Millisecond)
		settle(t, e)
		if _, next, _ := e.Bounds(tp.FirstQueue); next != at {
			t.Fatalf("message %d is early", i)
		}
		c.Advance(time.Millisecond)
		settle(t, e)
		entries, err := e.Entries(nil, tp.FirstQueue, at, 10)
		if err != nil || len(entries) != 1 || entries[0].ID != sends[i].ID || entries[0].VisibleAt != sends[i].Due {
			t.Fatalf("hour %d: %+v, %v; want message %v at %d", i+1, entries, err, sends[i].ID, sends[i].Due)
		}
		at++
		e.Messages(entries, func(_ int, m *record.Message, err error) {
			if err == nil && !bytes.Equal(m.Body, sends[i].Message.Body) {
				t.Errorf("message %v comes changed: %q", sends[i].ID, m.Body)
			}
			if err != nil {
				failed[sends[i].ID] = err
			}
		})
		keepUp(t, e)
	}
	return failed
}

// TestDamagedWaitingMessage damages one of 100 waiting messages on the disk. If
// that happens before they are carried, 99 come on time and one is reported, and
// its segment stays; afterwards the copy is what is read, and all come.
func TestDamagedWaitingMessage(t *testing.T) {
	for _, before := range []bool{true, false} {
		t.Run(fmt.Sprint("before the carry ", before), func(t *testing.T) {
			disk := fs.NewMem()
			c := clock.NewFake(testStart)
			var said journal
			o := small(disk, c)
			o.Retention = Retention{Time: 5 * time.Hour, CarryAfter: time.Minute}
			o.Logger = slog.New(slog.NewTextHandler(&said, nil))
			e := open(t, o)
			tp := topic(t, e, "t", 1)
			sends := waitingHundred(t, e, tp)
			victim := &sends[57]
			if before {
				damageBody(t, disk, victim.ID, victim.Message.Body)
			}
			c.Advance(2 * time.Minute)
			settle(t, e)
			keepUp(t, e)
			if !before {
				damageBody(t, disk, victim.ID, victim.Message.Body)
			}
			mustClose(t, e)
			damaged := e.stats.damaged.Load()
			reported := strings.Count(said.String(), "waiting message is damaged")
			e = open(t, o)
			failed := arrivals(t, e, c, tp, sends)
			if !before {
				if len(failed) != 0 || damaged != 0 || e.Stats().LogFirst == 0 {
					t.Errorf("failed %v, %d damaged; the log is kept from %d on", failed, damaged, e.Stats().LogFirst)
				}
				return
			}
			if len(failed) != 1 || !errors.Is(failed[victim.ID], record.ErrCorrupt) || damaged != 1 || reported != 1 {
				t.Errorf("failed %v; %d damaged, reported %d times: %s", failed, damaged, reported, said.String())
			}
			if first := e.Stats().LogFirst; first != 0 || e.m.keep.from() == 0 {
				t.Errorf("the log is kept from %d on, needed from %d on, and the damaged segment is the first", first, e.m.keep.from())
			}
			for range 5 { // longer than anything waits
				c.Advance(123 * 24 * time.Hour)
				sendMany(t, e, tp, 0, 100)
				keepUp(t, e)
			}
			for range 100 { // the writer removes it beside everything else
				settle(t, e)
			}
			if first := e.Stats().LogFirst; first == 0 {
				t.Error("a damaged segment is kept for ever")
			}
		})
	}
}
