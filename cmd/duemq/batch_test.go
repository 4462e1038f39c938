//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// post posts JSON and gives status and body of the answer.
func post(t *testing.T, url, kind string, body []byte) (status int, answer []byte) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", kind)
	reply, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	answer, err = io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply.StatusCode, answer
}

const (
	jsonType  = "application/json"
	linesType = "application/x-ndjson"
)

// A line is one message of a batch of G13, and what must become of it: it waits so
// long, or is refused.
type line struct {
	json    string
	delay   time.Duration // from when the batch is taken; zero is at once
	problem wire.Code     // empty if it is sent
}

// batchLines are independent: what is wrong with one is nothing to the others.
var batchLines = []line{
	{json: `{"topic":"orders","text":"a","deliverAfter":"1s"}`, delay: time.Second},
	{json: `{"topic":"orders","text":"b","deliverAfter":"soon"}`, problem: wire.CodeDelayInvalid},
	{json: `{"topic":"orders","text":"c","level":2}`, delay: 2 * time.Second},
	{json: `{"topic":"orders","text":"d","deliverAfter":"1s","level":2}`, problem: wire.CodeDelayConflict},
	{json: `{"topic":"orders","text":"e"}`},
	{json: `{"topic":"orders","text":"f","deliverAfter":"366d"}`, problem: wire.CodeDelayTooLong},
	{json: `{"topic":"orders","text":"g","deliverAfter":"3s"}`, delay: 3 * time.Second},
	{json: `{"topic":"SCHEDULE_TOPIC_XXXX","text":"h","deliverAfter":"1s"}`, problem: wire.CodeForbidden},
	{json: `{"topic":"orders","text":"i","deliverAfter":"3s"}`, delay: 3 * time.Second},
}

// TestCaseBatch is case G13: a batch is so many sends, each with its own delay or
// none. One that is refused does not keep the others back, and never comes; none is
// early. A delay for a whole batch does not exist and is refused with everything in
// it.
func TestCaseBatch(t *testing.T) {
	t.Parallel()
	var all []string
	for _, l := range batchLines {
		all = append(all, l.json)
	}
	for kind, body := range map[string]string{
		jsonType:  `{"messages":[` + strings.Join(all, ",") + `]}`,
		linesType: strings.Join(all, "\n"),
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := serve(t, t.TempDir(), "--levels", "1s 2s")
			r := newTrial(t, s)
			r.refusals(s.url, all)
			before := time.Now()
			status, answer := post(t, s.url+"/v1/batch", kind, []byte(body))
			after := time.Now()
			var reply wire.BatchReply
			if err := json.Unmarshal(answer, &reply); status != http.StatusOK || err != nil || len(reply.Results) != len(batchLines) {
				t.Fatalf("%d %v: %s", status, err, answer)
			}
			for i, got := range reply.Results {
				r.result(i, &got, before, after)
			}
			if reply.Accepted != r.accepted || reply.Refused != len(batchLines)-r.accepted {
				t.Errorf("%d accepted and %d refused, want %d of %d", reply.Accepted, reply.Refused, r.accepted, len(batchLines))
			}
			r.all()
			r.none(time.Now().Add(time.Second))
		})
	}
}

// result judges what became of one message of batchLines, which was sent between two
// instants.
func (r *trial) result(i int, got *wire.BatchResult, before, after time.Time) {
	r.t.Helper()
	want := &batchLines[i]
	if want.problem != "" {
		if got.Receipt != nil || got.Problem == nil || got.Problem.Code != want.problem {
			r.t.Errorf("%s: %+v, %+v; want %s", want.json, got.Receipt, got.Problem, want.problem)
		}
		return
	}
	if got.Receipt == nil || got.Problem != nil {
		r.t.Fatalf("%s: %+v", want.json, got.Problem)
	}
	due := got.Receipt.DeliverAt.Time()
	switch {
	case want.delay == 0:
		if got.Receipt.State != wire.StateReady || !due.Equal(wire.Time(0).Time()) {
			r.t.Errorf("%s: %+v, want it ready", want.json, got.Receipt)
		}
	case due.Before(before.Add(want.delay)), due.After(after.Add(want.delay + time.Millisecond)):
		r.t.Errorf("%s: %+v, want it due %v from now", want.json, got.Receipt, want.delay)
	}
	r.due[got.Receipt.ID] = due
	r.accepted++
}

// refusals sends batches that are refused as a whole, of which nothing may come.
func (r *trial) refusals(url string, all []string) {
	r.t.Helper()
	for _, tt := range []struct {
		query, kind, body string
		code              wire.Code
	}{
		{"", jsonType, `{"messages":[` + all[0] + `,` + all[2] + `,` + all[4] + `],"deliverAfter":"1s"}`, wire.CodeUnknownField},
		{"?after=1s", linesType, all[0] + "\n" + all[2], wire.CodeUnknownParameter},
		{"", linesType, all[0] + "\n" + all[2] + "\n{\"topic\":", wire.CodeBadRequest},
	} {
		status, answer := post(r.t, url+"/v1/batch"+tt.query, tt.kind, []byte(tt.body))
		var p wire.Problem
		if err := json.Unmarshal(answer, &p); err != nil || status != http.StatusBadRequest || p.Code != tt.code {
			r.t.Errorf("%s as a batch: %d %s, want 400 %s", tt.body, status, answer, tt.code)
		}
	}
	if n, err := r.c.Count(r.t.Context(), wire.PendingQuery{}); n != 0 || err != nil {
		r.t.Errorf("%d wait, %v; want nothing of a batch that was refused", n, err)
	}
}

// TestCaseBatchLibrary is case G13 with the store in the process.
func TestCaseBatchLibrary(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	q := open(t, t.TempDir())
	start := time.Now()
	sent, err := q.SendBatch(ctx, []duemq.Message{
		{Topic: "orders", After: time.Second},
		{Topic: "orders", After: time.Second, Level: 1},
		{Topic: "orders", At: start.Add(2 * time.Second)},
		{Topic: "no such name", After: time.Second},
		{Topic: "orders", Level: 1},
		{Topic: "orders", After: 366 * 24 * time.Hour},
		{Topic: "orders"},
	})
	if len(sent) != 7 || !errors.Is(err, duemq.ErrInvalid) || !errors.Is(err, duemq.ErrDelayTooLong) {
		t.Fatalf("%d receipts, %v; want 7, and the errors of the refused ones", len(sent), err)
	}
	for i, want := range []error{nil, duemq.ErrInvalid, nil, duemq.ErrInvalid, nil, duemq.ErrDelayTooLong, nil} {
		if !errors.Is(sent[i].Err, want) {
			t.Errorf("message %d: %v, want %v", i, sent[i].Err, want)
		}
	}
	delays := map[string]time.Duration{sent[0].ID: time.Second, sent[2].ID: 2 * time.Second, sent[4].ID: time.Second, sent[6].ID: 0}
	for m, err := range q.Receive(ctx, "orders", duemq.Group("g"), duemq.Wait(2*time.Second+punctual)) {
		if err != nil {
			t.Fatal(err)
		}
		late := time.Since(start) - delays[m.ID]
		if _, ok := delays[m.ID]; !ok || late < 0 || late > punctual {
			t.Errorf("message %s received %v after its due, of %v", m.ID, late, delays)
		}
		delete(delays, m.ID)
		if err := m.Ack(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if len(delays) > 0 {
		t.Errorf("not received: %s", fmt.Sprint(delays))
	}
}
