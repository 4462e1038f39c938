package keys_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/keys"
	"github.com/duemq/duemq/internal/record"
)

var rewrite = flag.Bool("rewrite", false, "write the golden file anew")

const day = 24 * 60 * 60 * 1000

func open(t testing.TB) *index.Index {
	t.Helper()
	x, err := index.Open(index.Options{FS: fs.NewMem(), Dir: "index"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

// cut writes and installs a cut.
func cut(t testing.TB, db *index.Index, x *keys.Index, changes ...keys.Change) {
	t.Helper()
	f, c := x.Freeze(), db.NewCut()
	if err := f.Write(c, changes); err != nil {
		t.Fatal(err)
	}
	if err := c.Install(); err != nil {
		t.Fatal(err)
	}
	x.Install(f)
}

// find gives the ids found, with + behind them if there are more.
func find(t testing.TB, v keys.View, key string, before record.ID, limit int) string {
	t.Helper()
	found, more, err := v.Find(key, before, limit)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, m := range found {
		fmt.Fprintf(&b, "%d/%d ", m.ID, m.Queue)
	}
	if more {
		b.WriteByte('+')
	}
	return strings.TrimSpace(b.String())
}

func wantFind(t *testing.T, x *keys.Index, key, want string) {
	t.Helper()
	if got := find(t, x.Take(), key, 0, 100); got != want {
		t.Errorf("%q: found %q, want %q", key, got, want)
	}
}

func TestSum(t *testing.T) {
	// The published XXH64 of seed 0.
	if got := keys.Sum(nil); got != 0xef46db3751d8e999 {
		t.Errorf("hash of nothing is %x", got)
	}
	if got := keys.Sum([]byte("abc")); got != 0x44bc2cf5ad770999 {
		t.Errorf("hash of abc is %x", got)
	}
}

func TestSumsSplitsAtBlanks(t *testing.T) {
	a, b := keys.Sum([]byte("a")), keys.Sum([]byte("b"))
	for text, want := range map[string][]uint64{
		"":          nil,
		"   ":       nil,
		"a":         {a},
		"a b":       {a, b},
		"  a   b  ": {a, b},
		"b a b a":   {b, a},
		"a\tb":      {keys.Sum([]byte("a\tb"))},
	} {
		if got := keys.Sums(nil, []byte(text)); !slices.Equal(got, want) {
			t.Errorf("%q: %x, want %x", text, got, want)
		}
	}
	many := []byte(strings.Repeat("same ", 100))
	for i := range 2 * keys.MaxKeys {
		many = fmt.Appendf(many, "k%d ", i)
	}
	got := keys.Sums([]uint64{7}, many)
	if len(got) != 1+keys.MaxKeys || got[1] != keys.Sum([]byte("same")) || got[16] != keys.Sum([]byte("k14")) {
		t.Errorf("%d hashes of many keys", len(got)-1)
	}
}

func TestDay(t *testing.T) {
	for stored, want := range map[int64]uint32{
		0: 1, -5: 1, day: 1, 2*day - 1: 1, 2 * day: 2, 1_796_115_600_000: 20788, math.MaxInt64: math.MaxUint32,
	} {
		if got := keys.Day(stored); got != want {
			t.Errorf("day of %d is %d, want %d", stored, got, want)
		}
	}
}

func TestFindWhereverItLies(t *testing.T) {
	db := open(t)
	x := keys.New(db)
	x.Add([]byte("order-1 alice"), 5*day, 100, 1)
	x.Add([]byte("order-2 alice"), 5*day, 101, 2)
	wantFind(t, x, "alice", "101/2 100/1")
	f := x.Freeze()
	x.Add([]byte("alice"), 6*day, 200, 3)
	wantFind(t, x, "alice", "200/3 101/2 100/1") // frozen and live
	x.Abandon(f)
	wantFind(t, x, "alice", "200/3 101/2 100/1")
	if x.Memory() != 5 {
		t.Errorf("%d keys in memory", x.Memory())
	}
	cut(t, db, x)
	if x.Memory() != 0 {
		t.Errorf("%d keys in memory after a cut", x.Memory())
	}
	x.Add([]byte("alice"), 6*day, 201, 4)
	wantFind(t, x, "alice", "201/4 200/3 101/2 100/1")
	wantFind(t, x, "order-1", "100/1")
	wantFind(t, x, "nobody", "")
	wantFind(t, x, "", "")
	wantFind(t, keys.New(db), "alice", "200/3 101/2 100/1") // after a restart
}

// A view goes on finding what it had, each once, when a cut moves it to the
// index.
func TestViewOutlivesACut(t *testing.T) {
	db := open(t)
	x := keys.New(db)
	for i := range 10 {
		x.Add([]byte("k"), 5*day, record.ID(100+i), 1)
	}
	f := x.Freeze()
	x.Add([]byte("k"), 5*day, 200, 1)
	v := x.Take()
	want := find(t, v, "k", 0, 6)
	c := db.NewCut()
	if err := f.Write(c, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Install(); err != nil {
		t.Fatal(err)
	}
	x.Install(f)
	cut(t, db, x)
	if got := find(t, v, "k", 0, 6); got != want || got != "200/1 109/1 108/1 107/1 106/1 105/1 +" {
		t.Errorf("found %q, before the cuts %q", got, want)
	}
}

// Views are read while keys are added; the race detector looks on.
func TestViewBesideAdd(t *testing.T) {
	db := open(t)
	x := keys.New(db)
	var mu sync.RWMutex
	var wg sync.WaitGroup
	var done atomic.Bool
	for range 2 {
		wg.Go(func() {
			for !done.Load() {
				mu.RLock()
				v, want := x.Take(), x.Memory()
				mu.RUnlock()
				found, _, err := v.Find("k", 0, 10_000)
				if err != nil || len(found) != want {
					t.Errorf("%d of %d found, %v", len(found), want, err)
					return
				}
			}
		})
	}
	for i := range 5000 {
		mu.Lock()
		if i == 4097 {
			x.Abandon(x.Freeze())
		}
		x.Add([]byte("k"), 5*day, record.ID(i+1), 1)
		mu.Unlock()
	}
	done.Store(true)
	wg.Wait()
	if x.Memory() != 5000 {
		t.Errorf("%d keys in memory", x.Memory())
	}
}

func TestDrop(t *testing.T) {
	db := open(t)
	x := keys.New(db)
	for i := range 5 {
		x.Add([]byte("k"), int64(i+3)*day, record.ID(100+i), 1)
	}
	cut(t, db, x, keys.Change{Hash: keys.Sum([]byte("k")), ID: 50, Queue: 9})
	x.Drop(4)
	x.Drop(2) // changes nothing
	wantFind(t, x, "k", "104/1 103/1 102/1 101/1 100/1 50/9")
	x.Abandon(x.Freeze()) // a cut that fails keeps them, and the next one does not
	wantFind(t, x, "k", "104/1 103/1 102/1 101/1 100/1 50/9")
	x.Add([]byte("k"), 4*day, 200, 2) // of a clock that was set back
	cut(t, db, x)
	wantFind(t, x, "k", "200/2 104/1 103/1 102/1 50/9")
	x.Drop(4) // no day that has not left: no range in the index for it
	cut(t, db, x)
	wantFind(t, x, "k", "200/2 104/1 103/1 102/1 50/9")
	x.Drop(5)
	cut(t, db, x)
	wantFind(t, x, "k", "104/1 103/1 50/9")
	x.Drop(math.MaxUint32)
	cut(t, db, x)
	wantFind(t, x, "k", "50/9")
	cut(t, db, x)
	wantFind(t, x, "k", "50/9")
}

func TestCarry(t *testing.T) {
	db := open(t)
	x := keys.New(db)
	a, b := keys.Sum([]byte("a")), keys.Sum([]byte("b"))
	x.Add([]byte("a b"), 3*day, 100, 1)
	x.Add([]byte("b"), 3*day, 101, 1)
	cut(t, db, x)
	x.Add([]byte("a"), 4*day, 200, 1)
	cut(t, db, x, keys.Change{Hash: b, ID: 100, Queue: 1}, keys.Change{Hash: a, ID: 100, Queue: 1}) // in any order
	wantFind(t, x, "a", "200/1 100/1")                                                              // each once
	wantFind(t, x, "b", "101/1 100/1")
	x.Drop(3)
	cut(t, db, x)
	wantFind(t, x, "a", "200/1 100/1")
	wantFind(t, x, "b", "100/1")
	cut(t, db, x,
		keys.Change{Hash: a, ID: 100, Gone: true}, keys.Change{Hash: b, ID: 100, Gone: true},
		keys.Change{Hash: a, ID: 150, Queue: 1}, keys.Change{Hash: a, ID: 150, Gone: true}, // of two the second
		keys.Change{Hash: a, ID: 151, Gone: true}, keys.Change{Hash: a, ID: 151, Queue: 1})
	wantFind(t, x, "a", "200/1 151/1")
	wantFind(t, x, "b", "")
}

// Write sorts a copy.
func TestCarryLeavesTheListAlone(t *testing.T) {
	db := open(t)
	x := keys.New(db)
	list := []keys.Change{{Hash: 2, ID: 1}, {Hash: 1, ID: 1}}
	before := slices.Clone(list)
	cut(t, db, x, list...)
	if !slices.Equal(list, before) {
		t.Errorf("the caller's list became %v", list)
	}
}

// Two keys of one hash are told apart by nobody here; one message is still named
// once.
func TestCollision(t *testing.T) {
	db := open(t)
	x := keys.New(db)
	x.Add([]byte("k k k"), 3*day, 100, 1)
	wantFind(t, x, "k", "100/1")
	cut(t, db, x)
	wantFind(t, x, "k", "100/1")
}

func TestFindPages(t *testing.T) {
	db := open(t)
	x := keys.New(db)
	for i := range 9 {
		x.Add([]byte("k other"), int64(3+i/2)*day, record.ID(100+i), 1)
		if i == 6 {
			cut(t, db, x)
		}
	}
	for _, c := range []struct {
		before record.ID
		limit  int
		want   string
	}{
		{0, 3, "108/1 107/1 106/1 +"},
		{106, 3, "105/1 104/1 103/1 +"},
		{103, 3, "102/1 101/1 100/1"},
		{100, 3, ""},
		{1, 3, ""},
		{math.MaxUint64, 1, "108/1 +"},
		{104, 100, "103/1 102/1 101/1 100/1"},
		{0, 0, ""},
		{0, -1, ""},
	} {
		if got := find(t, x.Take(), "k", c.before, c.limit); got != c.want {
			t.Errorf("before %d, %d of them: %q, want %q", c.before, c.limit, got, c.want)
		}
	}
}

// model is the plainest thing with the same meaning.
type model struct{ rows []row }

type row struct {
	key   string
	day   uint32 // 0: carried
	match keys.Match
}

func (m *model) find(key string, before record.ID, limit int) string {
	var ids []keys.Match
	for _, r := range m.rows {
		if r.key == key && (before == 0 || r.match.ID < before) {
			ids = append(ids, r.match)
		}
	}
	slices.SortFunc(ids, func(a, b keys.Match) int { return int(b.ID) - int(a.ID) })
	ids = slices.Compact(ids)
	var b strings.Builder
	for _, m := range ids[:min(limit, len(ids))] {
		fmt.Fprintf(&b, "%d/%d ", m.ID, m.Queue)
	}
	if len(ids) > limit {
		b.WriteByte('+')
	}
	return strings.TrimSpace(b.String())
}

// change carries an old message, or lets one go that is carried.
func (m *model) change(r *rand.Rand) []keys.Change {
	if len(m.rows) == 0 {
		return nil
	}
	i := r.IntN(len(m.rows))
	w := m.rows[i]
	c := keys.Change{Hash: keys.Sum([]byte(w.key)), ID: w.match.ID, Queue: w.match.Queue, Gone: w.day == 0}
	if w.day == 0 {
		m.rows = slices.Delete(m.rows, i, i+1)
	} else if w.day = 0; !slices.Contains(m.rows, w) {
		m.rows = append(m.rows, w)
	}
	return []keys.Change{c}
}

// TestIndexAgainstModel adds, cuts, carries and drops at random, with a clock
// that is set back now and then, cuts that fail and restarts.
func TestIndexAgainstModel(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 2))
		db := open(t)
		x, m := keys.New(db), &model{}
		stored, d := int64(10*day), uint32(0)
		for n := range 1000 {
			key := fmt.Sprintf("k%d", r.IntN(4))
			match := keys.Match{ID: record.ID(n + 1), Queue: record.QueueNumber(r.IntN(3))}
			x.Add([]byte(key), stored, match.ID, match.Queue)
			m.rows = append(m.rows, row{key, keys.Day(stored), match})
			stored += r.Int64N(day / 10)
			switch r.IntN(40) {
			case 0:
				cut(t, db, x, m.change(r)...)
			case 1:
				x.Abandon(x.Freeze())
			case 2:
				cut(t, db, x)
				x = keys.New(db)
			case 3:
				stored -= day * 3 / 2
			case 4:
				cut(t, db, x) // what is in memory would stay
				d = max(d+1, keys.Day(stored-5*day))
				x.Drop(d)
				cut(t, db, x)
				m.rows = slices.DeleteFunc(m.rows, func(w row) bool { return w.day > 0 && w.day <= d })
			}
			if n%3 > 0 {
				continue
			}
			before, limit := record.ID(r.IntN(n+2)), 1+r.IntN(20)
			if got, want := find(t, x.Take(), key, before, limit), m.find(key, before, limit); got != want {
				t.Fatalf("seed %d step %d: %s before %d: %q, want %q", seed, n, key, before, got, want)
			}
		}
	}
}

func TestFindSaysWhatIsWrong(t *testing.T) {
	for _, bad := range []struct{ key, value string }{
		{"short", "\x01"},
		{strings.Repeat("\xff", 4) + string(hashBytes("k")) + "\x00\x00\x00\x00\x00\x00\x00\x07", "\x01?"},
	} {
		db := open(t)
		c := db.NewCut()
		c.Set(keys.SpaceKeys, []byte(bad.key), []byte(bad.value))
		if err := c.Install(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := keys.New(db).Take().Find("k", 0, 10); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("key %x: %v", bad.key, err)
		}
	}
}

func hashBytes(key string) []byte {
	h := keys.Sum([]byte(key))
	b := make([]byte, 8)
	for i := range b {
		b[i] = byte(h >> (56 - 8*i))
	}
	return b
}

// TestGolden compares the bytes of the space with a recorded list. They are
// frozen: a change needs another line in docs/formats/index.md, and -rewrite.
func TestGolden(t *testing.T) {
	db := open(t)
	x := keys.New(db)
	x.Add([]byte("order-1 alice"), 1_796_115_600_000, 4096, 1)
	x.Add([]byte("alice"), 1_796_215_600_000, 1<<40, 70_000)
	cut(t, db, x, keys.Change{Hash: keys.Sum([]byte("bob")), ID: 300, Queue: 2})
	it, err := db.NewIter(keys.SpaceKeys, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	for ok := it.First(); ok; ok = it.Next() {
		fmt.Fprintf(&got, "%c %x = %x\n", keys.SpaceKeys, it.Key(), it.Value())
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join("testdata", "keys.golden")
	if *rewrite {
		if err := os.WriteFile(name, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("the index's bytes have changed:\n%s\nwant\n%s", got.Bytes(), want)
	}
}
