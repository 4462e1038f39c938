package httpapi

import (
	"fmt"
	"net"
	"testing"
)

// TestSlowBodiesKeepNobodyOut: a client that is slow to send large bodies holds
// all the room that there is for them, and small messages go through all the
// same.
func TestSlowBodiesKeepNobodyOut(t *testing.T) {
	d := setup{options: Options{MaxBodies: maxBatchBody}}.open(t)
	addr, _, _ := d.serving()
	slow, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	fmt.Fprintf(slow, "POST /v1/batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n{", maxBatchBody)
	d.inside(&d.h.requests, 1)
	for d.h.bodies.TryAcquire(1) { // until its body is being read
		d.h.bodies.Release(1)
	}
	d.publish("orders", "", "small")
	if got := bodies(d.receive("g")); got != "small" {
		t.Errorf("received %q", got)
	}
}
