package index_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/index"
)

// everything lists a view as "space key=value".
func everything(t *testing.T, v *index.View) (all []string) {
	t.Helper()
	err := v.Each(func(s index.Space, key, value []byte) error {
		all = append(all, fmt.Sprintf("%c %s=%s", s, key, value))
		return nil
	})
	if err != nil {
		t.Fatalf("Each: %v", err)
	}
	return all
}

// TestView reads all spaces as one cut left them, whatever cuts and excises do
// meanwhile, from the lowest space to the highest.
func TestView(t *testing.T) {
	x := open(t, fs.NewMem())
	install(t, x, func(c *index.Cut) {
		set(c, 'b', "=empty", "k=1", "l=2")
		set(c, 'a', "k=3")
		set(c, 0xfe, "z=4")
		c.Set(0x01, []byte("low"), nil)
		c.Add('n', []byte("sum"), 7)
	})
	install(t, x, func(c *index.Cut) { c.Add('n', []byte("sum"), -9) })
	v, err := x.View()
	if err != nil {
		t.Fatal(err)
	}
	install(t, x, func(c *index.Cut) {
		set(c, 'a', "k=changed", "new=5")
		c.Delete('b', []byte("k"))
	})
	if err := x.Excise('b', nil, nil); err != nil {
		t.Fatal(err)
	}
	want := []string{"\x01 low=", "a k=3", "b =empty", "b k=1", "b l=2", "n sum=\x03", "\u00fe z=4"}
	for range 2 { // it can be read again
		if got := everything(t, v); !slices.Equal(got, want) {
			t.Errorf("view: %q, want %q", got, want)
		}
		if got, ok, err := v.Get([]byte("a: "), 'a', []byte("k")); string(got) != "a: 3" || !ok || err != nil {
			t.Errorf("Get: %q %v %v", got, ok, err)
		}
		if got, ok, err := v.Get([]byte("as it was"), 'a', []byte("j")); string(got) != "as it was" || ok || err != nil {
			t.Errorf("Get without the key: %q %v %v", got, ok, err)
		}
	}
	stop := errors.New("stop")
	calls := 0
	if err := v.Each(func(index.Space, []byte, []byte) error { calls++; return stop }); !errors.Is(err, stop) || calls != 1 {
		t.Errorf("Each after %d calls: %v", calls, err)
	}
	if err := x.Close(); err == nil {
		t.Error("closed while a view is open")
	}
	if err := errors.Join(v.Close(), v.Close()); err != nil {
		t.Error(err)
	}
}

// TestViewAfterClose is refused.
func TestViewAfterClose(t *testing.T) {
	x, err := index.Open(index.Options{FS: fs.NewMem(), Dir: "idx"})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := x.View(); !errors.Is(err, index.ErrClosed) {
		t.Errorf("View: %v, want ErrClosed", err)
	}
}
