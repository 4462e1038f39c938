package wheel

// A Handle names one task of one wheel, from Add to Cancel. It is a value to
// keep and to compare, with no meaning outside its wheel. The zero Handle names
// no task, and a handle whose task has fired or was cancelled never names
// another one.
type Handle uint64

// A Wheel is what a [Runner] needs of a wheel: [Hierarchical] and [SingleLevel]
// both have it. Their own documentation says what each method does.
type Wheel[T any] interface {
	Add(due int64, v T) Handle
	Cancel(h Handle) (T, bool)
	AdvanceLimit(now int64, limit int, fire func(due int64, v T)) (fired int)
	Next() (due int64, ok bool)
	Now() int64
	Len() int
}

var (
	_ Wheel[int] = (*Hierarchical[int])(nil)
	_ Wheel[int] = (*SingleLevel[int])(nil)
)
