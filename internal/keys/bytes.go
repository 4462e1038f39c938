package keys

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/duemq/duemq/internal/index"
	"github.com/duemq/duemq/internal/record"
)

// SpaceKeys is the index's space of message keys: key (bucket, hash, id), value
// queue number. See docs/formats/index.md.
const SpaceKeys index.Space = 'k'

// carried is the bucket of messages whose bytes the index holds. They are kept
// for longer than the day on which they were stored.
const carried = 0

const dayMs = 24 * 60 * 60 * 1000

// Day is the bucket of a message by the time at which it was stored, Unix ms: the
// day, counted from 1970, and never 0, which is the bucket of carried ones.
func Day(stored int64) uint32 { return uint32(min(max(stored/dayMs, 1), math.MaxUint32)) }

// rowKey is the size of a key: a bucket, a hash and an id.
const rowKey = 4 + 8 + 8

func appendRow(dst []byte, bucket uint32, hash uint64, id record.ID) []byte {
	be := binary.BigEndian
	return be.AppendUint64(be.AppendUint64(be.AppendUint32(dst, bucket), hash), uint64(id))
}

func decodeRow(key []byte) (bucket uint32, hash uint64, id record.ID, err error) {
	if len(key) != rowKey {
		return 0, 0, 0, fmt.Errorf("%w: key %x among message keys", record.ErrCorrupt, key)
	}
	be := binary.BigEndian
	return be.Uint32(key), be.Uint64(key[4:]), record.ID(be.Uint64(key[12:])), nil
}

func appendQueue(dst []byte, q record.QueueNumber) []byte {
	return binary.AppendUvarint(dst, uint64(q))
}

func decodeQueue(value []byte) (record.QueueNumber, error) {
	r := record.ReadFields(value)
	q := r.Uvarint()
	if !r.Done() || q > math.MaxUint32 {
		return 0, fmt.Errorf("%w: queue %x of a message key", record.ErrCorrupt, value)
	}
	return record.QueueNumber(q), nil
}
