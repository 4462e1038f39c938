//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A memoryGroup is a control group whose processes have so much memory, what
// the machine holds of their files included.
type memoryGroup struct{ dir string }

// limitMemory makes a group below the one that this process is in, or beside it
// if that hands no memory down: nothing that is set above is escaped.
func limitMemory(bytes int64) (*memoryGroup, error) {
	member, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	parents, limit, err := memoryParents(string(member), string(mounts))
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, parent := range parents {
		g, err := newMemoryGroup(parent, limit, bytes)
		if err == nil {
			return g, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// memoryParents says in which folders a group may be made, and which file of it
// has the limit: those of the first version's memory controller if there is one,
// else those of the second version.
func memoryParents(member, mounts string) (parents []string, limit string, err error) {
	var own, limitV1 string
	for line := range strings.Lines(member) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		switch {
		case has(f[1], "memory"):
			own, limitV1 = f[2], "memory.limit_in_bytes"
		case f[1] == "" && limitV1 == "":
			own = f[2]
		}
	}
	if own == "" {
		return nil, "", errors.New("this process is in no control group")
	}
	for line := range strings.Lines(mounts) {
		before, after, _ := strings.Cut(line, " - ")
		place, kind := strings.Fields(before), strings.Fields(after)
		if len(place) < 5 || len(kind) < 3 {
			continue
		}
		rest, below := strings.CutPrefix(own, strings.TrimSuffix(place[3], "/"))
		at := filepath.Join(place[4], rest)
		switch {
		case !below:
		case limitV1 != "" && kind[0] == "cgroup" && has(kind[2], "memory"):
			return []string{at}, limitV1, nil
		case limitV1 == "" && kind[0] == "cgroup2":
			parents = []string{at}
			if at != place[4] {
				parents = append(parents, filepath.Dir(at))
			}
			return parents, "memory.max", nil
		}
	}
	return nil, "", errors.New("no control groups of memory are mounted")
}

// has says whether a list with commas holds a word.
func has(list, word string) bool { return strings.Contains(","+list+",", ","+word+",") }

func newMemoryGroup(parent, limit string, bytes int64) (*memoryGroup, error) {
	g := &memoryGroup{filepath.Join(parent, "duemq-bench-"+strconv.Itoa(os.Getpid()))}
	if err := os.Mkdir(g.dir, 0o755); err != nil { //nolint:gosec // as the machine makes them
		return nil, err
	}
	if err := g.set(limit, strconv.FormatInt(bytes, 10)); err != nil {
		return nil, errors.Join(err, g.remove())
	}
	_ = g.set("memory.swap.max", "0") // what has no such file does not swap either, or not only ours
	return g, nil
}

// set writes a file that the group has.
func (g *memoryGroup) set(name, value string) error {
	f, err := os.OpenFile(filepath.Join(g.dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// join moves this process into the group.
func (g *memoryGroup) join() error {
	if err := g.set("cgroup.procs", strconv.Itoa(os.Getpid())); err != nil {
		return fmt.Errorf("join %s: %w", g.dir, err)
	}
	return nil
}

// remove removes the group. Its processes have ended; the machine may need a
// moment to see that.
func (g *memoryGroup) remove() error {
	var err error
	for range 50 {
		if err = os.Remove(g.dir); err == nil || errors.Is(err, os.ErrNotExist) {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}
