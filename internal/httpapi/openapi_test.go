package httpapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/duemq/duemq/internal/httpapi/wire"
)

var update = flag.Bool("update", false, "write openapi.json")

// TestOpenAPI: the document is the one that the routes, the types and their
// comments make.
func TestOpenAPI(t *testing.T) {
	made := makeDocument(t).marshal(t)
	if *update {
		if err := os.WriteFile("openapi.json", made, 0o600); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(made, openAPIDocument) {
		t.Errorf("openapi.json is not what routes and wire are: go test ./internal/httpapi -run TestOpenAPI -update writes it")
	}
	var read document
	if err := json.Unmarshal(made, &read); err != nil {
		t.Fatal(err)
	}
	if again := read.marshal(t); !bytes.Equal(again, made) {
		t.Error("what is read of openapi.json is not all of it")
	}
}

// TestOpenAPIIsValid holds the document against OpenAPI's own schema, and its
// schemas against that of JSON Schema 2020-12.
func TestOpenAPIIsValid(t *testing.T) {
	c := jsonschema.NewCompiler()
	text, err := os.ReadFile("testdata/openapi-3.1.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	meta, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = c.AddResource("test:///meta.json", meta)
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("test:///meta.json")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := jsonschema.UnmarshalJSON(bytes.NewReader(openAPIDocument))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(raw); err != nil {
		t.Error(err)
	}
	for _, m := range contract().doc.Components.Schemas {
		if err := contract().validate(at("components", "schemas", m.Name), "null", nil); errors.As(err, new(*jsonschema.SchemaValidationError)) || err == nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
	for _, ref := range find(string(openAPIDocument), `"\$ref": "([^"]*)"`) {
		section, name := ref[:strings.LastIndexByte(ref, '/')], typeName(ref)
		_, isSchema := contract().doc.Components.Schemas.get(name)
		_, isResponse := contract().doc.Components.Responses.get(name)
		if ok := section == "#/components/schemas" && isSchema || section == "#/components/responses" && isResponse; !ok {
			t.Errorf("%s leads nowhere", ref)
		}
	}
}

// TestOpenAPIRoutes: each route has an operation and the reverse, with the
// parameters of its path, its query and its headers.
func TestOpenAPIRoutes(t *testing.T) {
	operations := map[string]*operation{}
	ids := map[string]bool{}
	for _, p := range contract().doc.Paths {
		for _, m := range p.Value {
			operations[strings.ToUpper(m.Name)+" "+p.Name] = m.Value
			if ids[m.Value.ID] {
				t.Errorf("two operations are %s", m.Value.ID)
			}
			ids[m.Value.ID] = true
		}
	}
	if len(operations) != len(routes) {
		t.Errorf("%d operations, %d routes", len(operations), len(routes))
	}
	used := map[string]bool{}
	for _, rt := range routes {
		op, ok := operations[rt.pattern]
		if !ok {
			t.Errorf("%s has no operation", rt.pattern)
			continue
		}
		want := map[string]bool{}
		for _, name := range find(rt.pattern, `{([a-z]+)}`) {
			want["path "+name], used[name] = true, true
		}
		for _, name := range rt.query {
			want["query "+name], used[name] = true, true
		}
		if rt.note.options {
			for _, name := range append(headers(), wire.IdempotencyHeader) {
				want["header "+name] = true
			}
		}
		got := map[string]bool{}
		for _, f := range op.Parameters {
			got[f.In+" "+f.Name] = true
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: parameters %v, want %v", rt.pattern, got, want)
		}
	}
	for _, p := range parameters {
		if !used[p.name] {
			t.Errorf("no route takes the parameter %s", p.name)
		}
	}
}

// TestUndeclaredParameters: a function that reads what its route does not say
// is a defect, which its first test finds.
func TestUndeclaredParameters(t *testing.T) {
	r := &request{rt: &route{pattern: "GET /v1/topics/{topic}", query: []string{"tag", properties}}, Request: &http.Request{}}
	r.text("tag")
	r.text("property.a")
	r.path("topic")
	for name, read := range map[string]func(){
		"query": func() { r.text("tagg") }, "path": func() { r.path("top") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: read in silence", name)
				}
			}()
			read()
		}()
	}
}

// fill gives a value in which nothing is zero, so that every field is written.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for _, f := range v.Fields() {
			fill(f)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(cmp.Or(map[reflect.Type]string{
			reflect.TypeFor[wire.State](): string(wire.StateReady),
			reflect.TypeFor[wire.Code]():  string(wire.CodeInternal),

			reflect.TypeFor[wire.OperationState](): string(wire.OperationDone),
		}[v.Type()], "10s"))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(7)
	case reflect.Float64:
		v.SetFloat(7)
	default:
		panic("no value of " + v.Type().String())
	}
}

// TestOpenAPIFields: of every type that travels, what Go writes with all fields
// set is valid and has all fields of the schema; and the server reads all of
// them and refuses others.
func TestOpenAPIFields(t *testing.T) {
	c := newChecker()
	types := map[string]reflect.Type{}
	requests := map[string]reflect.Type{}
	for _, rt := range routes {
		if rt.in != nil {
			requests[rt.in.Name()], types[rt.in.Name()] = rt.in, rt.in
		}
		if rt.out != nil {
			types[rt.out.Name()] = rt.out
		}
	}
	for name, of := range types {
		v := reflect.New(of)
		fill(v.Elem())
		text, err := json.Marshal(v.Interface())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.validate(at("components", "schemas", name), string(text), &schema{Ref: "#/components/schemas/" + name}); err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
		if _, ok := requests[name]; !ok {
			continue
		}
		if err := decode(text, reflect.New(of).Interface()); err != nil {
			t.Errorf("%s: %v in %s", name, err, text)
		}
		if err := decode([]byte(`{"other":1}`), reflect.New(of).Interface()); !errors.Is(err, errUnknownField) {
			t.Errorf("%s takes other fields: %v", name, err)
		}
	}
	for _, s := range c.doc.Components.Schemas {
		for _, p := range s.Value.Properties {
			if !c.seen[s.Name+"."+p.Name] {
				t.Errorf("%s.%s is described, and Go does not write it", s.Name, p.Name)
			}
		}
	}
}

// TestOpenAPIRequired: what a request must have is refused when it is absent.
func TestOpenAPIRequired(t *testing.T) {
	d := newDoor(t)
	n := 0
	for _, rt := range routes {
		if rt.in == nil {
			continue
		}
		s, _ := contract().doc.Components.Schemas.get(rt.in.Name())
		if len(s.Required) == 0 {
			continue
		}
		n++
		method, path, _ := strings.Cut(rt.pattern, " ")
		path = regexp.MustCompile(`{[a-z]+}`).ReplaceAllString(path, "orders")
		if r := d.do(method, path, "{}"); r.status != http.StatusBadRequest {
			t.Errorf("%s without %v: status %d", rt.pattern, s.Required, r.status)
		}
	}
	if n == 0 {
		t.Error("no request must have anything")
	}
}

// TestOpenAPICodes: the codes of the table are those of the document.
func TestOpenAPICodes(t *testing.T) {
	s, _ := contract().doc.Components.Schemas.get("Code")
	for _, r := range table {
		if !slices.Contains(s.Enum, string(r.code)) {
			t.Errorf("%s is not described", r.code)
		}
		if line := fmt.Sprintf("\n%s (%d)", r.code, r.status); !strings.Contains(s.Description, line) {
			t.Errorf("no %q in %s", line, s.Description)
		}
	}
	for _, code := range s.Enum {
		if !slices.ContainsFunc(table, func(r row) bool { return string(r.code) == code }) {
			t.Errorf("%s is described, and nothing answers with it", code)
		}
	}
}

// TestOpenAPIIsServed as it is.
func TestOpenAPIIsServed(t *testing.T) {
	d := newDoor(t)
	if got := d.do("GET", "/openapi.json", "").want(200, nil).body; got != string(openAPIDocument) {
		t.Errorf("%d bytes, want %d", len(got), len(openAPIDocument))
	}
}

// TestDocs: the page shows all of the document, leads nowhere else, and needs
// nothing from elsewhere.
func TestDocs(t *testing.T) {
	d := newDoor(t)
	r := d.do("GET", "/docs", "").want(200, nil)
	if got := r.header.Get("Content-Type"); got != "text/html; charset=utf-8" {
		t.Errorf("Content-Type %q", got)
	}
	text := r.body
	for _, p := range contract().doc.Paths {
		for _, m := range p.Value {
			_, section, ok := strings.Cut(text, `<section id="`+m.Value.ID+`">`)
			section, _, _ = strings.Cut(section, "</section>")
			if !ok || !strings.Contains(section, strings.ToUpper(m.Name)) || !strings.Contains(section, p.Name) {
				t.Errorf("%s is not shown: %s", m.Value.ID, section)
			}
			for _, f := range m.Value.Parameters {
				if !strings.Contains(section, "<code>"+f.Name+"</code>") {
					t.Errorf("%s: %s is not shown", m.Value.ID, f.Name)
				}
			}
		}
	}
	for _, s := range contract().doc.Components.Schemas {
		_, section, ok := strings.Cut(text, `<section id="`+s.Name+`">`)
		section, _, _ = strings.Cut(section, "</section>")
		if !ok {
			t.Errorf("%s is not shown", s.Name)
		}
		for _, p := range s.Value.Properties {
			if !strings.Contains(section, "<code>"+p.Name+"</code>") {
				t.Errorf("%s.%s is not shown", s.Name, p.Name)
			}
		}
	}
	for _, target := range find(text, `href="([^"]*)"`) {
		id, ok := strings.CutPrefix(target, "#")
		if ok && !strings.Contains(text, ` id="`+id+`"`) || !ok && target != "openapi.json" {
			t.Errorf("a link to %q", target)
		}
	}
	for _, never := range []string{"<script", "src=", "url(", "@import", "ZgotmplZ", "&lt;no value"} {
		if strings.Contains(text, never) {
			t.Errorf("the page has %q", never)
		}
	}
}
