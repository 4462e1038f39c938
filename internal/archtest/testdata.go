package archtest

import (
	"go/ast"
	"go/token"
	"path"
	"strconv"
	"strings"
)

// unusedTestdata finds files below a testdata directory that no Go file beside that directory speaks of. It goes by
// string literals: a file's name with or without its extension, its path, a pattern that matches it, or a directory
// above it. A bare "testdata" counts where a whole directory is read, and a fuzz corpus belongs to its target.
func unusedTestdata(r *Repo) []Violation {
	known := map[string]*mentions{}
	for _, s := range r.sources {
		if known[s.dir] == nil {
			known[s.dir] = &mentions{}
		}
		known[s.dir].read(s.file)
	}
	var found []Violation
	for _, name := range r.paths {
		owner, rest, ok := splitTestdata(name)
		if ok && !known[owner].cover(rest) {
			found = append(found, Violation{Path: name, Text: "no Go file in " + owner + " refers to this file"})
		}
	}
	return found
}

// splitTestdata cuts a path at its outermost testdata directory.
func splitTestdata(name string) (owner, rest string, ok bool) {
	if rest, ok = strings.CutPrefix(name, "testdata/"); ok {
		return ".", rest, true
	}
	return strings.Cut(name, "/testdata/")
}

// mentions is what the Go files of one directory say that could name a file.
type mentions struct {
	literals []string // with "testdata/" cut off
	targets  []string // fuzz targets
	whole    bool     // all of testdata is read
}

func (m *mentions) read(f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.FuncDecl:
			if strings.HasPrefix(n.Name.Name, "Fuzz") {
				m.targets = append(m.targets, n.Name.Name)
			}
		case *ast.CallExpr:
			m.whole = m.whole || readsDir(n)
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				m.literals = append(m.literals, strings.TrimPrefix(text, "testdata/"))
			}
		}
		return true
	})
}

// readsDir reports whether a call hands "testdata" to a function that reads directories.
func readsDir(call *ast.CallExpr) bool {
	var name string
	switch fun := call.Fun.(type) {
	case *ast.SelectorExpr:
		name = fun.Sel.Name
	case *ast.Ident:
		name = fun.Name
	}
	reads := strings.Contains(name, "Dir") || strings.Contains(name, "Walk") || strings.Contains(name, "FS")
	for _, arg := range call.Args {
		if lit, ok := arg.(*ast.BasicLit); ok && reads && lit.Value == `"testdata"` {
			return true
		}
	}
	return false
}

// cover reports whether a file, named from its testdata directory, is spoken of.
func (m *mentions) cover(file string) bool {
	if m == nil || m.whole {
		return m != nil
	}
	for _, target := range m.targets {
		if strings.HasPrefix(file, "fuzz/"+target+"/") {
			return true
		}
	}
	base := path.Base(file)
	stem := strings.TrimSuffix(base, path.Ext(base))
	for _, lit := range m.literals {
		if lit == file || lit == base || lit == stem || lit != "" && strings.HasPrefix(file, strings.TrimSuffix(lit, "/")+"/") {
			return true
		}
		for _, name := range []string{file, base} {
			if ok, err := path.Match(lit, name); ok && err == nil && strings.Trim(lit, "*?") != "" {
				return true
			}
		}
	}
	return false
}
