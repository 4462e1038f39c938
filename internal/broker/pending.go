package broker

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/queue"
	"github.com/duemq/duemq/internal/record"
)

// A Filter selects what waits, redeliveries to groups included. Zero selects
// everything.
type Filter struct {
	Topic string `json:"topic,omitempty"` // with what groups get again of it
	Tag   string `json:"tag,omitempty"`
	From  int64  `json:"from,omitempty"` // due at or after, Unix ms
	To    int64  `json:"to,omitempty"`   // due before, Unix ms; 0 is no end

	Key     string   `json:"key,omitempty"`     // one of the message's keys
	IDs     []string `json:"ids,omitempty"`     // ids or handles, at most MaxPage; empty for any
	State   State    `json:"state,omitempty"`   // StateWaiting or StatePaused; empty for both
	Overdue bool     `json:"overdue,omitempty"` // due by now
}

// A Page is a stretch of what waits, in the order of falling due.
type Page struct {
	Messages []View // without bodies
	Cursor   string // where the next page begins; empty at the end
}

// Pending lists what waits. It ends early with the context's error.
func (b *Broker) Pending(ctx context.Context, f Filter, cursor string, limit int) (Page, error) {
	if limit == 0 {
		limit = 100
	}
	if limit < 0 || limit > MaxPage {
		return Page{}, fmt.Errorf("%w: limit %d, want 1 to %d", ErrInvalid, limit, MaxPage)
	}
	sel, err := b.selects(ctx, f)
	if err != nil {
		return Page{}, err
	}
	after := sel.start()
	if cursor != "" {
		if after, err = parseCursor(cursor); err != nil {
			return Page{}, err
		}
	}
	var page Page
	for more := true; more && len(page.Messages) < limit; {
		if err := ctx.Err(); err != nil {
			return Page{}, err
		}
		var refs []engine.Listed
		refs, after, more, err = sel.next(after, limit-len(page.Messages))
		if err != nil {
			return Page{}, err
		}
		b.describe(&page, refs, f.Tag)
		page.Cursor = ""
		if more {
			page.Cursor = appendCursor(after)
		}
	}
	return page, nil
}

func parseCursor(cursor string) (record.Key, error) {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(raw) != 21 {
		return record.Key{}, fmt.Errorf("%w: cursor %q was not made by this broker", ErrInvalid, short(cursor))
	}
	be := binary.BigEndian
	return record.Key{
		Due: int64(be.Uint64(raw)), ID: record.ID(be.Uint64(raw[8:])),
		Kind: record.Kind(raw[16]), Queue: record.QueueNumber(be.Uint32(raw[17:])),
	}, nil
}

func appendCursor(k record.Key) string {
	be := binary.BigEndian
	raw := be.AppendUint64(be.AppendUint64(nil, uint64(k.Due)), uint64(k.ID))
	raw = be.AppendUint32(append(raw, byte(k.Kind)), uint32(k.Queue))
	return base64.RawURLEncoding.EncodeToString(raw)
}

// describe reads the records of references and adds them to the page. A tag's
// hash may stand for another tag; the record decides.
func (b *Broker) describe(page *Page, refs []engine.Listed, tag string) {
	b.e.Messages(entriesOf(refs), func(i int, m *record.Message, err error) {
		r := refs[i]
		t, _ := b.e.TopicOf(r.Queue)
		if t == nil || (err == nil && tag != "" && m.Tag != tag) {
			return
		}
		if err != nil {
			m = &record.Message{} // it is listed all the same; its record is damaged
		}
		v := b.view(t, r.Queue, m, r.ID)
		v.Due, v.Level, v.Body, v.State = r.Due, int(r.Level), nil, waitingState(r.Held)
		v.Handle = b.handle(t.Name, r.Due, r.ID)
		page.Messages = append(page.Messages, v)
	})
}

func waitingState(held bool) State {
	if held {
		return StatePaused
	}
	return StateWaiting
}

// entriesOf makes of references what their messages are read by.
func entriesOf(refs []engine.Listed) []queue.Entry {
	entries := make([]queue.Entry, len(refs))
	for i, r := range refs {
		entries[i] = queue.Entry{ID: r.ID, Size: r.Size, Due: r.Due}
	}
	return entries
}

// tagged leaves what has the tag, by its record, if one is asked for. What
// cannot be read stays: its tag's hash is the right one.
func (b *Broker) tagged(refs []engine.Listed, tag string) []engine.Listed {
	if tag == "" {
		return refs
	}
	kept := make([]engine.Listed, 0, len(refs))
	b.e.Messages(entriesOf(refs), func(i int, m *record.Message, err error) {
		if err != nil || m.Tag == tag {
			kept = append(kept, refs[i])
		}
	})
	return kept
}

// countPage is how many references a count looks at between two looks at its
// context. Each page passes over what is in memory, so it is a large one.
const countPage = 1 << 16

// Count counts what waits. Without a tag, key or ids it looks at messages one by
// one only in the minutes at both ends of the range, and at what is held back. A
// tag is compared by its hash, 32 bits. While things move it is exact to what
// moves. It ends early with the context's error.
func (b *Broker) Count(ctx context.Context, f Filter) (int64, error) {
	sel, err := b.selects(ctx, f)
	if err != nil {
		return 0, err
	}
	if !f.counted() {
		return sel.count(ctx, sel.from, sel.before)
	}
	waiting, held := sel.counts()
	if f.From <= 0 && sel.before == math.MaxInt64 {
		return pick(f.State, waiting-held, held), nil
	}
	if f.State == StateWaiting {
		held = 0
	}
	if held > 0 {
		if held, err = sel.countHeld(ctx); err != nil {
			return 0, err
		}
	}
	if f.State == StatePaused {
		return held, nil
	}
	waiting, err = sel.countMinutes(ctx)
	return waiting + held, err
}

// counted says that whole minutes of what the filter selects are counted
// without looking.
func (f *Filter) counted() bool { return f.Tag == "" && f.Key == "" && len(f.IDs) == 0 }

func pick(s State, waiting, held int64) int64 {
	switch s {
	case StateWaiting:
		return waiting
	case StatePaused:
		return held
	default:
		return waiting + held
	}
}
