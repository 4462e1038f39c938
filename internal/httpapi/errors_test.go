package httpapi

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/duemq/duemq/internal/broker"
	"github.com/duemq/duemq/internal/engine"
	"github.com/duemq/duemq/internal/httpapi/wire"
	"github.com/duemq/duemq/internal/record"
)

// classes is every class of error that can come up to the door, with its answer.
var classes = map[string]struct {
	class  error
	status int
	code   wire.Code
}{
	"broker.ErrInvalid":          {broker.ErrInvalid, 400, wire.CodeInvalidValue},
	"broker.ErrForbidden":        {broker.ErrForbidden, 403, wire.CodeForbidden},
	"broker.ErrTopicUnknown":     {broker.ErrTopicUnknown, 404, wire.CodeTopicUnknown},
	"broker.ErrFull":             {broker.ErrFull, 422, wire.CodeFull},
	"broker.ErrExists":           {broker.ErrExists, 409, wire.CodeExists},
	"broker.ErrGroupUnknown":     {broker.ErrGroupUnknown, 404, wire.CodeGroupUnknown},
	"broker.ErrTooMany":          {broker.ErrTooMany, 422, wire.CodeTooMany},
	"broker.ErrOperationUnknown": {broker.ErrOperationUnknown, 404, wire.CodeOperationUnknown},
	"broker.ErrTransactionEnded": {broker.ErrTransactionEnded, 409, wire.CodeTransactionEnded},
	"engine.ErrMismatch":         {engine.ErrMismatch, 422, wire.CodeMismatch},
	"engine.ErrNotEmpty":         {engine.ErrNotEmpty, 500, wire.CodeInternal}, // RestoreBackup only
	"broker.ErrUnknown":          {broker.ErrUnknown, 404, wire.CodeMessageUnknown},
	"broker.ErrDelivered":        {broker.ErrDelivered, 409, wire.CodeAlreadyDelivered},
	"broker.ErrCancelled":        {broker.ErrCancelled, 409, wire.CodeAlreadyCancelled},
	"broker.ErrLeaseLost":        {broker.ErrLeaseLost, 410, wire.CodeLeaseLost},
	"broker.ErrDraining":         {broker.ErrDraining, 503, wire.CodeDraining},
	"engine.ErrClosed":           {engine.ErrClosed, 503, wire.CodeDraining},
	"engine.ErrFailed":           {engine.ErrFailed, 503, wire.CodeFailed},
	"engine.ErrDelayTooLong":     {engine.ErrDelayTooLong, 422, wire.CodeDelayTooLong},
	"engine.ErrClockSuspect":     {engine.ErrClockSuspect, 503, wire.CodeClockSuspect},
	"engine.ErrDiskFull":         {engine.ErrDiskFull, 503, wire.CodeDiskFull},
	"engine.ErrGone":             {engine.ErrGone, 410, wire.CodeEnded},
	"engine.ErrInUse":            {engine.ErrInUse, 500, wire.CodeInternal}, // Open only
	"engine.ErrAhead":            {engine.ErrAhead, 500, wire.CodeInternal}, // Open only
	"engine.ErrNotFound":         {engine.ErrNotFound, 410, wire.CodeEnded},
	"record.ErrTooLarge":         {record.ErrTooLarge, 413, wire.CodeTooLarge},
	"record.ErrCorrupt":          {record.ErrCorrupt, 500, wire.CodeInternal},
	"record.ErrVersion":          {record.ErrVersion, 500, wire.CodeInternal},
	"wire.ErrSyntax":             {wire.ErrSyntax, 400, wire.CodeBadRequest},
	"wire.ErrRange":              {wire.ErrRange, 400, wire.CodeBadRequest},

	"httpapi.errBadRequest":       {errBadRequest, 400, wire.CodeBadRequest},
	"httpapi.errUnknownParameter": {errUnknownParameter, 400, wire.CodeUnknownParameter},
	"httpapi.errUnknownField":     {errUnknownField, 400, wire.CodeUnknownField},
	"httpapi.errCrossOrigin":      {errCrossOrigin, 403, wire.CodeCrossOrigin},
	"httpapi.errHost":             {errHost, 421, wire.CodeHostRefused},
	"httpapi.errRoute":            {errRoute, 404, wire.CodeRouteUnknown},
	"httpapi.errMethod":           {errMethod, 405, wire.CodeMethod},
	"httpapi.errTooLarge":         {errTooLarge, 413, wire.CodeTooLarge},
	"httpapi.errDelay":            {errDelay, 422, wire.CodeDelayInvalid},
	"httpapi.errDelayConflict":    {errDelayConflict, 422, wire.CodeDelayConflict},
	"httpapi.errOverloaded":       {errOverloaded, 503, wire.CodeOverloaded},
	"httpapi.errConfirm":          {errConfirm, 428, wire.CodeConfirm},
	"context.DeadlineExceeded":    {context.DeadlineExceeded, 503, wire.CodeTimeout},
}

// declared finds the classes of error that the rooms below declare, so that a
// new one cannot be forgotten here.
func declared(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, dir := range []string{".", "wire", "../broker", "../engine", "../record"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tree, err := parser.ParseFile(token.NewFileSet(), file, src, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range newErrors(tree) {
				if dir != "." && !ast.IsExported(name) {
					continue // it cannot be told outside of its room
				}
				names = append(names, tree.Name.Name+"."+name)
			}
		}
	}
	return names
}

// newErrors names the package variables made by errors.New.
func newErrors(tree *ast.File) (names []string) {
	for _, decl := range tree.Decls {
		vars, ok := decl.(*ast.GenDecl)
		if !ok || vars.Tok != token.VAR {
			continue
		}
		for _, spec := range vars.Specs {
			v, ok := spec.(*ast.ValueSpec)
			for i := 0; ok && i < len(v.Values); i++ {
				call, ok := v.Values[i].(*ast.CallExpr)
				if !ok {
					continue
				}
				if fun, ok := call.Fun.(*ast.SelectorExpr); ok && fun.Sel.Name == "New" && fmt.Sprint(fun.X) == "errors" {
					names = append(names, v.Names[i].Name)
				}
			}
		}
	}
	return names
}

func TestEveryClassHasARow(t *testing.T) {
	d := newDoor(t)
	found := declared(t)
	if len(found) < 25 {
		t.Fatalf("only %d classes found", len(found))
	}
	for _, name := range found {
		if _, ok := classes[name]; !ok {
			t.Errorf("%s has no row", name)
		}
	}
	for name, c := range classes {
		if !slices.Contains(found, name) && name != "context.DeadlineExceeded" {
			t.Errorf("%s is not declared any more", name)
		}
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/v1/stats", nil)
		d.h.refuse(w, r, fmt.Errorf("topic orders: %w: limit 7", c.class))
		got := &reply{t: t, what: name, status: w.Code, header: w.Header(), body: w.Body.String()}
		p := got.refused(c.status, c.code, "limit 7")
		if p.Instance != "/v1/stats" {
			t.Errorf("%s: instance %q", name, p.Instance)
		}
		if p.Retryable != (c.status == 503) {
			t.Errorf("%s: retryable %v with status %d", name, p.Retryable, c.status)
		}
	}
	w := httptest.NewRecorder()
	d.h.refuse(w, httptest.NewRequest(http.MethodGet, "/", nil), errors.New("something else"))
	(&reply{t: t, what: "other", status: w.Code, header: w.Header(), body: w.Body.String()}).refused(500, wire.CodeInternal, "something else")
}

// TestFailureWinsOverItsCause: a store that failed because of damaged data is a
// store that failed.
func TestFailureWinsOverItsCause(t *testing.T) {
	err := fmt.Errorf("%w: %w", engine.ErrFailed, record.ErrCorrupt)
	if got := rowOf(err).code; got != wire.CodeFailed {
		t.Errorf("code %s", got)
	}
	if got := rowOf(fmt.Errorf("%w: %w", errDelay, wire.ErrSyntax)).code; got != wire.CodeDelayInvalid {
		t.Errorf("code %s", got)
	}
}

// TestEveryCodeIsUsed: no code of the wire is without a row.
func TestEveryCodeIsUsed(t *testing.T) {
	used := map[wire.Code]bool{}
	for _, r := range table {
		used[r.code] = true
	}
	src, err := os.ReadFile("wire/problem.go")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := parser.ParseFile(token.NewFileSet(), "problem.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(tree, func(node ast.Node) bool {
		v, ok := node.(*ast.ValueSpec)
		if ok && strings.HasPrefix(v.Names[0].Name, "Code") {
			n++
			if value, ok := v.Values[0].(*ast.BasicLit); !ok || !used[wire.Code(strings.Trim(value.Value, `"`))] {
				t.Errorf("%s is in no row", v.Names[0].Name)
			}
		}
		return true
	})
	if n != len(used) {
		t.Errorf("%d codes, %d in rows", n, len(used))
	}
}
