package cli

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// A when is what was typed about an instant, relative or absolute.
type when struct {
	afterText, atText, zone string
	afterName, atName       string
}

// flags registers the two flags under their names, and --tz.
func (w *when) flags(f *pflag.FlagSet, after, at string) {
	w.moments(f, after, at)
	f.StringVar(&w.zone, "tz", "", "time `ZONE` of an instant that names none: Asia/Shanghai; default this machine's")
}

// moments registers the two flags, for a command that has a --tz already.
func (w *when) moments(f *pflag.FlagSet, after, at string) {
	w.afterName, w.atName = after, at
	f.StringVar(&w.afterText, after, "", "due so `LONG` from now, on the server's clock: 10s, 1h30m, 2d")
	f.StringVar(&w.atText, at, "", "due at `INSTANT`: 2026-12-01T09:00+08:00, '2026-12-01 09:00'")
}

// after gives the delay as it was typed, once it has been understood.
func (w *when) after() (string, error) {
	if w.afterText == "" {
		return "", nil
	}
	if _, err := wire.ParseDelay(w.afterText); err != nil {
		return "", usage("--"+w.afterName+" "+quote(w.afterText), "%w", err)
	}
	return w.afterText, nil
}

// at gives the instant with its zone. One that names none is read in --tz, or
// in local.
func (w *when) at(local *time.Location) (string, error) {
	if w.zone != "" {
		zone, err := time.LoadLocation(w.zone)
		if err != nil || w.zone == "Local" {
			return "", usage("--tz "+quote(w.zone), "no such time zone; want a name as in the IANA data base: Asia/Shanghai, Europe/Berlin, UTC")
		}
		local = zone
	}
	if w.atText == "" {
		return "", nil
	}
	t, err := wire.ParseInstant(w.atText, local)
	if err != nil {
		return "", usage("--"+w.atName+" "+quote(w.atText), "%w", err)
	}
	return wire.TimeOf(t).String(), nil
}
