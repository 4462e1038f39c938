package duemq_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/duemq/duemq"
	"github.com/duemq/duemq/duemqtest"
	"github.com/duemq/duemq/internal/httpapi"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

func TestDialRefuses(t *testing.T) {
	for name, opts := range map[string][]duemq.Option{
		"WithSync":         {duemq.WithSync(duemq.Always)},
		"WithLevels":       {duemq.WithLevels(time.Second)},
		"WithMaxDelay":     {duemq.WithMaxDelay(time.Hour)},
		"WithQueues":       {duemq.WithQueues(1)},
		"WithSegmentBytes": {duemq.WithSegmentBytes(8 << 20)},
		"WithMemory":       {duemq.WithMemory(duemq.NewMemory())},
		"blank":            {duemq.WithToken("a b")},
		"control":          {duemq.WithToken("secret\r\nX-Forged: 1")},
	} {
		q, err := duemq.Dial(t.Context(), "127.0.0.1:1", opts...)
		if q != nil || !errors.Is(err, duemq.ErrInvalid) || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, %v; want %v with its name", name, q, err, duemq.ErrInvalid)
		}
	}
	for _, url := range []string{"", "http://", "ftp://127.0.0.1", "127.0.0.1:1?q=1", "http://a/#b", "http://user:secret@127.0.0.1", "http://%zz"} {
		q, err := duemq.Dial(t.Context(), url)
		if q != nil || !errors.Is(err, duemq.ErrInvalid) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, %v; want %v", url, q, err, duemq.ErrInvalid)
		}
	}
}

// TestDialOthers: what is there may be something else, or nothing.
func TestDialOthers(t *testing.T) {
	for answer, want := range map[string]string{
		"<html>": "not from a DueMQ server", `{"hello":"world"}`: "not a DueMQ server",
	} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, answer) }))
		if q, err := duemq.Dial(t.Context(), web.URL); q != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", answer, q, err, want)
		}
		web.Close()
	}
	web := httptest.NewServer(nil)
	web.Close()
	q, err := duemq.Dial(t.Context(), web.URL, duemq.WithClock(hasty{}))
	if q != nil || !errors.Is(err, duemq.ErrUnavailable) || !strings.Contains(err.Error(), web.Listener.Addr().String()) {
		t.Errorf("nobody there: %v, %v; want %v with the address", q, err, duemq.ErrUnavailable)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if q, err := duemq.Dial(ctx, web.URL); q != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: %v, %v; want %v", q, err, context.Canceled)
	}
}

// TestDialURLs: with and without scheme, with a path in front of the API, and a
// token that goes with each request and nowhere else.
func TestDialURLs(t *testing.T) {
	store := duemqtest.New(t)
	h := httpapi.New(store.Broker(), httpapi.Options{})
	seen := make(map[string]bool)
	mux := http.NewServeMux()
	mux.Handle("/", h)
	mux.Handle("/base/", http.StripPrefix("/base", h))
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s went on to another server", r.Method, r.URL)
	}))
	defer elsewhere.Close()
	mux.Handle("/moved/", http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen[r.Header.Get("Authorization")] = true
		mux.ServeHTTP(w, r)
	}))
	defer web.Close()
	addr := web.Listener.Addr().String()
	for _, url := range []string{addr, addr + "/", "http://" + addr, web.URL + "/base", web.URL + "/base/", addr + "/base"} {
		q, err := duemq.Dial(t.Context(), url, duemq.WithToken("s3cret"))
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		send(t, q, "x")
		if got := take(t, q, duemq.Group("g")); len(got) != 1 {
			t.Errorf("%s: received %d messages", url, len(got))
		}
		if err := q.Close(); err != nil {
			t.Errorf("%s: Close: %v", url, err)
		}
	}
	if len(seen) != 1 || !seen["Bearer s3cret"] {
		t.Errorf("Authorization %v", seen)
	}
	if _, err := duemq.Dial(t.Context(), web.URL+"/moved", duemq.WithToken("s3cret")); err == nil || !strings.Contains(err.Error(), elsewhere.URL) {
		t.Errorf("a server that has moved: %v, want to be told where", err)
	}
}

// refuser answers every request but the first, which is Dial's, as it is told.
type refuser struct {
	status int
	kind   string
	body   string
}

func (f *refuser) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/version" {
		io.WriteString(w, `{"version":"test"}`)
		return
	}
	w.Header().Set("Content-Type", f.kind)
	w.WriteHeader(f.status)
	io.WriteString(w, f.body)
}

// TestEveryCodeHasAClass: a caller tests for the same errors whichever way the
// queue was opened, so each code of a server is one of ours, or is listed here.
func TestEveryCodeHasAClass(t *testing.T) {
	want := map[wire.Code]error{
		wire.CodeBadRequest: duemq.ErrInvalid, wire.CodeUnknownParameter: duemq.ErrInvalid, wire.CodeUnknownField: duemq.ErrInvalid,
		wire.CodeInvalidValue: duemq.ErrInvalid, wire.CodeDelayInvalid: duemq.ErrInvalid, wire.CodeDelayConflict: duemq.ErrInvalid,
		wire.CodeForbidden: duemq.ErrForbidden, wire.CodeTopicUnknown: duemq.ErrUnknownTopic, wire.CodeMessageUnknown: duemq.ErrUnknownMessage,
		wire.CodeAlreadyDelivered: duemq.ErrAlreadyDelivered, wire.CodeAlreadyCancelled: duemq.ErrAlreadyCancelled,
		wire.CodeLeaseLost: duemq.ErrLeaseLost, wire.CodeTooLarge: duemq.ErrTooLarge, wire.CodeDelayTooLong: duemq.ErrDelayTooLong,
		wire.CodeFull: duemq.ErrFull, wire.CodeOverloaded: duemq.ErrUnavailable, wire.CodeDraining: duemq.ErrUnavailable,
		wire.CodeTimeout: duemq.ErrUnavailable, wire.CodeFailed: duemq.ErrFailed, wire.CodeClockSuspect: duemq.ErrClockSuspect,
		wire.CodeDiskFull: duemq.ErrDiskFull, wire.CodeRouteUnknown: errors.ErrUnsupported, wire.CodeMethod: errors.ErrUnsupported,
		wire.CodeGroupUnknown: duemq.ErrUnknownGroup, wire.CodeOperationUnknown: duemq.ErrUnknownOperation, wire.CodeExists: duemq.ErrExists,
		wire.CodeTransactionEnded: duemq.ErrTransactionEnded, wire.CodeMismatch: duemq.ErrMismatch, wire.CodeTooMany: duemq.ErrTooMany,
		wire.CodeConfirm: duemq.ErrInvalid,
		wire.CodeEnded:   nil, wire.CodeCrossOrigin: nil, wire.CodeHostRefused: nil, wire.CodeInternal: nil,
	}
	f := &refuser{kind: wire.ProblemType}
	web := httptest.NewServer(f)
	defer web.Close()
	q := dialled(t, web.URL, duemq.WithClock(hasty{}))
	for _, code := range codes(t) {
		class, known := want[code]
		if !known {
			t.Errorf("code %s is new: give it a class in refusal.go, and say here which", code)
		}
		f.status, f.body = http.StatusTeapot, fmt.Sprintf(`{"status":418,"code":%q,"detail":"what happened"}`, code)
		err := q.Cancel(t.Context(), "0000000000000001")
		if err == nil || !strings.Contains(err.Error(), "what happened") || class != nil && !errors.Is(err, class) {
			t.Errorf("code %s: %v, want %v", code, err, class)
		}
	}
}

// codes reads the codes from their source.
func codes(t *testing.T) []wire.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "internal/httpapi/wire/problem.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []wire.Code
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Names) != 1 || !strings.HasPrefix(v.Names[0].Name, "Code") {
			return true
		}
		lit, ok := v.Values[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		code, err := strconv.Unquote(lit.Value)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, wire.Code(code))
		return true
	})
	if len(all) < 20 {
		t.Fatalf("found %d codes", len(all))
	}
	return all
}

// hasty is a clock on which every pause is over at once.
type hasty struct{}

func (hasty) Now() (wall time.Time, elapsed time.Duration) { return time.Now(), 0 }
func (hasty) NewTimer(time.Duration) duemq.Timer           { return hastyTimer{time.NewTimer(0)} }

type hastyTimer struct{ *time.Timer }

func (t hastyTimer) C() <-chan time.Time { return t.Timer.C }

// dialled dials a server that the test has made.
func dialled(t *testing.T, url string, opts ...duemq.Option) *duemq.Queue {
	t.Helper()
	q, err := duemq.Dial(t.Context(), url, opts...)
	if err != nil {
		t.Fatalf("Dial(%q): %v", url, err)
	}
	t.Cleanup(func() { q.Close() })
	return q
}

// TestAnswersOfProxies have no code.
func TestAnswersOfProxies(t *testing.T) {
	f := &refuser{kind: "text/html", body: "<html>"}
	web := httptest.NewServer(f)
	defer web.Close()
	q := dialled(t, web.URL)
	for status, class := range map[int]error{
		413: duemq.ErrTooLarge, 414: duemq.ErrTooLarge, 431: duemq.ErrTooLarge,
		408: duemq.ErrUnavailable, 429: duemq.ErrUnavailable, 502: duemq.ErrUnavailable, 503: duemq.ErrUnavailable, 504: duemq.ErrUnavailable,
		401: nil, 404: nil, 418: nil, 500: nil,
	} {
		f.status = status
		err := q.Cancel(t.Context(), "0000000000000001")
		if err == nil || !strings.Contains(err.Error(), strconv.Itoa(status)) || class != nil && !errors.Is(err, class) {
			t.Errorf("status %d: %v, want %v", status, err, class)
		}
	}
}

// TestContextOfADialledCall: its end is what the error says, not that the server
// is away.
func TestContextOfADialledCall(t *testing.T) {
	q := dialBench(t)
	hold := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // a server hears that its client has left only after that
		<-r.Context().Done()
	})
	q.server.before.Store(&hold)
	defer q.server.before.Store(nil)
	for name, call := range map[string]func(context.Context) error{
		"Send":    func(ctx context.Context) error { _, err := q.Send(ctx, topic, nil); return err },
		"Get":     func(ctx context.Context) error { _, err := q.Get(ctx, "0000000000000001"); return err },
		"Receive": func(ctx context.Context) error { _, err := q.ReceiveBatch(ctx, topic); return err },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, duemq.ErrUnavailable) {
			t.Errorf("%s: %v, want %v", name, err, context.DeadlineExceeded)
		}
		cancel()
	}
}

// TestParcels: a batch of more than a request holds is several; when one of them
// is lost, the receipts say of which messages nothing is known.
func TestParcels(t *testing.T) {
	q := dialBench(t)
	var requests atomic.Int32
	count := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if requests.Add(1); r.ContentLength > 16<<20 {
			t.Errorf("a request of %d bytes", r.ContentLength)
		}
	})
	q.server.before.Store(&count)
	msgs := numbered(7, func(i int, m *duemq.Message) {
		m.Body = append(m.Body, make([]byte, 4<<20-1)...)
		m.Queue, m.InQueue = i, true
	})
	msgs[3].Topic = "a b"
	rs, err := q.SendBatch(t.Context(), msgs)
	if requests.Load() != 4 || len(rs) != 7 || !errors.Is(err, duemq.ErrInvalid) {
		t.Errorf("%d requests, %d receipts, %v; want 4, 7 and one refused", requests.Load(), len(rs), err)
	}
	for i, r := range rs {
		if (r.Err == nil) != (i != 3) || i != 3 && r.Queue != i {
			t.Errorf("receipt %d: %+v", i, r)
		}
	}
	requests.Store(0)
	lose := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if requests.Add(1) == 2 {
			panic(http.ErrAbortHandler)
		}
	})
	q.server.before.Store(&lose)
	rs, err = q.SendBatch(t.Context(), msgs)
	if requests.Load() != 2 || len(rs) != 7 || !errors.Is(err, duemq.ErrUnavailable) || !strings.Contains(err.Error(), "message 6: ") {
		t.Errorf("%d requests, %d receipts, %v; want 2, 7 and %v", requests.Load(), len(rs), err, duemq.ErrUnavailable)
	}
	for i, r := range rs {
		if known := i < 2; (r.Err == nil) != known || !known && i != 3 && !errors.Is(r.Err, duemq.ErrUnavailable) {
			t.Errorf("receipt %d: %+v", i, r)
		}
	}
	requests.Store(1)
	if rs, err := q.SendBatch(t.Context(), msgs); rs != nil || !errors.Is(err, duemq.ErrUnavailable) {
		t.Errorf("nothing known of any: %v, %v; want %v", rs, err, duemq.ErrUnavailable)
	}
}

// TestAwkwardTexts arrive as they were sent, long ones too, or are refused.
func TestAwkwardTexts(t *testing.T) {
	bothWays(t, func(t *testing.T, open opener) {
		q := open(t)
		for _, s := range []string{"a b&c=d+e%20;/?#", "ü漢字🙂", "\t\n\r\x7f", strings.Repeat("k", 10_000), strings.Repeat("é&", 4000)} {
			r := send(t, q.Queue, s, duemq.Key(s), duemq.Header("h =&", s), duemq.Header("empty", ""))
			m, err := q.Get(t.Context(), r.ID)
			if err != nil || string(m.Body) != s || m.Key != s || len(m.Headers) != 2 || m.Headers["h =&"] != s {
				t.Errorf("sent %.40q, got %.200v, %v", s, m, err)
			}
		}
	})
	q := dialBench(t)
	for _, opt := range []duemq.SendOption{duemq.Key("\xff"), duemq.Tag("\xff"), duemq.Header("\xff", ""), duemq.Header("h", "\xff")} {
		if _, err := q.Send(t.Context(), topic, nil, opt); !errors.Is(err, duemq.ErrInvalid) {
			t.Errorf("no UTF-8: %v, want %v", err, duemq.ErrInvalid)
		}
	}
	if _, err := q.Send(t.Context(), "\xff", nil); !errors.Is(err, duemq.ErrInvalid) {
		t.Errorf("no UTF-8: %v, want %v", err, duemq.ErrInvalid)
	}
}

// TestSettleOfAServer asks until nothing is due.
func TestSettleOfAServer(t *testing.T) {
	c := duemqtest.NewClock(time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC))
	store, err := duemq.Open(t.Context(), "", duemq.WithMemory(duemq.NewMemory()), duemq.WithClock(c))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	web := httptest.NewServer(httpapi.New(store.Broker(), httpapi.Options{}))
	defer web.Close()
	q := dialled(t, web.URL)
	for range 20 {
		batch(t, q, numbered(50, func(_ int, m *duemq.Message) { m.After = time.Minute }))
		c.Advance(time.Minute)
		if err := q.Settle(t.Context()); err != nil {
			t.Fatalf("Settle: %v", err)
		}
		if got := take(t, q); len(got) != 50 {
			t.Fatalf("%d visible after Settle, want 50", len(got))
		}
	}
}

// TestGiveBack is one request, to a server that has that route.
func TestGiveBack(t *testing.T) {
	q := dialBench(t, duemq.WithQueues(1))
	batch(t, q.Queue, numbered(10, func(int, *duemq.Message) {}))
	var returns atomic.Int32
	count := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/leases/return" {
			returns.Add(1)
		}
	})
	q.server.before.Store(&count)
	for range q.Receive(t.Context(), topic, duemq.Max(10)) {
		break
	}
	if returns.Load() != 1 {
		t.Errorf("%d requests to give back, want 1", returns.Load())
	}
	if rest, err := q.ReceiveBatch(t.Context(), topic, duemq.Wait(0)); err != nil || len(rest) != 9 {
		t.Errorf("%d received, %v; want the other nine", len(rest), err)
	}
}
