package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/engine"
)

// write makes a file duemq.yaml and gives its path.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "duemq.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDefaults(t *testing.T) {
	l, err := Load(Sources{})
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	want := Config{
		Data: "./duemq-data", HTTP: "127.0.0.1:9870", Sync: engine.SyncAlways, SyncEvery: 500 * time.Millisecond,
		Levels: engine.DefaultLevels(), MaxDelay: 365 * 24 * time.Hour, LogFormat: FormatText,
		Retention: engine.Retention{Time: 72 * time.Hour, CarryAfter: 24 * time.Hour}, Window: 24 * time.Hour,
	}
	if !reflect.DeepEqual(l.Config, want) {
		t.Errorf("defaults:\n got %+v\nwant %+v", l.Config, want)
	}
	if got, want := l.Setting("levels").Text, "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"; got != want {
		t.Errorf("levels %q, want RocketMQ's %q", got, want)
	}
}

// TestPrecedence gives every key in every subset of the sources.
func TestPrecedence(t *testing.T) {
	values := map[string][3]string{ // file, environment, flag
		"data":                  {"/a", "/b", "/c"},
		"http":                  {"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"},
		"http-hosts":            {"a.org", "b.org c.org", "d.org"},
		"sync":                  {"interval", "always", "interval"},
		"sync-every":            {"1s", "2s", "3s"},
		"port-base":             {"7000", "8000", "9000"},
		"insecure":              {"true", "false", "true"},
		"levels":                {"1s 2s", "1s 3s", "1s 4s"},
		"max-delay":             {"30d", "31d", "32d"},
		"retention-time":        {"1h", "2h", "forever"},
		"retention-bytes":       {"1GiB", "unlimited", "2GB"},
		"retention-carry-after": {"1h", "2h", "3h"},
		"idempotency-window":    {"1h", "2h", "3h"},
		"log-level":             {"debug", "warn", "error"},
		"log-format":            {"json", "text", "json"},
	}
	for _, k := range Keys() {
		texts, ok := values[k.Name]
		if !ok {
			t.Errorf("key %s is not tested: give it values", k.Name)
			continue
		}
		for subset := range 8 {
			var s Sources
			want, source := k.Default, "default"
			if subset&1 != 0 {
				s.File = write(t, fmt.Sprintf("# a comment\n%s: %s\n", k.YAML(), texts[0]))
				want, source = texts[0], "duemq.yaml:2"
			}
			if subset&2 != 0 {
				s.Environ = []string{"HOME=/", k.Env() + "=" + texts[1]}
				want, source = texts[1], k.Env()
			}
			if subset&4 != 0 {
				s.Flags = map[string]string{k.Name: texts[2]}
				want, source = texts[2], "--"+k.Name
			}
			l, err := Load(s)
			if err != nil {
				t.Fatalf("%s, sources %03b: %v", k.Name, subset, err)
			}
			if got := l.Setting(k.Name); got.Text != want || got.Source != source {
				t.Errorf("%s, sources %03b: %q from %s, want %q from %s", k.Name, subset, got.Text, got.Source, want, source)
			}
		}
	}
}

func TestPortBase(t *testing.T) {
	tests := []struct {
		name         string
		sources      Sources
		want, source string
	}{
		{"alone", Sources{Flags: map[string]string{"port-base": "7000"}}, "127.0.0.1:7000", "port_base of --port-base"},
		{
			"beside an address of the same kind",
			Sources{Flags: map[string]string{"port-base": "7000", "http": "127.0.0.1:8000"}},
			"127.0.0.1:8000", "--http",
		},
		{
			"weaker than the address",
			Sources{Environ: []string{"DUEMQ_PORT_BASE=7000"}, Flags: map[string]string{"http": "127.0.0.1:8000"}},
			"127.0.0.1:8000", "--http",
		},
		{
			"stronger than the address, whose host stays",
			Sources{Environ: []string{"DUEMQ_HTTP=[::1]:8000"}, Flags: map[string]string{"port-base": "7000"}},
			"[::1]:7000", "port_base of --port-base",
		},
		{"with the door shut", Sources{Environ: []string{"DUEMQ_HTTP=off"}, Flags: map[string]string{"port-base": "7000"}}, "off", "DUEMQ_HTTP"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l, err := Load(test.sources)
			if err != nil {
				t.Fatalf("Load: %v", err)
			}
			s := l.Setting("http")
			if l.Config.HTTP != test.want || s.Text != test.want || s.Source != test.source {
				t.Errorf("%s (shown as %s from %s), want %s from %s", l.Config.HTTP, s.Text, s.Source, test.want, test.source)
			}
		})
	}
}

func TestFile(t *testing.T) {
	l, err := Load(Sources{File: write(t, "levels: [1s, 2s, 1m]\nsync: interval\nsync_every: 20ms\nhttp: off\ndata: &d /x\n")})
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	c := l.Config
	if want := []time.Duration{time.Second, 2 * time.Second, time.Minute}; !reflect.DeepEqual(c.Levels, want) {
		t.Errorf("levels %v, want %v", c.Levels, want)
	}
	if c.Sync != engine.SyncInterval || c.SyncEvery != 20*time.Millisecond || c.HTTP != Off || c.Data != "/x" {
		t.Errorf("got %+v", c)
	}
	for _, text := range []string{"", "# nothing\n", "---\n"} {
		if _, err := Load(Sources{File: write(t, text)}); err != nil {
			t.Errorf("file %q: %v", text, err)
		}
	}
}

// TestKeeping reads what says how long things are kept.
func TestKeeping(t *testing.T) {
	l, err := Load(Sources{Flags: map[string]string{
		"retention-time": "forever", "retention-bytes": "1.5 GiB", "retention-carry-after": "2d", "idempotency-window": "10m",
	}})
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	want := engine.Retention{Time: -1, Bytes: 3 << 29, CarryAfter: 48 * time.Hour}
	if l.Config.Retention != want || l.Config.Window != 10*time.Minute {
		t.Errorf("retention %+v, window %v; want %+v, 10m", l.Config.Retention, l.Config.Window, want)
	}
	for text, want := range map[string]int64{"500MB": 500e6, "1TB": 1e12, "2TiB": 2 << 40, "300000000B": 3e8, "300000kB": 3e8, "1024MiB": 1 << 30, "unlimited": 0} {
		l, err := Load(Sources{Flags: map[string]string{"retention-bytes": text}})
		if err != nil || l.Config.Retention.Bytes != want {
			t.Errorf("%q: %+v, %v; want %d bytes", text, l, err, want)
		}
	}
}

// TestComplaints has one mistake each; the complaint names the place and, where
// there is one, the remedy.
func TestComplaints(t *testing.T) {
	file := func(text string) func(*testing.T) Sources {
		return func(t *testing.T) Sources { return Sources{File: write(t, text)} }
	}
	flag := func(name, text string) func(*testing.T) Sources {
		return func(*testing.T) Sources { return Sources{Flags: map[string]string{name: text}} }
	}
	tests := []struct {
		name    string
		sources func(*testing.T) Sources
		want    []string
	}{
		{"typo", file("\nmax_dealy: 30d\n"), []string{"duemq.yaml:2", `"max_dealy"`, "did you mean max_delay?"}},
		{"dashes", file("max-delay: 30d\n"), []string{"duemq.yaml:1", "did you mean max_delay?"}},
		{"no key at all", file("colour: red\n"), []string{`"colour"`, "known keys: data, http"}},
		{"twice", file("data: a\nhttp: off\ndata: b\n"), []string{"duemq.yaml:3", "line 1 already"}},
		{"nested", file("http:\n  addr: x\n"), []string{"duemq.yaml:1", "want a value"}},
		{"nothing", file("http:\n"), []string{"duemq.yaml:1", "want a value"}},
		{"list of lists", file("levels: [[1s]]\n"), []string{"duemq.yaml:1"}},
		{"no keys", file("- a\n"), []string{"duemq.yaml:1", "key: value"}},
		{"no YAML", file("a: b: c\n"), []string{"duemq.yaml"}},
		{"two documents", file("data: a\n---\ndata: b\n"), []string{"more than one"}},
		{"no file", func(*testing.T) Sources { return Sources{File: "/does/not/exist.yaml"} }, []string{"/does/not/exist.yaml"}},
		{"policy", flag("sync", "allways"), []string{"--sync", "did you mean always?"}},
		{"log level", flag("log-level", "loud"), []string{"debug, info, warn or error"}},
		{"log format", flag("log-format", "jsno"), []string{"did you mean json?"}},
		{"bare duration", flag("max-delay", "30"), []string{"--max-delay"}},
		{"short delay", flag("max-delay", "1ms"), []string{"1s to 36500d"}},
		{"interval", flag("sync-every", "2m"), []string{"1ms to 1m"}},
		{"host with a port", flag("http-hosts", "a.org b.org:80"), []string{"b.org:80", "without port"}},
		{"no port", flag("http", "127.0.0.1"), []string{"HOST:PORT"}},
		{"bad port", flag("http", "127.0.0.1:http"), []string{`port "http"`}},
		{"big port", flag("port-base", "65535"), []string{"1 to 65530"}},
		{"open", flag("http", "0.0.0.0:9870"), []string{"--insecure", "127.0.0.1"}},
		{"open to all", flag("http", ":9870"), []string{"--insecure"}},
		{"open by name", flag("http", "example.org:9870"), []string{"--insecure"}},
		{"switch", flag("insecure", "maybe"), []string{"true or false"}},
		{"too many levels", flag("levels", strings.Repeat("1s ", 19)), []string{"19 levels, want 1 to 18"}},
		{"no levels", flag("levels", " "), []string{"0 levels"}},
		{"bad level", flag("levels", "1s 5"), []string{"level 2"}},
		{"no delay", flag("levels", "0s"), []string{"level 1"}},
		{"half milliseconds", flag("levels", "1500us"), []string{"level 1: 1.5ms", "whole milliseconds"}},
		{"levels beyond the limit", func(*testing.T) Sources {
			return Sources{Flags: map[string]string{"max-delay": "30m"}}
		}, []string{"level 17 is beyond max_delay 30m"}},
		{"a moment of retention", flag("retention-time", "1s"), []string{"1m to 36500d, or forever"}},
		{"retention of a word", flag("retention-time", "never"), []string{"--retention-time", "or forever"}},
		{"little log", flag("retention-bytes", "1MiB"), []string{"256MiB, or unlimited"}},
		{"bare bytes", flag("retention-bytes", "1073741824"), []string{"50GiB"}},
		{"negative bytes", flag("retention-bytes", "-5GiB"), []string{"50GiB"}},
		{"endless bytes", flag("retention-bytes", "99999999999TiB"), []string{"more bytes than can be counted"}},
		{"carried at once", flag("retention-carry-after", "0s"), []string{"1m to 36500d"}},
		{"no window", flag("idempotency-window", "0s"), []string{"1s to 36500d"}},
		{"no folder", flag("data", ""), []string{"no folder"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Load(test.sources(t))
			if err == nil {
				t.Fatal("Load: no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nwant %q in it", err, want)
				}
			}
		})
	}
}

// TestAllAtOnce has several mistakes, which are all told.
func TestAllAtOnce(t *testing.T) {
	_, err := Load(Sources{
		File: write(t, "sink: always\nmax_delay: 5\n"), Environ: []string{"DUEMQ_SYNC=never"}, Flags: map[string]string{"http": "here"},
	})
	if err == nil {
		t.Fatal("Load: no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 4 {
		t.Errorf("%d complaints, want 4:\n%v", len(lines), err)
	}
}

func TestAllowed(t *testing.T) {
	for _, flags := range []map[string]string{
		{"http": "0.0.0.0:9870", "insecure": "true"},
		{"http": "localhost:9870"},
		{"http": "[::1]:0"},
		{"http": "127.3.4.5:1"},
	} {
		if _, err := Load(Sources{Flags: flags}); err != nil {
			t.Errorf("%v: %v", flags, err)
		}
	}
}

func TestWarnings(t *testing.T) {
	l, err := Load(Sources{Environ: []string{
		"DUEMQ_MAX_DEALY=1d", "DUEMQ_PORT=tcp://10.0.0.1:80", "DUEMQ_SERVICE_HOST=10.0.0.1", "DUEMQ_SYNC_EVERY=1s",
		"DUEMQ_SERVER=http://x", "DUEMQ_CONFIG=y", "OTHER=z",
	}})
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	want := []string{
		"DUEMQ_MAX_DEALY is no setting; did you mean DUEMQ_MAX_DELAY?",
		"DUEMQ_SYNC_EVERY: sync_every is only read under sync: interval",
	}
	if !reflect.DeepEqual(l.Warnings, want) {
		t.Errorf("warnings %q, want %q", l.Warnings, want)
	}
}

// TestYAML has a configuration survive being written and read.
func TestYAML(t *testing.T) {
	l, err := Load(Sources{Flags: map[string]string{
		"data": "/a: b # c", "sync": "interval", "levels": "1s 2s", "port-base": "7000", "insecure": "true",
	}})
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	text := string(l.AppendYAML(nil))
	again, err := Load(Sources{File: write(t, text)})
	if err != nil {
		t.Fatalf("Load of\n%s: %v", text, err)
	}
	if !reflect.DeepEqual(again.Config, l.Config) {
		t.Errorf("after\n%s\n got %+v\nwant %+v", text, again.Config, l.Config)
	}
}

// TestExample has the commented file set nothing as it is, and the defaults
// (but for those that have none) once its lines are set free.
func TestExample(t *testing.T) {
	defaults, err := Load(Sources{})
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	text := string(Example())
	var free []string
	for line := range strings.Lines(text) {
		for _, k := range Keys() {
			if strings.HasPrefix(line, "# "+k.YAML()+": ") && k.Default != "" {
				free = append(free, strings.TrimPrefix(line, "# "))
			}
		}
	}
	if want := len(Keys()) - len(examples); len(free) != want {
		t.Fatalf("%d keys with a default in the example, want %d:\n%s", len(free), want, text)
	}
	for _, file := range []string{text, strings.Join(free, "")} {
		l, err := Load(Sources{File: write(t, file)})
		if err != nil {
			t.Fatalf("Load of\n%s: %v", file, err)
		}
		if !reflect.DeepEqual(l.Config, defaults.Config) {
			t.Errorf("after\n%s\n got %+v\nwant %+v", file, l.Config, defaults.Config)
		}
	}
}

func TestNearest(t *testing.T) {
	words := []string{"max_delay", "data", "http", "sync", "sync_every", "levels"}
	for text, want := range map[string]string{
		"max_dealy": "max_delay", "MaxDelay": "max_delay", "dta": "data", "date": "data", "htpp": "http", "snyc": "sync",
		"sync_evry": "sync_every", "level": "levels", "colour": "", "": "", "x": "",
	} {
		if got, _ := Nearest(text, words); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", text, got, want)
		}
	}
}

// FuzzFile has no file make Load panic, and a refused one give an error with its
// name in it.
func FuzzFile(f *testing.F) {
	f.Add("data: x\nlevels: [1s]\n")
	f.Add("a: &x [*x]\n")
	f.Add("\x00")
	f.Add("? [a]\n: b\n")
	path := filepath.Join(f.TempDir(), "duemq.yaml")
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(Sources{File: path}); err != nil && !strings.Contains(err.Error(), "duemq.yaml") {
			t.Errorf("file %q: %v", text, err)
		}
	})
}
