//go:build linux

package main

import (
	"strings"
	"time"
)

// A scenario takes one or more figures.
type scenario struct {
	name  string
	goals map[string]string
	take  func(dir string, out report) error
	once  bool // however many runs are asked for
}

// times is how often the scenario is taken.
func (s scenario) times(runs int) int {
	if s.once {
		return min(runs, 1)
	}
	return runs
}

// planned is every scenario that was asked for, in the order of the table.
func planned(s settings) []scenario {
	z := s.sizes
	all := concat(sending(z), falling(z), steering(z), waitingFor(z), writing(z), keeping(z), idling(z))
	if s.full {
		all = append(all, many(z, 10*z.Waiting)...)
		all = append(all, counting(10*z.Waiting))
	}
	if s.full && s.huge {
		for _, sc := range many(z, 100*z.Waiting) {
			sc.goals, sc.once = nil, true
			all = append(all, sc)
		}
	}
	return all
}

func concat(parts ...[]scenario) (all []scenario) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// The two ways of waiting.
var ways = []struct {
	name, kind string
}{{"level", "level"}, {"any time", "any"}}

// each makes a scenario for each way of waiting; WAY in the name is its name.
func each(name string, goals map[string]string, take func(kind, dir string, out report) error) (both []scenario) {
	for _, w := range ways {
		both = append(both, scenario{
			name: strings.ReplaceAll(name, "WAY", w.name), goals: goals,
			take: func(dir string, out report) error { return take(w.kind, dir, out) },
		})
	}
	return both
}

// far is a delay whose moment no scenario reaches.
func far(kind string) delayer {
	if kind == "level" {
		return byLevel(18)
	}
	return byTime(2*time.Hour, time.Hour)
}

// near is a delay of about a second.
func near(kind string) delayer {
	if kind == "level" {
		return byLevel(1)
	}
	return byTime(100*time.Millisecond, 1900*time.Millisecond)
}

func sending(z sizes) []scenario {
	batches := map[string]string{"rate": ">= 400,000", "of a raw loop that syncs each batch of 1,000": ">= 0.60"}
	singles := map[string]string{"rate": ">= 250,000"}
	return concat(
		each("batches of 1,000, WAY", batches, func(kind, dir string, out report) error {
			return sendBatches(dir, z.Rate, far(kind), out)
		}),
		each("256 single senders, WAY", singles, func(kind, dir string, out report) error {
			return sendSingles(dir, z.Rate/4, far(kind), out)
		}),
	)
}

func falling(z sizes) []scenario {
	visibly := map[string]string{"visible": ">= 1,000,000", "received (leases written) and acked by 4 consumers": ">= 400,000"}
	taken := map[string]string{"received (leases written) and acked by 4 consumers": ">= 400,000"}
	late := map[string]string{"beyond 2 x fdatasync p99, p99": "<= 2", "early": "0"}
	n := human(float64(z.Waiting))
	at := []scenario{
		{name: n + " due at one instant, any time", goals: visibly, take: func(dir string, out report) error {
			return burstAnyTime(dir, z.Waiting, out)
		}},
		{name: n + " due at one instant, level", goals: taken, take: func(dir string, out report) error {
			return burstLevel(dir, z.Waiting, out)
		}},
		{name: "5,000/s, level of 1 s", goals: late, take: func(dir string, out report) error {
			return lateness(dir, z.Steady, near("level"), 0, out)
		}},
		{name: "5,000/s, any time 0.1 to 2 s", goals: late, take: func(dir string, out report) error {
			return lateness(dir, z.Steady, near("any"), 0, out)
		}},
		{name: "2,000/s of topic Y while " + n + " of topic X fall due at one instant", goals: map[string]string{"early": "0"}, take: func(dir string, out report) error {
			return besideBurst(dir, z, out)
		}},
	}
	return append(at, beside(z, z.Waiting))
}

// beside is the steady load beside messages that wait.
func beside(z sizes, n int) scenario {
	return scenario{
		name:  "5,000/s beside " + human(float64(n)) + " waiting",
		goals: map[string]string{"received late, p99": "that of an empty store + 1 ms", "early": "0"},
		take: func(dir string, out report) error {
			return lateness(dir, z.Steady, near("any"), n, out)
		},
	}
}

func steering(z sizes) []scenario {
	return []scenario{
		{name: human(float64(z.Waiting)) + " waiting, steered by id by 256 callers", take: func(dir string, out report) error {
			return steer(dir, z, out)
		}},
		counting(z.Waiting),
	}
}

func counting(n int) scenario {
	return scenario{name: human(float64(n)) + " waiting, counted", take: func(dir string, out report) error {
		return countMonth(dir, n, out)
	}}
}

func waitingFor(z sizes) []scenario {
	goals := map[string]string{"RSS": "<= 96", "disk": "<= 400", "timer bytes a message": "<= 32", "restart to first ack": "<= 1,000"}
	return each(human(float64(z.Waiting))+" waiting, WAY", goals, func(kind, dir string, out report) error {
		return waiting(dir, z.Waiting, 256, kind, out)
	})
}

func writing(z sizes) []scenario {
	quarter := map[string]string{"all bytes per body byte": "<= 1.35"}
	whole := map[string]string{"all bytes per body byte": "<= 1.12"}
	bytes := func(size, n int, way string) func(string, report) error {
		return func(dir string, out report) error { return bytesWritten(dir, size, n, near(way), out) }
	}
	all := []scenario{
		{name: "bytes written, 256 B, level of 1 s, acked", goals: quarter, take: bytes(256, z.Rate/5, "level")},
		{name: "bytes written, 256 B, any time to 2 s, acked", goals: quarter, take: bytes(256, z.Rate/5, "any")},
		{name: "bytes written, 1 KiB, level of 1 s, acked", goals: whole, take: bytes(1024, z.Rate/10, "level")},
		{name: "bytes written, 1 KiB, any time to 2 s, acked", goals: whole, take: bytes(1024, z.Rate/10, "any")},
	}
	return append(all, each("what the index costs, WAY", nil, func(kind, dir string, out report) error {
		return indexCost(dir, kind, z.Rate, out)
	})...)
}

func keeping(z sizes) []scenario {
	kib := human(float64(z.Cold)) + " of 1 KiB, "
	return []scenario{
		{name: human(float64(z.Waiting/2)) + " waiting, carried", take: func(dir string, out report) error {
			return carry(dir, z, out)
		}},
		{name: kib + "bodies cold in the log", take: func(dir string, out report) error {
			return cold(dir, z, false, out)
		}},
		{name: kib + "bodies cold and carried", take: func(dir string, out report) error {
			return cold(dir, z, true, out)
		}},
		{name: human(float64(z.Waiting)) + " waiting, backed up", take: func(dir string, out report) error {
			return backUp(dir, z, out)
		}},
	}
}

func idling(z sizes) []scenario {
	quiet := map[string]string{"CPU of a core": "< 0.2", "wake-ups that found nothing": "0"}
	return each("idle with "+human(float64(z.Waiting))+" waiting, WAY", quiet, func(kind, dir string, out report) error {
		return idle(dir, kind, z.Waiting, z.Watch, out)
	})
}

// many is what is taken only when asked for: very many messages waiting.
func many(z sizes, n int) []scenario {
	return []scenario{
		{
			name:  human(float64(n)) + " waiting, 64 B, any time",
			goals: map[string]string{"RSS": "<= 1,024", "restart to first ack": "<= 2,000"},
			take:  func(dir string, out report) error { return waiting(dir, n, 64, "any", out) },
		},
		beside(z, n),
	}
}
