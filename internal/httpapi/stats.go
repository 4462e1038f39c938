package httpapi

import (
	"fmt"
	"net/http"
	"runtime"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// scheduleTopic is the internal topic in whose form levels are shown.
const scheduleTopic = "SCHEDULE_TOPIC_XXXX"

// stats gives the broker's figures.
func (h *Handler) stats(*request) (*wire.Stats, error) {
	c, err := h.b.Counts("")
	if err != nil {
		return nil, err
	}
	s, found := h.b.Stats(), h.b.Recovered()
	out := wire.Stats{
		Name: h.b.Name(), Clock: *h.clockNow(), Stamp: wire.Time(s.Stamp),
		Messages: wire.MessageStats{Waiting: c.Waiting, Visible: c.Visible, Overdue: c.Overdue},
		Schedule: h.schedule(),
		Wakeups:  wire.WakeupStats{Total: s.Wakeups, Fruitless: s.Fruitless, Ticks: s.Ticks},
		Log: wire.LogStats{
			Batches: s.LogBatches, Bytes: s.LogBytes, Syncs: s.Syncs,
			SyncSeconds: s.SyncTime.Seconds(), ClockSteps: s.ClockSteps,
		},
		Index: wire.IndexStats{
			Bytes: uint64(max(s.Index.DiskBytes, 0)), Cuts: s.Cuts, CutSeconds: s.CutTime.Seconds(), CutFailures: s.CutFailures,
		},
		Recovery: wire.Recovery{
			New: found.New, Batches: found.Replayed, Waiting: found.Waiting,
			Overdue: found.Overdue, Took: wire.Duration(found.Took.Round(time.Microsecond)),
		},
	}
	if due, ok := h.b.NextDue(); ok {
		out.Messages.NextDue = wire.Time(due)
	}
	return &out, nil
}

// schedule shows the delay levels as the queues of RocketMQ's internal topic.
func (h *Handler) schedule() wire.ScheduleStats {
	table, levels := h.b.LevelTable(), h.b.Levels()
	out := wire.ScheduleStats{Topic: scheduleTopic, AnyTime: levelCount(levels[0]), Queues: []wire.LevelStats{}}
	for i, l := range levels[1:] {
		q := wire.LevelStats{Queue: i, Level: i + 1, LevelCount: levelCount(l)}
		if i < len(table) {
			q.Delay = wire.Duration(table[i])
		}
		out.Queues = append(out.Queues, q)
	}
	return out
}

func levelCount(l broker.LevelCount) wire.LevelCount {
	return wire.LevelCount{Waiting: l.Waiting, DeliveredOffset: l.Delivered, TotalOffset: l.Total}
}

func (h *Handler) clockNow() *wire.Clock {
	return &wire.Clock{Now: wire.Time(h.b.Now()), Suspect: h.b.Suspect()}
}

// acceptClock believes the machine's clock as it is.
func (h *Handler) acceptClock(*request) (*wire.Clock, error) {
	if err := h.b.AcceptClock(); err != nil {
		return nil, err
	}
	return h.clockNow(), nil
}

// health says whether a restart would help.
func (h *Handler) health(*request) (*wire.Status, error) {
	return &wire.Status{Status: "ok"}, h.b.Err()
}

// ready says whether the server should get traffic.
func (h *Handler) ready(*request) (*wire.Status, error) {
	if h.draining.Load() {
		return nil, fmt.Errorf("%w: send nothing more here", broker.ErrDraining)
	}
	return &wire.Status{Status: "ready"}, h.b.Ready()
}

// version says what runs.
func (h *Handler) version(*request) (*wire.Version, error) {
	return &wire.Version{Version: h.o.Version, Go: runtime.Version()}, nil
}

// showMetrics gives the figures to Prometheus.
func (h *Handler) showMetrics(w http.ResponseWriter, r *request) error {
	h.metrics.show.ServeHTTP(w, r.Request)
	return nil
}
