package httpapi

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
)

// admit refuses what a browser page could send on its own.
func (h *Handler) admit(r *http.Request) error {
	if onLoopback(r) && !h.ownHost(r.Host) {
		return fmt.Errorf("%w: %q is none of this server's on a loopback address; use localhost or 127.0.0.1, or name it to the server: --http-hosts",
			errHost, shorten(r.Host))
	}
	if err := h.origin.Check(r); err != nil {
		return fmt.Errorf("%w: a page of another origin may not change anything here", errCrossOrigin)
	}
	return nil
}

// onLoopback says whether the connection came to a loopback address, where only
// programs of this machine are expected. What is not known to be elsewhere is.
func onLoopback(r *http.Request) bool {
	switch a := r.Context().Value(http.LocalAddrContextKey).(type) {
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	case *net.UnixAddr:
		return false // no page reaches it
	}
	return true
}

// ownHost says whether a Host header names this server. A page whose name was
// made to resolve to 127.0.0.1 (DNS rebinding) is of the same origin as far as
// the browser knows, and only its Host gives it away.
func (h *Handler) ownHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if a, err := netip.ParseAddr(host); err == nil {
		return a.IsLoopback()
	}
	same := func(name string) bool { return strings.EqualFold(name, host) }
	return host == "" || same("localhost") || slices.ContainsFunc(h.o.Hosts, same)
}

// A room bounds how many requests are inside at once.
type room struct {
	limit int64
	taken atomic.Int64
}

// enter takes room for a request, without waiting.
func (r *room) enter() error {
	if r.taken.Add(1) > r.limit {
		r.leave()
		return fmt.Errorf("%w: %d at once is the limit; try again in a second", errOverloaded, r.limit)
	}
	return nil
}

func (r *room) leave() { r.taken.Add(-1) }

// unrouted answers what no route takes. found is the mux's own answer.
func (h *Handler) unrouted(w http.ResponseWriter, r *http.Request, found http.Handler) {
	probe := probe{header: make(http.Header)}
	found.ServeHTTP(&probe, r)
	if allow := probe.header.Get("Allow"); allow != "" {
		w.Header().Set("Allow", allow)
		h.refuse(w, r, fmt.Errorf("%w: %s on %s; it takes %s", errMethod, r.Method, shorten(r.URL.Path), allow))
		return
	}
	h.refuse(w, r, fmt.Errorf("%w: %s; the API begins with /v1, for example POST /v1/topics/orders/messages", errRoute, shorten(r.URL.Path)))
}

// A probe takes an answer without sending it.
type probe struct{ header http.Header }

func (p *probe) Header() http.Header         { return p.header }
func (p *probe) Write(b []byte) (int, error) { return len(b), nil }
func (p *probe) WriteHeader(int)             {}
