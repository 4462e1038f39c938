package httpapi

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/backup"
	"github.com/duemq/duemq/internal/broker"
)

// large fills the store with more than a connection takes without a reader.
func (d *door) large() {
	d.t.Helper()
	body := strings.Repeat("x", 4<<20)
	for range 8 {
		d.publish("orders", "after=1h", body)
	}
}

// begun asks for a backup and reads no more than its head.
func begun(t *testing.T, url string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/backup", nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || w.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", w, err)
	}
	return w
}

// TestStreamTakesItsTime: the server's time-out does not end an answer of any
// length. Time is the connection's own here, which no fake clock moves.
func TestStreamTakesItsTime(t *testing.T) {
	d := newDoor(t)
	d.large()
	srv := httptest.NewUnstartedServer(d.h)
	const short = 50 * time.Millisecond
	srv.Config.WriteTimeout = short
	srv.Start()
	defer srv.Close()
	w := begun(t, srv.URL)
	defer w.Body.Close()
	<-time.After(3 * short)
	r, err := backup.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, w.Body); err != nil {
		t.Errorf("%v after the head %+v", err, r.Head())
	}
}

// TestStreamBreaks: what cannot go on is no whole answer to the client either.
func TestStreamBreaks(t *testing.T) {
	d := newDoor(t)
	d.large()
	w := begun(t, d.url)
	defer w.Body.Close()
	closed := make(chan error, 1)
	go func() { closed <- d.b.Close() }()
	for err := error(nil); !errors.Is(err, broker.ErrClosed); {
		_, err = d.b.Send(t.Context(), []broker.Message{{Topic: "orders"}})
	}
	if n, err := io.Copy(io.Discard, w.Body); err == nil {
		t.Errorf("a whole answer of %d bytes", n)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}
