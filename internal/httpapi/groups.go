package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/httpapi/wire"
	"github.com/duemq/duemq/internal/record"
)

// Where a group may begin, beside an instant.
const (
	earliest = "earliest"
	latest   = "latest"
)

// groups lists consumer groups, a page at a time.
func (h *Handler) groups(r *request) (*wire.Groups, error) {
	page, cursor, err := namedPage(r, h.b.GroupList(), func(g *broker.GroupInfo) string { return g.Name })
	if err != nil {
		return nil, err
	}
	out := wire.Groups{Groups: make([]wire.Group, len(page)), Cursor: cursor}
	for i := range page {
		out.Groups[i] = *group(&page[i])
	}
	return &out, nil
}

// group makes the wire's group of the broker's.
func group(g *broker.GroupInfo) *wire.Group {
	c := &g.Config
	out := wire.Group{
		Name: g.Name, Start: startText(c), MaxAttempts: c.MaxAttempts, Backoff: make([]wire.Duration, len(c.Backoff)),
		InflightMax: c.InflightMax, Invisible: wire.Duration(c.Invisible), Dead: g.Dead,
	}
	for i, d := range c.Backoff {
		out.Backoff[i] = wire.Duration(d)
	}
	for i := range g.Topics {
		t := &g.Topics[i]
		w := wire.GroupTopic{Topic: t.Topic, Lag: t.Lag, Inflight: t.Inflight, Retrying: t.Retrying, Skipped: t.Skipped}
		for _, q := range t.Queues {
			w.Queues = append(w.Queues, wire.GroupQueue{
				Queue: q.Queue, Low: uint64(q.Low), Next: uint64(q.Next), Base: uint64(q.Base), Pulled: uint64(q.Pulled),
				Lag: q.Lag, Inflight: q.Inflight, Retrying: q.Retrying, Skipped: q.Skipped,
			})
		}
		out.Topics = append(out.Topics, w)
	}
	return &out
}

func startText(c *broker.GroupConfig) string {
	switch c.Start {
	case broker.StartLatest:
		return latest
	case broker.StartAt:
		return wire.Time(c.StartTime).String()
	default:
		return earliest
	}
}

// configure gives a configuration what the settings say; what they do not say
// stays.
func configure(c *broker.GroupConfig, s *wire.GroupSettings, name string) error {
	if err := refuseZeros(name, s); err != nil {
		return err
	}
	switch s.Start {
	case "":
	case earliest:
		c.Start, c.StartTime = broker.StartEarliest, 0
	case latest:
		c.Start, c.StartTime = broker.StartLatest, 0
	default:
		t, err := instant(s.Start, "")
		if err != nil {
			return fmt.Errorf("start: want %s, %s or an instant: %w", earliest, latest, err)
		}
		c.Start, c.StartTime = broker.StartAt, int64(wire.TimeOf(t))
	}
	if s.MaxAttempts != nil {
		c.MaxAttempts = *s.MaxAttempts
	}
	if s.Backoff != nil {
		c.Backoff = make([]time.Duration, len(s.Backoff))
		for i, d := range s.Backoff {
			c.Backoff[i] = time.Duration(d)
		}
	}
	if s.InflightMax != nil {
		c.InflightMax = *s.InflightMax
	}
	if s.Invisible != nil {
		c.Invisible = time.Duration(*s.Invisible)
	}
	return nil
}

// refuseZeros refuses settings that say 0, which the broker would read as the
// default.
func refuseZeros(name string, s *wire.GroupSettings) error {
	switch {
	case s.MaxAttempts != nil && *s.MaxAttempts == 0:
		return fmt.Errorf("%w: group %q with 0 attempts, want 1 to %d", broker.ErrInvalid, name, broker.MaxAttempts)
	case s.InflightMax != nil && *s.InflightMax == 0:
		return fmt.Errorf("%w: group %q with 0 messages in flight, want 1 to %d", broker.ErrInvalid, name, broker.MaxInflight)
	case s.Invisible != nil && *s.Invisible == 0:
		return fmt.Errorf("%w: group %q with leases of 0s, want 1ms to %v", broker.ErrInvalid, name, broker.MaxInvisible)
	}
	return nil
}

// showGroup shows one group.
func (h *Handler) showGroup(r *request) (*wire.Group, error) {
	g, err := h.b.Group(r.path("group"))
	if err != nil {
		return nil, err
	}
	return group(&g), nil
}

// makeGroup makes a group; one that is there and is the same is answered with
// 200.
func (h *Handler) makeGroup(r *request, q *wire.NewGroup) (*wire.Group, error) {
	return h.createGroup(r, q.Name, &q.GroupSettings)
}

func (h *Handler) createGroup(r *request, name string, s *wire.GroupSettings) (*wire.Group, error) {
	var c broker.GroupConfig
	if err := configure(&c, s, name); err != nil {
		return nil, err
	}
	_, err := h.b.Group(name)
	fresh := err != nil
	g, err := h.b.CreateGroup(r.Context(), name, c)
	if errors.Is(err, broker.ErrExists) {
		err = fmt.Errorf("%w; PATCH /v1/groups/%s changes it", err, segment(name))
	}
	if err != nil {
		return nil, err
	}
	r.status = http.StatusOK
	if fresh {
		r.status = http.StatusCreated
	}
	r.header("Location", "/v1/groups/"+segment(g.Name))
	return group(&g), nil
}

// putGroup makes a group, or gives the one that is there this configuration.
func (h *Handler) putGroup(r *request, q *wire.GroupSettings) (*wire.Group, error) {
	name := r.path("group")
	if _, err := h.b.Group(name); errors.Is(err, broker.ErrGroupUnknown) {
		return h.createGroup(r, name, q)
	}
	r.header("Location", "/v1/groups/"+segment(name))
	return h.updateGroup(r, broker.GroupConfig{}, q)
}

// patchGroup changes what is given of a group's configuration.
func (h *Handler) patchGroup(r *request, q *wire.GroupSettings) (*wire.Group, error) {
	g, err := h.b.Group(r.path("group"))
	if err != nil {
		return nil, err
	}
	return h.updateGroup(r, g.Config, q)
}

func (h *Handler) updateGroup(r *request, c broker.GroupConfig, s *wire.GroupSettings) (*wire.Group, error) {
	name := r.path("group")
	if err := configure(&c, s, name); err != nil {
		return nil, err
	}
	g, err := h.b.UpdateGroup(r.Context(), name, c)
	if err != nil {
		return nil, err
	}
	return group(&g), nil
}

// deleteGroup deletes a group with its positions and its dead letters.
func (h *Handler) deleteGroup(r *request) error {
	name := r.path("group")
	if err := r.confirmed(name); err != nil {
		return err
	}
	return h.b.DeleteGroup(r.Context(), name)
}

// groupOffsets gives a pull consumer's next offsets.
func (h *Handler) groupOffsets(r *request) (*wire.Offsets, error) {
	topic, err := r.needed("topic")
	if err != nil {
		return nil, err
	}
	offsets, err := h.b.Position(r.path("group"), topic)
	if err != nil {
		return nil, err
	}
	out := wire.Offsets{Offsets: make(map[int]wire.Number, len(offsets))}
	for q, o := range offsets {
		out.Offsets[q] = wire.Number(o)
	}
	return &out, nil
}

// needed reads a parameter of the query that must be there.
func (r *request) needed(name string) (string, error) {
	v := r.text(name)
	if v == "" {
		return "", fmt.Errorf("%w: no %s; name it: ?%s=orders", errBadRequest, name, name)
	}
	return v, nil
}

// commitOffsets notes a pull consumer's next offsets.
func (h *Handler) commitOffsets(r *request, q *wire.Offsets) error {
	topic, err := r.needed("topic")
	if err != nil {
		return err
	}
	if len(q.Offsets) == 0 {
		return fmt.Errorf(`%w: no offsets; give {"offsets":{"0":"12"}}, by queue`, errBadRequest)
	}
	offsets := make(map[int]record.Offset, len(q.Offsets))
	for queue, o := range q.Offsets {
		if o < 0 {
			return fmt.Errorf("%w: offset %d of queue %d, want 0 or more", errBadRequest, o, queue)
		}
		offsets[queue] = record.Offset(o)
	}
	return h.b.Commit(r.Context(), r.path("group"), topic, offsets)
}

// reset has a group go on elsewhere.
func (h *Handler) reset(r *request, q *wire.Reset) (*wire.ResetReply, error) {
	to, err := position(q)
	if err != nil {
		return nil, err
	}
	queues, err := h.b.Reset(r.Context(), r.path("group"), q.Topic, to, q.DryRun)
	if err != nil {
		return nil, err
	}
	out := wire.ResetReply{DryRun: q.DryRun, Queues: make([]wire.ResetQueue, len(queues))}
	for i, g := range queues {
		out.Queues[i] = wire.ResetQueue{Queue: g.Queue, Base: uint64(g.Base), Pulled: uint64(g.Pulled), To: uint64(g.To)}
	}
	return &out, nil
}

// position reads where a reset goes.
func position(q *wire.Reset) (broker.Position, error) {
	switch {
	case (q.To != "") == (q.Offset != nil):
		return broker.Position{}, fmt.Errorf("%w: give one of to (%s, %s or an instant) and offset", errBadRequest, earliest, latest)
	case q.Offset != nil:
		if int64(*q.Offset) < 0 {
			return broker.Position{}, fmt.Errorf("%w: offset %d, want less than 2^63", errBadRequest, *q.Offset)
		}
		return broker.Position{Kind: broker.PositionOffset, Value: int64(*q.Offset)}, nil
	case q.To == earliest:
		return broker.Position{Kind: broker.PositionEarliest}, nil
	case q.To == latest:
		return broker.Position{Kind: broker.PositionLatest}, nil
	}
	t, err := instant(q.To, q.Zone)
	if err != nil {
		return broker.Position{}, fmt.Errorf("to: want %s, %s or an instant: %w", earliest, latest, err)
	}
	return broker.Position{Kind: broker.PositionAt, Value: int64(wire.TimeOf(t))}, nil
}

// lock gives a client queues of a topic.
func (h *Handler) lock(r *request, q *wire.Lock) (*wire.LockReply, error) {
	held, err := h.b.LockQueues(r.path("group"), q.Client, q.Topic, q.Queues, time.Duration(q.TTL))
	if held == nil {
		held = []int{}
	}
	return &wire.LockReply{Held: held}, err
}

// unlock takes them back.
func (h *Handler) unlock(r *request, q *wire.Unlock) error {
	return h.b.UnlockQueues(r.path("group"), q.Client, q.Topic, q.Queues)
}
