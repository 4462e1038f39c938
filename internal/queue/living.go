package queue

// Living says of each number whether there is a queue of that number.
func (s *Set) Living() []bool {
	living := make([]bool, len(s.queues))
	for n, q := range s.queues {
		living[n] = q != nil
	}
	return living
}
