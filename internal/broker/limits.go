package broker

import (
	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/group"
	"github.com/duemq/duemq/internal/keys"
	"github.com/duemq/duemq/internal/log"
	"github.com/duemq/duemq/internal/record"
	"github.com/duemq/duemq/internal/timeline"
)

// Limits of the HTTP door. They stand here so that one list has all.
const (
	MaxJSON      = 1 << 20   // bytes of a JSON body
	MaxBatchJSON = 16 << 20  // bytes of the JSON of a batch of messages
	MaxHead      = 128 << 10 // bytes of a request's line and headers
)

// A Limit is one bound of what the broker does, as docs/limits.md lists it.
type Limit struct {
	Name  string // "message.body"
	Value int64
	Unit  string // "bytes", "ms", or what is counted
	What  string // one sentence
}

// Limits gives every limit, in the order of docs/limits.md. Those that can be
// configured have the value that holds here.
func (b *Broker) Limits() []Limit {
	var all []Limit
	for _, part := range [][]Limit{
		messageLimits(), b.delayLimits(), sendLimits(), receiveLimits(), nameLimits(), pendingLimits(), httpLimits(), storeLimits(),
	} {
		all = append(all, part...)
	}
	return all
}

func messageLimits() []Limit {
	return []Limit{
		{"message.body", record.MaxBody, "bytes", "Body of a message."},
		{"message.header", record.MaxHeader, "bytes", "Key, tag and properties of a message together."},
		{"message.properties", record.MaxProperties, "properties", "Properties of a message."},
		{"message.keys", keys.MaxKeys, "keys", "Keys by which a message can be found; of more, the first count."},
		{"message.name", MaxName, "bytes", "Name of a message within its topic."},
		{"message.idempotency_key", MaxName, "bytes", "Idempotency key of a message."},
	}
}

func (b *Broker) delayLimits() []Limit {
	return []Limit{
		{"delay.max", b.MaxDelay().Milliseconds(), "ms", "Longest delay; `max_delay`."},
		{"delay.levels", timeline.Levels, "levels", "Delay levels; a level above the table is its last."},
		{"delay.idempotency", b.e.IdempotencyWindow().Milliseconds(), "ms", "How long an idempotency key is remembered, or until its message is due if that is later; `idempotency.window`."},
	}
}

func sendLimits() []Limit {
	return []Limit{
		{"send.batch", MaxBatch, "messages", "Messages of one send."},
		{"topics", MaxTopics, "topics", "Topics of a broker."},
		{"topic.queues", MaxQueues, "queues", "Queues of a topic."},
		{"topic.max_rate", engine.MaxRate, "messages/s", "Highest `max_rate` of a topic."},
		{"topic.attributes", MaxAttributes, "attributes", "Attributes of a topic."},
		{"topic.attribute_name", MaxAttributeName, "bytes", "Name of an attribute of a topic."},
		{"topic.attribute_value", MaxAttributeValue, "bytes", "Value of an attribute of a topic."},
		{"transactions", MaxHalves, "messages", "Half messages at once."},
		{"transaction.checks", engine.MaxChecks, "checks", "Times that a producer is asked about a half message before it is rolled back."},
		{"transaction.first_check", engine.CheckAfter, "ms", "From sending a half message to the first check."},
		{"transaction.check_interval", engine.CheckEvery, "ms", "Between two checks."},
	}
}

func receiveLimits() []Limit {
	return []Limit{
		{"groups", MaxGroups, "groups", "Consumer groups of a broker."},
		{"group.max_attempts", MaxAttempts, "attempts", "Highest `max_attempts` of a group."},
		{"group.backoff", MaxBackoffs, "steps", "Steps of a group's back-off list."},
		{"group.inflight", group.MaxInflight, "messages", "Messages of a queue that a group holds leases of at once."},
		{"group.lock", MaxLock.Milliseconds(), "ms", "How long a client's lock of a queue holds."},
		{"group.redrive_rate", MaxRedriveRate, "messages/s", "Highest rate of a redrive of dead letters."},
		{"receive.tags", MaxTags, "tags", "Tags that one subscription names."},
		{"receive.messages", MaxReceive, "messages", "Messages of one receive."},
		{"receive.bytes", MaxReceiveBytes, "bytes", "Bodies of one receive together; one message always fits."},
		{"receive.wait", MaxWait.Milliseconds(), "ms", "Wait of a long poll."},
		{"receive.invisible", MaxInvisible.Milliseconds(), "ms", "Length of a lease, and of a back-off."},
	}
}

func nameLimits() []Limit {
	return []Limit{
		{"name.topic", maxTopicName, "bytes", "Name of a topic."},
		{"name.group", maxGroupName, "bytes", "Name of a consumer group or producer group."},
		{"name.client", MaxClient, "bytes", "Name of a client that locks queues."},
		{"name.reason", MaxReason, "bytes", "Reason for which a message is made a dead letter."},
	}
}

func pendingLimits() []Limit {
	return []Limit{
		{"listing.page", MaxPage, "entries", "Entries of one page of a listing, and ids of one filter."},
		{"pending.key_candidates", MaxCandidates, "messages", "Messages with one key that are looked at for those that wait."},
		{"timeline.buckets", MaxBuckets, "buckets", "Buckets of a timeline; by topic, pairs of bucket and topic."},
		{"operations.running", MaxOperations, "operations", "Bulk operations that run at once."},
		{"operations.remembered", engine.MaxOperations, "operations", "Bulk operations that are remembered, those that run included."},
		{"operation.samples", MaxSample, "messages", "Messages that a dry run shows."},
	}
}

func httpLimits() []Limit {
	return []Limit{
		{"http.json", MaxJSON, "bytes", "JSON body of a request; that of a raw message is `message.body`."},
		{"http.batch", MaxBatchJSON, "bytes", "JSON body of a batch of messages."},
		{"http.head", MaxHead, "bytes", "Line and headers of a request."},
	}
}

func storeLimits() []Limit {
	return []Limit{
		{"log.segment_min", log.MinSegmentBytes, "bytes", "Smallest size of a log segment."},
		{"log.segment_max", log.MaxSegmentBytes, "bytes", "Largest size of a log segment."},
		{"log.batch", record.MaxBatch, "bytes", "One batch of the log."},
		{"operation.spec", engine.MaxSpec, "bytes", "What is remembered of how a bulk operation was asked for."},
	}
}
