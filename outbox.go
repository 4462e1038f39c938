package duemq

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/httpapi/wire"
	"github.com/duemq/duemq/internal/record"
)

// Bounds of what a request holds.
const (
	// maxQuery is how long topic, key, tag and headers of a message may be in all
	// to travel in a URL, beside the raw body. Proxies take 8 KiB of URL, and a
	// byte may need three.
	maxQuery = 2 << 10
	// maxParcel is below the 16 MiB of JSON that a server takes.
	maxParcel = 15 << 20
)

// send sends messages in as few requests as hold them. When one fails after
// others were answered, what was not answered has its error.
func (r *remote) send(ctx context.Context, msgs []broker.Message) ([]Receipt, error) {
	if len(msgs) > broker.MaxBatch {
		return nil, fmt.Errorf("%w: %d messages in one batch, limit %d; send several", ErrInvalid, len(msgs), broker.MaxBatch)
	}
	receipts := make([]Receipt, len(msgs))
	good := make([]int, 0, len(msgs))
	for i := range msgs {
		receipts[i] = Receipt{Topic: msgs[i].Topic, Offset: -1, Err: travels(&msgs[i])}
		if receipts[i].Err == nil {
			good = append(good, i)
		}
	}
	for rest := good; len(rest) > 0; {
		n := fits(msgs, rest)
		err := r.dispatch(ctx, msgs, rest[:n], receipts)
		if err != nil && len(rest) == len(good) {
			return nil, err
		}
		if err != nil {
			for _, i := range rest {
				receipts[i].Err = err
			}
			return receipts, nil
		}
		rest = rest[n:]
	}
	return receipts, nil
}

// travels refuses what could not arrive as it is: JSON and the query of a URL
// hold UTF-8 only, and too large a message would be cut off on its way, before
// the server has said why.
func travels(m *broker.Message) error {
	texts := []string{m.Topic, m.Key, m.Tag, m.Idempotency, m.Name, m.Half}
	for _, p := range m.Properties {
		texts = append(texts, p.Name, p.Value)
	}
	for _, s := range texts {
		if !utf8.ValidString(s) {
			return fmt.Errorf("%w: %q is not UTF-8", ErrInvalid, s)
		}
	}
	m2 := record.Message{Key: m.Key, Tag: m.Tag, Properties: m.Properties, Body: m.Body}
	return m2.Check()
}

// fits says how many of the messages which, at least one, go into one request.
func fits(msgs []broker.Message, which []int) int {
	size := 0
	for n, i := range which {
		m := &msgs[i]
		// A byte of text is at most \u0000, one of the body 4/3 of a letter.
		size += 6*textLen(m) + len(m.Body)/3*4 + 32*len(m.Properties) + 256
		if size > maxParcel && n > 0 {
			return n
		}
	}
	return len(which)
}

// isHeader says whether a text can be the value of an HTTP header.
func isHeader(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

func textLen(m *broker.Message) int {
	n := len(m.Topic) + len(m.Key) + len(m.Tag) + len(m.Idempotency) + len(m.Name) + len(m.Half)
	for _, p := range m.Properties {
		n += len(p.Name) + len(p.Value)
	}
	return n
}

// dispatch sends messages in one request and fills in their receipts. With an
// error nothing is known of them.
func (r *remote) dispatch(ctx context.Context, msgs []broker.Message, which []int, receipts []Receipt) error {
	if len(which) == 1 && textLen(&msgs[which[0]]) <= maxQuery && isHeader(msgs[which[0]].Idempotency) {
		return r.publish(ctx, &msgs[which[0]], &receipts[which[0]])
	}
	sends := make([]wire.Send, len(which))
	twice := true
	for k, i := range which {
		sends[k] = sendOf(&msgs[i])
		twice = twice && msgs[i].Idempotency != ""
	}
	var reply wire.BatchReply
	err := r.do(ctx, twice, func() (err error) {
		reply, err = r.c.Batch(ctx, sends)
		return err
	})
	if err != nil {
		return err
	}
	if len(reply.Results) != len(which) {
		return fmt.Errorf("%w: the server answers for %d messages of %d", ErrUnavailable, len(reply.Results), len(which))
	}
	for k, i := range which {
		out := &reply.Results[k]
		if receipts[i].Err = problem(out.Problem); out.Receipt != nil {
			receipts[i] = receiptFrom(out.Receipt)
			receipts[i].Repeat = out.Replayed
		}
	}
	return nil
}

// publish sends one message, whose body travels as it is.
func (r *remote) publish(ctx context.Context, m *broker.Message, receipt *Receipt) error {
	s := sendOf(m)
	s.Body = slices.Clone(m.Body) // a transport may go on reading after it has given up
	var w wire.Receipt
	repeat := false
	err := r.do(ctx, m.Idempotency != "", func() (err error) {
		w, repeat, err = r.c.PublishOnce(ctx, s)
		return err
	})
	if err == nil {
		*receipt = receiptFrom(&w)
		receipt.Repeat = repeat
		return nil
	}
	if _, refused := errors.AsType[*refusal](err); refused && !errors.Is(err, ErrFailed) && !errors.Is(err, ErrUnavailable) {
		receipt.Err = err
		return nil
	}
	return err
}

func sendOf(m *broker.Message) wire.Send {
	s := wire.Send{
		Topic: m.Topic, Key: m.Key, Tag: m.Tag, Body: m.Body,
		IdempotencyKey: m.Idempotency, Name: m.Name, Transaction: m.Half,
	}
	if m.HasQueue {
		s.Queue = &m.Queue
	}
	if len(m.Properties) > 0 {
		s.Headers = make(map[string]string, len(m.Properties))
		for _, p := range m.Properties {
			s.Headers[p.Name] = p.Value
		}
	}
	s.After, s.At, s.Level = typed(m.Delay)
	return s
}

// typed is a delay as a user would write it.
func typed(d broker.Delay) (after, at string, level wire.Level) {
	switch d.Kind {
	case broker.DelayAfter:
		return milliseconds(d.Value), "", ""
	case broker.DelayAt:
		return "", wire.Time(d.Value).String(), ""
	case broker.DelayLevel:
		return "", "", wire.Level(strconv.FormatInt(min(max(d.Value, math.MinInt32), math.MaxInt32), 10))
	default:
		return "", "", ""
	}
}

// milliseconds is a length of time as a user would write it.
func milliseconds(ms int64) string { return strconv.FormatInt(ms, 10) + "ms" }

func receiptFrom(w *wire.Receipt) Receipt {
	out := Receipt{
		ID: w.ID, Topic: w.Topic, Queue: w.Queue, DueAt: instant(int64(w.DeliverAt)),
		Ready: w.State == wire.StateReady, Offset: -1, Handle: w.Handle, Replaced: w.Replaced,
	}
	if w.Offset != nil {
		out.Offset = int64(*w.Offset)
	}
	return out
}
