package fs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// blockBytes is the unit in which the disk in memory loses what was not synced.
const blockBytes = 4096

// An inode is what a [Faulty] knows of one file: its name, which blocks wait for
// a sync, and which blocks a failed sync has lost.
type inode struct {
	name  string
	dirty map[int64]bool
	// lost maps a block to its bytes on the disk when its sync failed. It stays
	// until the block has been written again and then synced.
	lost map[int64][]byte
}

// inodes model what Linux does to dirty pages whose write-back failed.
type inodes struct {
	mu  sync.Mutex
	mem *vfs.MemFS // nil: names only

	// linking keeps a CrashClone out of a Link, a Lock and a reuse: Pebble's MemFS
	// takes a read lock twice in them, and a clone that asks for the write lock
	// between stops both.
	linking sync.Mutex

	files map[string]*inode
}

func (s *inodes) init(mem *vfs.MemFS) { s.mem = mem }

// open gives the inode of the file of that name, a new one if it is new.
func (s *inodes) open(name string, fresh bool) *inode {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		s.files = make(map[string]*inode)
	}
	p := s.files[name]
	if p == nil || fresh {
		p = &inode{name: name}
		s.files[name] = p
	}
	return p
}

func (s *inodes) name(p *inode) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.name
}

func (s *inodes) rename(from, to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.files[from]
	delete(s.files, from)
	delete(s.files, to)
	if p != nil {
		p.name = to
		s.files[to] = p
	}
}

func (s *inodes) wrote(p *inode, offset, n int64) {
	if s.mem == nil || n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.dirty == nil {
		p.dirty = make(map[int64]bool)
	}
	for b := offset / blockBytes; b <= (offset+n-1)/blockBytes; b++ {
		p.dirty[b] = true
	}
}

// synced forgets a lost block only if it was written again since.
func (s *inodes) synced(p *inode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for b := range p.dirty {
		delete(p.lost, b)
	}
	clear(p.dirty)
}

func (s *inodes) lose(p *inode) {
	if s.mem == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	disk := s.clone(vfs.CrashCloneCfg{})
	file, err := disk.Open(p.name)
	if err == nil {
		defer file.Close()
	}
	if p.lost == nil {
		p.lost = make(map[int64][]byte)
	}
	for b := range p.dirty {
		if _, ok := p.lost[b]; ok {
			continue
		}
		block := make([]byte, blockBytes) // zeros beyond the end of what is on the disk
		if err == nil {
			if n, rerr := file.ReadAt(block, b*blockBytes); rerr != nil && !errors.Is(rerr, io.EOF) {
				clear(block[n:])
			}
		}
		p.lost[b] = block
	}
	clear(p.dirty)
}

// clone keeps out of links, see linking.
func (s *inodes) clone(cfg vfs.CrashCloneCfg) *vfs.MemFS {
	s.linking.Lock()
	defer s.linking.Unlock()
	return s.mem.CrashClone(cfg)
}

func (s *inodes) crashClone(cfg vfs.CrashCloneCfg) (*vfs.MemFS, error) {
	if s.mem == nil {
		return nil, errNoCrash
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	disk := s.clone(cfg)
	for name, p := range s.files {
		if len(p.lost) == 0 {
			continue
		}
		if err := takeBack(disk, name, p.lost); err != nil {
			return nil, err
		}
	}
	return disk, nil
}

// takeBack puts the lost blocks of one file back to what the disk held. Blocks
// beyond the file's end need nothing.
func takeBack(disk *vfs.MemFS, name string, lost map[int64][]byte) error {
	info, err := disk.Stat(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil // the file itself did not survive
	}
	if err != nil {
		return fmt.Errorf("crash clone of %s: %w", name, err)
	}
	file, err := disk.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("crash clone of %s: %w", name, err)
	}
	defer file.Close()
	for b, block := range lost {
		n := min(blockBytes, info.Size()-b*blockBytes)
		if n <= 0 {
			continue
		}
		if _, err := file.WriteAt(block[:n], b*blockBytes); err != nil {
			return fmt.Errorf("crash clone of %s: %w", name, err)
		}
	}
	return file.Sync()
}
