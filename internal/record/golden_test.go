package record_test

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/duemq/duemq/internal/record"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew; formats are frozen, so only for new ones")

const (
	goldenDir = "testdata/golden"
	frozen    = "formats are frozen: a change needs a new version and a new fixture"
)

// A golden is one value whose bytes are kept for ever, with its fields as a
// reader of docs/formats/record.md would name them.
type golden struct {
	file   string
	title  string
	bytes  []byte
	fields []field
	check  func(src []byte) error // src decodes to the value that made bytes
}

type field struct {
	width int
	text  string
}

func TestGolden(t *testing.T) {
	files := make(map[string]bool)
	for _, g := range goldens(t) {
		files[g.file] = true
		t.Run(strings.TrimSuffix(g.file, ".txt"), func(t *testing.T) {
			compareGolden(t, g)
		})
	}
	entries, err := os.ReadDir(goldenDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !files[e.Name()] && e.Name() != numbersFile {
			t.Errorf("%s: no case uses it; a fixture of an old version stays, with a test that reads it", e.Name())
		}
	}
}

func compareGolden(t *testing.T, g golden) {
	t.Helper()
	text, err := dump(g)
	if err != nil {
		t.Fatal(err)
	}
	kept := goldenFile(t, g.file, text)
	if kept != text {
		t.Errorf("%s: %s.\nkept:\n%s\nencoded now:\n%s", g.file, frozen, kept, text)
	}
	src, err := undump(kept)
	if err != nil {
		t.Fatalf("%s: %v", g.file, err)
	}
	if !bytes.Equal(src, g.bytes) {
		t.Errorf("%s: %s: the encoder writes other bytes", g.file, frozen)
	}
	if err := g.check(src); err != nil {
		t.Errorf("%s: the kept bytes read as something else: %v", g.file, err)
	}
}

// goldenFile gives what is kept; with -rewrite it keeps text first.
func goldenFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(goldenDir, name)
	if *rewrite {
		if err := os.MkdirAll(goldenDir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; a new fixture is written by go test -run Golden -rewrite", err)
	}
	return strings.ReplaceAll(string(kept), "\r\n", "\n")
}

const (
	lineBytes = 16
	hexColumn = 6
	hexWidth  = 3*lineBytes - 1
)

// dump writes offset, bytes and meaning of each field, sixteen bytes a line.
func dump(g golden) (string, error) {
	var s strings.Builder
	fmt.Fprintf(&s, "# %s\n", g.title)
	at := 0
	for _, f := range g.fields {
		if at+f.width > len(g.bytes) {
			return "", fmt.Errorf("%s: field %q ends beyond %d bytes", g.file, f.text, len(g.bytes))
		}
		text := "  " + f.text
		for rest := f.width; rest > 0; {
			n := min(rest, lineBytes)
			fmt.Fprintf(&s, "%04x  %-*s%s\n", at, hexWidth, fmt.Sprintf("% x", g.bytes[at:at+n]), text)
			at, rest, text = at+n, rest-n, "  ..."
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
		if len(line) < hexColumn+hexWidth {
			return nil, fmt.Errorf("line %q is too short", line)
		}
		b, err := hex.DecodeString(strings.ReplaceAll(line[hexColumn:hexColumn+hexWidth], " ", ""))
		if err != nil {
			return nil, fmt.Errorf("line %q: %w", line, err)
		}
		src = append(src, b...)
	}
	return src, nil
}

// The page names what the golden files hold.
func TestPageNamesEveryCommand(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats/record.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range codecs() {
		if heading := fmt.Sprintf("\n### %d %s\n", c.typ, c.name); !bytes.Contains(page, []byte(heading)) {
			t.Errorf("docs/formats/record.md has no heading %q", strings.TrimSpace(heading))
		}
	}
}

// head is the frame before every command's payload.
func head(c codec) []field {
	return []field{{1, fmt.Sprintf("type: %d, %s", c.typ, c.name)}, {4, "length of the payload, uvarint of four bytes"}}
}

func goldens(t *testing.T) []golden {
	gs := goldenBatches(t)
	payloads := goldenFields()
	for i, c := range codecs() {
		if int(c.typ) != i+1 {
			t.Errorf("command %d stands at place %d of the test's list", c.typ, i+1)
		}
		fields := payloads[c.typ]
		if fields == nil {
			t.Errorf("command %d, %s, has no golden file", c.typ, c.name)
			continue
		}
		for i, fs := range fields {
			gs = append(gs, goldenCommand(c, i, fs))
		}
	}
	return gs
}

// goldenCommand keeps sample i of a command.
func goldenCommand(c codec, i int, payload []field) golden {
	g := golden{
		file:   c.name + ".txt",
		title:  fmt.Sprintf("The command %s, format version 1.", c.name),
		bytes:  c.append(nil, c.samples[i]),
		fields: append(head(c), payload...),
	}
	if i > 0 {
		g.file = c.name + "-full.txt"
	}
	g.check = func(src []byte) error {
		cmd, err := record.NextCommand(src, 0)
		if err != nil {
			return err
		}
		v, err := c.decode(cmd.Payload)
		if err == nil && (cmd.Type != c.typ || !equal(v, c.samples[i])) {
			err = fmt.Errorf("command %d %+v, want command %d %+v", cmd.Type, v, c.typ, c.samples[i])
		}
		return err
	}
	return g
}

func goldenBatches(t *testing.T) []golden {
	message := messages()[0]
	commands := record.Batch{
		Type: record.EntryCommands, Flags: record.FlagRebase, Index: 7, Term: 2, Stamp: now, Limit: 2000,
		AppendedAt: now * 1_000_000, Extensions: []byte("ext"),
		Data: record.AppendCommit(record.AppendSend(nil, &message), &record.Commit{Group: 3, Queue: 9, Offset: 1}),
	}
	noop := record.Batch{Type: record.EntryNoop, Index: 1, Term: 1}
	header := func(b *record.Batch) []field {
		return []field{
			{4, `magic "DMQ1"`},
			{1, "version"},
			{1, fmt.Sprintf("type: %d", b.Type)},
			{2, "flags"},
			{4, "length of the batch, this header included"},
			{4, "CRC-32C of all but these four bytes"},
			{8, "index"},
			{8, "term"},
			{8, "stamp, Unix ms"},
			{8, "appended at, Unix ns"},
			{4, "limit: due references that may move"},
			{4, "bytes of extensions"},
			{8, "reserved, zero"},
		}
	}
	return []golden{
		goldenBatch(t, "batch.txt", "A batch with a send and a commit, format version 1.", commands, append(header(&commands),
			field{3, "extensions"}, field{22, "data: the command send"}, field{8, "data: the command commit"})),
		goldenBatch(t, "batch-noop.txt", "A batch without data, format version 1.", noop, header(&noop)),
	}
}

func goldenBatch(t *testing.T, file, title string, want record.Batch, fields []field) golden {
	t.Helper()
	src, err := record.AppendBatch(nil, &want)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return golden{file: file, title: title, bytes: src, fields: fields, check: func(src []byte) error {
		got, n, err := record.DecodeBatch(src)
		if err == nil && (n != len(src) || !equal(got, want)) {
			err = fmt.Errorf("%+v of %d bytes, want %+v of %d", got, n, want, len(src))
		}
		return err
	}}
}
