package count

// A cell is a change of one key, or the sum of one.
type cell struct {
	key uint64 // minute, topic; 0 is an empty cell, for no minute is 0
	n   int64
}

// A table is a flat hash table of cells with linear probing: nothing in it has a
// pointer, and a walk over it is a walk over memory. Cells are never removed.
type table struct {
	cells []cell // a power of two, or none
	used  int
	shift uint8 // what is left of a hash after it is a place
}

// shardBits of a hash choose the shard, those below the place in its table.
const (
	shardBits = 6
	shards    = 1 << shardBits
)

// minCells is the size of the smallest table, 256 bytes.
const minCells = 16

// hashOf spreads keys over the upper bits. Minutes and topics are small numbers
// in a row; the multiplication alone would leave what the minute says in the
// upper half only.
func hashOf(key uint64) uint64 { return (key ^ key>>32) * 0x9e3779b97f4a7c15 }

// find gives the cell of a key, or the empty one in which it belongs. The table
// must have room.
func (t *table) find(key, hash uint64) *cell {
	mask := uint64(len(t.cells) - 1)
	for i := hash << shardBits >> t.shift; ; i++ {
		if c := &t.cells[i&mask]; c.key == key || c.key == 0 {
			return c
		}
	}
}

// get gives the number of a key, 0 if there is none.
func (t *table) get(key uint64) int64 {
	if t.used == 0 {
		return 0
	}
	return t.find(key, hashOf(key)).n
}

// place gives the number of a key, a new one if there is none. It holds until
// place is called with another key.
func (t *table) place(key, hash uint64) *int64 {
	if 4*t.used >= 3*len(t.cells) {
		t.grow(t.used + 1)
	}
	c := t.find(key, hash)
	if c.key == 0 {
		c.key = key
		t.used++
	}
	return &c.n
}

// grow makes room for at least n cells.
func (t *table) grow(n int) {
	size, bits := minCells, uint8(4)
	for 3*size <= 4*n {
		size, bits = 2*size, bits+1
	}
	old := t.cells
	t.cells, t.shift = make([]cell, size), 64-bits
	for _, c := range old {
		if c.key != 0 {
			*t.find(c.key, hashOf(c.key)) = c
		}
	}
}

// A memory is the changes between two cuts, in shards: growing one, and reading
// one under the lock, takes microseconds however many there are. Shards go by
// minute and topic together. By minute alone, many topics with one due, as
// levels give them, would be one shard.
type memory struct {
	shards [shards]table
	cells  int
	hint   int // cells to expect in a shard
}

// next makes the memory that follows, which is expected to be as large. Its
// tables are made when they are needed.
func (m *memory) next() *memory { return &memory{hint: m.cells / shards} }

// place gives the number of a key. It holds until place is called again.
func (m *memory) place(key uint64) *int64 {
	hash := hashOf(key)
	t := &m.shards[hash>>(64-shardBits)]
	if t.cells == nil {
		t.grow(m.hint)
	}
	before := t.used
	n := t.place(key, hash)
	m.cells += t.used - before
	return n
}

// each calls fn for all changes that are not zero, in no order.
func (m *memory) each(fn func(cell)) {
	for i := range m.shards {
		for _, c := range m.shards[i].cells {
			if c.n != 0 {
				fn(c)
			}
		}
	}
}
