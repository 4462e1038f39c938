package httpapi

import (
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/duemq/duemq/internal/broker"
)

// maxTopicLabels bounds the topics that have series of their own: those made
// first. The others are summed under otherTopics, which cannot be a topic's name.
// Of groups beyond maxGroupLabels only the dead letters are summed.
const (
	maxTopicLabels = 200
	otherTopics    = "(other)"
	maxGroupLabels = 200
)

// metrics is a registry of its own with the broker's figures and the door's.
type metrics struct {
	show     http.Handler
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics(h *Handler) *metrics {
	reg := prometheus.NewRegistry()
	m := &metrics{
		show: promhttp.HandlerFor(reg, promhttp.HandlerOpts{MaxRequestsInFlight: 4}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "duemq_http_requests_total", Help: "Requests answered, by route and status.",
		}, []string{"route", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "duemq_http_request_seconds", Help: "Time to answer, waiting included.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .1, .5, 1, 10, 60},
		}, []string{"route"}),
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "duemq_build_info", Help: "What runs; always 1.",
	}, []string{"version", "go"})
	build.WithLabelValues(h.o.Version, runtime.Version()).Set(1)
	reg.MustRegister(m.requests, m.seconds, build, figures{h},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// answered counts a request. route is the mux's pattern, so the number of
// series is bounded.
func (m *metrics) answered(route string, status int, took time.Duration) {
	if route == "" {
		route = "none"
	}
	if status == 0 {
		status = http.StatusOK
	}
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(route).Observe(took.Seconds())
}

// figures reads the broker when Prometheus asks.
type figures struct{ h *Handler }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("duemq_"+name, help, labels, nil)
}

// The broker's figures. Those with _total count from the start of the process.
var (
	descPending     = desc("pending_messages", "Messages that wait.", "topic")
	descHeld        = desc("held_messages", "Messages that are due and held back by their topic.", "topic")
	descHalves      = desc("half_messages", "Half messages, whose transactions have not ended.", "topic")
	descVisible     = desc("visible_messages_total", "Messages that ever became visible.", "topic")
	descLevel       = desc("level_pending_messages", "Messages that wait by delay level; 0 is any other time.", "level")
	descOverdue     = desc("overdue", "1 while something due has not been moved to its queue.")
	descNextDue     = desc("next_due_timestamp_seconds", "Due of the first message that waits; absent when none does.")
	descNow         = desc("clock_timestamp_seconds", "What the broker takes for the time.")
	descSuspect     = desc("clock_suspect", "1 while the machine's clock is not believed: nothing falls due.")
	descSteps       = desc("clock_steps_total", "Steps of the machine's clock that were followed.")
	descWakeups     = desc("wakeups_total", "Wake-ups for something due; found is false when nothing was.", "found")
	descTicks       = desc("ticks_total", "Batches written because something fell due.")
	descFsync       = desc("fsync_seconds", "Syncs of the log.")
	descCut         = desc("cut_seconds", "Cuts written to the index.")
	descCutFailures = desc("cut_failures_total", "Cuts postponed.")
	descBatches     = desc("log_batches_total", "Index of the last batch of the log.")
	descLogBytes    = desc("log_bytes_total", "Position of the end of the log.")
	descIndexBytes  = desc("index_disk_bytes", "Bytes of the index on disk.")
	descLogFirst    = desc("log_first_position_bytes", "Position from which the log is kept.")
	descTrim        = desc("trim_timestamp_seconds", "What became visible before is given up; 0 when nothing was.")
	descCarried     = desc("carried_messages_total", "Messages whose bytes were moved out of old segments.")
	descDamaged     = desc("damaged_messages_total", "Messages that could not be moved, for their bytes are damaged.")
	descRolledBack  = desc("rolled_back_transactions_total", "Transactions whose producer never answered.")
	descOperations  = desc("operations_running", "Bulk operations that run.")
	descLag         = desc("group_lag_messages", "Messages that are visible and that the group is not finished with.", "group")
	descLeased      = desc("group_inflight_messages", "Of these, leased.", "group")
	descRetrying    = desc("group_retrying_messages", "Of these, given back and waiting for their retry.", "group")
	descSkipped     = desc("group_skipped_messages_total", "Messages that retention took before the group was finished with them.", "group")
	descDead        = desc("dead_letters", "Dead letters, neither redriven nor purged.", "group")
	descRecovery    = desc("recovery_seconds", "How long the start took.")
	descInflight    = desc("http_inflight", "Requests being answered; a receive counts apart.", "kind")
)

// Describe names the figures.
func (figures) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descPending, descHeld, descHalves, descVisible, descLevel, descOverdue, descNextDue, descNow, descSuspect, descSteps, descWakeups,
		descTicks, descFsync, descCut, descCutFailures, descBatches, descLogBytes, descLogFirst, descTrim, descCarried, descDamaged,
		descRolledBack, descOperations, descIndexBytes, descLag, descLeased, descRetrying, descSkipped, descDead, descRecovery, descInflight,
	} {
		ch <- d
	}
}

// A sink takes figures.
type sink chan<- prometheus.Metric

func (s sink) gauge(d *prometheus.Desc, v float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (s sink) count(d *prometheus.Desc, v float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
}

// Collect reads them.
func (f figures) Collect(ch chan<- prometheus.Metric) {
	out, b := sink(ch), f.h.b
	f.topics(out)
	f.groups(out)
	f.log(out)
	for i, l := range b.Levels() {
		out.gauge(descLevel, float64(l.Waiting), strconv.Itoa(i))
	}
	if due, ok := b.NextDue(); ok {
		out.gauge(descNextDue, float64(due)/1e3)
	}
	running := 0
	for _, op := range b.Operations() {
		if op.State == broker.OperationRunning {
			running++
		}
	}
	out.gauge(descOperations, float64(running))
	out.gauge(descNow, float64(b.Now())/1e3)
	out.gauge(descSuspect, oneIf(b.Suspect()))
	out.gauge(descRecovery, b.Recovered().Took.Seconds())
	out.gauge(descInflight, float64(f.h.requests.taken.Load()), "request")
	out.gauge(descInflight, float64(f.h.polls.taken.Load()), "receive")
}

func (f figures) topics(out sink) {
	overdue := false
	for _, t := range bounded(f.h.b.Topics()) {
		out.gauge(descPending, float64(t.Waiting), t.Name)
		out.gauge(descHeld, float64(t.Held), t.Name)
		out.gauge(descHalves, float64(t.Halves), t.Name)
		out.count(descVisible, float64(t.Visible), t.Name)
		overdue = t.Overdue
	}
	out.gauge(descOverdue, oneIf(overdue))
}

func (f figures) groups(out sink) {
	all := f.h.b.GroupList()
	var rest int64
	for i := range all {
		if i >= maxGroupLabels {
			rest += all[i].Dead
			continue
		}
		out.gauge(descDead, float64(all[i].Dead), all[i].Name)
		g, err := f.h.b.Group(all[i].Name)
		if err != nil {
			continue // deleted in this moment
		}
		var sum broker.GroupTopic
		for _, t := range g.Topics {
			sum.Lag += t.Lag
			sum.Inflight += t.Inflight
			sum.Retrying += t.Retrying
			sum.Skipped += t.Skipped
		}
		out.gauge(descLag, float64(sum.Lag), g.Name)
		out.gauge(descLeased, float64(sum.Inflight), g.Name)
		out.gauge(descRetrying, float64(sum.Retrying), g.Name)
		out.count(descSkipped, float64(sum.Skipped), g.Name)
	}
	if len(all) > maxGroupLabels {
		out.gauge(descDead, float64(rest), otherTopics)
	}
}

func (f figures) log(out sink) {
	s, kept := f.h.b.Stats(), f.h.b.RetentionInfo()
	out.count(descSteps, float64(s.ClockSteps))
	out.count(descWakeups, float64(s.Wakeups-s.Fruitless), "true")
	out.count(descWakeups, float64(s.Fruitless), "false")
	out.count(descTicks, float64(s.Ticks))
	out <- prometheus.MustNewConstSummary(descFsync, uint64(s.Syncs), s.SyncTime.Seconds(), nil)
	out <- prometheus.MustNewConstSummary(descCut, uint64(s.Cuts), s.CutTime.Seconds(), nil)
	out.count(descCutFailures, float64(s.CutFailures))
	out.count(descBatches, float64(s.LogBatches))
	out.count(descLogBytes, float64(s.LogBytes))
	out.gauge(descLogFirst, float64(s.LogFirst))
	out.gauge(descTrim, float64(kept.Trim)/1e3)
	out.count(descCarried, float64(s.Carried))
	out.count(descDamaged, float64(s.Damaged))
	out.count(descRolledBack, float64(s.RolledBack))
	out.gauge(descIndexBytes, float64(s.Index.DiskBytes))
}

// bounded sums the topics beyond the limit.
func bounded(topics []broker.TopicCount) []broker.TopicCount {
	if len(topics) <= maxTopicLabels {
		return topics
	}
	rest := broker.TopicCount{Name: otherTopics, Counts: topics[0].Counts}
	rest.Waiting, rest.Held, rest.Halves, rest.Visible = 0, 0, 0, 0
	for _, t := range topics[maxTopicLabels:] {
		rest.Waiting += t.Waiting
		rest.Held += t.Held
		rest.Halves += t.Halves
		rest.Visible += t.Visible
	}
	return append(topics[:maxTopicLabels:maxTopicLabels], rest)
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
