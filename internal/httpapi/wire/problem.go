package wire

// A Code says what is wrong; programs branch on it. Codes are added, never
// renamed. docs/http.md lists them with their HTTP status.
type Code string

// The codes.
const (
	CodeBadRequest       Code = "bad_request"       // 400: not what the route takes; the detail says where
	CodeUnknownParameter Code = "unknown_parameter" // 400: in the query
	CodeUnknownField     Code = "unknown_field"     // 400: in the JSON
	CodeInvalidValue     Code = "invalid_value"     // 400: a name, id, limit or cursor that can never be right
	CodeForbidden        Code = "forbidden"         // 403: a name that only the broker may use
	CodeCrossOrigin      Code = "cross_origin"      // 403: a browser page of another origin
	CodeHostRefused      Code = "host_refused"      // 421: a Host header that is none of the server's
	CodeRouteUnknown     Code = "route_unknown"     // 404
	CodeTopicUnknown     Code = "topic_unknown"     // 404
	CodeGroupUnknown     Code = "group_unknown"     // 404
	CodeOperationUnknown Code = "operation_unknown" // 404: of bulk operations the last ones are remembered
	CodeMessageUnknown   Code = "message_unknown"   // 404: never sent here, or older than what is kept
	CodeMethod           Code = "method_not_allowed"
	CodeAlreadyDelivered Code = "already_delivered"     // 409: too late to cancel or move
	CodeAlreadyCancelled Code = "already_cancelled"     // 409
	CodeExists           Code = "already_exists"        // 409: a topic or group, and not the same
	CodeTransactionEnded Code = "transaction_ended"     // 409: the message is not half any more
	CodeLeaseLost        Code = "lease_lost"            // 410: the message was given to somebody else, or is acknowledged
	CodeEnded            Code = "topic_ended"           // 410: deleted meanwhile
	CodeTooLarge         Code = "too_large"             // 413
	CodeDelayInvalid     Code = "delay_invalid"         // 422: cannot be understood; the detail has a suggestion
	CodeDelayConflict    Code = "delay_conflict"        // 422: more than one of after, at and level
	CodeDelayTooLong     Code = "delay_too_long"        // 422: with maxDelay
	CodeMismatch         Code = "idempotency_mismatch"  // 422: the key was used for another message
	CodeTooMany          Code = "too_many"              // 422: more would have to be looked at than is allowed
	CodeFull             Code = "limit_reached"         // 422: one more topic, group, half message or bulk operation than there may be
	CodeConfirm          Code = "confirmation_required" // 428: it cannot be undone; the detail says what to add
	CodeOverloaded       Code = "overloaded"            // 503: more requests at once than allowed
	CodeDraining         Code = "draining"              // 503: the server stops
	CodeFailed           Code = "store_failed"          // 503: the disk can no longer be trusted
	CodeClockSuspect     Code = "clock_suspect"         // 503: the machine's clock is not believed
	CodeDiskFull         Code = "disk_full"             // 503: messages are refused until there is room
	CodeTimeout          Code = "timeout"               // 503: no answer in time; the outcome is unknown
	CodeInternal         Code = "internal"              // 500: a defect, or damaged data
)

// ProblemType is the media type of a Problem.
const ProblemType = "application/problem+json"

// A Problem says why a request was refused, as RFC 9457 writes it.
type Problem struct {
	Type      string   `json:"type"` // urn:duemq:error:CODE
	Title     string   `json:"title"`
	Status    int      `json:"status"`
	Detail    string   `json:"detail"` // with the instance, the limit and what to do
	Code      Code     `json:"code"`
	Instance  string   `json:"instance,omitempty"` // path of the request
	Retryable bool     `json:"retryable"`          // the same request may succeed later
	MaxDelay  Duration `json:"maxDelay,omitzero"`  // with delay_too_long
}
