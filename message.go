package duemq

import "time"

// A Message is one message: one to be sent ([Queue.SendBatch]), one received, or
// one looked at ([Queue.Get], [Queue.Pending]). The zero Message is empty and
// lacks only a topic to be sent.
//
// A received message may be sent again as it is, to another topic for example:
// what it was given by the queue is not sent with it, and it does not wait a
// second time.
type Message struct {
	Topic   string            // letters, digits, _ - % |, at most 127
	Body    []byte            // at most 4 MiB
	Key     string            // what it is about, such as an order's number; several with blanks between
	Tag     string            // its kind within the topic
	Headers map[string]string // at most 128
	Queue   int               // the queue of its topic, from 0

	// To be sent only. At most one of After, At and Level may be other than zero.
	InQueue bool          // into Queue; otherwise the topic's queues take turns
	After   time.Duration // due that long after it is taken, as by [After]
	At      time.Time     // due at that instant, as by [At]
	Level   int           // due after the delay of that level, as by [Level]

	IdempotencyKey string // as by [IdempotencyKey]; empty for none
	Name           string // as by [Name]; empty for none

	// Set by the queue. Times are in UTC and in whole milliseconds.
	ID        string    // 16 hexadecimal digits, its identity for ever
	Offset    int64     // its number in its queue; -1 if it is not visible
	SentAt    time.Time // on the sender's clock
	StoredAt  time.Time // when it was taken
	DueAt     time.Time // zero if it was not delayed
	DueLevel  int       // the delay level it waits or waited under; 0 is any other time
	VisibleAt time.Time // when it could first be received; zero while it waits or if that is not known any more
	Attempt   int       // how often it has been received by the group, from 1
	State     State     // where it is

	NextAttempt time.Time // when one that was given back is received again; zero otherwise
	Group       string    // of a retry or a dead letter: the one group whose it is
	Origin      string    // of a retry or a dead letter: the ID that it had at first
	OriginTopic string    // of a retry or a dead letter: the topic that it was sent to
	Reason      string    // of a dead letter: why it is one

	queue   *Queue // nil unless received
	lease   string
	settled bool // acknowledged, given back or buried by its receiver
}

// A State says where a message is.
type State string

// The states of a message.
const (
	StateWaiting   State = "waiting"   // for its due
	StatePaused    State = "paused"    // due, and held back by its topic: it is paused, or its rate is used up
	StateHalf      State = "half"      // for its transaction to end
	StateReady     State = "ready"     // to be received
	StateInflight  State = "inflight"  // received by a group, not yet acknowledged
	StateRetrying  State = "retrying"  // given back by a group, for its next attempt
	StateAcked     State = "acked"     // acknowledged by every group that began to receive it
	StateDead      State = "dead"      // a dead letter, neither redriven nor purged
	StateCancelled State = "cancelled" // taken away while it waited
	StateUnknown   State = "unknown"   // delivered once; nothing more is known
)

// Lateness is how long after its due a message became visible; 0 for one that
// was not delayed or is not visible.
func (m *Message) Lateness() time.Duration {
	if m.DueAt.IsZero() || m.VisibleAt.IsZero() {
		return 0
	}
	return m.VisibleAt.Sub(m.DueAt)
}
