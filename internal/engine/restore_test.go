package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/log"
	"github.com/duemq/duemq/internal/record"
)

// suspectOptions open a store without moving anything in it.
func suspectOptions(disk fs.FS) Options {
	return options(disk, clock.NewFake(testStart.Add(-time.Hour)))
}

// halfRestored says what is wrong with a disk on which a restore was cut off: its
// folder opens as the whole store, as a new one without anything, or not at all
// because the log has no STORE file.
func halfRestored(t *testing.T, disk fs.FS, want string) (whole bool, err error) {
	e, err := Open(t.Context(), suspectOptions(disk))
	if errors.Is(err, record.ErrCorrupt) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer e.Close()
	got, err := e.Hash()
	switch {
	case err != nil:
		return false, err
	case got == want:
		return true, nil
	case e.Recovered().New && len(e.Topics()) == 0 && e.log.LastIndex() == 0:
		return false, nil
	}
	return false, fmt.Errorf("half a store opened: log ends with batch %d, state %s, want %s", e.log.LastIndex(), got, want)
}

// TestRestoreCrash cuts the power before every operation of a restore, with
// none, some and all of what was not synced on the disk. What is there then is
// all or nothing, and a second restore makes it all.
func TestRestoreCrash(t *testing.T) {
	_, k, want := filled(t)
	mem := fs.NewMem()
	faulty := fs.NewFaulty(mem)
	wholes, restores := 0, 0
	look := func(op fs.Op) {
		if testing.Short() && op.Number%11 != 0 {
			return
		}
		for _, percent := range []int{0, 50, 100} {
			crash := func() *vfs.MemFS {
				return mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(uint64(op.Number), 3))})
			}
			whole, err := halfRestored(t, crash(), want)
			if err == nil && !whole {
				restores++
				again := crash()
				if _, err = RestoreBackup(t.Context(), suspectOptions(again), bytes.NewReader(k.stream.Bytes()), nil); err == nil {
					whole, err = halfRestored(t, again, want)
				}
			} else if whole {
				wholes++
			}
			if err != nil || !whole {
				t.Errorf("crash with %d %% before %s: whole %v, %v", percent, op, whole, err)
			}
		}
	}
	faulty.Hooks(look, nil)
	if _, err := RestoreBackup(t.Context(), suspectOptions(faulty), bytes.NewReader(k.stream.Bytes()), nil); err != nil {
		t.Fatal(err)
	}
	faulty.Hooks(nil, nil)
	if wholes == 0 && !testing.Short() || restores == 0 {
		t.Errorf("%d crashes left a store and %d left none", wholes, restores)
	}
	for _, percent := range []int{0, 100} {
		c := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(1, 3))})
		if whole, err := halfRestored(t, c, want); !whole {
			t.Errorf("crash after the restore: whole %v, %v", whole, err)
		}
	}
}

// TestRestoreFailsAtEveryOperation fails each operation of the disk once: the
// error surfaces, and what is left is all or nothing, also after a power cut.
func TestRestoreFailsAtEveryOperation(t *testing.T) {
	_, k, want := filled(t)
	stride := 1
	if testing.Short() {
		stride = 11
	}
	for i, fault := range failures {
		for n := 1 + i; ; n += stride {
			faulty := fs.NewFaulty(fs.NewMem())
			fault.At = n
			faulty.Inject(fault)
			_, rerr := RestoreBackup(t.Context(), suspectOptions(faulty), bytes.NewReader(k.stream.Bytes()), nil)
			if faulty.Fired() == 0 {
				break
			}
			faulty.Inject(fs.Fault{})
			clone, err := faulty.CrashClone(vfs.CrashCloneCfg{RNG: rand.New(rand.NewPCG(uint64(n), 3))})
			if err != nil {
				t.Fatal(err)
			}
			for name, disk := range map[string]fs.FS{"as it is": faulty, "after a power cut": clone} {
				whole, err := halfRestored(t, disk, want)
				if err != nil || rerr == nil && !whole {
					t.Errorf("operation %d fails with %q (short %v, lost %v), restore said %v; %s: whole %v, %v",
						n, fault.Err.Error(), fault.Short, fault.Lose, rerr, name, whole, err)
				}
			}
		}
	}
}

// TestRestoredLives: what waited falls due in the restored store, new messages
// follow, and it can be backed up and restored in turn.
func TestRestoredLives(t *testing.T) {
	_, k, want := filled(t)
	dir := t.TempDir()
	k.restoreTo(t, fixtureOptions(dir))
	if got := hashOfStore(t, dir); got != want {
		t.Fatalf("state %s, want %s", got, want)
	}
	o := fixtureOptions(dir)
	c := clock.NewFake(fixtureClock.Add(2 * time.Hour))
	o.Clock = c
	e := open(t, o)
	settle(t, e)
	tp := e.TopicNamed("orders")
	before, waited := len(visible(t, e, tp)), e.Count(tp).Waiting
	send(t, e, tp, "new", Delay{DelayAfter, 50})
	c.Advance(time.Second)
	settle(t, e)
	if got := visible(t, e, tp); len(got) != before+1 || before < 300 || e.Count(tp).Waiting != waited {
		t.Errorf("%d visible after %d, %d wait after %d", len(got), before, e.Count(tp).Waiting, waited)
	}
	again := take(t, e, nil)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	third := t.TempDir()
	again.restoreTo(t, fixtureOptions(third))
	if got, want := hashOfStore(t, third), hashOfStore(t, dir); got != want {
		t.Errorf("copy of the copy: state %s, want %s", got, want)
	}
}

// untouched demands that a folder holds nothing that a store could be made of.
func untouched(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "LOCK" {
			t.Errorf("left behind: %s", e.Name())
		}
	}
}

// TestRestoreRefusesDamage cuts the stream before every frame and within it, and
// flips a bit of every frame: nothing is left of what was restored.
func TestRestoreRefusesDamage(t *testing.T) {
	_, k, _ := filled(t)
	stream := k.stream.Bytes()
	dir := t.TempDir()
	refused := func(name string, stream []byte) {
		_, err := RestoreBackup(t.Context(), fixtureOptions(dir), bytes.NewReader(stream), nil)
		if err == nil {
			t.Fatalf("%s: restored", name)
		}
		untouched(t, dir)
	}
	n := 0
	for at := 0; at < len(stream); n++ {
		end := at + 12 + int(binary.LittleEndian.Uint32(stream[at+4:]))
		refused(fmt.Sprintf("cut before frame %d", n), stream[:at])
		refused(fmt.Sprintf("cut within frame %d", n), stream[:(at+end)/2])
		bad := bytes.Clone(stream)
		bad[(at+12+end)/2] ^= 4
		refused(fmt.Sprintf("bit of frame %d", n), bad)
		at = end
	}
	if n < 4 {
		t.Errorf("%d frames", n)
	}
	k.restoreTo(t, fixtureOptions(dir))
}

// TestRestoreRefusesFolders: a folder with something in it, and one that somebody
// has.
func TestRestoreRefusesFolders(t *testing.T) {
	source, k, _ := filled(t)
	try := func(dir string) error {
		_, err := RestoreBackup(t.Context(), fixtureOptions(dir), bytes.NewReader(k.stream.Bytes()), nil)
		return err
	}
	if err := try(source.Dir); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("into the source: %v", err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := try(dir); !errors.Is(err, ErrNotEmpty) || !strings.Contains(err.Error(), "mine.txt") {
		t.Errorf("into a folder with a file: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "LOCK")); err == nil {
		t.Error("a lock was left in a folder that was refused")
	}
	held := t.TempDir()
	lock, err := fs.Real().Lock(filepath.Join(held, "LOCK"))
	if err != nil {
		t.Fatal(err)
	}
	if err := try(held); !errors.Is(err, ErrInUse) {
		t.Errorf("into a folder that is in use: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := RestoreBackup(t.Context(), fixtureOptions(held), strings.NewReader("something else, but long enough"), nil); !errors.Is(err, record.ErrCorrupt) {
		t.Errorf("from something else: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := RestoreBackup(ctx, fixtureOptions(held), bytes.NewReader(k.stream.Bytes()), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := try(held); err != nil {
		t.Errorf("into the folder of those that failed: %v", err)
	}
}

// TestSplitApplied: restore finds its way in what a cut writes.
func TestSplitApplied(t *testing.T) {
	o, _, _ := filled(t)
	e := open(t, o)
	end := log.Start{Index: 300, Position: 1 << 40, Checksum: 0xfedcba98}
	value := e.m.appendApplied([]byte{0}, end, []byte("the rest"))[1:] // behind something
	at, rest, err := splitApplied(value)
	if err != nil || at != end || !bytes.Equal(joinApplied(value[0], at, rest), value) {
		t.Errorf("%+v %q %v of %q", at, rest, err, value)
	}
	for n := range 10 {
		if _, _, err := splitApplied(value[:n]); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	value[0] = appliedVersion + 1
	if _, _, err := splitApplied(value); !errors.Is(err, record.ErrVersion) {
		t.Errorf("newer: %v", err)
	}
}
