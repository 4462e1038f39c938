package engine

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

// TestEndedTopicStaysEnded changes topics while they are deleted: a change that
// comes too late must not bring a topic back under numbers that have ended.
func TestEndedTopicStaysEnded(t *testing.T) {
	e := open(t, options(fs.NewMem(), clock.NewFake(testStart)))
	ctx := t.Context()
	var mu sync.Mutex
	var now *Topic
	get := func() *Topic {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	now = topic(t, e, "t", 2)
	stop, done := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for stop.Err() == nil {
				err := e.Configure(ctx, get(), []record.Property{{Name: RateAttribute, Value: "7"}})
				if err != nil && !errors.Is(err, ErrGone) {
					t.Errorf("Configure: %v", err)
					return
				}
			}
		})
	}
	for range 200 {
		if err := e.EndTopic(ctx, get(), false); err != nil {
			t.Fatal(err)
		}
		if back := e.TopicNamed("t"); back != nil {
			t.Fatalf("topic %d is there again after its end", back.Number)
		}
		made := topic(t, e, "t", 2)
		mu.Lock()
		now = made
		mu.Unlock()
	}
	done()
	wg.Wait()
	if err := e.Cut(); err != nil {
		t.Fatal(err)
	}
}
