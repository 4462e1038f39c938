package httpapi

import (
	"bytes"
	"fmt"
	"mime"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// batch sends messages, each on its own: {"messages":[...]}, or a message a line
// as application/x-ndjson. JSON that cannot be read refuses all of it, a message
// that cannot be sent only itself.
func (h *Handler) batch(r *request) (*wire.BatchReply, error) {
	if len(r.Header.Values(wire.IdempotencyHeader)) > 0 {
		return nil, fmt.Errorf("%w: header %s with a batch; give each message its idempotencyKey", errBadRequest, wire.IdempotencyHeader)
	}
	sends, err := r.batch()
	if err != nil {
		return nil, err
	}
	if len(sends) == 0 {
		return nil, fmt.Errorf("%w: no messages", errBadRequest)
	}
	if len(sends) > broker.MaxBatch {
		return nil, fmt.Errorf("%w: %d messages, limit %d; send several batches", errTooLarge, len(sends), broker.MaxBatch)
	}
	reply := wire.BatchReply{Results: make([]wire.BatchResult, len(sends))}
	msgs := make([]broker.Message, 0, len(sends))
	where := make([]int, 0, len(sends))
	for i := range sends {
		m, err := h.toSend(&sends[i])
		if err != nil {
			reply.Results[i].Problem, _ = h.problem(err)
			continue
		}
		msgs = append(msgs, m)
		where = append(where, i)
	}
	receipts, err := h.b.Send(r.Context(), msgs)
	if err != nil {
		return nil, err
	}
	for k := range receipts {
		result := &reply.Results[where[k]]
		if err := receipts[k].Err; err != nil {
			result.Problem, _ = h.problem(err)
			continue
		}
		out := receipt(&receipts[k])
		result.Receipt, result.Replayed = &out, receipts[k].Repeat
		reply.Accepted++
	}
	reply.Refused = len(sends) - reply.Accepted
	return &reply, nil
}

// linesType is the media type of JSON objects in lines, as we call it.
const linesType = "application/x-ndjson"

// batch reads the messages of a batch in either form.
func (r *request) batch() ([]wire.Send, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		kind = ""
	}
	switch kind {
	case linesType, "application/ndjson", "application/jsonl":
	default:
		var b wire.Batch
		err := r.decode(maxBatchBody, &b)
		return b.Messages, err
	}
	body, err := r.body(maxBatchBody)
	if err != nil {
		return nil, err
	}
	var sends []wire.Send
	n := 0
	for line := range bytes.Lines(body) {
		n++
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		if len(sends) == broker.MaxBatch {
			return nil, fmt.Errorf("%w: more than %d messages; send several batches", errTooLarge, broker.MaxBatch)
		}
		var s wire.Send
		if err := decode(line, &s); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		sends = append(sends, s)
	}
	return sends, nil
}
