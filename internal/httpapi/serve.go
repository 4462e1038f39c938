package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/duemq/duemq/internal/broker"
)

// Times of a connection. A request is read and answered within exchange, in
// which the longest wait of a receive has its place.
const (
	readHeader = 5 * time.Second
	exchange   = broker.MaxWait + 90*time.Second
	idle       = 2 * time.Minute
)

// maxHeaderBytes bounds the head of a request. Key, tag and properties may have
// 32 KiB, which percent signs make three times as long.
const maxHeaderBytes = broker.MaxHead

// Serve answers requests on l until ctx ends, then stops in order: readiness
// says no and waiting receives end, no more connections are taken, and what is
// being answered has Options.Grace to end. It closes l. It returns nil after an
// orderly stop, and an error if the listener failed or requests had to be cut
// off.
func (h *Handler) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: readHeader,
		ReadTimeout:       exchange,
		WriteTimeout:      exchange,
		IdleTimeout:       idle,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(h.o.Logger.Handler(), slog.LevelWarn),
		BaseContext:       func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("http on %v: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	h.Drain()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.o.Grace)
	defer cancel()
	err := srv.Shutdown(grace)
	if err != nil {
		err = errors.Join(fmt.Errorf("http on %v: requests were cut off after %v: %w", l.Addr(), h.o.Grace, err), srv.Close())
	}
	if serr := <-ended; !errors.Is(serr, http.ErrServerClosed) {
		err = errors.Join(err, serr)
	}
	return err
}
