package engine

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

// TestVisibleIsDurable has something fall due while a tick is on its way to the
// disk, and an acknowledgement come in between, which nobody waits to see
// synced. Its batch must not make the message visible: a power cut would take
// that back.
func TestVisibleIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(testStart)) // the bubble begins before 2020, which no engine believes
		disk := fs.NewFaulty(fs.NewMem())
		e := open(t, options(disk, clock.Real()))
		tp := topic(t, e, "t", 1)
		g, err := e.MakeGroup(t.Context(), record.Group{Name: "g"})
		if err != nil {
			t.Fatal(err)
		}
		send(t, e, tp, "now", Delay{})
		send(t, e, tp, "first", Delay{Kind: DelayAfter, Value: 10})
		send(t, e, tp, "second", Delay{Kind: DelayAfter, Value: 12})

		gate := make(chan struct{})
		var held atomic.Bool
		disk.Hooks(func(op fs.Op) {
			if op.Kind == fs.OpSync && strings.HasSuffix(op.Path, ".seg") && held.CompareAndSwap(false, true) {
				<-gate
			}
		}, nil)
		time.Sleep(15 * time.Millisecond)
		if !held.Load() {
			t.Fatal("the tick of the first message is not being synced")
		}
		acked := make(chan error, 1)
		go func() {
			acked <- e.Ack(t.Context(), []record.Ack{{Group: g.Number, Queue: tp.FirstQueue, Ranges: []record.OffsetRange{{From: 0, To: 1}}}})
		}()
		synctest.Wait() // the acknowledgement stands behind the tick
		close(gate)
		synctest.Wait()
		if err := <-acked; err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(visible(t, e, tp)); got != "[now +0 first +0 second +3]" {
			t.Errorf("visible: %v", got)
		}
		if end, synced := e.log.End().Position, e.log.Synced(); synced < end {
			t.Errorf("visible, and the log is synced up to %d of %d only", synced, end)
		}
	})
}
