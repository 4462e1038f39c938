package wheel

import "testing"

// TestNoAllocations: once as many tasks have waited before, nothing allocates.
func TestNoAllocations(t *testing.T) {
	for name, w := range map[string]ring[uint32]{
		"hierarchical": mustHierarchical[uint32](t, Config{}, 0),
		"single":       mustSingle[uint32](t, SingleConfig{}, 0),
	} {
		t.Run(name, func(t *testing.T) { checkAllocations(t, w) })
	}
}

func checkAllocations(t *testing.T, w ring[uint32]) {
	const n = 5000
	handles := make([]Handle, n)
	addAll := func() {
		for i := range handles {
			handles[i] = w.Add(w.Now()+int64(i*i%100_000), uint32(i))
		}
	}
	sum := uint32(0)
	fire := func(_ int64, v uint32) { sum += v }
	keep := func(v uint32) bool { return v%2 == 0 }
	addAll()
	w.Advance(w.Now()+100_000, fire)
	for what, f := range map[string]func(){
		"add and cancel": func() {
			addAll()
			for _, h := range handles {
				w.Cancel(h)
			}
		},
		"add and advance": func() {
			addAll()
			w.Advance(w.Now()+100_000, fire)
		},
		"advance in steps": func() {
			addAll()
			for w.Len() > 0 {
				due, _ := w.Next()
				w.AdvanceLimit(due, 3, fire)
			}
		},
		"cancel the earliest, next": func() {
			addAll()
			for _, h := range handles[:100] {
				w.Cancel(h)
				w.Next()
			}
			w.NextFunc(keep)
			w.Rebase(w.Now() - 10)
			w.Reset(0)
		},
	} {
		if allocs := testing.AllocsPerRun(3, f); allocs != 0 {
			t.Errorf("%s of %d tasks: %v allocations, want 0", what, n, allocs)
		}
	}
}
