package wire

// A Retention says what is kept, and for how long.
type Retention struct {
	Time       Duration `json:"time"`            // how long a message stays readable after it became visible
	Bytes      int64    `json:"bytes,string"`    // of the log; 0 is any
	CarryAfter Duration `json:"carryAfter"`      // age at which what still waits is moved out of the log
	LogFirst   uint64   `json:"logFirst,string"` // position from which the log is kept
	LogEnd     uint64   `json:"logEnd,string"`   // position of its end
	Trim       Time     `json:"trim,omitzero"`   // what became visible before is given up; absent: nothing was yet
	Carried    int64    `json:"carried,string"`  // messages moved out of the log since the start
	Damaged    int64    `json:"damaged,string"`  // messages that could not be, for their bytes are damaged
}

// Limits are the limits of everything.
type Limits struct {
	Limits []Limit `json:"limits"`
}

// A Limit bounds something.
type Limit struct {
	Name  string `json:"name"`
	Value int64  `json:"value,string"`
	Unit  string `json:"unit"` // bytes, ms, a number of things
	What  string `json:"what"` // what it bounds, and what happens beyond it
}
