package log

import (
	"errors"
	"fmt"

	"github.com/duemq/duemq/internal/record"
)

// Salvage calls fn for the batches between two positions, which are beginnings
// of segments, and goes on behind what is damaged: there err says what is wrong,
// and b is the batch as far as its frame can be believed, its bytes unproved, or
// nil. What was removed already is passed over. The batch is good only during the
// call. It stops at fn's first error, and at a disk that cannot be read.
func (l *Log) Salvage(from, to uint64, fn func(pos uint64, b *record.Batch, err error) error) error {
	v := l.now()
	for i, s := range v.segments {
		if s.base < from || s.base >= to {
			continue
		}
		if err := l.salvage(&v, i, fn); err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) salvage(v *view, i int, fn func(pos uint64, b *record.Batch, err error) error) error {
	s := v.segments[i]
	sc := l.scan(v, i, windowBytes)
	end := int64(v.end(i) - s.base)
	for off := int64(HeaderBytes); off < end; {
		f, err := sc.next(off)
		why, bad := asFlaw(err)
		switch {
		case err == nil:
			b := f.batch
			if err := fn(s.base+uint64(off), &b, nil); err != nil {
				return err
			}
			off += f.length
		case !bad:
			return damaged(s.path, off, err)
		default:
			next, b, err := sc.behind(off, end)
			if err != nil {
				return err
			}
			if err := fn(s.base+uint64(off), b, &DamageError{File: s.path, Offset: off, Reason: string(why)}); err != nil {
				return err
			}
			off = next
		}
	}
	return nil
}

// behind finds where reading goes on after a damaged frame at off, and gives the
// frame's batch if only that is damaged.
func (s *scanner) behind(off, end int64) (next int64, b *record.Batch, err error) {
	f, err := s.head(off)
	if err == nil {
		src, err := s.view(off, int(min(f.length, s.limit-off)))
		if err != nil {
			return 0, nil, fmt.Errorf("salvage: %w", err)
		}
		if raw, err := record.RawBatch(src[LocalBytes:]); err == nil {
			b = &raw
		}
		return off + f.length, b, nil
	}
	if _, bad := asFlaw(err); !bad {
		return 0, nil, errors.Join(errors.New("salvage"), err)
	}
	next = end
	err = s.search(off+Align, func(f frame) bool {
		next = min(f.offset, end)
		return false
	})
	return next, nil, err
}
