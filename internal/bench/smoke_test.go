//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestMain lets the scenarios that begin this program anew find it.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "measure" {
		main()
		return
	}
	os.Exit(m.Run())
}

// tiny is everything at a size at which it takes no time. There is no limit of
// memory: a test makes no control groups.
func tiny() sizes {
	return sizes{
		Rate: 2000, Waiting: 8000, Steer: 500, Steady: 300 * time.Millisecond, Watch: 50 * time.Millisecond,
		Cold: 1500, Segment: 1 << 20,
	}
}

// A tried is what came of a scenario.
type tried struct {
	out bytes.Buffer
	err error
}

// TestScenarios takes every figure once, tiny. Most of the time nothing is done
// but waiting for a moment to come, so that several are tried at once, however
// many processors there are.
func TestScenarios(t *testing.T) {
	s := settings{full: true, huge: !testing.Short(), sizes: tiny()}
	given, err := json.Marshal(s.sizes)
	if err != nil {
		t.Fatal(err)
	}
	plan := planned(s)
	results := make([]tried, len(plan))
	room := make(chan struct{}, 8)
	var wg sync.WaitGroup
	for i, sc := range plan {
		dir := t.TempDir()
		wg.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			results[i].err = measure([]string{sc.name, dir, string(given)}, &results[i].out)
		})
	}
	wg.Wait()
	taken := make(map[string]bool)
	for i, sc := range plan {
		if taken[sc.name] {
			t.Errorf("two scenarios are named %q", sc.name)
		}
		taken[sc.name] = true
		if results[i].err != nil {
			t.Errorf("%s: %v", sc.name, results[i].err)
			continue
		}
		got, err := figures(&results[i].out)
		if err != nil || len(got) == 0 {
			t.Errorf("%s: %d figures, error %v; want some", sc.name, len(got), err)
		}
		checkFigures(t, sc, got)
	}
}

// checkFigures wants names that are there once, values that are numbers, and a
// figure for each goal.
func checkFigures(t *testing.T, sc scenario, got []figure) {
	t.Helper()
	seen := make(map[string]bool)
	for _, f := range got {
		if seen[f.Name] {
			t.Errorf("%s: figure %q comes twice", sc.name, f.Name)
		}
		seen[f.Name] = true
		if f.Note != "" || math.IsNaN(f.Value) || math.IsInf(f.Value, 0) {
			t.Errorf("%s: figure %q is %v %q, want a number", sc.name, f.Name, f.Value, f.Note)
		}
	}
	for name := range sc.goals {
		if !seen[name] {
			t.Errorf("%s: a goal for %q, which is no figure", sc.name, name)
		}
	}
}

func TestTable(t *testing.T) {
	sc := scenario{name: "s", goals: map[string]string{"rate": ">= 2"}}
	var rows []row
	for _, v := range []float64{30_000, 10_000, 20_000} {
		rows = gather(rows, sc, []figure{{Name: "rate", Value: v, Unit: "msg/s"}})
	}
	rows = gather(rows, sc, []figure{{Name: "memory", Note: "no limit: not allowed"}})
	var out bytes.Buffer
	printTable(&out, settings{runs: 3, markdn: true}, rows)
	for _, want := range []string{
		"| s: rate | 20,000 msg/s (10,000 to 30,000) | >= 2 |",
		"| s: memory | no limit: not allowed |  |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("table\n%s\nlacks %q", out.String(), want)
		}
	}
}

// TestOnly runs a whole bench of one figure, in a process of its own.
func TestOnly(t *testing.T) {
	var out bytes.Buffer
	args := []string{"-dir", t.TempDir(), "-runs", "2", "-only", "256 single senders, level", "-rate", "2000"}
	if err := run(args, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "256 single senders, level: "); n != 3 {
		t.Errorf("table\n%s\nhas %d rows of the figure, want 3", out.String(), n)
	}
}

func TestMemoryParents(t *testing.T) {
	const v1 = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n" +
		"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n" +
		"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	const v2 = "35 31 0:32 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
	const inside = "35 31 0:32 /a/b /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n"
	cases := []struct {
		name, member, mounts, limit, parents string
	}{
		{"first version", "9:name=systemd:/\n4:memory:/a/b\n0::/\n", v1, "memory.limit_in_bytes", "/sys/fs/cgroup/memory/a/b"},
		{"second version", "0::/user.slice/s.scope\n", v2, "memory.max", "/sys/fs/cgroup/user.slice/s.scope /sys/fs/cgroup/user.slice"},
		{"second version, at the root", "0::/\n", v2, "memory.max", "/sys/fs/cgroup"},
		{"in a container", "0::/a/b/c\n", inside, "memory.max", "/sys/fs/cgroup/c /sys/fs/cgroup"},
		{"none", "", v2, "", ""},
		{"not mounted", "4:memory:/a\n", v2, "", ""},
	}
	for _, c := range cases {
		parents, limit, err := memoryParents(c.member, c.mounts)
		if got := strings.Join(parents, " "); got != c.parents || limit != c.limit || (err == nil) != (c.limit != "") {
			t.Errorf("%s: groups in %q by %q, error %v; want %q by %q", c.name, got, limit, err, c.parents, c.limit)
		}
	}
}
