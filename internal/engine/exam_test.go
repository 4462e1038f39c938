package engine

import (
	"syscall"
	"testing"

	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/log"
)

// sweep runs the tests of this package that look for faults, with a seeded one,
// and gives the first complaint.
func sweep(bugs Bugs) error {
	for seed := uint64(1); seed <= 3; seed++ {
		if err := crashAtEvery(seed, 3, bugs); err != nil {
			return err
		}
		if err := flip(seed, bugs); err != nil {
			return err
		}
		fault := fs.Fault{Err: syscall.EIO, Lose: true, Match: func(op fs.Op) bool { return op.Kind == fs.OpSync }}
		for n := 1; ; n++ {
			done, err := failAt(seed, n, fault, bugs)
			if err != nil {
				return err
			}
			if done {
				break
			}
		}
	}
	return nil
}

// TestExam is the harness's own exam: each seeded bug has to be caught, and
// without one there is nothing to catch.
func TestExam(t *testing.T) {
	bugs := map[string]Bugs{
		"skip fsync":                            {Log: log.Bugs{SkipSync: true}},
		"skip directory sync of the log":        {Log: log.Bugs{SkipDirSync: true}},
		"skip directory sync of the index":      {Index: index.Bugs{SkipDirSync: true}},
		"skip sync of a cut's tables":           {Index: index.Bugs{SkipTableSync: true}},
		"retry a failed fsync":                  {Log: log.Bugs{RetrySync: true}},
		"cut at a bad middle":                   {Log: log.Bugs{CutBadMiddle: true}},
		"floor instead of ceil on due":          {FloorDue: true},
		"applied index saved ahead of its data": {Index: index.Bugs{AppliedAhead: SpaceState}},
		"tick visible before it is durable":     {EarlyTick: true},
	}
	if err := sweep(Bugs{}); err != nil {
		t.Fatalf("without a bug: %v", err)
	}
	for name, b := range bugs {
		t.Run(name, func(t *testing.T) {
			err := sweep(b)
			if err == nil {
				t.Fatal("not caught")
			}
			t.Log(err)
		})
	}
}

// TestStewardExam seeds faults of what is kept, each of which has to be caught.
func TestStewardExam(t *testing.T) {
	for name, b := range map[string]Bugs{
		"carry leaves moved messages behind":            {CarryLosesMoved: true},
		"segments removed before the cut is durable":    {RemoveEarly: true},
		"a repeat under an idempotency key files again": {RepeatFiles: true},
		"skip fsync":                            {Log: log.Bugs{SkipSync: true}},
		"applied index saved ahead of its data": {Index: index.Bugs{AppliedAhead: SpaceState}},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed <= 4; seed++ {
				if err := stewardCrashes(seed, 5, b); err != nil {
					t.Log(err)
					return
				}
			}
			t.Fatal("not caught")
		})
	}
}
