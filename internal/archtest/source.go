package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/types"
	"path"
	"slices"
	"strings"
)

// maxLines is where a file has become two. The wish is 400.
const maxLines = 800

// undocumentedPackages finds packages without a comment attached to a package clause. A blank line between the two
// is enough to hide a page of documentation from go doc.
func undocumentedPackages(r *Repo) []Violation {
	type pkg struct{ dir, name string }
	first := map[pkg]source{}
	documented := map[pkg]bool{}
	var order []pkg
	for _, s := range r.sources {
		p := pkg{s.dir, strings.TrimSuffix(s.file.Name.Name, "_test")}
		known, seen := first[p]
		if !seen {
			order = append(order, p)
		}
		// The comment belongs to the package, so a test file's counts only where there are no others.
		if !seen || known.test && !s.test {
			first[p] = s
			documented[p] = false
		}
		if s.test == first[p].test && s.file.Doc != nil && strings.TrimSpace(s.file.Doc.Text()) != "" {
			documented[p] = true
		}
	}
	var found []Violation
	for _, p := range order {
		if s := first[p]; !documented[p] {
			text := fmt.Sprintf("package %s has no comment attached to its package clause", p.name)
			found = append(found, Violation{Path: s.path, Line: r.line(s.file.Package), Text: text})
		}
	}
	return found
}

// longFiles finds Go files of more than maxLines lines. Generated ones are as long as they are.
func longFiles(r *Repo) []Violation {
	var found []Violation
	for _, s := range r.sources {
		lines := bytes.Count(r.contents[s.path], []byte("\n"))
		if lines > maxLines && !ast.IsGenerated(s.file) {
			text := fmt.Sprintf("%d lines, at most %d: split it by what it does", lines, maxLines)
			found = append(found, Violation{Path: s.path, Text: text})
		}
	}
	return found
}

// undrawnFormats finds packages that put a magic number on a disk or a wire while no page in docs/formats names
// the package's directory.
func undrawnFormats(r *Repo) []Violation {
	var pages bytes.Buffer
	for _, name := range r.markdown() {
		if path.Dir(name) == "docs/formats" {
			pages.Write(r.contents[name])
		}
	}
	var found []Violation
	for _, s := range r.sources {
		if s.test || roomOf(s.dir) == "tools" || bytes.Contains(pages.Bytes(), []byte(s.dir)) {
			continue
		}
		for _, name := range packageNames(s.file) {
			if strings.Contains(strings.ToLower(name.Name), "magic") {
				text := fmt.Sprintf("%s marks a format, but no page in docs/formats names %s", name.Name, s.dir)
				found = append(found, Violation{Path: s.path, Line: r.line(name.Pos()), Text: text})
			}
		}
	}
	return found
}

// packageNames returns the constants and variables declared outside functions.
func packageNames(f *ast.File) []*ast.Ident {
	var names []*ast.Ident
	for _, decl := range f.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range gen.Specs {
			if value, ok := spec.(*ast.ValueSpec); ok {
				names = append(names, value.Names...)
			}
		}
	}
	return names
}

// skippedTests finds tests that may skip themselves, which looks like success. A test left out by -short is named
// by that flag; what needs root is a stage in .ci/stages.sh, skipped there by name.
func skippedTests(r *Repo) []Violation {
	var found []Violation
	for _, s := range r.sources {
		if !s.test {
			continue
		}
		ast.PreorderStack(s.file, nil, func(n ast.Node, above []ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && isSkip(call, above) && !underShort(above) {
				text := "a test may skip itself only under testing.Short()"
				found = append(found, Violation{Path: s.path, Line: r.line(call.Pos()), Text: text})
			}
			return true
		})
	}
	return found
}

// isSkip reports whether a call, inside the nodes above it, skips a test. Property tests have a T of their own, whose
// Skip only turns down one random step.
func isSkip(call *ast.CallExpr, above []ast.Node) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "Skip" && sel.Sel.Name != "Skipf" && sel.Sel.Name != "SkipNow" {
		return false
	}
	recv, ok := sel.X.(*ast.Ident)
	return ok && ofTesting(recv.Name, above)
}

// ofTesting reports whether the innermost function with a parameter of that name takes it from package testing.
func ofTesting(param string, above []ast.Node) bool {
	for _, n := range slices.Backward(above) {
		var kind *ast.FuncType
		switch n := n.(type) {
		case *ast.FuncDecl:
			kind = n.Type
		case *ast.FuncLit:
			kind = n.Type
		default:
			continue
		}
		for _, field := range kind.Params.List {
			named := func(id *ast.Ident) bool { return id.Name == param }
			if slices.ContainsFunc(field.Names, named) {
				return strings.HasPrefix(strings.TrimPrefix(types.ExprString(field.Type), "*"), "testing.")
			}
		}
	}
	return false
}

// underShort reports whether one of the nodes is an if that asks testing.Short.
func underShort(nodes []ast.Node) bool {
	for _, n := range nodes {
		branch, ok := n.(*ast.IfStmt)
		if !ok {
			continue
		}
		asks := false
		ast.Inspect(branch.Cond, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			asks = asks || ok && sel.Sel.Name == "Short"
			return true
		})
		if asks {
			return true
		}
	}
	return false
}
