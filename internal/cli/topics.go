package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

func (a *app) topicCommand() *cobra.Command {
	return a.group("topic", "Topics: make, pause, empty, delete", a.topicListCommand(), a.topicGetCommand(), a.topicCreateCommand(),
		a.topicUpdateCommand(),
		a.topicStepCommand("pause", "paused", "Stop topics from delivering; what falls due is held back", (*client.Client).PauseTopic),
		a.topicStepCommand("resume", "delivering", "Let paused topics go on; what was held back goes out, oldest due first", (*client.Client).ResumeTopic),
		a.topicEndCommand("purge", "empty", "Empty a topic: what waits in it and what can be read", (*client.Client).PurgeTopic),
		a.topicEndCommand("rm", "delete", "Delete a topic with all that is in it", (*client.Client).DeleteTopic))
}

// listing is how many items a command asks for at once.
const listing = 1000

func (a *app) topicListCommand() *cobra.Command {
	system := false
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List topics by name", Args: a.args(0, 0),
		Example: a.example("topic ls", "", "topic ls --system", "with retries and dead letters"),
	}
	cmd.Flags().BoolVar(&system, "system", false, "also those that the server made for itself")
	r := a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := r.dial()
		if err != nil {
			return err
		}
		defer c.Close()
		var topics []wire.Topic
		for cursor := ""; ; {
			w, err := c.Topics(cmd.Context(), system, listing, cursor)
			if err != nil {
				return a.answered(cmd.Context(), "cannot list topics", err)
			}
			topics = append(topics, w.Topics...)
			if cursor = w.Cursor; cursor == "" {
				break
			}
		}
		return a.listTopics(topics)
	}
	return cmd
}

func (a *app) listTopics(topics []wire.Topic) error {
	if !a.forPeople() {
		return all(a, topics)
	}
	if len(topics) == 0 {
		fmt.Fprintf(a.Stderr, "no topics; the first message makes one: %s send TOPIC BODY\n", a.self)
		return nil
	}
	t := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TOPIC\tQUEUES\tWAITING\tHELD\tDELIVERED\tSTATE")
	for i := range topics {
		p := &topics[i]
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\n", p.Name, p.Queues, count(p.Waiting), count(p.Held), count(p.Visible), topicState(p))
	}
	return t.Flush()
}

func topicState(t *wire.Topic) string {
	switch {
	case t.Paused:
		return "paused"
	case t.MaxRate > 0:
		return "at most " + count(t.MaxRate) + "/s"
	}
	return "delivering"
}

func (a *app) topicGetCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "get TOPIC", Short: "Show a topic", Args: a.args(1, 1), Example: a.example("topic get orders", "")}
	r := a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := r.dial()
		if err != nil {
			return err
		}
		defer c.Close()
		t, err := c.Topic(cmd.Context(), args[0])
		if err != nil {
			return a.answered(cmd.Context(), "cannot look at topic "+args[0], err)
		}
		return a.one(t, a.topicDetails(&t))
	}
	return cmd
}

func (a *app) topicDetails(t *wire.Topic) string {
	var b strings.Builder
	line := func(name, value string) { fmt.Fprintf(&b, "%-10s %s\n", name, value) }
	line("topic", t.Name)
	line("state", topicState(t))
	line("queues", count(t.Queues))
	waiting := count(t.Waiting)
	if t.Held > 0 {
		waiting += fmt.Sprintf(", %s of them due and held back", count(t.Held))
	}
	line("waiting", waiting)
	if t.Halves > 0 {
		line("halves", count(t.Halves))
	}
	line("delivered", count(t.Visible))
	for _, name := range slices.Sorted(maps.Keys(t.Attributes)) {
		line("attribute", quote(name+"="+t.Attributes[name]))
	}
	for _, q := range t.Offsets {
		line("queue "+count(q.Queue), fmt.Sprintf("offsets %s to %s", count(q.Low), count(q.Next)))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// topicSettings are the attributes of a topic, as flags.
type topicSettings struct {
	rate       int64
	attributes []string
	flags      *pflag.FlagSet
}

const rateName = "max-rate"

func (s *topicSettings) register(f *pflag.FlagSet) {
	s.flags = f
	f.Int64Var(&s.rate, rateName, 0, "deliver at most so `MANY` a second; 0 is any number")
	f.StringArrayVarP(&s.attributes, "attribute", "a", nil, "attribute `NAME=VALUE`; may be repeated")
}

// read gives what was typed.
func (s *topicSettings) read() (rate *int64, attributes map[string]string, err error) {
	if s.flags.Changed(rateName) {
		if s.rate < 0 {
			return nil, nil, usage(fmt.Sprintf("--%s %d", rateName, s.rate), "want at least 0")
		}
		rate = &s.rate
	}
	for _, text := range s.attributes {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, nil, usage("--attribute "+quote(text), "want NAME=VALUE")
		}
		if attributes == nil {
			attributes = map[string]string{}
		}
		attributes[name] = value
	}
	return rate, attributes, nil
}

// attributesText is what a line says of attributes.
func attributesText(t *wire.Topic) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(t.Attributes)) {
		b.WriteString(", " + quote(name+"="+t.Attributes[name]))
	}
	return b.String()
}

func (a *app) topicCreateCommand() *cobra.Command {
	var s topicSettings
	queues := 0
	cmd := &cobra.Command{
		Use: "create TOPIC", Short: "Make a topic", Args: a.args(1, 1),
		Long: `Make a topic. The first message makes one as well; this is for one with other settings. A topic
that is there and is the same is no error; how many queues it has cannot be changed.`,
		Example: a.example("topic create orders --queues 16", "", "topic create push --max-rate 500", "no herd"),
	}
	cmd.Flags().IntVar(&queues, "queues", 0, "so `MANY` queues; default 8")
	s.register(cmd.Flags())
	r := a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		rate, attributes, err := s.read()
		if err != nil {
			return err
		}
		c, err := r.dial()
		if err != nil {
			return err
		}
		defer c.Close()
		ask := wire.NewTopic{Name: args[0], Attributes: attributes, MaxRate: rate}
		if cmd.Flags().Changed("queues") {
			ask.Queues = &queues
		}
		t, err := c.CreateTopic(cmd.Context(), ask)
		if err != nil {
			f := a.answered(cmd.Context(), "topic "+args[0]+" was not made", err)
			if f.code == exitConflict {
				f.next = fmt.Sprintf("change it: %s topic update %s%s (and the same flags; --queues cannot be changed)", a.self, args[0], r.argument())
			}
			return f
		}
		return a.one(t, fmt.Sprintf("%s  %s, %s%s", t.Name, several(t.Queues, "queue"), topicState(&t), attributesText(&t)))
	}
	return cmd
}

func (a *app) topicUpdateCommand() *cobra.Command {
	var s topicSettings
	cmd := &cobra.Command{
		Use: "update TOPIC", Short: "Change attributes of a topic", Args: a.args(1, 1),
		Long:    `Change attributes of a topic; those that are not named stay. An attribute without a value is removed.`,
		Example: a.example("topic update push --max-rate 500", "", "topic update push --max-rate 0", "no limit again", "topic update push -a owner=", ""),
	}
	s.register(cmd.Flags())
	r := a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		rate, attributes, err := s.read()
		if err != nil {
			return err
		}
		if rate == nil && attributes == nil {
			f := usage("nothing to change", "give --max-rate or --attribute")
			f.next = a.help(cmd)
			return f
		}
		c, err := r.dial()
		if err != nil {
			return err
		}
		defer c.Close()
		t, err := c.UpdateTopic(cmd.Context(), args[0], wire.TopicPatch{Attributes: attributes, MaxRate: rate})
		if err != nil {
			return a.answered(cmd.Context(), "topic "+args[0]+" was not changed", err)
		}
		return a.one(t, fmt.Sprintf("%s  %s%s", t.Name, topicState(&t), attributesText(&t)))
	}
	return cmd
}

// topicStepCommand makes a command that does something to each topic.
func (a *app) topicStepCommand(verb, done, short string, do func(*client.Client, context.Context, string) (wire.Topic, error)) *cobra.Command {
	cmd := &cobra.Command{Use: verb + " TOPIC...", Short: short, Args: a.args(1, -1), Example: a.example("topic "+verb+" orders", "")}
	r := a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.each(cmd.Context(), r, args, done, func(ctx context.Context, c *client.Client, name string) (any, string, error) {
			t, err := do(c, ctx, name)
			line := t.Name + "  " + done
			if t.Paused { // else what was held back is on its way
				line += fmt.Sprintf(", %s waiting", count(t.Waiting))
			}
			return t, line, err
		})
	}
	return cmd
}

// topicEndCommand makes a command that destroys what is in a topic.
func (a *app) topicEndCommand(use, verb, short string, do func(*client.Client, context.Context, string) (wire.Purged, error)) *cobra.Command {
	cmd := &cobra.Command{
		Use: use + " TOPIC", Short: short, Args: a.args(1, 1),
		Long: short + `. It says how much that is and wants the topic's name typed, unless --yes is given; it
cannot be undone. What is deleted will never be delivered; that holds after a crash.`,
		Example: a.example("topic "+use+" orders", "", "topic "+use+" orders --yes", "for a script", "topic "+use+" orders --dry-run", "only say how much"),
	}
	consent := a.consentFlags(cmd)
	r := a.serverFlag(cmd)
	a.outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, name := cmd.Context(), args[0]
		c, err := r.dial()
		if err != nil {
			return err
		}
		defer c.Close()
		undone := fmt.Sprintf("nothing of topic %s was touched", name)
		t, err := c.Topic(ctx, name)
		if err != nil {
			return a.answered(ctx, undone, err)
		}
		what := fmt.Sprintf("%s topic %s (%s waiting, %s delivered)", verb, t.Name, count(t.Waiting), count(t.Visible))
		if consent.dryRun {
			return a.one(t, "would "+what)
		}
		if err := consent.ask(ctx, what, t.Name); err != nil {
			return err
		}
		p, err := do(c, ctx, name)
		if err != nil {
			return a.answered(ctx, undone, err)
		}
		gone := "deleted"
		if verb == "empty" {
			gone = "empty"
		}
		return a.one(p, fmt.Sprintf("%s  %s: %s that waited and %s that could be read are gone", t.Name, gone, count(p.Waiting), count(p.Visible)))
	}
	return cmd
}
