// Package broker holds the use cases: send, receive, acknowledge, cancel,
// reschedule, look at a message, look at what waits. Every door (HTTP, the
// library, the RocketMQ protocols) turns its wire form into one of them and the
// answer back. Names become numbers here, bytes are checked here, and a class
// of error is all that a door needs to choose its code.
package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/group"
	"github.com/duemq/duemq/internal/record"
)

// Options configure a broker. Zero means the default.
type Options struct {
	Name   string // default broker-a; stands in recall handles
	Queues uint32 // default 8: queues of a topic made on first use
	Engine engine.Options
}

// Limits of the use cases.
const (
	MaxReceive      = 4096             // messages of one receive
	MaxReceiveBytes = 16 << 20         // of their bodies; one message always fits
	MaxBatch        = 16 << 10         // messages of one send
	MaxWait         = 60 * time.Second // of a long poll
	MaxInvisible    = 12 * time.Hour
	MaxQueues       = 1024 // of a topic
	MaxPage         = 1000 // of a listing
	MaxTopics       = 100_000
	MaxGroups       = 100_000

	DefaultInvisible = 30 * time.Second
)

// Broker is an open broker. Its methods are safe for concurrent use.
type Broker struct {
	o      Options
	e      *engine.Engine
	clock  clock.Clock
	log    *slog.Logger
	leases sync.Map // of leaseKey: *group.Leases
	turn   atomic.Uint32

	administering sync.Mutex // of who changes a topic by what it was
	checks        checks
	operations    operations
	burying       sync.Mutex // of who buries by a lease that is not in memory
	graves        sync.Mutex // of who takes dead letters away
	locks         group.Locks

	closing   chan struct{}
	closeOnce sync.Once
}

type leaseKey struct {
	group record.GroupNumber
	queue record.QueueNumber
}

// Open opens the store and recovers it; see [engine.Open].
func Open(ctx context.Context, o Options) (*Broker, error) {
	if o.Name == "" {
		o.Name = "broker-a"
	}
	if o.Queues == 0 {
		o.Queues = 8
	}
	if o.Engine.Logger == nil {
		o.Engine.Logger = slog.New(slog.DiscardHandler)
	}
	e, err := engine.Open(ctx, o.Engine)
	if err != nil {
		return nil, err
	}
	b := &Broker{o: o, e: e, clock: o.Engine.Clock, log: o.Engine.Logger, closing: make(chan struct{})}
	b.resume(ctx)
	return b, nil
}

// Close ends waiting receives, stops bulk operations between two steps, answers
// what was handed in, writes a cut and closes the store. What was stopped goes
// on when the store is opened again.
func (b *Broker) Close() error {
	b.Drain()
	b.operations.close()
	return b.e.Close()
}

// Drain ends waiting receives; everything else still works. A server calls it
// first when it stops.
func (b *Broker) Drain() { b.closeOnce.Do(func() { close(b.closing) }) }

// Recovered says what Open found.
func (b *Broker) Recovered() engine.Recovery { return b.e.Recovered() }

// Failed is closed when the store can no longer be trusted; Err says why.
func (b *Broker) Failed() <-chan struct{} { return b.e.Failed() }

// Err is why the store failed, nil while it has not.
func (b *Broker) Err() error { return b.e.Err() }

// Ready says why the broker should get no traffic, nil if it should.
func (b *Broker) Ready() error {
	if err := b.e.Err(); err != nil {
		return err
	}
	if b.e.Suspect() {
		return fmt.Errorf("%w: nothing falls due until it is right, or: duemq clock accept", engine.ErrClockSuspect)
	}
	return nil
}

// AcceptClock believes the machine's clock as it is.
func (b *Broker) AcceptClock() error { return b.e.AcceptClock() }

// Settle returns when everything due by the clock is visible; for tests that
// step a clock.
func (b *Broker) Settle(ctx context.Context) error { return b.e.Settle(ctx) }

// Now is the broker's time in Unix ms.
func (b *Broker) Now() int64 { return b.e.Now() }

// Hash is a digest of the whole state; see [engine.Engine.Hash].
func (b *Broker) Hash() (string, error) { return b.e.Hash() }

// Cut writes a cut now.
func (b *Broker) Cut() error { return b.e.Cut() }

// Stats gives the engine's figures.
func (b *Broker) Stats() engine.Stats { return b.e.Stats() }

// Counts gives the figures of a topic, or of all for "".
func (b *Broker) Counts(topic string) (engine.Counts, error) {
	if topic == "" {
		return b.e.Count(nil), nil
	}
	t := b.e.TopicNamed(topic)
	if t == nil {
		return engine.Counts{}, unknownTopic(topic)
	}
	return b.e.Count(t), nil
}

// NextDue is the due of the first message that waits, Unix ms.
func (b *Broker) NextDue() (int64, bool) { return b.e.NextDue() }

// Classes of error beside the engine's. Each text names the instance, the limit
// and what to do.
var (
	// ErrInvalid is the class of requests that can never succeed.
	ErrInvalid = errors.New("invalid request")
	// ErrForbidden is the class of names that only the broker itself may use.
	ErrForbidden = errors.New("not allowed")
	// ErrFull refuses to make one more topic or group than there may be.
	ErrFull = errors.New("limit reached")
	// ErrExists refuses to make what is there already and is not the same.
	ErrExists = errors.New("exists already")
	// ErrTopicUnknown says that there is no topic of that name.
	ErrTopicUnknown = errors.New("unknown topic")
	// ErrUnknown says that no message has that id or handle, or that it is older
	// than what is kept.
	ErrUnknown = errors.New("unknown message")
	// ErrDelivered says that it is too late: the message became visible before.
	ErrDelivered = errors.New("already delivered")
	// ErrCancelled says that the message was cancelled before.
	ErrCancelled = errors.New("already cancelled")
	// ErrLeaseLost says that the lease ended and the message was given again.
	ErrLeaseLost = errors.New("lease lost")
	// ErrDraining ends a receive because the broker stops.
	ErrDraining = errors.New("broker is stopping")
)

func unknownTopic(name string) error {
	return fmt.Errorf("%w: %q; it is made by the first message sent to it", ErrTopicUnknown, name)
}

// topic finds a topic, or makes it.
func (b *Broker) topic(ctx context.Context, name string) (*engine.Topic, error) {
	t := b.e.TopicNamed(name)
	if t != nil && name[0] != '%' { // the broker's own that there are all begin so
		return t, nil
	}
	if err := checkTopic(name); err != nil || t != nil {
		return t, err
	}
	if err := b.roomForTopic(name); err != nil {
		return nil, err
	}
	return b.e.MakeTopic(ctx, name, b.o.Queues, nil)
}

func (b *Broker) roomForTopic(name string) error {
	if topics, _ := b.e.Sizes(); topics >= MaxTopics {
		return fmt.Errorf("%w: %d topics, topic %q would be one more; use one that there is, or delete one", ErrFull, topics, name)
	}
	return nil
}

// standing tells how an offset is leased. It makes no leases for who only looks:
// there are as many as groups times queues.
func (b *Broker) standing(k leaseKey, o record.Offset) (inflight bool, attempts uint32) {
	l, ok := b.leases.Load(k)
	if !ok {
		return false, 0
	}
	return l.(*group.Leases).Standing(o, b.mono()) //nolint:forcetypeassert // only leasesOf stores
}

func (b *Broker) leasesOf(g record.GroupNumber, q record.QueueNumber) *group.Leases {
	k := leaseKey{g, q}
	if l, ok := b.leases.Load(k); ok {
		return l.(*group.Leases) //nolint:forcetypeassert // only this function stores
	}
	l, _ := b.leases.LoadOrStore(k, new(group.Leases))
	return l.(*group.Leases) //nolint:forcetypeassert // only this function stores
}
