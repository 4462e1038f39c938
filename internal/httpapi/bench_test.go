package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/fs"
)

// BenchmarkPublish is what the door costs for a raw message of 256 bytes,
// without sockets, on a disk that is synced now and then. 64 senders at once, so
// that the engine's batches are shared.
func BenchmarkPublish(b *testing.B) {
	br, err := broker.Open(b.Context(), broker.Options{Engine: engine.Options{
		FS: fs.Real(), Dir: b.TempDir(), Clock: clock.Real(), Rand: strings.NewReader(strings.Repeat("duemq test store", 4)),
		Sync: engine.SyncInterval,
	}})
	if err != nil {
		b.Fatal(err)
	}
	defer br.Close()
	h := New(br, Options{})
	body := strings.Repeat("x", 256)
	for _, query := range []string{"", "?after=1h", "?level=18&key=k&tag=t"} {
		b.Run("query="+query, func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					r := httptest.NewRequest(http.MethodPost, "http://localhost/v1/topics/orders/messages"+query, strings.NewReader(body))
					w := httptest.NewRecorder()
					if h.ServeHTTP(w, r); w.Code != http.StatusCreated {
						b.Fatalf("%d %s", w.Code, w.Body)
					}
				}
			})
		})
	}
}
