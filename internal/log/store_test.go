package log

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

const storeDir = "data/duemq"

func storeOptions() StoreOptions {
	return StoreOptions{SegmentBytes: 1 << 20, Rand: rand.NewChaCha8([32]byte{1})}
}

func TestStore(t *testing.T) {
	mem := fs.NewMem()
	made, err := OpenStore(mem, storeDir, storeOptions())
	if err != nil || !made.Created || made.Format != 1 || made.SegmentBytes != 1<<20 || made.ID == [16]byte{} {
		t.Fatalf("new store: %+v, %v", made, err)
	}
	// Another opening wants another size and has no randomness: the store stays
	// what it was, also after a power cut.
	disk := mem.CrashClone(crashNothing)
	again, err := OpenStore(disk, storeDir, StoreOptions{SegmentBytes: 1 << 24})
	made.Created = false
	if err != nil || again != made {
		t.Errorf("opened again: %+v, %v, want %+v", again, err, made)
	}
}

func TestStoreDefaults(t *testing.T) {
	made, err := OpenStore(fs.NewMem(), storeDir, StoreOptions{Rand: rand.NewChaCha8([32]byte{2})})
	if err != nil || made.SegmentBytes != DefaultSegmentBytes {
		t.Errorf("new store: %+v, %v", made, err)
	}
	for name, o := range map[string]StoreOptions{
		"no randomness":        {},
		"too little of it":     {Rand: strings.NewReader("short")},
		"small segments":       {SegmentBytes: 4096, Rand: rand.NewChaCha8([32]byte{})},
		"segments of odd size": {SegmentBytes: 1<<20 + 1, Rand: rand.NewChaCha8([32]byte{})},
	} {
		mem := fs.NewMem()
		if _, err := OpenStore(mem, storeDir, o); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := mem.Stat(storeDir); err == nil {
			t.Errorf("%s: something was made", name)
		}
	}
}

// TestStoreCrash crashes at each operation of the making of a store: afterwards
// there is none, or this one.
func TestStoreCrash(t *testing.T) {
	mem := fs.NewMem()
	f := fs.NewFaulty(mem)
	var clones []*vfs.MemFS
	f.Hooks(func(op fs.Op) {
		for _, percent := range []int{0, 30, 70, 100} {
			clones = append(clones, mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(uint64(op.Number), 1))}))
		}
	}, nil)
	made, err := OpenStore(f, storeDir, storeOptions())
	if err != nil {
		t.Fatal(err)
	}
	made.Created = false
	for i, disk := range clones {
		got, err := OpenStore(disk, storeDir, StoreOptions{SegmentBytes: 1 << 21, Rand: rand.NewChaCha8([32]byte{9})})
		if err != nil || !got.Created && got != made {
			t.Errorf("crash %d: %+v, %v", i, got, err)
		}
		again, err := OpenStore(disk.CrashClone(crashNothing), storeDir, StoreOptions{})
		got.Created = false
		if err != nil || again != got {
			t.Errorf("crash %d, then a second one: %+v, %v, want %+v", i, again, err, got)
		}
	}
}

func TestStoreFaults(t *testing.T) {
	for n := 1; ; n++ {
		f := fs.NewFaulty(fs.NewMem())
		f.Inject(fs.Fault{At: n})
		_, err := OpenStore(f, storeDir, storeOptions())
		if f.Fired() == 0 {
			if err != nil || n < 8 {
				t.Fatalf("%d operations: %v", n-1, err)
			}
			return
		}
		if !errors.Is(err, syscall.EIO) {
			t.Errorf("fault at %d: %v, want EIO", n, err)
		}
		if _, err := OpenStore(f, storeDir, storeOptions()); err != nil {
			t.Errorf("fault at %d, then another opening: %v", n, err)
		}
	}
}

// storeText is a STORE file with that format and a good checksum.
func storeText(format string) string {
	s := fmt.Sprintf("%s\nformat %s\nid %x\nsegment-bytes 1048576\n", storeTitle, format, testID)
	return s + fmt.Sprintf("checksum %08x\n", record.Checksum(0, []byte(s)))
}

func TestStoreRefused(t *testing.T) {
	good := storeText("1")
	for name, c := range map[string]struct {
		text  string
		class error
		says  string
	}{
		"newer format":    {storeText("2"), record.ErrVersion, "newer duemq"},
		"much newer":      {"duemq store\nformat 7\nwho knows", record.ErrVersion, "format 7"},
		"format zero":     {storeText("0"), record.ErrCorrupt, "format"},
		"no format":       {storeText("x"), record.ErrCorrupt, "format"},
		"empty":           {"", record.ErrCorrupt, "not a STORE file"},
		"something else":  {"[store]\nformat 1\n", record.ErrCorrupt, "not a STORE file"},
		"cut short":       {good[:len(good)-1], record.ErrCorrupt, "checksum"},
		"a bit changed":   {strings.Replace(good, "id d0", "id d1", 1), record.ErrCorrupt, "checksum"},
		"a line more":     {good + "\n", record.ErrCorrupt, "checksum"},
		"very long":       {good + strings.Repeat("x", maxStoreBytes), record.ErrCorrupt, "too long"},
		"a sign too many": {storeText("+1"), record.ErrCorrupt, "checksum"},
	} {
		mem := fs.NewMem()
		if err := mem.MkdirAll("data", 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, mem, "data/STORE", c.text)
		_, err := OpenStore(mem, "data", storeOptions())
		if !errors.Is(err, c.class) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "data/STORE") {
			t.Errorf("%s: %v, want %v that says %q and names the file", name, err, c.class, c.says)
		}
		if got, err := readSmall(mem, "data/STORE", 1<<20); err != nil || string(got) != c.text {
			t.Errorf("%s: the file was changed", name)
		}
	}
}

func writeFile(t testing.TB, f vfs.FS, path, text string) {
	t.Helper()
	file, err := f.Create(path, category)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(file, text); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

func FuzzStore(f *testing.F) {
	f.Add([]byte(storeText("1")))
	f.Add([]byte(storeText("2")))
	f.Fuzz(func(t *testing.T, src []byte) {
		s, err := decodeStore(src)
		if err != nil {
			return
		}
		if got := encodeStore(&s); !bytes.Equal(got, src) {
			t.Errorf("decoded %+v, which encodes to %q, not %q", s, got, src)
		}
	})
}
