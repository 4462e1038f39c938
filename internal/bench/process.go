//go:build linux

package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// field reads a number out of a file of /proc/self.
func field(file, name string) float64 {
	data, err := os.ReadFile("/proc/self/" + file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			v, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err == nil {
				return v
			}
		}
	}
	return 0
}

// resident is the process's memory in MB now, and at its peak.
func resident() (now, peak float64) {
	return field("status", "VmRSS") / 1024, field("status", "VmHWM") / 1024
}

// written is the bytes that the process gave to write calls.
func written() float64 { return field("io", "wchar") }

// cpu is the processor time that the process took.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// diskMB is what a folder takes on the disk, in blocks and not in lengths.
func diskMB(dir string) (float64, error) {
	var blocks int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error { //nolint:gosec // in the folder that the user gave
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return fmt.Errorf("no block count for %s", d.Name())
		}
		blocks += st.Blocks
		return nil
	})
	return float64(blocks) * 512 / 1e6, err
}
