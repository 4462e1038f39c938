package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/duemq/duemq/internal/config"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// A selection is which waiting messages are meant.
type selection struct {
	query            wire.PendingQuery
	state            string
	from, to, within string
	zone             string
	where            string // more of the same, in one text
	all              bool   // everything, said in so many words
}

// rangeFlags registers the flags of a selection by topic and time.
func (s *selection) rangeFlags(f *pflag.FlagSet) {
	f.StringVar(&s.query.Topic, "topic", "", "only of that `TOPIC`")
	f.StringVar(&s.from, "from", "", "due at that `INSTANT` or later")
	f.StringVar(&s.to, "to", "", "due before that `INSTANT`")
	f.StringVar(&s.within, "within", "", "due so `SOON`: 1h")
	f.StringVar(&s.zone, "tz", "", "time `ZONE` of instants that name none; default this machine's")
}

// flags registers all flags of a selection.
func (s *selection) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	s.rangeFlags(f)
	f.StringVar(&s.query.Tag, "tag", "", "only with that `TAG`")
	f.StringVar(&s.query.Key, "key", "", "only with that `KEY`")
	f.StringSliceVar(&s.query.IDs, "id", nil, "only those of `IDS` or handles, separated by commas")
	f.StringVar(&s.state, "state", "", "only in that `STATE`: waiting, or paused for what is due and held back")
	f.BoolVar(&s.query.Overdue, "overdue", false, "only what is due and not delivered yet")
	f.StringVar(&s.where, "where", "", "the same in one `TEXT`: 'topic=orders tag=unpaid due<2026-12-01T09:00'")
	complete(cmd, "state", string(wire.StateWaiting), string(wire.StatePaused))
}

// whereLong documents --where.
const whereLong = `--where takes terms that all hold, separated by spaces or "and": topic=NAME, tag=TAG, key=KEY,
id=ID,ID, state=waiting or state=paused, due>=INSTANT, due<INSTANT, within=LONG, and overdue. There
are no other operators, no "or", and no spaces within a value.`

// bulkFlags registers what only a command has that changes all it selects.
func (s *selection) bulkFlags(f *pflag.FlagSet) {
	f.BoolVar(&s.all, "all", false, "everything that waits")
}

// read understands what was typed.
func (s *selection) read(a *app, cmd *cobra.Command) error {
	if err := s.readWhere(); err != nil {
		return err
	}
	if s.to != "" && s.within != "" {
		if err := a.exclusive(cmd, "to", "within"); err != nil {
			return err
		}
		return usage("--where "+quote(s.where), "due< and within both say where it ends; one of them at most")
	}
	for _, f := range []struct {
		name, text string
		to         *wire.Time
	}{{"from", s.from, &s.query.From}, {"to", s.to, &s.query.To}} {
		w := when{atName: f.name, atText: f.text, zone: s.zone}
		text, err := w.at(a.Zone)
		if err != nil {
			return err
		}
		if text == "" {
			continue
		}
		t, err := wire.ParseInstant(text, nil)
		if err != nil {
			return err
		}
		*f.to = wire.TimeOf(t)
	}
	switch s.query.State = wire.State(s.state); s.query.State {
	case "", wire.StateWaiting, wire.StatePaused:
	default:
		return usage("--state "+quote(s.state), "want waiting, or paused for what is due and held back")
	}
	if s.within == "" {
		return nil
	}
	d, err := wire.ParseDuration(s.within)
	if err != nil {
		return usage("--within "+quote(s.within), "%w", err)
	}
	s.query.Within = wire.Duration(d)
	return nil
}

// readWhere takes --where apart: terms that all hold, with or without "and"
// between them.
func (s *selection) readWhere() error {
	terms := []struct {
		name string
		to   *string
	}{
		{"topic=", &s.query.Topic},
		{"tag=", &s.query.Tag},
		{"key=", &s.query.Key},
		{"state=", &s.state},
		{"due>=", &s.from},
		{"due<", &s.to},
		{"within=", &s.within},
	}
	for term := range strings.FieldsSeq(s.where) {
		if term == "and" {
			continue
		}
		if term == "overdue" {
			s.query.Overdue = true
			continue
		}
		if ids, ok := strings.CutPrefix(term, "id="); ok {
			s.query.IDs = append(s.query.IDs, strings.Split(ids, ",")...)
			continue
		}
		at := slices.IndexFunc(terms, func(t struct {
			name string
			to   *string
		},
		) bool {
			return strings.HasPrefix(term, t.name)
		})
		if at < 0 {
			return badTerm(s.where, term)
		}
		value := strings.TrimPrefix(term, terms[at].name)
		if value == "" || *terms[at].to != "" {
			return usage("--where "+quote(s.where), "%s wants one value, and no flag that says the same", terms[at].name)
		}
		*terms[at].to = value
	}
	return nil
}

// badTerm refuses a term of --where, with the one that was meant.
func badTerm(where, term string) error {
	names := []string{"topic", "tag", "key", "id", "state", "due", "within", "overdue"}
	f := usage("--where "+quote(where), "%q is no term; want topic=, tag=, key=, id=, state=, due>=, due<, within= or overdue", term)
	name := term
	if at := strings.IndexAny(term, "=<>"); at >= 0 {
		name = term[:at]
	}
	if near, ok := config.Nearest(name, names); ok && near != name {
		f.next = "did you mean " + near + "?"
	}
	return f
}

// filter gives the selection for a bulk operation, which must not be everything
// by accident.
func (s *selection) filter(a *app, cmd *cobra.Command) (wire.Filter, error) {
	q := &s.query
	f := wire.Filter{
		All: s.all, Topic: q.Topic, Tag: q.Tag, Key: q.Key, IDs: q.IDs, From: q.From, To: q.To, Within: q.Within, State: q.State, Overdue: q.Overdue,
	}
	some := f.Topic != "" || f.Tag != "" || f.Key != "" || len(f.IDs) > 0 || f.From != 0 || f.To != 0 || f.Within != 0 || f.State != "" || f.Overdue
	switch {
	case s.all && some:
		return f, usage("--all", "it is everything; leave the other flags out")
	case !s.all && !some:
		u := usage("nothing selected", "say which messages: --topic, --key, --tag, --within, --where; or --all")
		u.next = a.help(cmd)
		return f, u
	}
	return f, nil
}
