package raft

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/duemq/duemq/internal/record"
)

// flight is how many proposals may wait for their answer at a time.
const flight = 8

// A proposal is a message that was handed to raft.
type proposal struct {
	node   *node
	marker string
	future raft.ApplyFuture
}

// A load proposes messages, each with a marker in its body that nothing else
// has, and remembers which were acknowledged.
type load struct {
	bell *bell
	rng  *rand.Rand
	pick func() *node // who may be the leader

	quit    chan struct{}
	done    sync.WaitGroup
	waiting chan proposal

	mu       sync.Mutex
	proposed map[string]bool
	acked    map[string]uint64 // marker to index
	credit   int
	endless  bool // no credit is needed
	stamp    int64
}

func newLoad(b *bell, seed uint64) *load {
	return &load{
		bell: b, rng: rand.New(rand.NewPCG(seed, 21)), quit: make(chan struct{}), waiting: make(chan proposal, flight),
		proposed: map[string]bool{}, acked: map[string]uint64{}, stamp: 1 << 40,
	}
}

// any is a size of bodies: mostly small, now and then large, so that segments
// fill in many ways.
func (l *load) any() int {
	if l.rng.IntN(20) == 0 {
		return 4000 + l.rng.IntN(16000)
	}
	return 16 + l.rng.IntN(600)
}

// message makes the entry of one message whose body has about size bytes, or any
// number if that is 0.
func (l *load) message(size int) (marker string, entry raft.Log) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stamp++
	marker = fmt.Sprintf("<body %016x>", l.rng.Uint64())
	l.proposed[marker] = true
	if size == 0 {
		size = l.any()
	}
	body := append([]byte(marker), make([]byte, size)...)
	for i := len(marker); i < len(body); i++ {
		body[i] = byte(l.rng.Uint32())
	}
	m := record.Message{Queue: 1, Stored: l.stamp, Born: l.stamp, Due: l.stamp + 5000, Body: body}
	b := record.Batch{Stamp: l.stamp, Limit: 2000, Data: record.AppendSend(nil, &m)}
	if l.rng.IntN(8) == 0 {
		b.Flags = record.FlagRebase
	}
	entry.Data = appendProposal(nil, &b)
	if n := l.rng.IntN(3); n > 0 {
		entry.Extensions = body[:n*7]
	}
	return marker, entry
}

// allow lets n more messages be proposed.
func (l *load) allow(n int) {
	l.mu.Lock()
	l.credit += n
	l.mu.Unlock()
	l.bell.ring()
}

// free lets any number of messages be proposed, or no longer.
func (l *load) free(endless bool) {
	l.mu.Lock()
	l.endless = endless
	l.mu.Unlock()
	l.bell.ring()
}

// spend takes the credit for one message.
func (l *load) spend() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.endless {
		return true
	}
	if l.credit <= 0 {
		return false
	}
	l.credit--
	return true
}

// load starts a load that runs on whichever node leads.
func (c *cluster) load(seed uint64) *load {
	l := newLoad(c.bell, seed)
	l.pick = func() *node {
		for _, n := range c.alive(false) {
			if n.raft.State() == raft.Leader {
				return n
			}
		}
		return nil
	}
	l.done.Go(l.propose)
	l.done.Go(l.collect)
	return l
}

// propose hands over messages as long as there is credit and a leader.
func (l *load) propose() {
	defer close(l.waiting)
	for {
		rung := l.bell.listen()
		if n := l.pick(); n != nil && l.spend() {
			marker, entry := l.message(0)
			l.waiting <- proposal{n, marker, n.raft.ApplyLog(entry, patience)}
			continue
		}
		select {
		case <-rung:
		case <-l.quit:
			return
		}
	}
}

// collect notes what was acknowledged. A message that was not may be in the log
// all the same; it is not sent again, another one is.
func (l *load) collect() {
	for p := range l.waiting {
		err := p.node.answer(p.future)
		l.mu.Lock()
		if err == nil {
			l.acked[p.marker] = p.future.Index()
		} else if !l.endless {
			l.credit++
		}
		l.mu.Unlock()
		l.bell.ring()
	}
}

// end stops the load and waits for the last answers.
func (l *load) end() {
	close(l.quit)
	l.done.Wait()
}

// count is how many messages were acknowledged.
func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// more lets n messages more be proposed, beside those that may be already, and
// waits until as many more are acknowledged.
func (l *load) more(t *testing.T, n int) {
	t.Helper()
	want := l.count() + n
	l.allow(n)
	l.bell.await(t, fmt.Sprintf("%d acknowledged messages", want), func() bool { return l.count() >= want })
}
