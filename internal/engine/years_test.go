package engine

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
	"github.com/duemq/duemq/internal/timeline"
)

// A marked body begins with a number and the same number masked, so that it is
// known wherever it is written.
const (
	markBytes = 16
	markMask  = 0x5ca1ab1e_0ddba11d
)

func markedBody(rng *rand.Rand, mark uint64, size int) []byte {
	b := make([]byte, markBytes, size)
	binary.LittleEndian.PutUint64(b, mark)
	binary.LittleEndian.PutUint64(b[8:], mark^markMask)
	for len(b) < size {
		b = append(b, byte(rng.Uint32())) // nothing that could be compressed
	}
	return b
}

// A scale counts how often marked bodies are written to the log and to the
// tables of cuts. What the index writes by itself, compacting, is not counted.
type scale struct {
	fs.FS

	mu     sync.Mutex
	counts map[uint64]int
}

func (s *scale) weigh(f vfs.File, name string, err error) (vfs.File, error) {
	if err == nil && (strings.Contains(name, "data/log/") || strings.Contains(name, "data/index/cuts/")) {
		return &scaledFile{File: f, s: s}, nil
	}
	return f, err
}

func (s *scale) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := s.FS.Create(name, c)
	return s.weigh(f, name, err)
}

func (s *scale) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := s.FS.OpenReadWrite(name, c, opts...)
	return s.weigh(f, name, err)
}

func (s *scale) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := s.FS.ReuseForWrite(from, to, c)
	return s.weigh(f, to, err)
}

func (s *scale) times(mark uint64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[mark]
}

// A scaledFile looks at what is written. A mark may begin in one piece and end in
// the next.
type scaledFile struct {
	vfs.File

	s    *scale
	tail []byte
}

func (f *scaledFile) look(p []byte) {
	data := slices.Concat(f.tail, p)
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	at := 0
	for ; at+markBytes <= len(data); at++ {
		if m := binary.LittleEndian.Uint64(data[at:]); m^markMask == binary.LittleEndian.Uint64(data[at+8:]) {
			f.s.counts[m]++
		}
	}
	f.tail = bytes.Clone(data[at:])
}

func (f *scaledFile) Write(p []byte) (int, error) {
	f.look(p)
	return f.File.Write(p)
}

func (f *scaledFile) WriteAt(p []byte, off int64) (int, error) {
	f.tail = nil
	f.look(p)
	return f.File.WriteAt(p, off)
}

// A decade is a store on a fake clock, worked on as a scheduler would that
// somebody uses for years.
type decade struct {
	t     *testing.T
	rng   *rand.Rand
	clock *clock.Fake
	scale *scale
	o     Options
	e     *Engine
	tp    *Topic
	next  []record.Offset // per queue: the first entry not looked at
	marks uint64
	long  map[uint64]*longWait // by mark
}

// A longWait is a message that waits for weeks or months.
type longWait struct {
	id    record.ID
	due   int64
	body  []byte
	moved int // times that it was given another due
	seen  bool
	gone  bool // cancelled
}

func newDecade(t *testing.T) *decade {
	d := &decade{
		t: t, rng: rand.New(rand.NewPCG(7, 7)), clock: clock.NewFake(testStart),
		scale: &scale{FS: fs.NewMem(), counts: make(map[uint64]int)}, long: make(map[uint64]*longWait),
	}
	d.o = options(d.scale, d.clock)
	d.o.SegmentBytes, d.o.MaxDelay = 64<<10, 2*365*24*time.Hour
	d.open()
	d.tp = topic(t, d.e, "t", 2)
	d.next = make([]record.Offset, d.tp.Queues)
	return d
}

func (d *decade) open() {
	d.t.Helper()
	var err error
	if d.e, err = Open(d.t.Context(), d.o); err != nil {
		d.t.Fatal(err)
	}
	d.tp = d.e.TopicNamed("t")
}

// traffic sends short messages, some under a key, a name or an idempotency key.
func (d *decade) traffic(n int) {
	d.t.Helper()
	sends := make([]Send, n)
	for i := range sends {
		s := &sends[i]
		*s = Send{Topic: d.tp.Number, Turn: d.tp, Delay: Delay{DelayAfter, int64(d.rng.IntN(30 * hourMs))}}
		d.marks++
		s.Message = record.Message{Body: markedBody(d.rng, d.marks, 200), Key: fmt.Sprint("key-", d.rng.IntN(1000))}
		switch i % 10 {
		case 0:
			s.Terms.Once = record.Hash{1, byte(d.marks), byte(d.marks >> 8)}
		case 1:
			s.Terms.Name = record.Hash{2, byte(d.marks), byte(d.marks >> 8)}
		case 2:
			s.Delay = Delay{DelayLevel, int64(i % 18)}
		}
	}
	if err := d.e.Send(d.t.Context(), sends); err != nil {
		d.t.Fatal(err)
	}
}

// schedule sends a message that waits for days.
func (d *decade) schedule(days int) {
	d.t.Helper()
	d.marks++
	body := markedBody(d.rng, d.marks, 700)
	s := []Send{{
		Message: record.Message{Body: body, Key: fmt.Sprint("long-", d.marks)}, Topic: d.tp.Number, Turn: d.tp,
		Delay: Delay{DelayAfter, int64(days) * 24 * hourMs},
	}}
	if err := d.e.Send(d.t.Context(), s); err != nil || s[0].Err != nil {
		d.t.Fatal(err, s[0].Err)
	}
	d.long[d.marks] = &longWait{id: s[0].ID, due: s[0].Due, body: body}
}

// steer moves or cancels something that waits for long.
func (d *decade) steer() {
	d.t.Helper()
	for _, w := range d.long { // any
		if w.seen || w.gone || w.due <= d.e.Now()+24*hourMs {
			continue
		}
		m, r, err := d.e.Find(w.id)
		if err != nil || !bytes.Equal(m.Body, w.body) {
			d.t.Fatalf("message %v of %v, due %d: %v", w.id, time.UnixMilli(d.e.Now()).UTC(), w.due, err)
		}
		if d.rng.IntN(4) == 0 {
			out, err := d.e.Cancel(d.t.Context(), r)
			if err != nil || out.Verdict != timeline.Done {
				d.t.Fatalf("cancel %v: %+v, %v", w.id, out, err)
			}
			w.gone = true
			return
		}
		w.due = d.e.Now() + int64(1+d.rng.IntN(20))*24*hourMs
		out, err := d.e.Reschedule(d.t.Context(), r, Delay{DelayAt, w.due})
		if err != nil || out.Verdict != timeline.Done || out.Due != w.due {
			d.t.Fatalf("reschedule %v: %+v, %v", w.id, out, err)
		}
		w.moved++
		return
	}
}

// pass lets time go by, looks at what became visible, and does what the keeper
// does once a second.
func (d *decade) pass(by time.Duration) {
	d.t.Helper()
	d.clock.Advance(by - time.Millisecond)
	settle(d.t, d.e)
	d.look()
	d.clock.Advance(time.Millisecond)
	settle(d.t, d.e)
	d.look()
	keepUp(d.t, d.e)
}

// look reads what became visible since the last look.
func (d *decade) look() {
	d.t.Helper()
	for i := range d.next {
		q := d.tp.FirstQueue + record.QueueNumber(i)
		_, end, err := d.e.Bounds(q)
		if err != nil {
			d.t.Fatal(err)
		}
		for d.next[i] < end {
			entries, err := d.e.Entries(nil, q, d.next[i], 100)
			if err != nil {
				d.t.Fatal(err)
			}
			d.e.Messages(entries, func(k int, m *record.Message, err error) {
				if err != nil || len(m.Body) < markBytes {
					d.t.Fatalf("message %v, due %d, visible %d: %v", entries[k].ID, entries[k].Due, entries[k].VisibleAt, err)
				}
				d.arrived(m, entries[k].VisibleAt)
			})
			d.next[i] += record.Offset(len(entries))
		}
	}
}

func (d *decade) arrived(m *record.Message, at int64) {
	d.t.Helper()
	mark := binary.LittleEndian.Uint64(m.Body)
	w := d.long[mark]
	if w == nil {
		return
	}
	if w.seen || w.gone || at != w.due || !bytes.Equal(m.Body, w.body) {
		d.t.Fatalf("message %v visible at %d, due %d; seen before %v, cancelled %v", w.id, at, w.due, w.seen, w.gone)
	}
	w.seen = true
	if n := d.scale.times(mark); n > 2+w.moved {
		d.t.Errorf("the body of message %v was written %d times, moved %d times", w.id, n, w.moved)
	}
}

func (d *decade) reopen() {
	d.t.Helper()
	if err := d.e.Close(); err != nil {
		d.t.Fatal(err)
	}
	d.open()
}

// rows is how many keys a space of the index holds.
func rows(t *testing.T, x *index.Index, s index.Space) (n int) {
	t.Helper()
	it, err := x.NewIter(s, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestYears has messages wait for 30 days and for a year among short ones: they
// arrive on time and unchanged, each body is written at most twice, and the space
// of what is over comes back.
func TestYears(t *testing.T) {
	d := newDecade(t)
	defer func() { _ = d.e.Close() }()
	step, daily := 12*time.Hour, 1
	if testing.Short() {
		step, daily = 24*time.Hour, 2
	}
	perStep := 120
	for day, steps := 0, 0; day < 430; steps++ {
		if day < 50 {
			for range daily {
				d.schedule(365)
			}
		}
		if day < 380 {
			d.schedule(30)
			d.traffic(perStep)
			if steps%5 == 4 {
				d.steer()
			}
		}
		d.pass(step)
		day = int(time.Duration(steps+1) * step / (24 * time.Hour))
		if steps%60 == 59 {
			d.reopen()
			d.checkSpace(step, perStep)
		}
	}
	for _, w := range d.long {
		if !w.seen && !w.gone {
			t.Errorf("message %v never came, due %d", w.id, w.due)
		}
	}
	d.checkEmpty()
	t.Logf("%d messages, %d of them long; %d carried in this run; log from %d to %d", d.marks, len(d.long), d.e.Stats().Carried, d.e.Stats().LogFirst, d.e.Stats().LogBytes)
}

// checkSpace bounds the log by what retention asks for.
func (d *decade) checkSpace(step time.Duration, perStep int) {
	d.t.Helper()
	s := d.e.Stats()
	perDay := int64(perStep*400+2000) * int64(24*time.Hour) / int64(step)
	if got, most := int64(s.LogBytes-s.LogFirst), 7*perDay+3*(64<<10); got > most {
		d.t.Errorf("at %v the log holds %d bytes, about %d a day are written", time.UnixMilli(d.e.Now()).UTC(), got, perDay)
	}
}

// checkEmpty demands that a store in which nothing happens any more holds next to
// nothing.
func (d *decade) checkEmpty() {
	d.t.Helper()
	for range 8 {
		d.pass(24 * time.Hour)
	}
	sends := make([]Send, 300) // a segment that is full can be given up
	for i := range sends {
		sends[i] = Send{Message: record.Message{Body: markedBody(d.rng, 0, 400)}, Topic: d.tp.Number, Turn: d.tp}
	}
	if err := d.e.Send(d.t.Context(), sends); err != nil {
		d.t.Fatal(err)
	}
	for range 8 {
		d.pass(24 * time.Hour)
	}
	for range exciseEvery {
		if err := d.e.Cut(); err != nil {
			d.t.Fatal(err)
		}
	}
	for _, s := range "bioyzckqdrpe" {
		if n := rows(d.t, d.e.index, index.Space(s)); n > 20 {
			d.t.Errorf("space %c holds %d rows", s, n)
		}
	}
	if s := d.e.Stats(); s.LogBytes-s.LogFirst > 2*64<<10 {
		d.t.Errorf("the log holds %d bytes", s.LogBytes-s.LogFirst)
	}
}
