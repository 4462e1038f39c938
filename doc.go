// Package duemq is a message broker for messages that must wait, as a library:
// a producer says after 30 minutes or tomorrow at 09:00, the message is written
// down once, and a consumer gets it at that moment, never early, whatever
// crashed in between.
//
//	q, err := duemq.Open(ctx, "data")
//	defer q.Close()
//	r, err := q.Send(ctx, "orders", body, duemq.After(30*time.Minute))
//	err = q.Cancel(ctx, r.ID) // it was paid for
//	for m, err := range q.Receive(ctx, "orders", duemq.Group("billing")) {
//		if err != nil {
//			return err
//		}
//		if handle(m) == nil {
//			m.Ack(ctx)
//		}
//	}
//
// [Dial] gives the same Queue on a server that runs elsewhere, over HTTP.
//
// # What is durable when a call returns
//
// A nil error of a call that sends, cancels or moves messages, buries one, ends a
// transaction, or changes topics and groups, means, under
//
//	[Always] (default)  it is on disk: no crash and no power cut takes it back
//	[Interval](d)       it is written: a crash of the process does not take it
//	                    back, a power cut or a crash of the machine may, if it
//	                    comes within d
//
// An acknowledgement is written when Ack returns and on disk at most 10 ms later
// (under Interval at most d); if the machine crashes between, the message is
// received once more. The same holds of an attempt and of the back-off that a
// Retry begins, and of the offsets of [Queue.Commit]. Leases are memory: after a
// restart or a crash, what was leased can be received again, and its attempts go
// on counting.
//
// When a call fails with [ErrFailed] or [ErrUnavailable], or because its context
// ended, whether it took effect is unknown. Any other error means that it did not.
//
// A disk that reports a failed write or sync is never asked again: from then on
// whatever has to be written fails with [ErrFailed], see [Queue.Failed]. Close,
// and Open to recover what is on disk.
//
// # Failing and trying again
//
// [Queue.Handle] calls a function for each message and does the rest: what fails
// or panics comes again after its group's back-off ([Backoff]), and after its
// last attempt ([MaxAttempts]) it is a dead letter, to be looked at
// ([Queue.DeadLetters]) and delivered again ([Queue.Redrive]). An attempt counts
// also when the receiver died with it. [Queue.Receive] with [Message.Ack],
// [Message.Retry] and [Message.Bury] is the same by hand.
//
// # Steering what waits
//
// A message that waits can be cancelled, moved, shifted and delivered at once, by
// its id, by a name of the sender's own ([Name]), or with all others that a
// [Filter] selects ([Queue.CancelWhere] and others of that kind, each with a
// [DryRun]). [Queue.Timeline] shows how many wait for when, [Queue.Pending] which
// they are. A topic can be paused, and have a rate ([MaxRate]).
//
// # Sending exactly what happened
//
// An [IdempotencyKey] makes it safe to send again when an answer was lost. A
// transaction ([Queue.Begin]) has a message delivered if something else has come
// about, such as a change in a database.
//
// # How long things are kept
//
// What waits is kept however long it waits. What became visible is kept for 72
// hours ([WithRetention]), acknowledged or not. [Queue.Backup] copies the whole
// store while it is used.
//
// # Time
//
// Times are milliseconds since 1970 inside. Whatever is finer is rounded up, so
// that a message is never early. After and Level count from the queue's clock
// at the moment the message is taken, At names an instant on it. Zero, negative
// and past mean at once. A wall clock that is set is followed only when that has
// held for 5 seconds; at the start, a clock behind what the queue has seen
// before, or before 2020, is not believed: see [ErrClockSuspect].
//
// # Order
//
// A topic has several queues ([WithQueues]), used in turn. Within one queue the
// order is that of becoming visible, for equal dues that of sending. Every group
// receives every message, at least once; within a group one receiver at a time
// holds it. With [Ordered] a group has each queue in order also when something
// fails.
//
// # Concurrency
//
// A [Queue] is safe for concurrent use. Blocking calls take a context first and
// return when it ends. Calls from several goroutines share one write and one
// sync, so many senders are faster than one; [Queue.SendBatch] is faster still.
// A [Message] belongs to whoever received it. After [Queue.Close] no goroutine
// is left.
//
// Package duemqtest has a clock that passes 30 minutes in a call.
package duemq
