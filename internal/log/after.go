package log

// After gives the place after the batch at pos: what a cut that ends with this
// batch remembers, so that [Open] and [Log.Replay] go on from there. Only the
// batch's head is read. It is an ErrRemoved or ErrRange where [Log.Locate] says
// so, and damage if no batch begins at pos. Anybody may call it.
func (l *Log) After(pos uint64) (Start, error) {
	v := l.now()
	i, err := v.find(pos)
	if err != nil {
		return Start{}, err
	}
	s := v.segments[i]
	sc := l.scan(&v, i, checkedBytes)
	f, err := sc.head(int64(pos - s.base))
	if err != nil {
		return Start{}, damaged(s.path, int64(pos-s.base), err)
	}
	return f.after(s.base), nil
}
