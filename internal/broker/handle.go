package broker

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/duemq/duemq/internal/record"
)

// handle makes a recall handle in RocketMQ's form (RecallMessageHandle.HandleV1:
// version, topic, broker, time, unique key, URL-safe base64), with the message's
// id as a sixth item.
func (b *Broker) handle(topic string, due int64, id record.ID) string {
	name := id.String()
	raw := make([]byte, 0, 128)
	raw = append(raw, "v1 "...)
	raw = append(raw, topic...)
	raw = append(raw, ' ')
	raw = append(raw, b.o.Name...)
	raw = append(raw, ' ')
	raw = strconv.AppendInt(raw, due, 10)
	for range 2 {
		raw = append(raw, ' ')
		raw = append(raw, name...)
	}
	return base64.URLEncoding.EncodeToString(raw)
}

// ParseReference reads what users call a message by: its id of 16 hexadecimal
// digits, or a recall handle.
func ParseReference(s string) (record.ID, error) {
	if len(s) == 16 {
		id, err := record.ParseID(s)
		if err != nil {
			return 0, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		return id, nil
	}
	bad := fmt.Errorf("%w: %q is neither a message id (16 hexadecimal digits) nor a recall handle", ErrInvalid, short(s))
	raw, err := base64.URLEncoding.DecodeString(s)
	if err != nil {
		if raw, err = base64.RawURLEncoding.DecodeString(s); err != nil {
			return 0, bad
		}
	}
	items := strings.Split(string(raw), " ")
	if len(items) != 6 || items[0] != "v1" {
		return 0, bad
	}
	id, err := record.ParseID(items[5])
	if err != nil {
		return 0, bad
	}
	return id, nil
}

func short(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}

// A Lease names one delivery: group, queue, offset and attempt.
type lease struct {
	group   string
	queue   record.QueueNumber
	offset  record.Offset
	attempt uint32
}

func (l lease) String() string {
	b := make([]byte, 0, 64)
	b = append(b, "l1 "...)
	b = append(b, l.group...)
	b = strconv.AppendUint(append(b, ' '), uint64(l.queue), 10)
	b = strconv.AppendUint(append(b, ' '), uint64(l.offset), 10)
	b = strconv.AppendUint(append(b, ' '), uint64(l.attempt), 10)
	return base64.RawURLEncoding.EncodeToString(b)
}

func parseLease(s string) (lease, error) {
	bad := fmt.Errorf("%w: %q is not a lease", ErrInvalid, short(s))
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return lease{}, bad
	}
	items := strings.Split(string(raw), " ")
	if len(items) != 5 || items[0] != "l1" {
		return lease{}, bad
	}
	q, qerr := strconv.ParseUint(items[2], 10, 32)
	o, oerr := strconv.ParseUint(items[3], 10, 62)
	a, aerr := strconv.ParseUint(items[4], 10, 32)
	if qerr != nil || oerr != nil || aerr != nil {
		return lease{}, bad
	}
	return lease{group: items[1], queue: record.QueueNumber(q), offset: record.Offset(o), attempt: uint32(a)}, nil
}
