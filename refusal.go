package duemq

import (
	"errors"
	"net/http"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// classes says which class of error a server's code is: the way back of the
// table in internal/httpapi. A code that is not here, of a later server perhaps,
// is an error without a class.
var classes = map[wire.Code]error{
	wire.CodeBadRequest:       ErrInvalid,
	wire.CodeUnknownParameter: ErrInvalid,
	wire.CodeUnknownField:     ErrInvalid,
	wire.CodeInvalidValue:     ErrInvalid,
	wire.CodeDelayInvalid:     ErrInvalid,
	wire.CodeDelayConflict:    ErrInvalid,
	wire.CodeForbidden:        ErrForbidden,
	wire.CodeConfirm:          ErrInvalid,
	wire.CodeTopicUnknown:     ErrUnknownTopic,
	wire.CodeGroupUnknown:     ErrUnknownGroup,
	wire.CodeOperationUnknown: ErrUnknownOperation,
	wire.CodeExists:           ErrExists,
	wire.CodeMismatch:         ErrMismatch,
	wire.CodeTooMany:          ErrTooMany,
	wire.CodeTransactionEnded: ErrTransactionEnded,
	wire.CodeMessageUnknown:   ErrUnknownMessage,
	wire.CodeAlreadyDelivered: ErrAlreadyDelivered,
	wire.CodeAlreadyCancelled: ErrAlreadyCancelled,
	wire.CodeLeaseLost:        ErrLeaseLost,
	wire.CodeEnded:            broker.ErrGone,
	wire.CodeTooLarge:         ErrTooLarge,
	wire.CodeDelayTooLong:     ErrDelayTooLong,
	wire.CodeFull:             ErrFull,
	wire.CodeOverloaded:       ErrUnavailable,
	wire.CodeDraining:         ErrUnavailable,
	wire.CodeTimeout:          ErrUnavailable,
	wire.CodeFailed:           ErrFailed,
	wire.CodeClockSuspect:     ErrClockSuspect,
	wire.CodeDiskFull:         ErrDiskFull,
	wire.CodeRouteUnknown:     errors.ErrUnsupported, // a server older than this library
	wire.CodeMethod:           errors.ErrUnsupported,
}

// statuses does the same for answers without a code, of a proxy for example.
var statuses = map[int]error{
	http.StatusRequestEntityTooLarge:       ErrTooLarge,
	http.StatusRequestURITooLong:           ErrTooLarge,
	http.StatusRequestHeaderFieldsTooLarge: ErrTooLarge,
	http.StatusRequestTimeout:              ErrUnavailable,
	http.StatusTooManyRequests:             ErrUnavailable,
	http.StatusBadGateway:                  ErrUnavailable,
	http.StatusServiceUnavailable:          ErrUnavailable,
	http.StatusGatewayTimeout:              ErrUnavailable,
}

// A refusal is a server's answer with the class that it stands for. Its text is
// the server's alone, which names the class already.
type refusal struct {
	class  error
	answer *client.Error
}

// Error gives the server's text.
func (r *refusal) Error() string { return r.answer.Error() }

// Unwrap gives the class, and the answer.
func (r *refusal) Unwrap() []error { return []error{r.class, r.answer} }

// classed gives a client's error its class.
func classed(err error) error {
	e, ok := errors.AsType[*client.Error](err)
	if !ok {
		return err
	}
	class := classes[e.Code]
	if e.Code == "" {
		class = statuses[e.Status]
	}
	if class == nil {
		return err
	}
	return &refusal{class, e}
}

// untaken says that a call cannot have had an effect, since it did not reach the
// server or was turned away at its door.
func untaken(err error) bool {
	switch client.CodeOf(err) {
	case wire.CodeOverloaded, wire.CodeDraining:
		return true
	default:
		return client.Unsent(err)
	}
}
