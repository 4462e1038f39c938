package broker

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/group"
	"github.com/duemq/duemq/internal/queue"
	"github.com/duemq/duemq/internal/record"
)

// deadLook is how many offsets are looked at under one lock for dead letters
// that are still there.
const deadLook = 10_000

// deadLeft calls fn with how far the dead letters of a topic are finished; fn
// runs under the engine's lock. Without a topic it does nothing.
func (b *Broker) deadLeft(t *engine.Topic, fn func(p *group.Progress, bounds engine.Bounds)) error {
	if t == nil {
		return nil
	}
	var err error
	if g, _ := b.e.GroupNow(deadGroup); g != nil {
		err = b.e.Progress(g, t.First(), fn)
	} else {
		var bounds engine.Bounds
		if bounds.Low, bounds.Next, err = b.e.Bounds(t.First()); err == nil {
			fn(group.StartAt(bounds.Low), bounds)
		}
	}
	if errors.Is(err, engine.ErrNotFound) {
		return nil // the group was deleted in this moment
	}
	return err
}

// deadCount is how many dead letters of a group are left.
func (b *Broker) deadCount(group string) (n int64) {
	_ = b.deadLeft(b.e.TopicNamed(deadTopic(group)), lagInto(&n)) // of a store that fails, none is right
	return n
}

func lagInto(n *int64) func(*group.Progress, engine.Bounds) {
	return func(p *group.Progress, bounds engine.Bounds) { *n = p.Lag(bounds.Low, bounds.Next) }
}

// deadOffsets finds up to limit dead letters that are left, from an offset on,
// and where to look for more.
func (b *Broker) deadOffsets(t *engine.Topic, from record.Offset, limit int) (found []record.Offset, next record.Offset, more bool, err error) {
	next, more = from, true
	for more && len(found) < limit && err == nil {
		more = false
		err = b.deadLeft(t, func(p *group.Progress, bounds engine.Bounds) {
			base, _ := p.Behind(bounds.Low)
			next = max(next, base)
			for end := next + deadLook; next < min(end, bounds.Next) && len(found) < limit; next++ {
				if !p.Finished(next) {
					found = append(found, next)
				}
			}
			more = next < bounds.Next
		})
	}
	return found, next, more, err
}

// DeadLetters lists a group's dead letters that were neither redriven nor
// purged, oldest first, with their bodies, up to limit (0 is 100, at most
// MaxPage) and MaxReceiveBytes. next is where the following page begins; empty
// at the end.
func (b *Broker) DeadLetters(ctx context.Context, group, cursor string, limit int) (page []View, next string, err error) {
	if limit == 0 {
		limit = 100
	}
	if limit < 0 || limit > MaxPage {
		return nil, "", fmt.Errorf("%w: limit %d, want 1 to %d", ErrInvalid, limit, MaxPage)
	}
	from, err := parseDeadCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	if _, err := b.known(group); err != nil {
		return nil, "", err
	}
	t := b.e.TopicNamed(deadTopic(group))
	offsets, at, more, err := b.deadOffsets(t, from, limit)
	if err != nil || len(offsets) == 0 {
		return nil, "", errors.Join(err, ctx.Err())
	}
	page, n, err := b.deadViews(t, offsets)
	if err != nil {
		return nil, "", err
	}
	if n < len(offsets) {
		at, more = offsets[n], true
	}
	if more {
		next = appendDeadCursor(at)
	}
	return page, next, nil
}

// deadViews reads dead letters, as many as MaxReceiveBytes has room for, and
// says how many.
func (b *Broker) deadViews(t *engine.Topic, offsets []record.Offset) (page []View, n int, err error) {
	err = b.deadMessages(t, offsets, MaxReceiveBytes, func(i int, e *queue.Entry, m *record.Message, err error) {
		if err != nil {
			b.log.Error("dead letter cannot be read", slog.Any("id", e.ID), slog.Any("error", err))
			m = unreadable(e)
		}
		v := b.view(t, t.First(), m, e.ID)
		v.Body = slices.Clone(m.Body)
		v.Offset, v.HasOffset, v.VisibleAt, v.State = offsets[i], true, e.VisibleAt, StateDead
		page = append(page, v)
		n = i + 1
	})
	return page, n, err
}

// deadMessages reads dead letters at rising offsets, as many as there is room
// for, one at least.
func (b *Broker) deadMessages(t *engine.Topic, offsets []record.Offset, room int, fn func(i int, e *queue.Entry, m *record.Message, err error)) error {
	grants := make([]group.Grant, len(offsets))
	for i, o := range offsets {
		grants[i].Offset = o
	}
	entries, err := b.entries(nil, t.First(), grants)
	if err != nil {
		return fmt.Errorf("topic %q: %w", t.Name, err)
	}
	n := 0
	for n < len(entries) && (n == 0 || int(entries[n].Size) <= room) {
		room -= int(entries[n].Size)
		n++
	}
	b.e.Messages(entries[:n], func(i int, m *record.Message, err error) { fn(i, &entries[i], m, err) })
	return nil
}

func appendDeadCursor(o record.Offset) string {
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64([]byte{'d'}, uint64(o)))
}

func parseDeadCursor(s string) (record.Offset, error) {
	if s == "" {
		return 0, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(raw) != 9 || raw[0] != 'd' || raw[1] >= 0x40 {
		return 0, fmt.Errorf("%w: cursor %q was not made by this broker", ErrInvalid, short(s))
	}
	return record.Offset(binary.BigEndian.Uint64(raw[1:])), nil
}

// deadByID finds where dead letters of a group are, in order.
func (b *Broker) deadByID(name string, t *engine.Topic, ids []string) ([]record.Offset, error) {
	if ids != nil && len(ids) == 0 {
		return nil, fmt.Errorf("%w: an empty list of ids selects nothing; leave ids out for all dead letters", ErrInvalid)
	}
	if len(ids) > MaxPage {
		return nil, fmt.Errorf("%w: %d dead letters by their ids, limit %d; name none for all", ErrInvalid, len(ids), MaxPage)
	}
	offsets := make([]record.Offset, 0, len(ids))
	for _, s := range ids {
		id, err := ParseReference(s)
		if err != nil {
			return nil, err
		}
		unknown := fmt.Errorf("%w: %v is no dead letter of group %q that is kept", ErrUnknown, id, name)
		if t == nil {
			return nil, unknown
		}
		m, r, err := b.e.Find(id)
		if errors.Is(err, engine.ErrNotFound) || err == nil && r.Queue != t.First() {
			return nil, unknown
		}
		if err != nil {
			return nil, err
		}
		_, o, ok, err := b.e.Delivered(r.Queue, m.Stored, id)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, unknown
		}
		offsets = append(offsets, o)
	}
	slices.Sort(offsets)
	return slices.Compact(offsets), nil
}

// leftOf leaves of offsets those whose dead letters are there.
func (b *Broker) leftOf(t *engine.Topic, offsets []record.Offset) (left []record.Offset, err error) {
	err = b.deadLeft(t, func(p *group.Progress, bounds engine.Bounds) {
		for _, o := range offsets {
			if o >= bounds.Low && !p.Finished(o) {
				left = append(left, o)
			}
		}
	})
	return left, err
}

// PurgeDead drops dead letters of a group, all of them if ids is empty, and says
// how many. Those that were redriven or purged before do not count. It is as
// durable as an ack.
func (b *Broker) PurgeDead(ctx context.Context, group string, ids []string) (int, error) {
	if _, err := b.known(group); err != nil {
		return 0, err
	}
	t := b.e.TopicNamed(deadTopic(group))
	named, err := b.deadByID(group, t, ids)
	if err != nil || t == nil {
		return 0, err
	}
	g, err := b.e.MakeGroup(ctx, record.Group{Name: deadGroup, Start: record.StartEarliest})
	if err != nil {
		return 0, err
	}
	_, end, err := b.e.Bounds(t.First())
	if err != nil {
		return 0, err
	}
	number := g.Number // of the broker's own group, which nobody changes
	b.graves.Lock()
	defer b.graves.Unlock()
	total := 0
	for from, more := record.Offset(0), true; more; {
		var offsets []record.Offset
		if len(ids) > 0 {
			offsets, err = b.leftOf(t, named)
			more = false
		} else {
			offsets, from, more, err = b.deadOffsets(t, from, deadLook)
			offsets = slices.DeleteFunc(offsets, func(o record.Offset) bool { return o >= end })
			more = more && from < end
		}
		if err == nil && len(offsets) > 0 {
			err = b.e.Ack(ctx, []record.Ack{{Group: number, Queue: t.First(), Ranges: ranges(offsets)}})
		}
		if err != nil {
			return total, err
		}
		total += len(offsets)
	}
	return total, nil
}
