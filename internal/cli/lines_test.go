package cli

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

func TestLines(t *testing.T) {
	three := 3
	defaults := wire.Send{Topic: "orders", Key: "k", Tag: "t", After: "1h", Queue: &three, Headers: map[string]string{"a": "1", "b": "2"}}
	in := newLines(strings.NewReader(`{"text":"x"}

 {"text":"y","topic":"other","key":"own","tag":"red","level":4,"queue":1,"headers":{"a":"mine"}}
{"body":"eg=="}`), defaults)
	one := 1
	want := []wire.Send{
		{Topic: "orders", Key: "k", Tag: "t", After: "1h", Queue: &three, Headers: map[string]string{"a": "1", "b": "2"}, Text: "x"},
		{Topic: "other", Key: "own", Tag: "red", Level: "4", Queue: &one, Headers: map[string]string{"a": "mine", "b": "2"}, Text: "y"},
		{Topic: "orders", Key: "k", Tag: "t", After: "1h", Queue: &three, Headers: map[string]string{"a": "1", "b": "2"}, Body: []byte("z")},
	}
	for i := range want {
		got, err := in.next()
		if err != nil || !reflect.DeepEqual(*got, want[i]) {
			t.Errorf("message %d: %+v, %v\nwant %+v", i, got, err, want[i])
		}
	}
	if _, err := in.next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v, want EOF", err)
	}
}

// FuzzLines has every input give messages, refusals that name a line, or the
// end, and never more of them than lines.
func FuzzLines(f *testing.F) {
	f.Add(`{"text":"x"}` + "\n\n" + `{"level":3}`)
	f.Add(`{"text":"x"} {}`)
	f.Add("null\n[]\n\"\xff\"")
	f.Fuzz(func(t *testing.T, text string) {
		in := newLines(strings.NewReader(text), wire.Send{Topic: "orders"})
		for n := 0; ; n++ {
			m, err := in.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if n > strings.Count(text, "\n") {
				t.Fatalf("more than its lines from %q", text)
			}
			if err != nil {
				if !strings.Contains(err.Error(), "line ") {
					t.Errorf("%q: %v", text, err)
				}
				return
			}
			if m.Topic == "" {
				t.Errorf("%q: a message without a topic", text)
			}
		}
	})
}
