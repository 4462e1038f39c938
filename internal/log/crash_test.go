package log

import (
	"fmt"
	"testing"
)

// TestCrashAtEveryOperation is the promise itself, under both sync policies.
func TestCrashAtEveryOperation(t *testing.T) {
	for _, syncEvery := range []int{1, 12} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("sync=%d/seed=%d", syncEvery, seed), func(t *testing.T) {
				if err := crashSweep(Bugs{}, seed, syncEvery, 60); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestManyCrashes lets the marks of many epochs meet in one log.
func TestManyCrashes(t *testing.T) {
	for seed := range uint64(40) {
		if err := generations(Bugs{}, seed, 1+int(seed%3)*6, 25); err != nil {
			t.Error(err)
		}
	}
}
