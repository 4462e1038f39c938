package wheel

import "math/bits"

// A bitmap says which slots are occupied. A second row says which words of the
// first are not zero, so that 4096 slots are searched at two glances.
type bitmap struct {
	words []uint64
	sums  []uint64
}

func newBitmap(n int) bitmap {
	words := (n + 63) / 64
	return bitmap{
		words: make([]uint64, words),
		sums:  make([]uint64, (words+63)/64),
	}
}

func (b *bitmap) set(i int) {
	w := i >> 6
	b.words[w] |= 1 << (i & 63)
	b.sums[w>>6] |= 1 << (w & 63)
}

func (b *bitmap) clear(i int) {
	w := i >> 6
	b.words[w] &^= 1 << (i & 63)
	if b.words[w] == 0 {
		b.sums[w>>6] &^= 1 << (w & 63)
	}
}

// first returns the lowest bit that is set, or -1.
func (b *bitmap) first() int {
	for s, sum := range b.sums {
		if sum != 0 {
			w := s<<6 + bits.TrailingZeros64(sum)
			return w<<6 + bits.TrailingZeros64(b.words[w])
		}
	}
	return -1
}

// next returns the lowest bit at or above i that is set, or -1.
func (b *bitmap) next(i int) int {
	w := i >> 6
	if w >= len(b.words) {
		return -1
	}
	if rest := b.words[w] &^ (1<<(i&63) - 1); rest != 0 {
		return w<<6 + bits.TrailingZeros64(rest)
	}
	for w++; w < len(b.words); w++ {
		if word := b.words[w]; word != 0 {
			return w<<6 + bits.TrailingZeros64(word)
		}
	}
	return -1
}

func (b *bitmap) reset() {
	clear(b.words)
	clear(b.sums)
}

func (b *bitmap) bytes() int { return 8 * (len(b.words) + len(b.sums)) }
