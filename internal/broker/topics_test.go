package broker

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/record"
)

func TestCreateTopic(t *testing.T) {
	s := newStand(t)
	attrs := []record.Property{{Name: "owner", Value: "billing"}, {Name: "max_rate", Value: "50"}}
	made, err := s.b.CreateTopic(t.Context(), "orders", 4, attrs)
	if err != nil || made.Queues != 4 || made.MaxRate != 50 || made.System || len(made.Offsets) != 4 || made.Attributes[0].Name != "max_rate" {
		t.Fatalf("CreateTopic: %+v, %v", made, err)
	}
	if _, err := s.b.CreateTopic(t.Context(), "orders", 4, attrs); err != nil {
		t.Errorf("the same again: %v", err)
	}
	long := strings.Repeat("x", MaxAttributeValue+1)
	for name, c := range map[string]struct {
		topic  string
		queues int
		attrs  []record.Property
		want   error
	}{
		"other queues":     {"orders", 5, attrs, ErrExists},
		"other attributes": {"orders", 4, attrs[:1], ErrExists},
		"too many queues":  {"o", MaxQueues + 1, nil, ErrInvalid},
		"fewer than none":  {"o", -1, nil, ErrInvalid},
		"no name":          {"", 1, nil, ErrInvalid},
		"the broker's own": {"%RETRY%g", 1, nil, ErrForbidden},
		"twice":            {"o", 1, []record.Property{{Name: "a", Value: "1"}, {Name: "a", Value: "2"}}, ErrInvalid},
		"empty":            {"o", 1, []record.Property{{Name: "a"}}, ErrInvalid},
		"without a name":   {"o", 1, []record.Property{{Value: "1"}}, ErrInvalid},
		"too long":         {"o", 1, []record.Property{{Name: "a", Value: long}}, ErrInvalid},
		"no rate":          {"o", 1, []record.Property{{Name: "max_rate", Value: "fast"}}, ErrInvalid},
	} {
		if _, err := s.b.CreateTopic(t.Context(), c.topic, c.queues, c.attrs); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if got, err := s.b.CreateTopic(t.Context(), "default", 0, nil); err != nil || got.Queues != 1 {
		t.Errorf("queues left to the broker: %+v, %v", got, err)
	}
	s.reopen()
	var names []string
	for _, info := range s.b.TopicList(false) {
		names = append(names, fmt.Sprint(info.Name, info.Queues, info.MaxRate))
	}
	if want := []string{"orders4 50", "default1 0"}; !slices.Equal(names, want) {
		t.Errorf("after a restart: %q, want %q", names, want)
	}
	if _, err := s.b.Topic("nobody"); !errors.Is(err, ErrTopicUnknown) {
		t.Errorf("Topic: %v", err)
	}
}

func TestSystemTopicsAreApart(t *testing.T) {
	s := newStand(t)
	if _, err := s.b.e.MakeTopic(t.Context(), "%DLQ%g", 1, nil); err != nil {
		t.Fatal(err)
	}
	s.send(Message{Topic: "orders"})
	if got := s.b.TopicList(false); len(got) != 1 || got[0].Name != "orders" {
		t.Errorf("list: %+v", got)
	}
	if got := s.b.TopicList(true); len(got) != 2 {
		t.Errorf("list with the broker's own: %+v", got)
	}
	if info, err := s.b.Topic("%DLQ%g"); err != nil || !info.System {
		t.Errorf("Topic: %+v, %v", info, err)
	}
	if _, _, err := s.b.DeleteTopic(t.Context(), "%DLQ%g"); !errors.Is(err, ErrForbidden) {
		t.Errorf("DeleteTopic: %v", err)
	}
	if r, err := s.b.Send(t.Context(), []Message{{Topic: "%DLQ%g"}}); err != nil || !errors.Is(r[0].Err, ErrForbidden) {
		t.Errorf("Send: %+v, %v", r, err)
	}
}

func TestUpdateTopic(t *testing.T) {
	s := newStand(t)
	if _, err := s.b.UpdateTopic(t.Context(), "orders", nil); !errors.Is(err, ErrTopicUnknown) {
		t.Errorf("UpdateTopic: %v", err)
	}
	s.send(Message{Topic: "orders"})
	update := func(attrs map[string]string) TopicInfo {
		t.Helper()
		info, err := s.b.UpdateTopic(t.Context(), "orders", attrs)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	update(map[string]string{"owner": "billing", "max_rate": "10"})
	if _, err := s.b.UpdateTopic(t.Context(), "orders", map[string]string{"max_rate": "-1"}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a rate below 0: %v", err)
	}
	if info := update(map[string]string{"max_rate": "20"}); info.MaxRate != 20 || len(info.Attributes) != 2 {
		t.Errorf("another rate: %+v", info)
	}
	if info := update(map[string]string{"max_rate": "", "nothing": ""}); info.MaxRate != 0 || len(info.Attributes) != 1 {
		t.Errorf("without a rate: %+v", info)
	}
	s.crash()
	if info, err := s.b.Topic("orders"); err != nil || len(info.Attributes) != 1 || info.Attributes[0].Value != "billing" {
		t.Errorf("after a crash: %+v, %v", info, err)
	}
}

// TestPauseKeepsOrder: what falls due while a topic is paused is held back, and
// comes in its order before what is sent afterwards.
func TestPauseKeepsOrder(t *testing.T) {
	s := newStand(t)
	s.send(Message{Topic: "t", Body: []byte("before")})
	s.send(numbered("t", 4, func(i int) Delay { return after(time.Duration(4-i) * time.Second) })...)
	if err := s.b.PauseTopic(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	s.step(3 * time.Second)
	r := s.send(Message{Topic: "t", Body: []byte("undelayed"), Key: "u"})
	if r[0].State != StatePaused || r[0].Ready {
		t.Errorf("sent while paused: %+v", r[0])
	}
	s.wantVisible("t", "before")
	s.crash()
	info, err := s.b.Topic("t")
	if err != nil || !info.Counts.Paused || info.Counts.Held != 4 || info.Counts.Waiting != 5 {
		t.Errorf("paused: %+v, %v", info.Counts, err)
	}
	if got := keysOf(s.pending(Filter{State: StatePaused})); !slices.Equal(got, []string{"3", "2", "1", "u"}) {
		t.Errorf("held back: %q", got)
	}
	if got := keysOf(s.pending(Filter{State: StateWaiting})); !slices.Equal(got, []string{"0"}) {
		t.Errorf("not held back: %q", got)
	}
	if v, err := s.b.Message(t.Context(), r[0].ID.String()); err != nil || v.State != StatePaused {
		t.Errorf("message held back: %s, %v", v.State, err)
	}
	if err := s.b.ResumeTopic(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	s.step(0)
	s.wantVisible("t", "before", "3", "2", "1", "undelayed")
	s.step(time.Second)
	s.wantVisible("t", "before", "3", "2", "1", "undelayed", "0")
	if err := s.b.PauseTopic(t.Context(), "nobody"); !errors.Is(err, ErrTopicUnknown) {
		t.Errorf("PauseTopic: %v", err)
	}
}

// TestMaxRateKeepsOrder: a topic with a rate lets no more through, and nothing
// overtakes.
func TestMaxRateKeepsOrder(t *testing.T) {
	s := newStand(t)
	if _, err := s.b.CreateTopic(t.Context(), "t", 1, []record.Property{{Name: "max_rate", Value: "20"}}); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, m := range numbered("t", 60, func(int) Delay { return after(time.Second) }) {
		s.send(m)
		want = append(want, string(m.Body))
	}
	s.step(999 * time.Millisecond)
	s.wantVisible("t")
	s.step(time.Millisecond)
	for tick := range 30 { // 3 s at 20 a second
		n := len(s.visible("t"))
		if most := 2 + 2*tick; n > most || n < 2*tick-2 {
			t.Fatalf("%d ms after the due: %d visible, want about %d", tick*100, n, most)
		}
		s.step(100 * time.Millisecond)
	}
	s.step(100 * time.Millisecond)
	s.wantVisible("t", want...)
}

// TestPurgedTopicGetsNothing: what waited for a topic that was purged or deleted
// never comes, its names and keys are void, and what is sent afterwards is
// delivered.
func TestPurgedTopicGetsNothing(t *testing.T) {
	for _, how := range []string{"purge", "delete"} {
		t.Run(how, func(t *testing.T) {
			s := newStand(t)
			s.send(numbered("t", 5, func(int) Delay { return after(time.Minute) })...)
			s.send(Message{Topic: "t", Body: []byte("old")}, Message{Topic: "other", Body: []byte("kept"), Delay: after(time.Minute)})
			named := Message{Topic: "t", Name: "n", Idempotency: "k", Body: []byte("named"), Delay: after(time.Hour)}
			half := Message{Topic: "t", Half: "p", Body: []byte("half")}
			s.send(named, half)
			end := s.b.PurgeTopic
			if how == "delete" {
				end = s.b.DeleteTopic
			}
			waiting, visible, err := end(t.Context(), "t")
			if err != nil || waiting != 6 || visible != 1 {
				t.Fatalf("%s: %d waiting, %d visible, %v; want 6 and 1", how, waiting, visible, err)
			}
			s.crash()
			if _, err := s.b.Topic("t"); (how == "delete") != errors.Is(err, ErrTopicUnknown) {
				t.Errorf("Topic: %v", err)
			}
			if got := s.pending(Filter{}); len(got) != 1 {
				t.Errorf("pending: %q", keysOf(got))
			}
			if got := s.b.Transactions(""); len(got) != 0 {
				t.Errorf("transactions: %+v", got)
			}
			r := s.send(named, Message{Topic: "t", Body: []byte("new")})
			if r[0].Repeat || r[0].Replaced != 0 {
				t.Errorf("name and key of before: %+v", r[0])
			}
			s.step(2 * time.Hour)
			s.wantVisible("t", "new", "named")
			s.wantVisible("other", "kept")
		})
	}
}

// TestSendMeetsPurge: a send that meets a purge goes before it or after it, and
// never fails.
func TestSendMeetsPurge(t *testing.T) {
	s := newStand(t)
	if _, err := s.b.CreateTopic(t.Context(), "t", 3, nil); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			for i := range 100 {
				m := Message{Topic: "t", Queue: w, HasQueue: i%2 == 0}
				if i%3 == 0 {
					m.Name = fmt.Sprint(w, i)
				}
				r, err := s.b.Send(t.Context(), []Message{m, m})
				if err != nil || r[0].Err != nil || r[1].Err != nil || r[0].Queue > 2 || m.HasQueue && r[0].Queue != w {
					t.Errorf("send %d: %+v, %v", i, r, err)
					return
				}
			}
		})
	}
	for range 10 {
		s.send(Message{Topic: "t"})
		if _, _, err := s.b.PurgeTopic(t.Context(), "t"); err != nil {
			t.Errorf("purge: %v", err)
		}
		for _, info := range s.b.TopicList(false) {
			if info.Queues != 3 {
				t.Errorf("topic %+v", info)
			}
		}
	}
	wg.Wait()
}

// TestRetentionInfo: it says the defaults of RocketMQ, and where the log is.
func TestRetentionInfo(t *testing.T) {
	s := newStand(t)
	s.send(Message{Topic: "t"})
	r := s.b.RetentionInfo()
	if r.Time != 72*time.Hour || r.CarryAfter != 24*time.Hour || r.Bytes != 0 || r.LogFirst != 0 || r.LogEnd == 0 || r.Carried != 0 || r.Damaged != 0 {
		t.Errorf("%+v", r)
	}
}
