package log

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

// A made log is one that a test damages: who appended what, and where.
type made struct {
	disk   *vfs.MemFS
	frames []Start // Position where each frame begins, Index its batch's
	sizes  []int64 // bytes of each frame without the zeros after it
	end    Start
}

// makeLog appends batches of these frame sizes and syncs after each as long as
// synced says so. The log is not closed: the process is killed, the disk keeps
// all.
func makeLog(sizes []int, synced int) (*made, error) {
	m := &made{disk: fs.NewMem()}
	l, err := Open(testOptions(m.disk), Start{})
	if err != nil {
		return nil, err
	}
	pos := make([]uint64, 1)
	for i, size := range sizes {
		b := testBatch(uint64(i+1), size, 2)
		if err := l.Append([]*record.Batch{b}, pos); err != nil {
			return nil, err
		}
		m.frames = append(m.frames, Start{Position: pos[0], Index: b.Index})
		m.sizes = append(m.sizes, int64(LocalBytes+b.Size()))
		if i < synced {
			if err := l.Sync(); err != nil {
				return nil, err
			}
		}
	}
	m.end = l.End()
	return m, nil
}

// flip gives a disk that differs in one bit of one file.
func (m *made) flip(path string, bit int64) (*vfs.MemFS, error) {
	disk := m.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: crashRNG()})
	return disk, flipBit(disk, path, bit)
}

func flipBit(disk vfs.FS, path string, bit int64) error {
	file, err := disk.OpenReadWrite(path, category)
	if err != nil {
		return err
	}
	var b [1]byte
	if _, err := file.ReadAt(b[:], bit/8); err != nil {
		return err
	}
	b[0] ^= 1 << (bit % 8)
	if err := writeAt(file, b[:], bit/8); err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

func (m *made) place(i int) (path string, off int64) {
	base := m.frames[i].Position / MinSegmentBytes * MinSegmentBytes
	return segmentPath(m.disk, base), int64(m.frames[i].Position - base)
}

// middle damages acknowledged batches, bit by bit as stride says, and wants
// each to be named.
func middle(bugs Bugs, stride int64) error {
	m, err := makeLog([]int{200, 9000, 30000, 25000, 300, 50000, 1000, 8000, 500}, 9)
	if err != nil {
		return err
	}
	for i := range len(m.frames) - 1 { // nothing vouches for the last
		path, off := m.place(i)
		for bit := int64(i) % stride; bit < m.sizes[i]*8; bit += stride {
			disk, err := m.flip(path, off*8+bit)
			if err != nil {
				return err
			}
			o := testOptions(disk)
			o.Bugs = bugs
			if err := wantDamage(o, path, off); err != nil {
				return fmt.Errorf("batch %d, bit %d: %w", i+1, bit, err)
			}
		}
	}
	return nil
}

// wantDamage opens a damaged log, and asks Verify.
func wantDamage(o Options, path string, off int64) error {
	_, err := Open(o, Start{})
	var d *DamageError
	if !errors.As(err, &d) {
		return fmt.Errorf("open: %w, want a DamageError", err)
	}
	if !errors.Is(err, record.ErrCorrupt) || d.Reason == "" {
		return fmt.Errorf("no ErrCorrupt with a reason: %w", err)
	}
	if d.File != path || d.Offset != off {
		return fmt.Errorf("want %s: byte %d, not %w", path, off, d)
	}
	report, err := Verify(o, nil)
	if err != nil {
		return err
	}
	if len(report.Damage) == 0 || report.Damage[0].File != path || report.Damage[0].Offset != off {
		return fmt.Errorf("Verify reports %v, want %s: byte %d", report.Damage, path, off)
	}
	if report.Batches != 8 {
		return fmt.Errorf("Verify read %d batches, want the 8 whole ones", report.Batches)
	}
	return nil
}

func TestDamageInTheMiddle(t *testing.T) {
	if err := middle(Bugs{}, 997); err != nil {
		t.Error(err)
	}
}

// TestDamageInSmallFrame flips every bit of a frame, of the zeros after it, of
// the header of its segment and of the marks.
func TestDamageInSmallFrame(t *testing.T) {
	m, err := makeLog([]int{150, 150, 150}, 3)
	if err != nil {
		t.Fatal(err)
	}
	path, off := m.place(1)
	for bit := range frameBytes(int(m.sizes[1]-LocalBytes)) * 8 {
		disk, err := m.flip(path, off*8+bit)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Open(testOptions(disk), Start{})
		if zeros := bit >= m.sizes[1]*8; zeros != (err == nil) {
			t.Errorf("bit %d of a frame of %d bytes: Open: %v", bit, m.sizes[1], err)
		}
	}
	for _, file := range []struct {
		path string
		bits int64
	}{{path, HeaderBytes * 8}, {m.disk.PathJoin(testDir, marksName), (marksHead + markBytes) * 8}} {
		for bit := range file.bits {
			disk, err := m.flip(file.path, bit)
			if err != nil {
				t.Fatal(err)
			}
			var d *DamageError
			if _, err := Open(testOptions(disk), Start{}); !errors.As(err, &d) || d.File != file.path {
				t.Errorf("%s, bit %d: Open: %v, want damage", file.path, bit, err)
			}
		}
	}
}

// TestDamageInUnsyncedTail drops from the damage on and keeps what is before.
func TestDamageInUnsyncedTail(t *testing.T) {
	const synced = 4
	m, err := makeLog([]int{200, 900, 700, 2000, 300, 5000, 1000, 800}, synced)
	if err != nil {
		t.Fatal(err)
	}
	for i := synced; i < len(m.frames); i++ {
		path, off := m.place(i)
		for bit := int64(0); bit < m.sizes[i]*8; bit += 97 {
			disk, err := m.flip(path, off*8+bit)
			if err != nil {
				t.Fatal(err)
			}
			l, err := Open(testOptions(disk), Start{})
			if err != nil {
				t.Fatalf("batch %d, bit %d: %v", i+1, bit, err)
			}
			if l.LastIndex() != uint64(i) {
				t.Errorf("batch %d, bit %d: log ends with %d", i+1, bit, l.LastIndex())
			}
			if r := l.Recovered(); i+1 < len(m.frames) && r.Torn != int64(m.end.Position-m.frames[i].Position) {
				t.Errorf("batch %d, bit %d: %d torn bytes, want %d", i+1, bit, r.Torn, m.end.Position-m.frames[i].Position)
			}
		}
	}
}

// TestCleanCloseVouches closes a log: then even its last batch cannot be lost
// unseen.
func TestCleanCloseVouches(t *testing.T) {
	mem := fs.NewMem()
	l := mustOpen(t, testOptions(mem), Start{})
	pos := mustAppend(t, l, testBatch(1, 500, 1), testBatch(2, 500, 1))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := flipBit(mem, segmentPath(mem, 0), int64(pos[1])*8+1000); err != nil {
		t.Fatal(err)
	}
	var d *DamageError
	if _, err := Open(testOptions(mem), Start{}); !errors.As(err, &d) || d.Offset != int64(pos[1]) {
		t.Errorf("Open: %v, want damage at byte %d", err, pos[1])
	}
}

// TestFilesGone deletes, cuts and swaps files.
func TestFilesGone(t *testing.T) {
	seg := func(n uint64) string { return segmentPath(vfs.Default, n*MinSegmentBytes) }
	marks := testDir + "/" + marksName
	for name, c := range map[string]struct {
		change func(disk *vfs.MemFS) error
		file   string
	}{
		"middle segment": {func(d *vfs.MemFS) error { return d.Remove(seg(1)) }, seg(1)},
		"marks":          {func(d *vfs.MemFS) error { return d.Remove(marks) }, marks},
		"all segments": {func(d *vfs.MemFS) error {
			return errors.Join(d.Remove(seg(0)), d.Remove(seg(1)), d.Remove(seg(2)))
		}, marks},
		"swapped": {func(d *vfs.MemFS) error {
			return errors.Join(d.Rename(seg(0), "x"), d.Rename(seg(1), seg(0)), d.Rename("x", seg(1)))
		}, seg(0)},
		"emptied": {func(d *vfs.MemFS) error {
			file, err := d.Create(seg(1), category)
			return errors.Join(err, file.Close())
		}, seg(1)},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := makeLog([]int{40000, 40000, 40000}, 3)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.change(m.disk); err != nil {
				t.Fatal(err)
			}
			var d *DamageError
			if _, err := Open(testOptions(m.disk), Start{}); !errors.As(err, &d) || d.File != c.file {
				t.Errorf("Open: %v, want damage of %s", err, c.file)
			}
		})
	}
}

// TestFirstSegmentGone: the oldest segments being away is what retention does,
// so the log cannot tell. It says with which batch it begins; who needs an
// earlier one has to look.
func TestFirstSegmentGone(t *testing.T) {
	m, err := makeLog([]int{40000, 40000, 40000}, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.disk.Remove(segmentPath(m.disk, 0)); err != nil {
		t.Fatal(err)
	}
	l := mustOpen(t, testOptions(m.disk), Start{})
	if l.FirstIndex() != 2 || l.FirstPosition() != MinSegmentBytes {
		t.Errorf("log begins with batch %d at %d", l.FirstIndex(), l.FirstPosition())
	}
	_, err = Open(testOptions(m.disk), Start{Position: 500, Index: 1})
	if !errors.Is(err, ErrRemoved) {
		t.Errorf("Open below what is kept: %v, want ErrRemoved", err)
	}
}
