//go:build linux && power

package crash

import "testing"

// TestPower cuts the power, -cycles times, and then shows that it would have
// found a loss: the same with a store that does not sync must lose messages in
// most cycles, or else the harness is blind and fails. It needs root.
func TestPower(t *testing.T) {
	d := newDisk(t)
	c := newCampaign(t, "TestPower")
	c.tags, c.place, c.cut = "-tags power ", d.mount, d.cut
	c.run(*cyclesFlag, min(*lifeFlag, 10))
	if t.Failed() {
		return
	}
	c.control(max(3, *cyclesFlag/8))
}
