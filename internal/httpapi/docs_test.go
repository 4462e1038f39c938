package httpapi

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/duemq/duemq/internal/broker"
)

const page = "../../docs/http.md"

func readPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// same compares two lists as sets and names what one of them lacks.
func same(t *testing.T, what string, documented, existing []string) {
	t.Helper()
	for _, n := range documented {
		if !slices.Contains(existing, n) {
			t.Errorf("%s: %s describes %q, which does not exist", what, page, n)
		}
	}
	for _, n := range existing {
		if !slices.Contains(documented, n) {
			t.Errorf("%s: %q is not in %s", what, n, page)
		}
	}
	if len(documented) == 0 || len(documented) != len(existing) {
		t.Errorf("%s: %d described, %d exist", what, len(documented), len(existing))
	}
}

// find gives the first group of every match.
func find(text, pattern string) (found []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

// section gives the text under a heading, up to the next one of its rank.
func section(t *testing.T, text, heading string) string {
	t.Helper()
	_, after, ok := strings.Cut(text, "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("no section %q", heading)
	}
	before, _, _ := strings.Cut(after, "\n## ")
	return before
}

func TestRoutesAreDocumented(t *testing.T) {
	var existing []string
	for _, r := range routes {
		existing = append(existing, r.pattern)
	}
	same(t, "routes", find(section(t, readPage(t), "Routes"), "(?m)^\\| `([A-Z]+ /[^`]*)` \\|"), existing)
}

func TestPublishOptionsAreDocumented(t *testing.T) {
	text := section(t, readPage(t), "Publish")
	var query, header []string
	for _, o := range options {
		query, header = append(query, o.name), append(header, o.header)
	}
	same(t, "query of publish", find(text, "(?m)^\\| `([^`]+)` \\| `Duemq"), append(query, "property.NAME"))
	same(t, "headers of publish", find(text, "(?m)\\| `(Duemq-[^`]+)` \\|"), append(header, propertyHeader+"NAME"))
	for _, o := range options {
		if !slices.Contains(routes[0].query, o.name) {
			t.Errorf("the route of publish does not take %s", o.name)
		}
	}
}

func TestPendingQueryIsDocumented(t *testing.T) {
	text := section(t, readPage(t), "Pending")
	for _, r := range routes {
		if !strings.HasPrefix(r.pattern, "GET /v1/pending") {
			continue
		}
		for _, q := range r.query {
			if !strings.Contains(text, "`"+q+"`") {
				t.Errorf("%s: %s is not in %s", r.pattern, q, page)
			}
		}
	}
}

func TestCodesAreDocumented(t *testing.T) {
	var existing []string
	for _, r := range append(slices.Clone(table), defect) {
		if line := fmt.Sprintf("%s %d", r.code, r.status); !slices.Contains(existing, line) {
			existing = append(existing, line)
		}
	}
	var documented []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([0-9]{3}) \\|").FindAllStringSubmatch(section(t, readPage(t), "Errors"), -1) {
		documented = append(documented, m[1]+" "+m[2])
	}
	same(t, "codes", documented, existing)
}

func TestMetricsAreDocumented(t *testing.T) {
	d := newDoor(t)
	d.publish("orders", "after=10s", "x")
	d.die("y")
	scrape := d.do("GET", "/metrics", "").want(200, nil).body
	var existing []string
	for _, m := range regexp.MustCompile(`(?m)^(duemq_[a-z_]+)[ {]`).FindAllStringSubmatch(scrape, -1) {
		name := m[1]
		for _, whole := range []string{"duemq_fsync_seconds", "duemq_cut_seconds", "duemq_http_request_seconds"} {
			if strings.HasPrefix(name, whole) {
				name = whole
			}
		}
		if !slices.Contains(existing, name) {
			existing = append(existing, name)
		}
	}
	same(t, "metrics", find(section(t, readPage(t), "Metrics"), "(?m)^\\| `(duemq_[a-z_]+)[`{]"), existing)
	for _, line := range []string{
		`duemq_pending_messages{topic="orders"} 1`,
		`duemq_visible_messages_total{topic="orders"} 1`,
		`duemq_level_pending_messages{level="0"} 1`,
		`duemq_wakeups_total{found="false"} 0`,
		`duemq_next_due_timestamp_seconds 1.79611561e+09`,
		`duemq_clock_suspect 0`,
		`duemq_held_messages{topic="orders"} 0`,
		`duemq_half_messages{topic="orders"} 0`,
		`duemq_group_lag_messages{group="g"} 0`,
		`duemq_dead_letters{group="g"} 1`,
		`duemq_operations_running 0`,
		`duemq_http_requests_total{code="201",route="POST /v1/topics/{topic}/messages"} 2`,
		`duemq_http_inflight{kind="request"} 0`,
	} {
		if !strings.Contains(scrape, "\n"+line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	if !regexp.MustCompile(`(?m)^duemq_fsync_seconds_count [1-9]`).MatchString(scrape) {
		t.Error("no syncs counted")
	}
}

// TestMetricsAreBounded whatever clients make up: topics, paths, methods.
func TestMetricsAreBounded(t *testing.T) {
	var topics []broker.TopicCount
	for i := range maxTopicLabels + 50 {
		tc := broker.TopicCount{Name: fmt.Sprint("t", i)}
		tc.Waiting, tc.Visible = 2, 3
		topics = append(topics, tc)
	}
	got := bounded(topics)
	if len(got) != maxTopicLabels+1 || got[maxTopicLabels].Name != "(other)" || got[maxTopicLabels].Waiting != 100 || got[maxTopicLabels].Visible != 150 || topics[maxTopicLabels].Waiting != 2 {
		t.Errorf("%d series, last %+v", len(got), got[len(got)-1])
	}
	if got := bounded(topics[:maxTopicLabels]); len(got) != maxTopicLabels {
		t.Errorf("%d series", len(got))
	}
	d := newDoor(t)
	for i := range 20 {
		d.do("GET", fmt.Sprintf("/made/up/%d", i), "")
		d.do("POST", fmt.Sprintf("/v1/topics/t%d/nothing", i), "")
		d.do("GET", fmt.Sprintf("/v1/messages/%016x", i+1), "")
	}
	d.do("BREW", "/v1/stats", "")
	scrape := d.do("GET", "/metrics", "").want(200, nil).body
	if n := strings.Count(scrape, "\nduemq_http_requests_total{"); n != 3 {
		t.Errorf("%d series of requests, want 3", n)
	}
}

// TestExamplesOfThePage: every JSON of the page is one.
func TestExamplesOfThePage(t *testing.T) {
	blocks := find(readPage(t), "(?s)```json\n(.*?)```")
	if len(blocks) < 5 {
		t.Fatalf("%d examples", len(blocks))
	}
	for _, b := range blocks {
		var v map[string]any
		if err := decode([]byte(b), &v); err != nil {
			t.Errorf("%v in %s", err, b)
		}
	}
}
