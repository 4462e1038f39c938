package httpapi

import (
	"strings"
	"testing"
)

// TestMatchedIsCountedOrAbsent: an operation that counted nothing beforehand does
// not claim that it matches 0; one that counted says so, 0 too.
func TestMatchedIsCountedOrAbsent(t *testing.T) {
	d := newDoor(t)
	d.publish("orders", "after=10s", "")
	for kind, ask := range map[string]string{
		"reschedule": `{"filter":{"topic":"orders"},"by":"5s"}`, "deliver": `{"filter":{"key":"none"}}`, "cancel": `{"filter":{"key":"none"}}`,
	} {
		op := d.bulk(kind, ask)
		if r := d.do("GET", "/v1/operations/"+op.ID, "").want(200, nil); strings.Contains(r.body, "matched") {
			t.Errorf("%s: %s", kind, r.body)
		}
	}
	for kind, ask := range map[string]string{"cancel": `"dryRun":true`, "spread": `"over":"1m"`} {
		if r := d.do("POST", "/v1/pending/"+kind, `{"filter":{"key":"none"},`+ask+`}`); !strings.Contains(r.body, `"matched":"0"`) {
			t.Errorf("%s: %d %s", kind, r.status, r.body)
		}
	}
}
