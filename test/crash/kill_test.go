package crash

import "testing"

// TestKill kills processes with SIGKILL, -cycles times. The page cache outlives
// a process, so this proves recovery and not durability; see TestPower.
func TestKill(t *testing.T) {
	newCampaign(t, "TestKill").run(*cyclesFlag, *lifeFlag)
}
