package group

import (
	"cmp"
	"slices"

	"github.com/duemq/duemq/internal/record"
)

// Progress is how far a group has come in one queue. Only the applier changes
// it, by the methods below; the same calls in the same order make the same
// state.
type Progress struct {
	Base    record.Offset        // everything below is finished, or was given up
	Acked   []record.OffsetRange // finished above Base: in order, disjoint, not adjacent
	Pulled  record.Offset        // a pull consumer's next offset
	Leased  record.Offset        // everything below was delivered at least once; never below Base
	Skipped uint64               // offsets that retention took before the group was finished with them

	tries []Try // in order, unfinished, within MaxInflight of Base
	dirty bool
}

// StartAt is the progress of a group that begins at an offset.
func StartAt(from record.Offset) *Progress {
	return &Progress{Base: from, Pulled: from, Leased: from}
}

// Ack finishes ranges of offsets and answers how many were not finished
// before. limit is the queue's next offset; nothing beyond it is believed.
func (p *Progress) Ack(ranges []record.OffsetRange, limit record.Offset) uint64 {
	var fresh uint64
	low, high := record.Offset(1<<64-1), record.Offset(0)
	for _, r := range ranges {
		r.From, r.To = max(r.From, p.Base), min(r.To, limit)
		if r.From < r.To {
			fresh += p.insert(r)
			low, high = min(low, r.From), max(high, r.To)
		}
	}
	if len(p.Acked) > 0 && p.Acked[0].From == p.Base {
		p.Base = p.Acked[0].To
		p.Acked = slices.Delete(p.Acked, 0, 1)
	}
	p.Leased = max(p.Leased, p.Base)
	if low < high {
		p.dropTries(low, high)
	}
	return fresh
}

// insert adds one range, joining it with those it touches.
func (p *Progress) insert(r record.OffsetRange) uint64 {
	if n := len(p.Acked); n > 0 && p.Acked[n-1].To == r.From { // the common case
		p.Acked[n-1].To = r.To
		return uint64(r.To - r.From)
	}
	i, _ := slices.BinarySearchFunc(p.Acked, r.From, func(a record.OffsetRange, from record.Offset) int {
		return cmp.Compare(a.To, from)
	})
	j := i
	covered := uint64(0)
	joined := r
	for ; j < len(p.Acked) && p.Acked[j].From <= r.To; j++ {
		a := p.Acked[j]
		lo, hi := max(a.From, r.From), min(a.To, r.To)
		if lo < hi {
			covered += uint64(hi - lo)
		}
		joined.From, joined.To = min(joined.From, a.From), max(joined.To, a.To)
	}
	p.Acked = slices.Replace(p.Acked, i, j, joined)
	return uint64(r.To-r.From) - covered
}

// after is the index of the first acknowledged range that ends behind o.
func (p *Progress) after(o record.Offset) int {
	i, _ := slices.BinarySearchFunc(p.Acked, o, func(a record.OffsetRange, o record.Offset) int {
		if a.To <= o {
			return -1
		}
		return 1
	})
	return i
}

// Finished says whether the group is finished with an offset.
func (p *Progress) Finished(o record.Offset) bool {
	if o < p.Base {
		return true
	}
	i := p.after(o)
	return i < len(p.Acked) && p.Acked[i].From <= o
}

// Clip gives up what lies below low, the first offset that retention has left.
// What the group was not finished with, by acknowledging or by pulling beyond
// it, counts as skipped.
func (p *Progress) Clip(low record.Offset) {
	if low <= p.Base {
		return
	}
	p.Base, p.Skipped = p.Behind(low)
	p.Acked = slices.Delete(p.Acked, 0, p.after(p.Base))
	p.Pulled = max(p.Pulled, low)
	p.Leased = max(p.Leased, p.Base)
	p.tries = p.tries[p.find(p.Base):]
}

// Behind tells what Base and Skipped would be after Clip. It changes nothing,
// so that a reader sees the right figures of a group that no command has
// touched since.
func (p *Progress) Behind(low record.Offset) (base record.Offset, skipped uint64) {
	if low <= p.Base {
		return p.Base, p.Skipped
	}
	base, skipped = low, p.Skipped
	from := max(p.Base, p.Pulled)
	if from < low {
		skipped += uint64(low - from)
	}
	for _, r := range p.Acked {
		if r.From > low {
			break
		}
		if lo, hi := max(r.From, from), min(r.To, low); lo < hi {
			skipped -= uint64(hi - lo)
		}
		base = max(base, r.To)
	}
	return base, skipped
}

// Reset has the group go on at an offset, ahead or behind, as if it had
// finished everything below and seen nothing from there on. What was skipped
// stays counted.
func (p *Progress) Reset(to record.Offset) {
	p.Base, p.Pulled, p.Leased = to, to, to
	p.Acked, p.tries = nil, nil
}
