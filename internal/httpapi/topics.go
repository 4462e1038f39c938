package httpapi

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/httpapi/wire"
	"github.com/duemq/duemq/internal/record"
)

// maxRate is the attribute that maxRate stands for.
const maxRate = "max_rate"

// topics lists topics, a page at a time.
func (h *Handler) topics(r *request) (*wire.Topics, error) {
	system, err := r.flag("system")
	if err != nil {
		return nil, err
	}
	page, cursor, err := namedPage(r, h.b.TopicList(system), func(t *broker.TopicInfo) string { return t.Name })
	if err != nil {
		return nil, err
	}
	out := wire.Topics{Topics: make([]wire.Topic, len(page)), Cursor: cursor}
	for i := range page {
		out.Topics[i] = *topic(&page[i])
	}
	return &out, nil
}

// topic makes the wire's topic of the broker's.
func topic(t *broker.TopicInfo) *wire.Topic {
	out := wire.Topic{
		Name: t.Name, Queues: t.Queues, MaxRate: t.MaxRate, Paused: t.Counts.Paused, System: t.System,
		Waiting: t.Counts.Waiting, Held: t.Counts.Held, Halves: t.Counts.Halves, Visible: t.Counts.Visible,
	}
	if len(t.Attributes) > 0 {
		out.Attributes = make(map[string]string, len(t.Attributes))
		for _, a := range t.Attributes {
			out.Attributes[a.Name] = a.Value
		}
	}
	for i, o := range t.Offsets {
		out.Offsets = append(out.Offsets, wire.QueueOffsets{Queue: i, Low: uint64(o.Low), Next: uint64(o.Next)})
	}
	return &out
}

// showTopic shows one topic.
func (h *Handler) showTopic(r *request) (*wire.Topic, error) { return h.topicNamed(r.path("topic")) }

func (h *Handler) topicNamed(name string) (*wire.Topic, error) {
	t, err := h.b.Topic(name)
	if err != nil {
		return nil, err
	}
	return topic(&t), nil
}

// makeTopic makes a topic; one that is there and is the same is answered with
// 200.
func (h *Handler) makeTopic(r *request, q *wire.NewTopic) (*wire.Topic, error) {
	attributes, err := attributesOf(q.Attributes, q.MaxRate)
	if err != nil {
		return nil, err
	}
	queues, err := queuesOf(q.Name, q.Queues)
	if err != nil {
		return nil, err
	}
	return h.createTopic(r, q.Name, queues, attributes)
}

// queuesOf is how many queues a topic is to have, 0 if nobody says. A 0 that is
// said is refused: it would be read as the default.
func queuesOf(topic string, given *int) (int, error) {
	if given == nil {
		return 0, nil
	}
	if *given < 1 || *given > broker.MaxQueues {
		return 0, fmt.Errorf("%w: %d queues for topic %q, want 1 to %d", broker.ErrInvalid, *given, topic, broker.MaxQueues)
	}
	return *given, nil
}

func (h *Handler) createTopic(r *request, name string, queues int, attributes map[string]string) (*wire.Topic, error) {
	_, err := h.b.Topic(name)
	fresh := err != nil
	t, err := h.b.CreateTopic(r.Context(), name, queues, propertiesOf(attributes))
	if errors.Is(err, broker.ErrExists) && (queues == 0 || queues == t.Queues) {
		err = fmt.Errorf("%w; PATCH /v1/topics/%s changes its attributes", err, segment(name))
	}
	if err != nil {
		return nil, err
	}
	r.status = http.StatusOK
	if fresh {
		r.status = http.StatusCreated
	}
	r.header("Location", "/v1/topics/"+segment(t.Name))
	return topic(&t), nil
}

// putTopic makes a topic, or gives the one that is there these attributes and no
// others.
func (h *Handler) putTopic(r *request, q *wire.TopicSettings) (*wire.Topic, error) {
	attributes, err := attributesOf(q.Attributes, q.MaxRate)
	if err != nil {
		return nil, err
	}
	name := r.path("topic")
	queues, err := queuesOf(name, q.Queues)
	if err != nil {
		return nil, err
	}
	was, err := h.b.Topic(name)
	if errors.Is(err, broker.ErrTopicUnknown) {
		return h.createTopic(r, name, queues, attributes)
	}
	if err != nil {
		return nil, err
	}
	if queues != 0 && queues != was.Queues {
		return nil, fmt.Errorf("%w: topic %q with %d queues, which cannot be changed; leave queues out", broker.ErrExists, name, was.Queues)
	}
	for _, a := range was.Attributes {
		if _, stays := attributes[a.Name]; !stays {
			attributes[a.Name] = "" // removes it
		}
	}
	r.header("Location", "/v1/topics/"+segment(name))
	return h.updateTopic(r, name, attributes)
}

// patchTopic changes attributes.
func (h *Handler) patchTopic(r *request, q *wire.TopicPatch) (*wire.Topic, error) {
	attributes, err := attributesOf(q.Attributes, q.MaxRate)
	if err != nil {
		return nil, err
	}
	return h.updateTopic(r, r.path("topic"), attributes)
}

func (h *Handler) updateTopic(r *request, name string, attributes map[string]string) (*wire.Topic, error) {
	t, err := h.b.UpdateTopic(r.Context(), name, attributes)
	if err != nil {
		return nil, err
	}
	return topic(&t), nil
}

// attributesOf joins attributes with the one that has a field of its own.
func attributesOf(given map[string]string, rate *int64) (map[string]string, error) {
	attributes := maps.Clone(given)
	if attributes == nil {
		attributes = make(map[string]string)
	}
	if rate == nil {
		return attributes, nil
	}
	if _, twice := attributes[maxRate]; twice {
		return nil, fmt.Errorf("%w: both maxRate and the attribute %s; give one", errBadRequest, maxRate)
	}
	attributes[maxRate] = strconv.FormatInt(*rate, 10)
	if *rate == 0 {
		attributes[maxRate] = "" // any
	}
	return attributes, nil
}

// propertiesOf gives attributes in the order of their names, without empty ones.
func propertiesOf(attributes map[string]string) []record.Property {
	var ps []record.Property
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if v := attributes[name]; v != "" {
			ps = append(ps, record.Property{Name: name, Value: v})
		}
	}
	return ps
}

// deleteTopic deletes a topic with everything in it.
func (h *Handler) deleteTopic(r *request) (*wire.Purged, error) {
	name := r.path("topic")
	if err := r.confirmed(name); err != nil {
		return nil, err
	}
	waiting, visible, err := h.b.DeleteTopic(r.Context(), name)
	return &wire.Purged{Waiting: waiting, Visible: visible}, err
}

// purgeTopic empties a topic.
func (h *Handler) purgeTopic(r *request) (*wire.Purged, error) {
	name := r.path("topic")
	if err := r.confirmed(name); err != nil {
		return nil, err
	}
	waiting, visible, err := h.b.PurgeTopic(r.Context(), name)
	return &wire.Purged{Waiting: waiting, Visible: visible}, err
}

// pauseTopic stops a topic from delivering.
func (h *Handler) pauseTopic(r *request) (*wire.Topic, error) {
	if err := h.b.PauseTopic(r.Context(), r.path("topic")); err != nil {
		return nil, err
	}
	return h.showTopic(r)
}

// resumeTopic lets a topic go on.
func (h *Handler) resumeTopic(r *request) (*wire.Topic, error) {
	if err := h.b.ResumeTopic(r.Context(), r.path("topic")); err != nil {
		return nil, err
	}
	return h.showTopic(r)
}
