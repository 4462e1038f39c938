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
	StatePaused    State = "paused"    // due, in a topic that is paused
	StateReady     State = "ready"     // visible
	StateInflight  State = "inflight"  // leased by a group
	StateAcked     State = "acked"     // finished by every group that began with it
	StateDead      State = "dead"      // given up on, in the dead-letter topic
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
	DeliverAt  Time              `json:"deliverAt,omitzero"`
	VisibleAt  Time              `json:"visibleAt,omitzero"`
	LatenessMs *int64            `json:"latenessMs,omitempty"` // visibleAt minus deliverAt; below 2^53
	Attempt    int               `json:"attempt,omitempty"`    // from 1
	Handle     string            `json:"handle,omitempty"`     // recall handle, while it waits
	Lease      string            `json:"lease,omitempty"`      // for ack, nack and extend
	State      State             `json:"state"`
}

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
}

// A Receipt says what became of a message that was sent.
type Receipt struct {
	ID        string  `json:"id"`
	Topic     string  `json:"topic"`
	Queue     int     `json:"queue"`
	Offset    *uint64 `json:"offset,omitempty,string"` // only when ready
	DeliverAt Time    `json:"deliverAt,omitzero"`      // absent if it was not delayed
	Handle    string  `json:"handle,omitempty"`        // recall handle, while it waits
	State     State   `json:"state"`                   // waiting or ready
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
	Receipt *Receipt `json:"receipt,omitempty"`
	Problem *Problem `json:"problem,omitempty"`
}

// A Receive asks for messages of a topic. Zero is the server's default.
type Receive struct {
	Group     string   `json:"group"`
	Max       int      `json:"max,omitempty"`      // default 1
	Wait      Duration `json:"wait,omitzero"`      // for the first one; default 0
	Invisible Duration `json:"invisible,omitzero"` // how long they are leased; default 30s
}

// A ReceiveReply has what was there, leased; empty is no error.
type ReceiveReply struct {
	Messages []Message `json:"messages"`
}

// A Nack asks to give a message back.
type Nack struct {
	Delay Duration `json:"delay,omitzero"` // until it may be received again; default 0
}

// An Extend asks to prolong a lease.
type Extend struct {
	Invisible Duration `json:"invisible,omitzero"` // from now on; default 30s
}

// An AckAll asks to finish many messages.
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

// A Reschedule asks for another due. Exactly one of At, After and By is given.
type Reschedule struct {
	At    string `json:"deliverAt,omitempty"`    // an instant
	After string `json:"deliverAfter,omitempty"` // a duration from now
	By    string `json:"by,omitempty"`           // a duration, also negative, from the due it has
	Zone  string `json:"tz,omitempty"`           // of an At that names none
}

// An Answer says how a message stands after a cancel or a reschedule.
type Answer struct {
	ID        string `json:"id"`
	Topic     string `json:"topic"`
	DeliverAt Time   `json:"deliverAt,omitzero"` // how it waits now, or waited
	State     State  `json:"state"`              // waiting or cancelled
}

// A PendingQuery selects what waits; zero selects everything.
type PendingQuery struct {
	Topic  string
	Tag    string
	From   Time     // due at or after
	To     Time     // due before
	Within Duration // due before now, on the server's clock, plus this
	Limit  int      // of one page, 1 to 1000; default 100
	Cursor string   // of the page before
}

// A Page is a stretch of what waits, in the order of falling due.
type Page struct {
	Messages []Message `json:"messages"`         // without bodies
	Cursor   string    `json:"cursor,omitempty"` // of the next page; absent at the end
}

// A Count counts what waits.
type Count struct {
	Count int64 `json:"count,string"`
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
