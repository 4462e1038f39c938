package history

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Rule is one of the promises that a history must keep.
type Rule string

// The rules. docs/testing.md explains each.
const (
	NothingLost       Rule = "H1"  // acknowledged and not cancelled: delivered to each group; cancelled: never
	NoPhantom         Rule = "H2"  // what is delivered was sent, once, and is unchanged
	NeverEarly        Rule = "H3"  // not before the due, and the due is the one that was asked for
	Duplicates        Rule = "H5"  // one more delivery at most, and a crash between explains it
	Order             Rule = "H6"  // offsets without a gap, in the order of falling due
	OffsetsStand      Rule = "H7"  // an offset is one message, at one time, for ever; a message has one offset
	Attempts          Rule = "H8"  // counted across restarts; given back: not before its delay; not above the group's limit
	SameFromLog       Rule = "H9"  // the log alone gives the same state as log and index
	RunIsValid        Rule = "H10" // enough happened for the other rules to mean something
	NoCallFailed      Rule = "H11" // no call came back with an error that nothing explains
	OneOfAName        Rule = "H12" // who waits under a name is replaced, and then never delivered
	OnceAKey          Rule = "H13" // a key is one message, however often it is sent
	Transactions      Rule = "H14" // nothing before a commit, nothing after a rollback
	HeldBack          Rule = "H15" // nothing becomes visible in a paused topic, nor faster than its rate
	DeadLetters       Rule = "H16" // used up or buried: among the dead letters, and nothing else is
	BulkIsExact       Rule = "H17" // an operation comes to its end and has counted what it did
	NothingAfterPurge Rule = "H18" // nothing that was sent before it
	KeptEnough        Rule = "H19" // retention takes from nobody who keeps up, and the log does not grow
	HistoryIsWell     Rule = "H0"  // the history itself: what is wrong is the harness
)

// A Violation is one place where a history breaks a rule.
type Violation struct {
	Rule Rule
	Run  int // the process in which it showed; 0 for the history as a whole
	Text string
}

// String gives the violation on one line.
func (v Violation) String() string {
	if v.Run == 0 {
		return fmt.Sprintf("%s: %s", v.Rule, v.Text)
	}
	return fmt.Sprintf("%s, run %d: %s", v.Rule, v.Run, v.Text)
}

// A Report is what a history amounts to.
type Report struct {
	Violations []Violation // the first MaxViolations
	Broken     int         // how many there were in all

	Runs      int // processes
	Ups       int // of these, opened the store
	Kills     int
	PowerCuts int
	Closes    int
	Attempted int // messages that somebody began to send
	Acked     int // of these, acknowledged
	Unknown   int // under way when their process died
	Came      int // of these, delivered all the same
	Cancels   int // answered with yes
	Moves     int // answered with yes
	Delivered int // deliveries, to all groups
	Across    int // first deliveries in a later process than the one that was told
	Again     int // deliveries beyond a message's first to a group
	LostAcks  int // acknowledgements of consumers that a power cut undid, within what is allowed
	Cuts      int64
	LogBytes  uint64

	Repeats  int    // sends that were answered as a repeat of another one
	Replaced int    // messages replaced by one of the same name
	Ended    int    // transactions, answered
	Pauses   int    // of topics, answered
	Purges   int    // of topics, answered
	Bulks    int    // bulk operations
	Dead     int    // dead letters
	Attempts int    // the most of one message by one group
	Carried  int64  // messages moved out of old segments
	Kept     uint64 // bytes of log that retention has left

	ReceivedLate Lateness // until the consumer had it
	VisibleLate  Lateness // until it could have had it

	// SteppedBack is the furthest that the wall clock went back against the
	// monotonic one within a run. Whatever is early by less is not the store's.
	SteppedBack time.Duration
}

// MaxViolations is how many violations a report keeps.
const MaxViolations = 30

func (r *Report) violate(rule Rule, run int, format string, args ...any) {
	r.Broken++
	if len(r.Violations) < MaxViolations {
		r.Violations = append(r.Violations, Violation{rule, run, fmt.Sprintf(format, args...)})
	}
}

// Breaks says whether the history breaks a rule.
func (r *Report) Breaks(rule Rule) bool {
	return slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Rule == rule })
}

// String is the report in a few lines, violations last.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d processes (%d opened), %d killed, %d power cuts, %d closed\n", r.Runs, r.Ups, r.Kills, r.PowerCuts, r.Closes)
	fmt.Fprintf(&b, "%d messages acknowledged, %d unknown (%d came), %d cancelled, %d moved\n",
		r.Acked, r.Unknown, r.Came, r.Cancels, r.Moves)
	fmt.Fprintf(&b, "%d deliveries, %d across a restart, %d once more, %d acks undone by a power cut\n",
		r.Delivered, r.Across, r.Again, r.LostAcks)
	fmt.Fprintf(&b, "%d repeats, %d replaced, %d transactions ended, %d pauses, %d purges, %d bulk operations, %d dead letters, at most %d attempts\n",
		r.Repeats, r.Replaced, r.Ended, r.Pauses, r.Purges, r.Bulks, r.Dead, r.Attempts)
	fmt.Fprintf(&b, "%d cuts, %d KiB of log, %d KiB kept by retention, %d carried\n", r.Cuts, r.LogBytes>>10, r.Kept>>10, r.Carried)
	fmt.Fprintf(&b, "lateness without downtime: visible %v, received %v\n", &r.VisibleLate, &r.ReceivedLate)
	if r.SteppedBack > time.Millisecond {
		fmt.Fprintf(&b, "the machine's clock went back by %v\n", r.SteppedBack)
	}
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "%v\n", v)
	}
	if more := r.Broken - len(r.Violations); more > 0 {
		fmt.Fprintf(&b, "and %d more\n", more)
	}
	return b.String()
}

// Lateness collects how late deliveries were, in ns.
type Lateness struct {
	ns     []int64
	sorted bool
}

func (l *Lateness) add(ns int64) { l.ns, l.sorted = append(l.ns, max(ns, 0)), false }

// Add takes in what another one has collected.
func (l *Lateness) Add(o *Lateness) { l.ns, l.sorted = append(l.ns, o.ns...), false }

// Count is how many deliveries were measured.
func (l *Lateness) Count() int { return len(l.ns) }

// Quantile is the lateness that the fraction q of them did not exceed.
func (l *Lateness) Quantile(q float64) time.Duration {
	if len(l.ns) == 0 {
		return 0
	}
	if !l.sorted {
		slices.Sort(l.ns)
		l.sorted = true
	}
	return time.Duration(l.ns[min(int(q*float64(len(l.ns))), len(l.ns)-1)])
}

// String gives median, 99th percentile and maximum.
func (l *Lateness) String() string {
	r := func(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
	return fmt.Sprintf("p50 %v p99 %v max %v", r(l.Quantile(0.5)), r(l.Quantile(0.99)), r(l.Quantile(1)))
}
