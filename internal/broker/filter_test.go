package broker

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/record"
)

func tagged(tag string) Message { return Message{Topic: "orders", Tag: tag, Body: []byte(tag)} }

func TestParseTags(t *testing.T) {
	for s, want := range map[string]string{
		"": "", "*": "", "a || *": "", "a": "a", " a||b ": "a b", "a || a || b ||": "a b",
	} {
		f, err := parseTags(s)
		if err != nil || strings.Join(f.tags, " ") != want {
			t.Errorf("%q: %q, %v; want %q", s, f.tags, err, want)
		}
	}
	many := make([]string, MaxTags+1)
	for i := range many {
		many[i] = strconv.Itoa(i)
	}
	for _, s := range []string{" ", "||", strings.Join(many, "||")} {
		if _, err := parseTags(s); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v, want %v", s, err, ErrInvalid)
		}
	}
	if _, err := parseTags(strings.Join(many[:MaxTags], "||")); err != nil {
		t.Errorf("%d tags: %v", MaxTags, err)
	}
}

// TestTags: what matches is received, what does not is finished for this group
// and no other.
func TestTags(t *testing.T) {
	s := newStand(t)
	s.send(tagged("a"), tagged("b"), tagged(""), tagged("c"), tagged("a"))
	got := s.take(ReceiveRequest{Tags: "a || c", Max: 2})
	s.wantBodies(got, "a", "c")
	s.ack(got...)
	s.wantBodies(s.take(ReceiveRequest{Tags: "a || c"}), "a")
	if g := s.group("g").Topics[0]; g.Lag != 1 || g.Inflight != 1 {
		t.Errorf("%+v, want only the last unfinished", g)
	}
	s.kill()
	if d := s.one(ReceiveRequest{}); string(d.Body) != "a" || d.Attempt != 2 {
		t.Errorf("without a filter: %q, attempt %d; the others are finished", d.Body, d.Attempt)
	}
	s.wantBodies(s.take(ReceiveRequest{Group: "h"}), "a", "b", "", "c", "a")
}

// collide finds two tags with one hash.
func collide(t *testing.T) (a, b string) {
	t.Helper()
	seen := make(map[uint32]string)
	for i := range 1 << 20 {
		tag := strconv.Itoa(i * 7919)
		h := record.TagHash(tag)
		if other, ok := seen[h]; ok && other != tag {
			return other, tag
		}
		seen[h] = tag
	}
	t.Fatal("no two tags have one hash")
	return "", ""
}

// TestTagsOfOneHash: the record decides, for a receive and for a pull.
func TestTagsOfOneHash(t *testing.T) {
	s := newStand(t)
	a, b := collide(t)
	s.send(tagged(a), tagged(b), tagged(a))
	got, err := s.b.Pull(t.Context(), PullRequest{Topic: "orders", Max: 10, Tags: b})
	if err != nil || len(got.Messages) != 1 || got.Messages[0].Tag != b || got.Next != 3 {
		t.Errorf("Pull: %+v, %v; want one message and next 3", got, err)
	}
	s.wantBodies(s.take(ReceiveRequest{Tags: b}), b)
	if g := s.group("g").Topics[0]; g.Lag != 1 {
		t.Errorf("lag %d, want 1: what has only the hash is finished", g.Lag)
	}
}

// TestRareTag: one message among more than fit into the window and than one pass
// looks at is found by the first receive that may wait, and one that may not
// comes to it little by little.
func TestRareTag(t *testing.T) {
	const n = 80_000
	s := newStand(t)
	msgs := make([]Message, 10_000)
	for i := range msgs {
		msgs[i] = Message{Topic: "orders", Tag: "common"}
	}
	for range n / len(msgs) {
		s.send(msgs...)
	}
	s.send(tagged("rare"))
	s.wantBodies(s.take(ReceiveRequest{Tags: "rare", Max: 1, Wait: time.Second}), "rare")
	var got []Delivery
	rounds := 0
	for ; len(got) == 0 && rounds < 100; rounds++ {
		got = s.take(ReceiveRequest{Group: "h", Tags: "rare", Max: 1})
	}
	s.wantBodies(got, "rare")
	if rounds < 2 {
		t.Errorf("found in one look: a receive that does not wait does a bounded piece of work")
	}
	if g := s.group("h").Topics[0]; g.Lag != 1 {
		t.Errorf("lag %d, want 1", g.Lag)
	}
}

// TestTagsShareTheTopic: what one receiver's filter looked at and left is there
// for another at once, for the first time.
func TestTagsShareTheTopic(t *testing.T) {
	s := newStand(t)
	var want []string
	for i := range 40 {
		m := tagged("a")
		m.Body = []byte(strconv.Itoa(i))
		s.send(m)
		want = append(want, strconv.Itoa(i))
	}
	var all []string
	for range 20 {
		got := s.take(ReceiveRequest{Tags: "a", Max: 2})
		for _, d := range got {
			if d.Attempt != 1 {
				t.Errorf("%q at attempt %d, want 1", d.Body, d.Attempt)
			}
		}
		all = append(all, bodies(got)...)
	}
	if !slices.Equal(all, want) {
		t.Errorf("received %q, want %q", all, want)
	}
}
