package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFileBytes bounds the file: a configuration is a page of text.
const maxFileBytes = 1 << 20

// file takes the values of a YAML file. Values are scalars; a list is the same
// as its items with spaces between them.
func (l *Loaded) file(path string) error {
	text, err := readFile(path)
	if err != nil {
		return fmt.Errorf("configuration file: %w", err)
	}
	where := filepath.Base(path)
	root, err := parse(text)
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	if root == nil {
		return nil
	}
	if root.Kind != yaml.MappingNode {
		return fmt.Errorf("%s:%d: want lines of the form key: value", where, root.Line)
	}
	var complaints []error
	lines := map[string]int{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		name, value := root.Content[i], root.Content[i+1]
		if first, ok := lines[name.Value]; ok {
			complaints = append(complaints, fmt.Errorf("%s:%d: key %s stands in line %d already", where, name.Line, name.Value, first))
			continue
		}
		lines[name.Value] = name.Line
		if err := l.fromFile(fmt.Sprintf("%s:%d", where, name.Line), name.Value, value); err != nil {
			complaints = append(complaints, err)
		}
	}
	return errors.Join(complaints...)
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err == nil && len(text) > maxFileBytes {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxFileBytes)
	}
	return text, err
}

// parse reads one YAML document; nil if it is empty.
func parse(text []byte) (*yaml.Node, error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	var doc, second yaml.Node
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil //nolint:nilnil // an empty file is a file without settings
	} else if err != nil {
		return nil, err
	}
	if err := d.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one YAML document")
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil //nolint:nilnil // comments only
	}
	return root, nil
}

// fromFile takes one value of the file.
func (l *Loaded) fromFile(where, name string, value *yaml.Node) error {
	i := l.find(name)
	if i < 0 {
		return fmt.Errorf("%s: unknown key %q%s", where, name, l.meant(name, Key.YAML))
	}
	text, err := scalar(value)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", where, name, err)
	}
	l.Settings[i] = Setting{Key: l.Settings[i].Key, Text: text, Source: where, rank: fromFile}
	return nil
}

func (l *Loaded) find(yamlName string) int {
	for i := range l.Settings {
		if l.Settings[i].Key.YAML() == yamlName {
			return i
		}
	}
	return -1
}

// meant suggests a key for a name that is none.
func (l *Loaded) meant(name string, form func(Key) string) string {
	words := make([]string, len(l.Settings))
	for i := range words {
		words[i] = form(l.Settings[i].Key)
	}
	if near, ok := Nearest(name, words); ok {
		return "; did you mean " + near + "?"
	}
	return "; known keys: " + strings.Join(words, ", ")
}

// scalar gives the text of a value.
func scalar(n *yaml.Node) (string, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag != "!!null":
		return n.Value, nil
	case n.Kind == yaml.SequenceNode:
		var words []string
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode {
				return "", errors.New("want a value, or a list of values")
			}
			words = append(words, item.Value)
		}
		return strings.Join(words, " "), nil
	default:
		return "", errors.New("want a value")
	}
}

// Variables beside those of the keys.
const (
	EnvConfig = EnvPrefix + "CONFIG" // path of the file, for serve
	EnvServer = EnvPrefix + "SERVER" // address of the server, for client commands
)

// environment takes the values of variables. One that is no key may be somebody
// else's (Kubernetes sets DUEMQ_PORT for a service of that name), so it is
// warned about only when it is nearly one of ours.
func (l *Loaded) environment(environ []string) {
	known := []string{EnvConfig, EnvServer}
	byName := map[string]int{}
	for i := range l.Settings {
		name := l.Settings[i].Key.Env()
		byName[name] = i
		known = append(known, name)
	}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, EnvPrefix) || name == EnvConfig || name == EnvServer {
			continue
		}
		if i, ok := byName[name]; ok {
			l.Settings[i] = Setting{Key: l.Settings[i].Key, Text: value, Source: name, rank: fromEnvironment}
			continue
		}
		if near, ok := nearVariable(name, known); ok {
			l.Warnings = append(l.Warnings, fmt.Sprintf("%s is no setting; did you mean %s?", name, near))
		}
	}
}

// nearVariable compares what follows the common prefix, which would otherwise
// make long words of short ones.
func nearVariable(name string, known []string) (string, bool) {
	rest := make([]string, len(known))
	for i, k := range known {
		rest[i] = strings.TrimPrefix(k, EnvPrefix)
	}
	near, ok := Nearest(strings.TrimPrefix(name, EnvPrefix), rest)
	return EnvPrefix + near, ok
}
