package backup

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the golden file anew, which is right for a new format only")

// A field is some bytes of the golden stream, as a reader of docs/formats/backup.md
// would name them.
type field struct {
	width int
	text  string
}

var goldenFields = []field{
	{4, `head: magic "DqB1"`},
	{4, "bytes of the payload"},
	{4, "CRC-32C of the frame but this"},
	{4, "format version"},
	{8, "bytes of a segment"},
	{16, "store id"},
	{8, "created, Unix ms"},
	{8, "the log begins behind batch"},
	{8, "and at position"},
	{8, "the index holds the log up to batch"},
	{8, "which ends at position"},
	{8, "the log ends with batch"},
	{8, "which ends at position"},
	{8, "about the bytes of the stream"},
	{4, `index: magic "DqBi"`},
	{4, "bytes of the payload"},
	{4, "CRC-32C of all frames so far but their checksums"},
	{1, "space"},
	{2, "bytes of the key, of the value"},
	{9, "key and value"},
	{1, "space"},
	{2, "bytes of the key, of the value"},
	{1, "key and value"},
	{1, "space"},
	{2, "bytes of the key, of the value"},
	{8, "key and value"},
	{4, `log: magic "DqBl"`},
	{4, "bytes of the payload"},
	{4, "CRC-32C of all frames so far but their checksums"},
	{8, "position"},
	{84, "batch 8, see record.md"},
	{8, "position"},
	{69, "batch 9"},
	{4, `tail: magic "DqBe"`},
	{4, "bytes of the payload"},
	{4, "CRC-32C of all frames so far but their checksums"},
	{8, "keys in the index"},
	{8, "batches in the log"},
	{8, "bytes before this frame"},
}

// TestGolden keeps the bytes of a stream for ever, and reads the kept ones.
func TestGolden(t *testing.T) {
	c := small()
	text, err := dump(c.stream(t))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "golden", "backup.txt")
	if *rewrite {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; a new fixture is written by go test -run Golden -rewrite", err)
	}
	kept := strings.ReplaceAll(string(raw), "\r\n", "\n")
	if kept != text {
		t.Errorf("formats are frozen.\nkept:\n%s\nwritten now:\n%s", kept, text)
	}
	src, err := undump(kept)
	if err != nil {
		t.Fatal(err)
	}
	got, err := read(bytes.NewReader(src))
	if err != nil {
		t.Fatalf("the kept bytes: %v", err)
	}
	same(t, got, c)
}

// dump writes offset, bytes and meaning of each field, sixteen bytes a line.
func dump(src []byte) (string, error) {
	var s strings.Builder
	s.WriteString("# A backup of three keys and two batches, format version 1.\n")
	at := 0
	for _, f := range goldenFields {
		if at+f.width > len(src) {
			return "", fmt.Errorf("field %q ends beyond %d bytes", f.text, len(src))
		}
		text := f.text
		for rest := f.width; rest > 0; {
			n := min(rest, 16)
			fmt.Fprintf(&s, "%04x  %-47s  %s\n", at, fmt.Sprintf("% x", src[at:at+n]), text)
			at, rest, text = at+n, rest-n, "..."
		}
	}
	if at != len(src) {
		return "", fmt.Errorf("fields name %d of %d bytes", at, len(src))
	}
	return s.String(), nil
}

// undump reads the bytes back out of what dump wrote.
func undump(text string) (src []byte, err error) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		if len(line) < 53 {
			return nil, fmt.Errorf("line %q is too short", line)
		}
		b, err := hex.DecodeString(strings.ReplaceAll(line[6:53], " ", ""))
		if err != nil {
			return nil, fmt.Errorf("line %q: %w", line, err)
		}
		src = append(src, b...)
	}
	return src, nil
}
