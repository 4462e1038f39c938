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
	formatWide  format = "wide"  // the same with more in it, where a command has more
	formatJSON  format = "json"  // one JSON value
	formatJSONL format = "jsonl" // one JSON value a line
)

var (
	formats     = []string{string(formatTable), string(formatJSON), string(formatJSONL)}
	wideFormats = []string{string(formatTable), string(formatWide), string(formatJSON), string(formatJSONL)}
)

// A formatFlag is -o of a command that has some formats.
type formatFlag struct {
	to    *format
	known []string
}

// Set takes the value of -o.
func (f formatFlag) Set(s string) error {
	if !slices.Contains(f.known, s) {
		if near, ok := config.Nearest(s, f.known); ok {
			return fmt.Errorf("want %s; did you mean %s?", strings.Join(f.known, ", "), near)
		}
		return fmt.Errorf("want %s", strings.Join(f.known, ", "))
	}
	*f.to = format(s)
	return nil
}

// String gives the format's name.
func (f formatFlag) String() string {
	if f.to == nil { // as the flag library makes one, to learn of the zero value
		return ""
	}
	return string(*f.to)
}

// Type stands for the value in help texts.
func (formatFlag) Type() string { return "FORMAT" }

// outputFlag gives a command -o.
func (a *app) outputFlag(cmd *cobra.Command) {
	cmd.Flags().VarP(formatFlag{&a.format, formats}, "output", "o", "form of the results: table, json or jsonl")
	complete(cmd, "output", formats...)
}

// wideFlag gives a command -o with a wide form.
func (a *app) wideFlag(cmd *cobra.Command) {
	cmd.Flags().VarP(formatFlag{&a.format, wideFormats}, "output", "o", "form of the results: table, wide, json or jsonl")
	complete(cmd, "output", wideFormats...)
}

// forPeople says that results are read by people, in a table.
func (a *app) forPeople() bool { return a.format == formatTable || a.format == formatWide }

// complete has the shell offer values for a flag.
func complete(cmd *cobra.Command, flag string, values ...string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(fmt.Sprintf("completion of %s --%s: %v", cmd.Name(), flag, err))
	}
}

// one writes the single result of a command: value as JSON, or line.
func (a *app) one(value any, line string) error {
	if a.forPeople() {
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
