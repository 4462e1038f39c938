package httpapi

import "github.com/duemq/duemq/internal/httpapi/wire"

// retention says what is kept, and for how long.
func (h *Handler) retention(*request) (*wire.Retention, error) {
	i := h.b.RetentionInfo()
	return &wire.Retention{
		Time: wire.Duration(max(i.Time, 0)), Bytes: i.Bytes, CarryAfter: wire.Duration(i.CarryAfter),
		LogFirst: i.LogFirst, LogEnd: i.LogEnd, Trim: wire.Time(i.Trim), Carried: i.Carried, Damaged: i.Damaged,
	}, nil
}

// limits lists the limits of everything.
func (h *Handler) limits(*request) (*wire.Limits, error) {
	all := h.b.Limits()
	out := wire.Limits{Limits: make([]wire.Limit, len(all))}
	for i, l := range all {
		out.Limits[i] = wire.Limit{Name: l.Name, Value: l.Value, Unit: l.Unit, What: l.What}
	}
	return &out, nil
}
