package log

import "testing"

// TestExam switches on each seeded bug: a test that does not find it proves
// nothing when it finds nothing.
func TestExam(t *testing.T) {
	for name, c := range map[string]struct {
		bugs Bugs
		find func(Bugs) error
	}{
		"skip sync":      {Bugs{SkipSync: true}, func(b Bugs) error { return crashSweep(b, 1, 1, 10) }},
		"skip dir sync":  {Bugs{SkipDirSync: true}, func(b Bugs) error { return crashSweep(b, 1, 1, 10) }},
		"retry sync":     {Bugs{RetrySync: true}, func(b Bugs) error { return faultSweep(b, 5, 12, faults["lost sync"]) }},
		"skip rewrite":   {Bugs{SkipRewrite: true}, func(b Bugs) error { return faultSweep(b, 5, 12, faults["lost sync"]) }},
		"cut bad middle": {Bugs{CutBadMiddle: true}, func(b Bugs) error { return middle(b, 9973) }},
		"skip mark":      {Bugs{SkipMark: true}, func(b Bugs) error { return generations(b, 1, 1, 30) }},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.find(Bugs{}); err != nil {
				t.Fatalf("without a bug: %v", err)
			}
			if err := c.find(c.bugs); err == nil {
				t.Error("not caught")
			} else {
				t.Logf("caught: %v", err)
			}
		})
	}
}
