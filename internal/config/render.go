package config

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// AppendYAML appends the configuration as a file that, loaded, gives the same
// one, except that keys without a value are left out.
func (l *Loaded) AppendYAML(dst []byte) []byte {
	for i := range l.Settings {
		if s := &l.Settings[i]; s.Text != "" {
			dst = appendLine(dst, s.Key, s.Text)
		}
	}
	return dst
}

// Example is a file that says what every key means and sets none: each line
// that would is a comment and shows the default.
func Example() []byte {
	b := []byte(`# Configuration of DueMQ. Use it with: duemq serve --config FILE
#
# Every key may be left out; what stands here is the default. A flag beats the
# environment, which beats this file: --max-delay 30d, DUEMQ_MAX_DELAY=30d.
# Check this file with: duemq config check FILE
`)
	for _, k := range Keys() {
		b = fmt.Appendf(b, "\n# %s\n# ", upperFirst(k.Usage))
		text := k.Default
		if text == "" {
			text = examples[k.Name]
		}
		b = appendLine(b, k, text)
	}
	return b
}

// examples stand where there is no default.
var examples = map[string]string{"port-base": "7000", "http-hosts": "mq.example.org"}

func upperFirst(s string) string {
	if strings.HasPrefix(s, "HTTP") {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

func appendLine(dst []byte, k Key, text string) []byte {
	value, err := yaml.Marshal(plain(text))
	if err != nil {
		panic(fmt.Sprintf("yaml of text %q: %v", text, err)) // a string always has a form
	}
	dst = append(dst, k.YAML()...)
	dst = append(dst, ": "...)
	dst = append(dst, bytes.TrimSpace(value)...)
	return append(dst, '\n')
}

// plain has switches and numbers written without quotes.
func plain(text string) any {
	switch text {
	case "true":
		return true
	case "false":
		return false
	}
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return text
}
