package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duemq/duemq/internal/config"
	"github.com/duemq/duemq/internal/httpapi/client"
)

// Groups of commands in the help text.
const (
	groupMessages = "messages"
	groupServer   = "server"
)

// root builds the tree of commands.
func (a *app) root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "duemq",
		Short: "Messages that must wait",
		Long: `DueMQ keeps messages that must wait and delivers each at its moment: never early, a few
milliseconds late, whatever crashed in between.`,
		Example: a.example(
			"serve", "",
			"send orders 'hello' --after 10s", "",
			"recv orders", "",
		),
		Version:           buildVersion().Version,
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
	}
	cmd.AddGroup(&cobra.Group{ID: groupMessages, Title: "Messages:"}, &cobra.Group{ID: groupServer, Title: "Server:"})
	cmd.PersistentFlags().BoolVar(&a.noColor, "no-color", a.noColor, "no colors, as with NO_COLOR=1")
	cmd.SetFlagErrorFunc(a.flagError)
	a.add(cmd, groupMessages, a.sendCommand(), a.recvCommand(), a.cancelCommand(), a.rescheduleCommand(), a.deliverNowCommand(), a.pendingCommand())
	a.add(cmd, groupServer, a.serveCommand(), a.configCommand(), a.doctorCommand(), a.verifyCommand(), a.clockCommand())
	cmd.AddCommand(a.versionCommand())
	cmd.SetHelpTemplate(cmd.HelpTemplate() + "\n" + exitCodes + "\n")
	return cmd
}

func (*app) add(to *cobra.Command, group string, commands ...*cobra.Command) {
	for _, c := range commands {
		c.GroupID = group
		to.AddCommand(c)
	}
}

// example writes examples: pairs of arguments and a remark.
func (a *app) example(pairs ...string) string {
	var b strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		line := "  duemq " + pairs[i]
		if pairs[i+1] != "" {
			line = fmt.Sprintf("%-58s # %s", line, pairs[i+1])
		}
		b.WriteString(line + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// flagError refuses a flag, with the one that was meant.
func (a *app) flagError(cmd *cobra.Command, err error) error {
	f := &failure{code: exitUsage, what: err.Error(), next: a.self + " " + strings.TrimPrefix(cmd.CommandPath(), "duemq ") + " --help"}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return f
	}
	var known []string
	add := func(flag *pflag.Flag) { known = append(known, flag.Name) }
	cmd.Flags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	if near, ok := config.Nearest(unknown.GetSpecifiedName(), known); ok {
		f.why = fmt.Errorf("did you mean --%s?", near)
	}
	return f
}

// group makes a command that only has others beneath it.
func (a *app) group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			f := usage(fmt.Sprintf("unknown command %q of %s", args[0], cmd.CommandPath()), "no such command")
			f.next = a.self + " " + use + " --help"
			var names []string
			for _, c := range commands {
				names = append(names, c.Name())
			}
			if near, ok := config.Nearest(args[0], names); ok {
				f.why = fmt.Errorf("did you mean %s?", near)
			}
			return f
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

// args refuses another number of arguments than from to to, -1 for any.
func (a *app) args(from, to int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= from && (to < 0 || len(args) <= to) {
			return nil
		}
		what := "too many arguments"
		if len(args) < from {
			what = "too few arguments"
		}
		f := usage(what, "want: %s", cmd.UseLine())
		f.next = a.self + " " + strings.TrimPrefix(cmd.CommandPath(), "duemq ") + " --help"
		return f
	}
}

// A remote is the server that a command talks to.
type remote struct{ url string }

// serverFlag gives a command --server.
func (a *app) serverFlag(cmd *cobra.Command) *remote {
	r := &remote{url: a.env(config.EnvServer)}
	if r.url == "" {
		r.url = "http://127.0.0.1:9870"
	}
	cmd.Flags().StringVar(&r.url, "server", r.url, "`URL` of the server; default from "+config.EnvServer)
	return r
}

// dial gives a client. The caller closes it.
func (r *remote) dial() (*client.Client, error) {
	if !strings.Contains(r.url, "://") {
		r.url = "http://" + r.url
	}
	c, err := client.New(r.url, client.Options{UserAgent: "duemq/" + buildVersion().Version})
	if err != nil {
		return nil, &failure{code: exitUsage, what: "cannot use server " + r.url, why: err}
	}
	return c, nil
}

// named is a server's address as it is shown in a command to copy: empty for
// the default one.
func serverArgument(url string) string {
	if url == "" || url == "http://127.0.0.1:9870" {
		return ""
	}
	return " --server " + quote(url)
}
