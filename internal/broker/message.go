package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/group"
	"github.com/duemq/duemq/internal/record"
	"github.com/duemq/duemq/internal/timeline"
)

// A State is where a message is.
type State string

// The states of a message.
const (
	StateWaiting   State = "waiting"   // for its due
	StatePaused    State = "paused"    // due, and held back by its topic: paused, or its rate is used up
	StateHalf      State = "half"      // for its transaction to end
	StateReady     State = "ready"     // visible
	StateInflight  State = "inflight"  // leased by a group
	StateRetrying  State = "retrying"  // given back by a group, for its back-off
	StateAcked     State = "acked"     // finished by every group that began on its queue
	StateDead      State = "dead"      // a dead letter that nobody has redriven or purged
	StateCancelled State = "cancelled" // taken away while it waited
	StateUnknown   State = "unknown"   // known by its record only; its entry was not found
)

// A View is a message as users see it.
type View struct {
	ID         record.ID
	Topic      string
	Queue      int
	Offset     record.Offset
	HasOffset  bool
	Key        string
	Tag        string
	Properties []record.Property
	Body       []byte
	Born       int64 // Unix ms, the producer's clock
	Stored     int64 // Unix ms
	Due        int64 // Unix ms; 0 if it was not delayed
	Level      int
	VisibleAt  int64 // Unix ms; 0 while it waits
	Attempt    int
	Handle     string
	State      State

	NextAttempt int64     // Unix ms: when a message that was given back may be received again
	Group       string    // the one group whose message this is: of a retry or a dead letter
	Origin      record.ID // the message that it was at first, of a retry or a dead letter
	OriginTopic string    // and that one's topic
	Reason      string    // why it is a dead letter
}

// Lateness is how long after its due the message became visible.
func (v *View) Lateness() time.Duration {
	if v.Due == 0 || v.VisibleAt == 0 {
		return 0
	}
	return time.Duration(v.VisibleAt-v.Due) * time.Millisecond
}

// view makes a view of a record. Body and properties are the record's.
func (b *Broker) view(t *engine.Topic, q record.QueueNumber, m *record.Message, id record.ID) (v View) {
	v.fill(t.Name, queueOf(t, q), m, id)
	v.Body = m.Body
	if group, topic, ok := parseRetry(t.Name); ok {
		v.Topic, v.Group, v.OriginTopic, v.Attempt = topic, group, topic, attemptsBefore(m)
	} else if group, ok := strings.CutPrefix(t.Name, deadPrefix); ok {
		v.Group, v.Attempt = group, attemptsBefore(m)
	}
	return v
}

// fill takes over what a record says, but for its body.
func (v *View) fill(topic string, queue int, m *record.Message, id record.ID) {
	v.ID, v.Topic, v.Queue, v.Key, v.Tag = id, topic, queue, m.Key, m.Tag
	v.Properties = slices.Clone(m.Properties)
	v.Born, v.Stored, v.Due, v.Level = m.Born, m.Stored, m.Due, int(m.Level)
	if len(m.Extensions) > 0 {
		v.Origin = originOf(m)
		v.OriginTopic, v.Reason = string(extension(m, record.ExtTopic)), string(extension(m, record.ExtReason))
	}
}

// queueOf is a queue's number within its topic; 0 for one of before a purge,
// whose messages are no more.
func queueOf(t *engine.Topic, q record.QueueNumber) int {
	if n := q - t.First(); n < record.QueueNumber(t.Queues) {
		return int(n)
	}
	return 0
}

// Message looks at a message by its id or handle.
func (b *Broker) Message(_ context.Context, reference string) (View, error) {
	m, r, t, err := b.find(reference)
	if err != nil {
		return View{}, err
	}
	v := b.view(t, r.Queue, &m, r.ID)
	if _, half := b.e.Half(r.ID); half {
		v.Due, v.Level, v.State = 0, 0, StateHalf
		return v, nil
	}
	s, err := b.e.Standing(r)
	if err != nil {
		return v, err
	}
	now := s.Ref
	if now.Due != 0 {
		v.Due = now.Due
	}
	switch s.Verdict {
	case timeline.Done:
		v.State, v.Handle = waitingState(s.Held), b.handle(t.Name, v.Due, r.ID)
	case timeline.AlreadyCancelled:
		v.State = StateCancelled
	case timeline.NotWaiting:
		err = b.locate(&v, r.Queue, now.Due, m.Stored)
	}
	return v, err
}

// find reads the message that a reference names.
func (b *Broker) find(reference string) (record.Message, record.Ref, *engine.Topic, error) {
	id, err := ParseReference(reference)
	if err != nil {
		return record.Message{}, record.Ref{}, nil, err
	}
	m, r, err := b.e.Find(id)
	if errors.Is(err, engine.ErrNotFound) {
		return m, r, nil, fmt.Errorf("%w: %v: never sent here, or older than what is kept", ErrUnknown, id)
	}
	if err != nil {
		return m, r, nil, err
	}
	t, _ := b.e.TopicOf(r.Queue)
	if t == nil {
		return m, r, nil, fmt.Errorf("%w: %v: its topic was deleted", ErrUnknown, id)
	}
	return m, r, t, nil
}

// locate finds a visible message in its queue and how the groups stand with it.
func (b *Broker) locate(v *View, q record.QueueNumber, due, stored int64) error {
	if due == 0 {
		due = stored
	}
	entry, offset, ok, err := b.e.Delivered(q, due, v.ID)
	if err != nil {
		return err
	}
	if !ok {
		v.State = StateUnknown
		return nil
	}
	v.Offset, v.HasOffset, v.VisibleAt, v.State = offset, true, entry.VisibleAt, StateReady
	t, _ := b.e.TopicOf(q)
	if t == nil {
		return nil
	}
	if strings.HasPrefix(t.Name, deadPrefix) {
		return b.locateDead(v, q)
	}
	return b.locateGroups(v, q)
}

// locateGroups tells how the groups that began in its queue stand with a visible
// message.
func (b *Broker) locateGroups(v *View, q record.QueueNumber) error {
	began, finished, before := 0, 0, v.Attempt
	for _, g := range b.e.Groups() {
		var s groupStanding
		if err := b.groupStands(g, q, v.Offset, &s); err != nil {
			return err
		}
		if !s.began {
			continue
		}
		began++
		if s.attempts > 0 {
			v.Attempt = max(v.Attempt, before+int(s.attempts))
		}
		switch {
		case s.done:
			finished++
		case s.inflight:
			v.State = StateInflight
		case s.due > b.e.Now():
			if v.NextAttempt == 0 || s.due < v.NextAttempt {
				v.NextAttempt = s.due
			}
			if v.State != StateInflight {
				v.State = StateRetrying
			}
		}
	}
	if began > 0 && began == finished {
		v.State = StateAcked
	}
	return nil
}

// A groupStanding is how a group stands with a message.
type groupStanding struct {
	began, done, inflight bool
	attempts              uint32
	due                   int64 // Unix ms: not delivered again before
}

func (b *Broker) groupStands(g *group.Group, q record.QueueNumber, o record.Offset, s *groupStanding) error {
	var number record.GroupNumber
	err := b.e.Progress(g, q, func(p *group.Progress, _ engine.Bounds) {
		number, s.began = g.Number, g.Progress(q) != nil
		s.done, s.attempts, s.due = p.Finished(o), p.Attempts(o), p.Due(o)
	})
	if err != nil || s.done {
		return err
	}
	inflight, attempts := b.standing(leaseKey{number, q}, o)
	s.inflight, s.attempts = inflight, max(s.attempts, attempts)
	return nil
}

// locateDead tells whether a dead letter was redriven or purged.
func (b *Broker) locateDead(v *View, q record.QueueNumber) error {
	v.State = StateDead
	g, _ := b.e.GroupNow(deadGroup)
	if g == nil {
		return nil
	}
	return b.e.Progress(g, q, func(p *group.Progress, _ engine.Bounds) {
		if p.Finished(v.Offset) {
			v.State = StateAcked
		}
	})
}
