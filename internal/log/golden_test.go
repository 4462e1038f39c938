package log

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

	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/record"
)

// rewrite says that golden files are to be written anew, which is right for a
// new fixture only. The flag is that of the scripts.
func rewrite() bool { return flag.Lookup("rewrite").Value.String() == "true" }

const goldenDir = "testdata/golden"

// A golden is a file whose bytes are kept for ever, with its fields as a reader
// of docs/formats would name them.
type golden struct {
	file   string
	title  string
	bytes  []byte
	fields []field
	check  func(src []byte) error // src reads as what made bytes
}

type field struct {
	width int
	text  string
}

func TestGolden(t *testing.T) {
	for _, g := range []golden{goldenSegment(t), goldenMarks(), goldenStore()} {
		t.Run(g.file, func(t *testing.T) {
			text, err := dump(g)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(goldenDir, g.file)
			if rewrite() {
				if err := errors.Join(os.MkdirAll(goldenDir, 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%v; a new fixture is written by go test -run Golden -rewrite", err)
			}
			kept := strings.ReplaceAll(string(raw), "\r\n", "\n")
			if kept != text {
				t.Errorf("%s: formats are frozen.\nkept:\n%s\nwritten now:\n%s", g.file, kept, text)
			}
			src, err := undump(kept)
			if err != nil {
				t.Fatal(err)
			}
			if err := g.check(src); err != nil {
				t.Errorf("the kept bytes read as something else: %v", err)
			}
		})
	}
}

// dump writes offset, bytes and meaning of each field, sixteen bytes a line.
func dump(g golden) (string, error) {
	var s strings.Builder
	fmt.Fprintf(&s, "# %s\n", g.title)
	at := 0
	for _, f := range g.fields {
		if at+f.width > len(g.bytes) {
			return "", fmt.Errorf("%s: field %q ends beyond %d bytes", g.file, f.text, len(g.bytes))
		}
		text := f.text
		for rest := f.width; rest > 0; {
			n := min(rest, 16)
			fmt.Fprintf(&s, "%04x  %-47s  %s\n", at, fmt.Sprintf("% x", g.bytes[at:at+n]), text)
			at, rest, text = at+n, rest-n, "..."
		}
	}
	if at != len(g.bytes) {
		return "", fmt.Errorf("%s: fields name %d of %d bytes", g.file, at, len(g.bytes))
	}
	return s.String(), nil
}

// undump reads the bytes back out of what dump wrote.
func undump(text string) ([]byte, error) {
	var src []byte
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

// goldenSegment is the second segment of a log, with two batches of different
// epochs.
func goldenSegment(t *testing.T) golden {
	batches := []*record.Batch{testBatch(1, 65400, 0), testBatch(2, 200, 0), testBatch(3, 140, 0)}
	mem := fs.NewMem()
	l := mustOpen(t, testOptions(mem), Start{})
	mustAppend(t, l, batches[0], batches[1])
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = mustOpen(t, testOptions(mem), Start{})
	mustAppend(t, l, batches[2])
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	path := segmentPath(mem, MinSegmentBytes)
	raw, err := readSmall(mem, path, MinSegmentBytes)
	if err != nil {
		t.Fatal(err)
	}
	g := golden{
		file:  "segment.txt",
		title: "A segment with two batches, format version 1.",
		bytes: raw,
		fields: []field{
			{4, `magic "DqS1"`},
			{4, "version"},
			{16, "store id"},
			{8, "bytes of a segment"},
			{8, "position of this file's first byte"},
			{8, "epoch"},
			{8, "position after the last batch before"},
			{8, "index of that batch"},
			{4, "local checksum of that batch"},
			{56, "reserved, zero"},
			{4, "CRC-32C of all before"},
		},
		check: func(src []byte) error {
			disk := mem.CrashClone(crashNothing)
			edit(t, disk, path, func([]byte) []byte { return src })
			l, err := Open(testOptions(disk), Start{})
			if err != nil {
				return err
			}
			list, err := replay(l, Start{})
			if err != nil {
				return err
			}
			for i := range list {
				if err := same(&list[i].batch, batches[i]); err != nil {
					return err
				}
			}
			if len(list) != len(batches) {
				return fmt.Errorf("%d batches", len(list))
			}
			return nil
		},
	}
	for _, b := range batches[1:] {
		zeros := int(frameBytes(b.Size())) - LocalBytes - b.Size()
		g.fields = append(g.fields,
			field{4, `local part: magic "DqL1"`},
			field{4, "CRC-32C: store id, position, the next 40 bytes"},
			field{8, "epoch"},
			field{8, "position known to be on disk"},
			field{4, "local checksum of the batch before"},
			field{4, "reserved, zero"},
			field{b.Size(), fmt.Sprintf("batch %d, see record.md", b.Index)},
			field{zeros, "zeros up to a multiple of 16"},
		)
	}
	return g
}

func goldenMarks() golden {
	m := marks{{3, 128}, {7, 81920}}
	return golden{
		file:  "marks.txt",
		title: "Two marks, format version 1.",
		bytes: encodeMarks(testID, m),
		fields: []field{
			{4, `magic "DqM1"`},
			{4, "version"},
			{16, "store id"},
			{4, "number of marks"},
			{4, "CRC-32C of all but these four bytes"},
			{8, "epoch"},
			{8, "position where it began"},
			{8, "epoch"},
			{8, "position where it began"},
		},
		check: func(src []byte) error {
			id, got, err := decodeMarks(src)
			if err == nil && (id != testID || fmt.Sprint(got) != fmt.Sprint(m)) {
				err = fmt.Errorf("marks %v of store %x", got, id)
			}
			return err
		},
	}
}

func goldenStore() golden {
	info := StoreInfo{ID: testID, Format: 1, SegmentBytes: DefaultSegmentBytes}
	g := golden{
		file:  "store.txt",
		title: "The STORE file, format 1, which is text.",
		bytes: encodeStore(&info),
		check: func(src []byte) error {
			got, err := decodeStore(src)
			if err == nil && got != info {
				err = fmt.Errorf("store %+v", got)
			}
			return err
		},
	}
	for line := range bytes.Lines(g.bytes) {
		g.fields = append(g.fields, field{len(line), strings.TrimSuffix(string(line), "\n")})
	}
	return g
}
