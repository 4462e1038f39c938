package log

import (
	"flag"
	"fmt"
	"testing"
)

var (
	seeds = flag.Uint64("seeds", 2, "random histories of each test that draws them")
	seed0 = flag.Uint64("seed", 0, "the first of their seeds")
)

// eachSeed runs fn for every seed and says how to run one that failed again.
func eachSeed(t *testing.T, times uint64, fn func(seed uint64) error) {
	t.Helper()
	for seed := *seed0; seed < *seed0+*seeds*times; seed++ {
		if err := fn(seed); err != nil {
			t.Errorf("%v\nagain: go test ./internal/log -run '^%s$' -seeds=1 -seed=%d", err, t.Name(), seed)
		}
	}
}

// TestCrashAtEveryOperation is the promise itself, under both sync policies.
func TestCrashAtEveryOperation(t *testing.T) {
	for _, syncEvery := range []int{1, 12} {
		t.Run(fmt.Sprintf("sync every %d", syncEvery), func(t *testing.T) {
			eachSeed(t, 1, func(seed uint64) error { return crashSweep(Bugs{}, seed, syncEvery, 25) })
		})
	}
}

// TestManyCrashes lets the marks of many epochs meet in one log.
func TestManyCrashes(t *testing.T) {
	eachSeed(t, 10, func(seed uint64) error { return generations(Bugs{}, seed, 1+int(seed%3)*6, 25) })
}
