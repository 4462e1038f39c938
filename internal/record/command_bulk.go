package record

import (
	"encoding/binary"
	"slices"
)

// An OperationState says where a bulk operation stands.
type OperationState uint8

// The states of an operation. Append, never renumber.
const (
	OperationRunning OperationState = 1 // begun: whoever leads goes on with it
	OperationDone    OperationState = 2 // it has seen everything it selects
	OperationStopped OperationState = 3 // somebody stopped it; what it did stays done
)

// Known says that this binary knows the state.
func (s OperationState) Known() bool { return s >= OperationRunning && s <= OperationStopped }

// An Operation begins or ends a bulk operation on what waits, such as a cancel
// by filter. Its number is its identity; between its beginning and its end it
// is carried on in chunks (Operate), after a restart too.
type Operation struct {
	Number uint64
	State  OperationState
	// Spec says what is selected and what is to be done with it, in a form that
	// only the proposer reads. The proposer bounds it, to 64 KiB.
	Spec string
}

// AppendOperation appends an operation command.
func AppendOperation(dst []byte, o *Operation) []byte {
	return appendFrame(dst, CommandOperation, func(dst []byte) []byte {
		dst = binary.AppendUvarint(dst, o.Number)
		dst = append(dst, byte(o.State))
		return appendString(dst, o.Spec)
	})
}

// DecodeOperation reads an operation command's payload. A state that is not
// Known is read all the same: apply refuses it.
func DecodeOperation(payload []byte) (o Operation, err error) {
	r := reader{src: payload}
	o.Number = r.uvarint()
	o.State = OperationState(r.byte())
	o.Spec = string(r.bytes())
	return o, r.end()
}

// A Steer cancels the waiting reference Ref or gives it another due. Ref is the
// reference as it waited when it was selected: if it has moved on since, it is
// left alone.
type Steer struct {
	Ref Ref
	Due int64 // Unix ms; 0 cancels
}

// An Operate is one chunk of a bulk operation: what it does, and how far the
// operation has then looked.
type Operate struct {
	Number  uint64
	Cursor  Key // everything up to it has been looked at
	Entries []Steer
}

// steerBytes is the least that one entry takes: five numbers of a byte, kind,
// tag, level and the new due.
const steerBytes = 11

// AppendOperate appends an operate command.
func AppendOperate(dst []byte, o *Operate) []byte {
	return appendFrame(dst, CommandOperate, func(dst []byte) []byte {
		dst = binary.AppendUvarint(dst, o.Number)
		dst = appendKey(dst, o.Cursor)
		dst = binary.AppendUvarint(dst, uint64(len(o.Entries)))
		for i := range o.Entries {
			dst = appendRef(dst, &o.Entries[i].Ref)
			dst = appendTime(dst, o.Entries[i].Due)
		}
		return dst
	})
}

// DecodeOperate reads an operate command's payload into o, whose slice is used
// again.
func DecodeOperate(payload []byte, o *Operate) error {
	r := reader{src: payload}
	o.Number = r.uvarint()
	o.Cursor = r.key()
	n := r.count(steerBytes)
	o.Entries = slices.Grow(o.Entries[:0], n)
	for ; n > 0 && r.err == nil; n-- {
		o.Entries = append(o.Entries, Steer{Ref: r.ref(), Due: r.time()})
	}
	return r.end()
}
