package client_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/backup"
	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// TestTopics: every call about topics does what it says.
func TestTopics(t *testing.T) {
	c, after := serve(t)
	ctx := t.Context()
	rate := int64(7)
	if got := must[wire.Topic](t)(c.CreateTopic(ctx, wire.NewTopic{Name: "orders", Queues: new(2), MaxRate: &rate})); got.Queues != 2 || got.MaxRate != 7 {
		t.Errorf("%+v", got)
	}
	if got := must[wire.Topic](t)(c.PutTopic(ctx, "other", wire.TopicSettings{Attributes: map[string]string{"a": "b"}})); got.Attributes["a"] != "b" {
		t.Errorf("%+v", got)
	}
	rate = 0
	if got := must[wire.Topic](t)(c.UpdateTopic(ctx, "orders", wire.TopicPatch{MaxRate: &rate})); got.MaxRate != 0 {
		t.Errorf("%+v", got)
	}
	page := must[wire.Topics](t)(c.Topics(ctx, true, 1, ""))
	next := must[wire.Topics](t)(c.Topics(ctx, false, 0, page.Cursor))
	if len(page.Topics) != 1 || page.Topics[0].Name != "orders" || len(next.Topics) != 1 || next.Topics[0].Name != "other" || next.Cursor != "" {
		t.Errorf("%+v then %+v", page, next)
	}
	must[wire.Receipt](t)(c.Publish(ctx, wire.Send{Topic: "other", After: "10s", Text: "x"}))
	if got := must[wire.Topic](t)(c.PauseTopic(ctx, "other")); !got.Paused {
		t.Errorf("%+v", got)
	}
	after(10 * time.Second)
	if got := must[wire.Topic](t)(c.Topic(ctx, "other")); got.Held != 1 {
		t.Errorf("%+v", got)
	}
	if got := must[wire.Topic](t)(c.ResumeTopic(ctx, "other")); got.Paused {
		t.Errorf("%+v", got)
	}
	after(0)
	q := client.PullQuery{Topic: "other", Max: 5, MaxBytes: 100, Tags: "*", Wait: time.Second}
	if got := must[wire.Pulled](t)(c.Pull(ctx, q)); len(got.Messages) != 1 || got.Next != 1 {
		t.Errorf("%+v", got)
	}
	if o := must[uint64](t)(c.SearchOffset(ctx, "other", 0, wire.TimeOf(testStart.Add(time.Hour)))); o != 1 {
		t.Errorf("offset %d", o)
	}
	if got := must[wire.Purged](t)(c.PurgeTopic(ctx, "other")); got.Visible != 1 {
		t.Errorf("%+v", got)
	}
	must[wire.Purged](t)(c.DeleteTopic(ctx, "other"))
	_, err := c.Topic(ctx, "other")
	code(t, err, wire.CodeTopicUnknown, "other")
}

// TestGroups: every call about groups does what it says.
func TestGroups(t *testing.T) {
	c, _ := serve(t)
	ctx := t.Context()
	must[wire.Topic](t)(c.CreateTopic(ctx, wire.NewTopic{Name: "orders"}))
	must[wire.Receipt](t)(c.Publish(ctx, wire.Send{Topic: "orders", Text: "x"}))
	made := wire.NewGroup{Name: "g", GroupSettings: wire.GroupSettings{MaxAttempts: new(2)}}
	if got := must[wire.Group](t)(c.CreateGroup(ctx, made)); got.MaxAttempts != 2 {
		t.Errorf("%+v", got)
	}
	if got := must[wire.Group](t)(c.PutGroup(ctx, "h", wire.GroupSettings{Start: "latest"})); got.Start != "latest" {
		t.Errorf("%+v", got)
	}
	if got := must[wire.Group](t)(c.UpdateGroup(ctx, "g", wire.GroupSettings{MaxAttempts: new(3)})); got.MaxAttempts != 3 {
		t.Errorf("%+v", got)
	}
	if got := must[wire.Groups](t)(c.Groups(ctx, 1, "")); len(got.Groups) != 1 || got.Cursor == "" {
		t.Errorf("%+v", got)
	}
	if err := c.CommitOffsets(ctx, "g", "orders", map[int]wire.Number{0: 1}); err != nil {
		t.Fatal(err)
	}
	if got := must[map[int]wire.Number](t)(c.Offsets(ctx, "g", "orders")); got[0] != 1 {
		t.Errorf("%v", got)
	}
	if got := must[wire.Group](t)(c.Group(ctx, "g")); len(got.Topics) != 1 || got.Topics[0].Queues[0].Pulled != 1 {
		t.Errorf("%+v", got)
	}
	if got := must[wire.ResetReply](t)(c.ResetGroup(ctx, "g", wire.Reset{Topic: "orders", To: "earliest", DryRun: true})); !got.DryRun || got.Queues[0].To != 0 {
		t.Errorf("%+v", got)
	}
	if got := must[[]int](t)(c.LockQueues(ctx, "g", wire.Lock{Client: "c", Topic: "orders", Queues: []int{0}})); len(got) != 1 {
		t.Errorf("%v", got)
	}
	if err := c.UnlockQueues(ctx, "g", wire.Unlock{Client: "c", Topic: "orders", Queues: []int{0}}); err != nil {
		t.Error(err)
	}
	if err := c.DeleteGroup(ctx, "h"); err != nil {
		t.Error(err)
	}
	_, err := c.Group(ctx, "h")
	code(t, err, wire.CodeGroupUnknown, "h")
}

// TestDead: every call about retries and dead letters does what it says.
func TestDead(t *testing.T) {
	c, after := serve(t)
	ctx := t.Context()
	for _, body := range []string{"a", "b", "c"} {
		must[wire.Receipt](t)(c.Publish(ctx, wire.Send{Topic: "orders", Text: body}))
	}
	ms := must[[]wire.Message](t)(c.Receive(ctx, "orders", wire.Receive{Group: "g", Max: 10}))
	if r := must[wire.NackReply](t)(c.Reject(ctx, ms[0].Lease, nil)); r.Dead || r.Due.Time() != testStart.Add(10*time.Second) {
		t.Errorf("%+v", r)
	}
	for _, m := range ms[1:] {
		must[string](t)(c.Bury(ctx, m.Lease, "why not"))
	}
	if got := must[wire.DeadGroups](t)(c.DeadGroups(ctx, 10, "")); len(got.Groups) != 1 || got.Groups[0].Dead != 2 {
		t.Errorf("%+v", got)
	}
	page := must[wire.Page](t)(c.DeadLetters(ctx, "g", true, 1, ""))
	if len(page.Messages) != 1 || page.Messages[0].Text != "b" || page.Messages[0].Reason != "why not" || page.Cursor == "" {
		t.Errorf("%+v", page)
	}
	var texts []string
	err := c.ExportDead(ctx, "g", func(line []byte, m *wire.Message) error {
		texts = append(texts, m.Text)
		if !json.Valid(line) || bytes.ContainsRune(line, '\n') {
			t.Errorf("%q", line)
		}
		return nil
	})
	if err != nil || strings.Join(texts, " ") != "b c" {
		t.Errorf("%v, %v", texts, err)
	}
	enough := errors.New("enough")
	if err := c.ExportDead(ctx, "g", func([]byte, *wire.Message) error { return enough }); !errors.Is(err, enough) {
		t.Error(err)
	}
	code(t, c.ExportDead(ctx, "nobody", nil), wire.CodeGroupUnknown, "nobody")
	op := must[wire.Operation](t)(c.Redrive(ctx, "g", wire.Redrive{IDs: []string{page.Messages[0].ID}}))
	if op = must[wire.Operation](t)(c.Operation(ctx, op.ID, 30*time.Second)); op.State != wire.OperationDone || op.Done != 1 {
		t.Errorf("%+v", op)
	}
	after(0)
	if got := must[wire.PurgedDead](t)(c.PurgeDead(ctx, "g", nil)); got.Purged != 1 {
		t.Errorf("%+v", got)
	}
	if got := must[wire.PurgedDead](t)(c.PurgeDead(ctx, "g", []string{page.Messages[0].ID})); got.Purged != 0 {
		t.Errorf("%+v", got)
	}
}

// TestSteer: every call about what waits does what it says.
func TestSteer(t *testing.T) {
	c, _ := serve(t)
	ctx := t.Context()
	send := wire.Send{Topic: "orders", Key: "k", After: "10m", Text: "x", IdempotencyKey: `a "b" \`}
	first, replayed, err := c.PublishOnce(ctx, send)
	again, replay, err2 := c.PublishOnce(ctx, send)
	if err != nil || err2 != nil || replayed || !replay || again != first {
		t.Errorf("%+v, %v, %v; then %+v, %v, %v", first, replayed, err, again, replay, err2)
	}
	named := wire.Send{Topic: "orders", Name: "a/b ü", After: "20m"}
	must[wire.Receipt](t)(c.Publish(ctx, named))
	second := must[wire.Receipt](t)(c.Publish(ctx, named))
	if m := must[wire.Message](t)(c.MessageNamed(ctx, "orders", "a/b ü")); second.Replaced == "" || m.ID != second.ID {
		t.Errorf("%+v, %+v", second, m)
	}
	line := must[wire.Timeline](t)(c.Timeline(ctx, wire.TimelineQuery{
		Topic: "orders", From: wire.TimeOf(testStart), To: wire.TimeOf(testStart.Add(time.Hour)), Step: wire.Duration(time.Hour), ByTopic: true,
	}))
	if line.Total != 2 || len(line.Buckets) != 1 || line.Buckets[0].Topics["orders"] != 2 {
		t.Errorf("%+v", line)
	}
	for _, q := range []wire.PendingQuery{{Key: "k"}, {IDs: []string{first.ID}}, {State: wire.StateWaiting, Limit: 1}, {Tag: "", To: wire.TimeOf(testStart.Add(15 * time.Minute))}} {
		if got := must[wire.Page](t)(c.Pending(ctx, q)); len(got.Messages) != 1 || got.Messages[0].ID != first.ID {
			t.Errorf("%+v: %+v", q, got)
		}
	}
	if n := must[int64](t)(c.Count(ctx, wire.PendingQuery{Overdue: true})); n != 0 {
		t.Errorf("%d overdue", n)
	}
	all := wire.Filter{All: true}
	for _, call := range []func() (wire.Operation, error){
		func() (wire.Operation, error) {
			return c.BulkReschedule(ctx, wire.BulkReschedule{Filter: all, By: "1m"})
		},
		func() (wire.Operation, error) {
			return c.BulkSpread(ctx, wire.BulkSpread{Filter: all, At: "2026-12-01T10:00Z", Over: wire.Duration(time.Hour)})
		},
		func() (wire.Operation, error) {
			return c.BulkDeliver(ctx, wire.BulkCancel{Filter: wire.Filter{Key: "k"}})
		},
	} {
		op := must[wire.Operation](t)(call())
		if op = must[wire.Operation](t)(c.Operation(ctx, op.ID, 30*time.Second)); op.State != wire.OperationDone || op.Done == 0 {
			t.Errorf("%+v", op)
		}
		if got := must[wire.Operation](t)(c.StopOperation(ctx, op.ID)); got.State != wire.OperationDone {
			t.Errorf("%+v", got)
		}
	}
	if op := must[wire.Operation](t)(c.BulkCancel(ctx, wire.BulkCancel{Filter: wire.Filter{Topic: "orders"}, DryRun: true})); op.State != wire.OperationDryRun {
		t.Errorf("%+v", op)
	}
	if got := must[wire.Operations](t)(c.Operations(ctx)); len(got.Operations) != 3 {
		t.Errorf("%+v", got)
	}
	if a := must[wire.Answer](t)(c.CancelNamed(ctx, "orders", "a/b ü")); a.ID != second.ID {
		t.Errorf("%+v", a)
	}
}

// TestTransactions and what the server tells about itself.
func TestTransactions(t *testing.T) {
	c, after := serve(t)
	ctx := t.Context()
	one := must[wire.Receipt](t)(c.Publish(ctx, wire.Send{Topic: "orders", Transaction: "shop", Text: "1"}))
	two := must[wire.Receipt](t)(c.Publish(ctx, wire.Send{Topic: "orders", Transaction: "shop"}))
	if got := must[wire.Halves](t)(c.Transactions(ctx, "shop")); len(got.Messages) != 2 {
		t.Errorf("%+v", got)
	}
	after(6 * time.Second)
	if got := must[wire.Halves](t)(c.Checks(ctx, wire.Checks{Producer: "shop", Max: 5})); len(got.Messages) != 2 || got.Messages[0].Checks != 1 {
		t.Errorf("%+v", got)
	}
	must[wire.Answer](t)(c.EndTransaction(ctx, one.ID, true))
	must[wire.Answer](t)(c.EndTransaction(ctx, two.ID, false))
	_, err := c.EndTransaction(ctx, one.ID, false)
	code(t, err, wire.CodeTransactionEnded, one.ID)
	if got := must[wire.Limits](t)(c.Limits(ctx)); len(got.Limits) == 0 {
		t.Error("no limits")
	}
	if got := must[wire.Retention](t)(c.Retention(ctx)); got.Time == 0 || got.LogEnd == 0 {
		t.Errorf("%+v", got)
	}
	var copied bytes.Buffer
	if n := must[int64](t)(c.Backup(ctx, &copied)); n != int64(copied.Len()) || n == 0 {
		t.Errorf("%d bytes", n)
	}
	if _, err := backup.NewReader(&copied); err != nil {
		t.Error(err)
	}
}
