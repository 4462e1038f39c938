package engine

import (
	"errors"
	"math"
	"testing"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
	"github.com/duemq/duemq/internal/timeline"
)

// A pageCase is a message that waits and a page that is being listed: of is
// taken before something changes and confirmed after it.
type pageCase struct {
	t    *testing.T
	e    *Engine
	id   record.ID
	view *timeline.View
}

func newPageCase(t *testing.T) *pageCase {
	t.Helper()
	e := open(t, options(fs.NewMem(), clock.NewFake(testStart)))
	s := send(t, e, topic(t, e, "t", 1), "x", Delay{Kind: DelayAfter, Value: 100_000})
	settle(t, e)
	return &pageCase{t: t, e: e, id: s.ID}
}

func (p *pageCase) cancel() {
	p.t.Helper()
	_, r, err := p.e.Find(p.id)
	if err != nil {
		p.t.Fatal(err)
	}
	if out, err := p.e.Cancel(p.t.Context(), r); err != nil || out.Verdict != timeline.Done {
		p.t.Fatalf("Cancel: %v, %v", out.Verdict, err)
	}
}

func (p *pageCase) freeze() *frozenCut {
	p.t.Helper()
	end, err := p.e.end()
	if err != nil {
		p.t.Fatal(err)
	}
	p.e.mu.Lock()
	defer p.e.mu.Unlock()
	return p.e.m.freeze(end)
}

func (p *pageCase) write(f *frozenCut) {
	p.t.Helper()
	if err := f.write(p.e.index); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pageCase) install(f *frozenCut) {
	p.t.Helper()
	it, err := f.line.Open(p.e.index)
	if err != nil {
		p.t.Fatal(err)
	}
	p.e.mu.Lock()
	old := p.e.m.install(f, it)
	p.e.mu.Unlock()
	if old != nil {
		if err := old.Close(); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *pageCase) abandon(f *frozenCut) {
	p.e.mu.Lock()
	defer p.e.mu.Unlock()
	p.e.m.abandon(f)
}

func (p *pageCase) take() {
	p.t.Helper()
	p.e.mu.RLock()
	defer p.e.mu.RUnlock()
	var err error
	if p.view, err = p.e.m.line.Take(); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pageCase) confirm() []record.Ref {
	p.t.Helper()
	found, _, err := p.view.Page(record.Key{}, math.MaxInt64, 10, func(*record.Ref) bool { return true })
	if err = errors.Join(err, p.view.Close()); err != nil {
		p.t.Fatal(err)
	}
	p.e.mu.RLock()
	defer p.e.mu.RUnlock()
	refs, err := p.e.m.line.Confirm(found)
	if err != nil {
		p.t.Fatal(err)
	}
	return refs
}

// TestPageBesideACut lists what waits while cuts come and go: a message whose
// cancel has been answered is not listed, wherever the page met it.
func TestPageBesideACut(t *testing.T) {
	for name, run := range map[string]func(p *pageCase){
		"written and not yet installed": func(p *pageCase) {
			f := p.freeze()
			p.cancel()
			p.write(f)
			p.take()
			p.install(f)
		},
		"the cut that drops it is installed meanwhile": func(p *pageCase) {
			f := p.freeze()
			p.write(f)
			p.install(f)
			p.cancel()
			p.take()
			f = p.freeze()
			p.write(f)
			p.install(f)
		},
		"the cut is abandoned meanwhile": func(p *pageCase) {
			f := p.freeze()
			s := send(p.t, p.e, p.e.TopicNamed("t"), "y", Delay{Kind: DelayAfter, Value: 200_000})
			p.cancel()
			settle(p.t, p.e)
			p.id = s.ID
			p.take()
			p.abandon(f)
			p.cancel()
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPageCase(t)
			run(p)
			if refs := p.confirm(); len(refs) != 0 {
				t.Errorf("a cancelled message is listed: %v", refs)
			}
		})
	}
}
