package raft

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/duemq/duemq/internal/record"
)

// commandHead is what stands before the commands in raft's Data: what a batch's
// header holds and raft has no field for.
const commandHead = 8 + 4 + 2 // stamp, limit, flags

// appendProposal appends what the proposer hands to raft: the Data of a command
// entry.
func appendProposal(dst []byte, b *record.Batch) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint64(dst, uint64(b.Stamp))
	dst = le.AppendUint32(dst, b.Limit)
	dst = le.AppendUint16(dst, uint16(b.Flags))
	return append(dst, b.Data...)
}

// kinds are the entries that raft writes and what the log calls them. Those of
// raft's old protocol, which changed members by address, are none of ours.
var kinds = map[raft.LogType]record.EntryType{
	raft.LogCommand:       record.EntryCommands,
	raft.LogNoop:          record.EntryNoop,
	raft.LogConfiguration: record.EntryConfiguration,
	raft.LogBarrier:       record.EntryBarrier,
}

// toBatch is raft's entry as a batch of the log. It shares the entry's bytes.
func toBatch(l *raft.Log) (*record.Batch, error) {
	kind, ok := kinds[l.Type]
	if !ok {
		return nil, fmt.Errorf("raft entry %d of type %v: %w", l.Index, l.Type, record.ErrVersion)
	}
	b := &record.Batch{Type: kind, Index: l.Index, Term: l.Term, Extensions: l.Extensions, Data: l.Data}
	if !l.AppendedAt.IsZero() {
		b.AppendedAt = l.AppendedAt.UnixNano()
	}
	if kind != record.EntryCommands {
		return b, nil
	}
	if len(l.Data) < commandHead {
		return nil, fmt.Errorf("raft entry %d: command of %d bytes: %w", l.Index, len(l.Data), record.ErrCorrupt)
	}
	le := binary.LittleEndian
	b.Stamp = int64(le.Uint64(l.Data))
	b.Limit = le.Uint32(l.Data[8:])
	b.Flags = record.BatchFlags(le.Uint16(l.Data[12:]))
	b.Data = l.Data[commandHead:]
	return b, nil
}

// fromBatch is a batch of the log as raft's entry.
func fromBatch(b *record.Batch, l *raft.Log) error {
	*l = raft.Log{Index: b.Index, Term: b.Term, Data: b.Data, Extensions: b.Extensions}
	if b.AppendedAt != 0 {
		l.AppendedAt = time.Unix(0, b.AppendedAt)
	}
	if b.Type == record.EntryCommands {
		l.Data = appendProposal(make([]byte, 0, commandHead+len(b.Data)), b)
	}
	for theirs, ours := range kinds {
		if ours == b.Type {
			l.Type = theirs
			return nil
		}
	}
	return fmt.Errorf("batch %d of type %d: %w", b.Index, b.Type, record.ErrVersion)
}
