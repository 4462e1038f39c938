package timeline

import (
	"errors"
	"math"
	"testing"

	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

// A pageCase is a timeline over an index, and a page that is being listed: its
// view is taken before something changes and confirmed after it.
type pageCase struct {
	t    *testing.T
	line *Timeline
	x    *index.Index
	view *View
}

const pageStamp = 1000

func newPageCase(t *testing.T) *pageCase {
	t.Helper()
	x, err := index.Open(index.Options{FS: fs.NewMem(), Dir: "index"})
	if err != nil {
		t.Fatal(err)
	}
	p := &pageCase{t: t, line: New(x, pageStamp), x: x}
	t.Cleanup(func() {
		if err := errors.Join(p.line.Close(), x.Close()); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p *pageCase) add() record.Ref {
	r := record.Ref{Due: 2000, ID: 1, Queue: 1, Size: 10}
	return p.line.Add(r, pageStamp, r.ID, false)
}

func (p *pageCase) cancel(r record.Ref) {
	p.t.Helper()
	if _, v, err := p.line.Cancel(r, pageStamp, r.ID+1000); err != nil || v != Done {
		p.t.Fatalf("Cancel: %v, %v", v, err)
	}
}

// freeze begins a cut and writes it; the timeline has not been told yet.
func (p *pageCase) freeze() *Frozen {
	p.t.Helper()
	f := p.line.Freeze(pageStamp)
	c := p.x.NewCut()
	if err := f.Write(c); err != nil {
		p.t.Fatal(err)
	}
	if err := c.Install(); err != nil {
		p.t.Fatal(err)
	}
	return f
}

func (p *pageCase) install(f *Frozen) {
	p.t.Helper()
	it, err := f.Open(p.x)
	if err != nil {
		p.t.Fatal(err)
	}
	if old := p.line.Install(f, it); old != nil {
		if err := old.Close(); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *pageCase) take() {
	p.t.Helper()
	v, err := p.line.Take()
	if err != nil {
		p.t.Fatal(err)
	}
	p.view = v
}

func (p *pageCase) confirm() []record.Ref {
	p.t.Helper()
	found, _, err := p.view.Page(record.Key{}, math.MaxInt64, 10, func(*record.Ref) bool { return true })
	if err = errors.Join(err, p.view.Close()); err != nil {
		p.t.Fatal(err)
	}
	refs, err := p.line.Confirm(found)
	if err != nil {
		p.t.Fatal(err)
	}
	return refs
}

// TestPageBesideACut lists what waits while cuts come and go: a message whose
// cancel has been answered is not listed, wherever the page met it.
func TestPageBesideACut(t *testing.T) {
	for name, run := range map[string]func(p *pageCase){
		"the first cut is written and not installed": func(p *pageCase) {
			r := p.add()
			p.freeze()
			p.cancel(r)
			p.take()
		},
		"the cut that drops it is installed meanwhile": func(p *pageCase) {
			r := p.add()
			p.install(p.freeze())
			p.cancel(r)
			p.take()
			p.install(p.freeze())
		},
		"the cut is abandoned meanwhile": func(p *pageCase) {
			f := p.line.Freeze(pageStamp)
			r := p.add()
			p.take()
			p.line.Abandon(f)
			p.cancel(r)
		},
		"abandoned meanwhile, and cancelled in the next": func(p *pageCase) {
			f := p.line.Freeze(pageStamp)
			r := p.add()
			p.take()
			p.line.Abandon(f)
			p.install(p.freeze())
			p.cancel(r)
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
