package httpapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/clock"
	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/fs"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

func TestRetention(t *testing.T) {
	d := setup{engine: func(o *engine.Options) {
		o.Retention = engine.Retention{Time: time.Hour, Bytes: 1 << 30, CarryAfter: 2 * time.Hour}
	}}.open(t)
	d.publish("orders", "", "x")
	var got wire.Retention
	d.do("GET", "/v1/retention", "").want(200, &got)
	if got.Time != wire.Duration(time.Hour) || got.Bytes != 1<<30 || got.CarryAfter != wire.Duration(2*time.Hour) || got.LogEnd <= got.LogFirst || got.Carried != 0 || got.Damaged != 0 {
		t.Errorf("%+v", got)
	}
}

// TestTrim: what retention gave up is told.
func TestTrim(t *testing.T) {
	d := setup{engine: func(o *engine.Options) {
		o.SegmentBytes, o.Retention = 64<<10, engine.Retention{Time: time.Hour}
	}}.open(t)
	body := strings.Repeat("x", 16<<10)
	for range 12 {
		d.publish("orders", "", body)
	}
	var got wire.Retention
	for deadline := time.Now().Add(10 * time.Second); got.Trim == 0; {
		d.after(time.Hour)
		d.publish("orders", "", "x")
		if d.do("GET", "/v1/retention", "").want(200, &got); time.Now().After(deadline) {
			t.Fatalf("%+v", got)
		}
	}
	var pulled wire.Pulled
	d.do("GET", "/v1/topics/orders/queues/0/messages", "").want(200, &pulled)
	if !pulled.Moved || pulled.Skipped == 0 || pulled.Low == 0 {
		t.Errorf("%+v", pulled)
	}
}

// TestLimits: what the broker says is what there is.
func TestLimits(t *testing.T) {
	d := newDoor(t)
	var got wire.Limits
	d.do("GET", "/v1/limits", "").want(200, &got)
	all := d.b.Limits()
	if len(got.Limits) != len(all) || len(all) == 0 {
		t.Fatalf("%d limits, the broker has %d", len(got.Limits), len(all))
	}
	for i, l := range got.Limits {
		if l.Name != all[i].Name || l.Value != all[i].Value || l.Unit == "" || l.What == "" {
			t.Errorf("%+v, the broker has %+v", l, all[i])
		}
	}
}

// TestBackup: what comes over the wire is a store again.
func TestBackup(t *testing.T) {
	d := newDoor(t)
	d.publish("orders", "after=10s", "hello")
	r := d.do("GET", "/v1/backup", "").want(200, nil)
	if r.header.Get("Content-Type") != "application/octet-stream" || r.header.Get("Content-Disposition") == "" {
		t.Errorf("headers %v", r.header)
	}
	disk := fs.NewMem()
	o := engine.Options{
		FS: disk, Dir: "data", Clock: clock.NewFake(testStart), Rand: strings.NewReader(strings.Repeat("another test store", 4)),
		SegmentBytes: 16 << 20, CacheBytes: 1 << 20,
	}
	if _, err := engine.RestoreBackup(t.Context(), o, strings.NewReader(r.body), nil); err != nil {
		t.Fatal(err)
	}
	b, err := broker.Open(t.Context(), broker.Options{Queues: 1, Engine: o})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	page, err := b.Pending(t.Context(), broker.Filter{}, "", 10)
	if err != nil || len(page.Messages) != 1 {
		t.Errorf("restored: %+v, %v", page, err)
	}
}

// TestBackupAlone: one at a time, by nobody's page, and none for HEAD.
func TestBackupAlone(t *testing.T) {
	d := newDoor(t)
	if err := d.h.backups.enter(); err != nil {
		t.Fatal(err)
	}
	d.do("GET", "/v1/backup", "").refused(503, wire.CodeOverloaded, "1 at once")
	d.h.backups.leave()
	for site, want := range map[string]int{"cross-site": 403, "same-site": 403, "same-origin": 200, "none": 200} {
		if r := d.do("GET", "/v1/backup", "", "Sec-Fetch-Site", site); r.status != want {
			t.Errorf("%s: %d, want %d", site, r.status, want)
		}
	}
	if r := d.do("HEAD", "/v1/backup", ""); r.status != http.StatusOK || r.body != "" {
		t.Errorf("HEAD: %d", r.status)
	}
}
