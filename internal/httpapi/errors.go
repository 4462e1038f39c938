package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/httpapi/wire"
	"github.com/duemq/duemq/internal/record"
)

// Classes of error of the door itself. The text goes on with the instance.
var (
	errBadRequest       = errors.New("bad request")
	errUnknownParameter = errors.New("unknown query parameter")
	errUnknownField     = errors.New("unknown field")
	errCrossOrigin      = errors.New("cross-origin request refused")
	errHost             = errors.New("unexpected Host")
	errRoute            = errors.New("no such route")
	errMethod           = errors.New("method not allowed")
	errTooLarge         = errors.New("request too large")
	errDelay            = errors.New("delay not understood")
	errDelayConflict    = errors.New("more than one delay")
	errOverloaded       = errors.New("too many requests")
	errConfirm          = errors.New("not confirmed")
)

// A row says how a class of error is answered.
type row struct {
	class  error
	code   wire.Code
	status int
	title  string
	retry  int // seconds for Retry-After; 0: the same request will not succeed later
}

// table is the one place where an error becomes a code. The first row whose
// class matches counts, so a class that wraps others stands before them.
var table = []row{
	{broker.ErrFailed, wire.CodeFailed, http.StatusServiceUnavailable, "the store has failed", 5},
	{broker.ErrDraining, wire.CodeDraining, http.StatusServiceUnavailable, "the server is stopping", 1},
	{broker.ErrClosed, wire.CodeDraining, http.StatusServiceUnavailable, "the server is stopping", 1},
	{broker.ErrClockSuspect, wire.CodeClockSuspect, http.StatusServiceUnavailable, "the clock is not believed", 60},
	{broker.ErrDiskFull, wire.CodeDiskFull, http.StatusServiceUnavailable, "the disk is full", 10},
	{broker.ErrForbidden, wire.CodeForbidden, http.StatusForbidden, "only the broker may use that name", 0},
	{broker.ErrTopicUnknown, wire.CodeTopicUnknown, http.StatusNotFound, "unknown topic", 0},
	{broker.ErrGroupUnknown, wire.CodeGroupUnknown, http.StatusNotFound, "unknown group", 0},
	{broker.ErrOperationUnknown, wire.CodeOperationUnknown, http.StatusNotFound, "unknown operation", 0},
	{broker.ErrExists, wire.CodeExists, http.StatusConflict, "there already, and not the same", 0},
	{broker.ErrFull, wire.CodeFull, http.StatusUnprocessableEntity, "a limit is reached", 0},
	{broker.ErrTooMany, wire.CodeTooMany, http.StatusUnprocessableEntity, "too much to look at", 0},
	{broker.ErrMismatch, wire.CodeMismatch, http.StatusUnprocessableEntity, "the idempotency key was used for another message", 0},
	{broker.ErrTransactionEnded, wire.CodeTransactionEnded, http.StatusConflict, "the transaction has ended", 0},
	{broker.ErrUnknown, wire.CodeMessageUnknown, http.StatusNotFound, "unknown message", 0},
	{broker.ErrDelivered, wire.CodeAlreadyDelivered, http.StatusConflict, "already delivered", 0},
	{broker.ErrCancelled, wire.CodeAlreadyCancelled, http.StatusConflict, "already cancelled", 0},
	{broker.ErrLeaseLost, wire.CodeLeaseLost, http.StatusGone, "the lease is lost", 0},
	{broker.ErrGone, wire.CodeEnded, http.StatusGone, "the topic has ended", 0},
	{broker.ErrNotFound, wire.CodeEnded, http.StatusGone, "the topic has ended", 0},
	{broker.ErrDelayTooLong, wire.CodeDelayTooLong, http.StatusUnprocessableEntity, "the delay is too long", 0},
	{record.ErrTooLarge, wire.CodeTooLarge, http.StatusRequestEntityTooLarge, "too large", 0},
	{errTooLarge, wire.CodeTooLarge, http.StatusRequestEntityTooLarge, "too large", 0},
	{errDelayConflict, wire.CodeDelayConflict, http.StatusUnprocessableEntity, "more than one delay", 0},
	{errDelay, wire.CodeDelayInvalid, http.StatusUnprocessableEntity, "the delay is not understood", 0},
	{errUnknownParameter, wire.CodeUnknownParameter, http.StatusBadRequest, "unknown query parameter", 0},
	{errUnknownField, wire.CodeUnknownField, http.StatusBadRequest, "unknown field", 0},
	{errBadRequest, wire.CodeBadRequest, http.StatusBadRequest, "bad request", 0},
	{wire.ErrSyntax, wire.CodeBadRequest, http.StatusBadRequest, "bad request", 0},
	{wire.ErrRange, wire.CodeBadRequest, http.StatusBadRequest, "bad request", 0},
	{broker.ErrInvalid, wire.CodeInvalidValue, http.StatusBadRequest, "a value that can never be right", 0},
	{errCrossOrigin, wire.CodeCrossOrigin, http.StatusForbidden, "cross-origin request", 0},
	{errHost, wire.CodeHostRefused, http.StatusMisdirectedRequest, "unexpected Host", 0},
	{errConfirm, wire.CodeConfirm, http.StatusPreconditionRequired, "wants to be confirmed", 0},
	{errRoute, wire.CodeRouteUnknown, http.StatusNotFound, "no such route", 0},
	{errMethod, wire.CodeMethod, http.StatusMethodNotAllowed, "method not allowed", 0},
	{errOverloaded, wire.CodeOverloaded, http.StatusServiceUnavailable, "too many requests at once", 1},
	{context.DeadlineExceeded, wire.CodeTimeout, http.StatusServiceUnavailable, "no answer in time", 1},
	{record.ErrCorrupt, wire.CodeInternal, http.StatusInternalServerError, "damaged data", 0},
	{record.ErrVersion, wire.CodeInternal, http.StatusInternalServerError, "data of another version", 0},
}

// defect answers what is in no row.
var defect = row{nil, wire.CodeInternal, http.StatusInternalServerError, "internal error", 0}

func rowOf(err error) *row {
	for i := range table {
		if errors.Is(err, table[i].class) {
			return &table[i]
		}
	}
	return &defect
}

// problem describes an error.
func (h *Handler) problem(err error) (*wire.Problem, *row) {
	w := rowOf(err)
	p := &wire.Problem{
		Type: "urn:duemq:error:" + string(w.code), Title: w.title, Status: w.status,
		Detail: err.Error(), Code: w.code, Retryable: w.retry > 0,
	}
	if w.code == wire.CodeDelayTooLong {
		p.MaxDelay = wire.Duration(h.b.MaxDelay())
	}
	return p, w
}

// statusClientGone is what is counted when the client has left before there was
// an answer.
const statusClientGone = 499

// refuse answers with a problem, once.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	rec, recorded := w.(*recorder)
	if recorded && rec.status != 0 {
		return // too late: part of an answer is on its way
	}
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		if recorded {
			rec.status = statusClientGone
		}
		return
	}
	p, row := h.problem(err)
	p.Instance = r.URL.Path
	if p.Status == http.StatusInternalServerError {
		h.o.Logger.Error("request failed", slog.String("path", r.URL.Path), slog.Any("error", err))
	}
	if row.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(row.retry))
	}
	w.Header().Set("Content-Type", wire.ProblemType)
	body, err := json.Marshal(p)
	if err != nil {
		body = []byte(`{"code":"internal"}`) // the detail was not UTF-8, which json repairs; cannot happen
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // a client that has left needs no answer
}
