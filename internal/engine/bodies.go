package engine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/duemq/duemq/internal/log"
	"github.com/duemq/duemq/internal/queue"
	"github.com/duemq/duemq/internal/record"
)

// Sizes of a read of bodies: neighbours in the log come in one span.
const (
	spanBytes = 256 << 10
	spanGap   = 4 << 10
)

// Messages reads the messages of entries and calls fn for each, in order. The
// message is fn's until it returns; a damaged one comes with its error and does
// not stop the others. Bytes lie in the log, or were carried into the index.
func (e *Engine) Messages(entries []queue.Entry, fn func(i int, m *record.Message, err error)) {
	var buf, one []byte
	var m record.Message
	first := e.log.FirstPosition()
	for i := 0; i < len(entries); {
		if uint64(entries[i].ID) < first {
			var err error
			one, err = e.carried(one[:0], entries[i].ID, entries[i].Due, &m)
			fn(i, &m, err)
			i++
			continue
		}
		n, size := span(entries[i:], uint64(e.store.SegmentBytes))
		base := entries[i].ID
		var err error
		buf, err = e.log.ReadAt(buf[:0], uint64(base), size)
		for k := range n {
			at := &entries[i+k]
			merr := err
			if merr == nil {
				from := int(at.ID - base)
				merr = record.DecodeMessageAt(buf[from:from+int(at.Size)], &m)
			}
			if merr != nil {
				one, merr = e.second(one[:0], at, &m, merr)
			}
			fn(i+k, &m, merr)
		}
		i += n
	}
}

// second reads a message that the log does not give, from where it was carried.
func (e *Engine) second(dst []byte, at *queue.Entry, m *record.Message, first error) ([]byte, error) {
	if uint64(at.ID) < e.carriedTo.Load() {
		if dst, err := e.carried(dst, at.ID, at.Due, m); err == nil {
			return dst, nil
		}
	}
	return dst, fmt.Errorf("message %v: %w", at.ID, first)
}

// carried reads a message whose bytes were carried. due is where they are likely
// to lie; the directory knows.
func (e *Engine) carried(dst []byte, id record.ID, due int64, m *record.Message) ([]byte, error) {
	dst, ok, err := e.index.Get(dst, SpaceBodies, appendBodyKey(nil, due, id))
	if err == nil && !ok {
		dst, ok, err = e.carriedBytes(dst, id)
	}
	switch {
	case err != nil:
	case !ok:
		err = ErrNotFound
	default:
		err = record.DecodeMessageAt(dst, m)
	}
	if err != nil {
		return dst, fmt.Errorf("message %v: %w", id, err)
	}
	return dst, nil
}

// carriedBytes finds the bytes of a carried message by the directory. A cut may
// move them to another due between the two looks, which is then looked for anew.
func (e *Engine) carriedBytes(dst []byte, id record.ID) (_ []byte, ok bool, err error) {
	for last := int64(-1); ; {
		p, known, err := bodyDue(e.index, id)
		if err != nil || !known || p.due == last {
			return dst, false, err
		}
		if dst, ok, err = e.index.Get(dst, SpaceBodies, appendBodyKey(nil, p.due, id)); err != nil || ok {
			return dst, ok, err
		}
		last = p.due
	}
}

// span says how many entries lie close together in one segment, and how many
// bytes from the first one on hold them.
func span(entries []queue.Entry, segment uint64) (n, size int) {
	first := uint64(entries[0].ID)
	end := first + uint64(entries[0].Size)
	for n = 1; n < len(entries); n++ {
		e := &entries[n]
		id := uint64(e.ID)
		to := id + uint64(e.Size)
		if id < end || id > end+spanGap || to-first > spanBytes || id/segment != first/segment {
			break
		}
		end = to
	}
	return n, int(end - first)
}

// Find reads the message with that id and gives the reference as it was sent,
// for Cancel and Reschedule: its due is 0 if it was due by its own stamp. An id
// that is not exactly where a message begins is ErrNotFound, whatever bytes are
// there.
func (e *Engine) Find(id record.ID) (record.Message, record.Ref, error) {
	e.mu.RLock()
	from := e.m.keep.from()
	e.mu.RUnlock()
	var m record.Message
	var r record.Ref
	err := ErrNotFound
	if uint64(id) >= from {
		m, r, err = e.findInLog(id)
	}
	if err != nil && uint64(id) < e.carriedTo.Load() { // the log may have gone meanwhile, or be damaged
		if cm, cr, cerr := e.findCarried(id); cerr == nil || uint64(id) < from {
			m, r, err = cm, cr, cerr
		}
	}
	if err != nil {
		return m, r, fmt.Errorf("message %v: %w", id, err)
	}
	return m, r, nil
}

// findInLog walks over the commands of the batch that holds id, without proving
// the batch: the message has a checksum of its own. What cannot be found so is
// looked for again in a batch that is proved, which tells damage from an id that
// is none.
func (e *Engine) findInLog(id record.ID) (m record.Message, r record.Ref, err error) {
	pos, n, err := e.log.Enclosing(uint64(id))
	if err == nil {
		buf := e.batches.Get().(*[]byte) //nolint:forcetypeassert // its New says so
		defer e.batches.Put(buf)
		if *buf, err = e.log.ReadAt((*buf)[:0], pos+log.LocalBytes, n); err == nil {
			var b record.Batch
			if b, err = record.RawBatch(*buf); err == nil {
				m, r, err = findIn(&b, pos, id)
			}
		}
	}
	if err == nil || errors.Is(err, log.ErrRemoved) || errors.Is(err, log.ErrRange) {
		return m, r, given(err)
	}
	pos, b, err := e.log.Locate(uint64(id))
	if err != nil {
		return m, r, given(err)
	}
	return findIn(&b, pos, id)
}

// given is what is said of an id that the log does not hold.
func given(err error) error {
	if errors.Is(err, log.ErrRange) || errors.Is(err, log.ErrRemoved) {
		return ErrNotFound
	}
	return err
}

// findIn finds the message with that id in a batch at pos. The message shares no
// memory with the batch.
func findIn(b *record.Batch, pos uint64, id record.ID) (m record.Message, r record.Ref, err error) {
	data := pos + log.LocalBytes + uint64(b.DataOffset())
	for at := 0; at < len(b.Data) && data+uint64(at) <= uint64(id); {
		c, err := record.NextCommand(b.Data, at)
		if err != nil {
			return m, r, err
		}
		if data+uint64(at) == uint64(id) && c.HoldsMessage() {
			c.Payload = slices.Clone(c.Payload)
			if err := record.MessageOf(&c, &m); err != nil {
				return m, r, err
			}
			r, err := sentAs(&c, id, m.Stored)
			return m, r, err
		}
		at += c.Size
	}
	return m, r, ErrNotFound
}

// findCarried finds what was sent before the part of the log that is kept.
func (e *Engine) findCarried(id record.ID) (m record.Message, r record.Ref, err error) {
	v, ok, err := e.carriedBytes(nil, id)
	if err == nil && !ok {
		err = ErrNotFound
	}
	if err != nil {
		return m, r, err
	}
	c, err := record.NextCommand(v, 0)
	if err == nil {
		err = record.MessageOf(&c, &m)
	}
	if err != nil {
		return m, r, err
	}
	r, err = sentAs(&c, id, m.Stored)
	return m, r, err
}
