package record_test

import (
	"testing"

	"github.com/duemq/duemq/internal/record"
)

func FuzzDecodeLease(f *testing.F)     { fuzzPayload(f, record.CommandLease) }
func FuzzDecodeEndHalf(f *testing.F)   { fuzzPayload(f, record.CommandEndHalf) }
func FuzzDecodeReset(f *testing.F)     { fuzzPayload(f, record.CommandReset) }
func FuzzDecodeOperation(f *testing.F) { fuzzPayload(f, record.CommandOperation) }
func FuzzDecodeOperate(f *testing.F)   { fuzzPayload(f, record.CommandOperate) }

// FuzzDecodePost takes bytes as they are and once more with a good checksum,
// or nothing would ever reach the terms behind it.
func FuzzDecodePost(f *testing.F) {
	c := codecs()[record.CommandPost-1]
	for _, v := range c.samples[:20] {
		_, payload := framed(f, c, v)
		f.Add(payload)
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		acceptOrRefuse(t, c, payload)
		if len(payload) >= 4 {
			acceptOrRefuse(t, c, sealed(payload[4:]))
		}
	})
}

// FuzzPeekPost proves that a glance sees what a full reading sees.
func FuzzPeekPost(f *testing.F) {
	for _, p := range posts()[:20] {
		f.Add(payloadOf(f, appendPost(nil, &p))[4:])
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		c := record.Command{Type: record.CommandPost, Size: len(src) + 9, Payload: sealed(src)}
		var terms record.Terms
		got, peeked := record.PeekPost(&c, 7, &terms)
		p, err := decodePost(c.Payload)
		if err != nil {
			return // a glance stops before the properties
		}
		if want := peekOfPost(&p, c.Size); peeked != nil || !equal(got, want) || terms != p.Terms {
			t.Errorf("% x: PeekPost = %+v, %+v, %v; want %+v, %+v", src, got, terms, peeked, want, p.Terms)
		}
	})
}
