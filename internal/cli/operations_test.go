package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/clock"
)

// slowOperation is a server whose one operation takes a while: each question
// after it finds it a step further, and the clock a second later.
func slowOperation(t *testing.T, c *clock.Fake, steps []string) *httptest.Server {
	t.Helper()
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.Advance(time.Second)
		i := min(asked.Add(1)-1, int64(len(steps)-1))
		if _, err := w.Write([]byte(steps[i])); err != nil {
			t.Errorf("%s: %v", r.URL, err)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// TestOperationBar draws a bar while an operation runs, and takes it away.
func TestOperationBar(t *testing.T) {
	c := clock.NewFake(testStart)
	s := slowOperation(t, c, []string{
		`{"id":"op-1","kind":"spread","state":"running","matched":"100","done":"0","missed":"0"}`,
		`{"id":"op-1","kind":"spread","state":"running","matched":"100","done":"40","missed":"10"}`,
		`{"id":"op-1","kind":"spread","state":"done","matched":"100","done":"90","missed":"10"}`,
	})
	a, out := onTerminal(c)
	a.Args = []string{"duemq", "op", "wait", "op-1", "--server", s.URL}
	if code := a.report(a.run(t.Context())); code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	got := out.String()
	for _, want := range []string{"op-1 [████████████············]  50%  50 of 100", "\r\x1b[Kspread 90 messages; 10 did not wait any more (op-1)\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
}

// TestOperationStopped has another exit code, and says why.
func TestOperationStopped(t *testing.T) {
	c := clock.NewFake(testStart)
	s := slowOperation(t, c, []string{`{"id":"op-1","kind":"cancel","state":"stopped","done":"3","matched":"0","missed":"0","error":"disk full"}`})
	a, out := onTerminal(c)
	a.Args = []string{"duemq", "op", "wait", "op-1", "--server", s.URL, "-o", "jsonl"}
	if code := a.report(a.run(t.Context())); code != exitPartial || !strings.Contains(out.String(), "disk full") || strings.Contains(out.String(), "█") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// TestOperationInterrupted leaves the operation alone and says how to find it.
func TestOperationInterrupted(t *testing.T) {
	c := clock.NewFake(testStart)
	s := slowOperation(t, c, []string{`{"id":"op-1","kind":"cancel","state":"running","done":"3","matched":"0","missed":"0"}`})
	a, out := onTerminal(c)
	a.Args = []string{"duemq", "op", "wait", "op-1", "--server", s.URL}
	ctx, stop := contextWithStop(t)
	ended := make(chan int, 1)
	go func() { ended <- a.report(a.run(ctx)) }()
	out.await(t, `op-1 3`)
	stop()
	if code := <-ended; code != exitInterrupted || !strings.Contains(out.String(), "op stop op-1 --server "+s.URL) {
		t.Errorf("exit %d: %s", code, out)
	}
}
