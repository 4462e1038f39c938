package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// maxLine bounds a line of --jsonl: the largest body, in base64, and some.
const maxLine = 8 << 20

// lines reads messages, one in JSON a line.
type lines struct {
	in       *bufio.Scanner
	defaults wire.Send
	n        int
}

func newLines(in io.Reader, defaults wire.Send) *lines {
	s := bufio.NewScanner(in)
	s.Buffer(make([]byte, 0, 64<<10), maxLine)
	return &lines{in: s, defaults: defaults}
}

// next gives the next message, io.EOF at the end. Empty lines are passed over.
func (l *lines) next() (*wire.Send, error) {
	for l.in.Scan() {
		l.n++
		line := bytes.TrimSpace(l.in.Bytes())
		if len(line) == 0 {
			continue
		}
		return l.message(line)
	}
	if err := l.in.Err(); err != nil {
		return nil, usage(fmt.Sprintf("line %d", l.n+1), "%w", err)
	}
	return nil, io.EOF
}

func (l *lines) message(line []byte) (*wire.Send, error) {
	var m wire.Send
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err := d.Decode(&m)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows the message")
		}
	}
	if err != nil {
		f := usage(fmt.Sprintf("line %d is no message", l.n), "%w", err)
		f.next = `write it as {"text":"hello","deliverAfter":"10s","key":"k"}`
		return nil, f
	}
	l.fill(&m)
	return &m, nil
}

// fill takes from the flags what the line does not say.
func (l *lines) fill(m *wire.Send) {
	d := &l.defaults
	for _, f := range []struct {
		to   *string
		from string
	}{{&m.Topic, d.Topic}, {&m.Key, d.Key}, {&m.Tag, d.Tag}} {
		if *f.to == "" {
			*f.to = f.from
		}
	}
	if m.Queue == nil {
		m.Queue = d.Queue
	}
	if m.After == "" && m.At == "" && m.Level == "" {
		m.After, m.At, m.Zone, m.Level = d.After, d.At, d.Zone, d.Level
	}
	for name, value := range d.Headers {
		if m.Headers == nil {
			m.Headers = map[string]string{}
		}
		if _, ok := m.Headers[name]; !ok {
			m.Headers[name] = value
		}
	}
}
