package archtest

import (
	"bytes"
	"path"
	"regexp"
	"strings"
)

// unfinished are marks of work left undone, which belongs in the issue tracker, and paths that exist on one
// person's machine only.
var unfinished = regexp.MustCompile(`\b(TODO|FIXME|WIP)\b|(?:^|[^\w./~-])(/(?:home|root|Users|work|workspace|builds)/\w)`)

// unfinishedWords finds such words in any text file. The files that forbid them have to name them.
func unfinishedWords(r *Repo) []Violation {
	var found []Violation
	for _, name := range r.paths {
		content := r.contents[name]
		forbids := name == ".golangci.yml" || strings.HasPrefix(name, "internal/archtest/")
		if forbids || path.Base(name) == "go.sum" || bytes.IndexByte(content, 0) >= 0 {
			continue
		}
		for _, m := range unfinished.FindAllIndex(content, -1) {
			word := strings.TrimSpace(string(content[m[0]:m[1]]))
			text := "finish it, or move it to the issue tracker: " + word
			found = append(found, Violation{Path: name, Line: lineAt(content, m[1]), Text: text})
		}
	}
	return found
}
