package log

import (
	"errors"
	"fmt"

	"github.com/duemq/duemq/internal/record"
)

// maxDamage bounds how many places a report names. One bad disk can make
// thousands.
const maxDamage = 100

// A Report is what Verify found.
type Report struct {
	Segments int
	Batches  uint64
	Messages uint64         // send commands, their own checksums verified too
	Bytes    int64          // read
	First    Start          // where the log begins
	End      Start          // where the log ends
	Torn     int64          // bytes of a torn tail, which opening would drop
	Damage   []*DamageError // at most 100 places; the log is whole if there is none
	More     int            // places beyond those
}

// Verify reads every batch and every message of a log that nobody has open and
// changes nothing. Damage is in the report, not in the error, and reading goes
// on behind it; the error says what kept Verify from reading. progress, if not
// nil, is called now and then with the bytes read so far and all bytes.
func Verify(o Options, progress func(done, total int64)) (Report, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Report{}, err
	}
	if progress == nil {
		progress = func(int64, int64) {}
	}
	l := &Log{options: o, seed: newSeed(o.StoreID), disk: disk{fs: o.FS, dir: o.Dir}}
	kept, err := survey(&l.disk, &o)
	if d, ok := errors.AsType[*DamageError](err); ok {
		return Report{Damage: []*DamageError{d}}, nil
	}
	if err != nil {
		return Report{}, err
	}
	c := check{ending: ending{l: l, kept: kept}, progress: progress}
	if len(kept.segments) > 0 {
		c.report.First = kept.segments[0].prev
		c.last = c.report.First
	}
	for i := range kept.segments {
		if err := c.check(i); err != nil {
			return c.report, err
		}
	}
	c.report.Segments = len(kept.segments)
	c.report.End = c.last
	return c.report, nil
}

// A check is one Verify under way.
type check struct {
	ending
	report   Report
	progress func(done, total int64)
	message  record.Message
	told     int64 // bytes of the last progress
	lost     bool  // the chain is broken: the next batch cannot be asked to link
}

func (c *check) found(d *DamageError) {
	if len(c.report.Damage) == maxDamage {
		c.report.More++
		return
	}
	c.report.Damage = append(c.report.Damage, d)
}

// check reads one segment to its end and goes on behind what is damaged.
func (c *check) check(i int) error {
	s := c.kept.segments[i]
	if s.prev != c.last && !c.lost {
		c.found(&DamageError{File: s.path, Offset: 48, Reason: "segment does not continue the one before"})
	}
	c.i, c.off, c.last, c.lost = i, HeaderBytes, s.prev, false
	file, sc, err := c.l.scanFile(s, windowBytes)
	if err != nil {
		return err
	}
	defer file.Close()
	for {
		if c.done(sc) {
			return nil
		}
		f, err := sc.next(c.off)
		if err == nil {
			err = c.belongs(s, &f)
		}
		why, bad := asFlaw(err)
		if err != nil && !bad {
			return damaged(s.path, c.off, err)
		}
		if bad {
			if end, err := c.skip(sc, why); end || err != nil {
				return err
			}
			continue
		}
		c.batch(s, &f)
	}
}

// done says that a segment that is not the last has been read to where the next
// one says it ends.
func (c *check) done(sc *scanner) bool {
	s := c.segmentAt()
	if at := int64(c.i)*s.segmentBytes + c.off; at-c.told >= windowBytes {
		c.told = at
		c.progress(at, int64(len(c.kept.segments))*s.segmentBytes)
	}
	if c.i+1 == len(c.kept.segments) {
		return false
	}
	end := int64(c.kept.segments[c.i+1].prev.Position - s.base)
	sc.limit = min(sc.limit, end)
	return c.off >= end
}

// belongs says why a whole batch is not the one that must stand there.
func (c *check) belongs(s *segment, f *frame) error {
	if !c.lost {
		if err := f.follows(c.last); err != nil {
			return err
		}
	}
	err := c.current(s, f)
	if d, ok := errors.AsType[*DamageError](err); ok {
		return flaw(d.Reason)
	}
	return err
}

// batch counts a good batch and looks at every message in it.
func (c *check) batch(s *segment, f *frame) {
	c.last, c.lost = f.after(s.base), false
	c.report.Batches++
	c.report.Bytes += f.length
	c.off += f.length
	if f.batch.Type != record.EntryCommands {
		return
	}
	data := f.offset + LocalBytes + int64(f.batch.DataOffset())
	err := record.Commands(f.batch.Data, func(cmd record.Command) error {
		if !cmd.HoldsMessage() {
			return nil
		}
		c.report.Messages++
		if err := record.MessageOf(&cmd, &c.message); err != nil {
			c.found(&DamageError{File: s.path, Offset: data + int64(cmd.Offset), Reason: fmt.Sprintf("message: %v", err)})
		}
		return nil
	})
	if err != nil {
		c.found(&DamageError{File: s.path, Offset: data, Reason: fmt.Sprintf("commands: %v", err)})
	}
}

// skip notes a flaw as damage and finds the next batch behind it, or says that
// the log ends here.
func (c *check) skip(sc *scanner, why flaw) (end bool, err error) {
	s := c.segmentAt()
	damage := &DamageError{File: s.path, Offset: c.off, Reason: string(why)}
	if c.i+1 == len(c.kept.segments) {
		if damage, err = c.judge(why); err != nil {
			return true, err
		}
		if damage == nil {
			c.report.Torn = c.torn
			return true, nil
		}
	}
	c.found(damage)
	c.lost = true
	next := int64(-1)
	err = sc.search(c.off+Align, func(f frame) bool {
		if f.epoch != c.kept.marks.epochAt(s.base+uint64(f.offset)) {
			return true
		}
		next = f.offset
		return false
	})
	c.off = next
	return next < 0, err
}
