// Package wheel keeps tasks that wait for an instant: hierarchical and classic
// timing wheels, and a runner that calls functions at their time.
//
// # The idea
//
// To keep a million alarms in order is work. A heap has the earliest one on top,
// and each time that one leaves, about log2(n) others are compared and moved
// until the next one is there. A clock does not sort. It has a hand and a ring of
// marks, and whoever wants to be called at a mark waits at that mark. The hand
// moves on by one mark a tick and calls whom it finds.
//
// Here the ring has 8 slots and the tick is a second. The pointer stands at
// slot 0. A task that is to wait 5 s goes to slot (0 + 5) mod 8 = 5, to the end
// of the list there, and nobody thinks of it until the pointer arrives:
//
//	           pointer, now
//	                │
//	                ▼
//	                0
//	           7         1
//
//	        6               2      8 slots,
//	                               1 s from each to the next
//	           5         3
//	           ▲    4
//	           │
//	[ task, due in 5 s ]
//
// To add is to append to a list, to cancel is to unlink from one: O(1), however
// many tasks wait. The wheel does not know which of two tasks in different
// slots is earlier, and never needs to.
//
// # One ring: rounds
//
// A task that is to wait 21 s meets the pointer at slot 21 mod 8 = 5 too, but
// not the first time. It carries a counter of rounds, here (21-1)/8 = 2: each
// time the pointer comes by and finds it above zero, it is counted down, and the
// task stays. That is [SingleLevel], scheme 6 of Varghese and Lauck. Its price
// is that the pointer touches tasks which are not due.
//
// # Many rings: the hierarchy
//
// A clock has more than one hand. [Hierarchical] has rings of equal size, and a
// slot of each stands for a full turn of the ring below. With 8 slots and ticks
// of a second:
//
//	level 0   8 slots of  1 s     [.|.|.|.|.|a|.|.]        a: due in 5 s
//	level 1   8 slots of  8 s     [.|.|b|.|.|.|.|.]        b: due in 21 s
//	level 2   8 slots of 64 s     [.|c|.|.|.|.|.|.]        c: due in 100 s
//	overflow  all beyond 512 s
//
// When a ring has made a full turn, the ring above moves by one slot, and the
// tasks in the slot it enters fall down, each to the place that its time now
// deserves. After 16 s the pointer of level 1 enters slot 2, and b falls to slot
// 5 of level 0; five seconds later it fires. After 64 s c falls to slot 4 of
// level 1, after 96 s to slot 4 of level 0, and after 100 s it fires. So a task
// moves at most once a level, no task is touched for another's sake, and 5
// levels of 256 slots hold 34 years in milliseconds in 1281 slots.
//
// Why this is O(1) and a heap is not: a heap maintains an order among all tasks,
// whether they will ever fire or not; that costs O(log n) to take one out, and at
// worst as much to add or cancel one. A wheel pays for a digit of the due time at
// a time, only when that digit begins to matter, and a task that is cancelled
// before has never paid. It is a radix sort that runs as slowly as time does.
//
// # Aligned levels
//
// Two ways to choose the level are in use. Kafka's wheels are unaligned: a task
// goes to the lowest ring whose length exceeds its remaining delay, and each
// ring reaches that length ahead of the pointer, wherever the pointer is. While
// the pointer is within a slot of the upper ring, a task for the same stretch of
// time may come to lie in the upper ring or, added a moment later, in the lower
// one; the later one can then be reached first, and equal times lose the order
// of their addition.
//
// Here, as in Tokio's timer, rings are aligned to the bits of the tick number:
// the level is that of the highest group of bits in which the due tick and the
// pointer differ. (The Linux kernel's wheel of before 2016 was in between: slots
// aligned, but the level chosen by the distance, and so without the order.) The slots of a ring that lie before the
// pointer's own, and that one, are always empty, and the tasks of a slot fall
// down at the moment when it would become wrong to add to it. Much follows:
//
//   - Tasks of one tick are always in one list, in the order of their addition.
//   - A task's list follows from its time and the pointer, so that it need not
//     be stored in the task to cancel it.
//   - The lower the level and then the slot, the earlier the task. The earliest
//     is in the first slot that a bitmap says is occupied, and the pointer may
//     jump right to it: nobody steps through the hours in which nothing is due.
//
// # Whole ticks, never early
//
// A due is rounded up to a tick, and the pointer to now is rounded down. So a
// task fires in the first tick at or after its due: never early, at most a tick
// late. The usual wheel of textbooks truncates the delay to ticks, runs the slot
// the pointer is at and then moves the pointer: added between two ticks, a task
// is up to a tick early. A test of this package keeps that wheel and shows it.
//
// # Time is an argument
//
// The wheels have no goroutine, no lock and no clock: Advance is told the time.
// Their unit is the millisecond, counted from wherever the caller likes, and
// they do the same whether the caller is in production, in a replay or in a test
// that runs through a year. A [Runner] is the goroutine, the lock and the clock,
// for those who want functions called.
//
// # Sources
//
//   - G. Varghese, T. Lauck: Hashed and Hierarchical Timing Wheels: Data
//     Structures for the Efficient Implementation of a Timer Facility. SOSP 1987.
//   - Apache Kafka's purgatory (kafka.utils.timer.TimingWheel), which parks
//     requests in hierarchical wheels and advances by way of occupied slots.
//   - Apache RocketMQ 5 (TimerWheel, TimerMessageStore): one ring of a slot a
//     second on disk, for delayed messages.
package wheel
