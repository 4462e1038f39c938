package log

import (
	"encoding/binary"

	"github.com/duemq/duemq/internal/record"
)

// After gives the place after the batch at pos: what a cut that ends with this
// batch remembers, so that [Open] and [Log.Replay] go on from there. It may be
// called by any goroutine.
func (l *Log) After(pos uint64) (Start, error) {
	var buf [LocalBytes + record.BatchHeader]byte
	head, err := l.ReadAt(buf[:0], pos, len(buf))
	if err != nil {
		return Start{}, err
	}
	local, err := readLocal(head, l.seed, pos)
	if err != nil {
		return Start{}, err
	}
	size, err := record.BatchLength(head[LocalBytes:])
	if err != nil {
		return Start{}, err
	}
	return Start{
		Position: pos + uint64(frameBytes(size)),
		Index:    binary.LittleEndian.Uint64(head[LocalBytes+16:]),
		Checksum: local.checksum,
	}, nil
}
