package duemq

import (
	"github.com/duemq/duemq/internal/backup"
	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/record"
)

// Classes of error. Test for them with [errors.Is]; the text names the
// instance, the limit and what to do.
var (
	// ErrInvalid refuses what can never succeed: a bad name, two delays at once,
	// an id that is none.
	ErrInvalid = broker.ErrInvalid
	// ErrTooLarge refuses a message beyond a limit: 4 MiB of body, 128 headers,
	// 32 KiB of key, tag and headers together.
	ErrTooLarge = record.ErrTooLarge
	// ErrDelayTooLong refuses a due beyond the limit of [WithMaxDelay].
	ErrDelayTooLong = engine.ErrDelayTooLong
	// ErrForbidden refuses names that belong to the broker: internal topics, and
	// headers by which RocketMQ's clients carry key, tag and delay.
	ErrForbidden = broker.ErrForbidden
	// ErrFull refuses one more than there may be: of topics, groups and half
	// messages 100,000 each, of bulk operations that run 16.
	ErrFull = broker.ErrFull
	// ErrExists refuses to make a topic or a group that is there already and has
	// other settings.
	ErrExists = broker.ErrExists
	// ErrMismatch says that an [IdempotencyKey] was used for another message.
	ErrMismatch = broker.ErrMismatch
	// ErrUnknownTopic says that there is no topic of that name. The first message
	// or the first receiver makes it.
	ErrUnknownTopic = broker.ErrTopicUnknown
	// ErrUnknownGroup says that there is no group of that name. The first receive
	// makes it.
	ErrUnknownGroup = broker.ErrGroupUnknown
	// ErrUnknownOperation says that there is no [Operation] of that id, or that it
	// ended long ago.
	ErrUnknownOperation = broker.ErrOperationUnknown
	// ErrTooMany says that more messages would have to be looked at than is
	// allowed; the text says what to select by instead.
	ErrTooMany = broker.ErrTooMany

	// ErrUnknownMessage says that no message has that id, or that it is older
	// than what is kept.
	ErrUnknownMessage = broker.ErrUnknown
	// ErrAlreadyDelivered says that it is too late to cancel or move the message:
	// it became visible before. The text says when.
	ErrAlreadyDelivered = broker.ErrDelivered
	// ErrAlreadyCancelled says that the message was cancelled before.
	ErrAlreadyCancelled = broker.ErrCancelled
	// ErrTransactionEnded says that a message is not half any more, or never was.
	ErrTransactionEnded = broker.ErrTransactionEnded
	// ErrLeaseLost says that the lease ended and another receiver has, or had, the
	// message.
	ErrLeaseLost = broker.ErrLeaseLost

	// ErrClosed is every call after [Queue.Close], and ends a Receive that waits.
	ErrClosed = engine.ErrClosed
	// ErrFailed says that the disk failed and nothing is acknowledged any more.
	// Whether the call took effect is unknown; Close and Open to recover.
	ErrFailed = engine.ErrFailed
	// ErrClockSuspect says that the machine's clock is not believed: it is before
	// 2020, behind what this queue has seen, or too far ahead of it. Nothing
	// falls due and no delay can be counted from it, while messages without a
	// delay are taken and delivered. It ends when the clock is set right, when it
	// has stayed as it is for a minute (not before 2020), or with
	// [Queue.AcceptClock].
	ErrClockSuspect = engine.ErrClockSuspect

	// ErrDiskFull refuses messages while less than a twentieth of the disk, or less
	// than two log files, is free. What waits is still delivered.
	ErrDiskFull = engine.ErrDiskFull

	// ErrUnavailable says that the server of a [Dial] cannot be reached, broke off
	// before it answered, is stopping or has too much to do. Whether the call took
	// effect is unknown.
	ErrUnavailable = client.ErrUnavailable

	// ErrInUse refuses to open a folder that another Queue or process has open.
	ErrInUse = engine.ErrInUse
	// ErrNotEmpty refuses to restore into a folder that holds something.
	ErrNotEmpty = engine.ErrNotEmpty
	// ErrIncomplete says that a backup broke off before its end.
	ErrIncomplete = backup.ErrIncomplete
	// ErrCorrupt refuses to open a folder whose acknowledged data is damaged, or to
	// restore a backup that is; the text names place and reason.
	ErrCorrupt = record.ErrCorrupt
	// ErrVersion refuses to open a folder, or a backup, that another version has
	// written.
	ErrVersion = record.ErrVersion
)
