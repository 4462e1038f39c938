package httpapi

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

// TestPages: listings by name come in pages that lead from one to the next.
func TestPages(t *testing.T) {
	d := newDoor(t)
	var want []string
	for i := range 5 {
		name := fmt.Sprint("t", 4-i)
		d.do("PUT", "/v1/topics/"+name, "").want(201, nil)
		d.do("PUT", "/v1/groups/"+name, "").want(201, nil)
		want = append(want, fmt.Sprint("t", i))
	}
	for _, listing := range []string{"topics", "groups"} {
		var names []string
		to := "/v1/" + listing + "?limit=2"
		for pages := 1; ; pages++ {
			var topics wire.Topics
			var groups wire.Groups
			into, cursor := any(&topics), &topics.Cursor
			if listing == "groups" {
				into, cursor = &groups, &groups.Cursor
			}
			r := d.do("GET", to, "").want(200, into)
			for _, x := range topics.Topics {
				names = append(names, x.Name)
				if x.Offsets != nil {
					t.Errorf("a list has offsets: %+v", x)
				}
			}
			for _, x := range groups.Groups {
				names = append(names, x.Name)
			}
			if *cursor == "" {
				if pages != 3 || r.header.Get("Link") != "" {
					t.Errorf("%d pages, the last with Link %q", pages, r.header.Get("Link"))
				}
				break
			}
			link, ok := strings.CutSuffix(r.header.Get("Link"), `>; rel="next"`)
			to = strings.TrimPrefix(link, "<")
			if !ok || !strings.Contains(to, *cursor) || !strings.Contains(to, "limit=2") {
				t.Fatalf("Link %q", r.header.Get("Link"))
			}
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s %v", listing, names)
		}
		for query, want := range map[string]string{"cursor=%21": "not made by this route", "limit=0": "want 1 to 1000", "limit=1001": "want 1 to 1000"} {
			d.do("GET", "/v1/"+listing+"?"+query, "").refused(400, map[bool]wire.Code{true: wire.CodeBadRequest, false: wire.CodeInvalidValue}[strings.HasPrefix(query, "c")], want)
		}
	}
	d.do("GET", "/v1/topics?system=maybe", "").refused(400, wire.CodeBadRequest, "want true or false")
	d.do("GET", "/v1/topics?system=false", "").want(200, nil)
}
