package wire

import (
	"encoding/json"
	"testing"
)

// TestMessageJSON freezes the names and their order.
func TestMessageJSON(t *testing.T) {
	offset, late := uint64(1)<<63, int64(7)
	m := Message{
		ID: "0000000000000057", Topic: "orders", Queue: 3, Offset: &offset, Key: "k", Tag: "t", Headers: map[string]string{"a": "b"},
		Body: []byte("hello"), Text: "hello", BornAt: 1, StoredAt: 4, Level: 5, DeliverAt: 2, VisibleAt: 3, LatenessMs: &late, Attempt: 1,
		Handle: "h", Lease: "l", State: StateInflight,
	}
	for _, c := range []struct {
		v    any
		want string
	}{
		{m, `{"id":"0000000000000057","topic":"orders","queue":3,"offset":"9223372036854775808","key":"k","tag":"t","headers":{"a":"b"},` +
			`"body":"aGVsbG8=","text":"hello","bornAt":"1970-01-01T00:00:00.001Z","storedAt":"1970-01-01T00:00:00.004Z","level":5,"deliverAt":"1970-01-01T00:00:00.002Z","visibleAt":"1970-01-01T00:00:00.003Z",` +
			`"latenessMs":7,"attempt":1,"handle":"h","lease":"l","state":"inflight"}`},
		{Message{ID: "1", Topic: "t", State: StateWaiting}, `{"id":"1","topic":"t","queue":0,"state":"waiting"}`},
		{Receipt{ID: "1", Topic: "t", Offset: &offset, State: StateReady}, `{"id":"1","topic":"t","queue":0,"offset":"9223372036854775808","state":"ready"}`},
		{Receive{Group: "g"}, `{"group":"g"}`},
		{Send{Topic: "t"}, `{"topic":"t"}`},
		{Answer{ID: "1", Topic: "t", DeliverAt: 2, State: StateCancelled}, `{"id":"1","topic":"t","deliverAt":"1970-01-01T00:00:00.002Z","state":"cancelled"}`},
		{Page{Messages: []Message{}}, `{"messages":[]}`},
		{Count{Count: 1 << 60}, `{"count":"1152921504606846976"}`},
		{Problem{Type: "urn:duemq:error:internal", Title: "t", Status: 500, Detail: "d", Code: CodeInternal}, `{"type":"urn:duemq:error:internal","title":"t","status":500,"detail":"d","code":"internal","retryable":false}`},
	} {
		got, err := json.Marshal(c.v)
		if err != nil || string(got) != c.want {
			t.Errorf("%T: %s, %v\nwant %s", c.v, got, err, c.want)
		}
	}
	var back Message
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &back); err != nil || *back.Offset != offset || back.DeliverAt != 2 || *back.LatenessMs != 7 {
		t.Errorf("read back %+v, %v", back, err)
	}
}
