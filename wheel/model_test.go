package wheel

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A model is a wheel without a wheel: a slice that is sorted when asked.
type model struct {
	tick    int64
	pointer int64 // in ticks
	tasks   []modelTask
	late    []modelTask // added by fire at or before the pointer
	firing  bool
	seq     int
}

type modelTask struct {
	due  int64 // in ticks
	turn int64 // the tick at which it fires
	seq  int   // order within a tick
	id   int
}

func newModel(tick, start int64) *model {
	m := &model{tick: tick}
	m.pointer = m.floor(start)
	return m
}

// floor and ceil divide by way of big steps down and small steps up, not as the
// wheel does.
func (m *model) floor(ms int64) int64 {
	if ms == math.MaxInt64 {
		return m.ceil(ms)
	}
	return (ms - ((ms%m.tick)+m.tick)%m.tick) / m.tick
}

func (m *model) ceil(ms int64) int64 {
	t := ms / m.tick
	if t*m.tick < ms {
		t++
	}
	return t
}

func (m *model) instant(t int64) int64 {
	if t > math.MaxInt64/m.tick {
		return math.MaxInt64
	}
	return t * m.tick
}

func (m *model) add(ms int64, id int) {
	task := modelTask{due: m.ceil(ms), id: id}
	if m.firing && task.due <= m.pointer {
		m.late = append(m.late, task)
		return
	}
	m.put(task)
}

func (m *model) put(task modelTask) {
	m.seq++
	task.seq = m.seq
	task.turn = max(task.due, m.pointer)
	m.tasks = append(m.tasks, task)
}

func (m *model) cancel(id int) bool {
	for _, l := range []*[]modelTask{&m.tasks, &m.late} {
		if i := slices.IndexFunc(*l, func(t modelTask) bool { return t.id == id }); i >= 0 {
			*l = slices.Delete(*l, i, i+1)
			return true
		}
	}
	return false
}

func (m *model) sort() {
	slices.SortFunc(m.tasks, func(a, b modelTask) int {
		return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(a.seq, b.seq))
	})
}

func (m *model) advance(now int64, limit int, fire func(due int64, id int)) (fired int) {
	target := max(m.floor(now), m.pointer)
	m.firing = true
	for {
		m.sort()
		if len(m.tasks) == 0 || m.tasks[0].turn > target {
			m.pointer = target
			break
		}
		m.pointer = m.tasks[0].turn
		if fired >= limit {
			break
		}
		task := m.tasks[0]
		m.tasks = m.tasks[1:]
		fired++
		fire(m.instant(task.due), task.id)
	}
	m.firing = false
	for _, task := range m.late {
		m.put(task)
	}
	m.late = nil
	return fired
}

func (m *model) next() (int64, bool) {
	m.sort()
	if len(m.tasks) == 0 {
		return 0, false
	}
	return m.instant(m.tasks[0].turn), true
}

func (m *model) nextFunc(keep func(id int) bool) (int64, bool) {
	m.sort()
	for len(m.tasks) > 0 && !keep(m.tasks[0].id) {
		m.tasks = m.tasks[1:]
	}
	return m.next()
}

func (m *model) rebase(now int64) {
	t := m.floor(now)
	if t >= m.pointer {
		return
	}
	m.sort()
	m.pointer = t
	tasks := m.tasks
	m.tasks = nil
	for _, task := range tasks {
		m.put(task)
	}
}

// A firing is what fire was told.
type firing struct {
	due int64
	id  int
}

// A duel holds a wheel against the model, action by action.
type duel struct {
	t       *rapid.T
	wheel   ring[int]
	model   *model
	handles []Handle // by id
	ids     int      // the model's next id
	span    int64    // ms that delays are drawn from
}

// delay draws a delay of any magnitude, as often short as long, now and then
// negative.
func (d *duel) delay(label string) int64 {
	limit := rapid.Int64Range(1, d.span).Draw(d.t, label+" magnitude")
	return rapid.Int64Range(-limit/8, limit).Draw(d.t, label)
}

// at returns the instant ms after the wheel's now, held within int64.
func (d *duel) at(ms int64) int64 {
	now := d.wheel.Now()
	if ms > 0 && now > math.MaxInt64-ms {
		return math.MaxInt64
	}
	return now + ms
}

func (d *duel) add(due int64) {
	d.handles = append(d.handles, d.wheel.Add(due, len(d.handles)))
}

func (d *duel) modelAdd(due int64) {
	d.model.add(due, d.ids)
	d.ids++
}

// react is what a fire function does, as a function of the task alone: nothing,
// or add a task soon, at this instant or in the past, or cancel a neighbour.
func react(f firing, add func(due int64), cancel func(id int)) {
	if f.due > math.MaxInt64-1000 {
		return
	}
	switch f.id % 11 {
	case 3:
		add(f.due + int64(f.id%37))
	case 5:
		add(f.due)
		add(f.due - 20)
	case 7:
		cancel(f.id + 1)
		cancel(f.id - 2)
	}
}

func (d *duel) advance(now int64, limit int) {
	var got, want []firing
	n := d.wheel.AdvanceLimit(now, limit, func(due int64, id int) {
		got = append(got, firing{due, id})
		react(firing{due, id}, d.add, func(id int) {
			if id >= 0 && id < len(d.handles) {
				d.wheel.Cancel(d.handles[id])
			}
		})
	})
	m := d.model.advance(now, limit, func(due int64, id int) {
		want = append(want, firing{due, id})
		react(firing{due, id}, d.modelAdd, func(id int) { d.model.cancel(id) })
	})
	if n != m || !slices.Equal(got, want) {
		d.t.Fatalf("AdvanceLimit(%d, %d) = %d %v, want %d %v", now, limit, n, got, m, want)
	}
}

func (d *duel) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"add": func(*rapid.T) {
			for range rapid.IntRange(1, 8).Draw(d.t, "tasks") {
				due := d.at(d.delay("due"))
				d.add(due)
				d.modelAdd(due)
			}
		},
		"cancel": func(t *rapid.T) {
			if len(d.handles) == 0 {
				return
			}
			id := rapid.IntRange(0, len(d.handles)-1).Draw(t, "id")
			v, ok := d.wheel.Cancel(d.handles[id])
			if want := d.model.cancel(id); ok != want || ok && v != id {
				t.Fatalf("Cancel(task %d) = %d, %t, want %t", id, v, ok, want)
			}
		},
		"cancel first": func(t *rapid.T) {
			if _, ok := d.model.next(); !ok {
				return
			}
			id := d.model.tasks[0].id
			if v, ok := d.wheel.Cancel(d.handles[id]); !ok || v != id {
				t.Fatalf("Cancel(task %d) = %d, %t", id, v, ok)
			}
			d.model.cancel(id)
		},
		"advance": func(*rapid.T) { d.advance(d.at(d.delay("advance")), math.MaxInt) },
		"limit": func(t *rapid.T) {
			d.advance(d.at(d.delay("advance")), rapid.IntRange(-1, 5).Draw(t, "limit"))
		},
		"next": func(t *rapid.T) {
			got, ok := d.wheel.Next()
			if want, wantOK := d.model.next(); got != want || ok != wantOK {
				t.Fatalf("Next() = %d, %t, want %d, %t", got, ok, want, wantOK)
			}
		},
		"to next": func(*rapid.T) {
			if due, ok := d.model.next(); ok && due > d.wheel.Now() {
				d.advance(due-1, math.MaxInt)
				d.advance(due, math.MaxInt)
			}
		},
		"next func": func(t *rapid.T) {
			modulus := rapid.IntRange(1, 6).Draw(t, "modulus")
			keep := func(id int) bool { return id%modulus == 0 }
			got, ok := d.wheel.NextFunc(keep)
			if want, wantOK := d.model.nextFunc(keep); got != want || ok != wantOK {
				t.Fatalf("NextFunc() = %d, %t, want %d, %t", got, ok, want, wantOK)
			}
		},
		"rebase": func(*rapid.T) {
			now := d.at(-d.delay("rebase"))
			d.wheel.Rebase(now)
			d.model.rebase(now)
		},
		"": d.check,
	}
}

// check runs after every action.
func (d *duel) check(t *rapid.T) {
	checkInvariants(t, d.wheel)
	if got, want := d.wheel.Now(), d.model.instant(d.model.pointer); got != want {
		t.Fatalf("Now() = %d, want %d", got, want)
	}
	if got, want := d.wheel.Len(), len(d.model.tasks); got != want {
		t.Fatalf("Len() = %d, want %d", got, want)
	}
	var got, want []firing
	for due, id := range d.wheel.All() {
		got = append(got, firing{due, id})
	}
	for _, task := range d.model.tasks {
		want = append(want, firing{d.model.instant(task.due), task.id})
	}
	byID := func(a, b firing) int { return cmp.Compare(a.id, b.id) }
	slices.SortFunc(got, byID)
	slices.SortFunc(want, byID)
	if !slices.Equal(got, want) {
		t.Fatalf("All() = %v, want %v", got, want)
	}
	if d.ids != len(d.handles) {
		t.Fatalf("fire added up to task %d, want %d", len(d.handles), d.ids)
	}
}

// startTimes are where a wheel's arithmetic could go wrong.
var startTimes = []int64{0, -1, -1000, 123456, 1_790_000_000_000, math.MaxInt64 - 5000}

func duelProperty(build func(t *rapid.T, tick, start int64) (ring[int], int64)) func(*rapid.T) {
	return func(t *rapid.T) {
		tick := rapid.SampledFrom([]int64{1, 3, 10, 1000}).Draw(t, "tick")
		start := rapid.SampledFrom(startTimes).Draw(t, "start")
		w, span := build(t, tick, start)
		d := &duel{t: t, wheel: w, model: newModel(tick, start), span: span}
		t.Repeat(d.actions())
	}
}

func hierarchicalDuel(t *rapid.T, tick, start int64) (ring[int], int64) {
	c := Config{
		Tick:   tick,
		Slots:  rapid.SampledFrom([]int{2, 4, 8, 64, 256}).Draw(t, "slots"),
		Levels: rapid.IntRange(1, 5).Draw(t, "levels"),
	}
	w, err := NewHierarchical[int](c, start)
	if err != nil {
		t.Fatalf("NewHierarchical(%+v): %v", c, err)
	}
	span := tick
	for range c.Levels {
		span *= int64(c.Slots)
	}
	return w, min(2*span, 1<<40)
}

func singleDuel(t *rapid.T, tick, start int64) (ring[int], int64) {
	c := SingleConfig{Tick: tick, Slots: rapid.SampledFrom([]int{1, 2, 7, 8, 60, 200}).Draw(t, "slots")}
	w, err := NewSingleLevel[int](c, start)
	if err != nil {
		t.Fatalf("NewSingleLevel(%+v): %v", c, err)
	}
	return w, 5 * tick * int64(c.Slots)
}

// TestModel holds both wheels against a sorted slice, over random additions,
// cancellations, advances with and without a limit, clocks set back, and fire
// functions that do the same.
func TestModel(t *testing.T) {
	t.Run("hierarchical", func(t *testing.T) { rapid.Check(t, duelProperty(hierarchicalDuel)) })
	t.Run("single", func(t *testing.T) { rapid.Check(t, duelProperty(singleDuel)) })
}

func FuzzHierarchical(f *testing.F) { f.Fuzz(rapid.MakeFuzz(duelProperty(hierarchicalDuel))) }

func FuzzSingleLevel(f *testing.F) { f.Fuzz(rapid.MakeFuzz(duelProperty(singleDuel))) }
