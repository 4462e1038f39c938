package httpapi

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// defaultPage is how many items a page of a listing has, unless limit says it.
const defaultPage = 100

// limit reads how many items a page may have.
func (r *request) limit() (int, error) {
	n, err := r.integer("limit", defaultPage)
	if err == nil && (n < 1 || n > broker.MaxPage) {
		err = fmt.Errorf("%w: limit %d, want 1 to %d", broker.ErrInvalid, n, broker.MaxPage)
	}
	return int(n), err
}

// integer reads a whole number of the query.
func (r *request) integer(name string, absent int64) (int64, error) {
	v, ok := r.query(name)
	if !ok {
		return absent, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %s %q is no whole number of 64 bits", errBadRequest, name, shorten(v))
	}
	return n, nil
}

// duration reads a length of time of the query; 0 if it is absent.
func (r *request) duration(name string) (time.Duration, error) {
	v, ok := r.query(name)
	if !ok {
		return 0, nil
	}
	d, err := wire.ParseDuration(v)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return d, err
}

// instant reads an instant of the query, Unix ms; 0 if it is absent.
func (r *request) instant(name, zone string) (int64, error) {
	v, ok := r.query(name)
	if !ok {
		return 0, nil
	}
	t, err := instant(plus(v), zone)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return int64(wire.TimeOf(t)), nil
}

// flag reads a yes or no of the query: true, false, or the name alone for yes.
func (r *request) flag(name string) (bool, error) {
	switch v, ok := r.query(name); {
	case !ok || v == "false":
		return false, nil
	case v == "" || v == "true":
		return true, nil
	default:
		return false, fmt.Errorf("%w: %s %q, want true or false", errBadRequest, name, shorten(v))
	}
}

// confirmed refuses what destroys unless the query repeats what it is about.
func (r *request) confirmed(name string) error {
	v, ok := r.query("confirm")
	switch {
	case !ok:
		return fmt.Errorf("%w: this cannot be undone; repeat the name: ?confirm=%s", errConfirm, url.QueryEscape(name))
	case v != name:
		return fmt.Errorf("%w: confirm is %q, and this is about %q", errConfirm, shorten(v), shorten(name))
	}
	return nil
}

// next gives the answer the header that leads to the following page.
func (r *request) next(cursor string) {
	if cursor == "" {
		return
	}
	next := url.Values{}
	for name, v := range r.values {
		next.Set(name, v)
	}
	next.Set("cursor", cursor)
	r.header("Link", "<"+r.URL.EscapedPath()+"?"+next.Encode()+`>; rel="next"`)
}

// namedPage gives the page of all that the request asks for, in the order of
// their names, and the cursor of the one after it.
func namedPage[T any](r *request, all []T, name func(*T) string) (page []T, cursor string, err error) {
	limit, err := r.limit()
	if err != nil {
		return nil, "", err
	}
	after := ""
	if c := r.text("cursor"); c != "" {
		raw, err := base64.RawURLEncoding.DecodeString(c)
		if err != nil || len(raw) == 0 {
			return nil, "", fmt.Errorf("%w: cursor %q was not made by this route", errBadRequest, shorten(c))
		}
		after = string(raw)
	}
	all = slices.DeleteFunc(all, func(item T) bool { return after != "" && name(&item) <= after })
	slices.SortFunc(all, func(a, b T) int { return strings.Compare(name(&a), name(&b)) })
	if len(all) > limit {
		all = all[:limit]
		cursor = base64.RawURLEncoding.EncodeToString([]byte(name(&all[limit-1])))
		r.next(cursor)
	}
	return all, cursor, nil
}
