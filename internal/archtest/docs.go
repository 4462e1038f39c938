package archtest

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strings"
)

var (
	statusHeading = regexp.MustCompile(`(?im)^#+\s*status\s*$\s*(\w+)`)
	statusLine    = regexp.MustCompile(`(?im)^[*_\s-]*status[*_]*:[*_]*\s*(\w+)`)
	decisionFile  = regexp.MustCompile(`^\d{4}-[a-z0-9-]+\.md$`)
)

// decisionsWithoutStatus finds records in docs/adr that do not say where they stand, or whose file names do not
// sort.
func decisionsWithoutStatus(r *Repo) []Violation {
	var found []Violation
	for _, name := range r.markdown() {
		if path.Dir(name) != "docs/adr" || path.Base(name) == "README.md" {
			continue
		}
		if !decisionFile.MatchString(path.Base(name)) {
			found = append(found, Violation{Path: name, Text: "a decision is named NNNN-some-words.md"})
		}
		status := statusHeading.FindSubmatch(r.contents[name])
		if status == nil {
			status = statusLine.FindSubmatch(r.contents[name])
		}
		if status == nil {
			found = append(found, Violation{Path: name, Text: "no status: proposed, accepted, superseded or rejected"})
			continue
		}
		switch s := strings.ToLower(string(status[1])); s {
		case "proposed", "accepted", "superseded", "rejected":
		default:
			text := fmt.Sprintf("status %q: say proposed, accepted, superseded or rejected", s)
			found = append(found, Violation{Path: name, Text: text})
		}
	}
	return found
}

var (
	requirement   = regexp.MustCompile(`(?m)^(?:require\s+|\t)(\S+)\s+v\S+[^\S\n]*(//\s*indirect)?`)
	dependencyRow = regexp.MustCompile("(?m)^\\|\\s*`([^`\\s]+)`")
)

// unexplainedDependencies finds direct dependencies in go.mod without a row in docs/dependencies.md, and rows about
// modules that are not there any more.
func unexplainedDependencies(r *Repo) []Violation {
	const page = "docs/dependencies.md"
	explained := map[string]bool{}
	rows := dependencyRow.FindAllSubmatchIndex(r.contents[page], -1)
	for _, m := range rows {
		explained[string(r.contents[page][m[2]:m[3]])] = true
	}
	var found []Violation
	present := map[string]bool{}
	mod := r.contents["go.mod"]
	for _, m := range requirement.FindAllSubmatchIndex(mod, -1) {
		name, direct := string(mod[m[2]:m[3]]), m[4] < 0
		present[name] = true
		if direct && !explained[name] {
			text := fmt.Sprintf("%s has no row in %s: why it, and what else was considered?", name, page)
			found = append(found, Violation{Path: "go.mod", Line: lineAt(mod, m[2]), Text: text})
		}
	}
	for _, m := range rows {
		if name := string(r.contents[page][m[2]:m[3]]); !present[name] {
			line := lineAt(r.contents[page], m[0])
			found = append(found, Violation{Path: page, Line: line, Text: name + " is not in go.mod any more"})
		}
	}
	return found
}

var (
	fence      = regexp.MustCompile("(?ms)^[ \t]*(?:```|~~~).*?\n[ \t]*(?:```|~~~)[ \t]*$")
	codeSpan   = regexp.MustCompile("`[^`\n]*`")
	inlineLink = regexp.MustCompile(`\]\(<?([^()\s>]+)>?[^()]*\)`)
	linkTarget = regexp.MustCompile(`(?m)^ {0,3}\[[^\]^][^\]]*\]:\s*(\S+)`)
	htmlLink   = regexp.MustCompile(`(?:src|href)="([^"]+)"`)
	remote     = regexp.MustCompile(`^([a-z][a-z0-9+.-]*:|//)`)
)

// deadLinks finds relative links in Markdown files to a file, directory or heading that is not there. Links to
// other hosts are not followed: a test must not depend on them.
func deadLinks(r *Repo) []Violation {
	var found []Violation
	for _, name := range r.markdown() {
		text := blank(r.contents[name], fence, codeSpan)
		for _, form := range []*regexp.Regexp{inlineLink, linkTarget, htmlLink} {
			for _, m := range form.FindAllSubmatchIndex(text, -1) {
				target := string(text[m[2]:m[3]])
				if problem := r.followLink(name, target); problem != "" {
					found = append(found, Violation{Path: name, Line: lineAt(text, m[2]), Text: target + ": " + problem})
				}
			}
		}
	}
	return found
}

// followLink returns what is wrong with a link in the file from, or "".
func (r *Repo) followLink(from, target string) string {
	if remote.MatchString(target) {
		return ""
	}
	file, anchor, _ := strings.Cut(target, "#")
	switch {
	case file == "":
		file = from
	case strings.HasPrefix(file, "/"):
		file = path.Clean(file[1:])
	default:
		file = path.Join(path.Dir(from), file)
	}
	if strings.HasPrefix(file, "..") {
		return "leaves the repository"
	}
	if !r.has(file) {
		return "no such file"
	}
	if anchor != "" && path.Ext(file) == ".md" && !anchors(r.contents[file])[anchor] {
		return "no such heading"
	}
	return ""
}

var (
	heading     = regexp.MustCompile(`(?m)^#{1,6}\s+(.*?)\s*#*$`)
	namedAnchor = regexp.MustCompile(`(?:id|name)="([^"]+)"`)
	headingLink = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	notInSlug   = regexp.MustCompile(`[^\p{L}\p{M}\p{N}\p{Pc} -]`)
)

// anchors returns the places in a Markdown file that a link can jump to, named as GitHub names them.
func anchors(content []byte) map[string]bool {
	places := map[string]bool{}
	text := blank(content, fence)
	for _, m := range heading.FindAllSubmatch(text, -1) {
		title := headingLink.ReplaceAllString(string(m[1]), "$1")
		slug := strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
		name := slug
		for i := 1; places[name]; i++ {
			name = fmt.Sprintf("%s-%d", slug, i)
		}
		places[name] = true
	}
	for _, m := range namedAnchor.FindAllSubmatch(text, -1) {
		places[string(m[1])] = true
	}
	return places
}

// blank returns a copy of text in which what the patterns match is spaces, so that offsets and lines stay.
func blank(text []byte, patterns ...*regexp.Regexp) []byte {
	text = bytes.Clone(text)
	for _, p := range patterns {
		for _, m := range p.FindAllIndex(text, -1) {
			for i := m[0]; i < m[1]; i++ {
				if text[i] != '\n' {
					text[i] = ' '
				}
			}
		}
	}
	return text
}
