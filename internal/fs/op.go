package fs

import "fmt"

// A Kind is what an operation does.
type Kind uint8

// The kinds of operations. Those up to OpSyncDir change the disk or decide what
// survives a power cut; the others only look.
const (
	OpCreate Kind = iota + 1
	OpOpenWrite
	OpLink
	OpRemove
	OpRemoveAll
	OpRename
	OpReuse
	OpMkdir
	OpLock
	OpWrite
	OpPreallocate
	OpSync
	OpSyncDir
	OpOpen
	OpOpenDir
	OpRead
	OpList
	OpStat
)

var kindNames = [...]string{
	OpCreate: "create", OpOpenWrite: "open-write", OpLink: "link", OpRemove: "remove",
	OpRemoveAll: "remove-all", OpRename: "rename", OpReuse: "reuse", OpMkdir: "mkdir", OpLock: "lock",
	OpWrite: "write", OpPreallocate: "preallocate", OpSync: "sync", OpSyncDir: "sync-dir",
	OpOpen: "open", OpOpenDir: "open-dir", OpRead: "read", OpList: "list", OpStat: "stat",
}

// String is the kind's name, as operation lists show it.
func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return fmt.Sprintf("kind-%d", uint8(k))
}

// Mutates reports whether operations of this kind change the disk or decide
// what survives a power cut. Only these are numbered and recorded.
func (k Kind) Mutates() bool { return k >= OpCreate && k <= OpSyncDir }

// An Op is one operation on a disk.
type Op struct {
	Kind   Kind
	Number int    // from 1, among those that mutate; 0 for the others
	Path   string // the file's name now, also if it was renamed while open
	To     string // the new name, of a rename, link or reuse
	Offset int64  // where a read, write or preallocation begins
	Size   int64  // its bytes
}

// String is the operation on one line, without its number, so that two lists
// can be compared.
func (o Op) String() string {
	switch {
	case o.To != "":
		return fmt.Sprintf("%v %s %s", o.Kind, o.Path, o.To)
	case o.Kind == OpWrite || o.Kind == OpRead || o.Kind == OpPreallocate:
		return fmt.Sprintf("%v %s %d+%d", o.Kind, o.Path, o.Offset, o.Size)
	}
	return fmt.Sprintf("%v %s", o.Kind, o.Path)
}

// A Fault is what goes wrong and when. The zero Fault is no fault.
type Fault struct {
	// At says which operation fails: the n-th from now, counted from 1, among
	// those that Match takes. 0 is none.
	At int
	// Match chooses the operations that count. Nil takes all that mutate; only a
	// Match of its own sees reads.
	Match func(Op) bool
	// Forever makes every later matching operation fail too.
	Forever bool
	// Err is what the caller gets. Nil is EIO.
	Err error
	// Short lets the first half of a failing write reach the disk.
	Short bool
	// Lose makes a failing sync forget: what was written before it is readable
	// until a power cut, but no later sync brings it to the disk, only writing it
	// again does. This is what Linux does with dirty pages whose write-back
	// failed, and why a failed fsync must not be retried. It needs a Faulty over
	// a [NewMem] disk and shows in [Faulty.CrashClone].
	Lose bool
}
