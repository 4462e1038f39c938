package engine

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// TestTooLongSaysHowLong: also where the delay is longer than a Duration holds.
func TestTooLongSaysHowLong(t *testing.T) {
	o := Options{MaxDelay: time.Hour}
	n := instant{ns: testStart.UnixNano(), stamp: testStart.UnixMilli(), o: &o}
	for _, d := range []Delay{
		{DelayAfter, math.MaxInt64}, {DelayAt, math.MaxInt64}, {DelayAfter, (2 * time.Hour).Milliseconds()},
	} {
		_, _, err := n.resolve(d)
		if !errors.Is(err, ErrDelayTooLong) || strings.Contains(err.Error(), "-") || !strings.Contains(err.Error(), "h0m0s (3600000 ms)") {
			t.Errorf("%v: %v; want how long, without a sign, and the limit", d, err)
		}
	}
}
