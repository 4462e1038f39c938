package broker

// A Limit is one bound of what the broker does, as docs/limits.md lists it.
type Limit struct {
	Name  string // "message.body"
	Value int64
	Unit  string // "bytes", "ms", or what is counted
	What  string // one sentence
}

// Limits gives every limit, in the order of docs/limits.md.
func (b *Broker) Limits() []Limit { return nil }
