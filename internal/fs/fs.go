// Package fs is the seam to disks. Everything that DueMQ keeps goes through an
// [FS], which is Pebble's vfs, so that one fake disk stands under the log and
// the index together and one simulated power cut hits both.
//
// [Real] is the machine's own file system. [NewMem] is a disk in memory that
// remembers what was synced: its CrashClone gives the disk as a power cut could
// have left it, with any part of what was not synced, directory entries
// included. [Faulty] stands before either and fails or observes chosen
// operations.
package fs

import "github.com/cockroachdb/pebble/v2/vfs"

// FS is a file system, as Pebble defines it.
type FS = vfs.FS

// File is an open file of an FS.
type File = vfs.File

// NewMem is an empty disk in memory whose CrashClone forgets what was not
// synced. It copies a whole file at each sync of it, so tests keep files small.
func NewMem() *vfs.MemFS { return vfs.NewCrashableMem() }
