package wire

import "encoding/json"

// A PendingQuery selects what waits; zero selects everything.
type PendingQuery struct {
	Topic   string
	Tag     string
	Key     string   // the business key, or one of several
	IDs     []string // ids or handles
	From    Time     // due at or after
	To      Time     // due before
	Within  Duration // due before now, on the server's clock, plus this
	State   State    // waiting, or paused for what is due and held back; empty: both
	Overdue bool     // due, and not delivered yet
	Limit   int      // of one page, 1 to 1000; default 100
	Cursor  string   // of the page before
}

// A Page is a stretch of what waits, in the order of falling due, or of dead
// letters, oldest first.
type Page struct {
	Messages []Message `json:"messages"`         // without bodies, unless they were asked for
	Cursor   string    `json:"cursor,omitempty"` // of the next page; absent at the end
}

// A Count counts what waits.
type Count struct {
	Count int64 `json:"count,string"`
}

// A TimelineQuery asks how much waits for which times. Zero is the default.
type TimelineQuery struct {
	Topic   string
	From    Time     // default the first due
	To      Time     // default the last due
	Step    Duration // of a bucket: whole minutes; default about 60 buckets
	ByTopic bool     // tell topics apart
}

// A Timeline counts what waits by when it falls due.
type Timeline struct {
	From     Time             `json:"from"`              // where the first bucket begins
	To       Time             `json:"to"`                // where the range ends, and the last bucket with it
	Step     Duration         `json:"step"`              // length of a bucket
	Buckets  []TimelineBucket `json:"buckets"`           // those in which something falls due, in order
	Total    int64            `json:"total,string"`      // of the buckets
	Paused   int64            `json:"paused,string"`     // due and held back: in no bucket
	Overdue  int64            `json:"overdue,string"`    // due and not delivered yet, without those held back
	Earliest Time             `json:"earliest,omitzero"` // the minute of the first due of all; absent when nothing waits
	Latest   Time             `json:"latest,omitzero"`   // the minute of the last due
}

// A TimelineBucket is a stretch of a timeline.
type TimelineBucket struct {
	From   Time              `json:"from"`
	Count  int64             `json:"count,string"`
	Topics map[string]Number `json:"topics,omitempty"` // by topic, if asked for
}

// A Filter selects what waits for a bulk operation. What is given is joined by
// and; to select everything, say so with all.
type Filter struct {
	All     bool     `json:"all,omitempty"` // everything that waits, alone
	Topic   string   `json:"topic,omitempty"`
	Tag     string   `json:"tag,omitempty"`
	Key     string   `json:"key,omitempty"`   // the business key, or one of several
	IDs     []string `json:"ids,omitempty"`   // ids or handles
	From    Time     `json:"from,omitzero"`   // due at or after
	To      Time     `json:"to,omitzero"`     // due before
	Within  Duration `json:"within,omitzero"` // due within that time from now; not with to
	State   State    `json:"state,omitempty"` // waiting, or paused: due and held back
	Overdue bool     `json:"overdue,omitempty"`
}

// Selects says whether the filter names anything but all.
func (f *Filter) Selects() bool {
	return f.Topic != "" || f.Tag != "" || f.Key != "" || f.IDs != nil || f.From != 0 || f.To != 0 || f.Within != 0 || f.State != "" || f.Overdue
}

// A BulkCancel asks to cancel, or to deliver at once, what a filter selects.
type BulkCancel struct {
	Filter Filter `json:"filter"`
	DryRun bool   `json:"dryRun,omitempty"` // only count, and show some
}

// A BulkReschedule asks to give what a filter selects another due. Exactly one
// of At, After, By and Level is given.
type BulkReschedule struct {
	Filter Filter `json:"filter"`
	At     string `json:"deliverAt,omitempty"`    // an instant
	After  string `json:"deliverAfter,omitempty"` // a duration from now
	By     string `json:"by,omitempty"`           // a duration, also negative, from the due that each has
	Zone   string `json:"tz,omitempty"`           // of an At that names none
	Level  Level  `json:"level,omitempty"`        // a delay level, counted from now
	DryRun bool   `json:"dryRun,omitempty"`
}

// A BulkSpread asks to spread what a filter selects evenly over a stretch of
// time, in the order of falling due.
type BulkSpread struct {
	Filter Filter   `json:"filter"`
	At     string   `json:"deliverAt,omitempty"` // where the stretch begins, an instant; default now
	Zone   string   `json:"tz,omitempty"`        // of an At that names none
	Over   Duration `json:"over"`                // how long it is
	DryRun bool     `json:"dryRun,omitempty"`
}

// An OperationState is how a bulk operation stands.
type OperationState string

// The states of a bulk operation.
const (
	OperationRunning OperationState = "running"
	OperationDone    OperationState = "done"
	OperationStopped OperationState = "stopped" // before its end, by somebody
	OperationDryRun  OperationState = "dry-run" // it was only counted
)

// An Operation is a bulk operation. It goes on after a restart of the server.
type Operation struct {
	ID      string         `json:"id,omitempty"` // absent of a dry run
	Kind    string         `json:"kind"`         // cancel, reschedule, deliver, spread or redrive
	State   OperationState `json:"state"`
	Filter  *Filter        `json:"filter,omitempty"`         // what it selects; absent of a redrive
	Matched int64          `json:"matched,string,omitempty"` // how many it is about; absent of what was not counted beforehand
	Done    uint64         `json:"done,string"`              // cancelled, moved or delivered so far
	Missed  uint64         `json:"missed,string"`            // did not wait any more when their turn came
	Samples []Message      `json:"samples,omitempty"`
	BeganAt Time           `json:"beganAt,omitzero"`
	EndedAt Time           `json:"endedAt,omitzero"`
	Error   string         `json:"error,omitempty"` // why it does not go on before a restart
}

// Counted says whether Matched is known: of a dry run, of a spread, which is cut
// by it, and of a redrive.
func (o Operation) Counted() bool {
	return o.State == OperationDryRun || o.Kind == "spread" || o.Kind == "redrive"
}

// MarshalJSON leaves out a count that nobody made, which is no 0.
func (o Operation) MarshalJSON() ([]byte, error) {
	if !o.Counted() {
		type plain Operation
		return json.Marshal(plain(o))
	}
	return json.Marshal(struct { // the same fields, the count never left out
		ID      string         `json:"id,omitempty"`
		Kind    string         `json:"kind"`
		State   OperationState `json:"state"`
		Filter  *Filter        `json:"filter,omitempty"`
		Matched int64          `json:"matched,string"`
		Done    uint64         `json:"done,string"`
		Missed  uint64         `json:"missed,string"`
		Samples []Message      `json:"samples,omitempty"`
		BeganAt Time           `json:"beganAt,omitzero"`
		EndedAt Time           `json:"endedAt,omitzero"`
		Error   string         `json:"error,omitempty"`
	}(o))
}

// An Operations lists the bulk operations that are remembered, oldest first.
type Operations struct {
	Operations []Operation `json:"operations"`
}

// Checks ask which half messages a producer must decide about.
type Checks struct {
	Producer string   `json:"producer"`      // group of producers
	Max      int      `json:"max,omitempty"` // default 1
	Wait     Duration `json:"wait,omitzero"` // for the first one; default 0
}

// A Halves lists half messages.
type Halves struct {
	Messages []Message `json:"messages"`
}
