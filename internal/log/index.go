package log

import (
	"sort"
	"sync"
)

// spacing is how many bytes of log lie between two waypoints: what a search for
// one batch reads at most, beside the batch itself.
const spacing = 16 << 10

// A waypoint is a batch that the index knows. Both fields count within the
// segment, so that a waypoint is eight bytes.
type waypoint struct {
	number uint32 // index of the batch, from the segment's first
	offset uint32
}

// An index leads to a batch of one segment by its index or by its position. It
// is sparse, in memory only, and holds every waypoint from its first one to the
// segment's end. What lies before its first one is added when somebody looks
// for it: what is never looked for costs nothing.
type index struct {
	mu        sync.Mutex
	waypoints []waypoint
	// changes counts forget and cut, so that what was built meanwhile is dropped.
	changes int
}

// add notes a batch; they come in order. Only every 16 KiB or so one is kept.
func (x *index) add(number uint64, offset int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.waypoints = extend(x.waypoints, number, offset)
}

func extend(w []waypoint, number uint64, offset int64) []waypoint {
	if n := len(w); n > 0 && offset-int64(w[n-1].offset) < spacing {
		return w
	}
	return append(w, waypoint{number: uint32(number), offset: uint32(offset)})
}

// forget empties the index. It can be built again from the file.
func (x *index) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.waypoints = nil
	x.changes++
}

// cut drops the waypoints at or beyond offset, when the log is truncated there.
func (x *index) cut(offset int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := sort.Search(len(x.waypoints), func(i int) bool { return int64(x.waypoints[i].offset) >= offset })
	x.waypoints = x.waypoints[:n]
	x.changes++
}

// A lookup is what an index says of a place: where to begin, and if the
// waypoints before are still missing, up to where.
type lookup struct {
	from    waypoint // begin reading here; the zero waypoint is the segment's first batch
	missing bool     // there is no waypoint before what is sought
	until   int64    // where the known waypoints begin; 0 if there are none
	changes int
}

// find looks for the last waypoint that is not after what is sought.
func (x *index) find(notAfter func(waypoint) bool) lookup {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := sort.Search(len(x.waypoints), func(i int) bool { return !notAfter(x.waypoints[i]) })
	if n > 0 {
		return lookup{from: x.waypoints[n-1]}
	}
	l := lookup{missing: true, changes: x.changes}
	if len(x.waypoints) > 0 {
		l.until = int64(x.waypoints[0].offset)
	}
	return l
}

// install puts what was built for a lookup before the known waypoints, unless
// the index was cut or emptied since.
func (x *index) install(l lookup, built []waypoint) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.changes != l.changes {
		return
	}
	var first int64
	if len(x.waypoints) > 0 {
		first = int64(x.waypoints[0].offset)
	}
	if first == l.until {
		x.waypoints = append(built, x.waypoints...)
	}
}
