package crash

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/duemq/duemq/test/crash/history"
)

// controlWork is how long a store without syncs may work before its power is
// cut: long enough to acknowledge hundreds of messages, short enough that the
// kernel writes little by itself.
const controlWork = 300 * time.Millisecond

// control is the proof that the power cuts cut: stores that skip their syncs
// must be found out in most of n cycles.
func (c *campaign) control(n int) {
	c.t.Helper()
	found := 0
	for range n {
		verdict, lost, err := c.blind()
		if err != nil {
			c.t.Fatalf("control: %v", err)
		}
		if lost {
			found++
		}
		c.t.Logf("control %d: %s", c.lives, verdict)
	}
	c.t.Logf("control: a store without syncs was found out in %d of %d power cuts", found, n)
	if 2*found <= n {
		c.t.Errorf("a store without syncs was found out in %d of %d power cuts only: the cuts do not cut", found, n)
	}
}

// blind is a life of one cycle without syncs. lost says that acknowledged work
// was gone, or that the store saw it and refused to open.
func (c *campaign) blind() (verdict string, lost bool, err error) {
	bug := c.bug
	c.bug = "skip-sync"
	defer func() { c.bug = bug }()
	l, err := c.newLife()
	if err == nil {
		err = l.kill(true, controlWork)
	}
	if err != nil {
		return "", false, err
	}
	refused := l.last()
	if err := l.close(); err != nil {
		return "", false, err
	}
	report := history.Check(l.events, history.Options{Groups: groups()})
	if err := firstError(os.RemoveAll(l.store), os.Remove(l.file.Name())); err != nil {
		return "", false, err
	}
	switch {
	case refused != nil:
		why, _, _ := strings.Cut(strings.ReplaceAll(refused.Error(), "wrote:\n", ""), "\n")
		return fmt.Sprintf("%d acknowledged, and then: %s", report.Acked, why), report.Acked > 0, nil
	case report.Breaks(history.NothingLost):
		return fmt.Sprintf("%d acknowledged: %d violations, the first: %v", report.Acked, report.Broken, report.Violations[0]), true, nil
	default:
		return fmt.Sprintf("%d acknowledged, nothing found: %v", report.Acked, report), false, nil
	}
}
