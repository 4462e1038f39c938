package httpapi

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// A curl is a command line of the page, as curl would read it.
type curl struct {
	method, url, body string
	headers           []string
}

// words splits a command line as a shell does, up to where its output goes.
func words(t *testing.T, line string) (out []string) {
	t.Helper()
	line, _, _ = strings.Cut(line, " > ")
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		end := " "
		if line[0] == '\'' {
			line, end = line[1:], "'"
		}
		word, rest, ok := strings.Cut(line, end)
		if !ok && end == "'" || end == " " && strings.ContainsAny(word, `'"\&?*[]{}$`+"`") {
			t.Fatalf("a shell would not read that: %s", line)
		}
		out, line = append(out, word), rest
	}
	return out
}

func readCurl(t *testing.T, line string) curl {
	t.Helper()
	c := curl{method: "GET"}
	args := words(t, line)
	for i := 1; i < len(args); i++ {
		switch args[i] {
		case "-f":
		case "-X":
			i++
			c.method = args[i]
		case "-d":
			i++
			c.body = args[i]
			if c.method == "GET" {
				c.method = "POST"
			}
		case "-H":
			i++
			name, value, _ := strings.Cut(args[i], ": ")
			c.headers = append(c.headers, name, value)
		default:
			c.url = args[i]
		}
	}
	if c.body != "" && !strings.Contains(strings.Join(c.headers, " "), "Content-Type") {
		c.headers = append(c.headers, "Content-Type", "application/x-www-form-urlencoded")
	}
	return c
}

// TestCurlsOfThePage: every command line of the page works as it is written, in
// the order of its chapter.
func TestCurlsOfThePage(t *testing.T) {
	commands := regexp.MustCompile("(?m)^curl .*$|`curl [^`]*`")
	seen := 0
	for i, chapter := range strings.Split(readPage(t), "\n## ") {
		name, _, _ := strings.Cut(chapter, "\n")
		lines := commands.FindAllString(chapter, -1)
		if len(lines) == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			d := newDoor(t)
			if i > 0 {
				d.publish("orders", "after=90m&key=order-42", "x")
			}
			var last struct {
				wire.Receipt

				Messages []wire.Message `json:"messages"`
			}
			for _, line := range lines {
				seen++
				c := readCurl(t, strings.Trim(line, "`"))
				to, ok := strings.CutPrefix(c.url, "http://127.0.0.1:9870")
				if !ok {
					t.Fatalf("%s: what host is that?", line)
				}
				if len(last.Messages) > 0 {
					to = strings.Replace(to, "LEASE", last.Messages[0].Lease, 1)
				}
				to = strings.Replace(to, "/ID/", "/"+last.ID+"/", 1)
				r := d.patient(&c, to)
				if r.status < 200 || r.status > 299 {
					t.Errorf("%s: %d %s", line, r.status, r.body)
				}
				_ = json.Unmarshal([]byte(r.body), &last)
			}
		})
	}
	if seen < 15 {
		t.Errorf("%d command lines", seen)
	}
}

// patient makes a call and has time pass as long as it waits.
func (d *door) patient(c *curl, to string) *reply {
	d.t.Helper()
	got := make(chan *reply, 1)
	go func() { got <- d.do(c.method, to, c.body, c.headers...) }()
	for {
		select {
		case r := <-got:
			return r
		case <-time.After(time.Millisecond):
			if d.h.polls.taken.Load() > 0 {
				d.clock.Advance(time.Second)
			}
		}
	}
}
