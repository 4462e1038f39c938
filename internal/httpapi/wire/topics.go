package wire

// A Topic is a topic as users see it.
type Topic struct {
	Name       string            `json:"name"`
	Queues     int               `json:"queues"`
	Attributes map[string]string `json:"attributes,omitempty"` // as they were given
	MaxRate    int64             `json:"maxRate,omitempty"`    // messages a second that may become visible at most; absent is any
	Paused     bool              `json:"paused"`               // nothing becomes visible
	System     bool              `json:"system,omitempty"`     // one of the broker's own: retries, dead letters
	Waiting    int64             `json:"waiting,string"`       // for their dues; those held back included
	Held       int64             `json:"held,string"`          // of these, due and held back: the topic is paused, or has used up its rate
	Halves     int64             `json:"halves,string"`        // half messages, whose transactions have not ended
	Visible    uint64            `json:"visible,string"`       // ever became visible
	Offsets    []QueueOffsets    `json:"offsets,omitempty"`    // by queue; not in a list of topics
}

// QueueOffsets are the offsets of a queue that can be read: from low below next.
type QueueOffsets struct {
	Queue int    `json:"queue"`
	Low   uint64 `json:"low,string"`
	Next  uint64 `json:"next,string"` // that becomes visible next
}

// A Topics is a page of topics, by name.
type Topics struct {
	Topics []Topic `json:"topics"`
	Cursor string  `json:"cursor,omitempty"` // of the next page; absent at the end
}

// A NewTopic asks to make a topic.
type NewTopic struct {
	Name       string            `json:"name"`
	Queues     *int              `json:"queues,omitempty"` // default the server's, 8
	Attributes map[string]string `json:"attributes,omitempty"`
	MaxRate    *int64            `json:"maxRate,omitempty"` // the attribute max_rate
}

// TopicSettings ask to make a topic, or to give one that is there other
// attributes.
type TopicSettings struct {
	Queues     *int              `json:"queues,omitempty"` // of a topic that is there: how many it has
	Attributes map[string]string `json:"attributes,omitempty"`
	MaxRate    *int64            `json:"maxRate,omitempty"` // the attribute max_rate; 0 is any
}

// A TopicPatch asks to change attributes of a topic; the others stay.
type TopicPatch struct {
	Attributes map[string]string `json:"attributes,omitempty"` // an empty one is removed
	MaxRate    *int64            `json:"maxRate,omitempty"`    // the attribute max_rate; 0 is any
}

// A Purged says what went with a topic, or with its content.
type Purged struct {
	Waiting int64 `json:"waiting,string"` // messages that will never be delivered
	Visible int64 `json:"visible,string"` // messages that can no longer be read
}

// A Pulled is what a pull found.
type Pulled struct {
	Messages []Message `json:"messages"`
	Next     uint64    `json:"next,string"`    // offset at which the next pull goes on
	Low      uint64    `json:"low,string"`     // the first offset that is kept
	High     uint64    `json:"high,string"`    // one more than the last
	Moved    bool      `json:"moved"`          // the offset asked for is not kept, or beyond the end: what came is of the nearest that is
	Skipped  uint64    `json:"skipped,string"` // offsets by which retention has moved it
}

// An Offset is a place in a queue.
type Offset struct {
	Offset uint64 `json:"offset,string"`
}
