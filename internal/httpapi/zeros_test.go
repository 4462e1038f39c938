package httpapi

import (
	"testing"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// TestZerosAreNoDefaults: a setting that says 0 is refused with what it may be;
// one that says nothing has its default.
func TestZerosAreNoDefaults(t *testing.T) {
	d := newDoor(t)
	d.do("PUT", "/v1/groups/made", "{}").want(201, nil)
	for setting, want := range map[string]string{
		`"maxAttempts":0`:  "with 0 attempts, want 1 to ",
		`"inflightMax":0`:  "with 0 messages in flight, want 1 to 10000",
		`"invisible":"0s"`: "with leases of 0s, want 1ms to 12h0m0s",
	} {
		d.do("POST", "/v1/groups", `{"name":"g",`+setting+`}`).refused(400, wire.CodeInvalidValue, `group "g" `+want)
		d.do("PUT", "/v1/groups/g", `{`+setting+`}`).refused(400, wire.CodeInvalidValue, `group "g" `+want)
		for _, method := range []string{"PUT", "PATCH"} {
			d.do(method, "/v1/groups/made", `{`+setting+`}`).refused(400, wire.CodeInvalidValue, `group "made" `+want)
		}
	}
	const noQueues = "0 queues for topic \"t\", want 1 to "
	d.do("POST", "/v1/topics", `{"name":"t","queues":0}`).refused(400, wire.CodeInvalidValue, noQueues)
	d.do("PUT", "/v1/topics/t", `{"queues":0}`).refused(400, wire.CodeInvalidValue, noQueues)
	d.do("POST", "/v1/topics", `{"name":"t"}`).want(201, nil)
	d.do("PUT", "/v1/topics/t", `{"queues":0}`).refused(400, wire.CodeInvalidValue, noQueues)
}

// TestOthersAreChangedByPatch: who makes what is there, and is not the same, is
// told how to change it.
func TestOthersAreChangedByPatch(t *testing.T) {
	d := newDoor(t)
	d.do("POST", "/v1/topics", `{"name":"orders"}`).want(201, nil)
	d.do("POST", "/v1/topics", `{"name":"orders","maxRate":5}`).refused(409, wire.CodeExists, "PATCH /v1/topics/orders changes its attributes")
	d.do("POST", "/v1/groups", `{"name":"billing"}`).want(201, nil)
	d.do("POST", "/v1/groups", `{"name":"billing","maxAttempts":2}`).refused(409, wire.CodeExists, "PATCH /v1/groups/billing changes it")
}
