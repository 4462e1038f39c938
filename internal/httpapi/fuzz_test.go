package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// FuzzDecode: JSON of every request is read or refused by a class of the table,
// and what was read is written so that it reads the same.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"messages":[{"topic":"orders","text":"a","level":3}]}`, `{"group":"g","wait":"30s"}`, `{"leases":["a"]}`,
		`{"deliverAt":"2026-12-01T09:00Z"}`, `{"by":"-5m"}`, `{"delay":10}`, `{"a":{}}`, `{} {}`, "[", "\xff", `{"level":"\u0000"}`,
		`{"offsets":{"0":"12","-1":"x"}}`, `{"topic":"orders","offset":"12","dryRun":true}`, `{"filter":{"from":"2026-12-01T09:00Z","ids":[]},"over":"1h"}`,
		`{"name":"g","backoff":["1s","PT5S"],"start":"latest"}`, `{"name":"t","maxRate":1,"attributes":{"a":"b"}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, fresh := range []func() any{
			func() any { return new(wire.Batch) }, func() any { return new(wire.Send) }, func() any { return new(wire.Receive) },
			func() any { return new(wire.AckAll) }, func() any { return new(wire.Nack) }, func() any { return new(wire.Extend) },
			func() any { return new(wire.Reschedule) }, func() any { return new(wire.Bury) }, func() any { return new(wire.NewTopic) },
			func() any { return new(wire.TopicSettings) }, func() any { return new(wire.TopicPatch) }, func() any { return new(wire.NewGroup) },
			func() any { return new(wire.GroupSettings) }, func() any { return new(wire.Offsets) }, func() any { return new(wire.Reset) },
			func() any { return new(wire.Lock) }, func() any { return new(wire.Unlock) }, func() any { return new(wire.Redrive) },
			func() any { return new(wire.PurgeDead) }, func() any { return new(wire.Checks) }, func() any { return new(wire.BulkCancel) },
			func() any { return new(wire.BulkReschedule) }, func() any { return new(wire.BulkSpread) },
		} {
			v := fresh()
			if err := decode(b, v); err != nil {
				if rowOf(err) == &defect || len(err.Error()) > 2000 {
					t.Fatalf("%q into %T: %v", b, v, err)
				}
				continue
			}
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatalf("%q into %T: %v", b, v, err)
			}
			again := fresh()
			if err := decode(text, again); err != nil {
				t.Fatalf("%q into %T: %s: %v", b, v, text, err)
			}
			if text2, err := json.Marshal(again); err != nil || !bytes.Equal(text2, text) {
				t.Fatalf("%q into %T: %s then %s, %v", b, v, text, text2, err)
			}
		}
	})
}

// FuzzPublish: the query and headers of publish are read or refused by a class
// of the table, and no option gets lost.
func FuzzPublish(f *testing.F) {
	f.Add("after=10s&key=k&property.a=b", "Duemq-Tag", "t")
	f.Add("at=2026-12-01T09:00+08:00", "Duemq-Tz", "Asia/Shanghai")
	f.Add("level=3", "Duemq-Level", "3")
	f.Add("aftr=1", "duemq-property-a", "\xff")
	f.Add("transaction=shop", "Idempotency-Key", `"a \" b"`)
	f.Fuzz(func(t *testing.T, query, name, value string) {
		r := httptest.NewRequest(http.MethodPost, "/v1/topics/orders/messages", nil)
		r.Header.Set(name, value)
		q, err := parseQuery(query, routes[0].query)
		req := &request{Request: r, rt: &routes[0], values: q}
		var s wire.Send
		if err == nil {
			s, err = req.send()
		}
		if err != nil {
			if !errors.Is(err, errBadRequest) && !errors.Is(err, errUnknownParameter) || len(err.Error()) > 2000 {
				t.Fatalf("%q, %q: %q: %v", query, name, value, err)
			}
			return
		}
		given := len(q)
		for n := range r.Header {
			if strings.HasPrefix(n, "Duemq-") || n == wire.IdempotencyHeader {
				given++
			}
		}
		read := len(s.Headers)
		v := reflect.ValueOf(s)
		for _, field := range []string{"Key", "Tag", "After", "At", "Zone", "Level", "Queue", "Transaction", "IdempotencyKey"} {
			if !v.FieldByName(field).IsZero() {
				read++
			}
		}
		if read != given {
			t.Fatalf("%q, %q: %q: %d options given, %d read: %+v", query, name, value, given, read, s)
		}
	})
}

// FuzzInstead never fails, and says something.
func FuzzInstead(f *testing.F) {
	f.Add("aftr")
	f.Add("")
	f.Fuzz(func(t *testing.T, name string) {
		if got := instead(name, []string{"after", "at", "level"}); got == "" {
			t.Fatal("nothing said")
		}
		if d := distance(name, name); d != 0 {
			t.Fatalf("distance(%q, itself) = %d", name, d)
		}
		if a, b := distance(name, "after"), distance("after", name); a != b {
			t.Fatalf("distance of %q: %d and %d", name, a, b)
		}
	})
}

// FuzzRead: the query of every listing and look is read or refused by a class of
// the table.
func FuzzRead(f *testing.F) {
	f.Add("limit=10&cursor=b3JkZXJz&system")
	f.Add("ids=0000000000000057,x&state=paused&overdue=true&within=1h")
	f.Add("step=15m&by=topic&from=2026-12-01T09:00&tz=Asia/Shanghai&to=1796086800000")
	f.Add("offset=18446744073709551615&max=-1&maxBytes=9&wait=30s&at=1&bodies=false")
	d := newDoor(f)
	f.Fuzz(func(t *testing.T, query string) {
		for i := range routes {
			rt := &routes[i]
			q, err := parseQuery(query, rt.query)
			if err != nil || !strings.HasPrefix(rt.pattern, "GET /v1/") || rt.room == nil {
				continue
			}
			if q["wait"] != "" {
				delete(q, "wait")
			}
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			for name, v := range map[string]string{"topic": "orders", "group": "g", "queue": "0", "id": "0", "name": "n", "operation": "op-1"} {
				r.SetPathValue(name, v)
			}
			err = rt.serve(d.h, w, &request{Request: r, h: d.h, rt: rt, values: q, reply: w.Header()})
			if err != nil && (rowOf(err) == &defect || len(err.Error()) > 2000) {
				t.Fatalf("%s?%s: %v", rt.pattern, query, err)
			}
		}
	})
}

// FuzzNumber: a whole number reads as it is written.
func FuzzNumber(f *testing.F) {
	f.Add("12")
	f.Add("-9223372036854775808")
	f.Add("9223372036854775808")
	f.Fuzz(func(t *testing.T, s string) {
		var n, again wire.Number
		if err := n.UnmarshalText([]byte(s)); err != nil {
			if !errors.Is(err, wire.ErrSyntax) {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		text, err := json.Marshal(n)
		if err != nil || json.Unmarshal(text, &again) != nil || again != n {
			t.Fatalf("%q is %d, written as %s, read as %d: %v", s, n, text, again, err)
		}
	})
}
