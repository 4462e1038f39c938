package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/duemq/duemq/internal/config"
)

func (a *app) configCommand() *cobra.Command {
	return a.group("config", "What a server is told", a.configShowCommand(), a.configCheckCommand(), a.configInitCommand())
}

// A shownSetting is a setting as JSON.
type shownSetting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Source string `json:"source"`
}

func (a *app) configShowCommand() *cobra.Command {
	sources := false
	cmd := &cobra.Command{
		Use: "show", Short: "Show what serve would do with the same flags, environment and file", Args: a.args(0, 0),
		Long: `Show what serve would do with the same flags, environment and file, as a file that says the same;
with --sources as a table that says where each value comes from.`,
		Example: a.example("config show --sources", "", "config show --data /var/lib/duemq > duemq.yaml", ""),
	}
	settings := a.settingsFlags(cmd)
	cmd.Flags().BoolVar(&sources, "sources", false, "say where each value comes from")
	a.outputFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		l, err := settings.load()
		if err != nil {
			return err
		}
		if a.format == formatTable && !sources {
			_, err := a.Stdout.Write(l.AppendYAML(nil))
			return err
		}
		return a.showSettings(l)
	}
	return cmd
}

func (a *app) showSettings(l *config.Loaded) error {
	if a.format != formatTable {
		out := list{a: a}
		for i := range l.Settings {
			s := &l.Settings[i]
			if err := out.add(shownSetting{s.Key.YAML(), s.Text, s.Source}, ""); err != nil {
				return err
			}
		}
		return out.end()
	}
	t := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "KEY\tVALUE\tSOURCE")
	for i := range l.Settings {
		s := &l.Settings[i]
		fmt.Fprintf(t, "%s\t%s\t%s\n", s.Key.YAML(), dash(s.Text), s.Source)
	}
	return t.Flush()
}

func (a *app) configCheckCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "check [FILE]", Short: "Check a file, with the flags and the environment there are", Args: a.args(0, 1),
		Example: a.example("config check duemq.yaml", ""),
	}
	settings := a.settingsFlags(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			settings.file = args[0]
		}
		if _, err := settings.load(); err != nil {
			return err
		}
		what := "the defaults, flags and environment"
		if settings.file != "" {
			what = settings.file
		}
		fmt.Fprintf(a.Stdout, "%s: right\n", what)
		return nil
	}
	return cmd
}

func (a *app) configInitCommand() *cobra.Command {
	return &cobra.Command{
		Use: "init [FILE|-]", Short: "Write a file that explains every key and sets none", Args: a.args(0, 1),
		Long:    `Write a file, duemq.yaml by default, that explains every key and sets none. One that is there is left alone.`,
		Example: a.example("config init", "", "config init -", "to standard output"),
		RunE: func(_ *cobra.Command, args []string) error {
			path := "duemq.yaml"
			if len(args) > 0 {
				path = args[0]
			}
			if path == "-" {
				_, err := a.Stdout.Write(config.Example())
				return err
			}
			if err := create(path, config.Example()); err != nil {
				f := &failure{code: exitFailure, what: "cannot write " + path, why: err}
				if errors.Is(err, fs.ErrExist) {
					f.code, f.why = exitConflict, errors.New("it is there already")
					f.next = a.self + " config init OTHER.yaml"
				}
				return f
			}
			fmt.Fprintf(a.Stdout, "wrote %s; start with it: %s serve --config %s\n", path, a.self, quote(path))
			return nil
		},
	}
}

// create makes a new file.
func create(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // no secrets in it, and others may read how a server is set up
	if err != nil {
		return err
	}
	_, err = bytes.NewReader(content).WriteTo(f)
	return errors.Join(err, f.Close())
}
