package history

import (
	"fmt"
	"testing"
)

// TestAllowedOnTerms are histories of keys, names, transactions and topics on
// terms of their own that keep every rule.
func TestAllowedOnTerms(t *testing.T) {
	for name, story := range map[string]func(*script){
		"a name taken twice": func(s *script) {
			s.sendTo("t", name("b"))
			s.sendTo("t", name("c"), s.replacing("b"))
			s.kill()
			s.start(ModeDrain)
			s.list("c")
			s.both("c")
			s.sendTo("t", name("d"))
			s.both("d")
		},
		"a name taken by a send that nobody answered": func(s *script) {
			s.sendTo("t", name("b"))
			s.tryTo("t", name("c"))
			s.kill()
			s.start(ModeDrain)
			s.sendTo("t", name("d"), s.replacing("c"))
			s.list("d")
			s.both("d")
		},
		"a key, killed, and used again": func(s *script) {
			s.tryTo("t", keyedOne())
			s.kill()
			s.start(ModeDrain)
			s.sendTo("t", keyedOne(), func(r *Receipt) { r.Repeat = true })
			s.both("b")
			s.sendTo("t", keyedOne(), func(r *Receipt) { r.Repeat, r.Due = true, 0 })
		},
		"a key whose first send never happened": func(s *script) {
			s.tryTo("t", keyedOne())
			s.kill()
			s.start(ModeDrain)
			s.wall += 20
			s.know["b"].Due = s.due(in50) + 1
			s.sendTo("t", keyedOne())
			s.both("b")
		},
		"transactions, committed, rolled back and left": func(s *script) {
			for _, n := range []string{"b", "c", "d", "e", "f"} {
				s.sendTo("t", half(n))
			}
			s.end("b", true, OK)
			s.end("c", false, OK)
			s.end("c", true, Over)
			s.begin(Event{Kind: End, Name: "d", On: true})
			s.begin(Event{Kind: End, Name: "e", On: true})
			s.kill()
			s.start(ModeDrain)
			s.halves("e", "f")
			s.end("d", false, Over)
			s.both("b")
			s.know["d"].Due = s.due(in50)
			s.both("d")
		},
		"paused, and what fell due comes after": func(s *script) {
			s.send("b", in50)
			s.hold(true)
			s.wall += 100
			s.kill()
			s.start(ModeDrain)
			s.hold(false)
			s.know["b"].Visible, s.know["b"].Offset = s.wall, 1
			s.next["t"] = 2
			s.both("b")
		},
		"as fast as its rate, and faster when that is gone": func(s *script) {
			s.limit(10)
			for i := range 30 {
				if i == 12 {
					s.limit(0)
				}
				s.send(fmt.Sprint("m", i), atOnce)
				s.both(fmt.Sprint("m", i))
			}
		},
		"given back, and a power cut forgets the delay": func(s *script) {
			s.send("b", in50)
			s.both("b")
			s.nackFor(3, 1000)
			s.kill()
			s.cut()
			s.start(ModeDrain)
			s.got("g1", "b", func(d *Delivery) { d.Attempt = 1 })
		},
		"an attempt that nobody lived to tell": func(s *script) {
			s.send("b", in50)
			s.both("b")
			s.kill()
			s.start(ModeDrain)
			s.got("g1", "b", func(d *Delivery) { d.Attempt = 3 })
		},
		"dead after an attempt that nobody lived to tell": poison(func(s *script) {
			s.nackFor(s.got("g3", "b"), 0)
			s.kill()
			s.start(ModeDrain)
			s.dead("b")
		}),
		"acknowledged at the last attempt": poison(func(s *script) {
			s.nackFor(s.got("g3", "b"), 0)
			s.ack(s.got("g3", "b"))
			s.dead()
		}),
		"sent again to its group alone": func(s *script) {
			s.send("b", in50)
			s.both("b")
			s.nackFor(3, 20)
			s.wall += 30
			s.got("g1", "b", func(d *Delivery) { d.Retry, d.Queue, d.Offset, d.Due, d.Visible = true, 0, 77, 0, s.wall })
		},
		"cancelled in bulk, across a kill": inBulk(func(s *script) {
			s.bulk(Operation{ID: "op-1", State: "running", Done: 1})
			s.kill()
			s.start(ModeDrain)
			s.both("d")
			s.stands(Operation{ID: "op-1", State: OperationDone, Done: 2, Missed: 1})
			s.list()
		}),
		"a bulk operation that never began": inBulk(func(s *script) {
			s.begin(Event{Kind: Bulk, Topic: "bulk", Tag: "tag"})
			s.kill()
			s.start(ModeDrain)
			s.both("d")
			s.both("b")
			s.both("c")
		}),
		"purged, by a call that nobody answered": inPurged(func(s *script) {
			s.begin(Event{Kind: Purge, Topic: "purged"})
			s.kill()
			s.start(ModeDrain)
			s.sendTo("purged", Message{Name: "c", Delay: in50})
			s.both("c", func(d *Delivery) { d.Offset = 0 })
		}),
		"retention within its bounds": func(s *script) {
			s.put(Event{Kind: Retention, Figures: &Figures{Kept: 10, Most: 10}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := check(lone(func(s *script) {
				story(s)
				s.drained()
			}))
			if len(r.Violations) > 0 {
				t.Errorf("broken:\n%v", r)
			}
		})
	}
}
