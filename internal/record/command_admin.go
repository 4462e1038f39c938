package record

import "encoding/binary"

// A Topic makes a topic, or changes the attributes of the one with its number.
// Its queues are FirstQueue up to FirstQueue+Queues, at most MaxQueues; the
// proposer checks that, for a reader refuses more.
type Topic struct {
	Number     TopicNumber
	FirstQueue QueueNumber
	Queues     uint32
	Name       string
	Attributes []Property
}

// AppendTopic appends a topic command.
func AppendTopic(dst []byte, t *Topic) []byte {
	return appendFrame(dst, CommandTopic, func(dst []byte) []byte { return t.append(dst) })
}

func (t *Topic) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(t.Number))
	dst = binary.AppendUvarint(dst, uint64(t.FirstQueue))
	dst = binary.AppendUvarint(dst, uint64(t.Queues))
	dst = appendString(dst, t.Name)
	return appendPairs(dst, t.Attributes)
}

// DecodeTopic reads a topic command's payload.
func DecodeTopic(payload []byte) (t Topic, err error) {
	r := reader{src: payload}
	t.Number = TopicNumber(r.uvarint32())
	t.FirstQueue = QueueNumber(r.uvarint32())
	t.Queues = uint32(r.uvarintMax(MaxQueues))
	t.Name = string(r.bytes())
	t.Attributes = r.pairs(nil)
	return t, r.end()
}

// An EndTopic ends a topic's queue numbers. With Purge the topic lives on
// under the queue numbers that begin at FirstQueue.
type EndTopic struct {
	Number     TopicNumber
	Purge      bool
	FirstQueue QueueNumber
}

// AppendEndTopic appends an end-topic command.
func AppendEndTopic(dst []byte, t *EndTopic) []byte {
	return appendFrame(dst, CommandEndTopic, func(dst []byte) []byte {
		dst = binary.AppendUvarint(dst, uint64(t.Number))
		dst = appendFlag(dst, t.Purge)
		return binary.AppendUvarint(dst, uint64(t.FirstQueue))
	})
}

// DecodeEndTopic reads an end-topic command's payload.
func DecodeEndTopic(payload []byte) (t EndTopic, err error) {
	r := reader{src: payload}
	t.Number = TopicNumber(r.uvarint32())
	t.Purge = r.flag()
	t.FirstQueue = QueueNumber(r.uvarint32())
	return t, r.end()
}

// A StartPolicy says where a new group begins in each queue.
type StartPolicy uint8

// The start policies. Append, never renumber.
const (
	StartEarliest StartPolicy = 1
	StartLatest   StartPolicy = 2
	StartAt       StartPolicy = 3 // the first entry visible at or after StartTime
)

// Known says that this binary knows the policy.
func (p StartPolicy) Known() bool { return p >= StartEarliest && p <= StartAt }

// A Group makes a consumer group, or changes the attributes of the one with
// its number.
type Group struct {
	Number     GroupNumber
	Start      StartPolicy
	StartTime  int64 // Unix ms, for StartAt
	Name       string
	Attributes []Property
}

// AppendGroup appends a group command.
func AppendGroup(dst []byte, g *Group) []byte {
	return appendFrame(dst, CommandGroup, func(dst []byte) []byte { return g.append(dst) })
}

func (g *Group) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(g.Number))
	dst = append(dst, byte(g.Start))
	dst = appendTime(dst, g.StartTime)
	dst = appendString(dst, g.Name)
	return appendPairs(dst, g.Attributes)
}

// DecodeGroup reads a group command's payload.
func DecodeGroup(payload []byte) (g Group, err error) {
	r := reader{src: payload}
	g.Number = GroupNumber(r.uvarint32())
	g.Start = StartPolicy(r.byte())
	g.StartTime = r.time()
	g.Name = string(r.bytes())
	g.Attributes = r.pairs(nil)
	return g, r.end()
}

// An EndGroup ends a group's number.
type EndGroup struct{ Number GroupNumber }

// AppendEndGroup appends an end-group command.
func AppendEndGroup(dst []byte, g *EndGroup) []byte {
	return appendFrame(dst, CommandEndGroup, func(dst []byte) []byte {
		return binary.AppendUvarint(dst, uint64(g.Number))
	})
}

// DecodeEndGroup reads an end-group command's payload.
func DecodeEndGroup(payload []byte) (g EndGroup, err error) {
	r := reader{src: payload}
	g.Number = GroupNumber(r.uvarint32())
	return g, r.end()
}

// A Setting is a value that apply reads or that every proposer shares, such as
// the table of delay levels. An empty value removes it.
type Setting struct{ Name, Value string }

// AppendSetting appends a setting command.
func AppendSetting(dst []byte, s *Setting) []byte {
	return appendFrame(dst, CommandSetting, func(dst []byte) []byte {
		return appendString(appendString(dst, s.Name), s.Value)
	})
}

// DecodeSetting reads a setting command's payload.
func DecodeSetting(payload []byte) (s Setting, err error) {
	r := reader{src: payload}
	s.Name = string(r.bytes())
	s.Value = string(r.bytes())
	return s, r.end()
}

// A Pause stops a topic from delivering, or lets it go on. What falls due
// meanwhile waits in order.
type Pause struct {
	Topic  TopicNumber
	Paused bool
}

// AppendPause appends a pause command.
func AppendPause(dst []byte, p *Pause) []byte {
	return appendFrame(dst, CommandPause, func(dst []byte) []byte {
		return appendFlag(binary.AppendUvarint(dst, uint64(p.Topic)), p.Paused)
	})
}

// DecodePause reads a pause command's payload.
func DecodePause(payload []byte) (p Pause, err error) {
	r := reader{src: payload}
	p.Topic = TopicNumber(r.uvarint32())
	p.Paused = r.flag()
	return p, r.end()
}

// A Trim gives up what became visible before a stamp (Unix ms).
type Trim struct{ Before int64 }

// AppendTrim appends a trim command.
func AppendTrim(dst []byte, t *Trim) []byte {
	return appendFrame(dst, CommandTrim, func(dst []byte) []byte {
		return appendTime(dst, t.Before)
	})
}

// DecodeTrim reads a trim command's payload.
func DecodeTrim(payload []byte) (t Trim, err error) {
	r := reader{src: payload}
	t.Before = r.time()
	return t, r.end()
}

// A Carry moves the bodies of what still waits between two positions of the
// log into the index; each replica copies its own.
type Carry struct{ From, To ID }

// AppendCarry appends a carry command.
func AppendCarry(dst []byte, c *Carry) []byte {
	return appendFrame(dst, CommandCarry, func(dst []byte) []byte {
		return binary.AppendUvarint(binary.AppendUvarint(dst, uint64(c.From)), uint64(c.To))
	})
}

// DecodeCarry reads a carry command's payload.
func DecodeCarry(payload []byte) (c Carry, err error) {
	r := reader{src: payload}
	c.From = ID(r.uvarint())
	c.To = ID(r.uvarint())
	return c, r.end()
}
