package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/fs"
)

// TestEnginesInSeveralBubbles opens one engine after the other in bubbles of
// their own, on the bubble's clock: nothing of one may reach the next, and
// nothing may run on when it is closed.
func TestEnginesInSeveralBubbles(t *testing.T) {
	for range 3 {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Until(testStart)) // the bubble begins before 2020, which no engine believes
			e, err := Open(t.Context(), options(fs.NewMem(), clock.Real()))
			if err != nil {
				t.Fatalf("Open: %v", err)
			}
			tp := topic(t, e, "orders", 1)
			s := send(t, e, tp, "later", Delay{Kind: DelayAfter, Value: (30 * time.Minute).Milliseconds()})
			time.Sleep(30*time.Minute - time.Millisecond)
			synctest.Wait()
			if got := visible(t, e, tp); len(got) != 0 {
				t.Errorf("1 ms before its due: visible %v", got)
			}
			time.Sleep(time.Millisecond)
			synctest.Wait()
			if got := visible(t, e, tp); len(got) != 1 || got[0] != "later +0" {
				t.Errorf("at its due %d: visible %v, want it, 0 ms late", s.Due, got)
			}
			if err := e.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
}
