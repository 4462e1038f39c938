package wire

// A Group is a consumer group, and how it stands.
type Group struct {
	Name        string       `json:"name"`
	Start       string       `json:"start"`       // where it begins in a queue: earliest, latest, or an instant
	MaxAttempts int          `json:"maxAttempts"` // then a message is a dead letter
	Backoff     []Duration   `json:"backoff"`     // before each retry; the last one repeats
	InflightMax int          `json:"inflightMax"` // messages of a queue leased at once
	Invisible   Duration     `json:"invisible"`   // how long a message is leased, unless a receive says it
	Topics      []GroupTopic `json:"topics,omitempty"`
	Dead        int64        `json:"dead,string"` // dead letters, neither redriven nor purged
}

// A GroupTopic tells how a group stands in a topic in which it has begun.
type GroupTopic struct {
	Topic    string       `json:"topic"`
	Lag      int64        `json:"lag,string"`      // visible and not finished
	Inflight int64        `json:"inflight,string"` // of these, leased now
	Retrying int64        `json:"retrying,string"` // of these, given back and waiting for their back-off
	Skipped  uint64       `json:"skipped,string"`  // that retention took before the group was finished with them
	Queues   []GroupQueue `json:"queues,omitempty"`
}

// A GroupQueue tells how a group stands in a queue.
type GroupQueue struct {
	Queue    int    `json:"queue"`
	Low      uint64 `json:"low,string"`    // the first offset that is kept
	Next     uint64 `json:"next,string"`   // that becomes visible next
	Base     uint64 `json:"base,string"`   // everything below is finished
	Pulled   uint64 `json:"pulled,string"` // a pull consumer's next
	Lag      int64  `json:"lag,string"`
	Inflight int64  `json:"inflight,string"`
	Retrying int64  `json:"retrying,string"`
	Skipped  uint64 `json:"skipped,string"`
}

// A Groups is a page of groups, by name, without their topics.
type Groups struct {
	Groups []Group `json:"groups"`
	Cursor string  `json:"cursor,omitempty"` // of the next page; absent at the end
}

// A NewGroup asks to make a consumer group. What is absent is the default.
type NewGroup struct {
	Name string `json:"name"`
	GroupSettings
}

// GroupSettings say how a group consumes. What is absent is at its default, or
// stays; 0 is refused.
type GroupSettings struct {
	Start       string     `json:"start,omitempty"`       // earliest (default), latest, or an instant: what became visible then or later
	MaxAttempts *int       `json:"maxAttempts,omitempty"` // default 17: RocketMQ's 16 retries
	Backoff     []Duration `json:"backoff,omitempty"`     // before each retry; the last one repeats. Default the delay levels from 3 (10s) on
	InflightMax *int       `json:"inflightMax,omitempty"` // messages of a queue leased at once, default and limit 10000
	Invisible   *Duration  `json:"invisible,omitempty"`   // default 30s
}

// Offsets are a pull consumer's next offsets by queue: {"0":"12","1":"9"}.
type Offsets struct {
	Offsets map[int]Number `json:"offsets"`
}

// A Reset asks to have a group go on elsewhere in all queues of a topic. Exactly
// one of To and Offset is given.
type Reset struct {
	Topic  string  `json:"topic"`
	To     string  `json:"to,omitempty"`            // earliest, latest, or an instant: what became visible then or later
	Zone   string  `json:"tz,omitempty"`            // IANA zone of an instant that names none
	Offset *uint64 `json:"offset,omitempty,string"` // that offset, or the nearest one that is kept
	DryRun bool    `json:"dryRun,omitempty"`        // only say what would be
}

// A ResetReply tells how each queue stood, and where the group goes on in it.
type ResetReply struct {
	DryRun bool         `json:"dryRun"`
	Queues []ResetQueue `json:"queues"`
}

// A ResetQueue is one queue of a reset.
type ResetQueue struct {
	Queue  int    `json:"queue"`
	Base   uint64 `json:"base,string"`   // everything below was finished
	Pulled uint64 `json:"pulled,string"` // a pull consumer's next was
	To     uint64 `json:"to,string"`     // where the group goes on
}

// A Lock asks for queues of a topic, which a client of a group wants to consume
// in order.
type Lock struct {
	Client string   `json:"client"`
	Topic  string   `json:"topic"`
	Queues []int    `json:"queues"`
	TTL    Duration `json:"ttl,omitzero"` // default 60s; asking again renews it
}

// A LockReply says which queues the client has now.
type LockReply struct {
	Held []int `json:"held"`
}

// An Unlock gives queues back.
type Unlock struct {
	Client string `json:"client"`
	Topic  string `json:"topic"`
	Queues []int  `json:"queues"`
}

// A DeadGroups is a page of the groups that have dead letters, by name.
type DeadGroups struct {
	Groups []DeadGroup `json:"groups"`
	Cursor string      `json:"cursor,omitempty"` // of the next page; absent at the end
}

// A DeadGroup is a group that has dead letters.
type DeadGroup struct {
	Group string `json:"group"`
	Dead  int64  `json:"dead,string"`
}

// A Redrive asks to deliver dead letters of a group to it again.
type Redrive struct {
	IDs    []string `json:"ids,omitempty"`    // of the dead letters; absent: all that there are now
	Delay  Duration `json:"delay,omitzero"`   // default at once
	Rate   int      `json:"rate,omitempty"`   // a second at most; default any
	DryRun bool     `json:"dryRun,omitempty"` // only count
}

// A PurgeDead asks to drop dead letters of a group.
type PurgeDead struct {
	IDs []string `json:"ids,omitempty"` // absent: all; then confirm names the group
}

// A PurgedDead says how many dead letters went.
type PurgedDead struct {
	Purged int `json:"purged"`
}
