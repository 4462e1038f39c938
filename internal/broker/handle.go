package broker

import (
	"bytes"
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

// A lease names one delivery: group, queue, offset and attempt. Its text is
// base64 of "l1 group queue offset attempt".
type lease struct {
	group   string
	queue   record.QueueNumber
	offset  record.Offset
	attempt uint32
}

// maxLeaseBytes bounds a lease's text, decoded: a group's name and three
// numbers fit.
const maxLeaseBytes = 192

func (l lease) String() string {
	var raw [maxLeaseBytes]byte
	b := append(raw[:0], "l1 "...)
	b = append(b, l.group...)
	b = strconv.AppendUint(append(b, ' '), uint64(l.queue), 10)
	b = strconv.AppendUint(append(b, ' '), uint64(l.offset), 10)
	b = strconv.AppendUint(append(b, ' '), uint64(l.attempt), 10)
	var text [maxLeaseBytes * 4 / 3]byte
	return string(base64.RawURLEncoding.AppendEncode(text[:0], b))
}

func parseLease(s string) (lease, error) {
	var buf [maxLeaseBytes]byte
	name, l, err := scanLease(buf[:], s)
	l.group = string(name)
	return l, err
}

// scanLease reads a lease but for its group, whose name it leaves in buf.
func scanLease(buf []byte, s string) (name []byte, l lease, err error) {
	var text [maxLeaseBytes * 4 / 3]byte
	if len(s) > len(text) {
		return nil, l, notALease(s)
	}
	n, err := base64.RawURLEncoding.Decode(buf, text[:copy(text[:], s)])
	if err != nil {
		return nil, l, notALease(s)
	}
	rest, ok := bytes.CutPrefix(buf[:n], []byte("l1 "))
	name, rest, cut := bytes.Cut(rest, []byte{' '})
	queue, rest, okQueue := number(rest, 32)
	offset, rest, okOffset := number(rest, 62)
	attempt, rest, okAttempt := number(rest, 32)
	if !ok || !cut || !okQueue || !okOffset || !okAttempt || len(rest) > 0 || buf[n-1] == ' ' {
		return nil, l, notALease(s)
	}
	return name, lease{queue: record.QueueNumber(queue), offset: record.Offset(offset), attempt: uint32(attempt)}, nil
}

func notALease(s string) error { return fmt.Errorf("%w: %q is not a lease", ErrInvalid, short(s)) }

// number reads a decimal number of so many bits, up to a blank or the end.
func number(s []byte, bits uint) (n uint64, rest []byte, ok bool) {
	digits, rest, _ := bytes.Cut(s, []byte{' '})
	if len(digits) == 0 || len(digits) > 20 {
		return 0, rest, false
	}
	for _, d := range digits {
		if d < '0' || d > '9' || n > (1<<bits-1)/10 {
			return 0, rest, false
		}
		if n = 10*n + uint64(d-'0'); n > 1<<bits-1 {
			return 0, rest, false
		}
	}
	return n, rest, true
}
