package wire

// Stats are figures of the broker since it was started, unless said otherwise.
type Stats struct {
	Name     string        `json:"name"` // of the broker
	Clock    Clock         `json:"clock"`
	Stamp    Time          `json:"stamp"` // log time
	Messages MessageStats  `json:"messages"`
	Schedule ScheduleStats `json:"schedule"`
	Wakeups  WakeupStats   `json:"wakeups"`
	Log      LogStats      `json:"log"`
	Index    IndexStats    `json:"index"`
	Recovery Recovery      `json:"recovery"`
}

// MessageStats count messages in all topics.
type MessageStats struct {
	Waiting int64  `json:"waiting,string"`
	Visible uint64 `json:"visible,string"` // ever became visible
	Overdue bool   `json:"overdue"`        // something due is not moved yet
	NextDue Time   `json:"nextDue,omitzero"`
}

// ScheduleStats are the delay levels in the form of RocketMQ's internal topic.
type ScheduleStats struct {
	Topic   string       `json:"topic"`   // SCHEDULE_TOPIC_XXXX
	Queues  []LevelStats `json:"queues"`  // queue = level - 1
	AnyTime LevelCount   `json:"anyTime"` // what waits for a time that is no level
}

// LevelStats are the figures of one delay level.
type LevelStats struct {
	Queue int      `json:"queue"`
	Level int      `json:"level"`
	Delay Duration `json:"delay"`
	LevelCount
}

// A LevelCount counts the messages of a level since the store was made.
type LevelCount struct {
	Waiting         int64  `json:"waiting,string"`         // less than the difference if some were cancelled or moved
	DeliveredOffset uint64 `json:"deliveredOffset,string"` // delivered from it
	TotalOffset     uint64 `json:"totalOffset,string"`     // ever filed under it
}

// WakeupStats count how often the broker woke for something due.
type WakeupStats struct {
	Total     int64 `json:"total,string"`
	Fruitless int64 `json:"fruitless,string"` // found nothing due
	Ticks     int64 `json:"ticks,string"`     // batches written because something fell due
}

// LogStats are figures of the log.
type LogStats struct {
	Batches     uint64  `json:"batches,string"` // index of the last one
	Bytes       uint64  `json:"bytes,string"`   // position of the end
	Syncs       int64   `json:"syncs,string"`
	SyncSeconds float64 `json:"syncSeconds"` // in all
	ClockSteps  int64   `json:"clockSteps,string"`
}

// IndexStats are figures of the index.
type IndexStats struct {
	Bytes       uint64  `json:"bytes,string"` // on disk
	Cuts        int64   `json:"cuts,string"`
	CutSeconds  float64 `json:"cutSeconds"` // in all
	CutFailures int64   `json:"cutFailures,string"`
}

// Recovery says what the start found.
type Recovery struct {
	New     bool     `json:"new"` // the store was made by this start
	Batches uint64   `json:"batches,string"`
	Waiting int64    `json:"waiting,string"`
	Overdue bool     `json:"overdue"` // something fell due while nobody was there
	Took    Duration `json:"took"`
}

// A Status is the answer of a probe that is content.
type Status struct {
	Status string `json:"status"` // ok or ready
}
