package broker

import "time"

// A RetentionInfo tells what is kept, and for how long.
type RetentionInfo struct {
	Time       time.Duration // how long what became visible is kept; negative: for ever
	Bytes      int64         // of log; 0: any number
	CarryAfter time.Duration // the age at which what still waits is moved out of its segment
	LogFirst   uint64        // position from which the log is kept
	LogEnd     uint64        // where it ends
	Trim       int64         // what became visible before is given up, Unix ms
	Carried    int64         // messages moved out of old segments since the start
	Damaged    int64         // messages that could not be, for their bytes are damaged
}

// RetentionInfo tells what is kept, and for how long.
func (b *Broker) RetentionInfo() RetentionInfo {
	k, s := b.e.Kept(), b.e.Stats()
	return RetentionInfo{
		Time: k.Time, Bytes: k.Bytes, CarryAfter: k.CarryAfter, LogFirst: k.LogFirst, LogEnd: k.LogEnd,
		Trim: k.Trim, Carried: s.Carried, Damaged: s.Damaged,
	}
}
