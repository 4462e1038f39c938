package dedupe_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/duemq/duemq/internal/dedupe"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

var rewrite = flag.Bool("rewrite", false, "write the golden file anew")

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
func cut(t testing.TB, x *index.Index, s *dedupe.Set, stamp int64, waits dedupe.Waits) {
	t.Helper()
	f, c := s.Freeze(), x.NewCut()
	if err := f.Write(c, stamp, waits); err != nil {
		t.Fatal(err)
	}
	if err := c.Install(); err != nil {
		t.Fatal(err)
	}
	s.Install(f)
}

// fail writes a cut that is then abandoned.
func fail(t testing.TB, x *index.Index, s *dedupe.Set, stamp int64, waits dedupe.Waits) {
	t.Helper()
	f, c := s.Freeze(), x.NewCut()
	if err := f.Write(c, stamp, waits); err != nil {
		t.Fatal(err)
	}
	c.Abort()
	s.Abandon(f)
}

func hashOf(n int) (h record.Hash) {
	binary.BigEndian.PutUint32(h[:], uint32(n)*2654435761)
	binary.BigEndian.PutUint32(h[12:], uint32(n))
	return h
}

// entry gives a message with that id, which waits until due if it is not 0.
func entry(id int, until, due int64) dedupe.Entry {
	return dedupe.Entry{
		ID: record.ID(id), Print: uint64(id) << 40, Until: until,
		Ref: record.Ref{Due: due, ID: record.ID(id), Size: 100, Queue: 3, Kind: record.KindMessage},
	}
}

func never(dedupe.Entry) (bool, int64, error) { return false, 0, nil }

// always says that everything waits for its first due.
func always(e dedupe.Entry) (bool, int64, error) { return true, e.Ref.Due, nil }

// rows counts what a space holds.
func rows(t testing.TB, x *index.Index, s index.Space) int {
	t.Helper()
	it, err := x.NewIter(s, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return n
}

func wantGet(t *testing.T, s *dedupe.Set, h record.Hash, want dedupe.Entry, there bool) {
	t.Helper()
	if got, ok, err := s.Get(h); err != nil || ok != there || got != want {
		t.Errorf("hash %x: %+v %v %v, want %+v %v", h[:4], got, ok, err, want, there)
	}
}

func TestPutIsFoundWhereverItLies(t *testing.T) {
	x := open(t)
	s := dedupe.New(x)
	h := hashOf(1)
	wantGet(t, s, h, dedupe.Entry{}, false)
	s.Put(h, entry(10, 5000, 0))
	wantGet(t, s, h, entry(10, 5000, 0), true)

	f := s.Freeze()
	wantGet(t, s, h, entry(10, 5000, 0), true) // frozen
	s.Put(h, entry(11, 6000, 0))
	wantGet(t, s, h, entry(11, 6000, 0), true) // live above frozen
	s.Abandon(f)
	wantGet(t, s, h, entry(11, 6000, 0), true)

	cut(t, x, s, 1000, never)
	wantGet(t, s, h, entry(11, 6000, 0), true)
	wantGet(t, dedupe.New(x), h, entry(11, 6000, 0), true) // of the index alone
	s.Put(h, entry(12, -7, 0))
	wantGet(t, s, h, entry(12, 0, 0), true)
}

func TestCounts(t *testing.T) {
	e := entry(1, 100, 0)
	broken := errors.New("broken")
	for _, c := range []struct {
		name  string
		stamp int64
		waits dedupe.Waits
		want  bool
		err   error
	}{
		{"within its time, nobody is asked", 99, func(dedupe.Entry) (bool, int64, error) { return false, 0, broken }, true, nil},
		{"its time is over", 100, never, false, nil},
		{"its time is over, its message waits", 100, always, true, nil},
		{"unknown", 100, func(dedupe.Entry) (bool, int64, error) { return false, 0, broken }, false, broken},
	} {
		if got, err := e.Counts(c.stamp, c.waits); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %v %v", c.name, got, err)
		}
	}
}

func wantRows(t *testing.T, x *index.Index, want int) {
	t.Helper()
	if y, z := rows(t, x, dedupe.SpaceHashes), rows(t, x, dedupe.SpaceFiled); y != want || z != want {
		t.Errorf("%d hashes, %d filed, want %d", y, z, want)
	}
}

func TestSweep(t *testing.T) {
	x := open(t)
	s := dedupe.New(x)
	s.Put(hashOf(1), entry(1, 1000, 0))    // over at 1000
	s.Put(hashOf(2), entry(2, 1000, 5000)) // over when its message is delivered
	s.Put(hashOf(3), entry(3, 9000, 0))    // put again below, for a shorter time
	s.Put(hashOf(4), entry(4, 0, 0))       // over at once
	cut(t, x, s, 500, never)
	wantRows(t, x, 4)
	s.Put(hashOf(3), entry(33, 4000, 0))
	cut(t, x, s, 1000, always) // finds 1 and 4, and is told that they wait
	cut(t, x, s, 1001, never)  // so they are not asked for again
	cut(t, x, s, 1002, never)
	for n, e := range map[int]dedupe.Entry{1: entry(1, 1000, 0), 2: entry(2, 1000, 5000), 3: entry(33, 4000, 0), 4: entry(4, 0, 0)} {
		wantGet(t, s, hashOf(n), e, true)
	}
	cut(t, x, s, 5000, never) // finds 2 and 3
	cut(t, x, s, 5001, never)
	wantGet(t, s, hashOf(2), dedupe.Entry{}, false)
	wantGet(t, s, hashOf(3), dedupe.Entry{}, false)
	cut(t, x, s, 70_000, never) // finds 1 and 4, and the old row of 3
	cut(t, x, s, 70_001, never)
	wantRows(t, x, 0)
}

// A message may cease to wait between a cut and the question. Who replays from
// that cut comes to commands that found it waiting, so the entry is there still,
// and so is its row, or nobody would find it afterwards.
func TestSweepWaitsForTheNextCut(t *testing.T) {
	x := open(t)
	s := dedupe.New(x)
	s.Put(hashOf(1), entry(1, 0, 1000))
	cut(t, x, s, 500, always)
	cut(t, x, s, 1000, never)
	wantRows(t, x, 1)
	s = dedupe.New(x) // a restart forgets the plan
	wantGet(t, s, hashOf(1), entry(1, 0, 1000), true)
	cut(t, x, s, 1000, never)
	wantRows(t, x, 1)
	fail(t, x, s, 1000, never) // a cut that fails does not
	cut(t, x, s, 1000, never)
	wantRows(t, x, 0)
}

// What is put again between the look and the next cut stays.
func TestSweepSparesWhatIsPutAgain(t *testing.T) {
	x := open(t)
	s := dedupe.New(x)
	s.Put(hashOf(1), entry(1, 700, 0))
	cut(t, x, s, 500, never)
	cut(t, x, s, 1000, never)
	s.Put(hashOf(1), entry(2, 700, 0)) // of the same time, so that it is filed in the old place but for the stamp
	cut(t, x, s, 1000, never)
	wantGet(t, s, hashOf(1), entry(2, 700, 0), true)
	wantRows(t, x, 1)
	cut(t, x, s, 2000, never)
	cut(t, x, s, 2000, never)
	wantRows(t, x, 0)
}

// A message that was moved to a later due keeps its name until then.
func TestSweepFilesUnderTheDueOfNow(t *testing.T) {
	x := open(t)
	s := dedupe.New(x)
	s.Put(hashOf(1), entry(1, 0, 1000))
	cut(t, x, s, 500, never)
	moved := func(dedupe.Entry) (bool, int64, error) { return true, 800_000, nil }
	cut(t, x, s, 1500, moved)
	for range 3 {
		cut(t, x, s, 799_999, never)
	}
	wantGet(t, s, hashOf(1), entry(1, 0, 1000), true)
	for range 2 {
		cut(t, x, s, 800_000, never)
	}
	wantGet(t, s, hashOf(1), dedupe.Entry{}, false)
}

// A cut looks at so many rows and leaves the rest for the next ones.
func TestSweepIsBounded(t *testing.T) {
	x := open(t)
	s := dedupe.New(x)
	const n = 25_000
	for i := range n {
		s.Put(hashOf(i), entry(i+1, 1000, 0))
	}
	cut(t, x, s, 500, never)
	for _, left := range []int{25_000, 15_000, 5_000, 0} {
		cut(t, x, s, 1000, never)
		wantRows(t, x, left)
	}
}

func TestWriteSaysWhatIsWrong(t *testing.T) {
	broken := errors.New("broken")
	unknown := func(dedupe.Entry) (bool, int64, error) { return false, 0, broken }
	x := open(t)
	s := dedupe.New(x)
	s.Put(hashOf(1), entry(1, 0, 0))
	cut(t, x, s, 500, never)
	c := x.NewCut()
	if err := s.Freeze().Write(c, 1000, unknown); !errors.Is(err, broken) {
		t.Errorf("a message nobody can ask for: %v", err)
	}
	c.Abort()

	for _, bad := range []struct {
		space      index.Space
		key, value []byte
	}{
		{dedupe.SpaceHashes, bytes.Repeat([]byte{1}, 16), []byte("?")},
		{dedupe.SpaceFiled, []byte("?"), nil},
	} {
		x := open(t)
		c := x.NewCut()
		h := record.Hash(bytes.Repeat([]byte{1}, 16))
		if bad.space == dedupe.SpaceHashes {
			c.Set(dedupe.SpaceFiled, append(make([]byte, 8), h[:]...), nil)
		}
		c.Set(bad.space, bad.key, bad.value)
		if err := c.Install(); err != nil {
			t.Fatal(err)
		}
		c = x.NewCut()
		if err := dedupe.New(x).Freeze().Write(c, 1<<62, never); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("space %c: %v", bad.space, err)
		}
		c.Abort()
	}
}

// model is the plainest thing with the same meaning: everything that was ever
// put, and until when each message waits.
type model struct {
	entries map[record.Hash]dedupe.Entry
	due     map[record.ID]int64 // of those that wait
}

func (m *model) waits(e dedupe.Entry) (bool, int64, error) {
	due, ok := m.due[e.ID]
	return ok, due, nil
}

// step changes set, twin and model alike.
func (m *model) step(r *rand.Rand, stamp int64, n int, sets ...*dedupe.Set) {
	h := hashOf(r.IntN(40))
	e := entry(n+1, stamp+r.Int64N(2000)-500, 0)
	if r.IntN(2) == 0 {
		e.Ref.Due = stamp + 1 + r.Int64N(5000)
		m.due[e.ID] = e.Ref.Due
	}
	for _, s := range sets {
		s.Put(h, e)
	}
	e.Until = max(e.Until, 0)
	m.entries[h] = e
	for id, due := range m.due {
		if id%7 == 0 && due > stamp && due < stamp+300 {
			m.due[id] = due + 90_000 // moved
		} else if due <= stamp-int64(id%5)*1000 {
			delete(m.due, id) // delivered, some of them late
		}
	}
}

// TestSetAgainstModel puts, lets time pass and cuts at random, with cuts that
// fail and restarts from the index, beside a twin that is never cut.
func TestSetAgainstModel(t *testing.T) {
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 1))
		x := open(t)
		s, twin := dedupe.New(x), dedupe.New(open(t))
		m := &model{make(map[record.Hash]dedupe.Entry), make(map[record.ID]int64)}
		stamp := int64(1000)
		for n := range 1000 {
			stamp += r.Int64N(100)
			m.step(r, stamp, n, s, twin)
			switch r.IntN(30) {
			case 0:
				cut(t, x, s, stamp, m.waits)
			case 1:
				fail(t, x, s, stamp, m.waits)
			case 2:
				cut(t, x, s, stamp, m.waits)
				s = dedupe.New(x)
			}
			if n%20 == 0 {
				t.Logf("seed %d step %d", seed, n)
				compare(t, s, twin, m, stamp)
			}
		}
		stamp, m.due = stamp+1_000_000, nil
		for range 5 { // write, look, remove; look, remove what was written last
			cut(t, x, s, stamp, m.waits)
			stamp += 1_000_000
		}
		if y, z := rows(t, x, dedupe.SpaceHashes), rows(t, x, dedupe.SpaceFiled); y+z > 0 {
			t.Errorf("seed %d: %d hashes and %d filed are never swept", seed, y, z)
		}
	}
}

func compare(t *testing.T, s, twin *dedupe.Set, m *model, stamp int64) {
	t.Helper()
	for h, want := range m.entries {
		counts, _ := want.Counts(stamp, m.waits)
		got, ok, err := s.Get(h)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			if ok, err = got.Counts(stamp, m.waits); err != nil {
				t.Fatal(err)
			}
		}
		if ok != counts || ok && got != want {
			t.Fatalf("hash %x: %+v %v, want %+v %v", h[:4], got, ok, want, counts)
		}
	}
	if a, b := digest(t, s, stamp, m.waits), digest(t, twin, stamp, m.waits); a != b {
		t.Fatalf("the hash depends on cuts: %x, without %x", a, b)
	}
}

func digest(t *testing.T, s *dedupe.Set, stamp int64, waits dedupe.Waits) [32]byte {
	t.Helper()
	w := sha256.New()
	if err := s.Hash(w, stamp, waits); err != nil {
		t.Fatal(err)
	}
	return [32]byte(w.Sum(nil))
}

// The digest covers every field of an entry and its hash, and nothing that does
// not count.
func TestHashSeesWhatCounts(t *testing.T) {
	base := entry(5, 2000, 9)
	of := func(h int, e dedupe.Entry) [32]byte {
		s := dedupe.New(open(t))
		s.Put(hashOf(h), e)
		return digest(t, s, 1000, never)
	}
	seen := map[[32]byte]string{of(1, base): "the entry"}
	for name, change := range map[string]func(*dedupe.Entry){
		"id":    func(e *dedupe.Entry) { e.ID++ },
		"print": func(e *dedupe.Entry) { e.Print++ },
		"until": func(e *dedupe.Entry) { e.Until++ },
		"due":   func(e *dedupe.Entry) { e.Ref.Due++ },
		"level": func(e *dedupe.Entry) { e.Ref.Level++ },
		"tag":   func(e *dedupe.Entry) { e.Ref.Tag++ },
		"over":  func(e *dedupe.Entry) { e.Until = 1000 },
	} {
		e := base
		change(&e)
		d := of(1, e)
		if other, ok := seen[d]; ok {
			t.Errorf("another %s gives the digest of %s", name, other)
		}
		seen[d] = name
	}
	if _, ok := seen[of(2, base)]; ok {
		t.Error("another hash gives the same digest")
	}
	if d := digest(t, dedupe.New(open(t)), 1000, never); seen[d] != "over" {
		t.Error("what is over counts")
	}
}

// TestGolden compares the bytes of both spaces with a recorded list. They are
// frozen: a change needs another line in docs/formats/index.md, and -rewrite.
func TestGolden(t *testing.T) {
	x := open(t)
	s := dedupe.New(x)
	s.Put(hashOf(1), entry(4096, 1_796_115_600_000, 0))
	s.Put(hashOf(2), dedupe.Entry{ID: 300, Until: 1, Ref: record.Ref{
		Due: 1_796_115_600_123, ID: 299, Size: 70_000, Queue: 9, Tag: record.TagHash("paid"), Kind: record.KindCheck, Level: 16,
	}})
	cut(t, x, s, 1000, never)
	s.Put(hashOf(3), entry(5000, 0, 7000)) // waits for longer than the reference says
	for stamp := range int64(3) {
		cut(t, x, s, 8000+stamp, func(dedupe.Entry) (bool, int64, error) { return true, 9000, nil })
	}
	var got bytes.Buffer
	for _, space := range []index.Space{dedupe.SpaceHashes, dedupe.SpaceFiled} {
		it, err := x.NewIter(space, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for ok := it.First(); ok; ok = it.Next() {
			fmt.Fprintf(&got, "%c %x = %x\n", space, it.Key(), it.Value())
		}
		if err := it.Close(); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join("testdata", "dedupe.golden")
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

// BenchmarkWrite is a cut of 100,000 entries that sweeps as many.
func BenchmarkWrite(b *testing.B) {
	x := open(b)
	s := dedupe.New(x)
	const n = 100_000
	stamp := int64(1000)
	round := 0
	for b.Loop() {
		for i := range n {
			s.Put(hashOf(round*n+i), entry(i+1, stamp+1+int64(i/100), 0))
		}
		cut(b, x, s, stamp, never)
		stamp += n / 100
		round++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(round*n), "ns/entry")
}

// BenchmarkGet asks for hashes of which half lie in the index, among 250,000.
func BenchmarkGet(b *testing.B) {
	x := open(b)
	s := dedupe.New(x)
	const n = 250_000
	for i := range n {
		s.Put(hashOf(i), entry(i+1, 1<<40, 0))
	}
	cut(b, x, s, 1, never)
	i := 0
	for b.Loop() {
		if _, _, err := s.Get(hashOf(i * 7919 % (2 * n))); err != nil {
			b.Fatal(err)
		}
		i++
	}
}
