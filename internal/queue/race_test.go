package queue

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/duemq/duemq/internal/record"
)

// TestReadersBesideCuts reads as the engine does, with the lock for memory and
// without it for the index, while cuts drop and excise what is being read. Run
// it with -race.
func TestReadersBesideCuts(t *testing.T) {
	const cuts, count = 30, 200
	x := openIndex(t)
	s := NewSet(x, Visible())
	q := s.Add(1, 1)
	var mu sync.RWMutex
	var trim, late atomic.Int64
	done := make(chan struct{})
	// look reads one run of entries; false if it came too late.
	look := func(back record.Offset) (bool, error) {
		mu.RLock()
		low, err := s.Min(q, trim.Load())
		from := max(q.First(), low-min(low, back)) // partly given up already
		got, ok := q.Memory(nil, from, 50)
		p, stored := q.Place(from)
		mu.RUnlock()
		if err != nil || (!ok && !stored) {
			return true, err
		}
		if !ok {
			if got, err = s.Read(nil, p, from, 50); errors.Is(err, ErrTrimmed) {
				return false, nil
			}
		}
		for i, e := range got {
			if e.ID != 1000+record.ID(from)+record.ID(i) {
				return true, errors.New("not the entry of that offset")
			}
		}
		return true, err
	}
	var readers sync.WaitGroup
	for r := range record.Offset(3) {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				ok, err := look(r * 300)
				if err != nil {
					t.Error(err)
					return
				}
				if !ok {
					late.Add(1)
				}
			}
		})
	}
	for n := range int64(cuts) {
		mu.Lock()
		fill(s, q, 1000+n*count, count)
		trim.Store(1000 + (n-3)*count)
		f := s.Freeze(uint32(n+1), trim.Load())
		mu.Unlock()
		c := x.NewCut()
		if err := errors.Join(f.Write(c), c.Install()); err != nil {
			t.Error(err)
			break
		}
		mu.Lock()
		s.Install(f)
		mu.Unlock()
		if err := f.Excise(x); err != nil {
			t.Error(err)
		}
	}
	close(done)
	readers.Wait()
	t.Logf("%d reads came too late", late.Load())
}
