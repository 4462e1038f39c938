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
	groupBroker   = "broker"
	groupServer   = "server"
	groupOther    = "other"
)

// root builds the tree of commands.
func (a *app) root() *cobra.Command {
	cmd := a.group("duemq", "Messages that must wait")
	cmd.Long = `DueMQ keeps messages that must wait and delivers each at its moment: never early, a few
milliseconds late, whatever crashed in between.`
	cmd.Example = a.example("serve", "", "send orders 'hello' --after 10s", "", "recv orders", "")
	cmd.Version = buildVersion().Version
	cmd.SilenceErrors, cmd.SilenceUsage, cmd.DisableAutoGenTag = true, true, true
	cmd.AddGroup(&cobra.Group{ID: groupMessages, Title: "Messages:"}, &cobra.Group{ID: groupBroker, Title: "Topics and groups:"}, &cobra.Group{ID: groupServer, Title: "Server:"}, &cobra.Group{ID: groupOther, Title: "Other:"})
	cmd.PersistentFlags().BoolVar(&a.noColor, "no-color", a.noColor, "no colors, as with NO_COLOR=1")
	cmd.SetFlagErrorFunc(a.flagError)
	a.add(cmd, groupMessages, a.sendCommand(), a.recvCommand(), a.cancelCommand(), a.rescheduleCommand(), a.deliverNowCommand(), a.pendingCommand())
	a.add(cmd, groupBroker, a.topicCommand(), a.groupCommand(), a.deadCommand(), a.operationCommand(), a.transactionCommand())
	a.add(cmd, groupServer, a.serveCommand(), a.configCommand(), a.doctorCommand(), a.verifyCommand(), a.backupCommand(), a.restoreCommand(), a.clockCommand())
	a.add(cmd, groupOther, a.demoCommand(), a.benchCommand(), a.limitsCommand(), a.versionCommand())
	cmd.SetHelpCommandGroupID(groupOther)
	cmd.SetCompletionCommandGroupID(groupOther)
	// A command with others beneath it does nothing itself.
	cmd.SetUsageTemplate(strings.Replace(cmd.UsageTemplate(), "{{if .Runnable}}", "{{if and .Runnable (not .HasAvailableSubCommands)}}", 1))
	cmd.SetHelpTemplate(cmd.HelpTemplate() + "{{if not .HasParent}}\n" + exitCodes + "\n{{end}}")
	failing(cmd)
	return cmd
}

// failing has what a command returns be a failure, so that it is told from what
// the parser of the command line refuses.
func failing(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		failing(c)
	}
	run := cmd.RunE
	if run == nil {
		return
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		if _, ok := errors.AsType[*failure](err); err == nil || ok {
			return err
		}
		return &failure{code: exitFailure, what: cmd.CommandPath(), why: err}
	}
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
	f := &failure{code: exitUsage, what: err.Error(), next: a.help(cmd)}
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
		Use: use, Short: short, Args: a.noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

// noArguments refuses an argument where a command was to stand.
func (a *app) noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	f := &failure{code: exitUsage, what: fmt.Sprintf("%s has no command %q", cmd.CommandPath(), args[0]), next: a.help(cmd)}
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
		names = append(names, c.Aliases...)
	}
	if near, ok := config.Nearest(args[0], names); ok {
		f.why = fmt.Errorf("did you mean %s?", near)
	}
	return f
}

// help is what to type for the help text of a command.
func (a *app) help(cmd *cobra.Command) string {
	return a.self + strings.TrimPrefix(cmd.CommandPath(), "duemq") + " --help"
}

// exclusive refuses more than one of some flags.
func (a *app) exclusive(cmd *cobra.Command, names ...string) error {
	var given []string
	for _, n := range names {
		if cmd.Flags().Changed(n) {
			given = append(given, "--"+n)
		}
	}
	if len(given) < 2 {
		return nil
	}
	f := usage(strings.Join(given, " and "), "one of them at most")
	f.next = a.help(cmd)
	return f
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
		f.next = a.help(cmd)
		return f
	}
}

// A remote is the server that a command talks to.
type remote struct {
	url   string
	flags *pflag.FlagSet
}

const serverName = "server"

// serverFlag gives a command --server.
func (a *app) serverFlag(cmd *cobra.Command) *remote {
	r := &remote{url: a.env(config.EnvServer), flags: cmd.Flags()}
	if r.url == "" {
		r.url = "http://" + config.DefaultHTTP
	}
	cmd.ValidArgsFunction = cobra.NoFileCompletions // topics and ids are no files
	r.flags.StringVar(&r.url, serverName, r.url, "`URL` of the server; default from "+config.EnvServer)
	return r
}

// dial gives a client. The caller closes it.
func (r *remote) dial() (*client.Client, error) {
	url := r.url
	if !strings.Contains(url, "://") {
		url = "http://" + url
	}
	c, err := client.New(url, client.Options{UserAgent: "duemq/" + buildVersion().Version})
	if err != nil {
		return nil, &failure{code: exitUsage, what: "cannot use server " + r.url, why: err}
	}
	return c, nil
}

// argument is what another command needs to talk to the same server.
func (r *remote) argument() string {
	if r.flags.Changed(serverName) {
		return serverArgument(r.url)
	}
	return ""
}

func serverArgument(url string) string { return " --" + serverName + " " + quote(url) }
