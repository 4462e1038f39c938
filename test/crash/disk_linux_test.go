package crash

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// A disk is a file system of its own whose power can be cut: ext4 on a loop
// device on a file.
type disk struct {
	image string
	mount string
	loop  string
	lock  *os.File // of the image, held as long as this process lives
}

const (
	diskBytes = 512 << 20
	// diskPrefix begins the names of folders that hold an image. A run that was
	// killed leaves its own behind, mounted, and the next run finds it by this.
	diskPrefix = "duemq-power-"
	imageName  = "disk.img"
)

// newDisk makes a file system, mounts it and sees to it that all is taken away
// again.
func newDisk(t *testing.T) *disk {
	t.Helper()
	removeStale(t)
	dir, err := os.MkdirTemp("", diskPrefix) //nolint:usetesting // if this run is killed, the next one finds it by its name
	if err != nil {
		t.Fatal(err)
	}
	d := &disk{image: filepath.Join(dir, imageName), mount: filepath.Join(dir, "mnt")}
	t.Cleanup(func() {
		if err := d.remove(); err != nil {
			t.Errorf("the power cut's disk stays behind: %v", err)
		}
	})
	if err := d.make(); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *disk) make() error {
	if err := os.Mkdir(d.mount, 0o755); err != nil {
		return err
	}
	var err error
	if d.lock, err = os.Create(d.image); err != nil {
		return err
	}
	if err := syscall.Flock(int(d.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("%s: lock: %w", d.image, err)
	}
	if err := d.lock.Truncate(diskBytes); err != nil {
		return err
	}
	if _, err := command("mkfs.ext4", "-q", "-F", "-m", "0", d.image); err != nil {
		return err
	}
	if d.loop, err = command("losetup", "--find", "--show", d.image); err != nil {
		return err
	}
	return d.attach()
}

func (d *disk) attach() error {
	_, err := command("mount", "-t", "ext4", d.loop, d.mount)
	return err
}

// cut cuts the power: whatever is not on the disk by now never gets there. The
// file system is mounted again afterwards, as at the next start of a machine.
func (d *disk) cut() error {
	if err := d.shutdown(); err != nil {
		return err
	}
	if _, err := command("umount", d.mount); err != nil {
		return err
	}
	return d.attach()
}

// From linux/ext4.h: EXT4_IOC_SHUTDOWN is _IOR('X', 125, __u32).
// EXT4_GOING_FLAGS_NOLOGFLUSH leaves the journal's memory unwritten, too.
const (
	ext4Shutdown   = 0x8004587d
	ext4NoLogFlush = 2
)

func (d *disk) shutdown() error {
	dir, err := os.Open(d.mount)
	if err != nil {
		return err
	}
	defer dir.Close()
	flags := uint32(ext4NoLogFlush)
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, dir.Fd(), ext4Shutdown, uintptr(unsafe.Pointer(&flags))); errno != 0 {
		return fmt.Errorf("shut %s down: %w", d.mount, errno)
	}
	return nil
}

// remove takes away what make has made, as far as it came.
func (d *disk) remove() error {
	var errs []error
	if mounted(d.mount) {
		_, err := command("umount", "--lazy", d.mount)
		errs = append(errs, err)
	}
	if d.loop != "" {
		_, err := command("losetup", "--detach", d.loop)
		errs = append(errs, err)
	}
	errs = append(errs, os.RemoveAll(filepath.Dir(d.image)))
	if d.lock != nil {
		errs = append(errs, d.lock.Close())
	}
	return errors.Join(errs...)
}

// mounted says whether something is mounted there.
func mounted(dir string) bool {
	table, err := os.ReadFile("/proc/self/mounts")
	return err == nil && strings.Contains(string(table), " "+dir+" ")
}

// removeStale takes away what killed runs have left behind, and what belongs to
// a run that lives it leaves alone: that one holds the lock of its image.
func removeStale(t *testing.T) {
	t.Helper()
	images, err := filepath.Glob(filepath.Join(os.TempDir(), diskPrefix+"*", imageName))
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range images {
		lock, err := os.OpenFile(image, os.O_RDWR, 0)
		if err != nil {
			continue // gone meanwhile
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			_ = lock.Close()
			continue
		}
		d := &disk{image: image, mount: filepath.Join(filepath.Dir(image), "mnt"), lock: lock}
		if loops, err := command("losetup", "--noheadings", "--output", "NAME", "--associated", image); err == nil {
			d.loop = strings.TrimSpace(loops)
		}
		t.Logf("taking away what a killed run has left: %s %s", image, d.loop)
		if err := d.remove(); err != nil {
			t.Errorf("%s stays behind: %v", image, err)
		}
	}
}

// command runs a program and gives what it printed.
func command(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	if cmd.Err != nil { // not in PATH; root's tools often are not
		cmd = exec.Command("/usr/sbin/"+name, args...)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), err
}
