package broker

import (
	"fmt"
	"strings"

	"github.com/duemq/duemq/internal/record"
)

// Limits of names, as RocketMQ's TopicValidator has them.
const (
	maxTopicName = 127
	maxGroupName = 120
)

func checkTopic(name string) error {
	if isSystem(name) {
		return fmt.Errorf("%w: topic %q belongs to the broker; choose another name", ErrForbidden, short(name))
	}
	return checkName("topic", name, maxTopicName)
}

// isSystem says that a topic belongs to the broker (RocketMQ's
// TopicValidator.SYSTEM_TOPIC_SET and what starts with these prefixes): nobody
// may send to it or subscribe.
func isSystem(name string) bool {
	switch name {
	case "SCHEDULE_TOPIC_XXXX", "TBW102", "SELF_TEST_TOPIC", "BenchmarkTest", "OFFSET_MOVED_EVENT", "DefaultCluster":
		return true
	}
	for _, prefix := range []string{"%RETRY%", "%DLQ%", "RMQ_SYS_", "rmq_sys_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func checkGroup(name string) error { return checkName("group", name, maxGroupName) }

// checkName allows what RocketMQ allows: ^[%|a-zA-Z0-9_-]+$.
func checkName(what, name string, limit int) error {
	if name == "" {
		return fmt.Errorf("%w: no %s given", ErrInvalid, what)
	}
	if len(name) > limit {
		return fmt.Errorf("%w: %s name of %d characters, limit %d", ErrInvalid, what, len(name), limit)
	}
	for _, r := range name {
		ok := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("%|_-", r)
		if !ok {
			return fmt.Errorf("%w: %s name %q holds %q; letters, digits, _ - %% and | are allowed", ErrInvalid, what, name, r)
		}
	}
	return nil
}

// internalProperties are RocketMQ's own (MessageConst): what they say has a
// field of its own, and a client that sets them would forge the broker's word.
var internalProperties = map[string]string{
	"KEYS": "key", "TAGS": "tag",
	"DELAY": "level", "TIMER_DELAY_SEC": "after", "TIMER_DELAY_MS": "after", "TIMER_DELIVER_MS": "at",
	"__STARTDELIVERTIME": "at",
	"TIMER_OUT_MS":       "", "TIMER_ENQUEUE_MS": "", "TIMER_DEQUEUE_MS": "", "TIMER_ROLL_TIMES": "", "TIMER_DEL_UNIQKEY": "", "TIMER_ROLL_LABEL": "",
	"REAL_TOPIC": "", "REAL_QID": "", "RETRY_TOPIC": "", "DLQ_ORIGIN_TOPIC": "", "DLQ_ORIGIN_MESSAGE_ID": "",
	"ORIGIN_MESSAGE_ID": "", "RECONSUME_TIME": "", "MAX_RECONSUME_TIMES": "", "CONSUME_START_TIME": "",
	"TRAN_MSG": "", "PGROUP": "", "MIN_OFFSET": "", "MAX_OFFSET": "", "POP_CK": "", "POP_CK_OFFSET": "", "1ST_POP_TIME": "",
	"__TRANSACTION_PREPARED_QUEUE_OFFSET__": "", "TRANSACTION_CHECK_TIMES": "", "CHECK_IMMUNITY_TIME_IN_SECONDS": "",
	"INNER_NUM": "", "INNER_BASE": "", "INNER_MULTI_DISPATCH": "", "INNER_MULTI_QUEUE_OFFSET": "", "DUP_INFO": "", "CLUSTER": "",
}

func checkProperties(ps []record.Property) error {
	for _, p := range ps {
		if p.Name == "" {
			return fmt.Errorf("%w: a property without a name", ErrInvalid)
		}
		if strings.ContainsAny(p.Name+p.Value, "\x01\x02\x00") {
			return fmt.Errorf("%w: property %q holds a control character that RocketMQ uses as separator", ErrInvalid, p.Name)
		}
		field, internal := internalProperties[p.Name]
		if !internal {
			continue
		}
		if field != "" {
			return fmt.Errorf("%w: property %s is RocketMQ's own; give %s instead", ErrForbidden, p.Name, field)
		}
		return fmt.Errorf("%w: property %s is the broker's own", ErrForbidden, p.Name)
	}
	return nil
}
