package index_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/index"
)

// open opens an index in "idx" and closes it at the end of the test.
func open(t testing.TB, fs vfs.FS) *index.Index {
	t.Helper()
	x, err := index.Open(index.Options{FS: fs, Dir: "idx"})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return x
}

// install runs build on a cut and installs it.
func install(t testing.TB, x *index.Index, build func(c *index.Cut)) {
	t.Helper()
	c := x.NewCut()
	build(c)
	if err := c.Install(); err != nil {
		t.Fatalf("Install: %v", err)
	}
}

// set puts "key=value" pairs into a space, in the order given.
func set(c *index.Cut, s index.Space, pairs ...string) {
	for _, p := range pairs {
		key, value, _ := strings.Cut(p, "=")
		c.Set(s, []byte(key), []byte(value))
	}
}

func newIter(t testing.TB, x *index.Index, s index.Space, lower, upper []byte) *index.Iter {
	t.Helper()
	it, err := x.NewIter(s, lower, upper)
	if err != nil {
		t.Fatalf("NewIter(%#02x): %v", s, err)
	}
	return it
}

// drain reads what an iterator shows as "key=value" and closes it.
func drain(t testing.TB, it *index.Iter) []string {
	t.Helper()
	var all []string
	for ok := it.First(); ok; ok = it.Next() {
		all = append(all, fmt.Sprintf("%s=%s", it.Key(), it.Value()))
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		t.Fatalf("iterator: %v", err)
	}
	return all
}

// list reads a space.
func list(t testing.TB, x *index.Index, s index.Space) []string {
	t.Helper()
	return drain(t, newIter(t, x, s, nil, nil))
}

func wantList(t testing.TB, x *index.Index, s index.Space, want ...string) {
	t.Helper()
	if got := list(t, x, s); !slices.Equal(got, want) {
		t.Errorf("space %c holds %v, want %v", s, got, want)
	}
}

func TestSpacesDoNotSeeEachOther(t *testing.T) {
	x := open(t, vfs.NewMem())
	install(t, x, func(c *index.Cut) {
		set(c, 'r', "=empty", "a=1", "b=2")
		set(c, 'q', "a=3", "\xff\xff=4")
		set(c, 0x01, "a=5")
		set(c, 0xfe, "\xff=6")
	})
	wantList(t, x, 'r', "=empty", "a=1", "b=2")
	wantList(t, x, 'q', "a=3", "\xff\xff=4")
	wantList(t, x, 's')
	wantList(t, x, 0x01, "a=5")
	wantList(t, x, 0xfe, "\xff=6")

	got, ok, err := x.Get([]byte("v:"), 'q', []byte("a"))
	if string(got) != "v:3" || !ok || err != nil {
		t.Errorf("Get = %q, %v, %v", got, ok, err)
	}
	got, ok, err = x.Get([]byte("v:"), 's', []byte("a"))
	if string(got) != "v:" || ok || err != nil {
		t.Errorf("Get of nothing = %q, %v, %v", got, ok, err)
	}
}

func TestIterMovesWithinItsBounds(t *testing.T) {
	x := open(t, vfs.NewMem())
	install(t, x, func(c *index.Cut) {
		set(c, 'q', "z=9")
		set(c, 'r', "a=1", "b=2", "c=3", "d=4", "e=5")
		set(c, 's', "a=9")
	})
	for _, c := range []struct {
		lower, upper string
		want         string
	}{
		{"", "", "a=1 b=2 c=3 d=4 e=5"},
		{"b", "d", "b=2 c=3"},
		{"bb", "", "c=3 d=4 e=5"},
		{"c", "c", ""},
		{"d", "b", ""},
		{"x", "z", ""},
	} {
		var upper []byte
		if c.upper != "" {
			upper = []byte(c.upper)
		}
		got := drain(t, newIter(t, x, 'r', []byte(c.lower), upper))
		if strings.Join(got, " ") != c.want {
			t.Errorf("[%s, %s): %v, want %s", c.lower, c.upper, got, c.want)
		}
	}
	it := newIter(t, x, 'r', []byte("b"), []byte("e"))
	for _, m := range []struct {
		name string
		move func() bool
		want string
	}{
		{"First", it.First, "b"},
		{"Prev", it.Prev, ""},
		{"Last", it.Last, "d"},
		{"Next", it.Next, ""},
		{"SeekGE c", func() bool { return it.SeekGE([]byte("c")) }, "c"},
		{"Next", it.Next, "d"},
		{"SeekGE a", func() bool { return it.SeekGE([]byte("a")) }, "b"},
		{"SeekGE e", func() bool { return it.SeekGE([]byte("e")) }, ""},
		{"SeekLT c", func() bool { return it.SeekLT([]byte("c")) }, "b"},
		{"SeekLT zz", func() bool { return it.SeekLT([]byte("zz")) }, "d"},
		{"Prev", it.Prev, "c"},
		{"SeekLT b", func() bool { return it.SeekLT([]byte("b")) }, ""},
	} {
		ok := m.move()
		got := ""
		if it.Valid() {
			got = string(it.Key())
		}
		if ok != it.Valid() || got != m.want {
			t.Errorf("%s: at %q, %v, want %q", m.name, got, ok, m.want)
		}
	}
	if err := errors.Join(it.Close(), it.Close()); err != nil {
		t.Error(err)
	}
}

// What one table does to keys of older cuts and to its own. The order of calls
// is the one that could go wrong: the range before the key inside it.
func TestDeleteRangeNeverHitsItsOwnCut(t *testing.T) {
	x := open(t, vfs.NewMem())
	install(t, x, func(c *index.Cut) {
		set(c, 'r', "a=old", "b=old", "c=old", "d=old")
		set(c, 'q', "a=old", "b=old")
		c.Add('n', []byte("a"), 5)
		c.Add('n', []byte("b"), 5)
	})
	install(t, x, func(c *index.Cut) {
		c.DeleteRange('r', []byte("a"), []byte("d"))
		set(c, 'r', "b=new")
		set(c, 'q', "b=new")
		c.DeleteRange('q', nil, nil)
		c.DeleteRange('n', nil, []byte("b"))
		c.Add('n', []byte("a"), 1)
		c.DeleteRange('n', []byte("b"), []byte("b")) // empty
		c.Add('n', []byte("b"), 1)
	})
	wantList(t, x, 'r', "b=new", "d=old")
	wantList(t, x, 'q', "b=new")
	wantSum(t, x, 'n', "a", 1)
	wantSum(t, x, 'n', "b", 6)
}

func TestDeleteAndSetAgain(t *testing.T) {
	x := open(t, vfs.NewMem())
	install(t, x, func(c *index.Cut) { set(c, 'r', "a=1", "b=1", "c=1") })
	install(t, x, func(c *index.Cut) {
		c.Delete('r', []byte("a"))
		set(c, 'r', "b=2")
		c.Delete('r', []byte("x"))
	})
	wantList(t, x, 'r', "b=2", "c=1")
	install(t, x, func(c *index.Cut) { set(c, 'r', "a=3") })
	wantList(t, x, 'r', "a=3", "b=2", "c=1")
}

func wantSum(t testing.TB, x *index.Index, s index.Space, key string, want int64) {
	t.Helper()
	value, ok, err := x.Get(nil, s, []byte(key))
	if err != nil || !ok {
		t.Errorf("sum of %s: found %v, error %v", key, ok, err)
		return
	}
	if got, err := index.Sum(value); got != want || err != nil {
		t.Errorf("sum of %s = %d, %v, want %d", key, got, err, want)
	}
}

func TestAddSums(t *testing.T) {
	x := open(t, vfs.NewMem())
	want := int64(0)
	for i := range int64(60) {
		delta := (i - 20) * 1_000_003
		want += delta
		install(t, x, func(c *index.Cut) {
			c.Add('c', []byte("k"), delta)
			c.Add('c', []byte("zero"), 1-2*(i%2))
		})
	}
	wantSum(t, x, 'c', "k", want)
	wantSum(t, x, 'c', "zero", 0) // stays, until it is deleted
	install(t, x, func(c *index.Cut) {
		c.Set('c', []byte("k"), index.AppendSum(nil, 7))
		c.Delete('c', []byte("zero"))
	})
	install(t, x, func(c *index.Cut) { c.Add('c', []byte("k"), -8) })
	wantSum(t, x, 'c', "k", -1)
	if _, ok, _ := x.Get(nil, 'c', []byte("zero")); ok {
		t.Error("a deleted sum is still there")
	}
}

func TestIteratorKeepsItsView(t *testing.T) {
	x := open(t, vfs.NewMem())
	install(t, x, func(c *index.Cut) { set(c, 'r', "a=1", "b=1", "c=1") })
	before := newIter(t, x, 'r', nil, nil)
	install(t, x, func(c *index.Cut) {
		set(c, 'r', "a=2", "d=2")
		c.DeleteRange('r', []byte("b"), []byte("c"))
	})
	between := newIter(t, x, 'r', nil, nil)
	if err := x.Excise('r', nil, []byte("d")); err != nil {
		t.Fatal(err)
	}
	wantList(t, x, 'r', "d=2")
	if got := fmt.Sprint(drain(t, before)); got != "[a=1 b=1 c=1]" {
		t.Errorf("opened before the cut: %s", got)
	}
	if got := fmt.Sprint(drain(t, between)); got != "[a=2 c=1 d=2]" {
		t.Errorf("opened between cut and excise: %s", got)
	}
}

func TestExcise(t *testing.T) {
	fs := vfs.NewMem()
	x := open(t, fs)
	install(t, x, func(c *index.Cut) {
		set(c, 'q', "z=1")
		set(c, 'r', "a=1", "b=1", "c=1", "d=1")
		set(c, 's', "a=1")
		c.Add('c', []byte("k"), 5)
	})
	for _, b := range [][2]string{{"b", "b"}, {"d", "b"}, {"x", "y"}, {"b", "c"}} {
		if err := x.Excise('r', []byte(b[0]), []byte(b[1])); err != nil {
			t.Errorf("Excise [%s, %s): %v", b[0], b[1], err)
		}
	}
	if err := x.Excise('c', nil, nil); err != nil {
		t.Error(err)
	}
	install(t, x, func(c *index.Cut) {
		set(c, 'r', "bb=2")
		c.Add('c', []byte("k"), 2)
	})
	check := func(x *index.Index) {
		wantList(t, x, 'q', "z=1")
		wantList(t, x, 'r', "a=1", "bb=2", "c=1", "d=1")
		wantList(t, x, 's', "a=1")
		wantSum(t, x, 'c', "k", 2)
	}
	check(x)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	check(open(t, fs))
}

func TestCutRefusesDisorder(t *testing.T) {
	x := open(t, vfs.NewMem())
	for _, c := range []struct {
		name string
		do   func(c *index.Cut) error
		want string
	}{
		{"a key twice", func(c *index.Cut) error {
			set(c, 'r', "a=1")
			return c.Delete('r', []byte("a"))
		}, "space 0x72: key 61 does not come after 61"},
		{"the empty key twice", func(c *index.Cut) error {
			set(c, 'r', "=1")
			return c.Set('r', nil, nil)
		}, "space 0x72: key  does not come after "},
		{"a smaller key", func(c *index.Cut) error {
			set(c, 'r', "b=1")
			return c.Add('r', []byte("ab"), 1)
		}, "space 0x72: key 6162 does not come after 62"},
		{"an overlapping range", func(c *index.Cut) error {
			c.DeleteRange('r', []byte("a"), []byte("c"))
			return c.DeleteRange('r', []byte("b"), []byte("d"))
		}, "space 0x72: range from 62 begins before the last one ended"},
		{"space 0x00", func(c *index.Cut) error { return c.Set(0x00, nil, nil) }, "0x00 is not a space"},
		{"space 0xff", func(c *index.Cut) error { return c.DeleteRange(0xff, nil, nil) }, "0xff is not a space"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cut := x.NewCut()
			cut.Set('q', []byte(c.name), nil)
			if err := c.do(cut); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if err := cut.Install(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Install forgot the error: %v", err)
			}
		})
	}
	wantList(t, x, 'q')
	if _, err := x.NewIter(0xff, nil, nil); err == nil {
		t.Error("NewIter takes space 0xff")
	}
	if err := x.Excise(0x00, nil, nil); err == nil {
		t.Error("Excise takes space 0x00")
	}
}

// Slices belong to the caller again when a call has returned, and ranges and
// keys may come mixed.
func TestCutCopiesWhatItIsGiven(t *testing.T) {
	x := open(t, vfs.NewMem())
	install(t, x, func(c *index.Cut) {
		key, value := make([]byte, 4), make([]byte, 4)
		for i := range 2000 {
			copy(key, fmt.Sprintf("%04d", i))
			copy(value, fmt.Sprintf("%04d", i*3))
			c.Set('r', key, value)
			if i%100 == 0 {
				copy(key, fmt.Sprintf("%04d", i))
				copy(value, fmt.Sprintf("%04d", i+1))
				c.DeleteRange('r', key, value)
			}
			if i%400 == 0 {
				c.Add('c', key, int64(i))
			}
			clear(key)
			clear(value)
		}
	})
	got := list(t, x, 'r')
	for i, pair := range got {
		if want := fmt.Sprintf("%04d=%04d", i, i*3); pair != want {
			t.Fatalf("entry %d is %s, want %s", i, pair, want)
		}
	}
	if len(got) != 2000 {
		t.Errorf("%d entries, want 2000", len(got))
	}
	wantSum(t, x, 'c', "1600", 1600)
}

func TestCutEnds(t *testing.T) {
	fs := vfs.NewMem()
	x := open(t, fs)
	empty := x.NewCut()
	if err := empty.Install(); err != nil {
		t.Errorf("an empty cut: %v", err)
	}
	ranged := x.NewCut()
	ranged.DeleteRange('r', []byte("a"), []byte("a"))
	if err := ranged.Install(); err != nil {
		t.Errorf("a cut with an empty range: %v", err)
	}
	c := x.NewCut()
	set(c, 'r', "a=1")
	if c.Bytes() == 0 {
		t.Error("Bytes() = 0 with a key in it")
	}
	c.Abort()
	c.Abort()
	if err := c.Set('r', []byte("b"), nil); err == nil {
		t.Error("Set after Abort")
	}
	if err := c.Install(); err == nil {
		t.Error("Install after Abort")
	}
	wantList(t, x, 'r')
	if names, _ := fs.List("idx/cuts"); len(names) != 0 {
		t.Errorf("files left: %v", names)
	}
}

func TestBytesGrows(t *testing.T) {
	x := open(t, vfs.NewMem())
	c := x.NewCut()
	defer c.Abort()
	value := make([]byte, 100)
	var key [4]byte
	for i := range 10000 {
		key[0], key[1], key[2] = byte(i>>16), byte(i>>8), byte(i)
		for j := range value {
			value[j] = byte(i * j)
		}
		c.Set('r', key[:], value)
	}
	if n := c.Bytes(); n < 10_000 || n > 2_000_000 {
		t.Errorf("Bytes() = %d for a megabyte", n)
	}
}

func TestOpenRemovesLeftovers(t *testing.T) {
	fs := vfs.NewMem()
	x := open(t, fs)
	install(t, x, func(c *index.Cut) { set(c, 'r', "a=1") })
	c := x.NewCut() // never ended, as when the process is killed
	set(c, 'r', "b=1")
	set(c, 'q', "b=1")
	if names, _ := fs.List("idx/cuts"); len(names) != 2 {
		t.Fatalf("the cut under construction has the files %v", names)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	x = open(t, fs)
	if names, _ := fs.List("idx/cuts"); len(names) != 0 {
		t.Errorf("left after Open: %v", names)
	}
	wantList(t, x, 'r', "a=1")
	if err := c.Install(); !errors.Is(err, index.ErrClosed) {
		t.Errorf("Install into a closed index: %v", err)
	}
}

func TestCloseRefusesWhileIteratorsAreOpen(t *testing.T) {
	x := open(t, vfs.NewMem())
	install(t, x, func(c *index.Cut) { set(c, 'r', "a=1") })
	a, b := newIter(t, x, 'r', nil, nil), newIter(t, x, 'r', nil, nil)
	if n := x.Metrics().OpenIters; n != 2 {
		t.Errorf("OpenIters = %d, want 2", n)
	}
	if err := x.Close(); err == nil || !strings.Contains(err.Error(), "open iterators: 2") {
		t.Errorf("Close: %v, want it to name 2 iterators", err)
	}
	if got := drain(t, a); len(got) != 1 {
		t.Errorf("the iterator shows %v after Close was refused", got)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if err := x.Close(); err != nil {
		t.Errorf("Close after the iterators: %v", err)
	}
}

func TestAfterClose(t *testing.T) {
	x := open(t, vfs.NewMem())
	c := x.NewCut()
	if err := errors.Join(x.Close(), x.Close()); err != nil {
		t.Fatal(err)
	}
	_, _, getErr := x.Get(nil, 'r', nil)
	_, iterErr := x.NewIter('r', nil, nil)
	for name, err := range map[string]error{
		"Get": getErr, "NewIter": iterErr, "Excise": x.Excise('r', nil, nil), "Install": c.Install(),
	} {
		if !errors.Is(err, index.ErrClosed) {
			t.Errorf("%s: %v, want ErrClosed", name, err)
		}
	}
	if m := x.Metrics(); m != (index.Metrics{}) {
		t.Errorf("Metrics = %+v", m)
	}
	if x.Err() != nil {
		t.Errorf("Err = %v: closing is no failure", x.Err())
	}
}

func TestOpenRefuses(t *testing.T) {
	if _, err := index.Open(index.Options{Dir: "idx"}); err == nil {
		t.Error("without FS")
	}
	if _, err := index.Open(index.Options{FS: vfs.NewMem()}); err == nil {
		t.Error("without Dir")
	}
	fs := vfs.Default
	dir := t.TempDir()
	x, err := index.Open(index.Options{FS: fs, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if second, err := index.Open(index.Options{FS: fs, Dir: dir}); err == nil {
		t.Error("a second Open of the same folder")
		second.Close()
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestMetrics(t *testing.T) {
	x := open(t, vfs.NewMem())
	for i := range 3 {
		install(t, x, func(c *index.Cut) {
			for j := range 1000 {
				c.Set('r', fmt.Appendf(nil, "%d-%04d", i, j), []byte("some value"))
			}
		})
	}
	if err := x.Excise('r', []byte("0"), []byte("1")); err != nil {
		t.Fatal(err)
	}
	list(t, x, 'r')
	m := x.Metrics()
	if m.Installs != 4 || m.Tables != 2 || m.ReadAmp < 1 || m.LiveBytes == 0 || m.DiskBytes < m.LiveBytes ||
		m.InstalledBytes < m.LiveBytes || m.CacheMisses == 0 || m.OpenIters != 0 || m.CompactionPaused {
		t.Errorf("Metrics = %+v", m)
	}
}

// An index that nobody uses wakes up for nothing. A year of fake time is over at
// once only if no timer runs in it: Pebble's own scheduler alone would cost it
// 315 million ticks.
func TestIdleIndexSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, err := index.Open(index.Options{FS: vfs.NewMem(), Dir: "idx"})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 40 {
			overlapping(t, x, i)
		}
		before := time.Now()
		time.Sleep(365 * 24 * time.Hour)
		if got := len(list(t, x, 'r')); got != 40 || time.Since(before) < 365*24*time.Hour {
			t.Errorf("%d keys after a year", got)
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
}
