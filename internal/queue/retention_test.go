package queue

import (
	"errors"
	"slices"
	"testing"

	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

// fill appends entries that become visible one a millisecond.
func fill(s *Set, q *Queue, from int64, count int) {
	for i := range count {
		s.Append(q, Entry{ID: record.ID(from) + record.ID(i), Size: 1}, from+int64(i))
	}
}

// cutNow makes a whole cut.
func cutNow(t testing.TB, x *index.Index, s *Set, number uint32, trim int64) *Frozen {
	t.Helper()
	f := s.Freeze(number, trim)
	c := x.NewCut()
	if err := errors.Join(f.Write(c), c.Install()); err != nil {
		t.Fatal(err)
	}
	s.Install(f)
	return f
}

// reopen restores a set that has one queue.
func reopen(t testing.TB, x *index.Index, q *Queue) (*Set, *Queue) {
	t.Helper()
	s := NewSet(x, Visible())
	if err := errors.Join(s.Restore(q.Number, q.appendState()), s.RestoreDirectory()); err != nil {
		t.Fatal(err)
	}
	q = s.Get(q.Number)
	return s, q
}

// TestReadTellsTrimmedFromDamage takes entries out of the index, once behind the
// set's back and once as it should be.
func TestReadTellsTrimmedFromDamage(t *testing.T) {
	x := openIndex(t)
	s := NewSet(x, Visible())
	q := s.Add(1, 1)
	for n := range uint32(3) {
		fill(s, q, 1000+100*int64(n), 100)
		cutNow(t, x, s, n+1, 0)
	}
	var places []Stored
	for n := range record.Offset(3) {
		p, ok := q.Place(100 * n)
		if !ok {
			t.Fatalf("no place for offset %d", 100*n)
		}
		places = append(places, p)
	}
	f := cutNow(t, x, s, 4, 1100) // drops the first epoch
	if err := errors.Join(f.Excise(x), x.Excise(SpaceEntries, epochKey(2), epochKey(3))); err != nil {
		t.Fatal(err)
	}
	for n, want := range []error{ErrTrimmed, record.ErrCorrupt, nil} {
		got, err := s.Read(nil, places[n], 100*record.Offset(n), 10)
		if !errors.Is(err, want) || (err == nil) != (len(got) == 10) {
			t.Errorf("epoch %d: %d entries, %v, want %v", n+1, len(got), err, want)
		}
	}
	if _, ok := q.Place(0); ok {
		t.Error("offset 0 is still placed")
	}
	if _, err := s.Search(q, 1150); !errors.Is(err, record.ErrCorrupt) {
		t.Errorf("Search in what is lost: %v", err)
	}
	if o, err := s.Search(q, 1250); err != nil || o != 250 {
		t.Errorf("Search behind what is lost: %d, %v", o, err)
	}
}

// TestOpenIteratorOutlivesDrop reads on while its epoch goes.
func TestOpenIteratorOutlivesDrop(t *testing.T) {
	x := openIndex(t)
	s := NewSet(x, Visible())
	q := s.Add(1, 1)
	fill(s, q, 1000, 500)
	cutNow(t, x, s, 1, 0)
	it, err := x.NewIter(SpaceEntries, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := cutNow(t, x, s, 2, 5000).Excise(x); err != nil {
		t.Fatal(err)
	}
	var got []Entry
	for it.First(); it.Valid(); it.Next() {
		if got, err = decodeBlock(got, it.Value()); err != nil {
			t.Fatal(err)
		}
	}
	if err := it.Close(); err != nil || len(got) != 500 {
		t.Errorf("%d entries, %v", len(got), err)
	}
	if left := epochsIn(t, x, SpaceEntries); len(left) > 0 {
		t.Errorf("epochs %v were left", left)
	}
	if q.First() != 500 || q.Next() != 500 {
		t.Errorf("%d to %d", q.First(), q.Next())
	}
}

// TestMinBelowWhatIsKept asks with a trim below that of a cut: the answer is
// what is still there, also when an earlier one was kept.
func TestMinBelowWhatIsKept(t *testing.T) {
	x := openIndex(t)
	s := NewSet(x, Visible())
	q := s.Add(1, 1)
	fill(s, q, 1000, 100)
	cutNow(t, x, s, 1, 0)
	fill(s, q, 1100, 100)
	for want := range record.Offset(2) {
		if o, err := s.Min(q, 1010); err != nil || o != 10+90*want {
			t.Errorf("Min: %d, %v, want %d", o, err, 10+90*want)
		}
		cutNow(t, x, s, 2+uint32(want), 1100)
	}
}

// TestDirectoryWithoutLast opens what the first stores wrote: epochs that do
// not tell how new they are stay until everything is old.
func TestDirectoryWithoutLast(t *testing.T) {
	x := openIndex(t)
	s := NewSet(x, Visible())
	q := s.Add(1, 1)
	fill(s, q, 1000, 100)
	cutNow(t, x, s, 1, 0)
	fill(s, q, 1100, 100)
	cutNow(t, x, s, 2, 0)
	c := x.NewCut()
	if err := errors.Join(c.Set(SpaceDirectory, epochKey(1), []byte{1, 1, 0}), c.Set(SpaceDirectory, epochKey(2), []byte{1, 1, 100}), c.Install()); err != nil {
		t.Fatal(err)
	}
	s, q = reopen(t, x, q)
	for _, at := range []int64{1, 1000, 1050, 1100, 1150, 1199} {
		if o, err := s.Search(q, at); err != nil || o != record.Offset(max(0, at-1000)) {
			t.Errorf("Search(%d): %d, %v", at, o, err)
		}
	}
	cutNow(t, x, s, 3, 1199)
	if got := epochsIn(t, x, SpaceDirectory); !slices.Equal(got, []uint32{1, 2}) {
		t.Errorf("epochs %v", got)
	}
	cutNow(t, x, s, 4, 1200)
	if got := epochsIn(t, x, SpaceDirectory); len(got) > 0 {
		t.Errorf("epochs %v", got)
	}
}

// TestAbandonedThoughDurable takes back a cut that is in the index, as if the
// answer had been lost. The next one writes the same entries again.
func TestAbandonedThoughDurable(t *testing.T) {
	x := openIndex(t)
	s := NewSet(x, Visible())
	q := s.Add(1, 1)
	fill(s, q, 1000, 100)
	f := s.Freeze(1, 0)
	c := x.NewCut()
	if err := errors.Join(f.Write(c), c.Install()); err != nil {
		t.Fatal(err)
	}
	s.Abandon(f)
	fill(s, q, 1100, 100)
	cutNow(t, x, s, 2, 0)
	fill(s, q, 1200, 100)
	cutNow(t, x, s, 3, 0)
	s, q = reopen(t, x, q)
	for at := int64(1000); at < 1300; at += 7 {
		if o, err := s.Search(q, at); err != nil || o != record.Offset(at-1000) {
			t.Errorf("Search(%d): %d, %v", at, o, err)
		}
	}
	if err := cutNow(t, x, s, 4, 1200).Excise(x); err != nil {
		t.Fatal(err)
	}
	if got := epochsIn(t, x, SpaceEntries); q.First() != 200 || !slices.Equal(got, []uint32{3}) {
		t.Errorf("from %d, epochs %v", q.First(), got)
	}
}

// TestLostDirectoryIsDamage finds an epoch's key missing when it is dropped.
func TestLostDirectoryIsDamage(t *testing.T) {
	x := openIndex(t)
	s := NewSet(x, Visible())
	q := s.Add(1, 1)
	fill(s, q, 1000, 10)
	cutNow(t, x, s, 1, 0)
	if err := x.Excise(SpaceDirectory, nil, nil); err != nil {
		t.Fatal(err)
	}
	f := s.Freeze(2, 5000)
	c := x.NewCut()
	defer c.Abort()
	if err := f.Write(c); !errors.Is(err, record.ErrCorrupt) {
		t.Errorf("Write: %v", err)
	}
}

// TestRestoreSkipsEnded opens a directory that names a queue without state.
func TestRestoreSkipsEnded(t *testing.T) {
	x := openIndex(t)
	s := NewSet(x, Visible())
	q, ended := s.Add(1, 1), s.Add(2, 1)
	fill(s, q, 1000, 10)
	fill(s, ended, 1000, 10)
	cutNow(t, x, s, 1, 0)
	s, q = reopen(t, x, q)
	if s.Get(2) != nil || q.First() != 0 {
		t.Errorf("%v, from %d", s.Get(2), q.First())
	}
	cutNow(t, x, s, 2, 5000)
	if got := epochsIn(t, x, SpaceDirectory); len(got) > 0 || q.First() != 10 {
		t.Errorf("epochs %v, from %d", got, q.First())
	}
}
