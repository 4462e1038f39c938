package index_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/duemq/duemq/internal/index"
)

// spaces are those that a generation writes, with their tables of different
// sizes: most of a cut's life is spent in the large one.
var spaces = map[index.Space]int{'a': 1, 'q': 40, 'r': 400}

// generation builds a cut that says its number in every space: each key holds
// it, and 'c' counts generations.
func generation(x *index.Index, n int) *index.Cut {
	c := x.NewCut()
	for s, size := range spaces {
		for i := range size {
			c.Set(s, fmt.Appendf(nil, "%04d", i), fmt.Appendf(nil, "generation %d", n))
		}
	}
	c.Add('c', []byte("generations"), 1)
	return c
}

// cleared is a generation that also deletes all that was there before. Pebble
// compacts that in the background as soon as it sees it, which tests that count
// operations cannot use.
func cleared(x *index.Index, n int) *index.Cut {
	c := generation(x, n)
	for s := range spaces {
		c.DeleteRange(s, nil, nil)
		c.Delete(s, []byte("9"))
	}
	return c
}

// digest reads all spaces and says which generation they hold. Spaces that hold
// different ones are an error: the cut was not atomic.
func digest(x *index.Index) (int, error) {
	n := 0
	value, ok, err := x.Get(nil, 'c', []byte("generations"))
	if err != nil {
		return 0, err
	}
	if ok {
		sum, err := index.Sum(value)
		if err != nil {
			return 0, err
		}
		n = int(sum)
	}
	for s, size := range spaces {
		if n == 0 {
			size = 0
		}
		want := fmt.Sprintf("generation %d", n)
		it, err := x.NewIter(s, nil, nil)
		if err != nil {
			return 0, err
		}
		keys := 0
		for ok := it.First(); ok; ok = it.Next() {
			if got := string(it.Value()); got != want {
				return 0, errors.Join(fmt.Errorf("space %c: %s holds %q, counted %q", s, it.Key(), got, want), it.Close())
			}
			keys++
		}
		if err := it.Close(); err != nil {
			return 0, err
		}
		if keys != size {
			return 0, fmt.Errorf("space %c: %d keys of generation %d, want %d", s, keys, n, size)
		}
	}
	return n, nil
}

// crasher takes a copy of the disk before each operation that changes it, as a
// power loss at that moment would leave it.
type crasher struct {
	mem  *vfs.MemFS
	rng  *rand.Rand
	keep int // percent of what was not synced that survives

	mu     sync.Mutex
	active bool
	clones []clone
}

type clone struct {
	fs   *vfs.MemFS
	when string
}

func newCrasher(keep int, seed uint64) (*crasher, vfs.FS) {
	c := &crasher{mem: vfs.NewCrashableMem(), keep: keep, rng: rand.New(rand.NewPCG(seed, uint64(keep)))}
	return c, errorfs.Wrap(c.mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			c.crash(fmt.Sprintf("before operation %d on %s", op.Kind, op.Path))
		}
		return nil
	}))
}

func (c *crasher) crash(when string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active {
		cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: c.keep, RNG: c.rng}
		c.clones = append(c.clones, clone{c.mem.CrashClone(cfg), when})
	}
}

// during runs f and gives the copies taken meanwhile.
func (c *crasher) during(f func()) []clone {
	c.set(true)
	f()
	c.set(false)
	c.mu.Lock()
	defer c.mu.Unlock()
	clones := c.clones
	c.clones = nil
	return clones
}

func (c *crasher) set(active bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.active = active
}

// reopen opens a copy of the disk and reads its generation.
func reopen(fs vfs.FS) (n int, err error) {
	x, err := index.Open(index.Options{FS: fs, Dir: "idx"})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	return digest(x)
}

// crashes runs three generations with a crash at each operation and gives what
// is wrong with the disks that are left: each must hold the generation before
// or the whole of the new one, and after Install the new one.
func crashes(t *testing.T, keep int, seed uint64, bugs index.Bugs) (tried int, wrong []string) {
	c, fs := newCrasher(keep, seed)
	x, err := index.Open(index.Options{FS: fs, Dir: "idx", Bugs: bugs})
	if err != nil {
		t.Fatal(err)
	}
	check := func(cl clone, low, high int) {
		tried++
		n, err := reopen(cl.fs)
		if err == nil && (n < low || n > high) {
			err = fmt.Errorf("generation %d, want %d to %d", n, low, high)
		}
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %v", cl.when, err))
		}
	}
	for n := 1; n <= 3; n++ {
		during := c.during(func() {
			if err := cleared(x, n).Install(); err != nil {
				t.Fatalf("generation %d: %v", n, err)
			}
		})
		for _, cl := range during {
			check(cl, n-1, n)
		}
		after := c.during(func() { c.crash("after Install") })
		check(after[0], n, n)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	return tried, wrong
}

// A power loss at any operation of an install leaves all spaces as they were or
// all of them new, whatever the disk kept of what was not synced.
func TestCrashAnywhereInInstall(t *testing.T) {
	for _, keep := range []int{0, 30, 70} {
		for seed := range uint64(3) {
			tried, wrong := crashes(t, keep, seed, index.Bugs{})
			if tried < 50 {
				t.Errorf("only %d crashes with %d %% kept", tried, keep)
			}
			for _, w := range wrong {
				t.Errorf("%d %% kept, seed %d: %s", keep, seed, w)
			}
		}
	}
}

// The test above must see the mistakes that it is there for.
func TestCrashSeesSeededBugs(t *testing.T) {
	for name, bugs := range map[string]index.Bugs{
		"applied index ahead of its data": {AppliedAhead: 'c'},
		"a table that is not synced":      {SkipTableSync: true},
		"a directory that is not synced":  {SkipDirSync: true},
	} {
		t.Run(name, func(t *testing.T) {
			found := 0
			for _, keep := range []int{0, 30, 70} {
				tried, wrong := crashes(t, keep, 1, bugs)
				t.Logf("%d %% kept: %d of %d crashes show it", keep, len(wrong), tried)
				found += len(wrong)
			}
			if found == 0 {
				t.Error("nobody noticed")
			}
		})
	}
}

// A power loss while an index is made, and while it is opened again, must not
// keep it from being opened.
func TestCrashAnywhereInOpenAndExcise(t *testing.T) {
	for i := range 30 {
		keep := []int{0, 30, 70}[i%3]
		c, fs := newCrasher(keep, uint64(i))
		var x *index.Index
		opening := func() {
			var err error
			if x, err = index.Open(index.Options{FS: fs, Dir: "idx"}); err != nil {
				t.Fatal(err)
			}
		}
		closing := func() {
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
		}
		check := func(step string, f func(), want string) {
			for _, cl := range c.during(f) {
				if n, err := reopen(cl.fs); err != nil || !strings.Contains(want, strconv.Itoa(n)) {
					t.Errorf("%s, %d %% kept, %s: generation %d, %v, want %s", step, keep, cl.when, n, err, want)
				}
			}
		}
		check("first open", opening, "0")
		if err := generation(x, 1).Install(); err != nil {
			t.Fatal(err)
		}
		check("close", closing, "1")
		check("open", opening, "1")
		check("excise of nothing", func() {
			if err := x.Excise('x', nil, nil); err != nil {
				t.Fatal(err)
			}
		}, "1")
		excised(t, c, x)
		closing()
	}
}

// excised crashes in an Excise that leaves the end of a table: it is done as a
// whole or not at all, and stays done.
func excised(t *testing.T, c *crasher, x *index.Index) {
	t.Helper()
	clones := c.during(func() {
		if err := x.Excise('r', nil, []byte("0390")); err != nil {
			t.Fatal(err)
		}
		c.crash("after Excise")
	})
	for i, cl := range clones {
		again, err := index.Open(index.Options{FS: cl.fs, Dir: "idx"})
		if err != nil {
			t.Errorf("excise: %s: %v", cl.when, err)
			continue
		}
		if n := len(list(t, again, 'r')); n != 10 && (n != 400 || i == len(clones)-1) {
			t.Errorf("excise: %s: %d keys", cl.when, n)
		}
		if n := len(list(t, again, 'q')); n != 40 {
			t.Errorf("excise: %s: %d keys in the space beside", cl.when, n)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
}
