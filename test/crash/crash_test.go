// Package crash kills real processes and cuts real power: a store runs under
// load in a process of its own, which writes down what it asked and what it was
// answered, and dies by SIGKILL at a random moment; the next process opens the
// same folder. The whole history is then held to the promises by package
// history. docs/testing.md says what that can show and what it cannot.
package crash

import (
	"flag"
	"os"
	"testing"
)

// How much is tried. With -cycles at its default the tests take seconds.
var (
	cyclesFlag = flag.Int("cycles", 3, "how often to kill or cut")
	lifeFlag   = flag.Int("life", 25, "cycles until a fresh store, so that recovery times stay comparable")
	seedFlag   = flag.Uint64("seed", 0, "seed of what is drawn; 0 draws one and says which")
	bugFlag    = flag.String("bug", "", "seeded bug to switch on, to see whether it is found; see bugs in worker_test.go")
)

// workerEnv makes this binary a worker: its value is a spec.
const workerEnv = "DUEMQ_CRASH_WORKER"

func TestMain(m *testing.M) {
	if s := os.Getenv(workerEnv); s != "" {
		os.Exit(work(s))
	}
	os.Exit(m.Run())
}
