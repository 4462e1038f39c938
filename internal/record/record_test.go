package record_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/duemq/duemq/internal/record"
)

func TestIDText(t *testing.T) {
	for id, text := range map[record.ID]string{
		1:                  "0000000000000001",
		0x1234_5678:        "0000000012345678",
		math.MaxUint64:     "ffffffffffffffff",
		0xabcd_ef00_0000_1: "000abcdef0000001",
	} {
		if got := id.String(); got != text {
			t.Errorf("ID(%d).String() = %q, want %q", uint64(id), got, text)
		}
		for _, s := range []string{text, strings.ToUpper(text)} {
			if got, err := record.ParseID(s); err != nil || got != id {
				t.Errorf("ParseID(%q) = %v, %v; want %v", s, got, err, id)
			}
		}
	}
	for _, s := range []string{
		"", "1", "0000000000000000", "000000000000001", "00000000000000001", "000000000000000g", "0x00000000000001",
		"+000000000000001", "-000000000000001", " 000000000000001", "000000000000001 ", "0000_0000_0000_1", "０００００",
	} {
		if id, err := record.ParseID(s); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", s)) {
			t.Errorf("ParseID(%q) = %v, %v; want an error that names it", s, id, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		id := record.ID(rapid.Uint64Min(1).Draw(t, "id"))
		if got, err := record.ParseID(id.String()); err != nil || got != id {
			t.Fatalf("ParseID(%q) = %v, %v", id, got, err)
		}
	})
}

// Text order of ids is their order, so that lists sort as the log does.
func TestIDTextSortsAsID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Make[record.ID]().Draw(t, "a"), rapid.Make[record.ID]().Draw(t, "b")
		if got, want := cmp.Compare(a.String(), b.String()), cmp.Compare(a, b); got != want {
			t.Fatalf("%v against %v: text says %d, number %d", a, b, got, want)
		}
	})
}

// The values are in references on disk and in reschedule commands: frozen.
func TestTagHash(t *testing.T) {
	for tag, want := range map[string]uint32{
		"":                 0,
		"a":                0xe40c292c, // FNV-1a's own test vectors
		"foobar":           0xbf9cf968,
		"\xcc\x24\x31\xc4": 1, // hashes to 0, which means no tag
	} {
		if got := record.TagHash(tag); got != want {
			t.Errorf("TagHash(%q) = %#x, want %#x", tag, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		tag := rapid.StringN(1, -1, -1).Draw(t, "tag")
		if record.TagHash(tag) == 0 {
			t.Fatalf("TagHash(%q) = 0, which means no tag", tag)
		}
	})
}

func drawKey(t *rapid.T) record.Key {
	small := rapid.Int64Range(-1, 2) // so that equal fields are common
	due := rapid.OneOf(small, rapid.Int64()).Draw(t, "due")
	return record.Key{
		Due:   due,
		ID:    record.ID(rapid.OneOf(rapid.Uint64Range(0, 2), rapid.Uint64()).Draw(t, "id")),
		Kind:  record.Kind(rapid.Uint8Range(1, 3).Draw(t, "kind")),
		Queue: record.QueueNumber(rapid.Uint32Range(0, 2).Draw(t, "queue")),
	}
}

func byFields(a, b record.Key) int {
	return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Queue, b.Queue))
}

func TestKeyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.Custom(drawKey), 2, 30).Draw(t, "keys")
		if got, want := keys[0].Compare(keys[1]), byFields(keys[0], keys[1]); got != want {
			t.Fatalf("%+v.Compare(%+v) = %d, want %d", keys[0], keys[1], got, want)
		}
		sorted := slices.Clone(keys)
		slices.SortFunc(sorted, record.Key.Compare)
		slices.SortFunc(keys, byFields)
		if !slices.Equal(sorted, keys) {
			t.Fatalf("sorted by Compare: %v, by fields: %v", sorted, keys)
		}
	})
}

func TestRef(t *testing.T) {
	r := record.Ref{Due: 1, ID: 2, Size: 3, Queue: 4, Tag: 5, Kind: 6, Level: 7}
	if got, want := r.Key(), (record.Key{Due: 1, ID: 2, Kind: 6, Queue: 4}); got != want {
		t.Errorf("Key() = %+v, want %+v", got, want)
	}
	if size := unsafe.Sizeof(r); size != 32 {
		t.Errorf("a Ref takes %d bytes of memory, promised are 32", size)
	}
}

func TestCheckLimits(t *testing.T) {
	properties := func(n, size int) []record.Property {
		ps := make([]record.Property, n)
		ps[0].Name = strings.Repeat("n", size/2)
		ps[n-1].Value = strings.Repeat("v", size-size/2)
		return ps
	}
	extensions := func(n, size int) []record.Extension {
		es := make([]record.Extension, n)
		es[n-1].Value = make([]byte, size)
		return es
	}
	for d := -1; d <= 1; d++ {
		tests := []struct {
			name  string
			m     record.Message
			limit int
		}{
			{"body", record.Message{Body: make([]byte, record.MaxBody+d)}, record.MaxBody},
			{"properties", record.Message{Properties: properties(record.MaxProperties+d, 0)}, record.MaxProperties},
			{"key", record.Message{Key: strings.Repeat("k", record.MaxHeader+d)}, record.MaxHeader},
			{"tag", record.Message{Tag: strings.Repeat("t", record.MaxHeader+d)}, record.MaxHeader},
			{"one property", record.Message{Properties: properties(1, record.MaxHeader+d)}, record.MaxHeader},
			{"key, tag and properties", record.Message{
				Key: "key", Tag: "tag", Properties: properties(3, record.MaxHeader-6+d),
			}, record.MaxHeader},
			{"extensions", record.Message{Extensions: extensions(record.MaxExtensions+d, 0)}, record.MaxExtensions},
			{"extension", record.Message{Extensions: extensions(2, record.MaxExtensionBytes+d)}, record.MaxExtensionBytes},
		}
		for _, tt := range tests {
			err := tt.m.Check()
			if d <= 0 && err != nil {
				t.Errorf("%s, limit%+d: %v", tt.name, d, err)
			}
			if d > 0 && (!errors.Is(err, record.ErrTooLarge) || !strings.Contains(err.Error(), fmt.Sprintf("limit %d", tt.limit))) {
				t.Errorf("%s, limit%+d: %v, want ErrTooLarge with the limit in the text", tt.name, d, err)
			}
		}
	}
}

// largestMessage is at every limit at once.
func largestMessage() record.Message {
	m := record.Message{
		Queue: u32, Stored: math.MinInt64, Born: 0, Due: math.MaxInt64, Level: 255, Flags: u32, SysFlags: u32,
		Properties: make([]record.Property, record.MaxProperties),
		Extensions: make([]record.Extension, record.MaxExtensions),
		Body:       make([]byte, record.MaxBody),
	}
	for i := range m.Properties {
		m.Properties[i].Value = strings.Repeat("v", record.MaxHeader/record.MaxProperties)
	}
	for i := range m.Extensions {
		m.Extensions[i] = record.Extension{Number: math.MaxUint16, Value: make([]byte, record.MaxExtensionBytes/record.MaxExtensions)}
	}
	return m
}

// What Check lets pass fits into a batch, with room for others beside it.
func TestLargestMessageFitsIntoABatch(t *testing.T) {
	m := largestMessage()
	if err := m.Check(); err != nil {
		t.Fatalf("Check: %v", err)
	}
	b := record.Batch{Type: record.EntryCommands, Data: record.AppendSend(nil, &m)}
	src, err := record.AppendBatch(nil, &b)
	if err != nil {
		t.Fatalf("AppendBatch: %v", err)
	}
	got, _, err := record.DecodeBatch(src)
	if err != nil {
		t.Fatalf("DecodeBatch: %v", err)
	}
	var back record.Message
	if err := record.DecodeMessageAt(got.Data, &back); err != nil || !equal(m, back) {
		t.Errorf("the largest message came back differently: %v", err)
	}
}

func TestBatchLimit(t *testing.T) {
	room := record.MaxBatch - record.BatchHeader
	for d := -1; d <= 1; d++ {
		b := record.Batch{Type: record.EntryCommands, Extensions: make([]byte, 100), Data: make([]byte, room-100+d)}
		dst, err := record.AppendBatch([]byte("before"), &b)
		if d <= 0 {
			if err != nil || len(dst) != len("before")+b.Size() {
				t.Errorf("MaxBatch%+d: %d bytes, %v", d, len(dst), err)
				continue
			}
			if _, n, err := record.DecodeBatch(dst[len("before"):]); err != nil || n != b.Size() {
				t.Errorf("MaxBatch%+d: DecodeBatch took %d, %v", d, n, err)
			}
		}
		if d > 0 && (!errors.Is(err, record.ErrTooLarge) || string(dst) != "before" || !strings.Contains(err.Error(), "limit 8388608")) {
			t.Errorf("MaxBatch%+d: %d bytes appended, %v; want none and ErrTooLarge", d, len(dst)-len("before"), err)
		}
	}
}

// Checksum continues: the log's own header relies on it.
func TestChecksum(t *testing.T) {
	const want uint32 = 0xe3069283 // CRC-32C of "123456789" as in RFC 3720
	if got := record.Checksum(0, []byte("123456789")); got != want {
		t.Errorf("Checksum = %#x, want %#x", got, want)
	}
	if got := record.Checksum(record.Checksum(0, []byte("1234")), []byte("56789")); got != want {
		t.Errorf("Checksum in two steps = %#x, want %#x", got, want)
	}
}
