package engine

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

// TestBytesWritten counts what a message costs the disk from sending to
// acknowledgement, the index included: its body is written once, and all that is
// written stays below 1.35 bytes a byte of 256 B bodies.
func TestBytesWritten(t *testing.T) {
	for name, d := range map[string]Delay{"level": {DelayLevel, 1}, "any time": {DelayAfter, 1234}} {
		t.Run(name, func(t *testing.T) {
			base := fs.NewMem()
			disk := fs.NewFaulty(base)
			c := clock.NewFake(testStart)
			o := options(disk, c)
			o.SegmentBytes = 4 << 20
			e := open(t, o)
			tp := topic(t, e, "t", 8)
			g, err := e.MakeGroup(t.Context(), record.Group{Name: "g", Start: record.StartEarliest})
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Cut(); err != nil {
				t.Fatal(err)
			}
			disk.Record()
			const n, batch, size = 8000, 200, 256
			rng := rand.New(rand.NewPCG(1, 1))
			var marks [][]byte
			for range n / batch {
				sends := make([]Send, batch)
				for i := range sends {
					body := make([]byte, size)
					for k := range body {
						body[k] = byte(rng.Uint32())
					}
					if i == 0 {
						marks = append(marks, body)
					}
					sends[i] = Send{Message: record.Message{Body: body}, Topic: tp.Number, Turn: tp, Delay: d}
				}
				if err := e.Send(t.Context(), sends); err != nil {
					t.Fatal(err)
				}
			}
			c.Advance(2 * time.Second)
			settle(t, e)
			var acks []record.Ack
			for i := range tp.Queues {
				q := tp.FirstQueue + record.QueueNumber(i)
				_, next, err := e.Bounds(q)
				if err != nil || next != n/8 {
					t.Fatalf("queue %d ends at %d, %v", q, next, err)
				}
				acks = append(acks, record.Ack{Group: g.Number, Queue: q, Ranges: []record.OffsetRange{{From: 0, To: next}}})
			}
			if err := e.Ack(t.Context(), acks); err != nil {
				t.Fatal(err)
			}
			if err := e.Cut(); err != nil {
				t.Fatal(err)
			}
			written := 0
			for _, op := range disk.Recorded() {
				if op.Kind == fs.OpWrite {
					written += int(op.Size)
				}
			}
			if got := float64(written) / (n * size); got > 1.35 {
				t.Errorf("%.3f bytes written a byte of body, limit 1.35", got)
			}
			for _, mark := range marks {
				if got := occurrences(t, base, mark); got != 1 {
					t.Fatalf("a body is on the disk %d times", got)
				}
			}
		})
	}
}

// occurrences counts a byte string in all files of the store.
func occurrences(t *testing.T, disk fs.FS, mark []byte) (n int) {
	t.Helper()
	for _, dir := range []string{"data/log", "data/index/tables"} {
		names, err := disk.List(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if !strings.Contains(name, ".") {
				continue
			}
			f, err := disk.Open(fmt.Sprintf("%s/%s", dir, name))
			if err != nil {
				t.Fatal(err)
			}
			info, err := f.Stat()
			if err != nil {
				t.Fatal(err)
			}
			data := make([]byte, info.Size())
			if len(data) > 0 {
				if _, err := f.ReadAt(data, 0); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			n += bytes.Count(data, mark)
		}
	}
	return n
}
