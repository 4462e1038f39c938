// Package wire is what travels over DueMQ's HTTP API: the JSON of requests and
// answers, the codes of errors, and the syntax of delays and instants that
// users type. Server, Go client and command line share it.
//
// The package is pure: it knows no sockets, no broker and no clock. Numbers that
// may need 64 bits are strings in JSON, because many readers keep numbers as
// doubles. Instants are RFC 3339 in UTC with milliseconds, durations are written
// as Go writes them and read as Go or ISO 8601 writes them. Fields are added,
// never renamed; a reader ignores those it does not know, the server refuses
// them in requests. docs/http.md is the reference for users.
package wire

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
	StateAcked     State = "acked"     // finished by every group that began with it
	StateDead      State = "dead"      // a dead letter that nobody has redriven or purged
	StateCancelled State = "cancelled" // taken away while it waited
	StateUnknown   State = "unknown"   // known by its record only
)

// A Message is a message as users see it. Which fields are there depends on
// where it is: a waiting one has a handle and no offset, a received one a lease.
type Message struct {
	ID         string            `json:"id"` // 16 hexadecimal digits
	Topic      string            `json:"topic"`
	Queue      int               `json:"queue"`
	Offset     *uint64           `json:"offset,omitempty,string"`
	Key        string            `json:"key,omitempty"`
	Tag        string            `json:"tag,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"` // user properties
	Body       []byte            `json:"body,omitempty"`    // base64
	Text       string            `json:"text,omitempty"`    // the body again, if it is UTF-8 without zero bytes
	BornAt     Time              `json:"bornAt,omitzero"`   // on the producer's clock
	StoredAt   Time              `json:"storedAt,omitzero"` // when the broker took it
	Level      int               `json:"level,omitempty"`   // the delay level it waits or waited under; absent is any other time
	DeliverAt  Time              `json:"deliverAt,omitzero"`
	VisibleAt  Time              `json:"visibleAt,omitzero"`
	LatenessMs *int64            `json:"latenessMs,omitempty"` // visibleAt minus deliverAt; below 2^53
	Attempt    int               `json:"attempt,omitempty"`    // from 1
	Handle     string            `json:"handle,omitempty"`     // recall handle, while it waits
	Lease      string            `json:"lease,omitempty"`      // for ack, nack, extend and bury
	State      State             `json:"state"`

	NextAttemptAt Time   `json:"nextAttemptAt,omitzero"` // when one that was given back may be received again
	Group         string `json:"group,omitempty"`        // the one group whose it is: of a retry or a dead letter
	Origin        string `json:"origin,omitempty"`       // id of the message that it was at first, of a retry or a dead letter
	OriginTopic   string `json:"originTopic,omitempty"`  // and that one's topic
	Reason        string `json:"reason,omitempty"`       // why it is a dead letter
	Checks        int    `json:"checks,omitempty"`       // of a half message: how often its producer was asked
}

// Headers of requests that may be repeated, as the IETF's draft has them.
const (
	IdempotencyHeader = "Idempotency-Key"      // of a request
	ReplayedHeader    = "Idempotency-Replayed" // of an answer: true if the key was used before
)

// A Send is one message to be sent. At most one of After, At and Level is given;
// they are what the user typed, and the server is the judge of it.
type Send struct {
	Topic   string            `json:"topic"`
	Queue   *int              `json:"queue,omitempty"` // nil: the topic's queues in turn
	Key     string            `json:"key,omitempty"`
	Tag     string            `json:"tag,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    []byte            `json:"body,omitempty"` // base64; Body or Text
	Text    string            `json:"text,omitempty"`
	After   string            `json:"deliverAfter,omitempty"` // a duration: 10s, 1h30m, 2d, PT30M
	At      string            `json:"deliverAt,omitempty"`    // an instant: 2026-12-01T09:00+08:00
	Zone    string            `json:"tz,omitempty"`           // IANA zone of an At that names none: Asia/Shanghai
	Level   Level             `json:"level,omitempty"`        // a delay level: 3, or its delay: 10s

	IdempotencyKey string `json:"idempotencyKey,omitempty"` // the same message under it is sent once
	Name           string `json:"name,omitempty"`           // the client's own name within the topic; takes the place of one that waits under it
	Transaction    string `json:"transaction,omitempty"`    // group of producers: a half message, delivered when its transaction is committed
}

// A Receipt says what became of a message that was sent.
type Receipt struct {
	ID        string  `json:"id"`
	Topic     string  `json:"topic"`
	Queue     int     `json:"queue"`
	Offset    *uint64 `json:"offset,omitempty,string"` // only when ready
	DeliverAt Time    `json:"deliverAt,omitzero"`      // absent if it was not delayed
	Handle    string  `json:"handle,omitempty"`        // recall handle, while it waits
	State     State   `json:"state"`                   // waiting, ready or half
	Replaced  string  `json:"replaced,omitempty"`      // id of the message whose name it took, which is cancelled
}

// A Batch asks to send messages, each on its own.
type Batch struct {
	Messages []Send `json:"messages"`
}

// A BatchReply has a result for each message, in order.
type BatchReply struct {
	Accepted int           `json:"accepted"`
	Refused  int           `json:"refused"`
	Results  []BatchResult `json:"results"`
}

// A BatchResult is a receipt, or the problem for which the message was refused.
type BatchResult struct {
	Receipt  *Receipt `json:"receipt,omitempty"`
	Replayed bool     `json:"replayed,omitempty"` // its idempotency key was used before: the receipt is of the first message
	Problem  *Problem `json:"problem,omitempty"`
}

// A Receive asks for messages of a topic. Zero is the server's default.
type Receive struct {
	Group     string   `json:"group"`
	Max       int      `json:"max,omitempty"`      // default 1
	MaxBytes  int      `json:"maxBytes,omitempty"` // of bodies; default and limit 16 MiB. One message always fits
	Wait      Duration `json:"wait,omitzero"`      // for the first one; default 0
	Invisible Duration `json:"invisible,omitzero"` // how long they are leased; default the group's, 30s
	Tags      string   `json:"tags,omitempty"`     // a || b; what has another tag is finished for the group. Default all
	Ordered   bool     `json:"ordered,omitempty"`  // nothing of a queue while the group has something of it that is not finished
}

// A ReceiveReply has what was there, leased; empty is no error.
type ReceiveReply struct {
	Messages []Message `json:"messages"`
}

// A Nack asks to give a message back.
type Nack struct {
	Delay *Duration `json:"delay,omitempty"` // until it may be received again; absent: the group's back-off
}

// A NackReply says what became of a message that was given back.
type NackReply struct {
	Due    Time   `json:"due,omitzero"` // not received again before
	Dead   bool   `json:"dead"`         // its attempts were used up: it is a dead letter
	DeadID string `json:"deadId,omitempty"`
}

// A Bury asks to make a message a dead letter at once.
type Bury struct {
	Reason string `json:"reason,omitempty"` // kept with it
}

// A Buried says which dead letter a message became.
type Buried struct {
	ID string `json:"id"`
}

// An Extend asks to prolong a lease.
type Extend struct {
	Invisible Duration `json:"invisible,omitzero"` // from now on; default 30s
}

// An AckAll asks to finish many messages, or to give back many that nobody has
// seen.
type AckAll struct {
	Leases []string `json:"leases"`
}

// An AckAllReply has a result for each lease, in order.
type AckAllReply struct {
	Acked   int         `json:"acked"`
	Refused int         `json:"refused"`
	Results []AckResult `json:"results"`
}

// An AckResult is empty, or the problem for which a lease did not hold.
type AckResult struct {
	Problem *Problem `json:"problem,omitempty"`
}

// A Reschedule asks for another due. Exactly one of At, After, By and Level is
// given.
type Reschedule struct {
	At    string `json:"deliverAt,omitempty"`    // an instant
	After string `json:"deliverAfter,omitempty"` // a duration from now
	By    string `json:"by,omitempty"`           // a duration, also negative, from the due it has
	Zone  string `json:"tz,omitempty"`           // of an At that names none
	Level Level  `json:"level,omitempty"`        // a delay level, counted from now: 3, or its delay: 10s
}

// An Answer says how a message stands after a cancel or a reschedule.
type Answer struct {
	ID        string `json:"id"`
	Topic     string `json:"topic"`
	DeliverAt Time   `json:"deliverAt,omitzero"` // how it waits now, or waited
	State     State  `json:"state"`              // waiting or cancelled
}

// A Version says what runs.
type Version struct {
	Version string `json:"version"`
	Go      string `json:"go"`
}

// A Clock says what the broker takes for the time.
type Clock struct {
	Now     Time `json:"now"`
	Suspect bool `json:"suspect"` // nothing falls due and relative delays are refused
}
