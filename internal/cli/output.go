package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duemq/duemq/internal/config"
)

// A format is how results are written.
type format string

const (
	formatTable format = "table" // for people; may change
	formatJSON  format = "json"  // one JSON value
	formatJSONL format = "jsonl" // one JSON value a line
)

var formats = []string{string(formatTable), string(formatJSON), string(formatJSONL)}

// Set takes the value of -o.
func (f *format) Set(s string) error {
	if !slices.Contains(formats, s) {
		if near, ok := config.Nearest(s, formats); ok {
			return fmt.Errorf("want %s; did you mean %s?", strings.Join(formats, ", "), near)
		}
		return fmt.Errorf("want %s", strings.Join(formats, ", "))
	}
	*f = format(s)
	return nil
}

// String gives the format's name.
func (f *format) String() string { return string(*f) }

// Type stands for the value in help texts.
func (*format) Type() string { return "FORMAT" }

// outputFlag gives a command -o.
func (a *app) outputFlag(cmd *cobra.Command) {
	cmd.Flags().VarP(&a.format, "output", "o", "form of the results: table, json or jsonl")
	complete(cmd, "output", formats...)
}

// complete has the shell offer values for a flag.
func complete(cmd *cobra.Command, flag string, values ...string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(fmt.Sprintf("completion of %s --%s: %v", cmd.Name(), flag, err))
	}
}

// one writes the single result of a command: value as JSON, or line.
func (a *app) one(value any, line string) error {
	if a.format == formatTable {
		_, err := fmt.Fprintln(a.Stdout, line)
		return err
	}
	e := json.NewEncoder(a.Stdout)
	e.SetEscapeHTML(false)
	if a.format == formatJSON {
		e.SetIndent("", "  ")
	}
	return e.Encode(value)
}

// A list writes results as they come: lines, one JSON array, or a JSON value a
// line.
type list struct {
	a *app
	n int
}

func (l *list) add(value any, line string) error {
	if l.a.format != formatJSON {
		l.n++
		return l.a.one(value, line)
	}
	raw, err := json.MarshalIndent(value, "  ", "  ")
	if err != nil {
		return err
	}
	begin := ",\n  "
	if l.n == 0 {
		begin = "[\n  "
	}
	l.n++
	_, err = fmt.Fprintf(l.a.Stdout, "%s%s", begin, raw)
	return err
}

func (l *list) end() error {
	if l.a.format != formatJSON {
		return nil
	}
	end := "\n]\n"
	if l.n == 0 {
		end = "[]\n"
	}
	_, err := fmt.Fprint(l.a.Stdout, end)
	return err
}

// A color is the parameter of an ANSI sequence.
type color string

const (
	red    color = "31"
	green  color = "32"
	yellow color = "33"
	dim    color = "2"
	bold   color = "1"
)

// paint colors text for a terminal of that width, 0 for none.
func (a *app) paint(width int, c color, text string) string {
	if width == 0 || a.noColor {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}
