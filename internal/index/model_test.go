package index_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/index"
)

var (
	modelSeed = flag.Uint64("model.seed", 0, "run the model test with this seed only")
	modelRuns = flag.Uint64("model.runs", 8, "how many seeds the model test runs")
)

// modelSpaces are those of the model test; 'c' holds sums.
var modelSpaces = []index.Space{'c', 'q', 'r', 0x01, 0xfe}

// model is what an index should hold: maps, and nothing clever.
type model map[index.Space]map[string]string

func (m model) clone() model {
	c := model{}
	for s, keys := range m {
		c[s] = maps.Clone(keys)
	}
	return c
}

func (m model) sum(key string) int64 {
	value, ok := m['c'][key]
	if !ok {
		return 0
	}
	n, err := index.Sum([]byte(value))
	if err != nil {
		panic(err)
	}
	return n
}

func (m model) deleteRange(s index.Space, lower, upper []byte) {
	maps.DeleteFunc(m[s], func(key, _ string) bool {
		return key >= string(lower) && (upper == nil || key < string(upper))
	})
}

// walker runs one random history.
type walker struct {
	t     *testing.T
	rng   *rand.Rand
	fs    vfs.FS
	x     *index.Index
	m     model
	views []view
	step  int
}

// view is an iterator and what it has to show for as long as it is open.
type view struct {
	it           *index.Iter
	keys         []string
	values       map[string]string
	lower, upper []byte
}

func (w *walker) key() []byte {
	return fmt.Appendf(nil, "%03d", w.rng.IntN(200))
}

// bound is nil now and then.
func (w *walker) bound() []byte {
	if w.rng.IntN(5) == 0 {
		return nil
	}
	return w.key()
}

func (w *walker) space() index.Space { return modelSpaces[w.rng.IntN(len(modelSpaces))] }

// cut makes changes to some spaces and does the same to the model. A cut now and
// then is thrown away.
func (w *walker) cut() {
	c, after := w.x.NewCut(), w.m.clone()
	for _, i := range w.rng.Perm(len(modelSpaces))[:1+w.rng.IntN(3)] {
		s := modelSpaces[i]
		ranges := w.ranges(after, s)
		if w.rng.IntN(2) == 0 { // ranges do not hit keys of their own cut, so the order is free
			w.points(c, after, s)
			w.deleteRanges(c, s, ranges)
		} else {
			w.deleteRanges(c, s, ranges)
			w.points(c, after, s)
		}
	}
	if w.rng.IntN(8) == 0 {
		c.Abort()
		return
	}
	if err := c.Install(); err != nil {
		w.t.Fatalf("step %d: Install: %v", w.step, err)
	}
	w.m = after
}

// ranges draws ranges of a space that do not overlap, and takes them from the
// model.
func (w *walker) ranges(after model, s index.Space) [][]byte {
	if w.rng.IntN(3) > 0 {
		return nil
	}
	ends := make([][]byte, 2*w.rng.IntN(3))
	for i := range ends {
		ends[i] = w.key()
	}
	slices.SortFunc(ends, bytes.Compare)
	for i := 0; i < len(ends); i += 2 {
		after.deleteRange(s, ends[i], ends[i+1])
	}
	return ends
}

func (w *walker) deleteRanges(c *index.Cut, s index.Space, ends [][]byte) {
	for i := 0; i < len(ends); i += 2 {
		if err := c.DeleteRange(s, ends[i], ends[i+1]); err != nil {
			w.t.Fatalf("step %d: DeleteRange: %v", w.step, err)
		}
	}
}

func (w *walker) points(c *index.Cut, after model, s index.Space) {
	keys := map[string]bool{}
	for range w.rng.IntN(40) {
		keys[string(w.key())] = true
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		w.point(c, after, s, key)
	}
}

func (w *walker) point(c *index.Cut, after model, s index.Space, key string) {
	if after[s] == nil {
		after[s] = map[string]string{}
	}
	n := w.rng.Int64N(1000) - 500
	value := fmt.Sprintf("%d in step %d", n, w.step)
	if s == 'c' {
		value = string(index.AppendSum(nil, n))
	}
	var err error
	switch kind := w.rng.IntN(4); {
	case kind == 0:
		err = c.Delete(s, []byte(key))
		delete(after[s], key)
	case s == 'c' && kind > 1:
		err = c.Add(s, []byte(key), n)
		after[s][key] = string(index.AppendSum(nil, after.sum(key)+n))
	default:
		err = c.Set(s, []byte(key), []byte(value))
		after[s][key] = value
	}
	if err != nil {
		w.t.Fatalf("step %d: space %#02x key %s: %v", w.step, s, key, err)
	}
}

func (w *walker) excise() {
	s, lower, upper := w.space(), w.bound(), w.bound()
	if err := w.x.Excise(s, lower, upper); err != nil {
		w.t.Fatalf("step %d: Excise: %v", w.step, err)
	}
	w.m.deleteRange(s, lower, upper)
}

// look opens an iterator.
func (w *walker) look() {
	s := w.space()
	v := view{lower: w.bound(), upper: w.bound(), values: w.m[s]}
	v.values = maps.Clone(w.m[s])
	model{s: v.values}.keep(s, v.lower, v.upper)
	v.keys = slices.Sorted(maps.Keys(v.values))
	v.it = newIter(w.t, w.x, s, v.lower, v.upper)
	w.views = append(w.views, v)
}

// keep drops what is outside of the bounds.
func (m model) keep(s index.Space, lower, upper []byte) {
	maps.DeleteFunc(m[s], func(key, _ string) bool {
		return key < string(lower) || upper != nil && key >= string(upper)
	})
}

// wander moves an iterator about and compares each place with the model's.
func (w *walker) wander(v view) {
	at := -1 // nowhere
	for range 30 {
		key := w.key()
		target, _ := slices.BinarySearch(v.keys, string(key))
		var ok bool
		switch move := w.rng.IntN(6); {
		case move == 0:
			ok, at = v.it.First(), 0
		case move == 1:
			ok, at = v.it.Last(), len(v.keys)-1
		case move == 2:
			ok, at = v.it.SeekGE(key), target
		case move == 3:
			ok, at = v.it.SeekLT(key), target-1
		case at < 0 || at >= len(v.keys):
			continue
		case move == 4:
			ok, at = v.it.Next(), at+1
		default:
			ok, at = v.it.Prev(), at-1
		}
		want := at >= 0 && at < len(v.keys)
		if ok != want || v.it.Valid() != want || v.it.Error() != nil {
			w.t.Fatalf("step %d: iterator in %q at %d: %v, want %v, error %v", w.step, v.keys, at, ok, want, v.it.Error())
		}
		if ok && (string(v.it.Key()) != v.keys[at] || string(v.it.Value()) != v.values[v.keys[at]]) {
			w.t.Fatalf("step %d: iterator shows %s=%x, want %s=%x", w.step, v.it.Key(), v.it.Value(), v.keys[at], v.values[v.keys[at]])
		}
	}
}

// closeViews checks and closes all iterators.
func (w *walker) closeViews() {
	for _, v := range w.views {
		w.wander(v)
		got := drain(w.t, v.it)
		for i, key := range v.keys {
			if want := key + "=" + v.values[key]; i >= len(got) || got[i] != want {
				w.t.Fatalf("step %d: a view of %d keys shows %d, not %q", w.step, len(v.keys), len(got), want)
			}
		}
	}
	w.views = nil
}

// verify compares everything.
func (w *walker) verify() {
	for _, s := range modelSpaces {
		got := list(w.t, w.x, s)
		want := make([]string, 0, len(w.m[s]))
		for _, key := range slices.Sorted(maps.Keys(w.m[s])) {
			want = append(want, key+"="+w.m[s][key])
		}
		if !slices.Equal(got, want) {
			w.t.Fatalf("step %d: space %#02x holds\n%q\nwant\n%q", w.step, s, got, want)
		}
	}
	for range 20 {
		s, key := w.space(), w.key()
		got, ok, err := w.x.Get(nil, s, key)
		want, there := w.m[s][string(key)]
		if ok != there || string(got) != want || err != nil {
			w.t.Fatalf("step %d: Get %#02x %s = %q, %v, %v, want %q, %v", w.step, s, key, got, ok, err, want, there)
		}
	}
}

func (w *walker) reopen() {
	w.closeViews()
	if err := w.x.Close(); err != nil {
		w.t.Fatalf("step %d: Close: %v", w.step, err)
	}
	w.x = open(w.t, w.fs)
}

// Random histories against maps: cuts with all kinds of changes, excises, views
// held open meanwhile, restarts, with compactions in the background.
func TestModel(t *testing.T) {
	first, last := uint64(1), *modelRuns
	if *modelSeed != 0 {
		first, last = *modelSeed, *modelSeed
	}
	for seed := first; seed <= last; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			fs := vfs.NewMem()
			w := &walker{t: t, rng: rand.New(rand.NewPCG(seed, 1)), fs: fs, x: open(t, fs), m: model{}}
			defer func() {
				if t.Failed() {
					t.Logf("again with: go test ./internal/index -run TestModel -model.seed=%d", seed)
				}
				for _, v := range w.views {
					_ = v.it.Close()
				}
			}()
			compactions := int64(0)
			for w.step = range 400 {
				switch n := w.rng.IntN(100); {
				case n < 80:
					w.cut()
				case n < 88 && len(w.views) < 4:
					w.look()
				case n < 94:
					w.closeViews()
				case n < 98:
					w.excise()
				case n < 99:
					compactions += w.x.Metrics().Compactions
					w.reopen()
				default:
					w.verify()
				}
			}
			w.closeViews()
			w.verify()
			if compactions += w.x.Metrics().Compactions; compactions == 0 {
				t.Error("the history caused no compaction: it proves little")
			}
		})
	}
}
