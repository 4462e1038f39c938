package broker

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/record"
)

// refused demands that what users hand in is refused by its class, in a text
// that does not repeat all of it.
func refused(t *testing.T, s string, err error) {
	t.Helper()
	if !errors.Is(err, ErrInvalid) || len(err.Error()) > 500 {
		t.Fatalf("%q: %v, want a short %v", s, err, ErrInvalid)
	}
}

// FuzzParseLease: a lease is refused, or it is the lease that its own text names.
func FuzzParseLease(f *testing.F) {
	f.Add(lease{group: "g", attempt: 1}.String())
	f.Add(lease{group: "%RETRY%g|_-", queue: math.MaxUint32, offset: 1<<62 - 1, attempt: math.MaxUint32}.String())
	f.Add("bDEgZyAwMDcgMDEgMDI")  // l1 g 007 01 02
	f.Add("bDEgZyArMSAwIDA")      // l1 g +1 0 0
	f.Add("bDIgZyAxIDAgMA")       // l2 g 1 0 0
	f.Add("bDEgIDEgMCAw\nMA\r\n") // no group, and what the decoder skips
	f.Add("l1 g 1 0 0")
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		l, err := parseLease(s)
		if err != nil {
			refused(t, s, err)
			return
		}
		again, err := parseLease(l.String())
		if err != nil || again != l {
			t.Fatalf("%q is %+v, whose text %q is %+v, %v", s, l, l, again, err)
		}
	})
}

// FuzzParseReference: an id or a handle is refused, or it names a message whose
// id and whose handle name it too.
func FuzzParseReference(f *testing.F) {
	b := &Broker{o: Options{Name: "broker-a"}}
	f.Add(record.ID(1).String())
	f.Add("FFFFFFFFFFFFFFFF")
	f.Add("0000000000000000")
	f.Add("+000000000000001")
	f.Add(b.handle("orders", 1_796_115_600_000, 0x1000))
	f.Add(b.handle("", math.MinInt64, math.MaxUint64))
	f.Add("djEgb3JkZXJzIGJyb2tlci1hIDEgMDAwMDAwMDAwMDAwMTAwMA==") // as RocketMQ makes it, five items
	f.Add("v1 orders broker-a 1 0000000000001000 0000000000001000")
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseReference(s)
		if err != nil {
			refused(t, s, err)
			return
		}
		for _, text := range []string{id.String(), b.handle("orders", 1, id)} {
			again, err := ParseReference(text)
			if err != nil || again != id || id == 0 {
				t.Fatalf("%q is %v, and %q is %v, %v", s, id, text, again, err)
			}
		}
	})
}

// FuzzCursor: a cursor is refused, or it is the one that its own key makes, and
// what is listed from there on stands behind it and goes forward.
func FuzzCursor(f *testing.F) {
	b := opened(f)
	for i := range 5 {
		m := Message{Topic: "orders", Delay: engine.Delay{Kind: engine.DelayAfter, Value: int64(1000 * (i/2 + 1))}}
		if _, err := b.Send(f.Context(), []Message{m}); err != nil {
			f.Fatalf("Send: %v", err)
		}
	}
	first, err := b.Pending(f.Context(), Filter{}, "", 1)
	if err != nil || len(first.Messages) != 1 || first.Cursor == "" {
		f.Fatalf("Pending: %+v, %v", first, err)
	}
	f.Add(first.Cursor)
	f.Add(appendCursor(record.Key{}))
	f.Add(appendCursor(record.Key{Due: first.Messages[0].Due}))
	f.Add(appendCursor(record.Key{Due: -1, ID: math.MaxUint64, Kind: math.MaxUint8, Queue: math.MaxUint32}))
	f.Add(appendCursor(record.Key{Due: math.MaxInt64}))
	f.Add(first.Cursor[1:])
	f.Add(first.Cursor + "\n")
	f.Fuzz(func(t *testing.T, s string) {
		key, err := parseCursor(s)
		if err != nil {
			refused(t, s, err)
			return
		}
		if again, err := parseCursor(appendCursor(key)); err != nil || again != key {
			t.Fatalf("%q is %+v, whose text %q is %+v, %v", s, key, appendCursor(key), again, err)
		}
		page, err := b.Pending(t.Context(), Filter{}, s, 2)
		if err != nil || len(page.Messages) > 2 {
			t.Fatalf("%q: %d messages, %v", s, len(page.Messages), err)
		}
		last := key
		for _, m := range page.Messages {
			if m.Due < last.Due || m.Due == last.Due && m.ID < last.ID {
				t.Fatalf("%q: message %v due %d is listed behind %+v", s, m.ID, m.Due, last)
			}
			last = record.Key{Due: m.Due, ID: m.ID}
		}
		if next, err := parseCursor(page.Cursor); page.Cursor != "" && (err != nil || next.Due != last.Due || next.ID != last.ID) {
			t.Fatalf("%q: the next page begins behind %+v, %v; want %+v", s, next, err, last)
		}
	})
}

// FuzzSpec: what the engine keeps of a bulk operation is read as it was written,
// and anything else is refused or means the same when it is written again.
func FuzzSpec(f *testing.F) {
	f.Add(`{"kind":"cancel","before":7}`)
	f.Add(`{"kind":"spread","filter":{"topic":"t","ids":["0000000000000001"],"overdue":true},"before":1,"from":5,"over":6,"matched":7}`)
	f.Add(`{"kind":"reschedule","before":1,"by":-5}`)
	f.Add(`{"kind":1}`)
	f.Add(`[`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := readSpec(text)
		if err != nil {
			if !errors.Is(err, record.ErrCorrupt) {
				t.Fatalf("%q: %v, want it of class %v", text, err, record.ErrCorrupt)
			}
			return
		}
		s.due(1, 1)
		again, err := json.Marshal(s)
		if err != nil {
			t.Fatalf("%q: %+v cannot be written: %v", text, s, err)
		}
		back, err := readSpec(string(again))
		if err != nil {
			t.Fatalf("%q: %+v, written as %s: %v", text, s, again, err)
		}
		if third, err := json.Marshal(back); err != nil || !bytes.Equal(third, again) {
			t.Fatalf("%q: written as %s, then as %s, %v", text, again, third, err)
		}
	})
}
