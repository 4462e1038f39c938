package httpapi

import (
	"slices"
	"strings"
)

// instead says what to write in place of an unknown name: the nearest of the
// known ones, or all of them.
func instead(name string, known []string) string {
	if len(known) == 0 {
		return "none is taken here"
	}
	all := strings.Join(known, ", ")
	best, least := "", max(2, len(name)/3)+1
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return "taken are " + all
	}
	return "did you mean " + best + "? taken are " + all
}

// distance counts the edits (Levenshtein's) between two names, of which the
// longer is cut to 64 bytes.
func distance(a, b string) int {
	a, b = a[:min(len(a), 64)], b[:min(len(b), 64)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left := row[0] // above left of the next cell
		row[0] = i + 1
		for j := range len(b) {
			cost := left
			if a[i] != b[j] {
				cost++
			}
			left = row[j+1]
			row[j+1] = min(cost, row[j]+1, left+1)
		}
	}
	return row[len(b)]
}

// shorten keeps what a client sent short in error texts.
func shorten(s string) string {
	const limit = 80
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}

// takes says whether name is one of known, or begins as property.* does.
func takes(known []string, name string) bool {
	if slices.Contains(known, name) {
		return name != properties
	}
	prefix := strings.TrimSuffix(properties, "*")
	return strings.HasPrefix(name, prefix) && name != prefix && slices.Contains(known, properties)
}
