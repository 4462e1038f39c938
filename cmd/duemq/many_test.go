//go:build unix

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// What case G14 allows.
const (
	manyWaiting  = 1_000_000
	manyTopics   = 8
	manyBatch    = 4_000 // messages of a request
	manyMemory   = 150   // MiB of the server at its largest
	manyLateness = 200 * time.Millisecond
)

// TestCaseManyWaiting is case G14: a million messages that wait for an hour on eight
// topics, a tenth of that with -short, and then 100 of 3 s on another topic. These
// are received on time, none early, and the latest but one of them not 200 ms later
// than of 100 before the million. The server's memory stays below 150 MiB.
//
// It is not parallel to the other cases, which would measure how fast it sends.
func TestCaseManyWaiting(t *testing.T) {
	s := serve(t, t.TempDir())
	before := probe(t, s)
	n := manyWaiting
	if testing.Short() {
		n /= 10
	}
	began := time.Now()
	fill(t, s, n)
	t.Logf("%d sent in %v", n, time.Since(began))
	// A busy machine may be late for once. What waiting messages cost they cost
	// each time.
	var after time.Duration
	for range 3 {
		if after = probe(t, s); after <= before+manyLateness {
			break
		}
		t.Logf("p99 of %v late, try again", after)
	}
	if after > before+manyLateness {
		t.Errorf("p99 of %v late beside %d that wait, %v beside none; want %v more at most", after, n, before, manyLateness)
	}
	t.Logf("p99 of %v late beside %d that wait, %v beside none", after, n, before)
	if out := s.must("pending", "count"); out != strconv.Itoa(n)+"\n" {
		t.Errorf("%s wait, want %d", out, n)
	}
	s.smallerThan(manyMemory)
}

// fill sends messages of an hour, as lines that are the same in each request.
func fill(t *testing.T, s *server, n int) {
	t.Helper()
	var body bytes.Buffer
	for i := range manyBatch {
		fmt.Fprintf(&body, `{"topic":"far-%d","deliverAfter":"1h","key":"order-%d","text":"a reminder of an hour"}`+"\n", i%manyTopics, i)
	}
	for range n / manyBatch {
		status, answer := post(t, s.url+"/v1/batch", linesType, body.Bytes())
		if status != http.StatusOK || !bytes.Contains(answer[:min(len(answer), 100)], fmt.Appendf(nil, `"accepted":%d,"refused":0`, manyBatch)) {
			t.Fatalf("%d %.200s", status, answer)
		}
	}
}

// probe sends 100 messages of 3 s one after the other and receives them. Each comes
// once and on time. It gives how late the latest but one was received.
func probe(t *testing.T, s *server) time.Duration {
	t.Helper()
	r := newTrial(t, s)
	due := make(map[string]time.Time)
	for range 100 {
		receipt, err := r.c.Publish(t.Context(), wire.Send{Topic: "orders", After: "3s"})
		if err != nil || receipt.State != wire.StateWaiting {
			t.Fatalf("%+v, %v", receipt, err)
		}
		due[receipt.ID] = receipt.DeliverAt.Time()
	}
	var late []time.Duration
	for end := time.Now().Add(3*time.Second + punctual); len(due) > 0; {
		got, err := r.c.Receive(t.Context(), "orders", wire.Receive{Group: "g", Max: 100, Wait: wire.Duration(max(0, time.Until(end)))})
		now := time.Now()
		if err != nil || len(got) == 0 {
			t.Fatalf("%d did not come, %v", len(due), err)
		}
		for i := range got {
			want, ok := due[got[i].ID]
			delete(due, got[i].ID)
			after := now.Sub(want)
			if !ok || after < 0 || after > punctual || got[i].VisibleAt.Time().Before(want) {
				t.Errorf("%+v received %v after its due %v", got[i], after, want)
			}
			late = append(late, after)
			if err := r.c.Ack(t.Context(), got[i].Lease); err != nil {
				t.Fatal(err)
			}
		}
	}
	slices.Sort(late)
	return late[len(late)*99/100-1]
}

// smallerThan looks at how much memory the server had at most so far, where the
// system tells.
func (s *server) smallerThan(mib int) {
	s.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		s.t.Logf("nobody says how large the server is: %v", err)
		return
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Logf("the server had %d MiB of memory at most", kib>>10)
	if kib>>10 >= mib {
		s.t.Errorf("%d MiB of memory, want less than %d", kib>>10, mib)
	}
}
