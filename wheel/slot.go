package wheel

// A slot of a ring is a list of tasks in the order they were added. In a slot
// of more than one tick it also knows its earliest task, which is what makes
// Next exact. That knowledge is free as long as tasks come, and as long as they
// leave in order; when the earliest one is cancelled it has to be found again,
// and see refine for what that costs.
type slot struct {
	list
	earliest int32 // the first task with the least due; none if not known
	scans    uint8 // searches since the slot was last in order
	sorted   bool  // the list is in the order of due, so earliest is its head
	min      int64 // the due of earliest; if that is not known, no task's is less
}

// scansBeforeSort is how often a slot is searched before it is sorted instead.
// Eight searches of a list cost about one sort of it: whether the tasks at the
// front are cancelled once or all of them, the price is at most about twice
// that of the better choice.
const scansBeforeSort = 8

// start makes s a slot of one task.
func (s *slot) start(i int32, due int64) {
	*s = slot{list: list{i, i}, earliest: i, sorted: true, min: due}
}

// added takes note of a task that is about to be put behind the tail, whose due
// is last.
func (s *slot) added(i int32, due, last int64) {
	if due < last && s.sorted {
		s.sorted = false
		s.scans = 0
	}
	if due < s.min {
		s.min = due
		s.earliest = i
	}
}

// refine finds the earliest task of sl again: by a search, or, if that happens
// often, by a sort that makes each later answer free.
func (s *slab[T]) refine(sl *slot) {
	if sl.scans < scansBeforeSort {
		sl.scans++
		sl.earliest = s.least(sl.list)
	} else {
		s.sort(&sl.list)
		sl.earliest = sl.head
		sl.sorted = true
	}
	sl.min = s.at(sl.earliest).due
}

// least returns the first task of l with the least due. l is not empty.
func (s *slab[T]) least(l list) int32 {
	found := l.head
	n := s.at(found)
	due := n.due
	for i := n.next; i != none; {
		n = s.at(i)
		if n.due < due {
			found, due = i, n.due
		}
		i = n.next
	}
	return found
}

// take unlinks a task from sl, which must have been in it.
func (s *slab[T]) take(sl *slot, i int32, n *node[T]) {
	s.unlink(&sl.list, n)
	if i != sl.earliest {
		return
	}
	sl.earliest = none
	if sl.sorted && sl.head != none {
		sl.earliest = sl.head
		sl.min = s.at(sl.head).due
	}
}
