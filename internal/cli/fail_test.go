package cli

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/duemq/duemq/internal/httpapi/client"
	"github.com/duemq/duemq/internal/httpapi/wire"
)

// TestEveryCode has each code that a server may answer with mean something.
func TestEveryCode(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../httpapi/wire/problem.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	codes := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		lit, ok := spec.Values[0].(*ast.BasicLit)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Code") {
			return true
		}
		code, err := strconv.Unquote(lit.Value)
		if err != nil {
			t.Fatal(err)
		}
		codes++
		if _, ok := meanings[wire.Code(code)]; !ok {
			t.Errorf("code %s has no exit code in fail.go", code)
		}
		return true
	})
	if codes != len(meanings) || codes < 20 {
		t.Errorf("%d codes found, %d have a meaning", codes, len(meanings))
	}
}

func TestAnswered(t *testing.T) {
	a := &app{self: "duemq"}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	problem := func(c wire.Code) error { return &client.Error{Problem: wire.Problem{Code: c, Detail: "detail"}} }
	for _, tt := range []struct {
		name string
		ctx  context.Context
		err  error
		code int
		next string
	}{
		{"unknown message", t.Context(), problem(wire.CodeMessageUnknown), exitNotFound, "duemq pending ls"},
		{"too late", t.Context(), problem(wire.CodeAlreadyDelivered), exitConflict, "duemq pending get ID"},
		{"wrapped", t.Context(), fmt.Errorf("x: %w", problem(wire.CodeForbidden)), exitAuth, ""},
		{"code of a newer server", t.Context(), problem("quota_exceeded"), exitFailure, ""},
		{"no server", t.Context(), fmt.Errorf("%w: refused", client.ErrUnavailable), exitUnavailable, "start one: duemq serve"},
		{"time-out", t.Context(), context.DeadlineExceeded, exitUnavailable, "start one: duemq serve"},
		{"interrupt", cancelled, context.Canceled, exitInterrupted, ""},
		{"a failure already", t.Context(), usage("x", "y"), exitUsage, ""},
		{"anything else", t.Context(), errors.New("x"), exitFailure, ""},
	} {
		f := a.answered(tt.ctx, "what", tt.err)
		if f.code != tt.code || f.next != tt.next {
			t.Errorf("%s: exit %d, next %q, want %d, %q", tt.name, f.code, f.next, tt.code, tt.next)
		}
	}
}

func TestTell(t *testing.T) {
	out := newOutput()
	a := &app{Process: Process{Stderr: out}}
	f := &failure{code: 3, what: "it did not happen", why: errors.Join(errors.New("one"), errors.New("two")), next: "do that"}
	if code := a.report(f); code != 3 {
		t.Errorf("exit %d, want 3", code)
	}
	want := "duemq: it did not happen\n  why:  one\n        two\n  next: do that\n"
	if out.String() != want {
		t.Errorf("told:\n%s\nwant:\n%s", out, want)
	}
	if f.Error() != "it did not happen: one\ntwo" {
		t.Errorf("Error() = %q", f.Error())
	}
}
