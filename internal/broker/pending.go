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

// A Filter selects what waits. Zero selects everything.
type Filter struct {
	Topic string
	Tag   string
	From  int64 // due at or after, Unix ms
	To    int64 // due before, Unix ms; 0 is no end

	Key     string   // one of the message's keys
	IDs     []string // ids or handles, at most MaxPage; empty for any
	State   State    // StateWaiting or StatePaused; empty for both
	Overdue bool     // due by now
}

// A Page is a stretch of what waits, in the order of falling due.
type Page struct {
	Messages []View // without bodies
	Cursor   string // where the next page begins; empty at the end
}

// countPage is how many references a count looks at between two looks at its
// context. Each page passes over what is in memory, so it is a large one.
const countPage = 1 << 16

// Pending lists what waits. It ends early with the context's error.
func (b *Broker) Pending(ctx context.Context, f Filter, cursor string, limit int) (Page, error) {
	if limit == 0 {
		limit = 100
	}
	if limit < 0 || limit > MaxPage {
		return Page{}, fmt.Errorf("%w: limit %d, want 1 to %d", ErrInvalid, limit, MaxPage)
	}
	after, err := f.start(cursor)
	if err != nil {
		return Page{}, err
	}
	keep, err := b.keep(f)
	if err != nil {
		return Page{}, err
	}
	var page Page
	for more := true; more && len(page.Messages) < limit; {
		if err := ctx.Err(); err != nil {
			return Page{}, err
		}
		var refs []engine.Listed
		refs, after, more, err = b.e.Page(after, f.before(), limit-len(page.Messages), keep)
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

// Count counts what waits. Without a range or a tag it reads a counter. A tag is
// compared by its hash, 32 bits. It ends early with the context's error.
func (b *Broker) Count(ctx context.Context, f Filter) (int64, error) {
	if f.From == 0 && f.To == 0 && f.Tag == "" {
		c, err := b.Counts(f.Topic)
		return c.Waiting, err
	}
	keep, err := b.keep(f)
	if err != nil {
		return 0, err
	}
	after, err := f.start("")
	if err != nil {
		return 0, err
	}
	var n int64
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		var refs []engine.Listed
		if refs, after, more, err = b.e.Page(after, f.before(), countPage, keep); err != nil {
			return 0, err
		}
		n += int64(len(refs))
	}
	return n, nil
}

func (f *Filter) before() int64 {
	if f.To == 0 {
		return math.MaxInt64
	}
	return f.To
}

// start is the key after which the page begins.
func (f *Filter) start(cursor string) (record.Key, error) {
	if cursor == "" {
		return record.Key{Due: f.From - 1, ID: math.MaxUint64, Kind: math.MaxUint8, Queue: math.MaxUint32}, nil
	}
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

// keep makes the test that a reference must pass.
func (b *Broker) keep(f Filter) (func(*record.Ref) bool, error) {
	tag := record.TagHash(f.Tag)
	if f.Topic == "" {
		return func(r *record.Ref) bool { return tag == 0 || r.Tag == tag }, nil
	}
	t := b.e.TopicNamed(f.Topic)
	if t == nil {
		return nil, unknownTopic(f.Topic)
	}
	first, end := t.FirstQueue, t.FirstQueue+record.QueueNumber(t.Queues)
	return func(r *record.Ref) bool {
		return r.Queue >= first && r.Queue < end && (tag == 0 || r.Tag == tag)
	}, nil
}

// describe reads the records of references and adds them to the page. A tag's
// hash may stand for another tag; the record decides.
func (b *Broker) describe(page *Page, refs []engine.Listed, tag string) {
	entries := make([]queue.Entry, len(refs))
	for i, r := range refs {
		entries[i] = queue.Entry{ID: r.ID, Size: r.Size}
	}
	b.e.Messages(entries, func(i int, m *record.Message, err error) {
		r := refs[i]
		t, _ := b.e.TopicOf(r.Queue)
		if t == nil || (err == nil && tag != "" && m.Tag != tag) {
			return
		}
		if err != nil {
			m = &record.Message{} // it is listed all the same; its record is damaged
		}
		v := b.view(t, r.Queue, m, r.ID)
		v.Due, v.Level, v.Body, v.State = r.Due, int(r.Level), nil, StateWaiting
		v.Handle = b.handle(t.Name, r.Due, r.ID)
		page.Messages = append(page.Messages, v)
	})
}
