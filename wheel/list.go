package wheel

// A list is a first-in, first-out chain of nodes of one slab.
type list struct {
	head, tail int32
}

func (s *slab[T]) pushBack(l *list, i int32, n *node[T]) {
	n.prev, n.next = l.tail, none
	if l.tail == none {
		l.head = i
	} else {
		s.at(l.tail).next = i
	}
	l.tail = i
}

// insertBefore puts node i before node mark, which is in l.
func (s *slab[T]) insertBefore(l *list, mark, i int32) {
	s.spliceBefore(l, mark, list{i, i})
}

// spliceBefore moves the whole of from before node mark, which is in l.
func (s *slab[T]) spliceBefore(l *list, mark int32, from list) {
	if from.head == none {
		return
	}
	m := s.at(mark)
	s.at(from.head).prev = m.prev
	s.at(from.tail).next = mark
	if m.prev == none {
		l.head = from.head
	} else {
		s.at(m.prev).next = from.head
	}
	m.prev = from.tail
}

// concat moves the whole of from to the end of l.
func (s *slab[T]) concat(l *list, from list) {
	switch {
	case from.head == none:
	case l.head == none:
		*l = from
	default:
		s.at(l.tail).next = from.head
		s.at(from.head).prev = l.tail
		l.tail = from.tail
	}
}

func (s *slab[T]) unlink(l *list, n *node[T]) {
	if n.prev == none {
		l.head = n.next
	} else {
		s.at(n.prev).next = n.next
	}
	if n.next == none {
		l.tail = n.prev
	} else {
		s.at(n.next).prev = n.prev
	}
}

// sort orders l by due and keeps the order of equal dues: a merge sort from the
// bottom up, in place. runs[k] holds 2^k nodes or none, older than all of
// runs[k-1].
func (s *slab[T]) sort(l *list) {
	var runs [32]int32 // 2^31 nodes at most
	for i := l.head; i != none; {
		n := s.at(i)
		run, next := i, n.next
		n.next = none
		k := 0
		for ; runs[k] != none; k++ {
			run = s.merge(runs[k], run)
			runs[k] = none
		}
		runs[k] = run
		i = next
	}
	sorted := none
	for _, run := range runs {
		sorted = s.merge(run, sorted)
	}
	l.head, l.tail = sorted, none
	for i := sorted; i != none; {
		n := s.at(i)
		n.prev = l.tail
		l.tail = i
		i = n.next
	}
}

// merge merges two sorted runs, linked by next alone. Of equal dues those of a
// come first.
func (s *slab[T]) merge(a, b int32) int32 {
	head := none
	end := &head
	for a != none && b != none {
		if na, nb := s.at(a), s.at(b); nb.due < na.due {
			*end, end, b = b, &nb.next, nb.next
		} else {
			*end, end, a = a, &na.next, na.next
		}
	}
	if a == none {
		a = b
	}
	*end = a
	return head
}
