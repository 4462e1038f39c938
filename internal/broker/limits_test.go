package broker

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what is golden")

// TestLimitsAreDocumented: docs/limits.md has every limit as a broker with
// default options says it, in its order, and no other.
func TestLimitsAreDocumented(t *testing.T) {
	const path, head = "../../docs/limits.md", "| limit | value | unit | what |\n|---|---:|---|---|\n"
	var want strings.Builder
	seen := make(map[string]bool)
	for _, l := range opened(t).Limits() {
		if seen[l.Name] || l.Value <= 0 || l.Unit == "" || !strings.HasSuffix(l.What, ".") {
			t.Errorf("limit %+v: want a name of its own, a value, a unit and a sentence", l)
		}
		seen[l.Name] = true
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", l.Name, grouped(l.Value), l.Unit, l.What)
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), head)
	if !found {
		t.Fatalf("%s has no table that begins with:\n%s", path, head)
	}
	table := rest
	if i := strings.Index(rest, "\n\n"); i >= 0 {
		table = rest[:i+1]
	}
	if *update {
		if err := os.WriteFile(path, []byte(before+head+want.String()+rest[len(table):]), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != want.String() {
		t.Errorf("%s says:\n%s\nthe code says:\n%s\n(go test ./internal/broker -run TestLimitsAreDocumented -update)", path, table, want.String())
	}
}

// grouped writes 1048576 as 1,048,576.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
