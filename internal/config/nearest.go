package config

import (
	"strings"
)

// Nearest finds the word that somebody who wrote text most likely meant: the
// one that the fewest slips of the hand turn into it (a letter missing, added,
// wrong, or two swapped), if they are few for its length. Upper case, dashes
// and underscores make no difference.
func Nearest(text string, words []string) (word string, ok bool) {
	text = fold(text)
	best := len(text) + 1
	for _, w := range words {
		slips := distance(text, fold(w))
		if limit := min(3, 1+len(w)/4); slips <= limit && slips < best {
			best, word, ok = slips, w, true
		}
	}
	return word, ok
}

func fold(s string) string {
	return strings.NewReplacer("-", "", "_", "", ".", "").Replace(strings.ToLower(s))
}

// distance is the optimal string alignment distance of two short words.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}
