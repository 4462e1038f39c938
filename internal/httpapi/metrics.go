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
const (
	maxTopicLabels = 200
	otherTopics    = "(other)"
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
	descRecovery    = desc("recovery_seconds", "How long the start took.")
	descInflight    = desc("http_inflight", "Requests being answered; a receive counts apart.", "kind")
)

// Describe names the figures.
func (figures) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descPending, descVisible, descLevel, descOverdue, descNextDue, descNow, descSuspect, descSteps, descWakeups,
		descTicks, descFsync, descCut, descCutFailures, descBatches, descLogBytes, descIndexBytes, descRecovery, descInflight,
	} {
		ch <- d
	}
}

// Collect reads them.
func (f figures) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	b := f.h.b
	s := b.Stats()
	overdue := false
	for _, t := range bounded(b.Topics()) {
		gauge(descPending, float64(t.Waiting), t.Name)
		count(descVisible, float64(t.Visible), t.Name)
		overdue = t.Overdue
	}
	for i, l := range b.Levels() {
		gauge(descLevel, float64(l.Waiting), strconv.Itoa(i))
	}
	if due, ok := b.NextDue(); ok {
		gauge(descNextDue, float64(due)/1e3)
	}
	gauge(descOverdue, oneIf(overdue))
	gauge(descNow, float64(b.Now())/1e3)
	gauge(descSuspect, oneIf(b.Suspect()))
	count(descSteps, float64(s.ClockSteps))
	count(descWakeups, float64(s.Wakeups-s.Fruitless), "true")
	count(descWakeups, float64(s.Fruitless), "false")
	count(descTicks, float64(s.Ticks))
	ch <- prometheus.MustNewConstSummary(descFsync, uint64(s.Syncs), s.SyncTime.Seconds(), nil)
	ch <- prometheus.MustNewConstSummary(descCut, uint64(s.Cuts), s.CutTime.Seconds(), nil)
	count(descCutFailures, float64(s.CutFailures))
	count(descBatches, float64(s.LogBatches))
	count(descLogBytes, float64(s.LogBytes))
	gauge(descIndexBytes, float64(s.Index.DiskBytes))
	gauge(descRecovery, b.Recovered().Took.Seconds())
	gauge(descInflight, float64(f.h.requests.taken.Load()), "request")
	gauge(descInflight, float64(f.h.polls.taken.Load()), "receive")
}

// bounded sums the topics beyond the limit.
func bounded(topics []broker.TopicCount) []broker.TopicCount {
	if len(topics) <= maxTopicLabels {
		return topics
	}
	rest := broker.TopicCount{Name: otherTopics, Counts: topics[0].Counts}
	rest.Waiting, rest.Visible = 0, 0
	for _, t := range topics[maxTopicLabels:] {
		rest.Waiting += t.Waiting
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
