package record_test

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/duemq/duemq/internal/record"
)

// drawPosted draws terms as they are written: what means something only with a
// key or with a half message is drawn only with one.
func drawPosted(t *rapid.T) posted {
	p := posted{Message: rapid.Make[record.Message]().Draw(t, "message")}
	all := rapid.Make[record.Terms]().Draw(t, "terms")
	p.Terms.Name = all.Name
	if all.Once != (record.Hash{}) {
		p.Terms.Once, p.Terms.Print, p.Terms.Until = all.Once, all.Print, all.Until
	}
	if all.Half {
		p.Terms.Half, p.Terms.Producer, p.Terms.Check = true, all.Producer, all.Check
		p.Terms.Kind, p.Terms.Delay = all.Kind, all.Delay
	}
	return p
}

func drawLease(t *rapid.T) record.Lease {
	a := drawAck(t)
	l := record.Lease{Group: a.Group, Queue: a.Queue}
	for _, r := range a.Ranges {
		l.Runs = append(l.Runs, record.LeaseRun{From: r.From, To: r.To, Attempt: rapid.Uint32().Draw(t, "attempt")})
	}
	return l
}

// What means nothing without a key or a half message is not written.
func TestTermsWithoutTheirHeadAreLeftOut(t *testing.T) {
	m := plainMessage()
	got, err := decodePost(payloadOf(t, record.AppendPost(nil, &record.Terms{
		Print: 1, Until: 2, Producer: "p", Check: 3, Kind: 4, Delay: 5,
	}, &m)))
	if err != nil || got.Terms != (record.Terms{}) {
		t.Errorf("came back with terms %+v, %v; want none", got.Terms, err)
	}
}

// A glance at a post sees what a full reading sees, and refuses what is cut
// within the parts that it looks at.
func TestPeekPost(t *testing.T) {
	for _, p := range posts() {
		c, err := record.NextCommand(appendPost(nil, &p), 0)
		if err != nil {
			t.Fatalf("NextCommand: %v", err)
		}
		terms := fullTerms() // used before, for another command
		got, err := record.PeekPost(&c, 7, &terms)
		if want := peekOfPost(&p, c.Size); err != nil || !equal(got, want) || terms != p.Terms {
			t.Errorf("PeekPost of %+v = %+v, %+v, %v; want %+v", p, got, terms, err, want)
		}
	}
	p := posted{fullTerms(), fullMessage()}
	payload := payloadOf(t, appendPost(nil, &p))
	seen := bytes.Index(payload, []byte("\x04paid")) + len("\x04paid")
	var terms record.Terms
	for n := range seen {
		c := record.Command{Type: record.CommandPost, Payload: payload[:n]}
		if got, err := record.PeekPost(&c, 7, &terms); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("PeekPost of %d bytes = %+v, %v; want ErrCorrupt", n, got, err)
		}
	}
	c := record.Command{Type: record.CommandPost, Payload: payload[:seen]}
	if _, err := record.PeekPost(&c, 7, &terms); err != nil {
		t.Errorf("PeekPost of all that it looks at: %v", err)
	}
}

// peekOfPost is what a glance at a post must see, written down plainly.
func peekOfPost(p *posted, size int) record.Peek {
	want := peekOf(&p.Message, size)
	if p.Terms.Half {
		want.Ref.Due, want.Ref.Kind, want.Ref.Level = p.Terms.Check, record.KindCheck, 0
	}
	return want
}

// The key that a glance gives shares the payload; growing it must not write
// into what stands behind it.
func TestPeekedKeyIsClipped(t *testing.T) {
	m := fullMessage()
	c, err := record.NextCommand(record.AppendPost(nil, &record.Terms{Name: nameHash}, &m), 0)
	if err != nil {
		t.Fatal(err)
	}
	kept := bytes.Clone(c.Payload)
	p, err := record.PeekPost(&c, 7, new(record.Terms))
	if err != nil || string(p.Key) != m.Key {
		t.Fatalf("PeekPost = key %q, %v; want %q", p.Key, err, m.Key)
	}
	_ = append(p.Key, "XXXX"...)
	if !bytes.Equal(c.Payload, kept) {
		t.Error("growing the key changed the payload")
	}
}

// A message reads the same whatever command holds it, and no other command
// holds one.
func TestMessageOf(t *testing.T) {
	want := fullMessage()
	ts := fullTerms()
	for _, src := range [][]byte{record.AppendSend(nil, &want), record.AppendPost(nil, &ts, &want)} {
		c, err := record.NextCommand(src, 0)
		if err != nil {
			t.Fatal(err)
		}
		var got, at record.Message
		if err := record.MessageOf(&c, &got); err != nil || !c.HoldsMessage() || !equal(want, got) {
			t.Errorf("command %d holds a message: %v; MessageOf = %+v, %v; want %+v", c.Type, c.HoldsMessage(), got, err, want)
		}
		if err := record.DecodeMessageAt(append(src, 1, 2, 3), &at); err != nil || !equal(want, at) {
			t.Errorf("command %d: DecodeMessageAt = %+v, %v; want %+v", c.Type, at, err, want)
		}
	}
	for _, codec := range codecs() {
		if codec.typ == record.CommandSend || codec.typ == record.CommandPost {
			continue
		}
		_, payload := framed(t, codec, codec.samples[0])
		c := record.Command{Type: codec.typ, Payload: payload}
		if err := record.MessageOf(&c, new(record.Message)); c.HoldsMessage() || !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("command %s holds a message: %v; MessageOf = %v, want ErrCorrupt", codec.name, c.HoldsMessage(), err)
		}
	}
}

// The bytes of one command that holds a message are not those of the other.
func TestSendAndPostAreNotTakenForEachOther(t *testing.T) {
	m, ts := fullMessage(), fullTerms()
	send := record.AppendSend(nil, &m)
	post := record.AppendPost(nil, &ts, &m)
	send[0], post[0] = post[0], send[0]
	for _, src := range [][]byte{send, post} {
		var got record.Message
		if err := record.DecodeMessageAt(src, &got); err == nil && equal(m, got) {
			t.Errorf("a message under type %d was read from the bytes of another command", src[0])
		}
	}
}

func TestDamagedPostIsRefused(t *testing.T) {
	p := posted{fullTerms(), fullMessage()}
	payload := payloadOf(t, appendPost(nil, &p))
	eachBit(payload, func(damaged []byte, bit int) {
		if _, err := decodePost(damaged); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("bit %d of %d flipped: %v, want ErrCorrupt", bit, 8*len(payload), err)
		}
	})
}

// With the checksum repaired, a post cut anywhere before the body is refused
// for what is missing.
func TestTruncatedPostWithGoodChecksum(t *testing.T) {
	p := posted{fullTerms(), fullMessage()}
	payload := payloadOf(t, appendPost(nil, &p))
	head := len(payload) - len(p.Message.Body)
	for n := 4; n <= len(payload); n++ {
		got, err := decodePost(sealed(payload[4:n]))
		if n < head && !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("%d of %d bytes gave %+v, %v; want ErrCorrupt", n, len(payload), got, err)
		}
		if n >= head && (err != nil || len(got.Message.Body) != n-head) {
			t.Errorf("%d of %d bytes gave a body of %d, %v", n, len(payload), len(got.Message.Body), err)
		}
	}
}

// A lease that breaks its own rule is refused however its encoder wrote it.
func TestBrokenLeaseIsNotReadAsAnother(t *testing.T) {
	for _, runs := range [][]record.LeaseRun{
		{{From: 5, To: 5, Attempt: 1}},
		{{From: 5, To: 4, Attempt: 1}},
		{{From: 5, To: 9, Attempt: 1}, {From: 8, To: 10, Attempt: 1}},
		{{From: 5, To: 9, Attempt: 1}, {From: 1, To: 2, Attempt: 1}},
	} {
		payload := payloadOf(t, record.AppendLease(nil, &record.Lease{Runs: runs}))
		var got record.Lease
		if err := record.DecodeLease(payload, &got); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("runs %v came back as %v, %v; want ErrCorrupt", runs, got.Runs, err)
		}
	}
}

func TestLaterDecodersRefuse(t *testing.T) {
	lease := decodeError(into(record.DecodeLease))
	post := decodeError(decodePost)
	plain := []byte{0, 1, 1} // a message
	noHash := make([]byte, 16+8+1)
	tests := []struct {
		name    string
		payload []byte
		decode  func([]byte) error
	}{
		{"empty run", []byte{1, 1, 1, 0, 0, 1}, lease},
		{"run that wraps around", append(append([]byte{1, 1, 1, 1}, uvarint(u64)...), 1), lease},
		{"attempt above 32 bits", append([]byte{1, 1, 1, 0, 1}, uvarint(1<<32)...), lease},
		{"commit neither 0 nor 1", []byte{1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 2, 0, 0}, decodeError(record.DecodeEndHalf)},
		{"terms with an unknown part", sealed(append([]byte{1 << 3}, plain...)), post},
		{"once only under no hash", sealed(append(append([]byte{1}, noHash...), plain...)), post},
		{"name without a hash", sealed(append(append([]byte{2}, noHash[:16]...), plain...)), post},
	}
	for _, tt := range tests {
		if err := tt.decode(tt.payload); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("%s: % x gave %v, want ErrCorrupt", tt.name, tt.payload, err)
		}
	}
}

// Known tells exactly the numbers that docs/formats/record.md lists.
func TestKnown(t *testing.T) {
	for v := range 256 {
		b := uint8(v)
		for _, n := range []struct {
			name string
			got  bool
			last int
		}{
			{"kind", record.Kind(b).Known(), 3},
			{"reason", record.Reason(b).Known(), 2},
			{"start policy", record.StartPolicy(b).Known(), 3},
			{"operation state", record.OperationState(b).Known(), 3},
		} {
			if want := v >= 1 && v <= n.last; n.got != want {
				t.Errorf("%s %d is known: %v, want %v", n.name, v, n.got, want)
			}
		}
	}
}

func TestDecodeMessageAt(t *testing.T) {
	want := fullMessage()
	src := record.AppendTrim(record.AppendSend(nil, &want), &record.Trim{Before: 1})
	var got record.Message
	if err := record.DecodeMessageAt(src, &got); err != nil || !equal(want, got) {
		t.Errorf("DecodeMessageAt = %+v, %v; want %+v", got, err, want)
	}
	trim := record.AppendTrim(nil, &record.Trim{Before: 1})
	ack := bytes.Clone(src) // a good message in a command of another type
	ack[0] = byte(record.CommandAck)
	for _, src := range [][]byte{nil, trim, ack, src[1:], src[:20]} {
		if err := record.DecodeMessageAt(src, &got); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("DecodeMessageAt(% x...) = %v, want ErrCorrupt", src[:min(8, len(src))], err)
		}
	}
}
