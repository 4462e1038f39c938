package engine

import (
	"maps"
	"math"
	"slices"

	"github.com/duemq/duemq/internal/queue"
	"github.com/duemq/duemq/internal/record"
	"github.com/duemq/duemq/internal/timeline"
)

// simple is the state machine as a child would write it: lists that are
// sorted and searched, no cuts, no wheel, no marks.
type simple struct {
	stamp   int64
	high    int64
	popped  record.Key
	waiting []record.Ref // half messages too
	parked  []record.Ref // in the order of parking, over all queues
	lotLast map[record.QueueNumber]record.Key
	msgs    map[record.ID]*simpleMessage
	queues  map[record.QueueNumber][]queue.Entry
	acked   map[record.QueueNumber]map[record.Offset]bool // of the one group
	topics  []*simpleTopic
	halves  map[record.ID]*simpleHalf
	hashes  map[record.Hash]simpleHash
	trim    int64
	carried record.ID
	segment map[uint64]*simpleSegment
	first   uint64 // segment that is kept
	nextQ   record.QueueNumber

	operation record.OperationState // of the one there is
}

type simpleSegment struct {
	waiting map[record.ID]bool
	left    int64
}

type simpleTopic struct {
	number record.TopicNumber
	first  record.QueueNumber
	paused bool
	rate   int64
	tokens int64
	filled int64
}

func (t *simpleTopic) owns(q record.QueueNumber) bool { return q >= t.first && q < t.first+3 }

type simpleMessage struct {
	sent      record.Ref // due 0 if it was due by its own stamp
	cancelled bool
}

type simpleHalf struct {
	ref    record.Ref
	delay  int64
	checks int
}

type simpleHash struct {
	id    record.ID
	print uint64
	until int64
}

func newSimple() *simple {
	s := &simple{
		msgs: make(map[record.ID]*simpleMessage), queues: make(map[record.QueueNumber][]queue.Entry),
		acked:  make(map[record.QueueNumber]map[record.Offset]bool),
		halves: make(map[record.ID]*simpleHalf), hashes: make(map[record.Hash]simpleHash),
		segment: make(map[uint64]*simpleSegment), nextQ: 7, lotLast: make(map[record.QueueNumber]record.Key),
		topics: []*simpleTopic{{number: 1, first: 1}, {number: 2, first: 4}},
	}
	for q := record.QueueNumber(1); q <= 6; q++ {
		s.acked[q] = make(map[record.Offset]bool)
	}
	return s
}

func (s *simple) topicOf(q record.QueueNumber) *simpleTopic {
	for _, t := range s.topics {
		if t.owns(q) {
			return t
		}
	}
	return nil
}

func (s *simple) part(id record.ID) *simpleSegment {
	n := uint64(id) / testSegment
	if s.segment[n] == nil {
		s.segment[n] = &simpleSegment{waiting: make(map[record.ID]bool)}
	}
	return s.segment[n]
}

func (s *simple) waits(id record.ID) {
	if id >= s.carried {
		s.part(id).waiting[id] = true
	}
}

func (s *simple) leaves(id record.ID) {
	if id >= s.carried {
		delete(s.part(id).waiting, id)
		s.part(id).left = s.high
	}
}

func (s *simple) find(id record.ID) int {
	return slices.IndexFunc(s.waiting, func(r record.Ref) bool { return r.ID == id })
}

// pending is what waits as users see it: held back or not, without halves.
func (s *simple) pending() []record.Ref {
	var out []record.Ref
	for _, r := range slices.Concat(s.parked, s.waiting) {
		if r.Kind == record.KindMessage {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b record.Ref) int { return a.Key().Compare(b.Key()) })
	return out
}

func (s *simple) next() int64 {
	due := int64(math.MaxInt64)
	for _, r := range s.waiting {
		due = min(due, r.Due)
	}
	return due
}

func (s *simple) nextDue() int64 {
	due := s.next()
	for _, r := range s.parked {
		if t := s.topicOf(r.Queue); !t.paused {
			at := s.stamp
			if t.rate > 0 && t.tokens < 1000 {
				at = t.filled + (1000-t.tokens+t.rate-1)/t.rate
			}
			due = min(due, at)
		}
	}
	return due
}

func (t *simpleTopic) take(stamp int64) bool {
	if stamp > t.filled {
		t.tokens = min(t.tokens+(stamp-t.filled)*t.rate, max(t.rate*100, 1000))
	}
	t.filled = stamp
	if t.tokens < 1000 {
		return false
	}
	t.tokens -= 1000
	return true
}

func (s *simple) show(r record.Ref) record.Offset {
	q := s.queues[r.Queue]
	visible := s.stamp
	if len(q) > 0 {
		visible = max(visible, q[len(q)-1].VisibleAt)
	}
	s.queues[r.Queue] = append(q, queue.Entry{ID: r.ID, Due: r.Due, VisibleAt: visible, Size: r.Size, Tag: r.Tag})
	if r.ID >= s.carried {
		s.part(r.ID).left = s.high
	}
	return record.Offset(len(q))
}

func (s *simple) lift(r record.Ref) record.Ref {
	if r.Key().Compare(s.popped) <= 0 {
		r.Due = max(r.Due, s.stamp)
	}
	if r.Key().Compare(s.popped) <= 0 {
		r.Due = s.popped.Due + 1
	}
	return r
}

// held says that nothing may become visible in a queue now.
func (s *simple) held(q record.QueueNumber) bool {
	t := s.topicOf(q)
	if t.paused || slices.ContainsFunc(s.parked, func(r record.Ref) bool { return r.Queue == q }) {
		return true
	}
	return t.rate > 0 && !t.take(s.stamp)
}

func (s *simple) park(r record.Ref) record.Ref {
	// The order holds among those that were taken away meanwhile, too.
	if slices.ContainsFunc(s.parked, func(p record.Ref) bool { return p.Queue == r.Queue }) {
		if last := s.lotLast[r.Queue]; r.Key().Compare(last) <= 0 {
			r.Due = last.Due + 1
		}
	}
	r.Level = 0
	s.lotLast[r.Queue] = r.Key()
	s.parked = append(s.parked, r)
	return r
}

func (s *simple) advance(stamp int64, limit int, rebase bool, index, _ uint64) {
	if rebase && s.popped.Due > stamp {
		s.popped = record.Key{Due: stamp}
	}
	s.stamp, s.high = stamp, max(s.high, stamp)
	n := 0
	for n < limit {
		slices.SortFunc(s.waiting, func(a, b record.Ref) int { return a.Key().Compare(b.Key()) })
		if len(s.waiting) == 0 || s.waiting[0].Due > stamp {
			break
		}
		r := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.popped = r.Key()
		n++
		switch {
		case r.Kind == record.KindCheck:
			s.check(r)
		case s.held(r.Queue):
			s.park(r)
		default:
			s.leaves(r.ID)
			s.show(r)
		}
	}
	s.drain(limit-n+limit/4, index)
}

func (s *simple) check(r record.Ref) {
	h := s.halves[r.ID]
	h.checks++
	if h.checks > MaxChecks {
		delete(s.halves, r.ID)
		s.msgs[r.ID].cancelled = true
		s.leaves(r.ID)
		return
	}
	r.Due = max(s.stamp, r.Due) + CheckEvery
	h.ref = s.lift(r)
	s.waiting = append(s.waiting, h.ref)
}

// drain is the machine's rule of turns, over plain lists.
func (s *simple) drain(limit int, index uint64) {
	set := make(map[record.QueueNumber]bool)
	for _, r := range s.parked {
		set[r.Queue] = true
	}
	all := slices.Sorted(maps.Keys(set))
	var turn []record.QueueNumber
	for i := range all {
		if q := all[(uint64(i)+index)%uint64(len(all))]; !s.topicOf(q).paused {
			turn = append(turn, q)
		}
	}
	for len(turn) > 0 && limit > 0 {
		share := max(limit/len(turn), 1)
		var kept []record.QueueNumber
		for _, q := range turn {
			n, more := s.drainQueue(q, min(share, limit))
			limit -= n
			if more && limit > 0 {
				kept = append(kept, q)
			}
		}
		turn = kept
	}
}

func (s *simple) drainQueue(q record.QueueNumber, limit int) (n int, more bool) {
	t := s.topicOf(q)
	for {
		i := slices.IndexFunc(s.parked, func(r record.Ref) bool { return r.Queue == q })
		if i < 0 {
			return n, false
		}
		if n == limit {
			return n, true
		}
		if t.rate > 0 && !t.take(s.stamp) {
			return n, false
		}
		r := s.parked[i]
		s.parked = slices.Delete(s.parked, i, i+1)
		s.leaves(r.ID)
		s.show(r)
		n++
	}
}

func (s *simple) send(r record.Ref) Outcome {
	sent := r
	if r.Due <= s.stamp {
		sent.Due = 0
	}
	s.msgs[r.ID] = &simpleMessage{sent: sent}
	return s.file(r)
}

func (s *simple) file(r record.Ref) Outcome {
	if r.Due > s.stamp || (r.Due != 0 && s.next() <= s.stamp) {
		r = s.lift(r)
		s.waiting = append(s.waiting, r)
		s.waits(r.ID)
		return Outcome{Due: r.Due}
	}
	if s.held(r.Queue) {
		r.Due = s.stamp
		s.waits(r.ID)
		return Outcome{Due: s.park(r).Due}
	}
	return Outcome{Due: r.Due, Ready: true, Offset: s.show(r)}
}

func (s *simple) ack(a record.Ack) (fresh uint64) {
	low := s.low(a.Queue)
	for _, r := range a.Ranges {
		for o := max(r.From, low); o < min(r.To, record.Offset(len(s.queues[a.Queue]))); o++ {
			if !s.acked[a.Queue][o] {
				s.acked[a.Queue][o] = true
				fresh++
			}
		}
	}
	return fresh
}

// low is the first offset that retention leaves.
func (s *simple) low(q record.QueueNumber) record.Offset {
	n := 0
	for _, e := range s.queues[q] {
		if e.VisibleAt >= s.trim {
			break
		}
		n++
	}
	return record.Offset(n)
}

// verdict says how a message stands, and where.
func (s *simple) verdict(id record.ID) (list *[]record.Ref, i int, v timeline.Verdict) {
	m := s.msgs[id]
	if s.topicOf(m.sent.Queue) == nil {
		return nil, -1, timeline.NotWaiting
	}
	if i := s.find(id); i >= 0 && s.waiting[i].Kind == record.KindMessage {
		return &s.waiting, i, timeline.Done
	}
	if i := slices.IndexFunc(s.parked, func(r record.Ref) bool { return r.ID == id }); i >= 0 {
		return &s.parked, i, timeline.Done
	}
	if m.cancelled && uint64(id) >= s.first*testSegment {
		return nil, -1, timeline.AlreadyCancelled
	}
	return nil, -1, timeline.NotWaiting
}

func (s *simple) cancel(id record.ID) timeline.Verdict {
	list, i, v := s.verdict(id)
	if v == timeline.Done {
		*list = slices.Delete(*list, i, i+1)
		s.msgs[id].cancelled = true
		s.leaves(id)
	}
	return v
}

func (s *simple) reschedule(id record.ID, due int64) (timeline.Verdict, int64) {
	list, i, v := s.verdict(id)
	if v != timeline.Done {
		return v, 0
	}
	r := (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	r.Due, r.Level = due, s.msgs[id].sent.Level
	r = s.lift(r)
	s.waiting = append(s.waiting, r)
	return v, r.Due
}

// purge ends a topic's queues.
func (s *simple) purge(t *simpleTopic, first record.QueueNumber) {
	drop := func(r record.Ref) bool {
		if !t.owns(r.Queue) {
			return false
		}
		if _, half := s.halves[r.ID]; half {
			delete(s.halves, r.ID)
			s.leaves(r.ID)
		}
		return true // what waits of it keeps its segment until it is carried
	}
	s.waiting = slices.DeleteFunc(s.waiting, drop)
	s.parked = slices.DeleteFunc(s.parked, drop)
	for q := t.first; q < t.first+3; q++ {
		delete(s.queues, q)
		delete(s.acked, q)
	}
	t.first = first
	for q := first; q < first+3; q++ {
		s.acked[q] = make(map[record.Offset]bool)
	}
}

// stands says what a hash stands for.
func (s *simple) stands(h record.Hash) (simpleHash, bool) {
	e, ok := s.hashes[h]
	if !ok {
		return e, false
	}
	if e.until > s.high || s.halves[e.id] != nil {
		return e, true
	}
	_, _, v := s.verdict(e.id)
	return e, v == timeline.Done
}

func (s *simple) post(r record.Ref, t *record.Terms) Outcome {
	if t.Once != (record.Hash{}) {
		if e, counts := s.stands(t.Once); counts {
			return Outcome{Repeat: true, First: e.id, Mismatch: e.print != t.Print}
		}
	}
	var took record.ID
	if t.Name != (record.Hash{}) {
		if e, ok := s.hashes[t.Name]; ok {
			if h := s.halves[e.id]; h != nil {
				s.endHalf(e.id)
				s.msgs[e.id].cancelled = true
				took = e.id
			} else if s.cancel(e.id) == timeline.Done {
				took = e.id
			}
		}
	}
	sent := r
	var out Outcome
	if t.Half {
		sent.Due = 0
		s.msgs[r.ID] = &simpleMessage{sent: sent}
		r.Kind, r.Due, r.Level = record.KindCheck, t.Check, 0
		r = s.lift(r)
		s.waiting = append(s.waiting, r)
		s.waits(r.ID)
		s.halves[r.ID] = &simpleHalf{ref: r, delay: t.Delay}
		out = Outcome{Due: r.Due}
	} else {
		out = s.send(r)
		if sent.Due <= s.stamp {
			sent.Due = 0
		}
	}
	out.First = took
	if t.Once != (record.Hash{}) {
		s.hashes[t.Once] = simpleHash{r.ID, t.Print, t.Until}
	}
	if t.Name != (record.Hash{}) {
		s.hashes[t.Name] = simpleHash{r.ID, 0, sent.Due}
	}
	return out
}

func (s *simple) endHalf(id record.ID) {
	i := s.find(id)
	s.waiting = slices.Delete(s.waiting, i, i+1)
	delete(s.halves, id)
	s.leaves(id)
}

func (s *simple) decide(id record.ID, commit bool, due int64) Outcome {
	h := s.halves[id]
	if h == nil {
		return Outcome{Verdict: timeline.NotWaiting}
	}
	s.endHalf(id)
	if !commit {
		s.msgs[id].cancelled = true
		return Outcome{Verdict: timeline.Done}
	}
	r := h.ref
	r.Kind, r.Due = record.KindMessage, due
	out := s.file(r)
	out.Verdict = timeline.Done
	return out
}

// carry says whether a carry up to a position is done.
func (s *simple) carry(to record.ID, last uint64) bool {
	for id := range s.halves {
		if id < to {
			return false
		}
	}
	if to <= s.carried || uint64(to)/testSegment < s.first || uint64(to)/testSegment > last/testSegment {
		return false
	}
	for n := s.first; n < uint64(to)/testSegment; n++ {
		if p := s.segment[n]; p != nil {
			clear(p.waiting)
		}
	}
	s.carried = to
	return true
}

func (s *simple) cut(before int64, last uint64) {
	s.trim = max(s.trim, min(before, s.stamp))
	for s.first < last/testSegment {
		p := s.segment[s.first]
		if p != nil && (len(p.waiting) > 0 || p.left >= s.trim) {
			return
		}
		if p == nil && s.trim == 0 {
			return
		}
		s.first++
	}
}
