package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/group"
	"github.com/duemq/duemq/internal/log"
	"github.com/duemq/duemq/internal/record"
	"github.com/duemq/duemq/internal/timeline"
)

// What a steward keeps and when it carries, in a workload of two seconds.
const (
	stewardKeeps   = 120 * time.Millisecond
	stewardCarries = 20 * time.Millisecond
)

// A fate is what a message was last said to be.
type fate uint8

const (
	fateSent fate = iota + 1 // waits or is visible
	fateHalf
	fateGone // cancelled, replaced, rolled back, or its topic was purged
)

// A stewarded message is one that was acknowledged.
type stewarded struct {
	body string
	fate fate
	due  int64 // the last that was answered; 0 if it did not wait
	seen int64 // when it became visible, 0 before
	u    bool  // sent to the topic that is purged
}

// A ledger is what a steward has been told. The answer to what is being asked is
// still out: of those messages, hashes and topics nothing is known for sure.
type ledger struct {
	messages map[record.ID]stewarded
	shown    map[place]record.ID
	once     map[record.Hash]record.ID
	names    map[record.Hash]record.ID
	acked    map[place]bool   // durable for sure
	tries    map[place]uint32 // likewise
	bulk     map[uint64]uint64
	paused   bool
	asked    map[record.ID]bool
	purging  bool
}

func newLedger() ledger {
	return ledger{
		messages: make(map[record.ID]stewarded), shown: make(map[place]record.ID),
		once: make(map[record.Hash]record.ID), names: make(map[record.Hash]record.ID),
		acked: make(map[place]bool), tries: make(map[place]uint32), bulk: make(map[uint64]uint64),
		asked: make(map[record.ID]bool),
	}
}

func (l *ledger) clone() ledger {
	return ledger{
		maps.Clone(l.messages), maps.Clone(l.shown), maps.Clone(l.once), maps.Clone(l.names), maps.Clone(l.acked),
		maps.Clone(l.tries), maps.Clone(l.bulk), l.paused, maps.Clone(l.asked), l.purging,
	}
}

// A steward drives one engine through all that keeps, holds back, replaces and
// gives up, single-threaded, and notes what it was told.
type steward struct {
	rng   *rand.Rand
	clock *clock.Fake
	o     Options
	e     *Engine
	group *group.Group
	t, u  *Topic // u is purged now and then
	ids   []record.ID
	lazy  []func() // answered before they are durable: of acks and leases
	sent  int

	mu   sync.Mutex
	told ledger
}

func newSteward(seed uint64, disk fs.FS, bugs Bugs) *steward {
	s := &steward{rng: rand.New(rand.NewPCG(seed, 5)), clock: clock.NewFake(testStart), told: newLedger()}
	s.o = small(disk, s.clock)
	s.o.CutCommands, s.o.Bugs = 60, bugs
	s.o.Retention = Retention{Time: stewardKeeps, CarryAfter: stewardCarries}
	return s
}

func (s *steward) word() ledger {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told.clone()
}

// note changes the ledger.
func (s *steward) note(fn func(l *ledger)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn(&s.told)
}

// durable notes what was answered lazily: something else was synced behind it.
func (s *steward) durable() {
	lazy := s.lazy
	s.lazy = nil
	s.note(func(*ledger) {
		for _, fn := range lazy {
			fn()
		}
	})
}

// asking runs a call about messages whose fate is open meanwhile.
func (s *steward) asking(call func() error, ids ...record.ID) error {
	s.note(func(l *ledger) {
		for _, id := range ids {
			l.asked[id] = true
		}
	})
	err := call()
	if err == nil {
		s.durable()
		s.note(func(l *ledger) { clear(l.asked) })
	}
	return err
}

func (s *steward) run(n int) (err error) {
	ctx := context.Background()
	if s.e, err = Open(ctx, s.o); err != nil {
		return err
	}
	defer func() {
		if cerr := s.e.Close(); err == nil {
			err = cerr
		}
	}()
	if s.t, err = s.e.MakeTopic(ctx, "t", 2, nil); err != nil {
		return err
	}
	if s.u, err = s.e.MakeTopic(ctx, "u", 1, nil); err != nil {
		return err
	}
	if s.group, err = s.e.MakeGroup(ctx, record.Group{Name: "g", Start: record.StartEarliest}); err != nil {
		return err
	}
	for range n {
		if err := s.step(ctx); err != nil {
			return err
		}
		if err := s.look(); err != nil {
			return err
		}
	}
	return nil
}

func (s *steward) step(ctx context.Context) error {
	switch k := s.rng.IntN(40); {
	case k < 10:
		return s.send(ctx)
	case k < 14:
		return s.post(ctx)
	case k < 16:
		return s.decide(ctx)
	case k < 19:
		return s.steer(ctx)
	case k < 21:
		return s.operate(ctx)
	case k < 23:
		return s.hold(ctx)
	case k < 24:
		return s.purge(ctx)
	case k < 28:
		return s.consume(ctx)
	case k < 32:
		return s.e.trimAndCarry(ctx, s.e.plan())
	default:
		s.clock.Advance(time.Duration(s.rng.IntN(30_000)) * time.Microsecond)
		return s.e.Settle(ctx)
	}
}

// message makes one with a body of its own, due at once, soon or late.
func (s *steward) message(tp *Topic) Send {
	s.sent++
	m := Send{Topic: tp.Number, Turn: tp}
	m.Message.Body = []byte(fmt.Sprintf("%d %s", s.sent, strings.Repeat("b", s.rng.IntN(4000))))
	m.Message.Key = fmt.Sprint("key", s.rng.IntN(20))
	switch s.rng.IntN(4) {
	case 0:
	case 1:
		m.Delay = Delay{DelayAfter, int64(s.rng.IntN(60))}
	default:
		m.Delay = Delay{DelayAfter, int64(s.rng.IntN(1500))}
	}
	return m
}

func (s *steward) took(l *ledger, m *Send, f fate) {
	l.messages[m.ID] = stewarded{body: string(m.Message.Body), fate: f, due: m.Due, u: m.Turn == s.u}
	s.ids = append(s.ids, m.ID)
}

func (s *steward) send(ctx context.Context) error {
	sends := make([]Send, 1+s.rng.IntN(4))
	for i := range sends {
		tp := s.t
		if s.rng.IntN(4) == 0 {
			tp = s.u
		}
		sends[i] = s.message(tp)
	}
	return s.asking(func() error {
		err := s.e.Send(ctx, sends)
		if err == nil {
			s.note(func(l *ledger) {
				for i := range sends {
					s.took(l, &sends[i], fateSent)
				}
			})
		}
		return err
	})
}

// post sends a half message, or one under an idempotency key or a name.
func (s *steward) post(ctx context.Context) error {
	m := []Send{s.message(s.t)}
	f := fateSent
	var about []record.ID
	var once, name record.Hash
	switch s.rng.IntN(3) {
	case 0:
		m[0].Terms = record.Terms{Half: true, Producer: "p"}
		f = fateHalf
	case 1:
		once = record.Hash{1, byte(s.rng.IntN(8))}
		m[0].Terms.Once = once
	default:
		name = record.Hash{2, byte(s.rng.IntN(3))}
		m[0].Terms.Name = name
		about = append(about, s.told.names[name])
	}
	return s.asking(func() error {
		if err := s.e.Send(ctx, m); err != nil {
			return err
		}
		first, known := s.told.once[once]
		if known != m[0].Repeat || known && m[0].ID != first {
			return fmt.Errorf("a repeat under the key of message %v is message %v (repeat: %v)", first, m[0].ID, m[0].Repeat)
		}
		s.note(func(l *ledger) {
			if !m[0].Repeat {
				s.took(l, &m[0], f)
			}
			if once != (record.Hash{}) {
				l.once[once] = m[0].ID
			}
			if name != (record.Hash{}) {
				l.names[name] = m[0].ID
			}
			if m[0].Took != 0 {
				l.end(m[0].Took)
			}
		})
		return nil
	}, about...)
}

func (l *ledger) end(id record.ID) {
	m := l.messages[id]
	m.fate = fateGone
	l.messages[id] = m
}

// some picks one of the last messages that is thought to be of a fate.
func (s *steward) some(f fate) (record.ID, bool) {
	for range 30 {
		if len(s.ids) == 0 {
			break
		}
		id := s.ids[len(s.ids)-1-s.rng.IntN(min(len(s.ids), 60))]
		if m := s.told.messages[id]; m.fate == f && m.seen == 0 {
			return id, true
		}
	}
	return 0, false
}

func (s *steward) decide(ctx context.Context) error {
	for _, h := range s.e.Halves("") {
		commit := s.rng.IntN(3) > 0
		id := h.Ref.ID
		err := s.asking(func() error {
			out, err := s.e.EndHalf(ctx, id, commit)
			if err == nil && out.Verdict != timeline.Done {
				err = fmt.Errorf("half message %v: verdict %d", id, out.Verdict)
			}
			if err != nil {
				return err
			}
			s.note(func(l *ledger) {
				m := l.messages[id]
				m.fate, m.due = fateSent, out.Due
				if !commit {
					m.fate = fateGone
				}
				l.messages[id] = m
			})
			return nil
		}, id)
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *steward) steer(ctx context.Context) error {
	id, ok := s.some(fateSent)
	if !ok {
		return nil
	}
	_, r, err := s.e.Find(id)
	if err != nil {
		return fmt.Errorf("find %v: %w", id, err)
	}
	cancel := s.rng.IntN(3) == 0
	due := s.e.Now() + int64(s.rng.IntN(300))
	return s.asking(func() error {
		var out Outcome
		var err error
		if cancel {
			out, err = s.e.Cancel(ctx, r)
		} else {
			out, err = s.e.Reschedule(ctx, r, Delay{DelayAt, due})
		}
		if err != nil || out.Verdict != timeline.Done {
			return err
		}
		s.note(func(l *ledger) { l.steered(id, cancel, out.Due) })
		return nil
	}, id)
}

func (l *ledger) steered(id record.ID, cancelled bool, due int64) {
	m := l.messages[id]
	m.due = due
	if cancelled {
		m.fate = fateGone
	}
	l.messages[id] = m
}

// operate cancels and moves a few messages in one bulk operation of two steps.
func (s *steward) operate(ctx context.Context) error {
	number, err := s.e.BeginOperation(ctx, "x")
	if err != nil {
		return err
	}
	for range 2 {
		if err := s.chunk(ctx, number); err != nil {
			return err
		}
	}
	return s.e.EndOperation(ctx, number, record.OperationDone)
}

func (s *steward) chunk(ctx context.Context, number uint64) error {
	chosen := make(map[record.ID]int64)
	o := record.Operate{Number: number}
	var ids []record.ID
	for range 3 {
		id, ok := s.some(fateSent)
		if _, twice := chosen[id]; !ok || twice {
			continue
		}
		_, r, err := s.e.Find(id)
		if err != nil {
			return fmt.Errorf("find %v: %w", id, err)
		}
		due := int64(0)
		if s.rng.IntN(2) == 0 {
			due = s.e.Now() + int64(s.rng.IntN(200))
		}
		chosen[id] = due
		ids = append(ids, id)
		o.Entries = append(o.Entries, record.Steer{Ref: r, Due: due})
	}
	return s.asking(func() error {
		if err := s.e.Operate(ctx, o); err != nil {
			return err
		}
		op, _ := s.e.Operation(number)
		s.note(func(l *ledger) { l.bulk[number] = op.Done + op.Missed })
		return s.afterChunk(o)
	}, ids...)
}

// afterChunk asks what became of each: what had become visible was missed. Of
// what was sent long ago a cancel may be forgotten.
func (s *steward) afterChunk(o record.Operate) error {
	_, visible, err := readBodies(s.e, s.told.messages)
	if err != nil {
		return err
	}
	for _, x := range o.Entries {
		st, err := s.e.Standing(x.Ref)
		if err != nil {
			return err
		}
		s.note(func(l *ledger) {
			switch {
			case st.Verdict != timeline.Done && x.Due == 0 && visible[x.Ref.ID] == 0:
				l.end(x.Ref.ID)
			case st.Verdict == timeline.Done:
				l.steered(x.Ref.ID, false, st.Ref.Due)
			}
		})
	}
	return nil
}

// hold pauses a topic, lets it go on, or gives it a rate.
func (s *steward) hold(ctx context.Context) error {
	if s.rng.IntN(2) == 0 {
		rate := []string{"", "100", "1000"}[s.rng.IntN(3)]
		return s.e.Configure(ctx, s.t, []record.Property{{Name: RateAttribute, Value: rate}})
	}
	paused := !s.told.paused
	s.note(func(l *ledger) { l.paused = false }) // not for sure
	err := s.e.Pause(ctx, s.t, paused)
	if err == nil {
		s.note(func(l *ledger) { l.paused = paused })
	}
	return err
}

func (s *steward) purge(ctx context.Context) error {
	if s.rng.IntN(3) > 0 {
		return nil
	}
	first := s.u.FirstQueue
	s.note(func(l *ledger) { l.purging = true })
	if err := s.e.EndTopic(ctx, s.u, true); err != nil {
		return err
	}
	s.durable()
	s.note(func(l *ledger) {
		for at := range l.shown {
			if at.queue == first {
				delete(l.shown, at)
			}
		}
		for id, m := range l.messages {
			if m.u {
				l.end(id)
			}
		}
		l.purging = false
	})
	return nil
}

// consume leases, gives back and finishes what a group finds.
func (s *steward) consume(ctx context.Context) error {
	q := s.t.FirstQueue + record.QueueNumber(s.rng.IntN(2))
	low, next, err := s.e.Bounds(q)
	if err != nil || low == next {
		return err
	}
	o := low + record.Offset(s.rng.IntN(int(next-low)))
	at := place{q, o}
	ranges := []record.OffsetRange{{From: o, To: o + 1}}
	if s.rng.IntN(2) == 0 {
		s.lazy = append(s.lazy, func() { s.told.acked[at] = true })
		return s.e.Ack(ctx, []record.Ack{{Group: s.group.Number, Queue: q, Ranges: ranges}})
	}
	n := uint32(1)
	err = s.e.Progress(s.group, q, func(p *group.Progress, _ Bounds) { n += p.Attempts(o) })
	if err != nil {
		return err
	}
	runs := []record.LeaseRun{{From: o, To: o + 1, Attempt: n}}
	if err := s.e.Lease(ctx, []record.Lease{{Group: s.group.Number, Queue: q, Runs: runs}}); err != nil {
		return err
	}
	s.lazy = append(s.lazy, func() { s.told.tries[at] = n })
	if s.rng.IntN(2) == 0 {
		return nil
	}
	return s.e.Release(ctx, record.Release{
		Group: s.group.Number, Queue: q, Reason: record.ReasonNack,
		Entries: []record.Released{{Offset: o, Attempt: n, Due: s.e.Now() + 50}},
	})
}

// look reads what is visible, bodies and all.
func (s *steward) look() error {
	shown, times, err := readBodies(s.e, s.word().messages)
	if err != nil {
		return err
	}
	s.note(func(l *ledger) {
		maps.Copy(l.shown, shown)
		for id, at := range times {
			if m, ok := l.messages[id]; ok {
				m.seen = at
				l.messages[id] = m
			}
		}
	})
	return nil
}

// readBodies reads what is visible in all queues and demands the bytes that were
// sent.
func readBodies(e *Engine, sent map[record.ID]stewarded) (shown map[place]record.ID, times map[record.ID]int64, err error) {
	shown, times = make(map[place]record.ID), make(map[record.ID]int64)
	for _, name := range []string{"t", "u"} {
		tp := e.TopicNamed(name)
		if tp == nil {
			continue
		}
		e.mu.RLock()
		first := tp.FirstQueue
		e.mu.RUnlock()
		for i := range tp.Queues {
			n := first + record.QueueNumber(i)
			low, next, berr := e.Bounds(n)
			for o := low; berr == nil && o < next; {
				entries, eerr := e.Entries(nil, n, o, 50)
				if eerr != nil {
					return nil, nil, eerr
				}
				e.Messages(entries, func(k int, m *record.Message, merr error) {
					x := &entries[k]
					shown[place{n, o + record.Offset(k)}] = x.ID
					switch was, known := sent[x.ID]; {
					case merr != nil:
						err = fmt.Errorf("visible message %v (due %d, since %d): %w", x.ID, x.Due, x.VisibleAt, merr)
					case known && was.body != string(m.Body):
						err = fmt.Errorf("message %v comes back changed", x.ID)
					case x.VisibleAt < x.Due:
						err = fmt.Errorf("message %v visible at %d, due %d: early", x.ID, x.VisibleAt, x.Due)
					case times[x.ID] != 0:
						err = fmt.Errorf("message %v is visible twice", x.ID)
					}
					times[x.ID] = x.VisibleAt
				})
				if err != nil {
					return nil, nil, err
				}
				o += record.Offset(len(entries))
			}
			if berr != nil {
				return nil, nil, berr
			}
		}
	}
	return shown, times, nil
}

// verify opens a disk as a crash left it and says in what the store goes back on
// its word.
func (s *steward) verify(disk *vfs.MemFS, l ledger, at time.Time) error {
	o := s.o
	o.FS, o.Clock = disk, clock.NewFake(at)
	o.Bugs = Bugs{Log: log.Bugs{CutBadMiddle: s.o.Bugs.Log.CutBadMiddle}}
	e, err := Open(context.Background(), o)
	if err != nil {
		return fmt.Errorf("reopen: %w", err)
	}
	err = e.Settle(context.Background())
	if err == nil {
		err = l.holds(e, at.UnixMilli()-stewardKeeps.Milliseconds())
	}
	var hash string
	if err == nil {
		hash, err = e.Hash()
	}
	trimmed := e.m.keep.from() > 0
	if cerr := e.Close(); err == nil {
		err = cerr
	}
	switch {
	case err != nil:
		return err
	case !trimmed && e.log.FirstPosition() == 0:
		return sameWithoutIndex(o, hash)
	default:
		return sameAgain(o, hash)
	}
}

// sameAgain opens once more, from the cut that closing has written.
func sameAgain(o Options, want string) error {
	e, err := Open(context.Background(), o)
	if err != nil {
		return fmt.Errorf("reopen again: %w", err)
	}
	got, err := e.Hash()
	if cerr := e.Close(); err == nil {
		err = cerr
	}
	if err == nil && got != want {
		err = errors.New("another state after closing")
	}
	return err
}

// holds checks that every word still holds. What became visible before old may
// have been given up.
func (l *ledger) holds(e *Engine, old int64) error {
	shown, times, err := readBodies(e, l.messages)
	if err != nil {
		return err
	}
	for at, id := range l.shown {
		if l.purging || shown[at] == id || shown[at] == 0 && l.messages[id].seen < old {
			continue
		}
		return fmt.Errorf("queue %d offset %d was %v and is %v", at.queue, at.offset, id, shown[at])
	}
	for id, m := range l.messages {
		if l.asked[id] {
			continue
		}
		if err := l.check(e, id, m, times[id] != 0, old); err != nil {
			return fmt.Errorf("message %v (fate %d, due %d, seen %d): %w", id, m.fate, m.due, m.seen, err)
		}
	}
	return errors.Join(l.hashes(e), l.progress(e))
}

func (l *ledger) check(e *Engine, id record.ID, m stewarded, visible bool, old int64) error {
	if _, half := e.Half(id); half != (m.fate == fateHalf) {
		return fmt.Errorf("half message: %v", half)
	}
	got, r, err := e.Find(id)
	if errors.Is(err, ErrNotFound) && (m.fate == fateGone || m.seen != 0 && m.seen < old) && !visible {
		return nil
	}
	if err != nil || string(got.Body) != m.body {
		return fmt.Errorf("comes back changed, or not: %w", err)
	}
	st, err := e.Standing(r)
	if err != nil {
		return err
	}
	waits := st.Verdict == timeline.Done
	switch {
	case m.fate == fateGone && (waits || visible):
		return fmt.Errorf("was taken away (verdict %d, visible %v)", st.Verdict, visible)
	case m.fate != fateSent || l.purging:
	case waits && visible:
		return errors.New("waits and is visible")
	case !waits && !visible && (m.seen == 0 || m.seen >= old):
		return fmt.Errorf("neither waits nor is visible (verdict %d)", st.Verdict)
	case waits && !st.Held && m.due != 0 && st.Ref.Due != m.due:
		return fmt.Errorf("waits for %d", st.Ref.Due)
	}
	return nil
}

// hashes checks what keys and names stand for.
func (l *ledger) hashes(e *Engine) error {
	for h, id := range l.once {
		if got, counts, err := e.ByHash(h); err != nil || !counts || got != id {
			return fmt.Errorf("the key of message %v stands for %v (%v, %w)", id, got, counts, err)
		}
	}
	if len(l.asked) > 0 {
		return nil // a name may be on its way to another message
	}
	for h, id := range l.names {
		got, _, err := e.ByHash(h)
		m := l.messages[id]
		if err != nil || got != id && m.fate == fateSent && m.seen == 0 {
			return fmt.Errorf("the name of message %v stands for %v (%w)", id, got, err)
		}
	}
	return nil
}

// progress checks what consumers did, and bulk operations.
func (l *ledger) progress(e *Engine) error {
	for n, done := range l.bulk {
		if op, ok := e.Operation(n); !ok || op.Done+op.Missed < done {
			return fmt.Errorf("operation %d did %d and says %+v", n, done, op)
		}
	}
	if tp := e.TopicNamed("t"); tp != nil && l.paused && !e.Count(tp).Paused && len(l.messages) > 0 {
		return errors.New("the pause is forgotten")
	}
	g := e.GroupNamed("g")
	for at := range l.acked {
		var finished bool
		if err := e.Progress(g, at.queue, func(p *group.Progress, _ Bounds) { finished = p.Finished(at.offset) }); err != nil {
			return err
		}
		if !finished {
			return fmt.Errorf("queue %d offset %d was finished and is not", at.queue, at.offset)
		}
	}
	for at, n := range l.tries {
		var got uint32
		var over bool
		err := e.Progress(g, at.queue, func(p *group.Progress, b Bounds) {
			got, over = p.Attempts(at.offset), p.Finished(at.offset) || at.offset < b.Low
		})
		if err != nil {
			return err
		}
		if got < n && !over {
			return fmt.Errorf("queue %d offset %d was tried %d times, %d are known", at.queue, at.offset, n, got)
		}
	}
	return nil
}

func stewardCrashes(seed uint64, stride int, bugs Bugs) error {
	disk := fs.NewFaulty(fs.NewMem())
	s := newSteward(seed, disk, bugs)
	x := trial[ledger]{disk, s.clock, func() error { return s.run(260) }, s.word, s.verify}
	if err := x.crashAtEvery(seed, stride); err != nil {
		return err
	}
	return nil
}

// TestStewardCrashes cuts the power at operations of the disk while topics are
// paused, capped and purged, messages replaced, repeated, committed, rolled back
// and steered in bulk, leased and given back, and the log is trimmed and carried.
func TestStewardCrashes(t *testing.T) {
	stride := 3
	if testing.Short() {
		stride = 40
	}
	for seed := uint64(1); seed <= 4; seed++ {
		if err := stewardCrashes(seed, stride, Bugs{}); err != nil {
			t.Fatal(err)
		}
	}
}
