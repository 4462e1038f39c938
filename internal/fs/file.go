package fs

// A faultyFile is an open file of a [Faulty]. Write-oriented calls come one at
// a time, as vfs.File demands.
type faultyFile struct {
	File
	fs   *Faulty
	node *inode
	dir  bool
	pos  int64
}

func (f *faultyFile) op(k Kind, offset, size int64) Op {
	return Op{Kind: k, Path: f.fs.inodes.name(f.node), Offset: offset, Size: size}
}

// Write implements vfs.File.
func (f *faultyFile) Write(p []byte) (int, error) {
	n, err := f.write(p, f.pos, f.File.Write)
	f.pos += int64(n)
	return n, err
}

// WriteAt implements vfs.File.
func (f *faultyFile) WriteAt(p []byte, offset int64) (int, error) {
	return f.write(p, offset, func(p []byte) (int, error) { return f.File.WriteAt(p, offset) })
}

func (f *faultyFile) write(p []byte, offset int64, to func([]byte) (int, error)) (int, error) {
	op := f.op(OpWrite, offset, int64(len(p)))
	fault, fails := f.fs.enter(&op)
	if fails && !fault.Short {
		return 0, f.fs.leave(op, fault.cause())
	}
	if fails {
		p = p[:len(p)/2]
	}
	n, err := to(p)
	f.fs.inodes.wrote(f.node, offset, int64(n))
	if fails {
		err = fault.cause()
	}
	return n, f.fs.leave(op, err)
}

// Read implements vfs.File.
func (f *faultyFile) Read(p []byte) (n int, err error) {
	err = f.fs.do(f.op(OpRead, f.pos, int64(len(p))), func() error {
		n, err = f.File.Read(p)
		return err
	})
	f.pos += int64(n)
	return n, err
}

// ReadAt implements vfs.File.
func (f *faultyFile) ReadAt(p []byte, offset int64) (n int, err error) {
	err = f.fs.do(f.op(OpRead, offset, int64(len(p))), func() error {
		n, err = f.File.ReadAt(p, offset)
		return err
	})
	return n, err
}

// Preallocate implements vfs.File.
func (f *faultyFile) Preallocate(offset, length int64) error {
	return f.fs.do(f.op(OpPreallocate, offset, length), func() error { return f.File.Preallocate(offset, length) })
}

// Sync implements vfs.File.
func (f *faultyFile) Sync() error { return f.sync(f.File.Sync) }

// SyncData implements vfs.File.
func (f *faultyFile) SyncData() error { return f.sync(f.File.SyncData) }

// SyncTo implements vfs.File.
func (f *faultyFile) SyncTo(length int64) (full bool, err error) {
	err = f.fs.do(f.op(OpSync, 0, length), func() error {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

func (f *faultyFile) sync(act func() error) error {
	kind := OpSync
	if f.dir {
		kind = OpSyncDir
	}
	op := f.op(kind, 0, 0)
	fault, fails := f.fs.enter(&op)
	if fails {
		if fault.Lose && !f.dir {
			f.fs.inodes.lose(f.node)
		}
		return f.fs.leave(op, fault.cause())
	}
	err := act()
	if err == nil && !f.dir {
		f.fs.inodes.synced(f.node)
	}
	return f.fs.leave(op, err)
}
