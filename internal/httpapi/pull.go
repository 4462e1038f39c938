package httpapi

import (
	"fmt"
	"math"
	"strconv"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/httpapi/wire"
	"github.com/duemq/duemq/internal/record"
)

// pull reads messages of a queue, waiting for the first one if asked to.
func (h *Handler) pull(r *request) (*wire.Pulled, error) {
	q := broker.PullRequest{Topic: r.path("topic"), Tags: r.text("tags")}
	var err error
	if q.Queue, err = r.queue(); err != nil {
		return nil, err
	}
	for name, into := range map[string]*int{"max": &q.Max, "maxBytes": &q.MaxBytes} {
		n, err := r.integer(name, 0)
		if err != nil {
			return nil, err
		}
		*into = int(min(max(n, math.MinInt32), math.MaxInt32)) // the broker says what is wrong with it
	}
	if v, ok := r.query("offset"); ok {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: offset %q is no whole number from 0", errBadRequest, shorten(v))
		}
		q.Offset = record.Offset(n)
	}
	if q.Wait, err = r.duration("wait"); err != nil {
		return nil, err
	}
	got, err := h.b.Pull(r.Context(), q)
	if err != nil {
		return nil, err
	}
	return &wire.Pulled{
		Messages: messages(got.Messages), Next: uint64(got.Next), Low: uint64(got.Low), High: uint64(got.High),
		Moved: got.Moved, Skipped: got.Skipped,
	}, nil
}

// queue reads the queue of the path.
func (r *request) queue() (int, error) {
	v := r.path("queue")
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%w: queue %q is no number", errBadRequest, shorten(v))
	}
	return int(n), nil
}

// searchOffset finds the first offset of a queue that became visible at an
// instant or later.
func (h *Handler) searchOffset(r *request) (*wire.Offset, error) {
	queue, err := r.queue()
	if err != nil {
		return nil, err
	}
	if _, ok := r.query("at"); !ok {
		return nil, fmt.Errorf("%w: no instant; give at", errBadRequest)
	}
	at, err := r.instant("at", r.text("tz"))
	if err != nil {
		return nil, err
	}
	o, err := h.b.SearchOffset(r.path("topic"), queue, at)
	return &wire.Offset{Offset: uint64(o)}, err
}
