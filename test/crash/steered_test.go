package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/test/crash/history"
)

// The topics that are steered as a whole.
const (
	topicPaused = "paused"
	topicRated  = "rated"
	topicPurged = "purged"
	topicBulk   = "bulk"
	topicPoison = "poison"

	rate      = 200        // messages a second of topicRated
	coroner   = "coroner"  // the one group of topicPoison
	attempts  = 3          // that it has
	bulkTag   = "bulk-"    // begins the tags by which messages are cancelled in bulk
	backoffMs = 20         // before each retry
	untilDead = 10_000     // attempts of the other groups
	rateName  = "max_rate" // attribute
)

// plan prepares the topics and groups that are unlike the others, and says so.
func (w *worker) plan() error {
	w.journal.put(history.Event{Kind: history.Planned, Topic: topicPurged, Plan: &history.Plan{Purged: true}})
	w.journal.put(history.Event{Kind: history.Planned, Topic: topicPoison, Plan: &history.Plan{Groups: []string{coroner}, Attempts: attempts}})
	most := map[string]int{coroner: attempts}
	for _, name := range groups() {
		most[name] = untilDead
	}
	for name, n := range most {
		config := broker.GroupConfig{MaxAttempts: n, Backoff: []time.Duration{backoffMs * time.Millisecond}}
		if _, err := w.b.CreateGroup(w.ctx, name, config); err != nil {
			return err
		}
	}
	for _, name := range []string{topicPaused, topicRated, topicPurged, topicBulk} {
		if _, err := w.b.Topic(name); errors.Is(err, broker.ErrTopicUnknown) {
			if _, err := w.b.CreateTopic(w.ctx, name, 0, nil); err != nil {
				return err
			}
		}
	}
	for _, op := range w.b.Operations() {
		w.stands(op)
	}
	return nil
}

// limit gives the rated topic a rate; 0 is any.
func (w *worker) limit(n int64) error {
	value := ""
	if n > 0 {
		value = strconv.FormatInt(n, 10)
	}
	op := w.journal.begin(history.Event{Kind: history.Limit, Topic: topicRated, Rate: n})
	_, err := w.b.UpdateTopic(w.ctx, topicRated, map[string]string{rateName: value})
	w.journal.end(op, history.Event{Kind: history.Limited}, err)
	return err
}

// hold pauses a topic, or lets it go on.
func (w *worker) hold(on bool) error {
	call := w.b.ResumeTopic
	if on {
		call = w.b.PauseTopic
	}
	op := w.journal.begin(history.Event{Kind: history.Hold, Topic: topicPaused, On: on})
	err := call(w.ctx, topicPaused)
	w.journal.end(op, history.Event{Kind: history.Held}, err)
	return err
}

// steered starts whoever pauses, limits, purges and cancels in bulk.
func (l *load) steered() {
	l.part(600, 25*time.Millisecond, func(r *rand.Rand) {
		switch p := r.IntN(10); {
		case p < 2:
			_ = l.hold(true)
		case p < 5:
			_ = l.hold(false)
		default:
			l.few(r, topicPaused, 1+r.IntN(8), func(*broker.Message, *history.Message) {})
		}
	})
	_ = l.limit(rate)
	l.part(610, 60*time.Millisecond, func(r *rand.Rand) { l.herd(r) })
	pause := 25 * time.Millisecond
	if l.Keep { // each segment with something purged waits for a carry of its own, of which there is one a second
		pause = 250 * time.Millisecond
	}
	l.part(620, pause, func(r *rand.Rand) { l.purger(r) })
	n := 0
	l.part(630, 50*time.Millisecond, func(r *rand.Rand) {
		n++
		l.bulk(r, fmt.Sprintf("%s%d-%d", bulkTag, l.Run, n))
	})
	if !l.Keep { // dead letters are kept no longer than other messages
		l.part(640, 15*time.Millisecond, func(r *rand.Rand) { l.few(r, topicPoison, 1+r.IntN(4), short(r)) })
		l.each(641, l.postMortem)
	}
}

// few sends some messages to a topic, changed a little.
func (l *load) few(r *rand.Rand, topic string, n int, change func(*broker.Message, *history.Message)) {
	msgs, noted := make([]broker.Message, n), make([]history.Message, n)
	for i := range msgs {
		msgs[i], noted[i] = l.message(r, topic)
		msgs[i].Delay, noted[i].Delay = relative(r)
		change(&msgs[i], &noted[i])
		noted[i].Tag = msgs[i].Tag
	}
	l.sendAll(topic, msgs, noted)
}

// short makes a delay a short one.
func short(r *rand.Rand) func(*broker.Message, *history.Message) {
	return func(m *broker.Message, noted *history.Message) { after(m, noted, 1+r.Int64N(50)) }
}

func after(m *broker.Message, noted *history.Message, ms int64) {
	m.Delay, noted.Delay = broker.Delay{Kind: broker.DelayAfter, Value: ms}, history.Delay{Kind: history.After, Value: ms}
}

// herd sends messages that fall due at one instant.
func (l *load) herd(r *rand.Rand) {
	at := time.Now().UnixMilli() + 20 + r.Int64N(100)
	l.few(r, topicRated, 1+r.IntN(30), func(m *broker.Message, noted *history.Message) {
		if r.IntN(5) > 0 {
			m.Delay, noted.Delay = broker.Delay{Kind: broker.DelayAt, Value: at}, history.Delay{Kind: history.At, Value: at}
		}
	})
}

// purger sends to a topic, receives from it and purges it, one after the other:
// so nothing that was sent before a purge was on its way to anybody.
func (l *load) purger(r *rand.Rand) {
	switch p := r.IntN(10); {
	case p < 5:
		l.few(r, topicPurged, 1+r.IntN(8), func(*broker.Message, *history.Message) {})
	case p < 9:
		for _, group := range groups() {
			l.ack(l.receive(l.until, group, topicPurged, maxGot, 0))
		}
	default:
		op := l.journal.begin(history.Event{Kind: history.Purge, Topic: topicPurged})
		_, _, err := l.b.PurgeTopic(l.ctx, topicPurged)
		l.journal.end(op, history.Event{Kind: history.Purged}, err)
	}
}

// bulk sends messages under a tag, some of which soon fall due, and cancels what
// waits of them.
func (l *load) bulk(r *rand.Rand, tag string) {
	l.few(r, topicBulk, 1+r.IntN(30), func(m *broker.Message, noted *history.Message) {
		m.Tag = tag
		noted.Hash = hash(m.Key, m.Tag, m.Body)
		if r.IntN(3) > 0 {
			after(m, noted, time.Hour.Milliseconds()+r.Int64N(1000))
		} else {
			after(m, noted, 1+r.Int64N(60))
		}
	})
	filter := broker.Filter{Topic: topicBulk, Tag: tag}
	op := l.journal.begin(history.Event{Kind: history.Bulk, Topic: topicBulk, Tag: tag})
	is, err := l.b.StartBulk(l.ctx, broker.Bulk{Kind: broker.BulkCancel, Filter: filter})
	l.journal.end(op, history.Event{Kind: history.Bulked, Operation: operation(&is)}, err)
	if err == nil && r.IntN(2) == 0 {
		if is, err = l.b.WaitOperation(l.until, is.ID); err == nil {
			l.stands(is)
		}
	}
}

func operation(is *broker.Operation) *history.Operation {
	return &history.Operation{ID: is.ID, State: string(is.State), Done: is.Done, Missed: is.Missed}
}

// stands writes down how a bulk operation stands.
func (w *worker) stands(is broker.Operation) {
	if strings.HasPrefix(is.Filter.Tag, bulkTag) {
		w.journal.put(history.Event{Kind: history.Operated, Tag: is.Filter.Tag, Operation: operation(&is)})
	}
}

// postMortem receives what poisons its receivers: most is given back, so that its
// attempts are used up, and some is buried.
func (l *load) postMortem(r *rand.Rand) {
	for _, h := range l.receive(l.until, coroner, topicPoison, 1+r.IntN(10), poll) {
		switch p := r.IntN(10); {
		case p < 5:
			l.nack(h, time.Duration(r.IntN(40))*time.Millisecond, false)
		case p < 6:
			l.nack(h, 0, true)
		case p < 7:
			op := l.journal.begin(history.Event{Kind: history.Bury, Numbers: []int{h.number}})
			_, err := l.b.Bury(l.ctx, h.lease, "poison")
			l.journal.end(op, history.Event{Kind: history.Buried}, err)
		case p < 8: // forgotten
		default:
			l.ack([]held{h})
		}
	}
}
