// Package history judges what a store did while its process was killed and its
// power cut: it takes the events that a workload wrote down and answers with
// the rules that they break.
//
// A history is a sequence of events, one line of JSON each, in the order in
// which they were written. Every call has two: one before it begins and one
// after it was answered. A call without the second was under way when the
// process died; it may have happened or not. So when the end of one call stands
// before the beginning of another, the first one was over when the second one
// began, and nothing else follows from the order.
//
// The package knows a store's promises and nothing of how it keeps them: it
// imports none of our packages and does its own arithmetic.
package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// A Kind says what an event is.
type Kind string

// What the workload writes. Beginnings and ends have the same Op.
const (
	Start     Kind = "start"     // the process runs, the store is not open: Mode
	Up        Kind = "up"        // the store is open: Figures
	Send      Kind = "send"      // begins: Topic, Messages
	Sent      Kind = "sent"      // ends: Receipts in the order of Messages, or Err
	Cancel    Kind = "cancel"    // begins: Name
	Cancelled Kind = "cancelled" // ends: Answer, or Err
	Move      Kind = "move"      // begins: Name, Delay
	Moved     Kind = "moved"     // ends: Answer and Due, or Err
	Got       Kind = "got"       // a receive has returned, at Wall: Topic, Group, Deliveries
	Ack       Kind = "ack"       // begins: Numbers of deliveries
	Acked     Kind = "acked"     // ends: Err
	Nack      Kind = "nack"      // begins: Numbers
	Nacked    Kind = "nacked"    // ends: Err
	Waiting   Kind = "waiting"   // everything that waits, listed when nobody sent: Waits
	Figure    Kind = "figure"    // Figures, now and then
	Drained   Kind = "drained"   // nothing waits and every group has everything: Hash
	Stop      Kind = "stop"      // the workload is over, the store closes
	Down      Kind = "down"      // the store is closed: Err
)

// What it writes of topics that have terms of their own.
const (
	Planned   Kind = "plan"      // what is to be expected of a topic from now on: Topic, Plan
	End       Kind = "end"       // of a transaction begins: Name, On is a commit
	Ended     Kind = "ended"     // ends: Answer and Due, or Err
	Halves    Kind = "halves"    // all half messages, listed when nobody sent: Waits
	Hold      Kind = "hold"      // of a topic begins: Topic, On pauses it
	Held      Kind = "held"      // ends: Err
	Limit     Kind = "limit"     // of a topic's rate begins: Topic, Rate
	Limited   Kind = "limited"   // ends: Err
	Purge     Kind = "purge"     // of a topic begins: Topic
	Purged    Kind = "purged"    // ends: Err
	Bulk      Kind = "bulk"      // cancel of a topic's messages with a tag begins: Topic, Tag
	Bulked    Kind = "bulked"    // ends: Operation, or Err
	Operated  Kind = "operation" // how a bulk operation was seen to stand: Tag, Operation
	Bury      Kind = "bury"      // begins: Numbers
	Buried    Kind = "buried"    // ends: Err
	DeadOnes  Kind = "dead"      // all dead letters of a group: Group, Deliveries, their ids those of the messages
	Retention Kind = "retention" // what is kept at the end: Figures
)

// What the driver writes, after the last event of the process.
const (
	Killed   Kind = "killed"    // by SIGKILL, sent at Wall
	PowerCut Kind = "power cut" // what was not synced is gone
)

// The answers of a cancel or a move that came without an error.
const (
	OK           = "ok"
	WasDelivered = "delivered"
	WasCancelled = "cancelled"
	Unknown      = "unknown"
	Over         = "over" // the transaction had ended before
)

// The modes of a run.
const (
	ModeLoad    = "load"
	ModeDrain   = "drain"   // lets everything fall due and takes everything
	ModeRebuild = "rebuild" // opens without the index, from the log alone
)

// An Event is one line of a history.
type Event struct {
	Kind Kind  `json:"e"`
	Run  int   `json:"run"`          // number of the process, from 1
	Wall int64 `json:"w"`            // the machine's clock, Unix ns
	Mono int64 `json:"m,omitempty"`  // monotonic, ns since the process began; 0 from the driver
	Op   int   `json:"op,omitempty"` // joins the two events of a call, within a run

	Mode       string     `json:"mode,omitempty"`
	Topic      string     `json:"topic,omitempty"`
	Group      string     `json:"group,omitempty"`
	Name       string     `json:"name,omitempty"`
	Delay      *Delay     `json:"delay,omitempty"`
	Messages   []Message  `json:"msgs,omitempty"`
	Receipts   []Receipt  `json:"rcpts,omitempty"`
	Deliveries []Delivery `json:"dels,omitempty"`
	Numbers    []int      `json:"nos,omitempty"`
	Waits      []Wait     `json:"waits,omitempty"`
	Answer     string     `json:"ans,omitempty"`
	On         bool       `json:"on,omitempty"`
	Tag        string     `json:"tag,omitempty"`
	Rate       int64      `json:"rate,omitempty"` // messages a second; 0 is any
	Plan       *Plan      `json:"plan,omitempty"`
	Operation  *Operation `json:"oper,omitempty"`
	Due        int64      `json:"due,omitempty"` // Unix ms
	Hash       string     `json:"hash,omitempty"`
	Err        string     `json:"err,omitempty"`
	Figures    *Figures   `json:"figs,omitempty"`
}

// A Message is one that somebody tries to send. Its name is unique in the
// history and travels as the message's key.
type Message struct {
	Name  string `json:"n"`
	Queue int    `json:"q"` // -1 leaves it to the store
	Hash  uint64 `json:"h"` // of everything that must arrive as it was sent
	Delay Delay  `json:"d"`
	Tag   string `json:"tag,omitempty"`
	Once  bool   `json:"once,omitempty"` // under an idempotency key of its own: it may be sent again
	Slot  string `json:"slot,omitempty"` // the name under which it replaces who waits
	Half  bool   `json:"half,omitempty"` // it waits for its transaction to end
}

// A Plan is what is to be expected of a topic that is unlike the others.
type Plan struct {
	Groups   []string `json:"groups,omitempty"` // who gets everything; none: the groups of all topics
	Attempts int      `json:"max,omitempty"`    // after which a message is a dead letter
	Purged   bool     `json:"purged,omitempty"` // it is purged now and then, and its offsets begin anew
}

// An Operation is a bulk operation.
type Operation struct {
	ID     string `json:"id"`
	State  string `json:"st,omitempty"` // OperationDone when it is over
	Done   uint64 `json:"done,omitempty"`
	Missed uint64 `json:"missed,omitempty"`
}

// OperationDone is the state of an operation that has come to its end.
const OperationDone = "done"

// A DelayKind says how a due is given.
type DelayKind string

// The kinds of delay.
const (
	NoDelay DelayKind = "none"
	After   DelayKind = "after" // milliseconds from now; a level is one, spelled out
	At      DelayKind = "at"    // an instant, Unix ms
)

// A Delay is a due as its sender gives it.
type Delay struct {
	Kind  DelayKind `json:"k"`
	Value int64     `json:"v,omitempty"`
}

// A Receipt is what a sender is told of one message.
type Receipt struct {
	ID     uint64 `json:"id"`
	Due    int64  `json:"due,omitempty"` // Unix ms; 0 if it was not delayed
	Queue  int    `json:"q"`
	Ready  bool   `json:"rdy,omitempty"` // visible already, at Offset
	Offset uint64 `json:"off,omitempty"`
	Err    string `json:"err,omitempty"`

	Repeat   bool   `json:"again,omitempty"`    // its key was used before: the rest is of the first one
	Replaced uint64 `json:"replaced,omitempty"` // id of the one whose slot it took
}

// A Delivery is one message handed to a group.
type Delivery struct {
	Number  int    `json:"no"` // unique within the run
	Name    string `json:"n"`
	ID      uint64 `json:"id"`
	Queue   int    `json:"q"`
	Offset  uint64 `json:"off"`
	Attempt int    `json:"att"`
	Due     int64  `json:"due,omitempty"` // Unix ms
	Visible int64  `json:"vis"`           // Unix ms
	Hash    uint64 `json:"h"`
	Retry   bool   `json:"retry,omitempty"` // it was sent again to this group alone: queue and offset are of that copy
}

// A Wait is one waiting message, as a listing shows it.
type Wait struct {
	Name string `json:"n"`
	ID   uint64 `json:"id"`
	Due  int64  `json:"due"` // Unix ms
}

// Figures are what the store counts about itself. With Up they tell of the
// recovery: only Replayed, Torn and Waiting are set.
type Figures struct {
	Replayed uint64 `json:"replayed,omitempty"` // batches
	Torn     int64  `json:"torn,omitempty"`     // bytes dropped at the log's end
	Waiting  int64  `json:"waiting,omitempty"`  // messages
	Cuts     int64  `json:"cuts,omitempty"`     // since Up
	Syncs    int64  `json:"syncs,omitempty"`    // since Up
	LogBytes uint64 `json:"log,omitempty"`      // the log's end
	Kept     uint64 `json:"kept,omitempty"`     // bytes of log that are still there
	Most     uint64 `json:"most,omitempty"`     // that there may be
	Skipped  uint64 `json:"skipped,omitempty"`  // messages that retention took before a group had them
	Carried  int64  `json:"carried,omitempty"`  // messages carried, since Up
}

// Read reads a history. A last line that is not whole is left out: its writer
// was killed on the way.
func Read(r io.Reader) ([]Event, error) {
	var events []Event
	lines := bufio.NewReaderSize(r, 1<<20)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return events, fmt.Errorf("history line %d: %w", n, err)
		}
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			return events, fmt.Errorf("history line %d: %w", n, err)
		}
		events = append(events, e)
	}
}

// ms rounds an instant in ns down to ms.
func ms(ns int64) int64 { return ns / int64(time.Millisecond) }

// ceilMs rounds it up.
func ceilMs(ns int64) int64 { return (ns + int64(time.Millisecond) - 1) / int64(time.Millisecond) }

// ns is the beginning of a millisecond.
func ns(ms int64) int64 { return ms * int64(time.Millisecond) }
