package timeline

import "github.com/duemq/duemq/internal/record"

// A slab is an append-only sequence of references in chunks. What was appended
// never changes, so that a reader may keep the chunks and a length.
type slab struct {
	chunks []*chunk
	n      int
}

const (
	chunkBits = 10
	chunkLen  = 1 << chunkBits // 32 KiB of references
)

type chunk [chunkLen]record.Ref

func (s *slab) append(r record.Ref) uint32 {
	i := s.n
	if i>>chunkBits == len(s.chunks) {
		s.chunks = append(s.chunks, new(chunk))
	}
	s.chunks[i>>chunkBits][i&(chunkLen-1)] = r
	s.n++
	return uint32(i)
}

func (s *slab) at(i int) *record.Ref { return &s.chunks[i>>chunkBits][i&(chunkLen-1)] }

func (s *slab) holds(k record.Key) bool {
	for i := range s.n {
		if s.at(i).Key() == k {
			return true
		}
	}
	return false
}

// A level is the FIFO of one delay level: its messages all wait equally long,
// so they come in due order and are never sorted.
type level struct {
	slab
	gen  *generation
	next int
	last record.Key
}

// fits says whether k keeps the FIFO in order. It does not after the level's
// delay was shortened or the clock was set back; such a reference goes to the
// wheel.
func (l *level) fits(k record.Key) bool { return l.n == 0 || k.Compare(l.last) > 0 }

func (l *level) push(r record.Ref) {
	l.append(r)
	l.last = r.Key()
}

func (l *level) head(t *Timeline) *record.Ref {
	for l.next < l.n {
		r := l.at(l.next)
		if l.gen.alive(t, r.Key()) {
			return r
		}
		l.next++
	}
	return nil
}

func (l *level) advance() { l.next++ }
