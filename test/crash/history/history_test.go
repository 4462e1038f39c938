package history

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	historyFlag = flag.String("history", soundFile, "recorded history for TestRecorded to check")
	updateFlag  = flag.Bool("update", false, "write the golden file anew")
)

// soundFile holds the history of sound. Recorded histories are read again long
// after, so the form of their lines is kept.
const soundFile = "testdata/sound.jsonl"

// sound is a history that keeps every rule: a at once, b and c delayed, d under
// way when the process was killed, e cancelled, f moved.
func sound(s *script) {
	s.start(ModeLoad)
	s.send("a", atOnce)
	s.ack(s.got("g1", "a"))
	s.send("b", in50)
	s.send("c", Delay{Kind: At, Value: base + 70})
	s.send("e", inADay)
	s.send("f", inADay)
	s.cancel("e", OK)
	s.try("d", in50)
	s.kill()
	s.start(ModeLoad)
	s.move("f", Delay{Kind: At, Value: base + 90}, OK)
	s.cancel("e", WasCancelled)
	s.got("g2", "a")
	for _, name := range []string{"b", "d", "c"} {
		s.got("g1", name)
		s.ack(s.got("g2", name))
	}
	s.kill()
	s.start(ModeDrain)
	s.list("f")
	for _, name := range []string{"b", "d", "c"} {
		s.ack(s.got("g1", name))
	}
	s.both("f")
	s.drained()
	s.start(ModeRebuild)
	s.put(Event{Kind: Drained, Hash: "state"})
}

// check makes up a history and checks it.
func check(story func(*script)) *Report {
	var s script
	story(&s)
	return Check(s.events, Options{Groups: groups})
}

func TestSound(t *testing.T) {
	r := check(sound)
	if len(r.Violations) > 0 {
		t.Fatalf("a sound history:\n%v", r)
	}
	want := Report{
		Runs: 4, Ups: 4, Kills: 2, Closes: 1, Attempted: 6, Acked: 5, Unknown: 1, Came: 1, Cancels: 1, Moves: 1,
		Delivered: 13, Across: 7, Again: 3, Attempts: 2,
	}
	got := *r
	got.ReceivedLate, got.VisibleLate = Lateness{}, Lateness{}
	if got.String() != want.String() {
		t.Errorf("got\n%vwant\n%v", &got, &want)
	}
	if n := r.VisibleLate.Count(); n != 6 {
		t.Errorf("lateness of %d deliveries, want 6: b, c and d to each group", n)
	}
}

// lone is a story after a run that makes it a valid one: a was delivered across
// a restart to both groups, as deliveries 1 and 2.
func lone(story func(*script)) func(*script) {
	return func(s *script) {
		s.start(ModeLoad)
		s.send("a", atOnce)
		s.send("z", inADay)
		s.cancel("z", OK)
		s.kill()
		s.start(ModeLoad)
		s.both("a")
		story(s)
	}
}

// A broken history breaks a rule, and the report says so with that text.
type broken struct {
	name  string
	rule  Rule
	text  string
	story func(*script)
}

func (b *broken) run(t *testing.T) {
	r := check(b.story)
	for _, v := range r.Violations {
		if v.Rule == b.rule && strings.Contains(v.Text, b.text) {
			return
		}
	}
	t.Errorf("want %s: ...%s..., got\n%v", b.rule, b.text, r)
}

// TestBroken breaks each rule, in every way in which the checker can tell.
func TestBroken(t *testing.T) {
	for _, group := range [][]broken{lost, steered, changed, early, repeated, disordered, invalid, named, keyed, transacted, held, counted, dead, bulks, purged, keeping} {
		for _, b := range group {
			t.Run(b.name, b.run)
		}
	}
}

// TestAllowed are histories that look odd and keep every rule.
func TestAllowed(t *testing.T) {
	start := func(s *script) {
		s.start(ModeLoad)
		s.send("a", atOnce)
		s.send("b", in50)
	}
	end := func(s *script) {
		s.both("b")
		s.drained()
	}
	for name, story := range map[string]func(*script){
		"delivered, not acknowledged, killed, and again": func(s *script) {
			start(s)
			s.both("a")
			s.kill()
			s.start(ModeDrain)
			s.both("a")
			end(s)
		},
		"acknowledgement not answered, and again": func(s *script) {
			start(s)
			s.both("a")
			s.begin(Event{Kind: Ack, Numbers: []int{1, 2}})
			s.kill()
			s.start(ModeDrain)
			s.both("a")
			end(s)
		},
		"acknowledged just before a power cut, and again": func(s *script) {
			start(s)
			s.both("a")
			s.ack(1, 2)
			s.kill()
			s.cut()
			s.start(ModeDrain)
			s.both("a")
			end(s)
		},
		"acknowledged, killed, killed while it recovers, power cut, and again": func(s *script) {
			start(s)
			s.both("a")
			s.ack(1, 2)
			s.kill()
			s.run++
			s.put(Event{Kind: Start, Mode: ModeLoad})
			s.kill()
			s.cut()
			s.start(ModeDrain)
			s.both("a")
			end(s)
		},
		"given back, and again": func(s *script) {
			start(s)
			s.both("a")
			s.nack(1)
			s.ack(2, s.got("g1", "a"))
			s.kill()
			s.start(ModeDrain)
			end(s)
		},
		"a send that never happened": func(s *script) {
			start(s)
			s.try("x", in50)
			s.kill()
			s.start(ModeDrain)
			s.both("a")
			end(s)
		},
		"a cancel that happened unanswered": func(s *script) {
			start(s)
			s.send("x", inADay)
			s.begin(Event{Kind: Cancel, Name: "x"})
			s.kill()
			s.start(ModeDrain)
			s.cancel("x", WasCancelled)
			s.both("a")
			end(s)
		},
		"a move that happened unanswered": func(s *script) {
			start(s)
			s.send("x", inADay)
			s.begin(Event{Kind: Move, Name: "x", Delay: &in50})
			s.know["x"].Due = s.due(in50)
			s.kill()
			s.start(ModeDrain)
			s.both("a")
			s.both("b")
			s.both("x")
			s.drained()
		},
		"a past due, visible at once between two that waited": func(s *script) {
			start(s)
			s.send("c", Delay{Kind: After, Value: 80})
			s.got("g1", "b")
			s.try("p", Delay{Kind: At, Value: base + 5})
			s.show(s.know["p"])
			s.put(Event{Kind: Sent, Op: s.op, Receipts: []Receipt{{ID: s.know["p"].ID, Due: s.know["p"].Due, Ready: true, Offset: 2}}})
			s.kill()
			s.start(ModeDrain)
			s.both("a")
			s.both("p")
			s.both("c")
			end(s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if r := check(story); len(r.Violations) > 0 {
				t.Errorf("broken:\n%v", r)
			}
		})
	}
}

// TestLostAcksAreCounted: what a power cut may undo is told all the same.
func TestLostAcksAreCounted(t *testing.T) {
	r := check(func(s *script) {
		s.start(ModeLoad)
		s.send("a", atOnce)
		s.both("a")
		s.ack(1, 2)
		s.kill()
		s.cut()
		s.start(ModeDrain)
		s.both("a")
		s.drained()
	})
	if r.LostAcks != 2 || r.Again != 2 {
		t.Errorf("%d acks undone, %d deliveries once more; want 2 and 2\n%v", r.LostAcks, r.Again, r)
	}
}

// TestSteppedBack: when the wall clock is set back a little, a store goes on by
// the monotonic clock, or from the last instant of the process before. That is
// not early.
func TestSteppedBack(t *testing.T) {
	back := func(s *script, run int, from Kind) {
		stepped := false
		for i := range s.events {
			e := &s.events[i]
			if stepped = e.Run == run && (stepped || e.Kind == from); stepped {
				e.Wall -= ns(7)
			}
		}
	}
	within := check(func(s *script) {
		sound(s)
		back(s, 2, Moved)
	})
	across := check(func(s *script) {
		s.start(ModeLoad)
		s.send("a", atOnce)
		s.send("b", in50)
		s.wall = s.know["b"].Due
		s.got("g1", "a")
		s.kill()
		s.start(ModeDrain)
		s.got("g2", "a")
		s.both("b", func(d *Delivery) { d.Visible = d.Due })
		s.drained()
		back(s, 2, Start)
	})
	for name, r := range map[string]*Report{"within a process": within, "across a restart": across} {
		if len(r.Violations) > 0 {
			t.Errorf("%s:\n%v", name, r)
		}
	}
	if want := 7 * time.Millisecond; within.SteppedBack != want || across.SteppedBack != 0 {
		t.Errorf("clock went back by %v and %v within a process, want %v and nothing", within.SteppedBack, across.SteppedBack, want)
	}
}

// TestMany: a report keeps the first violations and counts the rest.
func TestMany(t *testing.T) {
	r := check(lone(func(s *script) {
		for range MaxViolations + 5 {
			s.put(Event{Kind: "nonsense"})
		}
		s.drained()
	}))
	if len(r.Violations) != MaxViolations || r.Broken != MaxViolations+5 || !strings.Contains(r.String(), "and 5 more") {
		t.Errorf("%d violations kept of %d\n%v", len(r.Violations), r.Broken, r)
	}
}

// TestGolden: the lines of a history look as they always did.
func TestGolden(t *testing.T) {
	var s script
	sound(&s)
	got := encode(t, s.events)
	if *updateFlag {
		if err := os.WriteFile(soundFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(soundFile)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s (%v) differs from what is written now:\n%s", soundFile, err, got)
	}
}

func encode(t *testing.T, events []Event) []byte {
	t.Helper()
	var lines bytes.Buffer
	for i := range events {
		if err := json.NewEncoder(&lines).Encode(&events[i]); err != nil {
			t.Fatal(err)
		}
	}
	return lines.Bytes()
}

// TestRecorded checks a recorded history, as a failed run keeps it. By default
// that is one that keeps every rule.
func TestRecorded(t *testing.T) {
	file, err := os.Open(*historyFlag)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	events, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	var groups []string
	own := make(map[string]bool) // topics that have groups of their own
	for _, e := range events {
		if e.Kind == Planned {
			own[e.Topic] = len(e.Plan.Groups) > 0
		}
		if e.Kind == Got && !own[e.Topic] && !slices.Contains(groups, e.Group) {
			groups = append(groups, e.Group)
		}
	}
	r := Check(events, Options{Groups: groups})
	if len(r.Violations) > 0 {
		t.Errorf("%s:\n%v", *historyFlag, r)
	} else {
		t.Logf("%s:\n%v", *historyFlag, r)
	}
}

// TestRead: a line that was cut off is not part of the history, any other bad
// line is an error.
func TestRead(t *testing.T) {
	var s script
	sound(&s)
	whole := encode(t, s.events)
	got, err := Read(bytes.NewReader(whole))
	if err != nil || len(got) != len(s.events) {
		t.Fatalf("%d events, %v; want %d", len(got), err, len(s.events))
	}
	if r := Check(got, Options{Groups: groups}); len(r.Violations) > 0 {
		t.Errorf("written and read: %v", r)
	}
	got, err = Read(bytes.NewReader(whole[:len(whole)-1]))
	if err != nil || len(got) != len(s.events)-1 {
		t.Errorf("cut off: %d events, %v; want %d", len(got), err, len(s.events)-1)
	}
	if _, err := Read(strings.NewReader("{}\nnonsense\n")); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("nonsense: %v", err)
	}
}

func TestLateness(t *testing.T) {
	var l Lateness
	for i := range 100 {
		l.add(int64(99-i) * int64(time.Millisecond))
	}
	l.add(-5)
	if l.Count() != 101 || l.Quantile(0) != 0 || l.Quantile(0.5) != 49*time.Millisecond || l.Quantile(1) != 99*time.Millisecond {
		t.Errorf("%d: %v %v %v", l.Count(), l.Quantile(0), l.Quantile(0.5), l.Quantile(1))
	}
}
