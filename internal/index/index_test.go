package index_test

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/duemq/duemq/internal/index"
)

// open opens an index in "idx" and closes it at the end of the test.
func open(t *testing.T, fs vfs.FS) *index.Index {
	t.Helper()
	x, err := index.Open(index.Options{FS: fs, Dir: "idx"})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return x
}

// install runs build on a cut and installs it.
func install(t *testing.T, x *index.Index, build func(c *index.Cut)) {
	t.Helper()
	c := x.NewCut()
	build(c)
	if err := c.Install(); err != nil {
		t.Fatalf("Install: %v", err)
	}
}

// list reads a space as "key=value" strings.
func list(t *testing.T, x *index.Index, s index.Space) []string {
	t.Helper()
	it, err := x.NewIter(s, nil, nil)
	if err != nil {
		t.Fatalf("NewIter(%#02x): %v", s, err)
	}
	var all []string
	for ok := it.First(); ok; ok = it.Next() {
		all = append(all, fmt.Sprintf("%s=%s", it.Key(), it.Value()))
	}
	if err := it.Close(); err != nil {
		t.Fatalf("iterator over %#02x: %v", s, err)
	}
	return all
}

func TestSmoke(t *testing.T) {
	x := open(t, vfs.NewMem())
	install(t, x, func(c *index.Cut) {
		c.Set('r', []byte("a"), []byte("1"))
		c.Set('q', []byte("a"), []byte("2"))
	})
	if got := fmt.Sprint(list(t, x, 'r'), list(t, x, 'q')); got != "[a=1] [a=2]" {
		t.Errorf("got %s", got)
	}
}
