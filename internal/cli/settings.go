package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duemq/duemq/internal/config"
)

// serverSettings are the flags of a command that is told what a server is told.
type serverSettings struct {
	a     *app
	flags *pflag.FlagSet
	file  string
}

// A keyValue is the flag of a configuration key. What it says is understood by
// package config.
type keyValue struct{ text, kind string }

func (v *keyValue) Set(s string) error { v.text = s; return nil }
func (v *keyValue) String() string     { return v.text }
func (v *keyValue) Type() string       { return v.kind }

// settingsFlags gives a command the flags of the keys of those names, or of all.
func (a *app) settingsFlags(cmd *cobra.Command, names ...string) *serverSettings {
	s := &serverSettings{a: a, flags: cmd.Flags()}
	for _, k := range config.Keys() {
		if len(names) > 0 && !slices.Contains(names, k.Name) {
			continue
		}
		value := &keyValue{text: k.Default, kind: k.Value}
		if k.Value == "" {
			value.kind = "bool"
		}
		f := s.flags.VarPF(value, k.Name, "", k.Usage)
		if k.Value == "" {
			f.NoOptDefVal = "true"
		}
		if len(k.Choices) > 0 {
			complete(cmd, k.Name, k.Choices...)
		}
	}
	s.flags.StringVar(&s.file, "config", a.env(config.EnvConfig), "YAML `FILE` with these settings; default from "+config.EnvConfig)
	return s
}

// load puts the configuration together and warns of likely mistakes.
func (s *serverSettings) load() (*config.Loaded, error) {
	given := map[string]string{}
	s.flags.Visit(func(f *pflag.Flag) {
		if v, ok := f.Value.(*keyValue); ok {
			given[f.Name] = v.text
		}
	})
	l, err := config.Load(config.Sources{Flags: given, Environ: s.a.Environ, File: s.file})
	if err != nil {
		return nil, &failure{
			code: exitUsage, what: "the configuration is not right", why: err,
			next: s.a.self + " config show --sources (what would hold), config init (every key explained)",
		}
	}
	for _, w := range l.Warnings {
		fmt.Fprintf(s.a.Stderr, "%s %s\n", s.a.paint(s.a.errWidth, yellow, "warning:"), w)
	}
	return l, nil
}
