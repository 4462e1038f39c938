// Package archtest holds the rules about the repository itself that neither the compiler nor a linter knows, and
// the tests that hold the repository to them.
//
// A rule is a function from the repository's files to the places that break it; [Rules] lists them all. The rules
// read the files themselves instead of asking the go command, so that a cached test result is never older than the
// files it is about. Each rule is tested in turn, on a small tree in which its violation was planted.
//
// To add a room, give it a floor in floors.go. To be let off a rule, change the rule: there is no list of
// exceptions beside it.
package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// A Rule names one thing that must hold everywhere in the repository.
type Rule struct {
	Name  string
	Check func(*Repo) []Violation
}

// Rules returns every rule, in the order in which their source files are named.
func Rules() []Rule {
	return []Rule{
		{"dependencies are explained", unexplainedDependencies},
		{"decisions have a status", decisionsWithoutStatus},
		{"formats have a page", undrawnFormats},
		{"links resolve", deadLinks},
		{"imports point down", upwardImports},
		{"packages are documented", undocumentedPackages},
		{"files are short", longFiles},
		{"tests run", skippedTests},
		{"test data is used", unusedTestdata},
		{"words are final", unfinishedWords},
	}
}

// A Violation is one place that breaks a rule.
type Violation struct {
	Path string // from the repository's root, with slashes
	Line int    // from 1; 0 when the file as a whole is meant
	Text string // what is wrong there, and what would be right
}

// String gives the violation in the form that editors jump to.
func (v Violation) String() string {
	if v.Line == 0 {
		return v.Path + ": " + v.Text
	}
	return fmt.Sprintf("%s:%d: %s", v.Path, v.Line, v.Text)
}

// A Repo is the repository as the rules see it: its files, and the syntax of its Go files.
type Repo struct {
	fset     *token.FileSet
	contents map[string][]byte // by path; nil for test data, whose bytes no rule reads
	paths    []string          // sorted
	sources  []source          // sorted by path; test data and other modules' vendored code excluded
}

// A source is one parsed Go file.
type source struct {
	path string
	dir  string
	test bool // a _test.go file
	file *ast.File
}

// Load reads a repository. It leaves out what is built or downloaded into the tree. A Go file that does not parse
// is an error.
func Load(fsys fs.FS) (*Repo, error) {
	r := &Repo{fset: token.NewFileSet(), contents: map[string][]byte{}}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && leftOut(name):
			return fs.SkipDir
		case d.Type().IsRegular():
			return r.add(fsys, name)
		default:
			return nil
		}
	})
	if err != nil {
		return nil, fmt.Errorf("load repository: %w", err)
	}
	return r, nil
}

// leftOut reports whether a directory is no part of the sources: hidden ones, and those in .gitignore.
func leftOut(dir string) bool {
	base := path.Base(dir)
	hidden := strings.HasPrefix(base, ".") && dir != "." && dir != ".ci"
	return hidden || dir == "bin" || base == "duemq-data" || base == "node_modules"
}

// add takes in one file; files come in sorted order.
func (r *Repo) add(fsys fs.FS, name string) error {
	r.paths = append(r.paths, name)
	if inTestdata(name) {
		return nil
	}
	content, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	r.contents[name] = content
	if path.Ext(name) != ".go" {
		return nil
	}
	file, err := parser.ParseFile(r.fset, name, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	test := strings.HasSuffix(name, "_test.go")
	r.sources = append(r.sources, source{path: name, dir: path.Dir(name), test: test, file: file})
	return nil
}

// has reports whether name is a file, or a directory with a file in it.
func (r *Repo) has(name string) bool {
	i, found := slices.BinarySearch(r.paths, name)
	if found || name == "." {
		return true
	}
	_, inside := slices.BinarySearchFunc(r.paths[i:], name+"/", func(p, dir string) int {
		if strings.HasPrefix(p, dir) {
			return 0
		}
		return strings.Compare(p, dir)
	})
	return inside
}

// markdown returns the paths of the Markdown files, sorted.
func (r *Repo) markdown() []string {
	var names []string
	for _, name := range r.paths {
		if path.Ext(name) == ".md" && !inTestdata(name) {
			names = append(names, name)
		}
	}
	return names
}

// line returns the line of a position in a parsed file.
func (r *Repo) line(p token.Pos) int { return r.fset.Position(p).Line }

// lineAt returns the line, from 1, of the byte at offset.
func lineAt(content []byte, offset int) int {
	return 1 + bytes.Count(content[:offset], []byte("\n"))
}

func inTestdata(name string) bool {
	return slices.Contains(strings.Split(path.Dir(name), "/"), "testdata")
}
