package httpapi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// TestReceiveBytes: an answer ends at 16 MiB of bodies, and what did not fit
// comes with the next one, as a first attempt.
func TestReceiveBytes(t *testing.T) {
	d := newDoor(t)
	body := strings.Repeat("\xff", 3<<20) // no text, which would be slow under the race detector
	for i := range 7 {
		d.publish("orders", fmt.Sprintf("key=%d", i), body)
	}
	var keys []string
	var sizes []int
	for range 3 {
		var got wire.ReceiveReply
		d.do("POST", "/v1/topics/orders/receive", `{"group":"g","max":100}`).want(200, &got)
		sizes = append(sizes, len(got.Messages))
		for _, m := range got.Messages {
			keys = append(keys, m.Key)
			if m.Attempt != 1 {
				t.Errorf("message %s: attempt %d", m.Key, m.Attempt)
			}
		}
	}
	if fmt.Sprint(sizes) != "[5 2 0]" || strings.Join(keys, " ") != "0 1 2 3 4 5 6" {
		t.Errorf("answers of %v messages: %v", sizes, keys)
	}
}
